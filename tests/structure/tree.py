# SPDX-License-Identifier: MIT
"""The source tree as the structure tests see it: its files, and C text without comments."""

import os
import re

SKIPPED_FOLDERS = re.compile(r"^(\.git|\.cache|\.carry|build.*|__pycache__)$")
C_ENDINGS = (".c", ".h", ".inc", ".def", ".cu", ".hip")


def files(root, under=""):
    """Paths relative to the root, sorted, without build folders."""
    found = []
    for folder, folders, names in os.walk(os.path.join(root, under)):
        folders[:] = sorted(f for f in folders if not SKIPPED_FOLDERS.match(f))
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)


def c_files(root, *rooms):
    paths = []
    for room in rooms or [""]:
        paths += [p for p in files(root, room) if p.endswith(C_ENDINGS)]
    return paths


def text_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def is_text(root, path):
    with open(os.path.join(root, path), "rb") as file:
        return b"\0" not in file.read(4096)


COMMENT_OR_STRING = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def code_of(text, keep_strings=False):
    """C text with comments (and strings) blanked; line numbers stay what they were."""

    def blank(match):
        token = match.group(0)
        if token.startswith("/") or not keep_strings:
            return "\n" * token.count("\n") or '""'
        return token

    return COMMENT_OR_STRING.sub(blank, text)


def includes_of(text):
    """(line number, True for <...>, name) of each #include."""
    return [
        (text.count("\n", 0, m.start(2)) + 1, m.group(1) == "<", m.group(2))
        for m in INCLUDE.finditer(text)
    ]
