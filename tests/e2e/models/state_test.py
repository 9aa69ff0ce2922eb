"""Models that write to themselves or to their inputs, in failing batches and on several workers."""

import concurrent.futures
import os
import struct
import tempfile
import unittest

import grpc
import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, pb, request


class DoublesInPlace(nn.Module):
    """Writes to its input, and then raises."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(2)
        if bool((x > 100).any()):
            raise ValueError("too large")
        return x + 0


class CountsRuns(nn.Module):
    """Counts its runs in every row, including failed ones."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.runs.add_(1)
        if bool((x > 100).any()):
            raise ValueError("too large")
        return self.runs + x * 0


class AddsSlowly(nn.Module):
    """Reads a megabyte of state, computes, and writes it: two concurrent runs would lose a sum."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(250000))

    def forward(self, x: Tensor) -> Tensor:
        before = self.total.clone()
        self.total.copy_(before + x)
        return torch.stack([self.total.min(), self.total.max()])


BATCH = """max_batch_size: 8
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
    dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 600000000 }"""
SEQUENCES = """max_batch_size: 3
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
    sequence_batching { max_sequence_idle_microseconds: 600000000
      direct { max_queue_delay_microseconds: 600000000 minimum_slot_utilization: 1 } }"""
MODELS = {"doubles": (DoublesInPlace, BATCH), "counts": (CountsRuns, BATCH),
          "sequences": (CountsRuns, SEQUENCES),
          "adds": (AddsSlowly, "instance_group [ { count: 4 kind: KIND_CPU } ]")}
TOO_LARGE = 60.0  # twice the limit


class StateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, (module, config) in MODELS.items():
            serve_models.save(module(), cls.folder.name, name)
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as out:
                out.write(config)
        cls.daemon = Daemon(cls.folder.name).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def send(self, model, *values, **kwargs):
        """A request of one row for each value."""
        data = np.asarray(values, np.float32)
        message = request(model, [("x", "FP32", [len(values), 1], data.tobytes())], **kwargs)
        return self.daemon.stub.ModelInfer.future(message, timeout=120)

    @staticmethod
    def outcome(call):
        """Its numbers, or its status code."""
        try:
            return np.frombuffer(call.result().raw_output_contents[0], np.float32).tolist()
        except grpc.RpcError as error:
            return error.code()

    def test_a_batch_that_failed_runs_again_with_what_was_sent(self):
        calls = [self.send("doubles", value) for value in (1.0, TOO_LARGE, 3.0)]
        self.assertEqual([self.outcome(call) for call in calls], [[2.0], grpc.StatusCode.INVALID_ARGUMENT, [6.0]])

    def test_a_batch_of_a_model_with_state_runs_once(self):
        calls = [self.send("counts", value) for value in (1.0, 200.0, 3.0)]
        self.assertEqual([self.outcome(call) for call in calls], [grpc.StatusCode.INVALID_ARGUMENT] * 3)
        self.assertEqual(self.outcome(self.send("counts", 0, 0, 0)), [2.0, 2.0, 2.0])

    def test_sequences_of_a_model_with_state_run_once(self):
        def send(sequence, value, start):
            parameters = {"sequence_id": pb.InferParameter(int64_param=sequence),
                          "sequence_start": pb.InferParameter(bool_param=start)}
            return self.send("sequences", value, parameters=parameters)

        calls = [send(i + 1, value, True) for i, value in enumerate((1.0, 200.0, 3.0))]
        self.assertEqual([self.outcome(call) for call in calls], [grpc.StatusCode.INVALID_ARGUMENT] * 3)
        calls = [send(i + 1, 0.0, False) for i in range(3)]
        self.assertEqual([self.outcome(call) for call in calls], [[2.0]] * 3)

    def test_workers_of_a_model_with_state_take_turns(self):
        message = request("adds", [("x", "FP32", [1], struct.pack("<f", 1))])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: self.daemon.stub.ModelInfer(message, timeout=120), range(200)))
        totals = [struct.unpack("<2f", answer.raw_output_contents[0]) for answer in answers]
        for least, most in totals:
            self.assertEqual(least, most)
        self.assertEqual(sorted(least for least, _ in totals), [float(i + 1) for i in range(200)])


if __name__ == "__main__":
    unittest.main()
