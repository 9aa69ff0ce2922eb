"""Streams, classification, shared memory and every call of the service, with gRPC's Python client."""

import mmap
import os
import queue
import struct
import tempfile
import unittest
from typing import List

import grpc
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, RpcAssertions, pb, request
from tests.e2e.raw_tensors import fp32, read_strings

CODE = grpc.StatusCode


class CountDown(nn.Module):
    """Sends one response for each number below its input."""

    def forward(self, x: Tensor) -> List[Tensor]:
        out: List[Tensor] = []
        for i in range(int(x.item())):
            out.append(x - i)
        return out


COUNT_DOWN = """
max_batch_size: 0
input [ { name: "x" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_INT64 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
"""

LABELED = """
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ -1 ] label_filename: "labels.txt" } ]
"""


class Stream:
    """One ModelStreamInfer call."""

    def __init__(self, stub, metadata=()):
        self.requests = queue.Queue()
        self.call = stub.ModelStreamInfer(iter(self.requests.get, None), timeout=300, metadata=metadata)

    def send(self, *args, **kwargs):
        self.requests.put(request(*args, **kwargs))

    def read(self):
        return next(self.call)

    def rest(self):
        self.requests.put(None)
        return list(self.call)


class SharedMemory:
    """A client's region of shared memory, registered with the daemon."""

    def __init__(self, stub, size):
        self.stub = stub
        self.key = f"/tensord_e2e_{os.getpid()}"
        self.path = "/dev/shm" + self.key
        with open(self.path, "wb") as file:
            file.truncate(size)
        self.file = open(self.path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), size)
        stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="r", key=self.key, byte_size=size))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest(name="r"))
        self.map.close()
        self.file.close()
        os.unlink(self.path)


def place(parameters, offset, size):
    parameters["shared_memory_region"].string_param = "r"
    parameters["shared_memory_offset"].int64_param = offset
    parameters["shared_memory_byte_size"].int64_param = size


class InferFeaturesTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = tempfile.TemporaryDirectory()
        root = cls.repository.name
        for name in ("identity", "words", "sleepy"):
            serve_models.save(serve_models.MODELS[name](), root, name)
        for name, module, config in (("count_down", CountDown(), COUNT_DOWN), ("labeled", serve_models.Identity(), LABELED)):
            serve_models.save(module, root, name)
            with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
                file.write(config)
        with open(os.path.join(root, "labeled", "labels.txt"), "w") as file:
            file.write("cat\ndog\n")
        cls.daemon = Daemon(root, "--allow-client-shm", "true")
        cls.stub = cls.daemon.stub

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def assert_fails(self, code, details, message):
        self.assert_code(code, details, self.stub.ModelInfer, message, timeout=300)

    def test_every_call_is_answered(self):
        for name, method in pb.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name.items():
            with self.subTest(name=name):
                message = method.input_type._concrete_class()
                call = getattr(self.stub, name)
                try:
                    if method.name == "ModelStreamInfer":
                        list(call(iter([message]), timeout=300))
                    else:
                        call(message, timeout=300)
                except grpc.RpcError as error:
                    self.assertNotIn(error.code(), (CODE.DEADLINE_EXCEEDED, CODE.UNKNOWN, CODE.INTERNAL))

    def test_streams_keep_the_order_of_requests(self):
        stream = Stream(self.stub)
        stream.send("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], struct.pack("<q", 100_000))],
                    request_id="slow")
        for i in range(50):
            stream.send("identity", [("x", "FP32", [1], fp32(i))], request_id=str(i))
        answers = stream.rest()
        self.assertEqual([answer.infer_response.id for answer in answers], ["slow"] + [str(i) for i in range(50)])
        self.assertTrue(all(a.infer_response.parameters["triton_final_response"].bool_param for a in answers))
        self.assertEqual(answers[0].infer_response.raw_output_contents[0], fp32(100_000))
        self.assertEqual(stream.call.code(), CODE.OK)

    def test_decoupled_models_answer_as_often_as_they_like(self):
        stream = Stream(self.stub)
        empty_final = {"triton_enable_empty_final_response": pb.InferParameter(bool_param=True)}
        for count, parameters in ((3, {}), (0, {}), (2, empty_final), (0, empty_final)):
            stream.send("count_down", [("x", "INT64", [1], struct.pack("<q", count))], request_id=str(count),
                        parameters=parameters)
        answers = stream.rest()
        values = [struct.unpack("<q", raw)[0] for a in answers for raw in a.infer_response.raw_output_contents]
        self.assertEqual(values, [3, 2, 1, 2, 1])
        finals = [a.infer_response.parameters["triton_final_response"].bool_param for a in answers]
        # The empty response ends the request that asked for it: clients expect the final one to have no data.
        self.assertEqual(finals, [False, False, True, False, False, True, True])
        self.assertEqual(len(answers[5].infer_response.outputs), 0)
        self.assertEqual(len(answers[-1].infer_response.outputs), 0)
        self.assert_fails(CODE.UNIMPLEMENTED, "doesn't support models with decoupled transaction policy",
                          request("count_down", [("x", "INT64", [1], struct.pack("<q", 1))]))

    def test_errors_leave_the_stream_open(self):
        for metadata in ((), (("triton_grpc_error", "false"),)):
            stream = Stream(self.stub, metadata=metadata)
            stream.send("nope", [], request_id="1")
            stream.send("identity", [("x", "FP32", [1], fp32(5))], request_id="2")
            answers = stream.rest()
            self.assertEqual(answers[0].error_message, "Request for unknown model: 'nope' is not found")
            self.assertEqual([a.infer_response.id for a in answers], ["1", "2"])
            self.assertEqual(answers[1].error_message, "")

    def test_errors_end_the_stream_where_the_client_wants_that(self):
        stream = Stream(self.stub, metadata=(("triton_grpc_error", "true"),))
        stream.send("identity", [("x", "FP32", [1], fp32(5))])
        self.assertEqual(stream.read().error_message, "")
        stream.send("nope", [])
        with self.assertRaises(grpc.RpcError) as caught:
            stream.read()
        self.assertEqual(caught.exception.code(), CODE.NOT_FOUND)
        stream.requests.put(None)

    def test_a_cancelled_stream_frees_its_model(self):
        stream = Stream(self.stub)
        for _ in range(3):
            stream.send("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], struct.pack("<q", 10**12))])
        while self.daemon.metric("tensord_in_flight_requests", model="sleepy") < 3:
            pass
        stream.call.cancel()
        stream.requests.put(None)
        quick = request("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], struct.pack("<q", 1))])
        self.stub.ModelInfer(quick, timeout=300)
        self.assertEqual(self.daemon.metric("tensord_in_flight_requests", model="sleepy"), 0)

    def test_classes(self):
        message = request("labeled", [("x", "FP32", [2, 3], fp32(1, 3, 2, 9, 7, 8))], ["scores"])
        message.outputs[0].parameters["classification"].int64_param = 2
        response = self.stub.ModelInfer(message)
        self.assertEqual((response.outputs[0].datatype, list(response.outputs[0].shape)), ("BYTES", [2, 2]))
        self.assertEqual(read_strings(response.raw_output_contents[0]),
                         ["3.000000:1:dog", "2.000000:2", "9.000000:0:cat", "8.000000:2"])

    def test_shared_memory(self):
        with SharedMemory(self.stub, 8 << 20) as memory:
            count = 1 << 20
            values = torch.arange(count, dtype=torch.float32)
            memory.map[:4 * count] = values.numpy().tobytes()
            copied = self.daemon.metric("tensord_copied_bytes_total", model="identity")
            message = request("identity", [("x", "FP32", [count], None)], ["OUTPUT__0"])
            place(message.inputs[0].parameters, 0, 4 * count)
            place(message.outputs[0].parameters, 0, 4 * count)
            response = self.stub.ModelInfer(message)
            self.assertEqual(list(response.raw_output_contents), [b""])
            # A result already in place is not copied, others once.
            self.assertEqual(self.daemon.metric("tensord_copied_bytes_total", model="identity"), copied)
            place(message.outputs[0].parameters, 4 * count, 4 * count)
            self.stub.ModelInfer(message)
            self.assertEqual(memory.map[4 * count:], memory.map[:4 * count])
            self.assertEqual(self.daemon.metric("tensord_copied_bytes_total", model="identity"), copied + 4 * count)
            # Into the response.
            del message.outputs[:]
            self.assertEqual(self.stub.ModelInfer(message).raw_output_contents[0], memory.map[:4 * count])

    def test_shared_memory_of_strings(self):
        with SharedMemory(self.stub, 4096) as memory:
            memory.map[:11] = struct.pack("<I", 2) + b"ab" + struct.pack("<I", 1) + b"c"
            message = request("words", [("words", "BYTES", [2], None)], ["OUTPUT__0"])
            place(message.inputs[0].parameters, 0, 11)
            place(message.outputs[0].parameters, 100, 100)
            self.stub.ModelInfer(message)
            self.assertEqual(read_strings(memory.map[100:114]), ["abab", "cc"])

    def test_bad_shared_memory(self):
        message = request("identity", [("x", "FP32", [4], None)], ["OUTPUT__0"])
        place(message.inputs[0].parameters, 0, 16)
        self.assert_fails(CODE.NOT_FOUND, "Unable to find shared memory region: 'r'", message)
        with SharedMemory(self.stub, 4096) as memory:
            for offset, size, expected in ((4096, 16, "Invalid offset"), (4088, 16, "Invalid offset + byte size"),
                                       (0, 12, "Expected 16, got 12")):
                place(message.inputs[0].parameters, offset, size)
                self.assert_fails(CODE.INVALID_ARGUMENT, expected, message)
            place(message.inputs[0].parameters, 0, 16)
            place(message.outputs[0].parameters, 0, 8)
            self.assert_fails(CODE.INTERNAL, "should be at least 16 bytes", message)
            os.truncate(memory.path, 0)
            place(message.outputs[0].parameters, 32, 16)
            self.assert_fails(CODE.FAILED_PRECONDITION, "was taken away", message)


if __name__ == "__main__":
    unittest.main()
