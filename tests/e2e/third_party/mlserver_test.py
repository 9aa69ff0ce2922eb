"""MLServer's codecs, types and gRPC messages, as programs use them that talk to any server of the protocol."""

import unittest

import grpc
import numpy as np
import pandas as pd
import requests
from mlserver import types
from mlserver.codecs import NumpyCodec, NumpyRequestCodec, PandasCodec, StringCodec, StringRequestCodec
from mlserver.grpc import converters, dataplane_pb2, dataplane_pb2_grpc

from tests.e2e.third_party.server import ServerTest

ROWS = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
SUMS = [[6], [15]]


class MLServerTest(ServerTest):
    def metadata(self, model):
        answer = requests.get(f"http://{self.http}/v2/models/{model}", timeout=60)
        return types.MetadataModelResponse.model_validate(answer.json())

    def infer(self, model, request):
        answer = requests.post(f"http://{self.http}/v2/models/{model}/infer", json=request.model_dump(), timeout=60)
        self.assertEqual(answer.status_code, 200, answer.text)
        return types.InferenceResponse.model_validate(answer.json())

    def test_metadata_before_any_request(self):
        """Its types refuse a tensor without a datatype."""
        for model, inputs, outputs in (("image", ["FP32"], ["FP32"]), ("words", ["INT64"], ["FP32"]), ("upper", ["BYTES"], ["BYTES"]),
                                       ("linear", ["FP32"], ["FP32"]), ("echo", ["BYTES"], ["BYTES"])):
            with self.subTest(model=model):
                metadata = self.metadata(model)
                self.assertEqual([tensor.datatype for tensor in metadata.inputs], inputs)
                self.assertEqual([tensor.datatype for tensor in metadata.outputs], outputs)
        self.assertEqual(self.metadata("image").inputs[0].shape, [-1, 3, -1, -1])
        self.assertEqual(self.metadata("image").outputs[0].shape, [-1, 2])

    def test_arrays(self):
        request = types.InferenceRequest(inputs=[NumpyCodec.encode_input("x", ROWS)])
        np.testing.assert_array_equal(NumpyCodec.decode_output(self.infer("linear", request).outputs[0]), SUMS)
        request = NumpyRequestCodec.encode_request(ROWS)
        request.inputs[0].name = "x"
        np.testing.assert_array_equal(NumpyRequestCodec.decode_response(self.infer("linear", request)), SUMS)

    def test_frames(self):
        request = PandasCodec.encode_request(pd.DataFrame({"ids": [3, 4]}))
        np.testing.assert_array_equal(np.reshape(self.infer("words", request).outputs[0].data.root, (2, 2)), [[6, 7], [8, 9]])

    def test_texts(self):
        request = types.InferenceRequest(inputs=[StringCodec.encode_input("texts", ["one", "ä"], use_bytes=False)])
        request.inputs[0].shape = [2]  # it sends a second dimension of 1
        # TorchScript's upper() is for ASCII.
        self.assertEqual(StringCodec.decode_output(self.infer("upper", request).outputs[0]), ["ONE", "ä"])
        self.assertEqual(StringRequestCodec.decode_response(self.infer("upper", request)), ["ONE", "ä"])

    def test_over_grpc(self):
        with grpc.insecure_channel(self.grpc) as channel:
            stub = dataplane_pb2_grpc.GRPCInferenceServiceStub(channel)
            metadata = converters.ModelMetadataResponseConverter.to_types(
                stub.ModelMetadata(dataplane_pb2.ModelMetadataRequest(name="image")))
            self.assertEqual(metadata.inputs[0].datatype, "FP32")
            for use_raw in (False, True):
                request = types.InferenceRequest(id="7", inputs=[NumpyCodec.encode_input("x", ROWS)])
                message = converters.ModelInferRequestConverter.from_types(request, "linear", None, use_raw)
                answer = converters.ModelInferResponseConverter.to_types(stub.ModelInfer(message))
                self.assertEqual(answer.id, "7")
                np.testing.assert_array_equal(NumpyCodec.decode_output(answer.outputs[0]), SUMS)


if __name__ == "__main__":
    unittest.main()
