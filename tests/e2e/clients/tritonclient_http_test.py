"""NVIDIA's Python client over HTTP, tritonclient[http] from PyPI, with equivalents of Triton's example models; and the
OpenAPI document, checked by openapi-spec-validator."""

import json
import os
import unittest
import urllib.request

import numpy as np
import openapi_spec_validator
import tritonclient.http as httpclient
import tritonclient.utils.shared_memory as shm
from tritonclient.http.auth import BasicAuth
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import add_sub_terms, tensor, strings

Client, CALLED = support.noting(httpclient.InferenceServerClient)


def http_tensor(name, values, datatype=None, binary=True):
    out = tensor(name, values, datatype, kind=httpclient.InferInput)
    if not binary:
        out.set_data_from_numpy(np.asarray(values), binary_data=False)
    return out


class HttpClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = support.start("--model-control-mode", "explicit", "--load-model", "*", "--allow-http", "true",
                                   "--http-port", "0")
        cls.client = Client(cls.daemon.ready["http"], concurrency=4)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.daemon.__exit__()

    def test_a_health_and_metadata(self):
        self.assertTrue(self.client.is_server_live(headers={"x": "y"}))
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("simple", "1"))
        self.assertFalse(self.client.is_model_ready("nothing"))
        self.assertEqual(self.client.get_server_metadata()["name"], "tensord")
        self.assertEqual(self.client.get_model_metadata("simple")["inputs"][0],
                         {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]})
        self.assertEqual(self.client.get_model_config("simple")["max_batch_size"], 8)
        with self.assertRaises(InferenceServerException) as caught:
            self.client.get_model_metadata("nothing")
        self.assertIn("not found", caught.exception.message())

    def check_add_sub(self, **options):
        for binary_in in (True, False):
            for binary_out in (True, False):
                a, b = add_sub_terms()
                inputs = [http_tensor("INPUT0", a, binary=binary_in), http_tensor("INPUT1", b, binary=not binary_in)]
                outputs = [httpclient.InferRequestedOutput(name, binary_data=binary_out)
                           for name in ("OUTPUT0", "OUTPUT1")]
                result = self.client.infer("simple", inputs, outputs=outputs, request_id="5", **options)
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
                np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)
                self.assertEqual(result.get_response()["id"], "5")

    def test_infer(self):
        self.check_add_sub()
        for algorithm in ("gzip", "deflate"):
            self.check_add_sub(request_compression_algorithm=algorithm, response_compression_algorithm=algorithm)
        a, b = add_sub_terms()
        inputs = [http_tensor("INPUT0", a), http_tensor("INPUT1", b)]
        result = self.client.infer("simple", inputs)  # without outputs it requests all as bytes
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        pending = [self.client.async_infer("simple", inputs, model_version="1") for _ in range(8)]
        for call in pending:
            np.testing.assert_array_equal(call.get_result().as_numpy("OUTPUT1"), a - b)
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer("simple", inputs[:1])
        self.assertIn("expected 2 inputs but got 1", caught.exception.message())

    def test_strings_and_classes(self):
        words = strings(*range(16))
        for binary in (True, False):
            inputs = [http_tensor("INPUT0", words, binary=binary), http_tensor("INPUT1", words, binary=binary)]
            outputs = [httpclient.InferRequestedOutput("OUTPUT0", binary_data=binary)]
            result = self.client.infer("simple_string", inputs, outputs=outputs)
            self.assertEqual([int(string) for string in result.as_numpy("OUTPUT0")[0]], [2 * i for i in range(16)])
        a, b = add_sub_terms()
        result = self.client.infer("simple", [http_tensor("INPUT0", a), http_tensor("INPUT1", b)], outputs=[
            httpclient.InferRequestedOutput("OUTPUT0", class_count=2)])
        self.assertEqual([string.decode() for string in result.as_numpy("OUTPUT0")[0]], ["16:15", "15:14"])

    def test_sequences(self):
        for sequence, last in ((77, 5 + 77), ("99", 12 + 99)):
            model = "simple_dyna_sequence" if isinstance(sequence, int) else "simple_string_dyna_sequence"
            values = []
            for index, value in enumerate((3, 4, 5)):
                inputs = [http_tensor("INPUT", np.array([[value]], np.int32))]
                result = self.client.infer(model, inputs, sequence_id=sequence, sequence_start=index == 0,
                                           sequence_end=index == 2)
                values.append(int(result.as_numpy("OUTPUT").ravel()[0]))
            self.assertEqual(values[-1], last)

    def test_shared_memory(self):
        a, b = add_sub_terms()
        region = shm.create_shared_memory_region("in", f"/tensord_http_{os.getpid()}", a.nbytes + b.nbytes + a.nbytes)
        try:
            shm.set_shared_memory_region(region, [a, b])
            self.client.register_system_shared_memory("in", f"/tensord_http_{os.getpid()}", 3 * a.nbytes)
            self.assertEqual(self.client.get_system_shared_memory_status()[0]["name"], "in")
            inputs = [httpclient.InferInput("INPUT0", list(a.shape), "INT32"),
                      httpclient.InferInput("INPUT1", list(b.shape), "INT32")]
            inputs[0].set_shared_memory("in", a.nbytes)
            inputs[1].set_shared_memory("in", b.nbytes, offset=a.nbytes)
            output = httpclient.InferRequestedOutput("OUTPUT0")
            output.set_shared_memory("in", a.nbytes, offset=2 * a.nbytes)
            self.client.infer("simple", inputs, outputs=[output])
            np.testing.assert_array_equal(shm.get_contents_as_numpy(region, np.int32, a.shape, 2 * a.nbytes), a + b)
            self.client.unregister_system_shared_memory("in")
            self.client.unregister_system_shared_memory()
        finally:
            shm.destroy_shared_memory_region(region)

    def test_control(self):
        index = self.client.get_model_repository_index()
        self.assertIn("simple", [model["name"] for model in index])
        self.client.unload_model("simple_identity")
        self.assertFalse(self.client.is_model_ready("simple_identity"))
        self.client.load_model("simple_identity")
        self.assertTrue(self.client.is_model_ready("simple_identity"))
        statistics = self.client.get_inference_statistics("simple")["model_stats"][0]
        self.assertEqual(statistics["name"], "simple")
        self.assertEqual(self.client.update_trace_settings(settings={"trace_rate": "9"})["trace_rate"], "9")
        self.assertEqual(self.client.get_trace_settings("simple")["trace_rate"], "9")
        self.assertEqual(self.client.update_log_settings({"log_verbose_level": 1})["log_verbose_level"], 1)
        self.assertTrue(self.client.get_log_settings()["log_info"])

    def test_plugins_send_their_headers(self):
        self.client.register_plugin(BasicAuth("user", "password"))
        self.assertTrue(self.client.is_server_live())
        self.client.unregister_plugin()

    def test_the_document_is_valid(self):
        with urllib.request.urlopen(f"http://{self.daemon.ready['http']}/v2/openapi.json", timeout=300) as answer:
            openapi_spec_validator.validate(json.load(answer))


if __name__ == "__main__":
    unittest.main()
