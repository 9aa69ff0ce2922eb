"""Asks ctest and ninja for the tests, the programs that they need, and the sources of those."""

import dataclasses
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests import compile_commands

ADDED = re.compile(r'^add_test\(\[=\[(.+?)\]=\] (.*)\)$', re.MULTILINE)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
SUITE = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\((\w+),", re.MULTILINE)
# Builds with presets of these names need this, so that only our own errors are reported.
ENVIRONMENTS = {"tsan": {"TSAN_OPTIONS": "suppressions={tree}/tests/stress/thread_sanitizer.supp:"
                                         "ignore_noninstrumented_modules=1:halt_on_error=1"}}


# Tests over a folder of files, one for each script of a folder here: with a single file they are faster.
FOLDER_VARIABLE, FOLDER_SCRIPTS, FOLDER_FILTER = "TENSORD_OP_CASES", "ops/cases", "--gtest_filter=-*EveryOperatorHasARow"


@dataclass
class Test:
    name: str
    command: list[str]
    folder: str
    limit_s: float
    environment: dict[str, str]
    labels: list[str]
    needs: list[str]  # fixtures
    gives: list[str]
    place: str = ""  # its source, relative to tests/
    programs: list[str] = field(default_factory=list)  # targets of ninja


def commands_of(build: pathlib.Path) -> dict[str, list[str]]:
    """ctest omits commands of programs that are not built, but its files have them."""
    found = {}
    for file in build.rglob("CTestTestfile.cmake"):
        for name, arguments in ADDED.findall(file.read_text()):
            found[name] = [re.sub(r"\\(.)", r"\1", word) for word in QUOTED.findall(arguments)]
    return found


def edges_of(file: pathlib.Path) -> dict[str, list[str]]:
    """The inputs of each output, parsed from `build.ninja`; querying ninja for each program takes minutes."""
    edges = {}
    for line in file.read_text().replace("$\n", "").split("\n"):
        if line.startswith("build "):
            outputs, inputs = re.split(r"(?<!\$): ", line.removeprefix("build "), maxsplit=1)
            made_of = [word for word in inputs.split(" || ")[0].split()[1:] if word != "|"]
            for output in outputs.split():
                edges.setdefault(output, []).extend(made_of)
    return edges


def inputs_of(program: str, edges: dict[str, list[str]]) -> set[str]:
    """All inputs of a program, transitively."""
    found, waiting = set(), [program]
    while waiting:
        for name in edges.get(waiting.pop(), []):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


class Build:
    """One preset's build folder in the copy of the tree."""

    def __init__(self, tree: pathlib.Path, preset: str, jobs: int):
        self.tree, self.preset, self.jobs = tree, preset, jobs
        self.folder = tree / "build" / preset
        # Compiler caches may share entries with the user's own tree.
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
        self.tests: dict[str, Test] = {}
        self.edges: dict[str, list[str]] = {}
        self.inputs: dict[str, set[str]] = {}

    def configure(self) -> bool:
        """Returns whether the build folder is new."""
        is_new = not (self.folder / "build.ninja").exists()
        if is_new:
            done = subprocess.run(["cmake", "--preset", self.preset], cwd=self.tree, env=self.environment,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"cmake fails:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        else:  # sources may have been added or removed
            subprocess.run(["ninja", "build.ninja"], cwd=self.folder, env=self.environment, capture_output=True, check=True)
        self.tests = self.read_tests()
        return is_new

    def read_tests(self) -> dict[str, Test]:
        listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=self.folder, capture_output=True, text=True, check=True)
        commands, targets = commands_of(self.folder), self.targets()
        places = {f.stem: str(f.relative_to(self.tree / "tests")) for f in (self.tree / "tests").rglob("*_test.cpp")}
        tests = {}
        for entry in json.loads(listed.stdout)["tests"]:
            properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
            command = commands.get(entry["name"])
            if not command or properties.get("DISABLED"):
                continue
            variables = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
            test = Test(entry["name"], command, properties.get("WORKING_DIRECTORY", str(self.folder)),
                        float(properties.get("TIMEOUT", 300)), variables, properties.get("LABELS", []),
                        properties.get("FIXTURES_REQUIRED", []), properties.get("FIXTURES_SETUP", []))
            test.place = self.place_of(test.name, command, places)
            words = [w.removeprefix(f"{self.folder}/") for word in [*command, *variables.values()] for w in word.split(":")]
            modules = [t for t in targets if t.endswith(".so") and any(t.startswith(f"{word}/") for word in words)]
            test.programs = [t for t in words if t in targets] + modules
            if test.programs:  # they load these by themselves
                test.programs += [t for t in targets if t.startswith("lib/")]
            for piece in [*self.pieces_of(test), *self.files_of(test), test]:
                tests[piece.name] = piece
        return tests

    def pieces_of(self, test: Test) -> Iterator[Test]:
        """The same test with one file at a time."""
        whole = test.environment.get(FOLDER_VARIABLE)
        counts_all = "device" in test.name  # it checks the number of operators
        if whole is None or len(test.environment) > 1 or counts_all:
            return
        for script in sorted((self.tree / "tests" / FOLDER_SCRIPTS).glob("[a-z]*.py")):
            folder = self.folder / "mutants" / script.stem
            folder.mkdir(parents=True, exist_ok=True)
            link = folder / f"{script.stem}.pt"
            if not link.is_symlink():
                link.symlink_to(pathlib.Path(whole) / link.name)
            yield dataclasses.replace(test, name=f"{test.name}[{script.stem}]", command=[*test.command, FOLDER_FILTER],
                                      environment={FOLDER_VARIABLE: str(folder)}, place=f"{FOLDER_SCRIPTS}/{script.name}")

    def files_of(self, test: Test) -> Iterator[Test]:
        """A program of a folder of tests, with the suites of one file at a time."""
        if len(test.command) != 2 or not test.command[1].startswith("--gtest_filter=-"):
            return
        separate = set(test.command[1].removeprefix("--gtest_filter=-").split(":"))
        folder = f"{self.tree}/tests/"
        for source in sorted(path for path in self.sources_of(test.programs[0]) if path.startswith(folder) and path.endswith("_test.cpp")):
            suites = {suite for suite in SUITE.findall(pathlib.Path(source).read_text()) if f"{suite}.*" not in separate}
            if suites:
                patterns = ":".join(f"{suite}.*:*/{suite}.*" for suite in sorted(suites))
                yield dataclasses.replace(test, name=f"{test.name}[{pathlib.PurePath(source).stem}]", place=source.removeprefix(folder),
                                          command=[test.command[0], f"--gtest_filter={patterns}"])

    def targets(self) -> set[str]:
        """Programs, and modules that a test finds through its PYTHONPATH."""
        listed = subprocess.run(["ninja", "-t", "targets", "all"], cwd=self.folder, capture_output=True, text=True, check=True)
        return {line.split(": ")[0] for line in listed.stdout.splitlines() if re.search(r": (CXX|C)_(EXECUTABLE|MODULE_LIBRARY)_LINKER", line)}

    def place_of(self, name: str, command: list[str], places: dict[str, str]) -> str:
        """The source of a test, relative to tests/, or its folder relative to the root."""
        for word in command:
            if word.startswith(f"{self.tree}/") and not word.startswith(f"{self.tree}/build/"):
                return word.removeprefix(f"{self.tree}/").removeprefix("tests/")
            if re.fullmatch(r"tests(\.\w+)+", word):
                return word.replace(".", "/").removeprefix("tests/") + ".py"
        return places.get(name, places.get(pathlib.PurePath(command[0]).name, command[0]))

    def sources_of(self, program: str) -> set[str]:
        """All sources of a program, including those compiled together as a unit."""
        if program not in self.inputs:
            self.edges = self.edges or edges_of(self.folder / "build.ninja")
            found = inputs_of(program, self.edges)
            together = [compile_commands.members(str(self.folder / name)) for name in found if name.endswith("_cxx.cxx")]
            self.inputs[program] = found.union(*together)
        return self.inputs[program]

    def has(self, program: str, path: str) -> bool:
        """Whether a program is built with a source."""
        return str(self.tree / path) in self.sources_of(program)

    def tests_with(self, path: str) -> dict[str, str]:
        """Names and places of the tests whose programs contain a source."""
        return {t.name: t.place for t in self.tests.values() if any(self.has(p, path) for p in t.programs)}

    def variables(self, test: Test, temporary: pathlib.Path) -> dict[str, str]:
        own = {key: value.format(tree=self.tree) for key, value in ENVIRONMENTS.get(self.preset, {}).items()}
        # Waiting threads do not spin, since others may build or test on the same cores. Stop at the first failure.
        return {**os.environ, "TMPDIR": str(temporary), "OMP_WAIT_POLICY": "passive", "PYTEST_ADDOPTS": "-x", **own, **test.environment}
