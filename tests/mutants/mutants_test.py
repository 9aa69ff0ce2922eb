"""The rules on small pieces of code, and the whole tool on a project of one source and one test."""

import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from tests.mutants import run, undetectable
from tests.mutants.nearest_tests import nearest_first
from tests.mutants.process import Runners
from tests.mutants.process import run as run_program
from tests.mutants.rules import NAMES
from tests.mutants.mutants import KNOWN, draw, find_mutants, known_mutants, with_gates
from tests.mutants.tree import Tree
from tests.mutants.trial import Trials

PROJECT = {
    "CMakePresets.json": """{"version": 3, "configurePresets": [
        {"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}]}""",
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
add_library(tiny STATIC src/tiny.cpp)
add_executable(tiny_test tests/tiny_test.cpp)
target_link_libraries(tiny_test PRIVATE tiny)
enable_testing()
add_test(NAME tiny_test COMMAND tiny_test)
set_tests_properties(tiny_test PROPERTIES TIMEOUT 5)
""",
    "src/tiny.cpp": """int at_most(int x, int limit) {
  if (x > limit) return limit;
  return x;
}
int count_down(int n) {
  for (;;) {
    if (n <= 0) break;
    --n;
    if (n == -1000000) n = 1000000;
  }
  return n;
}
int first(const int* begin) {
  if (const int* found = begin) return *found;
  return 0;
}
""",
    "tests/tiny_test.cpp": """int at_most(int x, int limit);
int count_down(int n);
int main() { return at_most(3, 2) == 2 && at_most(1, 2) == 1 && count_down(3) == 0 ? 0 : 1; }
""",
}

GATES = """#include <algorithm>
#include <mutex>
#include <shared_mutex>
std::mutex mutex;
std::shared_mutex shared;
void check(bool);
long f(unsigned a, long b) {
  const std::lock_guard lock(mutex);
  const std::shared_lock other(shared);
  check(b != 0);
  if (a == 1) throw 1;
  for (int i = 0; i < b; ++i) check(a > 2 && b >= 3);
  if (b > 7) return 7;
  return b <= 4 || a + 1 ? std::min<long>(a, b) : b - 1;
}
"""


def results(source: str, rule: str) -> list[str]:
    """The first line that each mutant of a rule changes in a source."""
    return [mutant.apply(source).splitlines()[mutant.line - 1].strip() for mutant in find_mutants(source, "a.cpp") if mutant.rule == rule]


class Rules(unittest.TestCase):
    def test_only_code_is_touched(self):
        source = '#define A(x) if (x < 1) return;\n// if (a < b) return;\nconst char* a = "a < b"; /* a && b */ auto b = R"(a < b)";\n'
        self.assertEqual(find_mutants(source, "a.cpp"), [])
        templates = "template <class T>\nstd::vector<T> f(T&& x, std::map<int, T>& y);\n"
        self.assertEqual(find_mutants(templates, "a.cpp"), [])
        self.assertEqual(find_mutants("static_assert(kA < kB && kB > 1);", "a.cpp"), [])

    def test_checks_and_guards(self):
        self.assertEqual(results("void f() { check(x, 1); }", "check dropped"), ["void f() { { if (false) check(x, 1); } }"])
        self.assertEqual(results("void f() { check_internal(x); }", "check dropped"), [])
        self.assertEqual(results("void check(bool x);", "check dropped"), [])
        self.assertEqual(results("if (a) return;", "guard dropped"), ["if (false && (a))   return;"])
        self.assertEqual(results("if (a) [[unlikely]]\n  fail(1);", "error ignored"), ["if (false && (a)) [[unlikely]]  fail(1);"])
        self.assertEqual(results("if (a) { throw 1; }", "error ignored"), ["if (false && (a))  { throw 1; }"])

    def test_operands(self):
        self.assertEqual(results("return a && f(b, c) < 2;", "condition dropped"),
                         ["return (true || (a)) && f(b, c) < 2;", "return a && (true || (f(b, c) < 2));"])
        self.assertEqual(results("if (!a || (b && c)) x();", "condition dropped")[:2],
                         ["if ((false && (!a)) || (b && c)) x();", "if (!a || (false && ((b && c)))) x();"])
        self.assertEqual(results("x = i < 0 && j ? i + n : i;", "choice dropped"), ["x = (false && (i < 0 && j)) ? i + n : i;"])
        self.assertEqual(results("x *= a ? b : c;", "choice dropped"), ["x *= (false && (a)) ? b : c;"])
        self.assertEqual(results("x = std::min<int64_t>(f(a, b), c);", "bound dropped"),
                         ["x = int64_t(f(a, b));", "x = int64_t(c);"])

    def test_bounds(self):
        self.assertEqual(results("for (int64_t i = 0; i < n; ++i) {}", "<= for <"), ["for (int64_t i = 0; i <= n; ++i) {}"])
        self.assertEqual(results("for (size_t i = 0; i < n; ++i) {}", "first left out"), ["for (size_t i = 1; i < n; ++i) {}"])
        self.assertEqual(results("x = n - 1;", "off by one"), ["x = n - 0;"])

    def test_what_only_time_or_disks_show(self):
        self.assertEqual(results("{ state_->changed.notify_all(); }", "wake-up dropped"),
                         ["{ { if (false) state_->changed.notify_all(); } }"])
        self.assertEqual(results("{ const std::lock_guard lock(a->mutex); }", "lock dropped"), ["{ static_cast<void>(a->mutex); }"])
        self.assertEqual(results("{ MutexLock lock(mutex_); }", "lock dropped"), ["{ static_cast<void>(mutex_); }"])
        self.assertEqual(results("{ x.storage()->bump_version(); }", "version bump dropped"),
                         ["{ { if (false) x.storage()->bump_version(); } }"])
        self.assertEqual(results("if (a) b->bump_version();", "version bump dropped"), ["if (a) { if (false) b->bump_version(); }"])
        self.assertEqual(results("if (fsync(file) != 0) fail(1);", "fsync dropped"), ["if (0 != 0) fail(1);"])

    def test_one_program_has_them_all(self):
        left = find_mutants(GATES, "a.cpp")
        self.assertEqual({mutant.rule for mutant in left} | {"wake-up dropped", "version bump dropped", "fsync dropped"},
                         set(NAMES))
        for batch in run.batches(iter([("a", mutant) for mutant in left]), len(left)):
            source = with_gates(GATES, {7 + i: mutant for i, (_, mutant) in enumerate(batch)})
            done = subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc++", "-"],
                                  input=source, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr + source)

    def test_one_program_notes_them_all(self):
        mutants = dict(enumerate(find_mutants(GATES, "a.cpp"), 1))
        noted = undetectable.Source("a.cpp", GATES, mutants).noted()
        for number in mutants:
            self.assertRegex(noted, rf"[<(]{number}[,)]|, {number}[,>]")
        done = subprocess.run(["c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc++", "-"],
                              input=noted, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr + noted)

    def test_ids_do_not_depend_on_the_line(self):
        source = "void f() {\n  if (a) return;\n  if (a) return;\n}\n"
        before = [mutant.id for mutant in find_mutants(source, "a.cpp")]
        self.assertEqual(len(set(before)), 2)
        self.assertEqual([mutant.id for mutant in find_mutants("\n\n" + source, "a.cpp")], before)


class Drawing(unittest.TestCase):
    def test_every_mutant_once_and_the_same_for_a_seed(self):
        mutants = {name: find_mutants("if (a && b) return; x = n + 1;" * 3, name) for name in ("a.cpp", "b.cpp")}
        drawn = [mutant.id for _, mutant in draw(mutants, 1)]
        self.assertEqual(sorted(drawn), sorted(mutant.id for own in mutants.values() for mutant in own))
        self.assertEqual(drawn, [mutant.id for _, mutant in draw(mutants, 1)])
        self.assertNotEqual(drawn, [mutant.id for _, mutant in draw(mutants, 2)])

    def test_the_nearest_first(self):
        places = {"a": "jit/matrix_test.cpp", "b": "jit/prepack_test.cpp", "c": "nn/layers_test.cpp", "d": "e2e/models/run_command_test.py"}
        self.assertEqual(nearest_first("core/jit/runtime/prepack.cpp", places, {}, {}), ["b", "a", "d"])
        self.assertEqual(nearest_first("core/jit/runtime/prepack.cpp", places, {"a": 1}, {}), ["a", "b", "d"])

    def test_what_is_marked_by_hand_is_there(self):
        paths = set(re.findall(r"^[0-9a-f]{8} (\S+),", KNOWN.read_text(), re.MULTILINE))
        ids = {mutant.id for path in paths if (run.ROOT / path).exists() for mutant in find_mutants((run.ROOT / path).read_text(), path)}
        self.assertEqual(sorted(set(known_mutants()) - ids), [], "no such mutants any more: take them out of equivalent.txt")


class Programs(unittest.TestCase):
    def test_ends(self):
        def outcome(code, limit_s=60):
            return run_program([sys.executable, "-c", code], limit_s).what

        self.assertEqual(outcome("pass"), "passed")
        self.assertEqual(outcome("exit(1)"), "failed")
        self.assertEqual(outcome("import os; os.abort()"), "crashed")
        self.assertEqual(outcome("import time; time.sleep(600)", 1), "hung")
        self.assertEqual(outcome("import os, time; os.close(1); os.close(2); time.sleep(600)", 1), "hung")
        self.assertEqual(outcome("import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"), "passed")

    def test_several_at_once(self):
        runners = Runners(2)

        def outcome(code: str, limit_s: float = 60) -> str:
            return runners.run([sys.executable, "-c", code], limit_s).what

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            leaves = threads.submit(outcome, "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)")
            works = threads.submit(outcome, "import time; time.sleep(1)")
            self.assertEqual((leaves.result(), works.result()), ("passed", "passed"))
            with tempfile.TemporaryDirectory() as folder:
                endless = threads.submit(outcome, f"import os, time; os.mkdir({folder + '/begun'!r}); time.sleep(600)", 600)
                while not os.path.exists(folder + "/begun"):
                    time.sleep(0.01)
                runners.close()
            with self.assertRaises((SystemExit, concurrent.futures.BrokenExecutor)):
                endless.result(60)


class Whole(unittest.TestCase):
    def make(self, root: pathlib.Path) -> None:
        for name, content in PROJECT.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)

    def test_what_no_test_can_notice(self):
        with tempfile.TemporaryDirectory() as folder:
            root, output = pathlib.Path(folder), io.StringIO()
            self.make(root)
            with contextlib.redirect_stdout(output):
                undetectable.main(["src", "--root", str(root), "--list"])
            listed = sorted(line.split(" ", 1)[1].split(":")[0] + line.split(":")[1] + line.split(":")[2]
                            for line in output.getvalue().splitlines() if "src/tiny.cpp" in line)
            self.assertEqual(listed, ["reached   src/tiny.cpp2  >= for > >"], output.getvalue())  # x is never limit
            self.assertEqual((root / "build/mutants/tree/src/tiny.cpp").read_text(), PROJECT["src/tiny.cpp"])

    def test_what_is_made_for_tests_is_made_anew_in_a_new_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            root, mutants = pathlib.Path(folder), pathlib.Path(folder) / "build" / "mutants"
            self.make(root)
            known = {"fixtures": {"tiny_test": "made", "tsan/tiny_test": "made", "other": "made"}}
            mutants.mkdir(parents=True)
            (mutants / "memory.json").write_text(json.dumps(known))
            tree = Tree(root, mutants)
            tree.sync()
            for left in ({"tsan/tiny_test", "other"}, {"tsan/tiny_test", "other", "tiny_test"}):
                with contextlib.closing(Trials(tree, "dev", 1, 0, set())) as trials:
                    trials.build_for("")
                    self.assertEqual(set(trials.memory.fixtures), left)  # the second time the build folder exists

    def try_rule(self, root: pathlib.Path, rule: str) -> tuple[int, list[str], str]:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = run.main(["src", "--root", str(root), "--seed", "1", "--runs", "2", "--rule", rule])
        lines = (root / "build" / "mutants" / "journal.jsonl").read_text().splitlines()
        return code, [json.loads(line)["kind"] + " " + json.loads(line)["by"] for line in lines], output.getvalue()

    def test_a_project(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            self.make(root)
            code, kinds, output = self.try_rule(root, "guard dropped")
            self.assertEqual(code, 0, output)
            self.assertEqual(sorted(kind.split("\n")[0][:24] for kind in kinds)[:2], ["noticed tiny_test failed", "noticed tiny_test hung"])
            self.assertTrue(any(kind.startswith("uncompiled") for kind in kinds), kinds)
            code, kinds, output = self.try_rule(root, ">= for >")  # it changes nothing
            self.assertEqual(code, 1, output)
            self.assertEqual(kinds[-1], "green 1 of 1 tests come by")
            self.assertIn("+  if (x >= limit) return limit;", output)
            self.assertEqual((root / "src/tiny.cpp").read_text(), PROJECT["src/tiny.cpp"])
            tree = root / "build" / "mutants" / "tree"
            self.assertEqual((tree / "src/tiny.cpp").read_text(), PROJECT["src/tiny.cpp"])
            (root / "tests/tiny_test.cpp").write_text("int main() { return 1; }\n")
            code, kinds, output = self.try_rule(root, ">= for >")  # a test that fails without a mutant detects nothing
            self.assertIn("failed without any mutant", output)
            self.assertEqual(kinds[-1], "green 0 of 1 tests come by")


if __name__ == "__main__":
    unittest.main()
