"""Dynamic batching, priorities, padding and rate limits in the real daemon, against PyTorch one by one."""

import os
import tempfile
import threading
import time
import unittest
from typing import List

import grpc
import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, pb, request


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Shout(nn.Module):
    def forward(self, words: List[str]) -> List[str]:
        out: List[str] = []
        for word in words:
            out.append(word + "!")
        return out


class Masked(nn.Module):
    """Running sums of what is not padding, and how much that is."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.where(x < 0, torch.zeros_like(x), x).cumsum(1)


class Picky(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool((x > 100).any()):
            raise ValueError("too large")
        return x * 2


CONFIGS = {
    "mlp": """max_batch_size: 16
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
        dynamic_batching { max_queue_delay_microseconds: 20000 }""",
    "shout": """max_batch_size: 8
        input [ { name: "words" data_type: TYPE_STRING dims: [ ] } ]
        dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 1000000 }""",
    "masked": """max_batch_size: 8
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
        output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ -1 ] } ]
        parameters { key: "ragged_padding" value: { string_value: "-1" } }
        dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 1000000 }""",
    "picky": """max_batch_size: 8
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
        dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 1000000 }""",
    "slow": """max_batch_size: 1
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] }, { name: "rounds" data_type: TYPE_INT64 dims: [ ] } ]
        dynamic_batching { priority_levels: 2 default_priority_level: 2
          default_queue_policy { max_queue_size: 3 allow_timeout_override: true
            default_timeout_microseconds: 30000000 } }
        instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 2 } ] } } ]""",
}
MODULES = {"mlp": Mlp, "shout": Shout, "masked": Masked, "picky": Picky, "slow": serve_models.Sleepy}


def floats(array):
    return np.asarray(array, np.float32)


def result_of(answer):
    return np.frombuffer(answer.raw_output_contents[0], np.float32).reshape(answer.outputs[0].shape)


def poll(items):
    """The items again and again, for some seconds."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        yield from items
        time.sleep(0.01)


class BatchingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, module in MODULES.items():
            serve_models.save(module(), cls.folder.name, name)
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
                file.write(CONFIGS[name])
        cls.daemon = Daemon(cls.folder.name, "--rate-limit", "execution_count", "--rate-limit-resource", "R:2")
        cls.stub = cls.daemon.stub

    @classmethod
    def tearDownClass(cls):
        code = cls.daemon.stop()
        cls.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the daemon exited with {code}")

    def send(self, model, array, **kwargs):
        array = floats(array)
        return self.stub.ModelInfer.future(request(model, [("x", "FP32", array.shape, array.tobytes())], **kwargs),
                                           timeout=300)

    def statistics(self, model):
        return self.stub.ModelStatistics(pb.ModelStatisticsRequest(name=model)).model_stats[0]

    def test_many_clients_get_what_each_would_get_alone(self):
        module = Mlp().eval()
        random = np.random.RandomState(0)
        inputs = [floats(random.rand(1 + i % 3, 16)) for i in range(200)]
        calls = [self.send("mlp", array) for array in inputs]
        for array, call in zip(inputs, calls):
            with torch.no_grad():
                expected = module(torch.from_numpy(array)).numpy()
            np.testing.assert_allclose(result_of(call.result()), expected, rtol=1e-4, atol=1e-5)
        stats = self.statistics("mlp")
        self.assertEqual(stats.inference_count, sum(len(array) for array in inputs))
        self.assertLess(stats.execution_count, 150)
        self.assertGreater(max(batch.batch_size for batch in stats.batch_stats), 3)

    def test_strings(self):
        words = [[b"a"], [b"bc", b""], [b"d"]]
        calls = [self.stub.ModelInfer.future(
            request("shout", [("words", "BYTES", [len(each)], pb.InferTensorContents(bytes_contents=each))]),
            timeout=300) for each in words]
        for each, call in zip(words, calls):
            expected = b"".join(len(word + b"!").to_bytes(4, "little") + word + b"!" for word in each)
            self.assertEqual(call.result().raw_output_contents[0], expected)
        self.assertEqual(self.statistics("shout").execution_count, 1)

    def test_shapes_that_differ_are_padded(self):
        rows = [[[1, 2, 3]], [[4]], [[5, 6, 7, 8, 9]], [[1, 1]]]
        before = self.statistics("masked").execution_count
        calls = [self.send("masked", row) for row in rows]
        for row, call in zip(rows, calls):
            np.testing.assert_array_equal(result_of(call.result()), np.cumsum(floats(row), 1))
        self.assertEqual(self.statistics("masked").execution_count, before + 1)

    def test_the_fault_of_one_stays_its_own(self):
        calls = [self.send("picky", [[value, 1]]) for value in (1, 1000, 3)]
        np.testing.assert_array_equal(result_of(calls[0].result()), [[2, 2]])
        self.assertIn("too large", calls[1].exception().details())
        np.testing.assert_array_equal(result_of(calls[2].result()), [[6, 2]])

    def slow(self, rounds, within=30, **parameters):
        message = request("slow", [("x", "FP32", [1, 1], b"\0\0\0\0"),
                                   ("rounds", "INT64", [1], int(rounds).to_bytes(8, "little"))])
        for key, value in parameters.items():
            message.parameters[key].int64_param = value
        return self.stub.ModelInfer.future(message, timeout=within)

    def test_priorities_and_bounds_of_the_queue(self):
        def wait_for(count):
            next(None for _ in poll([None])
                 if self.daemon.metric("tensord_in_flight_requests", model="slow") == count)

        first = self.slow(10**12, within=120)
        wait_for(1)
        time.sleep(0.3)
        order = []
        lock = threading.Lock()

        def note(name):
            def done(_):
                with lock:
                    order.append(name)
            return done

        calls = []
        for index, priority in enumerate((2, 2, 1)):
            call = self.slow(1000, priority=priority)
            call.add_done_callback(note((priority, index)))
            calls.append(call)
            wait_for(1 + len(calls))
        expired = self.slow(1, priority=1, timeout=1000)
        self.assertEqual(expired.exception().code(), grpc.StatusCode.DEADLINE_EXCEEDED)  # though the worker is busy
        more = [self.slow(1, priority=2) for _ in range(2)]  # there is room for one
        refused = next(call for call in poll(more) if call.done())
        self.assertEqual(refused.exception().code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        first.cancel()
        for call in calls + [call for call in more if call is not refused]:
            call.result()
        self.assertEqual(order[0], (1, 2))

    def test_late_work_is_stopped(self):
        start = time.monotonic()
        call = self.slow(10**12, within=0.5)
        self.assertEqual(call.exception().code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.slow(1).result()  # the only worker is free again
        self.assertLess(time.monotonic() - start, 300)

    def test_a_model_that_needs_more_than_there_is_cannot_be_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            serve_models.save(serve_models.Identity(), folder, "greedy")
            with open(os.path.join(folder, "greedy", "config.pbtxt"), "w") as file:
                file.write('instance_group [ { kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 2 } ] } } ]')
            flags = ["--rate-limit", "execution_count", "--rate-limit-resource", "R:1"]
            with Daemon(folder, *flags) as daemon:
                self.assertFalse(daemon.stub.ModelReady(pb.ModelReadyRequest(name="greedy")).ready)
                self.assertIn("it needs 2 of resource 'R', of which there are 1", daemon.log_text())


if __name__ == "__main__":
    unittest.main()
