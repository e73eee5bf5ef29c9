# SPDX-License-Identifier: MIT
"""The rules of the tree. Each takes the tree's root and yields complaints: "file:line: what"."""

import os
import re
import shutil
import subprocess
import sys

from tree import c_files, code_of, files, includes_of, is_text, text_of

PRODUCT = ("engine", "adio", "kernels", "hipsim", "tools", "include")

# Files that may name a GPU vendor's functions, types and libraries: the providers, what stands
# outside the product, and the settings' help, which is for users.
VENDOR_FILES = re.compile(
    r"^(engine/device/(hip|cuda)\w*\.|engine/backend/(ais|cufile)\w*\.|"
    r"engine/tunables\.def$|kernels/|hipsim/|tests/|examples/|bench/)"
)
VENDOR_NAME = re.compile(r"\b(hip[A-Z]\w*|cu[A-Z]\w+|cuda[A-Z]\w*|hsa_\w+|CU[a-z]\w+)\b")
VENDOR_LIBRARY = re.compile(r"lib(amdhip64|cuda|cudart|cufile|hsa-runtime64)\b")
VENDOR_HEADER = re.compile(r"^(hip/|cuda|cufile|hsa/|rocm)")

HOST_MPI_HEADER = re.compile(r"^(ompi|opal|orte|mca|romio|adio)\w*(/|\.h$|_config\.h$)|^mpio\w*\.h$")
HOST_MPI_NAME = re.compile(r"\b(ompi|opal|orte|mca)_\w+")

# The engine's doors: all that the driver may open.
ENGINE_DOORS = {
    "engine.h", "file.h", "request.h", "extent.h", "status.h", "tunables.h", "stats.h", "log.h",
    "stream.h", "backend.h", "device/device.h", "tunables.def", "stats.def",
}

FUNCTION_LINES = 80
FILE_LINES = 600


def numbered(text):
    return enumerate(text.split("\n"), 1)


def layers(root):
    """No MPI below adio/, no vendor outside its files, no private MPI outside adio/host."""
    for path in c_files(root, *PRODUCT):
        text = text_of(root, path)
        code = code_of(text)
        with_strings = code_of(text, keep_strings=True)
        below_mpi = path.startswith(("engine/", "kernels/", "hipsim/", "include/"))
        for line, _, name in includes_of(with_strings):
            if below_mpi and name in ("mpi.h", "mpio.h"):
                yield f"{path}:{line}: includes {name}: MPI ends in adio/"
            if VENDOR_HEADER.match(name) and not VENDOR_FILES.match(path):
                yield f"{path}:{line}: includes {name}: a vendor's header outside the provider files"
            if HOST_MPI_HEADER.match(name) and not path.startswith("adio/"):
                yield f"{path}:{line}: includes {name}: private MPI headers end in adio/host/"
            if re.match(r"(ompi|opal|orte)[/_]", name) and not path.startswith("adio/host/"):
                yield f"{path}:{line}: includes {name}: private MPI headers end in adio/host/"
        for line, code_line in numbered(code):
            if below_mpi and re.search(r"\bP?MPI_[A-Z]\w+", code_line):
                yield f"{path}:{line}: names MPI: it ends in adio/"
            found = VENDOR_NAME.search(code_line)
            if found and not VENDOR_FILES.match(path):
                yield f"{path}:{line}: names {found.group(0)}: a vendor outside the provider files"
            found = HOST_MPI_NAME.search(code_line)
            if found and not path.startswith("adio/host/"):
                yield f"{path}:{line}: names {found.group(0)}: Open MPI's inside ends in adio/host/"
        for line, code_line in numbered(with_strings):
            found = VENDOR_LIBRARY.search(code_line)
            if found and not VENDOR_FILES.match(path):
                yield f"{path}:{line}: names {found.group(0)}: a vendor outside the provider files"


def reachable(root, path, name, rooms):
    folders = [os.path.dirname(path)] + list(rooms)
    return any(os.path.isfile(os.path.join(root, f, name)) for f in folders)


def doors(root):
    """A room opens its own headers and those of the rooms below it; adio/ only the engine's doors."""
    below = {"engine": ("engine", "include", "kernels"), "kernels": ("kernels",),
             "hipsim": ("hipsim", "kernels", "include")}
    for path in c_files(root, "engine", "kernels", "hipsim", "adio"):
        room = path.split("/")[0]
        for line, angle, name in includes_of(code_of(text_of(root, path), keep_strings=True)):
            if angle:
                continue
            resolved = os.path.normpath(os.path.join(os.path.dirname(path), name))
            if room == "adio":
                own = reachable(root, path, name, ("adio", "adio/host", "include"))
                if name.startswith("engine/"):
                    name = name[len("engine/"):]
                if not own and os.path.isfile(os.path.join(root, "engine", name)):
                    if name not in ENGINE_DOORS:
                        yield f"{path}:{line}: opens engine/{name}, which is private to the engine"
            elif os.path.isfile(os.path.join(root, resolved)):
                if resolved.split("/")[0] not in below[room]:
                    yield f"{path}:{line}: opens {resolved}, which is not below {room}/"
            elif not reachable(root, path, name, below[room]) and os.path.isfile(
                os.path.join(root, name)
            ):
                yield f"{path}:{line}: opens {name}, which is not below {room}/"


def spdx(root):
    """Every source file says its licence first, C files then what they are for."""
    for path in files(root):
        text = None
        if path.endswith(C_ENDINGS):
            text = text_of(root, path)
            if not text.startswith("/* SPDX-License-Identifier: MIT */\n/*"):
                yield f"{path}:1: must begin with the SPDX line and a comment on what it is for"
        elif path.endswith(".py") or is_script(root, path):
            head = text_of(root, path).split("\n")[:2]
            if "# SPDX-License-Identifier: MIT" not in head:
                yield f"{path}:1: must say '# SPDX-License-Identifier: MIT' in its first two lines"


C_ENDINGS = (".c", ".h", ".inc", ".def", ".cu", ".hip")


def is_script(root, path):
    if path.endswith((".sh", ".sbatch")):
        return True
    if "." in os.path.basename(path) and not path.endswith(".in"):
        return False
    return is_text(root, path) and text_of(root, path).startswith("#!/")


def length(root):
    """No function over 80 lines, no file over 600."""
    for path in files(root):
        if not path.endswith((".c", ".h", ".inc", ".cu", ".hip", ".py")):
            continue
        text = text_of(root, path)
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield f"{path}:1: {lines} lines; a file has at most {FILE_LINES}"
        if path.endswith(".py"):
            continue
        start = None
        for number, line in numbered(text):
            if line == "{":
                start = number
            elif line.startswith("}") and start is not None:
                if number - start - 1 > FUNCTION_LINES:
                    yield (f"{path}:{start}: a function of {number - start - 1} lines; "
                           f"at most {FUNCTION_LINES}")
                start = None


def marks(root):
    """Nothing half done is committed."""
    mark = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|not[ _]imple" r"mented", re.IGNORECASE)
    for path in files(root):
        if not is_text(root, path):
            continue
        for line, content in numbered(text_of(root, path)):
            found = mark.search(content)
            if found:
                yield f"{path}:{line}: '{found.group(0)}'"


def paths(root):
    """No path of a particular machine."""
    machine = re.compile(r"(?<![\w.}$])/(home/[a-z]|work/|root/|Users/)")
    here = [os.path.realpath(root), os.path.expanduser("~")]
    here = [h for h in here if h.count("/") > 1]
    for path in files(root):
        if not is_text(root, path) or path.endswith("structure/rules.py"):
            continue
        for line, content in numbered(text_of(root, path)):
            found = machine.search(content)
            if found or any(h in content for h in here):
                yield f"{path}:{line}: a path of one machine: {content.strip()[:80]}"


def clang_format():
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if "version 14." in version:
                return program
    return None


def formatting(root):
    """clang-format 14 would change nothing."""
    program = clang_format()
    if program is None:
        sys.exit(77)
    sources = [p for p in files(root) if p.endswith((".c", ".h"))]
    result = subprocess.run(
        [program, "--dry-run", "--Werror", "--ferror-limit=1", *sources],
        cwd=root, capture_output=True, text=True,
    )
    for line in result.stderr.split("\n"):
        if "error:" in line:
            yield line
    if result.returncode != 0 and "error:" not in result.stderr:
        yield f"clang-format: {result.stderr.strip()}"


def scripts(root):
    """Shell scripts stop at the first error and shellcheck has nothing to say."""
    shells = [p for p in files(root) if is_script(root, p) and not p.endswith(".py")]
    shells = [p for p in shells if "python" not in text_of(root, p).split("\n")[0]]
    for path in shells:
        if path.endswith(".sbatch"):
            continue
        if "\nset -euo pipefail\n" not in text_of(root, path):
            yield f"{path}:1: no 'set -euo pipefail'"
        result = subprocess.run(["bash", "-n", path], cwd=root, capture_output=True, text=True)
        if result.returncode != 0:
            yield f"{path}: {result.stderr.strip()}"
    program = shutil.which("shellcheck")
    if program and shells:
        command = [program, "-x", "-f", "gcc", *shells]
        yield from subprocess.run(
            command, cwd=root, capture_output=True, text=True
        ).stdout.splitlines()


def settings(root):
    """docs/settings.md is what the table makes it."""
    maker = os.path.join(root, "scripts", "make-settings-page")
    made = subprocess.run([sys.executable, maker, "--check", root], capture_output=True, text=True)
    if made.returncode != 0:
        yield (made.stdout + made.stderr).strip()


def docs(root):
    """Links lead somewhere, and every setting that a page or script names exists."""
    table = text_of(root, "engine/tunables.def")
    known = {name.upper() for name in re.findall(r"^TUNABLE\((\w+)", table, re.MULTILINE)}
    for path in files(root):
        page = path.endswith(".md")
        if not page and not path.startswith(("scripts/", "examples/")):
            continue
        for line, content in numbered(text_of(root, path)):
            for target in re.findall(r"\]\(([^)#:]+)\)", content) if page else []:
                if not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                    yield f"{path}:{line}: the link to {target} leads nowhere"
            for name in re.findall(r"(?<![-\w])HIPIO_([A-Z_]+)=", content):
                if name not in known and name not in NO_SETTINGS:
                    yield f"{path}:{line}: there is no setting HIPIO_{name}"


# Words that look like settings: variables of CMake and of the job script.
NO_SETTINGS = {"PREFIX", "WERROR", "MPI", "HIPSIM", "EXAMPLES", "TEST_GPU", "TEST_NEEDS_GPU", "MPICC"}


def headers(root, compiler, flags):
    """Each header compiles alone."""
    rooms = ("engine", "adio", "hipsim", "kernels", "include", "tests/support", "examples")
    flags = [f for f in flags if f]
    for path in c_files(root, *rooms):
        if not path.endswith(".h"):
            continue
        command = [
            *compiler, "-std=gnu11", "-D_GNU_SOURCE", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
            *(f"-I{os.path.join(root, room)}" for room in ("", "engine", "include", "kernels", "adio", "hipsim")),
            *flags, "-x", "c", "-",
        ]
        source = f'#include "{os.path.join(os.path.abspath(root), path)}"\n'
        result = subprocess.run(command, input=source, capture_output=True, text=True)
        errors = [l for l in result.stderr.split("\n") if "error:" in l]
        if result.returncode != 0:
            yield errors[0] if errors else f"{path}: {result.stderr.strip()}"


def exported(library):
    output = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
    ).stdout
    names = {line.split()[-1].split("@")[0] for line in output.splitlines() if " A " not in line}
    return sorted(names - {"_init", "_fini"})


def symbols(library, list_file):
    """A library exports what its list names, and nothing else."""
    with open(list_file, encoding="utf-8") as file:
        wanted = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    for name in sorted(set(exported(library)) - wanted):
        yield f"{library}: exports {name}, which {list_file} does not name"
    for name in sorted(wanted - set(exported(library))):
        yield f"{library}: lacks {name}, which {list_file} names"


TREE_RULES = {
    "layers": layers, "doors": doors, "spdx": spdx, "length": length, "marks": marks,
    "paths": paths, "formatting": formatting, "scripts": scripts, "settings": settings,
    "docs": docs,
}
