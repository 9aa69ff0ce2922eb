"""The search of bisect_passes, with a known fault, and its list of passes from the real binary."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from tests.e2e.models import bisect_passes  # noqa: E402

ARCHIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "jit", "data", "mlp.pt")


class Bisect(unittest.TestCase):
    def test_finds_the_change_with_few_runs(self):
        for wrong in (1, 2, 3, 7, 64, 1000):
            runs = []

            def is_good(n, wrong=wrong, runs=runs):
                runs.append(n)
                return n < wrong

            self.assertEqual(bisect_passes.last_good(is_good) + 1, wrong)
            self.assertLess(len(runs), 25)

    def test_names_every_pass_that_the_fault_needs(self):
        def is_good(flags):
            if flags[0] == "--jit-disable":
                return flags[1] in ("cse", "peephole")
            name, limit = flags[1].split(":")
            return int(limit) < {"cse": 3, "peephole": 10}[name]

        self.assertEqual(bisect_passes.culprits(["dce", "cse", "peephole"], is_good), [("cse", 3), ("peephole", 10)])

    def test_knows_the_passes(self):
        names = bisect_passes.known_passes(os.environ["TENSORD_BINARY"], ARCHIVE)
        self.assertIn("cse", names)
        self.assertIn("plan", names)
        self.assertGreater(len(names), 15)


if __name__ == "__main__":
    unittest.main(verbosity=2)
