"""Builds many mutants at once in the copy, then activates one at a time and runs tests until one fails."""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.nearest_tests import nearest_first
from tests.mutants.process import Outcome, Runners
from tests.mutants.programs import Build, Test
from tests.mutants.rules import PRESETS
from tests.mutants.mutants import Mutant, lines_with_errors, with_gates, without_lock
from tests.mutants.tree import Tree

SAYS_FAILURE = re.compile(rb": Failure\r?\n")  # googletest reports a failure long before a program of many cases ends
BUILD_LIMIT_S = 3600
GUESSED_S = 60  # for slow tests that have not run yet
MOST_SLIPS = 4096  # kMax of mutant.h
SIZES = (1, 2, 4)  # the numbers of tests linked at once, then always 8


@dataclass(frozen=True)
class Verdict:
    kind: str  # "noticed", "sometimes", "green" or "uncompiled"
    by: str = ""  # the test, and how it ended; or the number of tests tried in vain
    seconds: float = 0  # until it was detected, without builds


class Memory:
    """Results of earlier runs, stored in a file: times of tests, which tests detected mutants of a source, and their
    fixtures."""

    def __init__(self, file: pathlib.Path):
        self.file = file
        known = json.loads(file.read_text()) if file.exists() else {}
        self.seconds: dict[str, float] = known.get("seconds", {})
        self.noticed: dict[str, dict[str, int]] = known.get("noticed", {})
        self.fixtures: dict[str, str] = known.get("fixtures", {})

    def save(self) -> None:
        content = {"seconds": self.seconds, "noticed": self.noticed, "fixtures": self.fixtures}
        aside = self.file.with_suffix(".new")
        aside.write_text(json.dumps(content, indent=1))
        aside.rename(self.file)


class Trials:
    """Thread-safe except try_together(). Must be closed."""

    def __init__(self, tree: Tree, preset: str, jobs: int, limit_s: float, without: set[str], say=print, at_once: int = 1):
        self.tree, self.preset, self.jobs, self.limit_s, self.say = tree, preset, jobs, limit_s, say
        self.memory = Memory(tree.copy.parent / "memory.json")
        self.builds: dict[str, Build] = {}
        self.without = without
        self.at_once = at_once
        self.runners = Runners(at_once)
        self.builds_lock = threading.RLock()  # one thread at a time builds, or makes fixtures

    def close(self) -> None:
        self.runners.close()

    def build_for(self, rule: str) -> Build:
        preset = PRESETS.get(rule, self.preset)
        if preset not in self.builds:
            build = Build(self.tree.copy, preset, self.jobs)
            if build.configure():  # earlier fixtures were in the build folder
                for name in build.tests:
                    self.memory.fixtures.pop(self.key(build, name), None)
            self.builds[preset] = build
        return self.builds[preset]

    def try_together(self, mutants: list[Mutant]) -> Iterator[tuple[Mutant, Verdict]]:
        """Tries mutants that are built into the same programs; each is activated separately."""
        try:
            left = []
            for mutant in mutants:
                verdict = self.seen_by_clang(mutant) if mutant.rule == "lock dropped" else None
                if verdict:
                    yield mutant, verdict
                else:
                    left.append(mutant)
            mutants = left
            for build in dict.fromkeys(self.build_for(mutant.rule) for mutant in mutants):
                yield from Batch(self, build, [mutant for mutant in mutants if self.build_for(mutant.rule) is build]).verdicts()
        finally:
            for mutant in mutants:
                self.tree.restore(mutant.path)
            self.memory.save()

    def seen_by_clang(self, mutant: Mutant) -> Verdict | None:
        """Clang's thread safety analysis detects access to guarded members without their lock, without a build."""
        script = self.tree.copy / "tests" / "thread_safety.py"
        if not script.exists():
            return None
        command = [sys.executable, str(script), str(self.build_for("").folder), mutant.path]
        if self.runners.run(command, BUILD_LIMIT_S).what != "passed":
            return None
        self.tree.write(mutant.path, without_lock(self.tree.source(mutant.path), mutant))
        outcome = self.runners.run(command, BUILD_LIMIT_S)
        self.tree.restore(mutant.path)
        return Verdict("noticed", "thread_safety failed", outcome.seconds) if "-Wthread-safety" in outcome.output else None

    def key(self, build: Build, name: str) -> str:
        return name if build.preset == self.preset else f"{build.preset}/{name}"

    def order(self, build: Build, mutant: Mutant) -> list[str]:
        seconds = {test.name: GUESSED_S for test in build.tests.values() if "fast" not in test.labels} | self.memory.seconds
        noticed = self.memory.noticed.setdefault(mutant.path, {})
        order = nearest_first(mutant.path, build.tests_with(mutant.path), noticed, seconds)
        return [name for name in order if name not in self.without]

    def execute(self, build: Build, test: Test, limit_s: float, variables: dict[str, str], stop_at=SAYS_FAILURE) -> Outcome:
        temporary = pathlib.Path(tempfile.mkdtemp(prefix="mutants-"))
        try:
            environment = {**build.variables(test, temporary), **variables}
            return self.runners.run(test.command, limit_s, cwd=test.folder, env=environment, stop_at=stop_at)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def make_fixtures(self, build: Build, test: Test) -> None:
        with self.builds_lock:
            for giver in build.tests.values():
                if set(giver.gives) & set(test.needs):
                    self.make_fixture(build, giver)

    def make_fixture(self, build: Build, giver: Test) -> None:
        """Shared fixtures are made again only if the scripts in their folder have changed."""
        folder = (build.tree / "tests" / giver.place).parent
        scripts = sorted(folder.rglob("*.py")) if giver.place.endswith(".py") else []
        state = hashlib.sha1(b"".join(f.read_bytes() for f in scripts)).hexdigest()
        key = self.key(build, giver.name)
        if self.memory.fixtures.get(key) == state:
            return
        self.say(f"{giver.name}: once", flush=True)
        self.ninja(build, giver.programs)
        outcome = self.execute(build, giver, 4 * giver.limit_s, {})
        if outcome.what != "passed":
            raise SystemExit(f"{giver.name} {outcome.what}:\n{outcome.output[-4000:]}")
        self.memory.fixtures[key] = state

    def ninja(self, build: Build, targets: list[str]) -> Outcome:
        if not targets:
            return Outcome("passed", 0, "")
        with self.builds_lock:
            command = ["ninja", f"-j{self.jobs}", *targets]
            return self.runners.run(command, BUILD_LIMIT_S, cwd=build.folder, env=build.environment)


class Batch:
    """Mutants in one build. Every test runs once without active mutants, which shows which ones it reaches."""

    def __init__(self, trials: Trials, build: Build, mutants: list[Mutant]):
        self.trials, self.build = trials, build
        self.files: dict[str, dict[int, Mutant]] = {}  # the mutants of each file by number
        for number, mutant in enumerate(mutants, 1):
            self.files.setdefault(mutant.path, {})[number] = mutant
        self.reached: dict[str, bytes] = {}  # by test; empty if it fails without a mutant
        self.locks: dict[str, threading.Lock] = {}  # by test
        self.linked: set[str] = set()

    def verdicts(self) -> Iterator[tuple[Mutant, Verdict]]:
        for path, mutants in self.files.items():
            self.gate(path, mutants)
        self.trials.ninja(self.build, ["-k0", *map(self.object_of, self.files)])  # all at once; failures are handled below
        for path, mutants in self.files.items():
            for number, output in self.without_uncompiled(path, mutants).items():
                yield mutants.pop(number), Verdict("uncompiled", output[-2000:])
        left = sorted(item for mutants in self.files.values() for item in mutants.items())
        threads = concurrent.futures.ThreadPoolExecutor(self.trials.at_once)
        try:
            mutants = {threads.submit(self.try_tests, number, mutant): mutant for number, mutant in left}
            for done in concurrent.futures.as_completed(mutants):
                yield mutants[done], done.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def gate(self, path: str, mutants: dict[int, Mutant]) -> None:
        self.trials.tree.write(path, with_gates(self.trials.tree.source(path), mutants))

    def object_of(self, path: str) -> str:
        return f"{self.build.tree / path}^"

    def without_uncompiled(self, path: str, mutants: dict[int, Mutant]) -> dict[int, str]:
        """Removes mutants that do not compile from a source: those in lines with errors, or else one after the
        other."""
        left, failed, source = dict(mutants), {}, self.trials.tree.source(path)
        while True:
            outcome = self.trials.ninja(self.build, [self.object_of(path)])
            if outcome.what == "passed":
                return failed
            if not left:
                raise SystemExit(f"the build fails:\n{outcome.output[-4000:]}")
            lines = lines_with_errors(outcome.output, path)
            wrong = [number for number, mutant in left.items() if lines & mutant.lines(source)] or [max(left)]
            for number in wrong:
                del left[number]
                failed[number] = outcome.output
            self.gate(path, left)

    def try_tests(self, number: int, mutant: Mutant) -> Verdict:
        order, total, tried, linked, sizes = self.trials.order(self.build, mutant), 0.0, 0, 0, list(SIZES)
        while order and total < self.trials.limit_s:
            size = sizes.pop(0) if sizes else 8
            tests, order = [self.build.tests[name] for name in order[:size]], order[size:]
            self.link(tests)
            for test in tests:
                linked += 1
                if not self.comes_by(test, number):
                    continue
                outcome = self.run_test(test, number)
                total += outcome.seconds
                tried += 1
                if outcome.what != "passed":
                    return self.noticed(test, number, mutant, outcome, total)
        left = f", {len(order)} not tried for want of time" if order else ""
        return Verdict("green", f"{tried} of {linked} tests come by{left}", total)

    def noticed(self, test: Test, number: int, mutant: Mutant, outcome: Outcome, total: float) -> Verdict:
        counts = self.trials.memory.noticed[mutant.path]
        counts[test.name] = counts.get(test.name, 0) + 1
        if "e2e" in test.labels and self.run_test(test, number).what == "passed":
            return Verdict("sometimes", f"{test.name} {outcome.what}, not when run again", total)
        return Verdict("noticed", f"{test.name} {outcome.what}", total)

    def link(self, tests: list[Test]) -> None:
        with self.trials.builds_lock:
            programs = {program for test in tests for program in test.programs} - self.linked
            outcome = self.trials.ninja(self.build, sorted(programs))
            if outcome.what != "passed":
                raise SystemExit(f"the build fails:\n{outcome.output[-4000:]}")
            self.linked |= programs

    def comes_by(self, test: Test, number: int) -> bool:
        """Whether a test reaches a mutant's code. A test that fails without mutants detects nothing."""
        with self.locks.setdefault(test.name, threading.Lock()):
            if test.name not in self.reached:
                self.reached[test.name] = self.run_without(test)
        reached = self.reached[test.name]
        return bool(reached) and reached[number] != 0

    def run_without(self, test: Test) -> bytes:
        """Runs a test without active mutants: a byte for each mutant that it reaches, or nothing if it fails."""
        self.trials.make_fixtures(self.build, test)
        with tempfile.NamedTemporaryFile(prefix="mutants-") as file:
            file.write(bytes(MOST_SLIPS))
            file.flush()
            outcome = self.run_test(test, 0, {"TENSORD_SLIP_REACHED": file.name})
            if outcome.what == "passed":
                self.trials.memory.seconds[self.trials.key(self.build, test.name)] = round(outcome.seconds, 2)
                return pathlib.Path(file.name).read_bytes()
        self.trials.say(f"{test.name} {outcome.what} without any mutant: not asked\n{outcome.output[-2000:]}", flush=True)
        return b""

    def run_test(self, test: Test, number: int, variables: dict[str, str] | None = None) -> Outcome:
        known = self.trials.memory.seconds.get(self.trials.key(self.build, test.name))
        limit_s = test.limit_s if number == 0 or known is None else min(test.limit_s, 30 + 10 * known)
        return self.trials.execute(self.build, test, limit_s, {"TENSORD_SLIP": str(number), **(variables or {})})
