"""CUDA shared memory: tensors of models on GPUs in clients' memory there. On the emulated devices, which have memory of other processes too."""

import concurrent.futures
import os
import struct
import tempfile
import unittest

import grpc
import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e.cuda_test import EMULATED, GPU, ROWS, Counter, Mlp, Scale, daemon, infer, rows, save
from tests.e2e.cuda_limits_test import Rounds
from tests.e2e.daemon import RpcAssertions, pb, request
from tests.e2e.shared_memory_test import Region, in_shared_memory, place

BATCHES = "dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [ 12 ] }"


class AddSub(nn.Module):
    def forward(self, a: Tensor, b: Tensor):
        return a + b, a - b


class Select(nn.Module):
    def forward(self, mask: Tensor, x: Tensor) -> Tensor:
        return torch.where(mask, x, -x)


class Overwrite(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(2)


class Same(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def handle(region, offset=0):
    """What cudaIpcGetMemHandle gives on the emulated devices."""
    return struct.pack("<56sQ", region.key.encode(), offset)


@unittest.skipUnless(os.path.exists(EMULATED), f"no {EMULATED}: Boost.Context is missing, or it is not built")
class CudaMemoryTest(unittest.TestCase, RpcAssertions):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.folder.name
        on = GPU % (1, "0")
        save(Mlp().eval(), root, "mlp", ROWS + on)
        save(Mlp().eval(), root, "other", ROWS + GPU % (1, "1"))
        save(Mlp().eval(), root, "host", ROWS + "instance_group [ { kind: KIND_CPU } ]")
        save(Mlp().eval(), root, "both", ROWS + "instance_group [ { kind: KIND_CPU }, { kind: KIND_GPU gpus: [ 0 ] } ]")
        save(Mlp().eval(), root, "cached", ROWS + "response_cache { enable: true }" + on)
        save(Mlp().eval(), root, "batches", ROWS + BATCHES + on)
        for module in (AddSub(), Select(), Rounds(), Overwrite(), Same(), Counter(), Scale()):
            save(module, root, type(module).__name__.lower(), on)
        cls.server = daemon(root, "--allow-client-shm", "true", "--cache-config", "local,size=1048576")
        cls.stub = cls.server.stub

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    def setUp(self):
        self.region = Region()
        self.addCleanup(self.region.close)
        self.addCleanup(lambda: self.stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest()))

    def register(self, name="r", device=0, offset=0, size=None):
        self.stub.CudaSharedMemoryRegister(pb.CudaSharedMemoryRegisterRequest(
            name=name, raw_handle=handle(self.region, offset), device_id=device, byte_size=size or self.region.size - offset))

    def write(self, array, at=0):
        self.region.memory[at:at + array.nbytes] = array.tobytes()

    def read(self, shape, at, dtype=np.float32):
        count = int(np.prod(shape))
        return np.frombuffer(self.region.memory[at:at + count * np.dtype(dtype).itemsize], dtype).reshape(shape)

    def copied(self, model, call):
        """The bytes that the server copied for it."""
        before = self.server.metric("tensord_copied_bytes_total", model=model)
        call()
        return self.server.metric("tensord_copied_bytes_total", model=model) - before

    def ask(self, model, x, at=0, to=4096, region="r"):
        self.write(x, at)
        self.region.memory[to:to + len(x) * 32] = bytes(len(x) * 32)
        message = in_shared_memory(model, "x", "FP32", list(x.shape), region, x.nbytes, at, output=(region, len(x) * 32, to))
        answer = self.stub.ModelInfer(message)
        self.assertEqual(list(answer.raw_output_contents), [b""])
        np.testing.assert_allclose(self.read((len(x), 8), to), self.expected(x), atol=1e-5)

    def expected(self, x):
        return Mlp().eval()(torch.tensor(x)).detach().numpy()

    def test_inputs_are_read_and_outputs_written_in_place(self):
        self.register()
        for turn in range(4):  # interpreted and planned
            copied = self.copied("mlp", lambda: self.ask("mlp", rows(4, turn)))
            self.assertEqual(copied, 0 if turn > 1 else copied)
        # Addresses that kernels cannot take several numbers from at once, and that a plan does not write to.
        for at, to in ((4, 4096), (0, 4100), (12, 8196)):
            copied = self.copied("mlp", lambda: self.ask("mlp", rows(4), at, to))
            self.assertEqual(copied, (256 if at % 16 else 0) + (128 if to % 64 else 0))

    def test_regions_of_any_device_serve_models_of_any_device(self):
        for device in (0, 1):
            self.register(f"r{device}", device)
        for model in ("mlp", "other", "host", "both", "cached"):
            for region in ("r0", "r1"):
                with self.subTest(model=model, region=region):
                    for turn in range(3):
                        self.ask(model, rows(2, turn), region=region)

    def test_an_allocation_in_a_block_of_the_driver(self):
        self.register(offset=256)
        x = rows(2)
        self.write(x, 256 + 64)
        message = in_shared_memory("mlp", "x", "FP32", [2, 16], "r", x.nbytes, 64, output=("r", 64, 4096))
        self.stub.ModelInfer(message)
        np.testing.assert_allclose(self.read((2, 8), 256 + 4096), self.expected(x), atol=1e-5)

    def test_batches_of_regions_and_messages(self):
        self.register()
        batches = [rows(2, seed) for seed in range(6)]
        for seed, x in enumerate(batches):
            self.write(x, seed * 256)

        def send(seed):
            if seed % 3 == 2:
                return infer(self.server, "batches", x=batches[seed])["OUTPUT__0"]
            output = ("r", 64, 8192 + seed * 256) if seed % 3 else None
            message = in_shared_memory("batches", "x", "FP32", [2, 16], "r", 128, seed * 256, output=output)
            answer = self.stub.ModelInfer(message).raw_output_contents[0]
            return self.read((2, 8), output[2]) if output else np.frombuffer(answer, np.float32).reshape(2, 8)

        before = self.server.metric("tensord_executions_total", model="batches")
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for _ in range(4):
                for x, answer in zip(batches, pool.map(send, range(6))):
                    np.testing.assert_allclose(answer, self.expected(x), atol=1e-5)
        self.assertLess(self.server.metric("tensord_executions_total", model="batches") - before, 24)

    def test_integers_and_booleans_are_copied_on_the_device(self):
        self.register()
        values = np.arange(1, 7, dtype=np.float32)
        self.write(np.array([0, 1, 2, 255, 0, 128], np.uint8), 3)
        self.write(values, 64)
        for _ in range(3):
            message = request("select", [("mask", "BOOL", [6], None), ("x", "FP32", [6], None)])
            place(message.inputs[0], "r", 6, 3)
            place(message.inputs[1], "r", 24, 64)
            answer = np.frombuffer(self.stub.ModelInfer(message).raw_output_contents[0], np.float32)
            np.testing.assert_array_equal(answer, values * [-1, 1, 1, 1, -1, 1])
        self.write(np.array([3], np.int64), 512)
        message = request("rounds", [("x", "FP32", [6], None), ("rounds", "INT64", [1], None)])
        place(message.inputs[0], "r", 24, 64)
        place(message.inputs[1], "r", 8, 512)
        answer = np.frombuffer(self.stub.ModelInfer(message).raw_output_contents[0], np.float32)
        np.testing.assert_array_equal(answer, values + 3)

    def test_outputs_over_inputs(self):
        self.register()
        self.register("same", size=4096)
        a, b = np.array([5, 7, 9, 11], np.float32), np.array([1, 2, 3, 4], np.float32)
        for names in (("r", "r"), ("r", "same")):
            for _ in range(3):
                self.write(a)
                self.write(b, 64)
                message = request("addsub", [("a", "FP32", [4], None), ("b", "FP32", [4], None)])
                place(message.inputs[0], names[0], 16)
                place(message.inputs[1], names[0], 16, 64)
                place(message.outputs.add(name="OUTPUT__0"), names[1], 16)
                place(message.outputs.add(name="OUTPUT__1"), names[1], 16, 1024)
                self.stub.ModelInfer(message)
                np.testing.assert_array_equal(self.read([4], 0), a + b)
                np.testing.assert_array_equal(self.read([4], 1024), a - b)
        # The result is the input itself, at its place, and moved by an element.
        for to in (0, 4, 2048):
            self.write(a)
            self.stub.ModelInfer(in_shared_memory("same", "x", "FP32", [4], "r", 16, output=("r", 16, to)))
            np.testing.assert_array_equal(self.read([4], to), a)

    def test_a_model_that_writes_its_input_does_not_write_the_clients(self):
        self.register()
        x = np.array([1, 2, 3, 4], np.float32)
        for _ in range(3):
            self.write(x)
            self.stub.ModelInfer(in_shared_memory("overwrite", "x", "FP32", [4], "r", 16, output=("r", 16, 1024)))
            np.testing.assert_array_equal(self.read([4], 0), x)
            np.testing.assert_array_equal(self.read([4], 1024), 2 * x)

    def test_state_is_not_in_a_clients_memory(self):
        self.register()
        for turn in range(3):
            self.write(np.ones(1, np.float32))
            self.stub.ModelInfer(in_shared_memory("counter", "x", "FP32", [1], "r", 4, output=("r", 4, 64)))
            self.assertEqual(self.read([1], 64)[0], turn + 1)
            self.region.memory[:128] = b"\xff" * 128

    def test_sizes_and_offsets_are_checked(self):
        self.register(size=8192)
        for size, offset in ((64, 8192), (64, 8188), (128, 8128), (8196, 0), (60, 0), (2**63 - 1, 4)):
            message = in_shared_memory("mlp", "x", "FP32", [1, 16], "r", size, offset)
            self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "", self.stub.ModelInfer, message)
        self.write(rows(1))
        small = in_shared_memory("mlp", "x", "FP32", [1, 16], "r", 64, output=("r", 28, 4096))
        for _ in range(3):
            self.region.memory[4096:4160] = b"\x55" * 64
            self.assert_code(grpc.StatusCode.INTERNAL, "should be at least 32 bytes", self.stub.ModelInfer, small)
            self.assertEqual(self.region.memory[4096:4160], b"\x55" * 64)
        for kind, change in {"too large": {"byte_size": self.region.size + 1}, "no such GPU": {"device_id": 2},
                             "no handle": {"raw_handle": b"x" * 64}, "short": {"raw_handle": b"x"}}.items():
            wanted = {"name": "wrong", "raw_handle": handle(self.region), "device_id": 0, "byte_size": 4096, **change}
            with self.subTest(kind):
                self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "'wrong'", self.stub.CudaSharedMemoryRegister,
                                 pb.CudaSharedMemoryRegisterRequest(**wanted))
        regions = self.stub.CudaSharedMemoryStatus(pb.CudaSharedMemoryStatusRequest()).regions
        self.assertEqual({name: (region.device_id, region.byte_size) for name, region in regions.items()}, {"r": (0, 8192)})

    def test_unregistered_while_models_run(self):
        x = rows(1)
        message = in_shared_memory("mlp", "x", "FP32", [1, 16], "r", 64, output=("r", 32, 4096))

        def send(_):
            try:
                self.stub.ModelInfer(message)
            except grpc.RpcError as error:
                return error.code()
            return grpc.StatusCode.OK

        self.write(x)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = pool.map(send, range(400))
            for _ in range(40):
                self.register()
                self.stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest(name="r"))
        codes = set(answers)
        self.assertLessEqual(codes, {grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND})
        self.register()
        self.ask("mlp", x)
        self.assertTrue(self.stub.ServerReady(pb.ServerReadyRequest()).ready)

    def test_memory_of_a_run_stays_until_its_end(self):
        self.register()
        message = request("rounds", [("x", "FP32", [4], None), ("rounds", "INT64", [1], struct.pack("<q", 3000))])
        place(message.inputs[0], "r", 16)
        self.write(np.ones(4, np.float32))
        running = self.stub.ModelInfer.future(message)
        self.stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest(name="r"))
        try:
            np.testing.assert_array_equal(np.frombuffer(running.result().raw_output_contents[0], np.float32), [3001] * 4)
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.NOT_FOUND)

    def test_errors_of_runs_leave_the_region_usable(self):
        self.register()
        self.write(np.ones(32, np.float32))
        wrong = in_shared_memory("mlp", "x", "FP32", [2, 15], "r", 120)
        self.assert_code(grpc.StatusCode.INVALID_ARGUMENT, "", self.stub.ModelInfer, wrong)
        self.ask("mlp", rows(2))


if __name__ == "__main__":
    unittest.main()
