"""The clients open-inference-openapi and open-inference-grpc, plain HTTP clients, and one of another protocol."""

import asyncio
import gzip
import json
import unittest

import aiohttp
import grpc
import httpx
import ovmsclient
import requests
from open_inference.grpc import protocol
from open_inference.grpc.service import GRPCInferenceServiceStub
from open_inference.openapi.client import AsyncOpenInferenceClient, OpenInferenceClient
from open_inference.openapi.errors import BadRequestError, ServiceUnavailableError
from open_inference.openapi.types import InferenceRequest

from tests.e2e.third_party.server import ServerTest

ROWS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
BODY = {"id": "7", "inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": ROWS}]}


class OpenApiClientTest(ServerTest):
    def test_calls(self):
        client = OpenInferenceClient(base_url=f"http://{self.http}")
        client.check_server_liveness()
        client.check_server_readiness()
        client.check_model_readiness("linear")
        client.check_model_version_readiness("linear", "1")
        self.assertEqual(client.read_server_metadata().name, "tensord")
        self.assertEqual(client.read_model_metadata("image").inputs[0].shape, [-1, 3, -1, -1])
        self.assertEqual(client.read_model_version_metadata("image", "1").versions, ["1"])
        answer = client.model_infer("linear", request=InferenceRequest.parse_obj(BODY))
        self.assertEqual((answer.id, answer.model_name, answer.outputs[0].data.__root__), ("7", "linear", [6, 15]))
        client.model_version_infer("linear", "1", request=InferenceRequest.parse_obj(BODY))

    def test_errors(self):
        client = OpenInferenceClient(base_url=f"http://{self.http}")
        with self.assertRaises(ServiceUnavailableError):
            client.check_model_readiness("nothing")
        with self.assertRaises(BadRequestError) as caught:
            client.model_infer("linear", request=InferenceRequest.parse_obj(BODY | {"inputs": [BODY["inputs"][0] | {"name": "z"}]}))
        self.assertIn("'x'", str(caught.exception.body))

    def test_asyncio(self):
        async def ask():
            client = AsyncOpenInferenceClient(base_url=f"http://{self.http}")
            request = InferenceRequest.parse_obj(BODY)
            return await asyncio.gather(*(client.model_infer("linear", request=request) for _ in range(20)))

        self.assertEqual([answer.outputs[0].data.__root__ for answer in asyncio.run(ask())], [[6, 15]] * 20)


class GrpcClientTest(ServerTest):
    def test_calls(self):
        with grpc.insecure_channel(self.grpc) as channel:
            stub = GRPCInferenceServiceStub(channel)
            self.assertTrue(stub.ServerLive(protocol.ServerLiveRequest()).live)
            self.assertTrue(stub.ServerReady(protocol.ServerReadyRequest()).ready)
            self.assertTrue(stub.ModelReady(protocol.ModelReadyRequest(name="linear")).ready)
            self.assertEqual(stub.ServerMetadata(protocol.ServerMetadataRequest()).name, "tensord")
            metadata = stub.ModelMetadata(protocol.ModelMetadataRequest(name="image"))
            self.assertEqual((metadata.inputs[0].datatype, list(metadata.inputs[0].shape)), ("FP32", [-1, 3, -1, -1]))
            request = protocol.ModelInferRequest(model_name="linear", id="7")
            request.inputs.add(name="x", datatype="FP32", shape=[2, 3]).contents.fp32_contents.extend(ROWS)
            answer = stub.ModelInfer(request)
            self.assertEqual(answer.id, "7")
            self.assertEqual(len(answer.raw_output_contents[0]), 8)


class PlainHttpTest(ServerTest):
    def url(self, path):
        return f"http://{self.http}/v2/models/{path}"

    def test_requests(self):
        with requests.Session() as session:
            for _ in range(3):
                answer = session.post(self.url("linear/infer"), json=BODY, timeout=60)
                self.assertEqual(answer.json()["outputs"][0]["data"], [6, 15])
            packed = session.post(self.url("linear/infer"), data=gzip.compress(json.dumps(BODY).encode()), timeout=60,
                                  headers={"Content-Encoding": "gzip"})
            self.assertEqual(packed.json()["outputs"][0]["data"], [6, 15])
            chunks = session.post(self.url("linear/infer"), data=iter([json.dumps(BODY).encode()]), timeout=60)
            self.assertEqual(chunks.json()["outputs"][0]["data"], [6, 15])
            wrong = session.post(self.url("linear/infer"), json=BODY | {"inputs": [BODY["inputs"][0] | {"shape": [2, 4]}]}, timeout=60)
            self.assertEqual(wrong.status_code, 400)
            self.assertIn("'data'", wrong.json()["error"])
            self.assertEqual(session.get(self.url("nothing"), timeout=60).status_code, 404)
            self.assertEqual(session.options(self.url("linear/infer"), timeout=60).status_code // 100, 4)

    def test_httpx(self):
        async def ask():
            async with httpx.AsyncClient(timeout=60) as client:
                return await asyncio.gather(*(client.post(self.url("linear/infer"), json=BODY) for _ in range(20)))

        self.assertEqual([answer.json()["outputs"][0]["data"] for answer in asyncio.run(ask())], [[6, 15]] * 20)
        with httpx.Client(timeout=60) as client:
            answer = client.post(self.url("echo/generate"), json={"text_input": "hi"})
            self.assertEqual(answer.json()["text_output"], "answer: hi")

    def test_aiohttp(self):
        async def ask():
            async with aiohttp.ClientSession() as session:
                async with session.post(self.url("linear/infer"), json=BODY) as answer:
                    return await answer.json()

        self.assertEqual(asyncio.run(ask())["outputs"][0]["data"], [6, 15])


class OtherProtocolTest(ServerTest):
    """TensorFlow Serving's calls are refused by what this server speaks."""

    def test_over_grpc(self):
        client = ovmsclient.make_grpc_client(self.grpc)
        with self.assertRaises(Exception) as caught:
            client.get_model_status("linear")
        self.assertIn("inference.GRPCInferenceService", str(caught.exception))

    def test_over_http(self):
        client = ovmsclient.make_http_client(self.http)
        with self.assertRaises(Exception) as caught:
            client.get_model_status("linear")
        self.assertIn("/v2", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
