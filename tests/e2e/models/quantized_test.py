"""Quantized models in the real daemon give the results of PyTorch's fbgemm, also with concurrent requests."""

import concurrent.futures
import functools
import os
import shutil
import subprocess
import tempfile
import unittest
from typing import Dict

import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e.daemon import BINARY, Daemon, pb, request
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


class Cell(nn.Module):
    """A step of a sequence: its state goes through a linear layer too."""

    def __init__(self):
        super().__init__()
        self.state, self.scores = nn.Linear(5 + 8, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor, hidden: Tensor) -> Dict[str, Tensor]:
        hidden = torch.tanh(self.state(torch.cat([x, hidden], 1)))
        return {"scores": self.scores(hidden), "new_hidden": hidden}


SEQUENCE = """max_batch_size: %d
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 5 ] } ]
    output [ { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] } ]
    sequence_batching { oldest { max_candidate_sequences: 6 } state [ { input_name: "hidden" output_name: "new_hidden" data_type: TYPE_FP32 dims: [ 8 ]
      initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 8 ] zero_data: true } } ] }"""
ENSEMBLE = """platform: "ensemble"
    ensemble_scheduling { step [
      { model_name: "plain_static" model_version: -1 input_map { key: "x" value: "x" } input_map { key: "hidden" value: "hidden" }
        output_map { key: "new_hidden" value: "between" } },
      { model_name: "plain_dynamic" model_version: -1 input_map { key: "x" value: "x" } input_map { key: "hidden" value: "between" }
        output_map { key: "scores" value: "scores" } } ] }"""


class QuantizedStepsTest(unittest.TestCase):
    """What `tensord quantize` writes, as members of ensembles and as models of sequences."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.folder = tempfile.TemporaryDirectory()
        cls.cell = Cell().eval()
        cls.x = np.random.default_rng(0).normal(size=(64, 5)).astype(np.float32)
        path = functools.partial(os.path.join, cls.folder.name)
        torch.jit.script(cls.cell).save(path("cell.pt"))
        np.savez(path("rows.npz"), x=cls.x, hidden=np.tanh(np.random.default_rng(1).normal(size=(64, 8))).astype(np.float32))
        models = {"ensemble": (None, ENSEMBLE)}
        for kind, flags in (("dynamic", ()), ("static", ("--static",))):
            subprocess.run([BINARY, "quantize", path("cell.pt"), "-o", path(f"{kind}.pt"), "--data", path("rows.npz"), *flags], check=True, capture_output=True, timeout=120)
            models[f"plain_{kind}"] = (kind, "")
            models[f"sequence_{kind}"] = (kind, SEQUENCE % 1)
            models[f"together_{kind}"] = (kind, SEQUENCE % 4)
        for name, (kind, config) in models.items():
            os.makedirs(path("models", name, "1"))
            if kind:
                shutil.copy(path(f"{kind}.pt"), path("models", name, "1", "model.pt"))
            with open(path("models", name, "config.pbtxt"), "w") as file:
                file.write(config)
        cls.daemon = Daemon(path("models"), "--strict-readiness", "false")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def ask(self, model, parameters=None, **arrays):
        inputs = [(name, "FP32", array.shape, array.tobytes()) for name, array in arrays.items()]
        answer = self.daemon.stub.ModelInfer(request(model, inputs, parameters=parameters), timeout=120)
        return {output.name: np.frombuffer(raw, np.float32).reshape(output.shape) for output, raw in zip(answer.outputs, answer.raw_output_contents)}

    def test_ensembles_give_what_their_members_give(self):
        for rows in (1, 7):
            x, hidden = self.x[:rows], np.zeros((rows, 8), np.float32)
            between = self.ask("plain_static", x=x, hidden=hidden)["new_hidden"]
            expected = self.ask("plain_dynamic", x=x, hidden=between)["scores"]
            np.testing.assert_array_equal(self.ask("ensemble", x=x, hidden=hidden)["scores"], expected)
            in_float32 = self.cell(torch.tensor(x), self.cell(torch.tensor(x), torch.tensor(hidden))["new_hidden"])["scores"]
            self.assertLess(np.abs(expected - in_float32.detach().numpy()).max(), 0.1)

    def test_sequences_give_what_the_steps_give(self):
        """Also with others at the same time: six sequences of five steps, turn by turn."""
        for model, kind in (("sequence_dynamic", "dynamic"), ("sequence_static", "static"), ("together_static", "static")):
            states = [np.zeros((1, 8), np.float32) for _ in range(6)]
            for step in range(5):
                values = [self.x[None, 5 * sequence + step] for sequence in range(6)]
                with concurrent.futures.ThreadPoolExecutor(6) as pool:
                    answers = list(pool.map(lambda i: self.ask(model, {
                        "sequence_id": pb.InferParameter(int64_param=i + 1), "sequence_start": pb.InferParameter(bool_param=step == 0),
                        "sequence_end": pb.InferParameter(bool_param=step == 4)}, x=values[i]), range(6)))
                for i, answer in enumerate(answers):
                    plain = self.ask(f"plain_{kind}", x=values[i], hidden=states[i])
                    np.testing.assert_array_equal(answer["scores"], plain["scores"], f"{model}, sequence {i}, step {step}")
                    states[i] = plain["new_hidden"]

    def test_batches_of_sequences_are_refused_where_rows_share_a_scale(self):
        index = self.daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=60)
        reasons = {model.name: model.reason for model in index.models if model.state == "UNAVAILABLE"}
        self.assertEqual(list(reasons), ["together_dynamic"])
        self.assertIn("sequence_batching", reasons["together_dynamic"])


if __name__ == "__main__":
    unittest.main()
