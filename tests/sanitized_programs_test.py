"""Tests of sanitized_programs.py."""

import unittest

from tests import sanitized_programs

PROGRAMS = ["jit_test", "nn_test", "onnx_test", "server_test", "server_training_test"]


class SanitizedProgramsTest(unittest.TestCase):
    def test_the_innermost_folder_that_has_a_program(self):
        for path, program in {"core/jit/importers/onnx/x.cpp": "onnx_test", "core/jit/ir/graph.h": "jit_test",
                              "tests/nn/optim_test.cpp": "nn_test", "server/training/job/x.cpp": "server_training_test",
                              "tests/server/training/x_test.cpp": "server_training_test", "server/rest/x.cpp": "server_test",
                              "server/main.cpp": "server_test", "core/base/error.h": "", "README.md": ""}.items():
            with self.subTest(path):
                self.assertEqual(sanitized_programs.program_of(path, PROGRAMS), program)

    def test_what_is_touched_comes_first_and_the_others_by_turns(self):
        changed = ["docs/x.md", "server/rest/x.cpp", "core/nn/x.cpp", "core/nn/y.cpp"]
        orders = [sanitized_programs.in_order(changed, PROGRAMS, turn) for turn in range(4)]
        self.assertTrue(all(order[:2] == ["nn_test", "server_test"] for order in orders))
        self.assertTrue(all(sorted(order) == PROGRAMS for order in orders))
        self.assertEqual({order[2] for order in orders[:3]}, set(PROGRAMS) - {"nn_test", "server_test"})
        self.assertEqual(orders[3], orders[0])
        self.assertEqual(sanitized_programs.in_order(["core/nn/x.cpp"], ["nn_test"], 7), ["nn_test"])


if __name__ == "__main__":
    unittest.main()
