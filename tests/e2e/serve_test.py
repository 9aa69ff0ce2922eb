"""The real daemon, called by gRPC's Python client with generated stubs."""

import concurrent.futures
import contextlib
import http.client
import os
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import grpc
import torch

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, RpcAssertions, health_pb2, inference_pb2_grpc, pb, request
from tests.e2e.raw_tensors import byte_strings, fp32, int64, read_fp32

CODE = grpc.StatusCode
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING

# datatype → (torch dtype, field of InferTensorContents or None, values)
DATATYPES = {
    "BOOL": (torch.bool, "bool_contents", [True, False, True]),
    "UINT8": (torch.uint8, "uint_contents", [0, 7, 255]),
    "INT8": (torch.int8, "int_contents", [-128, 0, 127]),
    "INT16": (torch.int16, "int_contents", [-30000, 1, 30000]),
    "INT32": (torch.int32, "int_contents", [-2**31, 5, 2**31 - 1]),
    "INT64": (torch.int64, "int64_contents", [-2**63, 5, 2**63 - 1]),
    "FP16": (torch.float16, None, [0.5, -2.0, 65504.0]),
    "BF16": (torch.bfloat16, None, [0.5, -2.0, 1e30]),
    "FP32": (torch.float32, "fp32_contents", [0.1, -2.5, 1e30]),
    "FP64": (torch.float64, "fp64_contents", [0.1, -2.5, 1e300]),
}


def raw_of(tensor):
    tensor = tensor.contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy().tobytes()


class ServeTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = tempfile.TemporaryDirectory()
        serve_models.make_repository(cls.repository.name)
        cls.daemon = Daemon(cls.repository.name, "--workers", "2")

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def infer(self, *args, **kwargs):
        return self.daemon.stub.ModelInfer(request(*args, **kwargs), timeout=300)

    def assert_fails(self, code, details, message):
        self.assert_code(code, details, self.daemon.stub.ModelInfer, message, timeout=300)

    def outputs(self, response):
        self.assertEqual(len(response.outputs), len(response.raw_output_contents))
        return {out.name: (out.datatype, list(out.shape), raw)
                for out, raw in zip(response.outputs, response.raw_output_contents)}

    # The six calls.

    def test_server_calls(self):
        stub = self.daemon.stub
        self.assertTrue(stub.ServerLive(pb.ServerLiveRequest()).live)
        self.assertTrue(stub.ServerReady(pb.ServerReadyRequest()).ready)
        self.assertEqual(stub.ServerMetadata(pb.ServerMetadataRequest()).name, "tensord")
        self.assertTrue(stub.ModelReady(pb.ModelReadyRequest(name="identity")).ready)
        self.assertTrue(stub.ModelReady(pb.ModelReadyRequest(name="identity", version="1")).ready)
        self.assertFalse(stub.ModelReady(pb.ModelReadyRequest(name="identity", version="2")).ready)
        self.assertFalse(stub.ModelReady(pb.ModelReadyRequest(name="missing")).ready)

    def test_model_metadata(self):
        metadata = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="configured"))
        self.assertEqual(metadata.platform, "pytorch_libtorch")
        self.assertEqual(list(metadata.versions), ["1"])
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in metadata.inputs], [("INPUT__0", "FP32", [-1, 4])])
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in metadata.outputs], [("scores", "FP32", [-1, 3])])
        metadata = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="mixed"))
        self.assertEqual([t.name for t in metadata.inputs], ["x", "times", "scale", "invert", "label", "bias"])
        self.assertEqual(metadata.inputs[4].datatype, "BYTES")
        self.assertEqual([t.name for t in self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="named")).outputs],
                         ["total", "count"])

    # Values.

    def test_every_datatype_raw_and_typed(self):
        for datatype, (dtype, field, values) in DATATYPES.items():
            expected = raw_of(torch.tensor(values, dtype=dtype))
            contents = [expected]
            if field:
                typed = pb.InferTensorContents()
                getattr(typed, field).extend(values)
                contents.append(typed)
            for data in contents:
                with self.subTest(datatype=datatype, kind=type(data).__name__):
                    outputs = self.outputs(self.infer("identity", [("x", datatype, [3], data)]))
                    self.assertEqual(outputs, {"OUTPUT__0": (datatype, [3], expected)})

    def test_shapes(self):
        for shape in ([], [1], [0], [2, 0, 3], [2, 3, 4]):
            count = 1
            for size in shape:
                count *= size
            raw = fp32(*range(count))
            self.assertEqual(self.outputs(self.infer("identity", [("x", "FP32", shape, raw)])),
                             {"OUTPUT__0": ("FP32", shape, raw)})

    def test_large_payloads(self):
        for count in (1000, 150_000, 5_000_000):
            raw = os.urandom(4 * count)
            for _ in range(3):
                response = self.infer("identity", [("x", "INT32", [count], raw)])
                self.assertEqual(response.raw_output_contents[0], raw)

    def test_names_and_order(self):
        a, b = fp32(5, 6), fp32(1, 2)
        for names in (("a", "b"), ("INPUT__0", "INPUT__1"), ("a", "INPUT__1")):
            outputs = self.outputs(self.infer("add_sub", [(names[1], "FP32", [2], b), (names[0], "FP32", [2], a)]))
            self.assertEqual(read_fp32(outputs["OUTPUT__0"][2]), [6, 8])
            self.assertEqual(read_fp32(outputs["OUTPUT__1"][2]), [4, 4])

    def test_requested_outputs(self):
        inputs = [("a", "FP32", [1], fp32(5)), ("b", "FP32", [1], fp32(1))]
        self.assertEqual([out.name for out in self.infer("add_sub", inputs, ["OUTPUT__1"]).outputs], ["OUTPUT__1"])
        self.assertEqual([out.name for out in self.infer("add_sub", inputs, ["OUTPUT__1", "OUTPUT__0"]).outputs],
                         ["OUTPUT__1", "OUTPUT__0"])
        self.assert_fails(CODE.INVALID_ARGUMENT, "already exists in request",
                          request("add_sub", inputs, ["OUTPUT__1", "OUTPUT__1"]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "unexpected inference output 'y'", request("add_sub", inputs, ["y"]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "unexpected inference output 'y'",
                          request("branches", [("x", "FP32", [1], fp32(1))], ["y"]))

    def test_id_and_version_come_back(self):
        response = self.infer("versions", [("x", "FP32", [1], fp32(1))], version="1", request_id="abc")
        self.assertEqual((response.model_name, response.model_version, response.id), ("versions", "1", "abc"))
        latest = self.infer("versions", [("a", "FP32", [1], fp32(1)), ("b", "FP32", [1], fp32(1))])
        self.assertEqual(latest.model_version, "3")

    def test_dict_and_named_tuple_outputs(self):
        outputs = self.outputs(self.infer("branches", [("x", "FP32", [2], fp32(1, 2))]))
        self.assertEqual(read_fp32(outputs["double"][2]), [2, 4])
        self.assertEqual(read_fp32(outputs["negative"][2]), [-1, -2])
        outputs = self.outputs(self.infer("named", [("x", "FP32", [2], fp32(1, 2))]))
        self.assertEqual(read_fp32(outputs["total"][2]), [3])
        self.assertEqual(outputs["count"], ("INT64", [1], int64(2)))

    def test_scalars_strings_and_optional_arguments(self):
        base = [("x", "FP32", [2], fp32(1, 2)), ("times", "INT64", [1], int64(2))]
        outputs = self.outputs(self.infer("mixed", base))
        self.assertEqual(read_fp32(outputs["OUTPUT__0"][2]), [3, 6])
        self.assertEqual(outputs["OUTPUT__1"], ("BYTES", [1], byte_strings(b"none!")))
        more = base + [("scale", "FP32", [1], fp32(1)), ("invert", "BOOL", [1], b"\1"),
                       ("label", "BYTES", [1], byte_strings("ä".encode())), ("bias", "FP32", [2], fp32(10, 20))]
        outputs = self.outputs(self.infer("mixed", more))
        self.assertEqual(read_fp32(outputs["OUTPUT__0"][2]), [-12, -24])
        self.assertEqual(outputs["OUTPUT__1"][2], byte_strings("ä!".encode()))

    def test_string_lists(self):
        typed = pb.InferTensorContents(bytes_contents=[b"a", b"", b"xyz"])
        for data in (byte_strings(b"a", b"", b"xyz"), typed):
            outputs = self.outputs(self.infer("words", [("words", "BYTES", [3], data)]))
            self.assertEqual(outputs["OUTPUT__0"], ("BYTES", [3], byte_strings(b"aa", b"", b"xyzxyz")))
            self.assertEqual(outputs["OUTPUT__1"], ("INT64", [1], int64(3)))

    def test_in_place_models_leave_the_request_alone(self):
        for _ in range(3):
            for count in (4, 100_000):
                response = self.infer("in_place", [("x", "FP32", [count], fp32(*[1] * count))])
                self.assertEqual(response.raw_output_contents[0], fp32(*[2] * count))

    def test_state_is_kept_between_requests(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(
                lambda _: self.infer("counter", [("x", "INT64", [1], int64(1))]).raw_output_contents[0], range(200)))
        self.assertEqual(sorted(struct.unpack("<q", raw)[0] for raw in seen), list(range(1, 201)))

    def test_batches_of_a_configured_model(self):
        torch.manual_seed(0)
        layer = torch.nn.Linear(4, 3)
        x = torch.arange(8, dtype=torch.float32).reshape(2, 4)
        response = self.infer("configured", [("INPUT__0", "FP32", [2, 4], raw_of(x))], ["scores"])
        self.assertEqual(response.outputs[0].name, "scores")
        actual = torch.tensor(read_fp32(response.raw_output_contents[0])).reshape(2, 3)
        torch.testing.assert_close(actual, layer(x).detach(), rtol=1e-4, atol=1e-5)

    def test_concurrent_requests(self):
        def one(i):
            raw = int64(*range(i, i + 1 + i % 300))
            return self.infer("identity", [("x", "INT64", [len(raw) // 8], raw)]).raw_output_contents[0] == raw
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            self.assertTrue(all(pool.map(one, range(1000))))

    # Errors, in the order of the protocol's table.

    def test_unknown_models_and_versions(self):
        x = [("x", "FP32", [1], fp32(1))]
        self.assert_fails(CODE.NOT_FOUND, "Request for unknown model: 'nope' is not found", request("nope", x))
        self.assert_fails(CODE.NOT_FOUND, "version 9 is not found", request("identity", x, version="9"))
        for version in ("x", "-1", "1.5", "99999999999999999999"):
            self.assert_fails(CODE.INVALID_ARGUMENT, "failed to get model version from specified version string",
                              request("identity", x, version=version))

    def test_wrong_inputs(self):
        a = ("a", "FP32", [1], fp32(1))
        self.assert_fails(CODE.INVALID_ARGUMENT,
                          "expected 2 inputs but got 1 inputs for model 'add_sub'. Got input(s) ['a'], but missing "
                          "required input(s) ['b']. Please provide all required input(s).", request("add_sub", [a]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "expected 2 inputs but got 0 inputs", request("add_sub", []))
        self.assert_fails(CODE.INVALID_ARGUMENT, "unexpected inference input 'c'",
                          request("add_sub", [a, ("c", "FP32", [1], fp32(1))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "already exists in request", request("add_sub", [a, a]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "unknown data-type 'FP33'",
                          request("identity", [("x", "FP33", [1], fp32(1))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "data-type is 'BYTES'",
                          request("identity", [("x", "BYTES", [1], byte_strings(b"a"))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "data-type is 'FP32', but model 'words' expects 'BYTES'",
                          request("words", [("words", "FP32", [1], fp32(1))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "must have exactly one element",
                          request("mixed", [("x", "FP32", [1], fp32(1)), ("times", "INT64", [2], int64(1, 2))]))

    def test_wrong_inputs_of_a_configured_model(self):
        self.assert_fails(CODE.INVALID_ARGUMENT,
                          "inference input 'INPUT__0' data-type is 'INT32', but model 'configured' expects 'FP32'",
                          request("configured", [("INPUT__0", "INT32", [1, 4], fp32(1, 2, 3, 4))]))
        self.assert_fails(CODE.INVALID_ARGUMENT,
                          "unexpected shape for input 'INPUT__0' for model 'configured'. Expected [-1,4], got [1,3]",
                          request("configured", [("INPUT__0", "FP32", [1, 3], fp32(1, 2, 3))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "inference request batch-size must be <= 4 for 'configured'",
                          request("configured", [("INPUT__0", "FP32", [5, 4], fp32(*range(20)))]))

    def test_wrong_data(self):
        self.assert_fails(CODE.INVALID_ARGUMENT,
                          "input byte size mismatch for input 'x' for model 'identity'. Expected 32, got 40",
                          request("identity", [("x", "FP32", [8], fp32(*range(10)))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "unable to find data for input tensor 'x'",
                          request("identity", [("x", "FP32", [1], None)]))
        both = request("identity", [("x", "FP32", [1], fp32(1))])
        both.inputs[0].contents.fp32_contents.append(1)
        self.assert_fails(CODE.INVALID_ARGUMENT,
                          "contents field must not be specified when using raw_input_contents", both)
        for shape in ([-1], [2**62, 2**62], [2**31], [1] * 65, [-2**63]):
            self.assert_fails(CODE.INVALID_ARGUMENT, "", request("identity", [("x", "FP32", shape, fp32(1))]))
        huge = request("identity", [("x", "FP32", [2**29], pb.InferTensorContents(fp32_contents=[1]))])
        self.assert_fails(CODE.INVALID_ARGUMENT, "unexpected number of elements", huge)

    def test_parameters(self):
        x = [("x", "FP32", [1], fp32(1))]
        string, number, flag = (pb.InferParameter(string_param="a"), pb.InferParameter(int64_param=1),
                              pb.InferParameter(bool_param=True))
        self.infer("identity", x, parameters={"priority": number, "timeout": pb.InferParameter(int64_param=10**7),
                                              "sequence_id": number, "sequence_start": flag, "mine": string})
        for name, value in (("priority", string), ("timeout", string), ("sequence_id", flag), ("sequence_end", number),
                            ("triton_enable_empty_final_response", string)):
            self.assert_fails(CODE.INVALID_ARGUMENT, f"invalid value type for '{name}' parameter",
                              request("identity", x, parameters={name: value}))
        self.assert_fails(CODE.INVALID_ARGUMENT, "reserved", request("identity", x, parameters={"triton_other": string}))
        # What KServe's client sends is taken.
        self.infer("identity", x, parameters={"headers": string, "binary_data_output": flag})
        shared = request("identity", x)
        shared.inputs[0].parameters["shared_memory_region"].string_param = "r"
        self.assert_fails(CODE.INVALID_ARGUMENT, "'shared_memory_byte_size' parameter must be specified", shared)
        shared.inputs[0].parameters["shared_memory_byte_size"].int64_param = 4
        self.assert_fails(CODE.UNIMPLEMENTED, "Client shared memory is disabled", shared)

    def test_script_errors_show_their_message(self):
        self.assert_fails(CODE.INVALID_ARGUMENT, "got 3 rows", request("raises", [("x", "FP32", [3], fp32(1, 2, 3))]))
        self.assert_fails(CODE.INVALID_ARGUMENT, "",
                          request("add_sub", [("a", "FP32", [2], fp32(1, 2)), ("b", "FP32", [3], fp32(1, 2, 3))]))

    def test_message_cut_anywhere(self):
        call = self.daemon.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer",
                                               request_serializer=lambda raw: raw,
                                               response_deserializer=lambda raw: raw)
        whole = request("identity", [("x", "FP32", [4], fp32(1, 2, 3, 4))], ["OUTPUT__0"], request_id="7",
                        parameters={"mine": pb.InferParameter(string_param="a")}).SerializeToString()
        for size in range(len(whole)):
            with self.assertRaises(grpc.RpcError) as caught:
                call(whole[:size], timeout=300)
            self.assertIn(caught.exception.code(), (CODE.INVALID_ARGUMENT, CODE.NOT_FOUND))
        self.assertTrue(call(whole, timeout=300))

    def test_deadline_and_cancellation(self):
        slow = request("sleepy", [("x", "FP32", [1], fp32(1)), ("rounds", "INT64", [1], int64(10**12))])
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(slow, timeout=0.2)
        self.assertEqual(caught.exception.code(), CODE.DEADLINE_EXCEEDED)
        call = self.daemon.stub.ModelInfer.future(slow)
        time.sleep(0.1)
        call.cancel()
        # Both runs stop, so the workers are free again.
        deadline = time.monotonic() + 300
        while self.daemon.metric("tensord_in_flight_requests", model="sleepy") > 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.infer("sleepy", [("x", "FP32", [1], fp32(1)), ("rounds", "INT64", [1], int64(1))])

    # Health, reflection, metrics.

    def test_health(self):
        for name in ("", "inference.GRPCInferenceService", "identity"):
            self.assertEqual(self.daemon.health.Check(health_pb2.HealthCheckRequest(service=name)).status, SERVING)
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.health.Check(health_pb2.HealthCheckRequest(service="nope"))
        self.assertEqual(caught.exception.code(), CODE.NOT_FOUND)
        watch = self.daemon.health.Watch(health_pb2.HealthCheckRequest(service="nope"))
        self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
        watch.cancel()

    def test_reflection(self):
        from google.protobuf import descriptor_pb2
        import reflection_v1_pb2
        import reflection_v1_pb2_grpc
        import reflection_v1alpha_pb2
        import reflection_v1alpha_pb2_grpc
        for messages, services in ((reflection_v1_pb2, reflection_v1_pb2_grpc),
                                   (reflection_v1alpha_pb2, reflection_v1alpha_pb2_grpc)):
            stub = services.ServerReflectionStub(self.daemon.channel)
            questions = [messages.ServerReflectionRequest(list_services=""),
                         messages.ServerReflectionRequest(file_containing_symbol="inference.GRPCInferenceService"),
                         messages.ServerReflectionRequest(file_by_filename="nope.proto")]
            listed, file, missing = list(stub.ServerReflectionInfo(iter(questions), timeout=300))
            names = [service.name for service in listed.list_services_response.service]
            self.assertIn("inference.GRPCInferenceService", names)
            self.assertIn("grpc.health.v1.Health", names)
            proto = descriptor_pb2.FileDescriptorProto.FromString(file.file_descriptor_response.file_descriptor_proto[0])
            self.assertEqual(proto.service[0].name, "GRPCInferenceService")
            files = [descriptor_pb2.FileDescriptorProto.FromString(each)
                     for each in file.file_descriptor_response.file_descriptor_proto]
            names = [each.name for each in files]
            self.assertEqual(len(names), len(set(names)), "each once")
            self.assertLessEqual({name for each in files for name in each.dependency}, set(names))
            self.assertEqual(missing.error_response.error_code, CODE.NOT_FOUND.value[0])

    def test_metrics(self):
        daemon = self.daemon
        before = {name: daemon.metric(name, model="linear") for name in
                  ("tensord_requests_total", "tensord_queue_duration_seconds_count", "tensord_received_bytes_total",
                   "tensord_compute_duration_seconds_count", "tensord_request_duration_seconds_count",
                   "tensord_sent_bytes_total")}
        self.infer("linear", [("x", "FP32", [1, 4], fp32(1, 2, 3, 4))])
        with self.assertRaises(grpc.RpcError):
            self.infer("linear", [("x", "FP32", [1, 4], fp32(1, 2, 3))])
        for name, value in before.items():
            self.assertGreater(daemon.metric(name, model="linear"), value, name)
        self.assertEqual(daemon.metric("tensord_requests_total", model="linear", code="OK"), 1)
        self.assertEqual(daemon.metric("tensord_requests_total", model="linear", code="INVALID_ARGUMENT"), 1)
        exposition = daemon.metrics()
        for name in ("tensord_build_info", "tensord_memory_bytes", "tensord_pool_reserved_bytes",
                     "tensord_model_load_duration_seconds", "tensord_copied_bytes_total", "tensord_model_ready"):
            self.assertIn(f"\n{name}{{", exposition)
        checked = subprocess.run(["promtool", "check", "metrics"], input=exposition, capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))


class LifecycleTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_broken_models_leave_the_others(self):
        serve_models.save(serve_models.Identity(), self.folder.name, "good")
        serve_models.make_broken(self.folder.name)
        with Daemon(self.folder.name) as daemon:
            x = [("x", "FP32", [1], fp32(1))]
            daemon.stub.ModelInfer(request("good", x))
            self.assertFalse(daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)
            for name, status in (("", NOT_SERVING), ("inference.GRPCInferenceService", NOT_SERVING),
                                 ("grpc.health.v1.Health", SERVING)):  # the services that readiness and liveness probes query
                self.assertEqual(daemon.health.Check(health_pb2.HealthCheckRequest(service=name)).status, status)
            for name, reason in (("truncated", "zip"), ("bad_config", "config.pbtxt:1:"),
                                 ("no_file", "is not there; the folder is empty"), ("escape", "leads out of the model repository")):
                self.assertFalse(daemon.stub.ModelReady(pb.ModelReadyRequest(name=name)).ready)
                status = daemon.health.Check(health_pb2.HealthCheckRequest(service=name)).status
                self.assertEqual(status, NOT_SERVING)
                with self.assertRaises(grpc.RpcError) as caught:
                    daemon.stub.ModelInfer(request(name, x))
                self.assertEqual(caught.exception.code(), CODE.UNAVAILABLE)
                self.assertRegex(caught.exception.details(), "is not at ready state|has no available versions")
                self.assertIn(reason, caught.exception.details())
                self.assertIn(f"model={name}", daemon.log_text())
            with self.assertRaises(grpc.RpcError) as caught:
                daemon.stub.ModelInfer(request("no_versions", x))
            self.assertEqual(caught.exception.code(), CODE.NOT_FOUND)
            self.assertEqual(daemon.stop(), 0)

    def test_readiness_without_strictness(self):
        serve_models.make_broken(self.folder.name)
        with Daemon(self.folder.name, "--strict-readiness", "false") as daemon:
            self.assertTrue(daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)

    def test_load_model_limits_what_is_served(self):
        for name in ("one", "two"):
            serve_models.save(serve_models.Identity(), self.folder.name, name)
        with Daemon(self.folder.name, "--load-model", "two") as daemon:
            self.assertFalse(daemon.stub.ModelReady(pb.ModelReadyRequest(name="one")).ready)
            self.assertTrue(daemon.stub.ModelReady(pb.ModelReadyRequest(name="two")).ready)

    def test_exit_delay_serves_on(self):
        serve_models.save(serve_models.Identity(), self.folder.name, "good")
        x = [("x", "FP32", [1], fp32(1))]
        with Daemon(self.folder.name, "--exit-delay-secs", "60") as daemon:
            daemon.process.send_signal(signal.SIGTERM)
            end = time.monotonic() + 300
            while "stopping soon" not in daemon.log_text():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
            with grpc.insecure_channel(daemon.ready["grpc"]) as channel:
                inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request("good", x))
            self.assertFalse(daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)
            self.assertFalse(daemon.stub.ModelReady(pb.ModelReadyRequest(name="good")).ready)
            self.assertTrue(daemon.stub.ServerLive(pb.ServerLiveRequest()).live)
            self.assertEqual(daemon.health.Check(health_pb2.HealthCheckRequest()).status, NOT_SERVING)
            for path, code in (("ready", 503), ("live", 200)):
                with contextlib.closing(http.client.HTTPConnection(daemon.ready["metrics"], timeout=300)) as connection:
                    connection.request("GET", f"/v2/health/{path}")
                    self.assertEqual(connection.getresponse().status, code)
            self.assertIsNone(daemon.process.poll())
            self.assertEqual(daemon.stop(), 0)  # a second signal ends the delay
        with Daemon(self.folder.name, "--exit-delay-secs", "1") as daemon:
            start = time.monotonic()
            self.assertEqual(daemon.stop(), 0)
            self.assertGreaterEqual(time.monotonic() - start, 1)

    def test_sigterm_drains_and_exits_0(self):
        serve_models.save(serve_models.Sleepy(), self.folder.name, "sleepy")
        with Daemon(self.folder.name, "--workers", "2", "--log-format", "json", "--exit-timeout-secs", "250") as daemon:
            slow = request("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], int64(300_000))])
            calls = [daemon.stub.ModelInfer.future(slow, timeout=300) for _ in range(3)]
            watch = daemon.health.Watch(health_pb2.HealthCheckRequest(service=""))
            self.assertEqual(next(watch).status, SERVING)
            codes = []
            stopper = threading.Thread(target=lambda: codes.append(daemon.stop()))
            stopper.start()
            for call in calls:
                self.assertEqual(read_fp32(call.result().raw_output_contents[0]), [300_000])
            stopper.join()
            self.assertEqual(next(watch).status, NOT_SERVING)
            with self.assertRaises(grpc.RpcError) as ended:
                next(watch)
            self.assertEqual(ended.exception.code(), CODE.CANCELLED)
            self.assertEqual(codes, [0])
            self.assertIn('"message":"stopped"', daemon.log_text())

    def test_exit_timeout_cancels_what_is_too_slow(self):
        serve_models.save(serve_models.Sleepy(), self.folder.name, "sleepy")
        with Daemon(self.folder.name, "--exit-timeout-secs", "1") as daemon:
            endless = request("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], int64(10**12))])
            call = daemon.stub.ModelInfer.future(endless, timeout=300)
            while daemon.metric("tensord_in_flight_requests", model="sleepy") == 0:
                time.sleep(0.01)
            self.assertEqual(daemon.stop(), 0)  # it would take days
            self.assertIsNotNone(call.exception())

    def test_bad_flags(self):
        for code, flags in ((1, ["--model-repository", os.path.join(self.folder.name, "missing")]),
                            (2, ["--model-repository", self.folder.name, "--model-control-mode", "sometimes"]),
                            (2, ["--model-repository", self.folder.name, "--grpc-port", "70000"]), (2, [])):
            done = subprocess.run([BINARY, "serve", "--grpc-port", "0", "--metrics-port", "0", *flags],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, code, flags)
            self.assertIn("tensord: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
