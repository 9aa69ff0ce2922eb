"""Mutants, each one edit of one file: finds them, draws some, and reads the list of equivalent ones."""

import difflib
import hashlib
import pathlib
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.rules import all_places, gated
from tests.mutants.tokens import Code

KNOWN = pathlib.Path(__file__).parent / "equivalent.txt"
GATE = pathlib.Path(__file__).parent / "mutant.h"
NEEDS_GPU = re.compile(r"/cuda/|_cuda\.cpp$")


@dataclass(frozen=True)
class Mutant:
    id: str  # stays the same as long as the line does, wherever it moves in the file
    path: str  # from the root
    line: int
    rule: str
    start: int
    end: int
    replacement: str

    def apply(self, source: str) -> str:
        return source[:self.start] + self.replacement + source[self.end:]

    def lines(self, source: str) -> set[int]:
        return set(range(self.line, self.line + 1 + source.count("\n", self.start, self.end)))

    def overlaps(self, other: "Mutant") -> bool:
        return self.path == other.path and self.start < other.end and other.start < self.end

    def diff(self, source: str) -> str:
        lines = difflib.unified_diff(source.splitlines(), self.apply(source).splitlines(), self.path, self.path, n=2,
                                     lineterm="")
        return "\n".join(lines)


def with_gates(source: str, mutants: dict[int, Mutant]) -> str:
    """A source with switches for its mutants, which do not overlap; the active mutant is selected at run time."""
    for number, mutant in sorted(mutants.items(), key=lambda item: item[1].start, reverse=True):
        either = gated(mutant.rule, source[mutant.start:mutant.end], mutant.replacement)
        source = source[:mutant.start] + either.replace("@ON@", f"::tensord_mutant::on({number})") + source[mutant.end:]
    return f'#include "{GATE}"\n#line 1\n' + source


def without_lock(source: str, mutant: Mutant) -> str:
    """A source in which a lock is released as soon as it is taken, so that other uses of it still compile."""
    taken = source[mutant.start:mutant.end]
    match = re.match(r"(?:const )?MutexLock (\w+)", taken)
    if not match:
        return mutant.apply(source)
    return source[:mutant.start] + taken.removeprefix("const ") + f" {match[1]}.unlock();" + source[mutant.end:]


def lines_with_errors(output: str, path: str) -> set[int]:
    """Lines of the source with compiler errors, or named as the origin of errors in templates elsewhere."""
    place = rf"(?:^|[\s/]){re.escape(path)}:(\d+):(?:\d+:)?"
    found = re.findall(place + " error:", output, re.MULTILINE) or re.findall(place, output, re.MULTILINE)
    return {int(line) for line in found}


def lines_around(source: str, start: int, end: int) -> tuple[int, int]:
    line_end = source.find("\n", end)
    return source.rfind("\n", 0, start) + 1, len(source) if line_end < 0 else line_end


def find_mutants(source: str, path: str) -> list[Mutant]:
    mutants, seen = [], {}
    for rule, place in all_places(Code(source)):
        first, last = lines_around(source, place.start, place.end)
        result = source[first:place.start] + place.replacement + source[place.end:last]
        key = f"{path}|{rule}|{' '.join(result.split())}"
        seen[key] = seen.get(key, 0) + 1
        name = hashlib.sha1(f"{key}|{seen[key]}".encode()).hexdigest()[:8]
        line = source.count("\n", 0, place.start) + 1
        mutants.append(Mutant(name, path, line, rule, place.start, place.end, place.replacement))
    return mutants


def sources_of(root: pathlib.Path, paths: list[str]) -> dict[str, list[str]]:
    """The C++ sources of each given file or folder, without those that only run on a GPU."""
    found = {}
    for path in paths:
        here = root / path
        if not here.exists():
            raise SystemExit(f"{path}: not there")
        files = [here] if here.is_file() else [f for f in sorted(here.rglob("*.cpp")) if not NEEDS_GPU.search(str(f))]
        found[path] = [str(f.relative_to(root)) for f in files]
    return found


def draw(mutants: dict[str, list[Mutant]], seed: int) -> Iterator[tuple[str, Mutant]]:
    """An endless draw of distinct mutants: folders in turn, and within a folder each rule with equal probability,
    however often it applies."""
    chance = random.Random(seed)
    left = {}
    for folder, own in mutants.items():
        by_rule = left.setdefault(folder, {})
        for mutant in chance.sample(own, len(own)):
            by_rule.setdefault(mutant.rule, []).append(mutant)
    while any(left.values()):
        for folder, by_rule in left.items():
            if by_rule:
                rule = chance.choice(sorted(by_rule))
                yield folder, by_rule[rule].pop()
                if not by_rule[rule]:
                    del by_rule[rule]


def known_mutants(path: pathlib.Path = KNOWN) -> dict[str, str]:
    """Reasons by id: equivalent mutants, which no test can detect, marked by hand. A line is `id path, rule:
    reason`."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"([0-9a-f]{8}) (\S+), ([^:]+): (.+)", line)
        if not match:
            raise SystemExit(f"{path.name}:{number}: not `id path, rule: reason`")
        found[match[1]] = match[4]
    return found
