"""Warm-up, precision and threads of a model before it is ready; and an idle daemon."""

import os
import struct
import tempfile
import time
import unittest
from typing import List

import grpc
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.models.compare import difference
from tests.e2e.daemon import Daemon, pb, request

LABELS = "input [ { name: \"x\" data_type: TYPE_FP32 dims: [ 3, 16, 16 ] } ]\nmax_batch_size: 4\n"


class ImageModel(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
                                    nn.Linear(32 * 14 * 14, 256), nn.GELU(), nn.Linear(256, 100))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class NoZeros(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if float(x.sum()) == 0:
            raise ValueError("nothing but zeros")
        return x


class Lengths(nn.Module):
    def forward(self, words: List[str], x: Tensor) -> Tensor:
        return x + len(words)


def parameter(key, value):
    return f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n'


def warmup(inputs, **fields):
    config = "".join(f"{key}: {value} " for key, value in fields.items())
    config += "".join(f'inputs {{ key: "{name}" value {{ {value} }} }} ' for name, value in inputs.items())
    return f'model_warmup {{ name: "first" {config} }}\n'


class WarmupTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.folder.name
        for name, config in {"image": LABELS, "three": LABELS + parameter("INTRA_OP_THREAD_COUNT", 3),
                             "bf16": LABELS + parameter("precision", "bf16"),
                             "int8": LABELS + parameter("precision", "int8"),
                             "auto": LABELS + parameter("precision", "auto"),
                             "bad_tolerance": LABELS + parameter("precision_tolerance", "2"),
                             "fp16": LABELS + parameter("precision", "fp16"),
                             "bad_pass": LABELS + parameter("jit_disable", "nonsense"),
                             "interpreted": LABELS + parameter("plan_cache_size", 0)}.items():
            cls.add(ImageModel(), name, config)
        numbers = "data_type: TYPE_INT64 dims: [ 1 ]"
        cls.add(serve_models.Counter(), "counter", warmup({"x": numbers + ' input_data_file: "five"'}, count=3))
        cls.write("counter", "five", struct.pack("<q", 5))
        cls.add(serve_models.Counter(), "no_file", warmup({"x": numbers + ' input_data_file: "missing"'}))
        cls.add(serve_models.Counter(), "short_file", warmup({"x": numbers + ' input_data_file: "four"'}))
        cls.write("short_file", "four", b"four")
        rows = "data_type: TYPE_FP32 dims: [ 3, 1 ]"
        cls.add(serve_models.Raises(), "raises", warmup({"x": rows + " zero_data: true"}))
        cls.add(serve_models.Raises(), "other_name", warmup({"y": rows + " zero_data: true"}))
        cls.add(NoZeros(), "no_zeros", 'input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }')
        cls.add(Lengths(), "lengths", warmup({"x": rows + " random_data: true",
                                              "words": 'data_type: TYPE_STRING dims: [ 2 ] input_data_file: "words"'}))
        cls.write("lengths", "words", b"".join(struct.pack("<I", len(word)) + word for word in (b"one", b"three")))
        cls.daemon = Daemon(root, "--workers", "2")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    @classmethod
    def add(cls, module, name, config):
        serve_models.save(module, cls.folder.name, name)
        with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
            file.write(config)

    @classmethod
    def write(cls, model, name, content):
        os.makedirs(os.path.join(cls.folder.name, model, "warmup"), exist_ok=True)
        with open(os.path.join(cls.folder.name, model, "warmup", name), "wb") as file:
            file.write(content)

    def infer(self, model, tensor, datatype="FP32"):
        message = request(model, [("x", datatype, list(tensor.shape), tensor.numpy().tobytes())])
        return self.daemon.stub.ModelInfer(message, timeout=300).raw_output_contents[0]

    def assert_unavailable(self, model, reason):
        with self.assertRaises(grpc.RpcError) as caught:
            self.infer(model, torch.zeros(1))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn(reason, caught.exception.details())

    def test_requests_run_on_every_worker(self):
        seen = self.infer("counter", torch.zeros(1, dtype=torch.int64), "INT64")
        self.assertEqual(struct.unpack("<q", seen), (5 * 3 * 2,))

    def test_strings_from_a_file(self):
        self.assertIn("model loaded model=lengths", self.daemon.log_text())

    def test_what_fails_makes_the_model_unavailable(self):
        self.assert_unavailable("raises", "model_warmup 'first': ")
        self.assert_unavailable("raises", "got 3 rows")
        self.assert_unavailable("other_name", "model_warmup 'first': ")
        self.assert_unavailable("no_file", "missing")
        self.assert_unavailable("short_file", "has 4 bytes, expected 8")

    def test_zeros_that_fail_do_no_harm(self):
        self.assertIn("model not warmed up with zeros model=no_zeros", self.daemon.log_text())
        self.infer("no_zeros", torch.ones(4))

    def test_plans_are_made_before_the_first_request(self):
        made = self.daemon.metric("tensord_plan_cache_misses_total", model="image")
        self.assertGreaterEqual(made, 2)
        for rows in (1, 4, 1):
            self.infer("image", torch.rand(rows, 3, 16, 16))
        self.assertEqual(self.daemon.metric("tensord_plan_cache_misses_total", model="image"), made)
        self.assertGreater(self.daemon.metric("tensord_plan_arena_bytes", model="image"), 0)
        self.assertEqual(self.daemon.metric("tensord_plans", model="interpreted"), 0)

    def test_precision_and_threads(self):
        x = torch.rand(4, 3, 16, 16)
        expected = ImageModel().eval()(x).detach()
        for model, tolerance in {"image": 1e-5, "three": 1e-5, "interpreted": 1e-5, "bf16": 2e-2,
                                 "int8": 5e-2, "auto": 5e-2}.items():
            with self.subTest(model=model):
                raw = bytearray(self.infer(model, x))
                actual = torch.frombuffer(raw, dtype=torch.float32).reshape(expected.shape)
                self.assertIsNone(difference(actual, expected, tolerance))

    def test_chosen_precision(self):
        config = self.daemon.stub.ModelConfig(pb.ModelConfigRequest(name="auto")).config
        chosen = config.parameters["chosen_precision"].string_value
        self.assertIn(chosen, ("f32", "bf16", "int8"))
        self.assertEqual(self.daemon.metric("tensord_model_precision", model="auto", precision=chosen), 1)
        configured = self.daemon.stub.ModelConfig(pb.ModelConfigRequest(name="bf16")).config
        self.assertNotIn("chosen_precision", configured.parameters)
        self.assertNotIn('tensord_model_precision{model="bf16"', self.daemon.metrics())

    def test_wrong_settings_are_named(self):
        self.assert_unavailable("fp16", "parameters 'precision' must be f32, tf32, bf16, int8 or auto, got 'fp16'")
        self.assert_unavailable("bad_tolerance", "parameters 'precision_tolerance' must be above 0, up to 1, got '2'")
        self.assert_unavailable("bad_pass", "jit_disable")
        self.assert_unavailable("bad_pass", "nonsense")

    def test_idle_daemon_uses_no_cpu(self):
        def ticks():
            with open(f"/proc/{self.daemon.process.pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        self.infer("three", torch.rand(4, 3, 16, 16))
        # On a busy machine, started work may take a while; then the daemon is idle.
        used = None
        for _ in range(15):
            before = ticks()
            time.sleep(2)
            used = ticks() - before
            if used <= 2:
                break
        self.assertLessEqual(used, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
