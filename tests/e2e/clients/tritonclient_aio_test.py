"""tritonclient's asyncio client: every call of its API."""

import asyncio
import os
import unittest

import numpy as np
import tritonclient.grpc.aio as aio
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import add_sub_inputs, tensor, strings

Client, CALLED = support.noting(aio.InferenceServerClient)


class AioTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = support.start("--model-control-mode", "explicit", "--load-model", "*", "--id", "triton")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    async def asyncSetUp(self):
        self.client = Client(self.daemon.ready["grpc"])

    async def asyncTearDown(self):
        await self.client.close()

    async def test_server_and_models(self):
        client = self.client
        self.assertTrue(await client.is_server_live())
        self.assertTrue(await client.is_server_ready())
        self.assertTrue(await client.is_model_ready("simple"))
        self.assertFalse(await client.is_model_ready("nothing"))
        self.assertEqual((await client.get_server_metadata()).name, "triton")
        self.assertEqual((await client.get_model_metadata("simple")).name, "simple")
        self.assertEqual((await client.get_model_config("simple")).config.max_batch_size, 8)
        with self.assertRaises(InferenceServerException):
            await client.get_model_metadata("wrong_model_name")

    async def test_infer(self):
        a, b, inputs = add_sub_inputs(np.int32, 2)
        results = await asyncio.gather(*(self.client.infer("simple", inputs, request_id=str(i)) for i in range(20)))
        self.assertEqual([result.get_response().id for result in results], [str(i) for i in range(20)])
        for result in results:
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        words = strings("a", "", "äöü")
        result = await self.client.infer("simple_identity", [tensor("INPUT0", words)], compression_algorithm="gzip")
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), words)

    async def test_cancellation(self):
        async with Client(self.daemon.ready["grpc"]) as client:
            task = asyncio.create_task(client.infer("simple", add_sub_inputs()[2]))
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(await client.is_server_live())

    async def test_stream(self):
        async def requests():
            for i, value in enumerate((5, 6, 7)):
                yield {"model_name": "simple_sequence", "inputs": [tensor("INPUT", np.array([[value]], np.int32))],
                       "request_id": str(i), "sequence_id": 5, "sequence_start": i == 0, "sequence_end": i == 2}
            yield {"model_name": "square_int32", "inputs": [tensor("IN", np.array([2], np.int32))], "request_id": "3"}

        got = []
        async for result, error in self.client.stream_infer(requests()):
            self.assertIsNone(error)
            name = "OUT" if result.get_response().id == "3" else "OUTPUT"
            got.append(int(result.as_numpy(name).flatten()[0]))
        self.assertEqual(sorted(got), sorted([6, 6, 7, 2, 2]))

    async def test_control(self):
        client = self.client
        await client.unload_model("simple_int8")
        self.assertFalse(await client.is_model_ready("simple_int8"))
        await client.load_model("simple_int8", config='{"max_batch_size": "4"}')
        self.assertEqual((await client.get_model_config("simple_int8")).config.max_batch_size, 4)
        await client.load_model("simple_int8")
        names = {model.name for model in (await client.get_model_repository_index()).models}
        self.assertIn("simple_int8", names)

    async def test_settings_and_statistics(self):
        client = self.client
        await client.infer("simple", add_sub_inputs()[2])
        statistics = (await client.get_inference_statistics("simple")).model_stats[0]
        self.assertGreater(statistics.inference_stats.success.count, 0)
        await client.update_trace_settings(settings={"trace_rate": "9"})
        self.assertEqual(list((await client.get_trace_settings()).settings["trace_rate"].value), ["9"])
        await client.update_log_settings({"log_warning": False})
        self.assertFalse((await client.get_log_settings()).settings["log_warning"].bool_param)
        await client.update_log_settings({"log_warning": True})

    async def test_shared_memory(self):
        client = self.client
        a, b, inputs = add_sub_inputs()
        key = f"/tensord_aio_{os.getpid()}"
        handle = shm.create_shared_memory_region("aio", key, 2 * a.nbytes)
        try:
            shm.set_shared_memory_region(handle, [a, b])
            await client.register_system_shared_memory("aio", key, 2 * a.nbytes)
            self.assertEqual(list((await client.get_system_shared_memory_status()).regions), ["aio"])
            for i, item in enumerate(inputs):
                item.set_shared_memory("aio", a.nbytes, offset=i * a.nbytes)
            result = await client.infer("simple", inputs)
            np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
            await client.unregister_system_shared_memory("aio")
        finally:
            shm.destroy_shared_memory_region(handle)
        if "cuda_shared_memory" in (await client.get_server_metadata()).extensions:
            return
        # Like Triton without a GPU: nothing to list or to unregister, which the examples do first.
        self.assertEqual(len((await client.get_cuda_shared_memory_status()).regions), 0)
        await client.unregister_cuda_shared_memory()
        with self.assertRaises(InferenceServerException) as caught:
            await client.register_cuda_shared_memory("gpu", b"0" * 64, 0, 64)
        self.assertEqual(caught.exception.status(), "StatusCode.UNIMPLEMENTED")

    async def test_zz_every_call_was_made(self):
        if "cuda_shared_memory" in (await self.client.get_server_metadata()).extensions:
            CALLED.update(name for name in support.public_methods(aio.InferenceServerClient) if "cuda" in name)
        plugins = {"plugin", "register_plugin", "unregister_plugin"}  # methods of the base class, covered in tritonclient_test.py
        self.assertEqual(support.public_methods(aio.InferenceServerClient) - CALLED - plugins, set())


if __name__ == "__main__":
    unittest.main()
