"""Tests of made_once.py, with a copy of it in a repository of its own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

MODULE = '''
import pathlib, pkgutil, sys, tests.maker
out = pathlib.Path(sys.argv[1])
out.mkdir(exist_ok=True)
runs = pathlib.Path(__file__).resolve().parents[2] / "build/runs"
runs.write_text(str(int(runs.read_text()) + 1 if runs.exists() else 1))
text = (pathlib.Path(__file__).parent / "words.txt").read_text() + " ".join(sorted(m.name for m in pkgutil.iter_modules(tests.maker.__path__)))
(out / "made.txt").write_text(text + " ".join(sys.argv[2:]))
sys.exit(3 if "fail" in sys.argv else 0)
'''


class MadeOnceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve()
        maker = self.root / "tests/maker"
        maker.mkdir(parents=True)
        (self.root / "build").mkdir()
        for package in (self.root / "tests", maker):
            (package / "__init__.py").write_text("")
        shutil.copy(pathlib.Path(__file__).with_name("made_once.py"), self.root / "tests")
        (maker / "make.py").write_text(MODULE)
        (maker / "words.txt").write_text("words ")
        self.maker, self.output = maker, self.root / "build/made"

    def run_it(self, *arguments):
        """The exit status and what is made."""
        command = [sys.executable, "-m", "tests.made_once", self.output, "tests.maker.make", self.output, *arguments]
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.DEVNULL,
                              env={**os.environ, "TENSORD_TESTS_CACHE": str(self.root / "cache"), "PYTHONPATH": str(self.root)})
        return done.returncode, (self.output / "made.txt").read_text()

    def runs(self):
        return int((self.root / "build/runs").read_text())

    def test_it_is_made_once(self):
        first = self.run_it()
        self.assertEqual(first, (0, "words make"))
        (self.output / "made.txt").write_text("spoiled")
        (self.output / "old.txt").write_text("old")
        self.assertEqual(self.run_it(), first)
        self.assertFalse((self.output / "old.txt").exists())
        self.assertEqual(self.runs(), 1)

    def test_a_change_makes_it_again(self):
        self.run_it()
        (self.maker / "words.txt").write_text("other words ")
        self.assertEqual(self.run_it(), (0, "other words make"))
        (self.maker / "one_more.py").write_text("")
        self.assertEqual(self.run_it(), (0, "other words make one_more"))
        (self.maker / "make.py").write_text(MODULE + "\n")
        self.run_it()
        self.assertEqual(self.runs(), 4)
        self.assertEqual(self.run_it("more"), (0, "other words make one_moremore"))

    def test_a_failure_is_not_kept(self):
        self.assertEqual(self.run_it("fail")[0], 3)
        self.assertEqual(self.run_it("fail")[0], 3)
        self.assertEqual(self.runs(), 2)


if __name__ == "__main__":
    unittest.main()
