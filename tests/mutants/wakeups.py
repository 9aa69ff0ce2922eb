"""Removes wake-ups from built test programs, one at a time, and reports those that no test notices.

Usage: python3 -m tests.mutants.wakeups build/dev/tests/server_scheduler_test [PROGRAM ...] [--only TEXT] [--seconds N]

Nothing is compiled: the calls of a condition variable's notify_one and notify_all are found in the machine code
(x86-64, binutils) and overwritten, in a copy. If a trap in the place of the call is not hit, the program does not reach
it. Exit status 1 if some removal stayed undetected.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
CALL = re.compile(r"^\s*([0-9a-f]+):\s+(call|jmp|j\w+)\s+[0-9a-f]+ <.*condition_variable.*notify_(one|all).*plt>")
# By the first bytes of the instruction: its replacement. A jump to the function is a call and a return.
NOTHING = {b"\xe8": b"\x0f\x1f\x44\x00\x00", b"\xe9": b"\xc3\x90\x90\x90\x90", b"\x0f": b"\x66\x0f\x1f\x44\x00\x00"}
TRAP = b"\xcc"


@dataclasses.dataclass(frozen=True)
class Site:
    name: str  # function, number of the call in it, and the function called
    address: int


def sites(listing: str) -> list:
    """The calls in a disassembly with demangled names."""
    found, function, count = [], "", 0
    for line in listing.split("\n"):
        if head := FUNCTION.match(line):
            function, count = head.group(1), 0
        elif call := CALL.match(line):
            count += 1
            if "tensord::" in function and "_Test::" not in function and "::testing::" not in function:
                name = re.sub(r"\(.*|\[clone.*", "", function.replace("(anonymous namespace)::", ""))
                found.append(Site(f"{name} #{count} notify_{call.group(3)}", int(call.group(1), 16)))
    return found


class Program:
    def __init__(self, path: str):
        self.path, self.name = path, os.path.basename(path)
        listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
        self.sites = sites(listing)
        sections = subprocess.run(["objdump", "-h", path], capture_output=True, text=True, check=True).stdout
        text = re.search(r"\.text\s+[0-9a-f]+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", sections)
        self.shift = int(text.group(1), 16) - int(text.group(2), 16)

    def altered(self, site: Site, is_trap: bool, folder: str) -> str:
        """A copy with the call replaced."""
        copy = os.path.join(folder, self.name)
        if os.path.exists(copy):
            os.unlink(copy)  # a process that is still ending keeps the file
        shutil.copy(self.path, copy)
        with open(copy, "r+b") as file:
            file.seek(site.address - self.shift)
            first = file.read(1)
            file.seek(site.address - self.shift)
            file.write(TRAP if is_trap else NOTHING[first])
        return copy

    def run(self, path: str, seconds: float) -> int:
        """The exit status; a hang counts as a failure."""
        try:
            return subprocess.run([path, "--gtest_brief=1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            return -1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    verdicts: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in options.programs:
            program = Program(path)
            begin = time.monotonic()
            if program.run(path, options.seconds) != 0:
                sys.exit(f"{program.name} fails as it is")
            seconds = min(options.seconds, 60 + 3 * (time.monotonic() - begin))
            for site in program.sites:
                if options.only not in site.name or verdicts.get(site.name) == "noticed":
                    continue
                if program.run(program.altered(site, True, folder), seconds) == 0:
                    verdicts.setdefault(site.name, "not run")
                    continue
                is_green = program.run(program.altered(site, False, folder), seconds) == 0
                verdicts[site.name] = "GREEN" if is_green else "noticed"
                print(f"{verdicts[site.name]:8} {site.name} ({program.name})", flush=True)
    for name, verdict in sorted(verdicts.items(), key=lambda pair: pair[1]):
        print(f"{verdict:8} {name}")
    return 1 if "GREEN" in verdicts.values() else 0


if __name__ == "__main__":
    sys.exit(main())
