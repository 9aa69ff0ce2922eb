"""System shared memory: tensors outside of messages, and clients that truncate their memory."""

import mmap
import os
import struct
import tempfile
import threading
import time
import unittest

import grpc

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, pb, request
from tests.e2e.raw_tensors import fp32

CODE = grpc.StatusCode
SIZE = 1 << 20


class Region:
    """An object of shm_open, mapped here."""

    count = 0

    def __init__(self, size=SIZE):
        Region.count += 1
        self.key = f"/tensord_test_{os.getpid()}_{Region.count}"
        self.size = size
        self.path = "/dev/shm" + self.key
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(self.file, size)
        self.memory = mmap.mmap(self.file, size)

    def close(self):
        os.close(self.file)
        os.unlink(self.path)


def place(tensor, region, size, offset=0):
    tensor.parameters["shared_memory_region"].string_param = region
    tensor.parameters["shared_memory_byte_size"].int64_param = size
    if offset:
        tensor.parameters["shared_memory_offset"].int64_param = offset


def in_shared_memory(model, name, datatype, shape, region, size, offset=0, output=None):
    message = request(model, [(name, datatype, shape, None)])
    place(message.inputs[0], region, size, offset)
    if output:
        place(message.outputs.add(name="OUTPUT__0"), *output)
    return message


class SharedMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name in ("identity", "words", "sleepy", "add_sub"):
            serve_models.save(serve_models.MODELS[name](), cls.folder.name, name)
        cls.daemon = Daemon(cls.folder.name, "--allow-client-shm", "true")
        cls.stub = cls.daemon.stub

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def setUp(self):
        self.region = Region()
        self.addCleanup(self.region.close)
        self.addCleanup(self.unregister, "")

    def register(self, name, region=None, offset=0, size=SIZE):
        self.stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(
            name=name, key=(region or self.region).key, offset=offset, byte_size=size))

    def unregister(self, name):
        self.stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest(name=name))

    def code_of(self, call):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        return raised.exception.code()

    def test_regions_are_listed(self):
        self.register("whole")
        self.register("part", offset=4096, size=100)
        regions = self.stub.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions
        self.assertEqual(sorted(regions), ["part", "whole"])
        part = regions["part"]
        self.assertEqual((part.name, part.key, part.offset, part.byte_size), ("part", self.region.key, 4096, 100))
        self.assertEqual(self.code_of(lambda: self.register("part")), CODE.ALREADY_EXISTS)
        self.unregister("part")
        status = pb.SystemSharedMemoryStatusRequest(name="part")
        self.assertEqual(self.code_of(lambda: self.stub.SystemSharedMemoryStatus(status)), CODE.NOT_FOUND)
        self.assertEqual(self.code_of(lambda: self.register("big", size=SIZE + 1)), CODE.INVALID_ARGUMENT)

    def test_cuda_regions_are_refused(self):
        self.stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest())
        self.assertFalse(self.stub.CudaSharedMemoryStatus(pb.CudaSharedMemoryStatusRequest()).regions)
        wanted = pb.CudaSharedMemoryRegisterRequest(name="gpu", raw_handle=b"x" * 64, byte_size=1)
        self.assertEqual(self.code_of(lambda: self.stub.CudaSharedMemoryRegister(wanted)), CODE.UNIMPLEMENTED)

    def test_tensors_in_shared_memory(self):
        self.register("r")
        self.region.memory[64:76] = fp32(1, 2, 3)
        copied = self.daemon.metric("tensord_copied_bytes_total", model="identity")
        response = self.stub.ModelInfer(
            in_shared_memory("identity", "x", "FP32", [3], "r", 12, 64, output=("r", 12, 4096)))
        self.assertEqual(self.region.memory[4096:4108], fp32(1, 2, 3))
        self.assertEqual(list(response.raw_output_contents), [b""])
        # The input was used in place; the output had to be copied.
        self.assertEqual(self.daemon.metric("tensord_copied_bytes_total", model="identity"), copied + 12)
        words = b"".join(struct.pack("<I", len(word)) + word for word in (b"one", b"", b"three"))
        self.region.memory[8192:8192 + len(words)] = words
        response = self.stub.ModelInfer(in_shared_memory("words", "words", "BYTES", [3], "r", len(words), 8192))
        self.assertIn(b"threethree", response.raw_output_contents[0])
        for size, offset in ((12, SIZE), (12, SIZE - 4), (8, 0), (SIZE + 4, 0)):
            message = in_shared_memory("identity", "x", "FP32", [3], "r", size, offset)
            self.assertEqual(self.code_of(lambda: self.stub.ModelInfer(message)), CODE.INVALID_ARGUMENT, (size, offset))
        small = in_shared_memory("identity", "x", "FP32", [3], "r", 12, 64, output=("r", 8, 4096))
        self.code_of(lambda: self.stub.ModelInfer(small))
        unknown = in_shared_memory("identity", "x", "FP32", [3], "other", 12)
        self.assertEqual(self.code_of(lambda: self.stub.ModelInfer(unknown)), CODE.NOT_FOUND)

    def test_models_write_into_shared_memory(self):
        self.register("r")
        self.register("same", size=SIZE // 2)
        self.region.memory[:8], self.region.memory[64:72] = fp32(5, 7), fp32(1, 2)

        def ask(names, first, second):
            message = request("add_sub", [("a", "FP32", [2], None), ("b", "FP32", [2], None)])
            place(message.inputs[0], names[0], 8)
            place(message.inputs[1], names[0], 8, 64)
            place(message.outputs.add(name="OUTPUT__0"), names[1], 8, first)
            place(message.outputs.add(name="OUTPUT__1"), names[1], 8, second)
            copied = self.daemon.metric("tensord_copied_bytes_total", model="add_sub")
            self.stub.ModelInfer(message)
            return self.daemon.metric("tensord_copied_bytes_total", model="add_sub") - copied

        for first, second in ((4096, 8192), (8192, 4096)):
            self.assertEqual(ask(("r", "r"), first, second), 0)
            self.assertEqual(self.region.memory[first:first + 8], fp32(6, 9))
            self.assertEqual(self.region.memory[second:second + 8], fp32(4, 5))
        # An address that kernels do not write to directly.
        self.assertEqual(ask(("r", "r"), 4100, 8192), 8)
        self.assertEqual(self.region.memory[4100:4108], fp32(6, 9))
        # A result over an input, under either name of the memory: it is written after the model has read everything.
        for names in (("r", "r"), ("r", "same")):
            self.region.memory[:8] = fp32(5, 7)
            self.assertEqual(ask(names, 0, 8192), 8)
            self.assertEqual(self.region.memory[:8], fp32(6, 9))
            self.assertEqual(self.region.memory[8192:8200], fp32(4, 5))
        # In place: the identity model's result is already there.
        copied = self.daemon.metric("tensord_copied_bytes_total", model="identity")
        self.stub.ModelInfer(in_shared_memory("identity", "x", "FP32", [2], "r", 8, 64, output=("r", 8, 64)))
        self.assertEqual(self.daemon.metric("tensord_copied_bytes_total", model="identity"), copied)

    def test_memory_that_is_taken_away(self):
        self.register("r")
        message = in_shared_memory("identity", "x", "FP32", [SIZE // 8], "r", SIZE // 2, output=("r", SIZE // 2, SIZE // 2))
        self.stub.ModelInfer(message)
        os.ftruncate(self.region.file, 0)
        self.assertEqual(self.code_of(lambda: self.stub.ModelInfer(message)), CODE.FAILED_PRECONDITION)
        os.ftruncate(self.region.file, SIZE)
        self.unregister("r")
        self.register("r")
        self.stub.ModelInfer(message)

    def test_memory_that_is_taken_away_while_models_run(self):
        end = time.monotonic() + 3
        codes = set()

        def ask(name):
            message = in_shared_memory("identity", "x", "FP32", [SIZE // 8], name, SIZE // 2,
                                       output=(name, SIZE // 2, SIZE // 2))
            while time.monotonic() < end:
                try:
                    self.stub.ModelInfer(message)
                    codes.add(CODE.OK)
                except grpc.RpcError as error:
                    codes.add(error.code())

        threads = [threading.Thread(target=ask, args=(f"r{i % 2}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            os.ftruncate(self.region.file, SIZE)
            for i in range(2):
                self.register(f"r{i}")
            time.sleep(0.02)
            os.ftruncate(self.region.file, 0)
            for i in range(2):
                self.unregister(f"r{i}")
        for thread in threads:
            thread.join()
        self.assertLessEqual(codes, {CODE.OK, CODE.FAILED_PRECONDITION, CODE.NOT_FOUND})
        self.assertIn(CODE.OK, codes)
        self.assertIsNone(self.daemon.process.poll())

    def test_unregistered_while_a_model_runs(self):
        self.register("r")
        message = request("sleepy", [("x", "FP32", [1], None), ("rounds", "INT64", [1], struct.pack("<q", 20000))])
        place(message.inputs[0], "r", 4)
        self.region.memory[:4] = fp32(1)
        running = self.stub.ModelInfer.future(message)
        self.unregister("r")
        # Either found before the region was removed, or not found.
        try:
            self.assertEqual(running.result().raw_output_contents[0], fp32(20001))
        except grpc.RpcError as error:
            self.assertEqual(error.code(), CODE.NOT_FOUND)

    def test_off_by_default(self):
        with Daemon(self.folder.name) as daemon:
            self.assertFalse(daemon.stub.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions)
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.SystemSharedMemoryRegister(
                    pb.SystemSharedMemoryRegisterRequest(name="r", key="/r", byte_size=4))
            self.assertEqual(raised.exception.code(), CODE.UNIMPLEMENTED)
            self.assertIn("--allow-client-shm=true", raised.exception.details())
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.ModelInfer(in_shared_memory("identity", "x", "FP32", [3], "r", 12))
            self.assertEqual(raised.exception.code(), CODE.UNIMPLEMENTED)


if __name__ == "__main__":
    unittest.main()
