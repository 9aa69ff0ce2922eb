"""Models on CUDA devices in the real daemon: answers as on the CPU, memory, lost devices. On the emulated devices (tests/cuda/emulated)."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from typing import NamedTuple

import grpc
import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, RpcAssertions, pb, request
from tests.e2e.raw_tensors import read_strings
from tests.e2e.shared_memory_test import Region, in_shared_memory
import model_config_pb2 as config_pb

EMULATED = os.path.join(os.path.dirname(BINARY), "..", "lib", "tensord", "libtensord_cuda_emulated.so")
WORDS, FEATURES = 32, 16


class Encoder(nn.Module):
    """Traced on the CPU, so that its code names the CPU as the device of `arange`."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.words, self.places = nn.Embedding(WORDS, FEATURES), nn.Embedding(8, FEATURES)
        self.norm = nn.LayerNorm(FEATURES)
        self.layers = nn.Sequential(nn.Linear(FEATURES, 24), nn.GELU(), nn.Linear(24, 5))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))
        weights = torch.softmax(x @ x.transpose(1, 2), -1)
        return torch.softmax(self.layers(self.norm(weights @ x)), -1)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Scale(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3 + 1


class Outer(nn.Module):
    """Takes memory by the square of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return (x.unsqueeze(0) * x.unsqueeze(1)).sum(1)


class Totals(NamedTuple):
    total: Tensor
    new_total: Tensor


class Accumulate(nn.Module):
    """Writes its state in place."""

    def forward(self, x: Tensor, START: Tensor, old_total: Tensor) -> Totals:
        old_total.mul_(1 - START)
        old_total.add_(x)
        return Totals(old_total * 1, old_total)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(x)
        return self.seen * 1


class Moves(nn.Module):
    """Bools, conjugates, windows, and devices that the code names."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(4, 4).tril().bool())
        self.limits = torch.tensor([True, False])

    def forward(self, x: Tensor) -> Tensor:
        y = x.cpu()
        spectrum = torch.fft.fft(x * torch.hann_window(4, device=x.device))
        power = (spectrum * spectrum.conj()).real + torch.fft.fftfreq(4)
        z = torch.zeros_like(y, device=x.device) + y.to("cpu") + torch.ones(4)
        if bool(self.limits[0]):
            z = z.masked_fill(~self.mask[0], 0.5)
        return z[torch.tensor([1, 0])] + power[:2]


class Sparse(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        y = x.to_sparse()
        return (y + y).to_dense() if bool(x[0, 0] >= 0) else torch.mm(y, x)


class Quantized(nn.Module):
    """CUDA has no quantized tensors."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.quantize_per_tensor(torch.ones(3), 0.1, 10, torch.quint8))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table.dequantize()


IDS = 'input [ { name: "ids" data_type: TYPE_INT64 dims: [ 6 ] } ]'
ROWS = 'max_batch_size: 16 input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]'
GPU = "instance_group [ { kind: KIND_GPU count: %d gpus: [ %s ] } ]"
BATCHING = "dynamic_batching { max_queue_delay_microseconds: 100000 }"
SEQUENCE = """max_batch_size: 4 input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
    sequence_batching { control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]
                        state [ { input_name: "old_total" output_name: "new_total" data_type: TYPE_FP32 dims: [ 1 ] } ] }"""
ENSEMBLE = """platform: "ensemble" max_batch_size: 16
    input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ] output [ { name: "y" data_type: TYPE_FP32 dims: [ 8 ] } ]
    ensemble_scheduling { step [
      { model_name: "scale_cpu" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "OUTPUT__0" value: "a" } },
      { model_name: "mlp" model_version: -1 input_map { key: "x" value: "a" } output_map { key: "OUTPUT__0" value: "b" } },
      { model_name: "scale_wide" model_version: -1 input_map { key: "x" value: "b" } output_map { key: "OUTPUT__0" value: "y" } } ] }"""


def save(module, root, name, config=""):
    serve_models.save(module, root, name)
    with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
        file.write(config)


def place(root, name, file, source, config=""):
    """A model of a file that exists."""
    os.makedirs(os.path.join(root, name, "1"))
    shutil.copy(source, os.path.join(root, name, "1", file))
    with open(os.path.join(root, name, "config.pbtxt"), "w") as out:
        out.write(config)


def daemon(root, *flags, **environment):
    return Daemon(root, *flags, environment={"TENSORD_CUDA": EMULATED, **environment})


def infer(server, model, **inputs):
    """The answer's outputs by name."""
    given = [(name, {"float32": "FP32", "int64": "INT64"}[str(value.dtype)], value.shape, value.tobytes())
             for name, value in inputs.items()]
    answer = server.stub.ModelInfer(request(model, given))
    return {output.name: np.frombuffer(raw, {"FP32": np.float32, "INT64": np.int64}[output.datatype]).reshape(output.shape)
            for output, raw in zip(answer.outputs, answer.raw_output_contents)}


def groups(server, model):
    config = server.stub.ModelConfig(pb.ModelConfigRequest(name=model)).config
    return [(config_pb.ModelInstanceGroup.Kind.Name(group.kind), group.count, list(group.gpus)) for group in config.instance_group]


def rows(count, seed=1):
    return np.random.default_rng(seed).standard_normal((count, 16), dtype=np.float32)


class Repositories:
    def only(self, module, config="", name="m"):
        """A repository with one model, in a folder of its own."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        save(module, folder.name, name, config)
        return folder.name


@unittest.skipUnless(os.path.exists(EMULATED), f"no {EMULATED}: Boost.Context is missing, or it is not built")
class CudaTest(unittest.TestCase, RpcAssertions, Repositories):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = root = os.path.join(cls.folder.name, "models")
        ids = torch.randint(WORDS, (2, 6), generator=torch.Generator().manual_seed(1))
        files = {"script": "model.pt", "program": "model.pt2", "onnx": "model.onnx"}
        made = {kind: os.path.join(cls.folder.name, file) for kind, file in files.items()}
        encoder = Encoder().eval()
        torch.jit.trace(encoder, ids).save(made["script"])
        subprocess.run([BINARY, "convert", made["script"], "--to", "pt2", "-o", made["program"], "--input", "2,6:int64"],
                       check=True, capture_output=True)
        torch.onnx.export(encoder, (ids,), made["onnx"], input_names=["ids"], output_names=["y"])
        for kind, file in files.items():
            place(root, f"{kind}_cpu", file, made[kind])
            place(root, f"{kind}_gpu", file, made[kind], GPU % (2, "0, 1"))
        cls.ids, cls.expected = ids.numpy(), encoder(ids).detach().numpy()
        save(Mlp().eval(), root, "mlp", ROWS + BATCHING + GPU % (1, "1"))
        save(Scale(), root, "scale_cpu", ROWS + "instance_group [ { kind: KIND_CPU } ]")
        save(Scale(), root, "scale_wide", ROWS.replace("16 ]", "8 ]") + "instance_group [ { kind: KIND_CPU } ]")
        save(Mlp().eval(), root, "cached", ROWS + "response_cache { enable: true }" + GPU % (1, "0"))
        save(Scale(), root, "both", ROWS + BATCHING + "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU gpus: [ 1 ] } ]")
        save(Accumulate(), root, "accumulate", SEQUENCE + GPU % (1, "0"))
        save(Counter(), root, "counter", GPU % (1, "0"))
        os.makedirs(os.path.join(root, "ensemble", "1"))
        with open(os.path.join(root, "ensemble", "config.pbtxt"), "w") as file:
            file.write(ENSEMBLE)
        cls.server = daemon(root, "--strict-readiness", "false", "--allow-client-shm", "true", "--metrics-compat", "triton",
                            "--cache-config", "local,size=1048576")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def test_answers_are_those_of_the_cpu_in_every_format(self):
        for kind in ("script", "program", "onnx"):
            with self.subTest(kind):
                (cpu,), (gpu,) = (infer(self.server, f"{kind}_{where}", ids=self.ids).values() for where in ("cpu", "gpu"))
                np.testing.assert_allclose(cpu, self.expected, atol=1e-5)
                np.testing.assert_allclose(gpu, cpu, atol=1e-5)
                for _ in range(8):  # each of the four instances, interpreted and planned
                    np.testing.assert_allclose(*infer(self.server, f"{kind}_gpu", ids=self.ids).values(), gpu, atol=1e-6)

    def test_the_configuration_says_where_instances_are(self):
        self.assertEqual(groups(self.server, "script_gpu"), [("KIND_GPU", 2, [0, 1])])
        self.assertEqual(groups(self.server, "script_cpu"), [("KIND_CPU", 1, [])])
        self.assertEqual(self.server.metric("tensord_model_workers", model="script_gpu"), 4)

    def test_batches_are_gathered_and_divided(self):
        before = self.server.metric("tensord_executions_total", model="mlp")
        batches = [rows(1 + i % 3, seed=i) for i in range(24)]
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(lambda x: infer(self.server, "mlp", x=x), batches))
        for x, answer in zip(batches, answers):
            np.testing.assert_allclose(answer["OUTPUT__0"], Mlp().eval()(torch.tensor(x)).detach().numpy(), atol=1e-5)
        self.assertLess(self.server.metric("tensord_executions_total", model="mlp") - before, 24)

    def test_ensembles_cross_between_devices(self):
        x = rows(3)
        want = Mlp().eval()(torch.tensor(x) * 3 + 1) * 3 + 1
        np.testing.assert_allclose(infer(self.server, "ensemble", x=x)["y"], want.detach().numpy(), atol=1e-4)

    def test_state_that_a_model_writes_in_place_stays_with_its_sequence(self):
        def send(sequence, value, start=False):
            message = request("accumulate", [("x", "FP32", [1, 1], np.float32(value).tobytes())])
            message.parameters["sequence_id"].int64_param = sequence
            message.parameters["sequence_start"].bool_param = start
            return float(np.frombuffer(self.server.stub.ModelInfer(message).raw_output_contents[0], np.float32)[0])

        got = [send(1, 1, True), send(2, 10, True), send(1, 2), send(2, 20), send(1, 4), send(2, 40)]
        self.assertEqual(got, [1, 10, 3, 30, 7, 70])

    def test_a_module_keeps_its_state_on_the_device(self):
        one = np.ones(1, np.float32)
        self.assertEqual([float(infer(self.server, "counter", x=one)["OUTPUT__0"]) for _ in range(3)], [1, 2, 3])

    def test_an_index_out_of_range_is_the_answer_to_its_request(self):
        for _ in range(6):
            wrong = request("script_gpu", [("ids", "INT64", (2, 6), np.full((2, 6), WORDS, np.int64).tobytes())])
            self.assert_code(grpc.StatusCode.OUT_OF_RANGE, "aten::embedding: index out of range", self.server.stub.ModelInfer, wrong)
            np.testing.assert_allclose(*infer(self.server, "script_gpu", ids=self.ids).values(), self.expected, atol=1e-5)

    def test_answers_are_cached_and_classified_at_home(self):
        x, want = rows(2), Mlp().eval()(torch.tensor(rows(2))).detach().numpy()
        before = self.server.metric("tensord_executions_total", model="cached")
        for _ in range(3):
            np.testing.assert_allclose(infer(self.server, "cached", x=x)["OUTPUT__0"], want, atol=1e-5)
        self.assertEqual(self.server.metric("tensord_executions_total", model="cached") - before, 1)
        message = request("cached", [("x", "FP32", x.shape, x.tobytes())])
        message.outputs.add(name="OUTPUT__0").parameters["classification"].int64_param = 1
        answer = self.server.stub.ModelInfer(message).raw_output_contents[0]
        best = [int(text.split(":")[1]) for text in read_strings(answer)]
        self.assertEqual(best, want.argmax(1).tolist())

    def test_one_model_on_cpu_and_gpu(self):
        self.assertEqual(groups(self.server, "both"), [("KIND_CPU", 1, []), ("KIND_GPU", 1, [1])])
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for answer in pool.map(lambda i: infer(self.server, "both", x=rows(1 + i % 4, i))["OUTPUT__0"] - rows(1 + i % 4, i) * 3, range(40)):
                np.testing.assert_allclose(answer, np.ones_like(answer), atol=1e-5)

    def test_errors_of_kernels_are_not_those_of_other_workers(self):
        def send(is_wrong):
            ids = np.full((2, 6), WORDS, np.int64) if is_wrong else self.ids
            if not is_wrong:
                return np.testing.assert_allclose(*infer(self.server, "script_gpu", ids=ids).values(), self.expected, atol=1e-5)
            wrong = request("script_gpu", [("ids", "INT64", (2, 6), ids.tobytes())])
            self.assert_code(grpc.StatusCode.OUT_OF_RANGE, "aten::embedding: index out of range", self.server.stub.ModelInfer, wrong)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(send, [i % 3 == 0 for i in range(60)]))

    def test_shared_memory_takes_inputs_and_outputs(self):
        x, region = rows(4), Region()
        self.addCleanup(region.close)
        region.memory[:x.nbytes] = x.tobytes()
        self.server.stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="r", key=region.key, byte_size=region.size))
        message = in_shared_memory("mlp", "x", "FP32", [4, 16], "r", x.nbytes, output=("r", 4 * 8 * 4, 4096))
        for _ in range(3):  # interpreted and planned
            region.memory[4096:4096 + 128] = bytes(128)
            self.server.stub.ModelInfer(message)
            got = np.frombuffer(region.memory[4096:4096 + 128], np.float32).reshape(4, 8)
            np.testing.assert_allclose(got, Mlp().eval()(torch.tensor(x)).detach().numpy(), atol=1e-5)
        self.server.stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest())

    def test_metrics_tell_the_memory_of_the_gpus(self):
        infer(self.server, "script_gpu", ids=self.ids)
        for index in "01":
            self.assertGreater(self.server.metric("tensord_gpu_memory_total_bytes", gpu=index), 1 << 30)
            self.assertGreater(self.server.metric("tensord_gpu_memory_used_bytes", gpu=index), 0)
            self.assertGreater(self.server.metric("tensord_pool_live_bytes", device=f"cuda:{index}"), 0)
        self.assertNotIn("tensord_gpu_utilization", self.server.metrics())
        self.assertIn('nv_gpu_memory_used_bytes{gpu_uuid="cuda:1"}', self.server.metrics())
        self.assertGreater(self.server.metric("tensord_memory_bytes", owner="script_gpu/1"), 4 * WORDS * FEATURES)

    def test_no_memory_is_the_answer_to_the_one_request(self):
        with daemon(self.only(Outer(), GPU % (1, "0")), TENSORD_CUDA_MEMORY=str(96 << 20)) as server:
            def send(count):
                return server.stub.ModelInfer(request("m", [("x", "FP32", [count], np.ones(count, np.float32).tobytes())]))

            for _ in range(2):
                self.assert_code(grpc.StatusCode.RESOURCE_EXHAUSTED, "cuda:0", send, 8192)
                self.assertEqual(set(np.frombuffer(send(512).raw_output_contents[0], np.float32)), {512.0})
            self.assertTrue(server.stub.ServerReady(pb.ServerReadyRequest()).ready)

    def test_a_lost_gpu_makes_the_server_not_ready(self):
        root = self.only(Scale(), ROWS + GPU % (1, "0"), "gpu")
        save(Scale(), root, "cpu", ROWS)
        mark = os.path.join(self.folder.name, "lose it")
        with daemon(root, TENSORD_CUDA_LOST_WITH=mark) as server:
            infer(server, "gpu", x=rows(2))
            open(mark, "w").close()
            for _ in range(2):
                self.assert_code(grpc.StatusCode.INTERNAL, "lost for this test", infer, server, "gpu", x=rows(2))
            self.assertFalse(server.stub.ServerReady(pb.ServerReadyRequest()).ready)
            ready = {name: server.stub.ModelReady(pb.ModelReadyRequest(name=name)).ready for name in ("cpu", "gpu")}
            self.assertEqual(ready, {"cpu": True, "gpu": False})
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(f"http://{server.ready['metrics']}/v2/health/ready", timeout=60)
            self.assertIn("lost for this test", json.loads(caught.exception.read())["error"])
            np.testing.assert_allclose(infer(server, "cpu", x=rows(2))["OUTPUT__0"], rows(2) * 3 + 1, rtol=1e-6)

    def test_devices_says_which_libraries_are_there(self):
        def devices(**variables):
            return subprocess.run([BINARY, "devices"], env={**os.environ, "TENSORD_CUDA": EMULATED, **variables}, check=True,
                                  capture_output=True, text=True).stdout

        self.assertIn("cuBLASLt is there\ncuDNN is there\ncuFFT is there\ncuSOLVER is there\n", devices())
        self.assertIn("no cuFFT (TENSORD_CUDA_LIBRARIES is off): Fourier transforms run on the host\n",
                      devices(TENSORD_CUDA_LIBRARIES="off"))

    def test_without_a_gpu_kind_gpu_is_refused_and_kind_auto_is_the_cpu(self):
        root = self.only(Scale(), ROWS + "instance_group [ { name: \"g\" kind: KIND_GPU } ]", "gpu")
        save(Scale(), root, "auto", ROWS + "instance_group [ { count: 2 } ]")
        with daemon(root, "--strict-readiness", "false", TENSORD_CUDA="off") as server:
            index = server.stub.RepositoryIndex(pb.RepositoryIndexRequest())
            reason = {model.name: model.reason for model in index.models}["gpu"]
            self.assertIn("'g' has kind KIND_GPU but no GPUs are available: no GPU: TENSORD_CUDA is off", reason)
            self.assertEqual(groups(server, "auto"), [("KIND_CPU", 2, [])])
            infer(server, "auto", x=rows(1))
        with daemon(root, "--strict-readiness", "false") as server:
            self.assertEqual(groups(server, "auto"), [("KIND_GPU", 2, [0, 1])])
            self.assertEqual(groups(server, "gpu"), [("KIND_GPU", 1, [0, 1])])
            np.testing.assert_allclose(infer(server, "auto", x=rows(2))["OUTPUT__0"], rows(2) * 3 + 1, rtol=1e-6)

    def test_devices_that_the_code_names_are_the_models_own(self):
        config = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4, 4 ] } ]'
        root = self.only(Moves(), config + GPU % (1, "0"))
        save(Sparse(), root, "sparse", config + GPU % (1, "0"))
        x = np.arange(16, dtype=np.float32).reshape(4, 4)
        with daemon(root) as server:
            np.testing.assert_allclose(infer(server, "m", x=x)["OUTPUT__0"], Moves()(torch.from_numpy(x)).numpy(), rtol=1e-5, atol=1e-4)
            np.testing.assert_array_equal(infer(server, "sparse", x=x)["OUTPUT__0"], 2 * x)
            with self.assertRaises(grpc.RpcError) as caught:
                infer(server, "sparse", x=x - 1)
            self.assertIn("aten::mm has no kernel for SparseCOO on cuda", caught.exception.details())
            infer(server, "m", x=x)

    def test_state_stays_on_one_device(self):
        root = self.only(Counter(), 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ] instance_group [ { count: 1 } ]')
        with daemon(root) as server:
            self.assertEqual(groups(server, "m"), [("KIND_GPU", 1, [0])])
            for total in (2, 4):
                np.testing.assert_equal(infer(server, "m", x=np.full(1, 2, np.float32))["OUTPUT__0"], [total])

    def test_what_cannot_be_served_there_is_refused_by_name(self):
        cases = [(Quantized(), GPU % (1, "0"), "tensor 'table' is "),
                 (Scale(), GPU % (1, "5"), "specifies gpu 5, but there are only 2"),
                 (Counter(), GPU % (1, "0, 1"), "keeps state in its attributes cannot have instances on several devices"),
                 (Scale(), GPU % (1, "0") + 'parameters { key: "precision" value { string_value: "bf16" } }', "precision: weights are packed as bf16")]
        root = self.only(Scale())
        for i, (module, config, _) in enumerate(cases):
            save(module, root, f"case_{i}", config)
        with daemon(root, "--strict-readiness", "false") as server:
            index = server.stub.RepositoryIndex(pb.RepositoryIndexRequest())
            reasons = {model.name: model.reason for model in index.models}
            for i, (*_, reason) in enumerate(cases):
                self.assertIn(reason, reasons[f"case_{i}"])

    def test_tf32_is_for_the_models_that_ask_for_it(self):
        tf32 = 'parameters { key: "precision" value { string_value: "tf32" } }'
        sums = nn.Linear(16, 1, bias=False)
        nn.init.constant_(sums.weight, 1 + 2**-12)  # 1 in TF32
        root = self.only(sums, ROWS + tf32 + GPU % (1, "0"))
        save(sums, root, "exact", ROWS + GPU % (1, "0"))
        save(sums, root, "cpu", ROWS + tf32 + "instance_group [ { kind: KIND_CPU } ]")
        exact = 16 + 2**-8
        for arguments, expected in (((), exact), (("--precision", "tf32"), 16)):
            with daemon(root, *arguments) as server:
                for name, value in (("m", 16), ("exact", expected), ("cpu", exact)):
                    for _ in range(2):
                        np.testing.assert_equal(infer(server, name, x=np.ones((2, 16), np.float32))["OUTPUT__0"], [[value]] * 2)

    def test_the_flag_places_models_without_groups(self):
        root = self.only(Scale(), ROWS)
        with daemon(root, "--device", "cuda:1", "--workers", "2") as server:
            self.assertEqual(groups(server, "m"), [("KIND_GPU", 2, [1])])
            np.testing.assert_allclose(infer(server, "m", x=rows(2))["OUTPUT__0"], rows(2) * 3 + 1, rtol=1e-6)
        for device, text in (("cuda:2", "cuda:2 is not available"), ("cuda:x", "cuda:x")):
            with self.assertRaisesRegex(RuntimeError, text):
                daemon(root, "--device", device)

    def test_reloads_leave_no_memory_behind(self):
        root = self.only(Mlp().eval(), ROWS + GPU % (1, "0"))
        with daemon(root, "--model-control-mode", "explicit") as server:
            for _ in range(3):
                server.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="m"))
                os.utime(os.path.join(root, "m", "1", "model.pt"), (time.time(), time.time()))
                infer(server, "m", x=rows(4))
            live = server.metric("tensord_pool_live_bytes", device="cuda:0")
            self.assertLess(live, 1 << 20)
            self.assertGreater(live, 4 * 16 * 64)
            server.stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="m"))
            deadline = time.monotonic() + 30
            while server.metric("tensord_memory_bytes", owner="m/1") > 0 and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(server.metric("tensord_memory_bytes", owner="m/1"), 0)

    def test_run_and_bench_take_a_device(self):
        model = os.path.join(self.root, "mlp", "1", "model.pt")
        environment = {**os.environ, "TENSORD_CUDA": EMULATED}

        def run(*arguments):
            return subprocess.run([BINARY, *arguments], check=True, capture_output=True, text=True, env=environment).stdout

        results = []
        for device in ("cpu", "cuda:1"):
            result = os.path.join(self.folder.name, f"{device}.pt")
            run("run", model, "--device", device, "--input", "2,16", "--output", result)
            results.append(torch.load(result))
        torch.testing.assert_close(*results)
        self.assertIn("median", run("bench", model, "--device", "cuda:0", "--input", "2,16", "--iterations", "3").lower())


if __name__ == "__main__":
    unittest.main()
