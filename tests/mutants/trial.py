"""One slip at a time: made in the copy, compiled, and shown to the tests until one notices it."""

import hashlib
import json
import pathlib
import re
import shutil
import tempfile
from dataclasses import dataclass

from tests.mutants.near import nearest_first
from tests.mutants.process import Outcome, run
from tests.mutants.programs import Build, Test
from tests.mutants.rules import PRESETS
from tests.mutants.slips import Slip
from tests.mutants.tree import Tree

SAYS_FAILURE = re.compile(rb": Failure\r?\n")  # googletest says so long before a program of many cases ends
BUILD_LIMIT_S = 3600
GUESSED_S = 60  # of a test that is not fast and was not run yet
BATCHES = (1, 2, 4)  # so many tests are linked at once, then always 8


@dataclass(frozen=True)
class Verdict:
    kind: str  # "noticed", "sometimes", "green" or "uncompiled"
    by: str = ""  # the test, and how it ended; or how many tests were tried in vain
    seconds: float = 0  # until it was noticed, builds not counted


class Memory:
    """What earlier runs have shown, in a file: times of tests, which noticed slips of a source, which pass without any."""

    def __init__(self, file: pathlib.Path, fingerprint: str):
        self.file = file
        known = json.loads(file.read_text()) if file.exists() else {}
        self.seconds: dict[str, float] = known.get("seconds", {})
        self.noticed: dict[str, dict[str, int]] = known.get("noticed", {})
        self.fixtures: dict[str, str] = known.get("fixtures", {})
        self.passing: set[str] = set(known.get("passing", [])) if known.get("fingerprint") == fingerprint else set()
        self.fingerprint = fingerprint

    def save(self) -> None:
        content = {"seconds": self.seconds, "noticed": self.noticed, "fixtures": self.fixtures,
                   "passing": sorted(self.passing), "fingerprint": self.fingerprint}
        aside = self.file.with_suffix(".new")
        aside.write_text(json.dumps(content, indent=1))
        aside.rename(self.file)


class Trials:
    def __init__(self, tree: Tree, preset: str, jobs: int, limit_s: float, without: set[str], say=print):
        self.tree, self.preset, self.jobs, self.limit_s, self.say = tree, preset, jobs, limit_s, say
        self.memory = Memory(tree.copy.parent / "memory.json", tree.fingerprint)
        self.builds: dict[str, Build] = {}
        self.unusable = set(without)  # and tests that fail without a slip too

    def build_for(self, rule: str) -> Build:
        preset = PRESETS.get(rule, self.preset)
        if preset not in self.builds:
            build = Build(self.tree.copy, preset, self.jobs)
            build.configure()
            self.builds[preset] = build
        return self.builds[preset]

    def try_slip(self, slip: Slip) -> Verdict:
        build, source = self.build_for(slip.rule), (self.tree.root / slip.path).read_text()
        self.tree.write(slip.path, slip.apply(source))
        try:
            compiled = self.ninja(build, [f"{self.tree.copy / slip.path}^"])
            if compiled.what != "passed":
                return Verdict("uncompiled", compiled.output[-2000:])
            return self.try_tests(build, slip, source)
        finally:
            self.tree.restore(slip.path)
            self.memory.save()

    def try_tests(self, build: Build, slip: Slip, source: str) -> Verdict:
        noticed = self.memory.noticed.setdefault(slip.path, {})
        seconds = {test.name: GUESSED_S for test in build.tests.values() if "fast" not in test.labels} | self.memory.seconds
        order = nearest_first(slip.path, build.tests_with(slip.path), noticed, seconds)
        order = [name for name in order if self.key(build, name) not in self.unusable]
        total, tried, sizes = 0.0, 0, list(BATCHES)
        while order and total < self.limit_s:
            size = sizes.pop(0) if sizes else 8
            batch, order = [build.tests[name] for name in order[:size]], order[size:]
            linked = self.ninja(build, sorted({program for test in batch for program in test.programs}))
            if linked.what != "passed":
                return Verdict("uncompiled", linked.output[-2000:])
            for test in batch:
                outcome = self.run_test(build, test)
                total += outcome.seconds
                tried += 1
                if outcome.what == "passed" or not self.passes_without(build, test, slip, source):
                    continue
                noticed[test.name] = noticed.get(test.name, 0) + 1
                if "e2e" in test.labels and self.run_again(build, test, slip, source).what == "passed":
                    return Verdict("sometimes", f"{test.name} {outcome.what}, not when run again", total)
                return Verdict("noticed", f"{test.name} {outcome.what}", total)
        left = f", {len(order)} not tried for want of time" if order else ""
        return Verdict("green", f"{tried} tests pass{left}", total)

    def key(self, build: Build, name: str) -> str:
        return name if build.preset == self.preset else f"{build.preset}/{name}"

    def run_test(self, build: Build, test: Test) -> Outcome:
        """Runs a test that is built, after what it needs."""
        for name in test.needs:
            for giver in build.tests.values():
                if name in giver.gives:
                    self.make_fixture(build, giver)
        key = self.key(build, test.name)
        known = self.memory.seconds.get(key)
        limit_s = test.limit_s if known is None else min(test.limit_s, 30 + 10 * known)
        outcome = self.execute(build, test, limit_s)
        if outcome.what == "passed":
            self.memory.seconds[key] = round(outcome.seconds, 2)
            self.memory.passing.add(key)
        return outcome

    def execute(self, build: Build, test: Test, limit_s: float) -> Outcome:
        temporary = pathlib.Path(tempfile.mkdtemp(prefix="mutants-"))
        try:
            return run(test.command, limit_s, cwd=test.folder, env=build.variables(test, temporary), stop_at=SAYS_FAILURE)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def passes_without(self, build: Build, test: Test, slip: Slip, source: str) -> bool:
        """Whether a test that failed passes without the slip; asked once for each state of the tree."""
        key = self.key(build, test.name)
        if key in self.memory.passing:
            return True
        self.tree.restore(slip.path)
        self.ninja(build, test.programs)
        passes = self.run_test(build, test).what == "passed"
        if not passes:
            self.say(f"{key} fails without any slip: not asked any more")
            self.unusable.add(key)
            self.tree.write(slip.path, slip.apply(source))
            self.ninja(build, test.programs)
        return passes

    def run_again(self, build: Build, test: Test, slip: Slip, source: str) -> Outcome:
        self.tree.write(slip.path, slip.apply(source))
        self.ninja(build, test.programs)
        return self.run_test(build, test)

    def make_fixture(self, build: Build, giver: Test) -> None:
        """What is made once for many tests is made again only when the scripts beside its own have changed."""
        folder = (build.tree / "tests" / giver.place).parent
        scripts = sorted(folder.rglob("*.py")) if giver.place.endswith(".py") else []
        state = hashlib.sha1(b"".join(f.read_bytes() for f in scripts)).hexdigest()
        key = self.key(build, giver.name)
        if self.memory.fixtures.get(key) == state:
            return
        self.say(f"{giver.name}: once")
        self.ninja(build, giver.programs)
        outcome = self.execute(build, giver, 4 * giver.limit_s)
        if outcome.what != "passed":
            raise SystemExit(f"{giver.name} {outcome.what}:\n{outcome.output[-4000:]}")
        self.memory.fixtures[key] = state
        self.memory.save()

    def ninja(self, build: Build, targets: list[str]) -> Outcome:
        if not targets:
            return Outcome("passed", 0, "")
        return run(["ninja", f"-j{self.jobs}", *targets], BUILD_LIMIT_S, cwd=build.folder, env=build.environment)
