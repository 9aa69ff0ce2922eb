#!/usr/bin/env python3
"""Measures a build folder against scripts/build_budget.json; exit status 1: it exceeds the budget.

    scripts/build_budget.py build/dev [--cpu-seconds S]   the build's counts, and the CPU time that it took
    scripts/build_budget.py build/dev --write             sets the budget to the current counts

Counts do not depend on the machine: units that are compiled, test programs, lines that the compiler reads for all units (each
file of a unit once), and inputs of all links. They may exceed the budget by a tenth. CPU time is divided by that of one
unit, compiled in the same run; it may exceed the budget by a half. From a compiler cache it is less. The daemon, stripped, may
not exceed its budget, and --write leaves that as it is; scripts/binary_size.py says what is in it.
"""

import argparse
import json
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGET = ROOT / "scripts" / "build_budget.json"
REFERENCE = "core/base/parallel.cpp"
# What scripts/cuda-test builds, if it is asked to, beside all.
BESIDES = r"tensord_cuda_emulated_(address|thread|ptx)"
MAY_BE = {"reference_compiles": 1.5, "daemon_bytes": 1}
COUNTS_MAY_BE = 1.1


def lines_of(path: pathlib.Path, known: dict = {}) -> int:
    if path not in known:
        known[path] = path.read_bytes().count(b"\n") if path.is_file() else 0
    return known[path]


def units_and_lines(build: pathlib.Path) -> tuple[int, int]:
    listed = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout
    units, lines = 0, 0
    for block in listed.split("\n\n"):
        head, *files = block.split("\n")
        if re.match(r"\S+\.o: #deps", head) and "(VALID)" in head and not re.search(BESIDES, head):
            units += 1
            lines += sum(lines_of(build / name.strip()) for name in files)
    return units, lines


def links(build: pathlib.Path) -> tuple[int, int]:
    """Test programs, and inputs of all links."""
    programs, inputs = 0, 0
    for line in (build / "build.ninja").read_text().replace("$\n", "").split("\n"):
        found = re.match(r"build (.+?): CXX_(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY|STATIC_LIBRARY)_LINKER\S* (.*)", line)
        if found and not re.search(BESIDES, found[1]):
            inputs += sum(word != "|" for word in found[3].split(" || ")[0].split())
            programs += found[1].startswith("tests/") and found[1].endswith("_test")
    return programs, inputs


def reference_seconds(build: pathlib.Path) -> float:
    """CPU time of one unit, by the build's own compiler without a cache."""
    sys.path.insert(0, str(ROOT))
    from tests import compile_commands
    entry = next(entry for entry in compile_commands.sources(build) if entry["file"].endswith("/" + REFERENCE))
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if re.search(r"(c\+\+|g\+\+)[-\d.]*$", word)):]
    with tempfile.TemporaryDirectory() as folder:
        words[words.index("-o") + 1] = folder + "/reference.o"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, cwd=entry["directory"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def daemon_bytes(daemon: pathlib.Path) -> int:
    """Stripped, without the code of CUDA kernels, which only builds with nvcc have."""
    with tempfile.NamedTemporaryFile() as stripped:
        subprocess.run(["strip", "-o", stripped.name, daemon], check=True)
        sections = subprocess.run(["size", "-A", stripped.name], capture_output=True, text=True, check=True).stdout.splitlines()
        kernels = sum(int(line.split()[1]) for line in sections if line.startswith(".nv_fatbin"))
        return pathlib.Path(stripped.name).stat().st_size - kernels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--cpu-seconds", type=float)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    units, lines = units_and_lines(options.build)
    programs, inputs = links(options.build)
    found = {"units": units, "test_programs": programs, "lines_read": lines, "link_inputs": inputs}
    if options.cpu_seconds:
        found["reference_compiles"] = round(options.cpu_seconds / reference_seconds(options.build))
    daemon = options.build / "server/tensord"
    if daemon.exists():
        found["daemon_bytes"] = daemon_bytes(daemon)
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {}
    if options.write:
        kept = {name: value for name, value in budget.items() if name == "daemon_bytes"}
        BUDGET.write_text(json.dumps({**budget, **found, **kept}, indent=2) + "\n")
    is_over = False
    for name, value in found.items():
        may_be = budget.get(name, value) * MAY_BE.get(name, COUNTS_MAY_BE)
        is_over |= value > may_be and not options.write
        print(f"{name:20} {value:>12,} of {budget.get(name, value):,}{'   OVER THE BUDGET' if value > may_be else ''}")
    if is_over:
        print("scripts/build_budget.json: say in the change why it became heavier, and run scripts/build_budget.py BUILD --write")
    return is_over


if __name__ == "__main__":
    sys.exit(main())
