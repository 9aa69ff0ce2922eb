"""tritonclient's calls for GPU memory, with a fake driver (tests/server/fake_cuda) whose memory is files in
/dev/shm."""

import base64
import mmap
import os
import unittest

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import add_sub_inputs, strings

BLOCK_BYTES = 4096


class Allocation:
    """A client's allocation on the GPU."""

    def __init__(self, name):
        self.path = f"/dev/shm/tensord_{name}_{os.getpid()}"
        self.file = open(self.path, "w+b")
        self.file.truncate(BLOCK_BYTES)
        self.bytes = mmap.mmap(self.file.fileno(), BLOCK_BYTES)

    def raw_handle(self):
        """Like tritonclient.utils.cuda_shared_memory.get_raw_handle."""
        return base64.b64encode(f"/{os.path.basename(self.path)}".encode().ljust(64, b"\0"))

    def array(self, dtype, shape, offset=0):
        return np.frombuffer(self.bytes, dtype, int(np.prod(shape)), offset).reshape(shape)

    def take_away(self):
        self.file.truncate(0)

    def remove(self):
        self.file.close()
        os.unlink(self.path)


class CudaMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = support.start("--model-control-mode", "explicit", "--load-model", "*")
        cls.client = grpcclient.InferenceServerClient(cls.daemon.ready["grpc"])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.daemon.__exit__()

    def region(self, name):
        allocation = Allocation(name)
        self.addCleanup(allocation.remove)
        self.addCleanup(self.client.unregister_cuda_shared_memory)
        self.client.register_cuda_shared_memory(name, allocation.raw_handle(), 0, BLOCK_BYTES)
        return allocation

    def assert_fails(self, code, message, call, *args):
        with self.assertRaises(InferenceServerException) as caught:
            call(*args)
        self.assertIn(message, caught.exception.message())
        self.assertEqual(caught.exception.status(), f"StatusCode.{code}")

    def test_inputs_and_outputs(self):
        a, b, inputs = add_sub_inputs()
        memory = self.region("gpu")
        memory.bytes[:a.nbytes] = a.tobytes()
        inputs[0] = grpcclient.InferInput("INPUT0", [1, 16], "INT32")
        inputs[0].set_shared_memory("gpu", a.nbytes)  # the other one is sent with the request
        outputs = [grpcclient.InferRequestedOutput(f"OUTPUT{i}") for i in (0, 1)]
        outputs[1].set_shared_memory("gpu", a.nbytes, offset=1024)
        for _ in range(3):
            result = self.client.infer("simple", inputs, outputs=outputs)
            self.assertEqual([len(raw) for raw in result.get_response().raw_output_contents], [a.nbytes, 0])
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
            np.testing.assert_array_equal(memory.array(np.int32, [1, 16], 1024), a - b)

    def test_floats_that_are_answered_where_they_lie(self):
        memory = self.region("gpu")
        x = np.arange(100, dtype=np.float32)
        memory.bytes[4:4 + x.nbytes] = x.tobytes()
        item = grpcclient.InferInput("INPUT0", [1, 100], "FP32")
        item.set_shared_memory("gpu", x.nbytes, offset=4)
        output = grpcclient.InferRequestedOutput("OUTPUT__0")
        output.set_shared_memory("gpu", x.nbytes, offset=8)  # over the input
        self.client.infer("identity_fp32", [item], outputs=[output])
        np.testing.assert_array_equal(memory.array(np.float32, [100], 8), x)
        result = self.client.infer("identity_fp32", [item])
        self.assertEqual(result.as_numpy("OUTPUT0")[0, 1], x[0])

    def test_strings(self):
        values = [strings(*range(16)), strings(*[1] * 16)]
        packed = [b"".join(len(string).to_bytes(4, "little") + string for string in value[0]) for value in values]
        memory, inputs = self.region("gpu"), []
        for i, data in enumerate(packed):
            memory.bytes[1000 * i:1000 * i + len(data)] = data
            inputs.append(grpcclient.InferInput(f"INPUT{i}", [1, 16], "BYTES"))
            inputs[i].set_shared_memory("gpu", len(data), offset=1000 * i)
        output = grpcclient.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("gpu", 1000, offset=2000)
        self.client.infer("simple_string", inputs, outputs=[output])
        self.assertEqual(memory.bytes[2000:2005], b"\1\0\0\0" + b"1")

    def test_status(self):
        self.assertIn("cuda_shared_memory", self.client.get_server_metadata().extensions)
        self.region("first")
        self.region("second")
        regions = self.client.get_cuda_shared_memory_status().regions
        self.assertEqual({name: (region.device_id, region.byte_size) for name, region in regions.items()},
                         {"first": (0, BLOCK_BYTES), "second": (0, BLOCK_BYTES)})
        self.assertEqual(len(self.client.get_system_shared_memory_status().regions), 0)
        self.client.unregister_system_shared_memory()
        self.client.unregister_cuda_shared_memory("first")
        self.assertEqual(list(self.client.get_cuda_shared_memory_status(as_json=True)["regions"]), ["second"])
        self.assert_fails("NOT_FOUND", "first", self.client.get_cuda_shared_memory_status, "first")

    def test_errors(self):
        memory = self.region("small")
        handle, register = memory.raw_handle(), self.client.register_cuda_shared_memory
        self.assert_fails("ALREADY_EXISTS", "small", register, "small", handle, 0, 64)
        self.assert_fails("INVALID_ARGUMENT", "exceeds the 4096 bytes", register, "large", handle, 0, 4097)
        self.assert_fails("INVALID_ARGUMENT", "no GPU 2", register, "far", handle, 2, 64)
        self.assert_fails("INVALID_ARGUMENT", "64 bytes", register, "short", base64.b64encode(b"x"), 0, 64)
        item = grpcclient.InferInput("INPUT0", [1, 16], "FP32")
        for code, message, place in (("NOT_FOUND", "Unable to find", ("nothing", 64, 0)),
                                  ("INVALID_ARGUMENT", "Invalid offset", ("small", 64, 4096)),
                                  ("INVALID_ARGUMENT", "Invalid offset + byte size", ("small", 64, 4040))):
            item.set_shared_memory(*place)
            self.assert_fails(code, message, self.client.infer, "identity_fp32", [item])

    def test_memory_that_is_gone(self):
        memory = self.region("gone")
        item = grpcclient.InferInput("INPUT0", [1, 16], "FP32")
        item.set_shared_memory("gone", 64)
        self.client.infer("identity_fp32", [item])
        memory.take_away()
        self.assert_fails("FAILED_PRECONDITION", "'gone'", self.client.infer, "identity_fp32", [item])
        self.assertTrue(self.client.is_server_ready())


if __name__ == "__main__":
    unittest.main(verbosity=2)
