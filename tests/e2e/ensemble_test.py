"""Ensembles, the response cache and ModelConfig, in the real daemon."""

import os
import struct
import tempfile
import threading
import time
import unittest
from typing import List

import grpc
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, pb, request
import model_config_pb2 as config_pb


class Scale(nn.Module):
    def forward(self, raw: Tensor) -> Tensor:
        return (raw.to(torch.float32) - 128.0) / 64.0


class Classify(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Transposed(nn.Module):
    """Returns a tensor that is not row-major."""

    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Letters(nn.Module):
    def forward(self, word: str) -> List[str]:
        out: List[str] = []
        for letter in word:
            out.append(letter)
        return out


class Join(nn.Module):
    def forward(self, letters: List[str]) -> str:
        return "-".join(letters)


class Noise(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand(1)


class Slow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(10000000000):
            x = x + 1
        return x


PIPELINE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "PIXELS" data_type: TYPE_UINT8 dims: [ 6 ] } ]
output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "SCALED" data_type: TYPE_FP32 dims: [ 6 ] } ]
ensemble_scheduling { step [
  { model_name: "classify" model_version: -1
    input_map { key: "x" value: "SCALED" } output_map { key: "OUTPUT__0" value: "SCORES" } },
  { model_name: "scale" model_version: 1
    input_map { key: "raw" value: "PIXELS" } output_map { key: "OUTPUT__0" value: "SCALED" } }
] }
"""
SCALE = """
max_batch_size: 8
input [ { name: "raw" data_type: TYPE_UINT8 dims: [ 6 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 6 ] } ]
dynamic_batching { max_queue_delay_microseconds: 20000 }
"""
CLASSIFY = """
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 dims: [ 6 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
dynamic_batching { }
"""


def step(model, inputs, outputs):
    maps = "".join(f'input_map {{ key: "{key}" value: "{value}" }} ' for key, value in inputs.items())
    maps += "".join(f'output_map {{ key: "{key}" value: "{value}" }} ' for key, value in outputs.items())
    return f'{{ model_name: "{model}" model_version: -1 {maps} }}'


def ensemble(*steps):
    return 'platform: "ensemble"\nensemble_scheduling { step [ ' + ", ".join(steps) + " ] }\n"


class EnsembleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.add("scale", Scale(), SCALE)
        cls.add("classify", Classify(), CLASSIFY)
        cls.add("pipeline", None, PIPELINE)
        cls.add("probed", Classify(), CLASSIFY.replace("output", "# output"))
        cls.add("transposed", Transposed())
        cls.add("hurried", None, PIPELINE + 'parameters { key: "precision" value { string_value: "auto" } }\n'
                'parameters { key: "seed" value { string_value: "1" } }\nparameters { key: "mine" value { string_value: "1" } }\n')
        cls.add("twice", None, ensemble(step("transposed", {"x": "in"}, {"OUTPUT__0": "middle"}),
                                        step("transposed", {"x": "middle"}, {"OUTPUT__0": "out"})))
        cls.add("flat", serve_models.Identity(), """
            input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 4, 3 ] reshape { shape: [ 24 ] } } ]""")
        cls.add("cached", serve_models.Identity(), "response_cache { enable: true }\n")
        for name in ("flat", "cached"):
            cls.add(f"to_{name}", None, ensemble(step("transposed", {"x": "in"}, {"OUTPUT__0": "middle"}),
                                                 step(name, {"x": "middle"}, {"OUTPUT__0": "out"})))
        cls.add("letters", Letters())
        cls.add("join", Join())
        cls.add("spell", None, ensemble(step("letters", {"word": "word"}, {"OUTPUT__0": "letters"}),
                                        step("join", {"letters": "letters"}, {"OUTPUT__0": "spelled"})))
        cls.add("noise", Noise(), "response_cache { enable: true }\n")
        cls.add("slow", Slow())
        cls.add("slow_pipeline", None, ensemble(step("slow", {"x": "in"}, {"OUTPUT__0": "out"})))
        cls.add("lost", None, ensemble(step("nobody", {"x": "in"}, {"OUTPUT__0": "out"})))
        cls.add("identity", serve_models.Identity())
        cls.daemon = Daemon(cls.folder.name, "--strict-readiness", "false", "--cache-config", "local,size=1048576")
        cls.stub = cls.daemon.stub

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    @classmethod
    def add(cls, name, module, config=None):
        os.makedirs(os.path.join(cls.folder.name, name, "1"))
        if module is not None:
            serve_models.save(module, cls.folder.name, name)
        if config:
            with open(os.path.join(cls.folder.name, name, "config.pbtxt"), "w") as file:
                file.write(config)

    def error_of(self, message, timeout=300):
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.ModelInfer(message, timeout=timeout)
        return caught.exception.code(), caught.exception.details()

    def test_equals_the_models_one_after_the_other(self):
        pixels = torch.arange(18, dtype=torch.uint8).reshape(3, 6) * 14
        message = request("pipeline", [("PIXELS", "UINT8", [3, 6], bytes(pixels.flatten().tolist()))])
        response = self.stub.ModelInfer(message)
        self.assertEqual([output.name for output in response.outputs], ["SCORES", "SCALED"])
        self.assertEqual(list(response.outputs[0].shape), [3, 4])
        got = torch.tensor(struct.unpack("<12f", response.raw_output_contents[0])).reshape(3, 4)
        with torch.no_grad():
            expected = Classify()(Scale()(pixels))
        self.assertTrue(torch.allclose(got, expected, atol=1e-5))

    def test_only_wanted_outputs_are_made(self):
        before = self.daemon.metric("tensord_requests_total", model="classify")
        message = request("pipeline", [("PIXELS", "UINT8", [1, 6], bytes(6))], outputs=["SCALED"])
        response = self.stub.ModelInfer(message)
        self.assertEqual([output.name for output in response.outputs], ["SCALED"])
        self.assertEqual(struct.unpack("<6f", response.raw_output_contents[0]), (-2.0,) * 6)
        self.assertEqual(self.daemon.metric("tensord_requests_total", model="classify"), before)

    def test_requests_share_batches_in_the_steps(self):
        def statistics():
            answer = self.stub.ModelStatistics(pb.ModelStatisticsRequest(name="scale"))
            return answer.model_stats[0].inference_count, answer.model_stats[0].execution_count

        count, executions = statistics()
        message = request("pipeline", [("PIXELS", "UINT8", [1, 6], bytes(6))])
        calls = [self.stub.ModelInfer.future(message) for _ in range(32)]
        for call in calls:
            call.result()
        after_count, after_executions = statistics()
        self.assertEqual(after_count - count, 32)
        self.assertLess(after_executions - executions, 32)

    def test_what_models_return_need_not_lie_row_major(self):
        values = list(range(24))
        message = request("twice", [("in", "FP32", [2, 3, 4], struct.pack("<24f", *values))])
        response = self.stub.ModelInfer(message)
        self.assertEqual(list(response.outputs[0].shape), [2, 3, 4])
        self.assertEqual(struct.unpack("<24f", response.raw_output_contents[0]), tuple(values))

    def test_what_reads_memory_as_it_lies_gets_it_row_major(self):
        """A reshaped input, and the cache, which compares bytes."""
        values = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
        swapped = values.transpose(1, 2).contiguous()
        sent = values.numpy().tobytes()

        def ask(model, name, shape):
            response = self.stub.ModelInfer(request(model, [(name, "FP32", shape, sent)]))
            return list(response.outputs[0].shape), response.raw_output_contents[0]

        self.assertEqual(ask("to_flat", "in", [2, 3, 4]), ([24], swapped.numpy().tobytes()))
        for _ in range(2):
            self.assertEqual(ask("to_cached", "in", [2, 3, 4]), ([2, 4, 3], swapped.numpy().tobytes()))
        self.assertEqual(ask("cached", "x", [2, 4, 3]), ([2, 4, 3], sent))

    def test_strings(self):
        word = "tensor".encode()
        message = request("spell", [("word", "BYTES", [1], struct.pack("<I", len(word)) + word)])
        response = self.stub.ModelInfer(message)
        self.assertEqual(response.outputs[0].name, "spelled")
        self.assertEqual(response.raw_output_contents[0][4:], b"t-e-n-s-o-r")

    def test_errors_name_the_ensemble(self):
        pixels = ("PIXELS", "UINT8", [9, 6], bytes(54))
        self.assertEqual(self.error_of(request("pipeline", [pixels])),
                         (grpc.StatusCode.INVALID_ARGUMENT,
                          "inference request batch-size must be <= 8 for 'pipeline'"))
        code, details = self.error_of(request("twice", [("in", "FP32", [2], struct.pack("<2f", 1, 2))]))
        self.assertEqual(code, grpc.StatusCode.OUT_OF_RANGE)
        self.assertTrue(details.startswith("in ensemble 'twice', "), details)
        code, details = self.error_of(request("lost", [("in", "FP32", [1], bytes(4))]))
        self.assertEqual(code, grpc.StatusCode.UNAVAILABLE)

    def test_deadlines_and_cancellation_stop_the_steps(self):
        message = request("slow_pipeline", [("in", "FP32", [1], bytes(4))])
        start = time.monotonic()
        self.assertEqual(self.error_of(message, timeout=0.5)[0], grpc.StatusCode.DEADLINE_EXCEEDED)
        call = self.stub.ModelInfer.future(message)
        threading.Timer(0.3, call.cancel).start()
        with self.assertRaises(grpc.FutureCancelledError):
            call.result()
        # The model has one worker: it must be free again.
        while self.daemon.metric("tensord_in_flight_requests", model="slow") > 0:
            self.assertLess(time.monotonic() - start, 300)
            time.sleep(0.05)

    def test_cache_answers_the_same_inputs(self):
        first = request("noise", [("x", "FP32", [2], struct.pack("<2f", 1, 2))])
        other = request("noise", [("x", "FP32", [2], struct.pack("<2f", 1, 3))])
        answer = self.stub.ModelInfer(first).raw_output_contents[0]
        for _ in range(3):
            self.assertEqual(self.stub.ModelInfer(first).raw_output_contents[0], answer)
        self.assertNotEqual(self.stub.ModelInfer(other).raw_output_contents[0], answer)
        stats = self.stub.ModelStatistics(pb.ModelStatisticsRequest(name="noise")).model_stats[0]
        self.assertEqual(stats.inference_stats.cache_hit.count, 3)
        self.assertEqual(stats.inference_stats.cache_miss.count, 2)
        self.assertEqual(stats.inference_count, 2)
        self.assertEqual(stats.inference_stats.success.count, 5)

    def test_model_config_is_complete(self):
        config = self.stub.ModelConfig(pb.ModelConfigRequest(name="pipeline")).config
        self.assertEqual(config.platform, "ensemble")
        self.assertEqual([step.model_name for step in config.ensemble_scheduling.step], ["classify", "scale"])
        self.assertEqual(config.input[0].data_type, config_pb.TYPE_UINT8)
        config = self.stub.ModelConfig(pb.ModelConfigRequest(name="scale", version="1")).config
        self.assertEqual((config.name, config.platform, config.backend, config.default_model_filename),
                         ("scale", "pytorch_libtorch", "pytorch", "model.pt"))
        self.assertEqual(config.dynamic_batching.max_queue_delay_microseconds, 20000)
        self.assertEqual(config.instance_group[0].count, 1)
        self.assertEqual(config.version_policy.latest.num_versions, 1)
        config = self.stub.ModelConfig(pb.ModelConfigRequest(name="probed")).config
        self.assertEqual([(tensor.name, tensor.data_type, list(tensor.dims)) for tensor in config.output],
                         [("OUTPUT__0", config_pb.TYPE_FP32, [4])])
        config = self.stub.ModelConfig(pb.ModelConfigRequest(name="letters")).config
        self.assertEqual([(tensor.name, tensor.data_type) for tensor in config.input],
                         [("word", config_pb.TYPE_STRING)])
        with self.assertRaises(grpc.RpcError) as caught:
            self.stub.ModelConfig(pb.ModelConfigRequest(name="nobody"))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_parameters_that_only_models_have_are_warned_of(self):
        warning = "parameters precision, seed have no effect on an ensemble; give them to the models of its steps"
        index = self.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models
        self.assertEqual([(model.state, model.reason) for model in index if model.name == "hurried"], [("READY", "warning: " + warning)])
        self.assertIn(warning, self.daemon.log_text())
        self.assertEqual(self.daemon.log_text().count("have no effect on an ensemble"), 1)

    def test_types_come_from_the_steps_where_the_config_says_none(self):
        metadata = self.stub.ModelMetadata(pb.ModelMetadataRequest(name="spell"))
        self.assertEqual(metadata.platform, "ensemble")
        self.assertEqual([(tensor.name, tensor.datatype) for tensor in metadata.inputs], [("word", "BYTES")])
        self.assertEqual([tensor.name for tensor in metadata.outputs], ["spelled"])


class RecordedWarmupTest(unittest.TestCase):
    def test_captured_requests_warm_up(self):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as captured:
            serve_models.save(Classify(), root, "model")
            serve_models.save(serve_models.Words(), root, "other")
            message = request("model", [("x", "FP32", [3, 6], bytes(72))])
            with Daemon(root, "--capture-dir", captured) as daemon:
                daemon.stub.ModelInfer(message)
                daemon.stop()
            files = os.listdir(captured)
            self.assertEqual(len(files), 1)
            for model in ("model", "other"):
                os.makedirs(os.path.join(root, model, "warmup"))
                os.link(os.path.join(captured, files[0]), os.path.join(root, model, "warmup", "recorded"))
                with open(os.path.join(root, model, "config.pbtxt"), "w") as config:
                    config.write('parameters { key: "warmup_requests" value { string_value: "recorded" } }\n')
            with Daemon(root, "--strict-readiness", "false") as daemon:
                made = daemon.metric("tensord_plan_cache_misses_total", model="model")
                self.assertGreater(made, 0)
                daemon.stub.ModelInfer(message)
                self.assertEqual(daemon.metric("tensord_plan_cache_misses_total", model="model"), made)
                self.assertFalse(daemon.stub.ModelReady(pb.ModelReadyRequest(name="other")).ready)
                self.assertIn("model_warmup 'recorded, request 0'", daemon.log_text())


if __name__ == "__main__":
    unittest.main()
