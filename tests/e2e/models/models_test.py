"""Every reference model, scripted and traced, with `tensord run`, compared with PyTorch."""

import os
import subprocess
import sys
import tempfile
import unittest

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from tests.e2e.models.compare import difference  # noqa: E402
from tests.models import make_models  # noqa: E402

BINARY = os.environ["TENSORD_BINARY"]
MODELS = os.environ.get("TENSORD_MODELS") or os.path.join(tempfile.gettempdir(), "tensord_models")
TOLERANCE = 1e-4


def run_case(case, flags=(), env=None, models=MODELS):
    """Runs all calls of a case in one process; returns an error or None."""
    with tempfile.TemporaryDirectory() as directory:
        command = [BINARY, "run", os.path.join(models, case["model"]), *flags]
        results = []
        for number, call in enumerate(case["calls"]):
            results.append(os.path.join(directory, f"{number}.pt"))
            command += ["--call", ",".join([call["method"], os.path.join(models, call["args"]), results[-1]])]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip()}"
        for result, call in zip(results, case["calls"]):
            expected = torch.load(os.path.join(models, call["result"]))
            found = difference(torch.load(result), expected, TOLERANCE, call["method"])
            if found:
                return found
    return None


class Models(unittest.TestCase):
    """One test per archive; filled below."""


def add_tests(makers, models):
    for name in makers:
        def test(self, name=name):
            for case in make_models.ensure(models, [name]):
                with self.subTest(way=case["way"]):
                    self.assertIsNone(run_case(case, models=models))
                with self.subTest(way=case["way"], passes="none"):
                    self.assertIsNone(run_case(case, ["--no-optimize"], models=models))
        setattr(Models, f"test_{name}", test)


add_tests(make_models.MAKERS, MODELS)
add_tests(make_models.DETECTORS, MODELS + "_detectors")

if __name__ == "__main__":
    unittest.main(verbosity=2)
