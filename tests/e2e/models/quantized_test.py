"""Quantized models in the real daemon give the results of PyTorch's fbgemm, also with concurrent requests."""

import os
import shutil
import tempfile
import unittest

import numpy as np
import torch

from tests.e2e.daemon import Daemon, pb, request
from tests.e2e.daemon_process import ROOT

DATA = os.path.join(ROOT, "tests", "quantized", "data")
# Long enough that every request of a test would be batched with others.
CONFIG = """max_batch_size: 16
    input [ { name: "input" data_type: TYPE_FP32 dims: [ %d ] } ]
    dynamic_batching { preferred_batch_size: [ 16 ] max_queue_delay_microseconds: 300000 }"""
WIDTHS = {"linear": 13, "linear_float16": 13, "linear_per_channel": 130}


class QuantizedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.calls = torch.load(os.path.join(DATA, "calls.pt"))
        cls.folder = tempfile.TemporaryDirectory()
        for name, width in WIDTHS.items():
            os.makedirs(os.path.join(cls.folder.name, name, "1"))
            shutil.copy(os.path.join(DATA, f"{name}.pt"), os.path.join(cls.folder.name, name, "1", "model.pt"))
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
                file.write(CONFIG % width)
        cls.daemon = Daemon(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        code = cls.daemon.stop()
        cls.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the daemon exited with {code}")

    def send_all(self, name, rounds):
        """Every call of the model that fits into a batch, from several clients at once: (answer, what it should be)."""
        calls = [(x.numpy(), y.numpy()) for (x,), (y,) in self.calls[name] if x.dim() == 2 and 1 <= len(x) <= 16] * rounds
        futures = [self.daemon.stub.ModelInfer.future(
            request(name, [("input", "FP32", x.shape, np.ascontiguousarray(x).tobytes())]), timeout=300)
            for x, _ in calls]
        for future, (_, expected) in zip(futures, calls):
            answer = future.result()
            yield np.frombuffer(answer.raw_output_contents[0], np.float32).reshape(answer.outputs[0].shape), expected

    def executions(self, name):
        stats = self.daemon.stub.ModelStatistics(pb.ModelStatisticsRequest(name=name)).model_stats[0]
        return stats.execution_count

    def test_strangers_change_nobodys_answer(self):
        for name in ("linear", "linear_per_channel"):
            before, answers = self.executions(name), 0
            for answer, expected in self.send_all(name, 5):
                np.testing.assert_array_equal(answer, expected)  # to the last bit
                answers += 1
            self.assertEqual(self.executions(name) - before, answers)  # none shared a run

    def test_models_that_keep_rows_apart_are_batched(self):
        before, answers = self.executions("linear_float16"), 0
        for answer, expected in self.send_all("linear_float16", 5):
            np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)
            answers += 1
        self.assertLess(self.executions("linear_float16") - before, answers / 2)


if __name__ == "__main__":
    unittest.main()
