"""NVIDIA's Python client, tritonclient[grpc] from PyPI: every call of its API except streams, with equivalents of
Triton's example models."""

import os
import threading
import unittest

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.utils.shared_memory as shm
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.grpc.auth import BasicAuth
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import WAIT_S, add_sub_inputs, tensor, strings

EIGHT = {"simple", "simple_int8", "simple_string", "simple_identity", "simple_sequence", "simple_dyna_sequence",
         "simple_string_dyna_sequence", "labelled_identity"}
Client, CALLED = support.noting(grpcclient.InferenceServerClient)


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = support.start("--model-control-mode", "explicit", "--load-model", "*")
        cls.client = Client(cls.daemon.ready["grpc"])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.daemon.__exit__()

    def assert_fails(self, code, message, call, *args, **kwargs):
        with self.assertRaises(InferenceServerException) as caught:
            call(*args, **kwargs)
        self.assertIn(message, caught.exception.message())
        self.assertEqual(caught.exception.status(), f"StatusCode.{code}")


class ServerTest(ClientTest):
    def test_health(self):
        self.assertTrue(self.client.is_server_live(headers={"x": "y"}, client_timeout=WAIT_S))
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("simple"))
        self.assertTrue(self.client.is_model_ready("simple", "1"))
        self.assertFalse(self.client.is_model_ready("simple", "9"))
        self.assertFalse(self.client.is_model_ready("nothing"))

    def test_server_metadata(self):
        metadata = self.client.get_server_metadata()
        self.assertEqual(metadata.name, "tensord")
        for extension in ("classification", "sequence", "model_repository", "model_repository(unload_dependents)",
                          "schedule_policy", "model_configuration", "system_shared_memory", "binary_tensor_data",
                          "parameters", "statistics", "trace", "logging"):
            self.assertIn(extension, metadata.extensions)
        self.assertEqual(self.client.get_server_metadata(as_json=True)["name"], "tensord")

    def test_model_metadata_and_config(self):
        metadata = self.client.get_model_metadata("simple", as_json=True)
        self.assertEqual(metadata["name"], "simple")
        self.assertEqual(metadata["versions"], ["1"])
        self.assertEqual(metadata["platform"], "pytorch_libtorch")
        inputs = [{"name": f"INPUT{i}", "datatype": "INT32", "shape": ["-1", "16"]} for i in (0, 1)]
        outputs = [{"name": f"OUTPUT{i}", "datatype": "INT32", "shape": ["-1", "16"]} for i in (0, 1)]
        self.assertEqual(metadata["inputs"], inputs)
        self.assertEqual(metadata["outputs"], outputs)
        config = self.client.get_model_config("simple").config
        self.assertEqual((config.name, config.max_batch_size), ("simple", 8))
        self.assertEqual([(i.name, list(i.dims)) for i in config.input], [("INPUT0", [16]), ("INPUT1", [16])])
        sequence = self.client.get_model_config("simple_dyna_sequence").config.sequence_batching
        self.assertEqual(sequence.oldest.max_candidate_sequences, 1024)
        self.assert_fails("NOT_FOUND", "unknown model", self.client.get_model_metadata, "nothing")
        self.assert_fails("NOT_FOUND", "unknown model", self.client.get_model_config, "nothing")

    def test_repository_index(self):
        models = {model.name: model for model in self.client.get_model_repository_index().models}
        self.assertLessEqual(EIGHT, set(models))
        self.assertEqual((models["simple_string"].version, models["simple_string"].state), ("1", "READY"))

    def test_statistics(self):
        before = self.client.get_inference_statistics("simple_int8").model_stats[0]
        for batch in (1, 3):
            self.client.infer("simple_int8", add_sub_inputs(np.int8, batch)[2])
        self.assert_fails("INVALID_ARGUMENT", "", self.client.infer, "simple_int8", add_sub_inputs(np.int8, 9)[2])
        after = self.client.get_inference_statistics("simple_int8", "1").model_stats[0]
        self.assertEqual((after.name, after.version), ("simple_int8", "1"))
        self.assertEqual(after.inference_count - before.inference_count, 4)
        self.assertEqual(after.execution_count - before.execution_count, 2)
        self.assertEqual(after.inference_stats.success.count - before.inference_stats.success.count, 2)
        self.assertGreater(after.inference_stats.compute_infer.ns, before.inference_stats.compute_infer.ns)
        self.assertLessEqual({1, 3}, {batch.batch_size for batch in after.batch_stats})
        self.assertGreater(after.last_inference, 10**12)
        everything = self.client.get_inference_statistics(as_json=True)["model_stats"]
        self.assertLessEqual(EIGHT, {model["name"] for model in everything})
        self.assert_fails("NOT_FOUND", "", self.client.get_inference_statistics, "nothing")

    def test_trace_settings(self):
        self.client.update_trace_settings(settings={"trace_rate": "7", "trace_level": ["TIMESTAMPS"]})
        settings = self.client.get_trace_settings().settings
        self.assertEqual(list(settings["trace_rate"].value), ["7"])
        self.assertEqual(list(settings["trace_level"].value), ["TIMESTAMPS"])
        self.client.update_trace_settings("simple", {"trace_rate": "5"})
        self.assertEqual(self.client.get_trace_settings("simple", as_json=True)["settings"]["trace_rate"]["value"], ["5"])
        self.client.update_trace_settings("simple", {"trace_rate": None})
        self.assertEqual(list(self.client.get_trace_settings("simple").settings["trace_rate"].value), ["7"])
        self.client.update_trace_settings(settings={"trace_rate": None, "trace_level": None})
        self.assertEqual(list(self.client.get_trace_settings().settings["trace_rate"].value), ["1000"])
        self.assert_fails("INVALID_ARGUMENT", "unknown model", self.client.get_trace_settings, "nothing")
        self.assert_fails("INVALID_ARGUMENT", "", self.client.update_trace_settings, settings={"trace_rate": "x"})

    def test_log_settings(self):
        before = self.client.get_log_settings(as_json=True)["settings"]
        for key in ("log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"):
            self.assertIn(key, before)
        changed = self.client.update_log_settings({"log_verbose_level": 1, "log_info": False})
        self.assertEqual(changed.settings["log_verbose_level"].uint32_param, 1)
        settings = self.client.get_log_settings().settings
        self.assertFalse(settings["log_info"].bool_param)
        self.client.update_log_settings({"log_verbose_level": 0, "log_info": True})
        self.assert_fails("INVALID_ARGUMENT", "", self.client.update_log_settings, {"log_nothing": True})

    def test_plugin(self):
        plain = grpcclient.InferenceServerClient(self.daemon.ready["grpc"])
        self.addCleanup(plain.close)
        for client in (self.client, plain):
            client.register_plugin(BasicAuth("user", "word"))
            self.assertIsNotNone(client.plugin())
            self.assertTrue(client.is_server_live())
            client.unregister_plugin()


class InferTest(ClientTest):
    def check_sums(self, result, a, b):
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)

    def test_infer(self):
        for model, dtype in (("simple", np.int32), ("simple_int8", np.int8), ("simple_ensemble", np.int32)):
            for batch in (1, 8):
                a, b, inputs = add_sub_inputs(dtype, batch)
                result = self.client.infer(model, inputs, request_id="one")
                self.assertEqual(result.get_response().id, "one")
                self.assertEqual(result.get_output("OUTPUT1").name, "OUTPUT1")
                terms = (a + b, a - b) if model == "simple_ensemble" else (a, b)  # the ensemble is simple, applied twice
                self.check_sums(result, *terms)

    def test_requested_outputs(self):
        a, b, inputs = add_sub_inputs()
        result = self.client.infer("simple", inputs, outputs=[grpcclient.InferRequestedOutput("OUTPUT1")])
        self.assertIsNone(result.as_numpy("OUTPUT0"))
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)

    def test_async_infer(self):
        answers = support.Answers()
        a, b, inputs = add_sub_inputs()
        calls = [self.client.async_infer("simple", inputs, answers, request_id=str(i)) for i in range(20)]
        self.assertEqual(len(calls), 20)
        seen = set()
        for _ in range(20):
            result = answers.take_result()
            self.check_sums(result, a, b)
            seen.add(result.get_response().id)
        self.assertEqual(len(seen), 20)

    def test_async_infer_that_is_cancelled(self):
        answers = support.Answers()
        _, _, inputs = add_sub_inputs()
        for _ in range(20):
            self.client.async_infer("simple", inputs, answers).cancel()
        errors = [error for _, error in (answers.take() for _ in range(20)) if error]
        self.assertEqual({error.status() for error in errors} - {"StatusCode.CANCELLED"}, set())
        self.assertTrue(answers.queue.empty())

    def test_strings(self):
        a, b = strings(*range(16)), strings(*[1] * 16)
        result = self.client.infer("simple_string", [tensor("INPUT0", a), tensor("INPUT1", b)])
        self.assertEqual([int(string) for string in result.as_numpy("OUTPUT0")[0]], [i + 1 for i in range(16)])
        self.assertEqual([int(string) for string in result.as_numpy("OUTPUT1")[0]], [i - 1 for i in range(16)])
        odd = np.array([["", "a\0b", "äöü", "x" * 70000]], dtype=np.object_)
        odd = np.array([[string.encode() for string in odd[0]]], dtype=np.object_)
        np.testing.assert_array_equal(
            self.client.infer("simple_identity", [tensor("INPUT0", odd)]).as_numpy("OUTPUT0"), odd)
        many = np.array([[b"%d" % (i * j) for j in range(5)] for i in range(8)], dtype=np.object_)
        np.testing.assert_array_equal(
            self.client.infer("simple_identity", [tensor("INPUT0", many)]).as_numpy("OUTPUT0"), many)

    def test_reused_objects(self):
        a, b, inputs = add_sub_inputs()
        self.check_sums(self.client.infer("simple", inputs), a, b)
        inputs[0].set_data_from_numpy(a * 3)
        self.check_sums(self.client.infer("simple", inputs), a * 3, b)

    def test_explicit_contents(self):
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self.client._channel)
        for model, datatype, field in (("simple", "INT32", "int_contents"), ("simple_int8", "INT8", "int_contents"),
                                       ("simple_string", "BYTES", "bytes_contents")):
            request = service_pb2.ModelInferRequest(model_name=model)
            for i, values in enumerate((range(16), [1] * 16)):
                item = request.inputs.add(name=f"INPUT{i}", datatype=datatype, shape=[1, 16])
                values = [str(value).encode() for value in values] if datatype == "BYTES" else values
                getattr(item.contents, field).extend(values)
            result = grpcclient.InferResult(stub.ModelInfer(request, timeout=WAIT_S))
            sums = [int(value) for value in result.as_numpy("OUTPUT0")[0]]
            self.assertEqual(sums, [i + 1 for i in range(16)])

    def test_classification(self):
        scores = np.array([[0.1, 0.9, 0.3, 0.2], [4, 3, 2, 1]], dtype=np.float32)
        wanted = [grpcclient.InferRequestedOutput("OUTPUT0", class_count=2)]
        result = self.client.infer("labelled_identity", [tensor("INPUT0", scores)], outputs=wanted).as_numpy("OUTPUT0")
        self.assertEqual(result.shape, (2, 2))
        parts = [[item.decode().split(":") for item in row] for row in result]
        self.assertEqual([[part[1:] for part in row] for row in parts],
                         [[["1", "banana"], ["2", "cherry"]], [["0", "apple"], ["1", "banana"]]])
        self.assertAlmostEqual(float(parts[0][0][0]), 0.9, places=5)

    def test_parameters(self):
        a, b, inputs = add_sub_inputs()
        result = self.client.infer("simple", inputs, priority=1, timeout=10_000_000,
                                   parameters={"mine": 1, "text": "t", "flag": True})
        self.check_sums(result, a, b)
        for reserved in ("sequence_id", "priority", "binary_data_output", "headers"):
            with self.assertRaises(InferenceServerException):
                self.client.infer("simple", inputs, parameters={reserved: 1})
        stub = service_pb2_grpc.GRPCInferenceServiceStub(self.client._channel)
        request = service_pb2.ModelInferRequest(model_name="simple")
        request.parameters["triton_of_nobody"].bool_param = True
        with self.assertRaises(Exception) as caught:
            stub.ModelInfer(request, timeout=WAIT_S)
        self.assertEqual(caught.exception.code().name, "INVALID_ARGUMENT")

    def test_compression(self):
        a, b, inputs = add_sub_inputs(np.int32, 8)
        for algorithm in ("deflate", "gzip", None):
            self.check_sums(self.client.infer("simple", inputs, compression_algorithm=algorithm), a, b)

    def test_keepalive_and_channel_arguments(self):
        options = grpcclient.KeepAliveOptions(keepalive_time_ms=1000, keepalive_timeout_ms=500,
                                              keepalive_permit_without_calls=True, http2_max_pings_without_data=0)
        a, b, inputs = add_sub_inputs()
        for more in ({"keepalive_options": options}, {"channel_args": [("grpc.max_receive_message_length", -1)]}):
            with Client(self.daemon.ready["grpc"], **more) as client:
                self.check_sums(client.infer("simple", inputs, client_timeout=WAIT_S), a, b)

    def test_many_threads(self):
        errors = []

        def work(seed):
            a, b, inputs = add_sub_inputs(np.int32, 1 + seed % 8)
            for _ in range(20):
                try:
                    self.check_sums(self.client.infer("simple", inputs), a, b)
                except Exception as error:
                    errors.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(errors, [])

    def test_errors(self):
        _, _, inputs = add_sub_inputs()
        infer = self.client.infer
        self.assert_fails("NOT_FOUND", "unknown model: 'nothing' is not found", infer, "nothing", inputs)
        self.assert_fails("NOT_FOUND", "version 9 is not found", infer, "simple", inputs, "9")
        self.assert_fails("INVALID_ARGUMENT", "expected 2 inputs but got 1", infer, "simple", inputs[:1])
        self.assert_fails("INVALID_ARGUMENT", "data-type is 'INT8', but model 'simple' expects 'INT32'", infer, "simple",
                          add_sub_inputs(np.int8)[2])
        wide = [tensor("INPUT0", np.zeros((1, 17), np.int32)), tensor("INPUT1", np.zeros((1, 17), np.int32))]
        self.assert_fails("INVALID_ARGUMENT", "unexpected shape for input 'INPUT0'", infer, "simple", wide)
        self.assert_fails("INVALID_ARGUMENT", "batch-size must be <= 8", infer, "simple",
                          add_sub_inputs(np.int32, 9)[2])
        self.assert_fails("INVALID_ARGUMENT", "unexpected inference output 'X'", infer, "simple", inputs,
                          outputs=[grpcclient.InferRequestedOutput("X")])
        self.assert_fails("UNIMPLEMENTED", "decoupled transaction policy", infer, "square_int32",
                          [tensor("IN", np.array([3], np.int32))])


class SharedMemoryTest(ClientTest):
    def setUp(self):
        self.handles = []
        self.addCleanup(self.clean)

    def clean(self):
        self.client.unregister_system_shared_memory()
        for handle in self.handles:
            shm.destroy_shared_memory_region(handle)

    def region(self, name, size):
        handle = shm.create_shared_memory_region(name, f"/tensord_{name}_{os.getpid()}", size)
        self.handles.append(handle)
        self.client.register_system_shared_memory(name, f"/tensord_{name}_{os.getpid()}", size)
        return handle

    def test_inputs_and_outputs(self):
        a, b, inputs = add_sub_inputs()
        size = a.nbytes
        in_handle, out_handle = self.region("in", 2 * size), self.region("out", 2 * size)
        shm.set_shared_memory_region(in_handle, [a, b])
        outputs = []
        for i in (0, 1):
            inputs[i] = grpcclient.InferInput(f"INPUT{i}", [1, 16], "INT32")
            inputs[i].set_shared_memory("in", size, offset=i * size)
            outputs.append(grpcclient.InferRequestedOutput(f"OUTPUT{i}"))
            outputs[i].set_shared_memory("out", size, offset=i * size)
        for _ in range(3):
            result = self.client.infer("simple", inputs, outputs=outputs)
        self.assertEqual([len(raw) for raw in result.get_response().raw_output_contents], [0, 0])
        output = result.get_output("OUTPUT1")
        self.assertEqual((output.datatype, list(output.shape)), ("INT32", [1, 16]))
        np.testing.assert_array_equal(shm.get_contents_as_numpy(out_handle, np.int32, [1, 16]), a + b)
        np.testing.assert_array_equal(shm.get_contents_as_numpy(out_handle, np.int32, [1, 16], offset=size), a - b)

    def test_strings(self):
        a, b = strings(*range(16)), strings(*[1] * 16)
        serialized = [np.frombuffer(b"".join(len(t).to_bytes(4, "little") + t for t in v[0]), np.uint8) for v in (a, b)]
        handle, out = self.region("strings", 1000), self.region("texts_out", 1000)
        shm.set_shared_memory_region(handle, serialized)
        inputs = [grpcclient.InferInput(f"INPUT{i}", [1, 16], "BYTES") for i in (0, 1)]
        inputs[0].set_shared_memory("strings", serialized[0].nbytes)
        inputs[1].set_shared_memory("strings", serialized[1].nbytes, offset=serialized[0].nbytes)
        output = grpcclient.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("texts_out", 1000)
        self.client.infer("simple_string", inputs, outputs=[output])
        sums = shm.get_contents_as_numpy(out, np.object_, [1, 16])
        self.assertEqual([int(string) for string in sums[0]], [i + 1 for i in range(16)])

    def test_status(self):
        self.region("first", 64)
        self.region("second", 128)
        regions = self.client.get_system_shared_memory_status().regions
        self.assertEqual({name: region.byte_size for name, region in regions.items()}, {"first": 64, "second": 128})
        self.assertEqual(list(self.client.get_system_shared_memory_status("first").regions), ["first"])
        self.client.unregister_system_shared_memory("first")
        self.assertEqual(list(self.client.get_system_shared_memory_status(as_json=True)["regions"]), ["second"])
        self.assert_fails("NOT_FOUND", "first", self.client.get_system_shared_memory_status, "first")

    def test_errors(self):
        self.region("small", 64)
        key = f"/tensord_small_{os.getpid()}"
        register = self.client.register_system_shared_memory
        self.assert_fails("ALREADY_EXISTS", "small", register, "small", key, 64)
        self.assert_fails("INVALID_ARGUMENT", "", register, "beyond", key, 1 << 40)
        self.assert_fails("INVALID_ARGUMENT", "", register, "far", key, 64, offset=(1 << 64) - 32)
        with self.assertRaises(InferenceServerException):
            register("nowhere", "/tensord_nowhere", 64)
        for item in (("nothing", 64, 0), ("small", 65, 0), ("small", 64, 8)):
            inputs = [grpcclient.InferInput(f"INPUT{i}", [1, 16], "INT32") for i in (0, 1)]
            inputs[0].set_shared_memory(*item)
            inputs[1].set_shared_memory("small", 64)
            with self.assertRaises(InferenceServerException):
                self.client.infer("simple", inputs)

    def test_cuda_where_there_is_none(self):
        if "cuda_shared_memory" in self.client.get_server_metadata().extensions:
            self.assertEqual(len(self.client.get_cuda_shared_memory_status().regions), 0)
            return
        # Like Triton without a GPU: nothing to list or to unregister, which the examples do first.
        self.assertEqual(len(self.client.get_cuda_shared_memory_status().regions), 0)
        self.client.unregister_cuda_shared_memory()
        self.assert_fails("UNIMPLEMENTED", "", self.client.register_cuda_shared_memory, "gpu", b"0" * 64, 0, 64)


class ControlTest(ClientTest):
    def test_load_and_unload(self):
        self.client.unload_model("simple_int8")
        self.assertFalse(self.client.is_model_ready("simple_int8"))
        states = {model.name: model for model in self.client.get_model_repository_index().models}
        self.assertEqual((states["simple_int8"].state, states["simple_int8"].reason), ("UNAVAILABLE", "unloaded"))
        self.client.load_model("simple_int8")
        self.assertTrue(self.client.is_model_ready("simple_int8"))
        self.client.infer("simple_int8", add_sub_inputs(np.int8)[2])

    def test_config_override(self):
        self.assert_fails("INVALID_ARGUMENT", "failed to load", self.client.load_model, "simple",
                          config='"parameters": {"config": {{"max_batch_size": "16"}}}')
        self.client.infer("simple", add_sub_inputs(np.int32, 8)[2])
        self.client.load_model("simple", config='{"max_batch_size":"16"}')
        self.assertEqual(self.client.get_model_config("simple").config.max_batch_size, 16)
        self.client.load_model("simple")

    def test_file_override(self):
        archive = (support.EXAMPLES / "more_models" / "identity_fp32" / "1" / "model.pt").read_bytes()
        self.client.load_model("brought", config="{}", files={"file:3/model.pt": archive})
        x = np.ones((2, 3), np.float32)
        result = self.client.infer("brought", [tensor("INPUT0", x)], model_version="3")
        np.testing.assert_array_equal(result.as_numpy("OUTPUT__0"), x)
        self.client.unload_model("brought")
        for path in ("../escape.pt", "1/../../escape.pt", "/etc/escape.pt", "A" * 256):
            with self.assertRaises(InferenceServerException) as caught:
                self.client.load_model("brought", config="{}", files={f"file:{path}": b"a"})
            self.assertEqual(caught.exception.status(), "StatusCode.INVALID_ARGUMENT")
        self.assertTrue(self.client.is_server_live())

    def test_names_that_are_not_there(self):
        for name in ("wrong_model_name", "../simple", "..", "a/b"):
            with self.assertRaises(InferenceServerException) as caught:
                self.client.load_model(name)
            self.assertIn("failed to load" if name == "wrong_model_name" else "", caught.exception.message())
        self.assertTrue(self.client.is_server_live())


class CoverageTest(unittest.TestCase):
    def test_every_call_was_made(self):
        elsewhere = {"start_stream", "stop_stream", "async_stream_infer"}
        self.assertEqual(support.public_methods(grpcclient.InferenceServerClient) - CALLED - elsewhere, set())


if __name__ == "__main__":
    suite = unittest.TestSuite()
    for case in (ServerTest, InferTest, SharedMemoryTest, ControlTest, CoverageTest):
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    raise SystemExit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
