"""Finds all mutants that no test can notice, because the code that they change makes no difference there, with one build.

Usage: python3 -m tests.mutants.undetectable server/scheduler core/jit/passes [--list]

Every place of every rule is built with code that records what the mutant would have changed there: a check that never
fails, half a condition that is always true, operands of `<` that are never equal. Then the tests run once.
"""

import argparse
import collections
import pathlib
import re
import signal
import sys
from dataclasses import dataclass, field

from tests.mutants.nearest_tests import nearest_first
from tests.mutants.run import ROOT
from tests.mutants.rules import COMPARISONS
from tests.mutants.mutants import Mutant, find_mutants, known_mutants, lines_with_errors, sources_of
from tests.mutants.tokens import Code
from tests.mutants.tree import Tree
from tests.mutants.trial import Trials

HEADER = pathlib.Path(__file__).parent / "difference.h"
MOST, REACHED, DIFFERS = 1 << 16, 1, 3  # of difference.h
REBUILDS = 8
DECLARES = re.compile(r";|^[\w:<>\s*&]+ = ")  # a condition that is more than an expression


@dataclass
class Source:
    """One file with recording code at each place."""
    path: str
    text: str
    mutants: dict[int, Mutant]  # by number
    dropped: set[int] = field(default_factory=set)  # without recording code, or not compiling with it

    def noted(self) -> str:
        code, edits = Code(self.text), []
        begins = {token.start: i for i, token in enumerate(code.tokens)}
        clamps = collections.defaultdict(list)
        for number, mutant in self.mutants.items():
            if number in self.dropped:
                continue
            if mutant.rule == "bound dropped":
                clamps[mutant.start].append(number)
            else:
                own = note_of(code, begins, number, mutant)
                self.dropped |= set() if own else {number}
                edits += own
        for start, numbers in clamps.items():
            own = note_of_clamp(code, begins[start], numbers)
            self.dropped |= set() if own else set(numbers)
            edits += own
        return f'#include "{HEADER}"\n#line 1\n' + edited(self.text, edits)


Edit = tuple[int, int, str, str]  # from, to, and the text before and after; a replacement is a text before an empty range


def note_of(code: Code, begins: dict[int, int], number: int, mutant: Mutant) -> list[Edit]:
    start, end = mutant.start, mutant.end
    if mutant.rule in COMPARISONS:
        return [(start, end, f"< ::tensord_mutant::Compare<::tensord_mutant::{COMPARISONS[mutant.rule]}, {number}>{{}} >", None)]
    if mutant.rule == "off by one":
        return [(end - 1, end, f"(::tensord_mutant::reach({number}), ", ")")]
    if mutant.rule == "first left out":
        return [(end - 2, end - 1, f"(::tensord_mutant::reach({number}), ", ")")]
    if mutant.rule in ("condition dropped", "choice dropped"):
        other = "false" if mutant.replacement.startswith("(true || ") else "true"
        return [(start, end, f"::tensord_mutant::see<{number}, {other}>(", ")")]
    if mutant.rule == "check dropped":
        return [(start, end, f"{{ ::tensord_mutant::Watch tensord_watch_{number}({number}); ", " }")]
    first = begins[start] + 1
    if code.is_word(first - 1, "if") and code.is_sign(first, "("):
        last = code.partner[first]
        if DECLARES.search(code.text(first + 1, last - 1)):  # the mutant does not compile either
            return []
        return [(code.tokens[first].end, code.tokens[last].start, f"::tensord_mutant::see<{number}, true>(", ")")]
    if mutant.rule == "lock dropped":
        return [(start, end, f"::tensord_mutant::reach({number}); ", "")]
    if code.text(first - 1, first - 1) in ("fsync", "fdatasync") and not code.begins_statement(first - 1):
        return [(start, end, f"(::tensord_mutant::reach({number}), ", ")")]
    return [(start, end, f"{{ ::tensord_mutant::reach({number}); ", " }")]


def note_of_clamp(code: Code, i: int, numbers: list[int]) -> list[Edit]:
    """`std::min` from token i on; the first of two mutants keeps the first operand."""
    if len(numbers) != 2:
        return []
    is_min = "true" if code.is_word(i + 2, "min") else "false"
    return [(code.tokens[i].start, code.tokens[i + 2].end,
             f"::tensord_mutant::Clamp<{is_min}, {numbers[0]}, {numbers[1]}>::of", None)]


def edited(text: str, edits: list[Edit]) -> str:
    """Pairs nest: of those that start at one place the longest comes first, of those that end there the shortest."""
    pieces = []
    for order, (start, end, before, behind) in enumerate(edits):
        if behind is None:
            pieces.append((start, 1, -end, order, end, before))
        else:
            pieces.append((start, 1, -end, order, start, before))
            pieces.append((end, 0, -start, -order, end, behind))
    out, at = [], 0
    for start, _, _, _, end, new in sorted(pieces):
        out += [text[at:start], new]
        at = max(at, end, start)
    return "".join(out) + text[at:]


def build_all(trials: Trials, sources: list[Source]) -> None:
    """Compiles every source; recording code that does not compile is left out."""
    build = trials.build_for("")
    for source in sources:
        trials.tree.write(source.path, source.noted())
    for attempt in range(REBUILDS):
        outcome = trials.ninja(build, ["-k0", *(f"{trials.tree.copy / s.path}^" for s in sources)])
        if outcome.what == "passed":
            return
        failed = [s for s in sources if f" -c {trials.tree.copy / s.path}\n" in outcome.output]
        if not failed:
            raise SystemExit(f"the build fails:\n{outcome.output[-4000:]}")
        for source in failed:
            lines = lines_with_errors(outcome.output, source.path)
            before = len(source.dropped)
            source.dropped |= {n for n, s in source.mutants.items()
                               if lines & s.lines(source.text)}
            if len(source.dropped) == before or attempt >= REBUILDS - 3:
                source.dropped = set(source.mutants)
            trials.tree.write(source.path, source.noted())
        print(f"again without what did not compile: {', '.join(s.path for s in failed)}", flush=True)


def tests_for(trials: Trials, paths: list[str]) -> list[str]:
    """All tests that may be tried for one of the sources, the quick ones first."""
    build, names = trials.build_for(""), set()
    for path in paths:
        names |= set(nearest_first(path, build.tests_with(path), {}, {}))
    names = {name for name in names if "[" not in name and name not in trials.without}
    is_e2e = lambda name: "e2e" in build.tests[name].labels  # noqa: E731
    return sorted(names, key=lambda name: (is_e2e(name), trials.memory.seconds.get(name, 60), name))


def run_tests(trials: Trials, names: list[str], marks: pathlib.Path) -> None:
    build = trials.build_for("")
    for at in range(0, len(names), 8):
        programs = {p for name in names[at:at + 8] for p in build.tests[name].programs}
        outcome = trials.ninja(build, sorted(programs))
        if outcome.what != "passed":
            raise SystemExit(f"the build fails:\n{outcome.output[-4000:]}")
        for name in names[at:at + 8]:
            trials.make_fixtures(build, build.tests[name])
            test = build.tests[name]
            outcome = trials.execute(build, test, 3 * test.limit_s, {"TENSORD_DIFFERENCES": str(marks)}, stop_at=None)
            print(f"{name} {outcome.what}, {outcome.seconds:.1f} s", flush=True)
            trials.memory.save()


def report(sources: list[Source], marks: bytes, room_of: dict[str, str], is_list: bool) -> int:
    known, rows = known_mutants(), {}
    for source in sources:
        for number, mutant in source.mutants.items():
            kind = ("unknown" if number in source.dropped else "marked" if mutant.id in known else
                    "differs" if marks[number] & DIFFERS == DIFFERS else "reached" if marks[number] & REACHED else "unreached")
            for name in (room_of[source.path], "all"):
                rows.setdefault(name, collections.Counter())[kind] += 1
            if is_list and kind in ("reached", "unreached"):
                print(f"{mutant.id} {kind:<9} {mutant.path}:{mutant.line}  {mutant.rule}: "
                      f"{' '.join(source.text[mutant.start:mutant.end].split())[:100]}")
    print(f"{'folder':<24} makes a difference, only reached, unreached | not looked at, marked by hand")
    for name, row in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        tried = row["differs"] + row["reached"] + row["unreached"]
        print(f"{name:<24} {row['differs']:6} {row['reached']:6} {row['unreached']:6} | {row['unknown']:6} {row['marked']:6}"
              f"   {100 * row['differs'] / max(1, tried):.0f} %")
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="sources or folders, from the root")
    parser.add_argument("--list", action="store_true", help="each mutant that makes no difference, by its line")
    parser.add_argument("--last", action="store_true", help="build and run nothing, report the last run")
    parser.add_argument("--jobs", type=int, default=1, help="compilations at once (1)")
    parser.add_argument("--without", action="append", default=[], metavar="TEST", help="do not run this test; may be repeated")
    parser.add_argument("--only", metavar="EXPRESSION", help="run tests whose names fit only")
    parser.add_argument("--preset", default="dev", help="of CMakePresets.json (dev)")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    folder = options.root / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()  # may be a link to another checkout: build folders contain their absolute path
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = Tree(options.root, folder)
    if not options.last:
        tree.sync()
    found = sources_of(options.root, options.paths)
    room_of = {file: path for path, files in reversed(found.items()) for file in files}
    sources, number = [], 0
    for path in room_of:
        text = (options.root / path).read_text()
        mutants = find_mutants(text, path)
        sources.append(Source(path, text, {number + i + 1: mutant for i, mutant in enumerate(mutants)}))
        number += len(mutants)
    if number >= MOST:
        raise SystemExit(f"{number} mutants are too many for difference.h")
    trials = Trials(tree, options.preset, options.jobs, 0, set(options.without))
    marks = folder / "differences"
    if options.last:
        return report(sources, marks.read_bytes(), room_of, options.list)
    marks.write_bytes(bytes(MOST))
    try:
        build_all(trials, sources)
        names = [n for n in tests_for(trials, list(room_of)) if not options.only or re.search(options.only, n)]
        run_tests(trials, names, marks)
    except KeyboardInterrupt:
        pass
    finally:
        for source in sources:
            tree.restore(source.path)
        trials.memory.save()
        trials.close()
    return report(sources, marks.read_bytes(), room_of, options.list)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
