#!/usr/bin/env python3
"""Prints the size of the daemon by folder of its sources and by library: links it once more and reads the linker's map.

    scripts/binary_size.py build/release [--depth 2] [--least 0.05]

Code of several objects (inline functions, templates) counts for the first of them. Rows in parentheses are parts of the file that
the map does not divide: tables for exceptions, relocations, merged strings, names for the dynamic linker.

scripts/build_budget.json has the limit. Not used, while there is room: -Os for core/jit/importers and server/commands (0.7 MB); optimize_for =
CODE_SIZE in protos (0.5 MB); mold's --icf=all (0.9 MB, but it makes pointers to equal functions equal); packed relocations (0.6 MB, but they
need glibc 2.36).
"""

import argparse
import collections
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINE = re.compile(r"\s*(?:0x[0-9a-f]+|0)\s+(\d+)\s+\d+ ( *)(\S.*)")
INPUT = re.compile(r"(.*):\((\.[^()]*)\)")
KINDS = ("code", "data", "exceptions")
NOT_IN_FILE = re.compile(r"\.t?bss|EHDR|PHDR|SHDR")


class Objects:
    """The source location of an object in the map."""

    def __init__(self, build: pathlib.Path):
        self.by_name = collections.defaultdict(list)
        self.units = {}
        for path in build.rglob("*.o"):
            self.by_name[path.name].append(path.relative_to(build))
        for path in build.rglob("Unity/*.cxx"):
            member = re.search(r'#include "([^"]+)"', path.read_text())
            self.units[path.name] = pathlib.Path(member[1]).parent.relative_to(ROOT)

    def folder(self, name: str) -> str:
        archive = re.fullmatch(r"(.*/lib(\w+)\.a)\((.*)\)", name)
        if archive and archive[1].startswith("/"):
            return pathlib.Path(archive[1]).name
        path = pathlib.Path(name)
        if archive:
            known = self.by_name[archive[3]]  # of this archive's target, or of an object library
            path = next((path for path in known if f"{archive[2]}.dir" in path.parts), known[0] if known else pathlib.Path(archive[3]))
        if path.is_absolute():
            return "(C and C++ runtime)" if re.search(r"crt|/gcc/", name) else path.name
        unit = self.units.get(path.name.removesuffix(".o"))
        if unit:
            return str(unit)
        parts = [part for part in path.parent.parts if part != "CMakeFiles" and not part.endswith(".dir")]
        return "/".join(parts).replace("protos/gen/protos", "protos")


def kind_of(section: str) -> str:
    if section.startswith((".text", ".init", ".fini", ".plt")):
        return "code"
    return "exceptions" if section.startswith((".gcc_except_table", ".eh_frame")) else "data"


def sizes(linker_map: str, folder_of) -> dict:
    """Folder → kind → bytes in the file, of a map of mold."""
    found = collections.defaultdict(collections.Counter)
    section, rest = "", 0

    def close():
        if rest > 0 and not NOT_IN_FILE.fullmatch(section):
            found[f"({section})"][kind_of(section)] += rest

    for line in linker_map.splitlines()[1:]:
        match = LINE.fullmatch(line)
        if not match:
            continue
        size, indent, name = int(match[1]), len(match[2]), match[3]
        if indent == 0:
            close()
            section, rest = name, size
        elif indent <= 8 and not NOT_IN_FILE.fullmatch(section):
            part = INPUT.fullmatch(name)
            if part:
                found[folder_of(part[1])][kind_of(section)] += size
                rest -= size
    close()
    return found


def map_of(build: pathlib.Path, target: str) -> tuple[str, int]:
    """The linker's map, and the size of the stripped file."""
    command = subprocess.run(["ninja", "-C", build, "-t", "commands", target], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    with tempfile.TemporaryDirectory() as folder:
        made = shlex.quote(folder)
        command = re.sub(r" -o \S+ ", f" -s -Wl,-Map={made}/map -o {made}/binary ", command, count=1)
        subprocess.run(command, shell=True, cwd=build, check=True)
        return (pathlib.Path(folder) / "map").read_text(errors="replace"), (pathlib.Path(folder) / "binary").stat().st_size


def shortened(found: dict, depth: int, least: int) -> dict:
    short = collections.defaultdict(collections.Counter)
    for name, counts in found.items():
        short["/".join(name.split("/")[:depth])].update(counts)
    small = [name for name, counts in short.items() if counts.total() < least]
    for name in small:
        short["(all smaller ones)"].update(short.pop(name))
    return short


def print_table(found: dict, size: int) -> None:
    print(f"{'':34}{'MB':>8}" + "".join(f"{kind:>12}" for kind in KINDS))
    total = collections.Counter()
    for name, counts in sorted(found.items(), key=lambda item: -item[1].total()):
        total.update(counts)
        print(f"{name:34}{counts.total() / 1e6:8.2f}" + "".join(f"{counts[kind] / 1e6:12.2f}" for kind in KINDS))
    print(f"{'all of it':34}{total.total() / 1e6:8.2f}" + "".join(f"{total[kind] / 1e6:12.2f}" for kind in KINDS))
    print(f"{'the stripped file':34}{size / 1e6:8.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--target", default="server/tensord")
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--least", type=float, default=0.05, help="MB of a row of its own")
    options = parser.parse_args()
    linker_map, size = map_of(options.build.resolve(), options.target)
    found = sizes(linker_map, Objects(options.build.resolve()).folder)
    print_table(shortened(found, options.depth, int(options.least * 1e6)), size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
