"""Clients for Triton: nvidia-pytriton's, tritony, llama-index, pyotritonclient and the client of Model Analyzer."""

import asyncio
import unittest
import warnings

import numpy as np
import pyotritonclient
import tritonclient.grpc as grpcclient
from llama_index.llms.nvidia_triton import NvidiaTriton
from model_analyzer.triton.client.grpc_client import TritonGRPCClient
from model_analyzer.triton.client.http_client import TritonHTTPClient
from pytriton.client import (AsyncioDecoupledModelClient, AsyncioModelClient, DecoupledModelClient, FuturesModelClient,
                             ModelClient)
from tritony import InferenceClient

from tests.e2e.third_party.chat import CHAT_INPUTS
from tests.e2e.third_party.server import ServerTest

ROWS = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
SUMS = [[6], [15]]
IMAGE = np.ones((1, 3, 4, 4), np.float32)
NUMPY = {"STRING": np.object_, "INT32": np.int32, "FP32": np.float32, "UINT64": np.uint64, "BOOL": np.bool_}


def chat_inputs(prompt, max_tokens):
    values = {"text_input": prompt.encode(), "max_tokens": max_tokens}
    return {name: np.array([[values.get(name, 1)]], NUMPY[datatype]) for name, datatype in CHAT_INPUTS}


def ask_linear(address):
    """The first answer, of which the daemon learns how many dimensions the input has."""
    x = grpcclient.InferInput("x", list(ROWS.shape), "FP32")
    x.set_data_from_numpy(ROWS)
    with grpcclient.InferenceServerClient(address) as client:
        client.infer("linear", [x])


class PyTritonTest(ServerTest):
    """It needs types and dimensions of all inputs and outputs."""

    def urls(self):
        return f"grpc://{self.grpc}", f"http://{self.http}"

    def test_image_without_a_configuration(self):
        for url in self.urls():
            with self.subTest(url=url), ModelClient(url, "image") as client:
                self.assertEqual([(spec.name, spec.shape, spec.dtype) for spec in client.model_config.inputs],
                                 [("pixels", (-1, 3, -1, -1), np.float32)])
                self.assertEqual([(spec.name, spec.dtype) for spec in client.model_config.outputs], [("OUTPUT__0", np.float32)])
                np.testing.assert_array_equal(client.infer_sample(IMAGE)["OUTPUT__0"], [[3, 3]])
                np.testing.assert_array_equal(client.infer_sample(pixels=IMAGE)["OUTPUT__0"], [[3, 3]])

    def test_linear_after_the_first_answer(self):
        ask_linear(self.grpc)
        for url in self.urls():
            with self.subTest(url=url), ModelClient(url, "linear") as client:
                np.testing.assert_array_equal(client.infer_sample(ROWS)["y"], SUMS)
        # It loses the scheme of its address, and then takes it for HTTP.
        with FuturesModelClient(f"http://{self.http}", "linear", max_workers=2) as futures:
            waiting = [futures.infer_sample(x=ROWS * factor) for factor in range(5)]
            for factor, future in enumerate(waiting):
                np.testing.assert_array_equal(future.result()["y"], np.multiply(SUMS, factor))

    def test_asyncio(self):
        async def ask(url):
            async with AsyncioModelClient(url, "image") as client:
                return await client.infer_sample(IMAGE)

        for url in self.urls():
            np.testing.assert_array_equal(asyncio.run(ask(url))["OUTPUT__0"], [[3, 3]])

    def test_a_decoupled_model(self):
        with DecoupledModelClient(f"grpc://{self.grpc}", "chat") as client:
            words = [answer["text_output"].tolist() for answer in client.infer_sample(**chat_inputs("a b c d", 3))]
        self.assertEqual(words, [[b"A "], [b"B "], [b"C "]])

        async def ask():
            async with AsyncioDecoupledModelClient(f"grpc://{self.grpc}", "chat") as client:
                return [answer["text_output"].tolist() async for answer in client.infer_sample(**chat_inputs("a b c d", 3))]

        self.assertEqual(asyncio.run(ask()), words)


class TritonyTest(ServerTest):
    def test_both_protocols(self):
        ask_linear(self.grpc)
        for protocol, url in (("grpc", self.grpc), ("http", self.http)):
            with self.subTest(protocol=protocol):
                client = InferenceClient.create_with("linear", url, protocol=protocol)
                for _ in range(5):  # it sends the timeout of 30 s as 30 µs
                    np.testing.assert_array_equal(np.reshape(client(ROWS), (-1,)), [6, 15])


class LlamaIndexTest(ServerTest):
    def test_completions(self):
        model = NvidiaTriton(server_url=self.grpc, model="x", tokens=10)
        model.model_name = "chat"
        self.assertEqual(model.complete("the tallest mountain").text, "THE TALLEST MOUNTAIN ")
        self.assertEqual([part.delta for part in model.stream_complete("one two")], ["ONE ", "TWO "])


class PyodideClientTest(ServerTest):
    def test_inference(self):
        answers = asyncio.run(pyotritonclient.execute([ROWS], server_url=f"http://{self.http}", model_name="linear"))
        np.testing.assert_array_equal(answers["y"], SUMS)


class ModelAnalyzerTest(ServerTest):
    flags = ("--model-control-mode", "explicit", "--load-model", "linear")

    def test_its_clients(self):
        for kind, address in ((TritonGRPCClient, self.grpc), (TritonHTTPClient, self.http)):
            with self.subTest(kind=kind.__name__):
                client = kind(address)
                client.wait_for_server_ready(num_retries=3, sleep_time=0)
                self.assertIsNone(client.load_model("image"))
                self.assertIsNone(client.wait_for_model_ready("image", num_retries=3, sleep_time=0))
                self.assertEqual(client.get_model_config("image", num_retries=1)["input"][0]["data_type"], "TYPE_FP32")
                self.assertTrue(client.is_model_ready("image"))
                self.assertIsNone(client.load_model("image", config_str='{"instance_group": [{"count": 2, "kind": "KIND_CPU"}]}'))
                config = client.get_model_config("image", num_retries=1)
                self.assertEqual([group["count"] for group in config["instance_group"]], [2])
                self.assertEqual(client.load_model("nothing"), -1)
                self.assertIsNone(client.unload_model("image"))
                self.assertIn("linear", [model["name"] for model in client.get_model_repository_index()])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
