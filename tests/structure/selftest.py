#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that every rule of the tree can fail: breaks each on purpose in a copy of the tree.

    selftest.py ROOT COMPILER [FLAG...]
"""

import os
import shutil
import subprocess
import sys
import tempfile

import tree

HEAD = "/* SPDX-License-Identifier: MIT */\n/*\n * Planted by the self-test.\n */\n"
LONG = "void planted(void)\n{\n" + "    ;\n" * 81 + "}\n"

# rule, file that is added to the copy, its text, words of the complaint
PLANTS = [
    ("layers", "engine/planted.c", HEAD + "#include <mpi.h>\n", "includes mpi.h"),
    ("layers", "kernels/planted.c", HEAD + '#include "mpi.h"\n', "includes mpi.h"),
    ("layers", "hipsim/planted.c", HEAD + "int planted = MPI_SUCCESS;\n", "names MPI"),
    ("layers", "engine/planted.c", HEAD + "#include <hip/hip_runtime_api.h>\n", "vendor's header"),
    ("layers", "engine/planted.c", HEAD + "int planted = hipMalloc(0, 0);\n", "names hipMalloc"),
    ("layers", "adio/planted.c", HEAD + "int planted = cuMemAlloc(0, 0);\n", "names cuMemAlloc"),
    ("layers", "engine/planted.c", HEAD + 'const char *p = "libcuda.so.1";\n', "names libcuda"),
    ("layers", "adio/planted.c", HEAD + "#include <ompi/file/file.h>\n", "private MPI headers"),
    ("layers", "adio/planted.c", HEAD + "int planted = opal_planted();\n", "names opal_planted"),
    ("doors", "engine/planted.c", HEAD + '#include "../adio/planted.h"\n', "opens adio/planted.h"),
    ("doors", "adio/planted.c", HEAD + '#include "slots.h"\n', "private to the engine"),
    ("spdx", "engine/planted.c", "int planted;\n", "engine/planted.c:1"),
    ("spdx", "scripts/planted", "#!/usr/bin/env bash\nset -euo pipefail\n", "scripts/planted:1"),
    ("length", "engine/planted.c", HEAD + LONG, "a function of 81 lines"),
    ("length", "engine/planted.c", HEAD + "int planted;\n" * 600, "604 lines"),
    ("marks", "engine/planted.c", HEAD + "/* TO" + "DO: later */\n", "'TO" + "DO'"),
    ("paths", "engine/planted.c", HEAD + 'const char *p = "/ho' + 'me/someone/x";\n', "one machine"),
    ("formatting", "engine/planted.c", HEAD + "int   planted  ;\n", "planted.c"),
    ("scripts", "scripts/planted", "#!/usr/bin/env bash\n# x\necho\n", "pipefail"),
    ("settings", "docs/settings.md", "# Settings\n", "settings.md"),
    ("docs", "docs/planted.md", "[gone](nowhere.md)\n", "leads nowhere"),
    ("docs", "docs/planted.md", "set `HIPIO_PLANTED=1`\n", "no setting HIPIO_PLANTED"),
    ("headers", "engine/planted.h", HEAD + "struct one { struct two planted; };\n", "incomplete type"),
    ("headers", "engine/planted.h", HEAD + "extern size_t planted;\n", "unknown type name"),
]


def check(root, rule, compiler, *more):
    here = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, os.path.join(here, "check.py"), rule, root]
    if rule == "headers":
        command += [compiler, *more]
    return subprocess.run(command, capture_output=True, text=True)


def plant(copy, path, text):
    full = os.path.join(copy, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as file:
        file.write(text)


def copy_tree(root, copy):
    for path in tree.files(root):
        target = os.path.join(copy, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(root, path), target)


def try_plant(root, copy, compiler, flags, case):
    """An empty text if the rule found the plant, else what is wrong with the rule."""
    rule, path, text, word = case
    original = os.path.join(root, path)
    if rule == "doors":
        plant(copy, "adio/planted.h", HEAD)
    plant(copy, path, text)
    result = check(copy, rule, compiler, *flags)
    os.remove(os.path.join(copy, path))
    if os.path.exists(original):
        shutil.copy(original, os.path.join(copy, path))
    if result.returncode == 77:
        return ""
    if result.returncode != 1:
        return f"{rule}: did not see {path}: {text.splitlines()[-1]}"
    if word not in result.stdout:
        return f"{rule}: complained about something else: {result.stdout}{result.stderr}"
    return ""


# These start a program for each file: a tree that holds nothing but the plant is enough for them.
LONELY = ("headers", "formatting", "scripts")


def symbols_can_fail(copy, compiler):
    library = os.path.join(copy, "planted.so")
    source = os.path.join(copy, "planted.c")
    names = os.path.join(copy, "planted.symbols")
    plant(copy, "planted.c", "void hipio_one(void);\nvoid hipio_one(void)\n{\n}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    here = os.path.dirname(os.path.abspath(__file__))
    for wanted, code in (("hipio_one\n", 0), ("", 1), ("hipio_one\nhipio_two\n", 1)):
        plant(copy, "planted.symbols", wanted)
        result = subprocess.run(
            [sys.executable, os.path.join(here, "check.py"), "symbols", library, names],
            capture_output=True, text=True,
        )
        if result.returncode != code:
            yield f"symbols: answered {result.returncode} instead of {code}: {result.stdout}"


def main():
    root, compiler, *flags = sys.argv[1:]
    with tempfile.TemporaryDirectory() as copy, tempfile.TemporaryDirectory() as lone:
        copy_tree(root, copy)
        shutil.copy(os.path.join(root, ".clang-format"), lone)
        wrong = [
            try_plant(root, lone if case[0] in LONELY else copy, compiler, flags, case)
            for case in PLANTS
        ]
        wrong += list(symbols_can_fail(copy, compiler))
    wrong = [w for w in wrong if w]
    print("\n".join(wrong) if wrong else f"{len(PLANTS) + 3} planted faults found")
    sys.exit(1 if wrong else 0)


main()
