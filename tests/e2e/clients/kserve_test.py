"""KServe's own client for the open inference protocol."""

import unittest

import numpy as np
from kserve import InferInput, InferRequest, InferenceGRPCClient

from tests.e2e.clients import example_server


class KServeTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = example_server.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    async def asyncSetUp(self):
        self.client = InferenceGRPCClient(self.daemon.ready["grpc"])

    async def asyncTearDown(self):
        await self.client.close()

    async def test_health(self):
        self.assertTrue(await self.client.is_server_live())
        self.assertTrue(await self.client.is_server_ready())
        self.assertTrue(await self.client.is_model_ready("simple"))
        self.assertFalse(await self.client.is_model_ready("nothing"))

    def request(self, model, *arrays):
        inputs = []
        for i, values in enumerate(arrays):
            inputs.append(InferInput(f"INPUT{i}", list(values.shape), "BYTES" if values.dtype == np.object_ else "INT32"))
            inputs[-1].set_data_from_numpy(values, binary_data=self.is_binary)
        return InferRequest(model_name=model, infer_inputs=inputs, request_id="7")

    async def check_models(self, is_binary):
        self.is_binary = is_binary
        a, b = example_server.add_sub_terms()
        response = await self.client.infer(self.request("simple", a, b))
        self.assertEqual((response.id, response.model_name, response.model_version), ("7", "simple", "1"))
        outputs = {output.name: output.as_numpy() for output in response.outputs}
        np.testing.assert_array_equal(outputs["OUTPUT0"], a + b)
        np.testing.assert_array_equal(outputs["OUTPUT1"], a - b)
        words = example_server.strings("a", "", "äöü")
        response = await self.client.infer(self.request("simple_identity", words))
        self.assertEqual([bytes(word) if not isinstance(word, str) else word.encode()
                          for word in response.outputs[0].as_numpy().flatten()], list(words.flatten()))

    async def test_raw_contents(self):
        await self.check_models(is_binary=True)

    async def test_typed_contents(self):
        await self.check_models(is_binary=False)

    async def test_errors(self):
        self.is_binary = True
        a, b = example_server.add_sub_terms()
        with self.assertRaises(Exception) as caught:
            await self.client.infer(self.request("nothing", a, b))
        self.assertIn("NOT_FOUND", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
