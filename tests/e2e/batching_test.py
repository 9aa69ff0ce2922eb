"""Dynamic batching, priorities, padding and rate limits in the real daemon, against PyTorch with single requests."""

import http.client
import json
import os
import tempfile
import threading
import time
import unittest
from typing import Dict, List, Optional, Tuple

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
    """Running sums without the padding, and their length."""

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
    """The items repeatedly, for some seconds."""
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
        self.assertEqual(expired.exception().code(), grpc.StatusCode.DEADLINE_EXCEEDED)  # although the worker is busy
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


class Flat(nn.Module):
    """view() is ambiguous without rows: PyTorch fails there too."""

    def forward(self, x: Tensor) -> Tuple[Tensor, List[str]]:
        return x.view(x.size(0), -1) * 2, ["a"] * x.size(0)


class Boxes(nn.Module):
    """Detections of each row, and of all."""

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"boxes": x[:, :, None] + torch.zeros(4), "labels": x.argmax(1)}


class Keyed(nn.Module):
    def forward(self, parts: Dict[str, Tensor], scale: Tensor, more: Optional[List[Tensor]]) -> Dict[str, Tensor]:
        out = {"sum": parts["left"] * scale + parts["right.wing"], "count": torch.full([scale.size(0)], float(len(parts)))}
        if more is not None:
            out["sum"] += more[0] - more[1]
        return out


class Listed(nn.Module):
    def forward(self, xs: List[Tensor]) -> Tensor:
        xs[0] += 1
        return torch.cat(xs, 1)


def tensors(names, size=2, more=""):
    return ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ {size} ] {more} }}' for name in names)


ENSEMBLE = """platform: "ensemble" max_batch_size: 8
    input [ { name: "IN" data_type: TYPE_FP32 dims: [ 2 ] } ] output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
    ensemble_scheduling { step [ %s ] }"""
STEP = '{ model_name: "%s" model_version: -1 %s }'
MORE_MODELS = {
    "flat": (Flat, f'max_batch_size: 8 input [ {tensors(["x"], 3)} ]'),
    "boxes": (Boxes, f'max_batch_size: 8 input [ {tensors(["x"], 3)} ] dynamic_batching {{ max_queue_delay_microseconds: 10000 }}'),
    "keyed": (Keyed, f'max_batch_size: 8 input [ {tensors(["right.wing", "scale", "left"])}, {tensors(["spare", "more__1", "more__0"], more="optional: true")} ]'
              "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 1000000 }"),
    "listed": (Listed, f'max_batch_size: 8 input [ {tensors(["xs__1", "xs__0"])}, {tensors(["xs__2"], more="optional: true")} ]'),
    "chain": (None, ENSEMBLE % ", ".join([
        STEP % ("keyed", 'input_map [ { key: "left" value: "IN" }, { key: "right.wing" value: "IN" }, { key: "scale" value: "IN" } ] output_map { key: "sum" value: "mid" }'),
        STEP % ("listed", 'input_map [ { key: "xs__0" value: "mid" }, { key: "xs__1" value: "IN" } ] output_map { key: "OUTPUT__0" value: "OUT" }')])),
    "unnamed": (Keyed, ""),
    "holes": (Listed, f'input [ {tensors(["xs__0", "xs__2"])} ]'),
}


class ShapesOfRequestsTest(unittest.TestCase):
    """Requests without rows; arguments composed of several inputs."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, (module, config) in MORE_MODELS.items():
            if module:
                serve_models.save(module(), cls.folder.name, name)
            else:
                os.makedirs(os.path.join(cls.folder.name, name, "1"))
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
                file.write(config)
        cls.daemon = Daemon(cls.folder.name, "--allow-http", "true", "--http-port", "0")
        cls.stub = cls.daemon.stub

    @classmethod
    def tearDownClass(cls):
        code = cls.daemon.stop()
        cls.folder.cleanup()
        if code != 0:
            raise AssertionError(f"the daemon exited with {code}")

    def call(self, model, **arrays):
        arrays = {name: floats(array) for name, array in arrays.items()}
        message = request(model, [(name, "FP32", array.shape, array.tobytes()) for name, array in arrays.items()])
        answer = self.stub.ModelInfer(message, timeout=300)
        return {one.name: (list(one.shape), raw) for one, raw in zip(answer.outputs, answer.raw_output_contents)}

    def post(self, model, inputs):
        connection = http.client.HTTPConnection(self.daemon.ready["http"], timeout=300)
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps({"inputs": [
            {"name": name, "datatype": "FP32", "shape": list(floats(array).shape), "data": floats(array).tolist()} for name, array in inputs.items()]}))
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body

    def test_no_rows(self):
        empty = np.zeros((0, 3))
        self.assertEqual(self.call("flat", x=empty), {"OUTPUT__0": ([0, 3], b""), "OUTPUT__1": ([0], b"")})
        self.assertEqual(self.call("boxes", x=empty), {"boxes": ([0, 3, 4], b""), "labels": ([0], b"")})
        self.assertEqual(self.call("chain", IN=np.zeros((0, 2))), {"OUT": ([0, 4], b"")})
        status, answer = self.post("boxes", {"x": empty})
        self.assertEqual((status, [(one["name"], one["shape"], one["data"]) for one in answer["outputs"]]),
                         (200, [("boxes", [0, 3, 4], []), ("labels", [0], [])]))
        # Beside others, which get their own results.
        full = floats([[1, 5, 2]])
        calls = [self.stub.ModelInfer.future(request("boxes", [("x", "FP32", array.shape, array.tobytes())]), timeout=300)
                 for array in (full, floats(empty), full, floats(empty))]
        self.assertEqual([list(call.result().outputs[1].shape) for call in calls], [[1], [0], [1], [0]])
        self.assertEqual(calls[2].result().raw_output_contents[1], (1).to_bytes(8, "little"))

    def test_inputs_named_by_key_and_place(self):
        metadata = self.stub.ModelMetadata(pb.ModelMetadataRequest(name="keyed"), timeout=300)
        self.assertEqual(sorted(one.name for one in metadata.inputs), ["left", "more__0", "more__1", "right.wing", "scale", "spare"])
        self.assertEqual([one.name for one in self.stub.ModelMetadata(pb.ModelMetadataRequest(name="listed"), timeout=300).inputs],
                         ["xs__0", "xs__1", "xs__2"])
        a, b, c = floats([[1, 2]]), floats([[10, 20]]), floats([[3, 4]])
        got = self.call("keyed", **{"left": a, "right.wing": b, "scale": c})
        self.assertEqual(got, {"sum": ([1, 2], (a * c + b).tobytes()), "count": ([1], floats([2]).tobytes())})
        got = self.call("keyed", **{"left": a, "right.wing": b, "scale": c, "spare": c, "more__0": b, "more__1": a})
        self.assertEqual(got, {"sum": ([1, 2], (a * c + b + b - a).tobytes()), "count": ([1], floats([3]).tobytes())})
        self.assertEqual(self.call("listed", xs__1=b, xs__0=a), {"OUTPUT__0": ([1, 4], floats([[2, 3, 10, 20]]).tobytes())})
        self.assertEqual(self.call("listed", xs__1=b, xs__0=a, xs__2=c)["OUTPUT__0"][0], [1, 6])
        self.assertEqual(self.call("chain", IN=a)["OUT"][1], floats([[3, 7, 1, 2]]).tobytes())
        status, answer = self.post("listed", {"xs__0": a, "xs__1": b})
        self.assertEqual((status, answer["outputs"][0]["data"]), (200, [2, 3, 10, 20]))
        with self.assertRaises(grpc.RpcError) as caught:
            self.call("keyed", **{"left": a, "scale": c})
        self.assertIn("right.wing", caught.exception.details())

    def test_two_requests_share_a_run(self):
        before = self.stub.ModelStatistics(pb.ModelStatisticsRequest(name="keyed")).model_stats[0].execution_count
        a, b, c = floats([[1, 2]]), floats([[10, 20]]), floats([[3, 4]])
        calls = [self.stub.ModelInfer.future(request("keyed", [(name, "FP32", [1, 2], (array * k).tobytes()) for name, array in
                                                               (("left", a), ("right.wing", b), ("scale", c))]), timeout=300) for k in (1, 2)]
        for k, call in zip((1, 2), calls):
            self.assertEqual(call.result().raw_output_contents[0], (a * c * k * k + b * k).tobytes())
        after = self.stub.ModelStatistics(pb.ModelStatisticsRequest(name="keyed")).model_stats[0].execution_count
        self.assertEqual(after - before, 1)

    def test_what_names_no_inputs_is_refused_when_it_is_loaded(self):
        log = self.daemon.log_text()
        self.assertIn("argument 'parts' of forward is a Dict[str, Tensor]: config.pbtxt has to list the inputs that make it", log)
        self.assertIn("config.pbtxt has an input 'xs__2', but none 'xs__1'", log)


if __name__ == "__main__":
    unittest.main()
