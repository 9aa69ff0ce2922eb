"""Models and operators as on older CPUs: TENSORD_MAX_ISA limits the instruction set."""

import os
import subprocess
import unittest

from tests.e2e.models.models_test import BINARY, MODELS, run_case
from tests.models import make_models

NAMES = ("mlp", "resnet18", "mobilenet_v2", "encoder", "language", "features")
LIMITS = ("baseline", "sse4", "avx2")


class OldProcessors(unittest.TestCase):
    """One test per model; filled below."""

    def test_unknown_limit(self):
        done = subprocess.run([BINARY, "--version"], env={**os.environ, "TENSORD_MAX_ISA": "mmx"}, capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("TENSORD_MAX_ISA=mmx: expected baseline, sse4, avx2 or avx512", done.stderr)


def add_tests():
    for name in NAMES:
        def test(self, name=name):
            case = make_models.ensure(MODELS, [name])[0]
            for limit in LIMITS:
                with self.subTest(limit=limit):
                    self.assertIsNone(run_case(case, env={**os.environ, "TENSORD_MAX_ISA": limit}))
        setattr(OldProcessors, f"test_{name}", test)


add_tests()

if __name__ == "__main__":
    unittest.main(verbosity=2)
