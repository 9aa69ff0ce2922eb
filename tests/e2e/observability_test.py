"""Statistics, traces, logs, captures and metrics of the daemon."""

import glob
import http.server
import gzip
import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from typing import List

import numpy as np
import torch

from tests.e2e import serve_models
from tests.e2e.daemon import Daemon, grpc, pb, request
from tests.e2e.processes import wait_until
from tests.needed_programs import needs

CODE = grpc.StatusCode
X = [("x", "FP32", [1, 4], np.arange(4, dtype=np.float32).tobytes())]


class Pieces(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> List[torch.Tensor]:
        return [row for row in x]


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.models = tempfile.TemporaryDirectory()
        serve_models.save(serve_models.Linear(), cls.models.name, "linear")
        serve_models.save(serve_models.Raises(), cls.models.name, "raises")
        serve_models.save(serve_models.Words(), cls.models.name, "words")
        serve_models.save(serve_models.Identity(), cls.models.name, "batched")
        with open(os.path.join(cls.models.name, "batched", "config.pbtxt"), "w") as config:
            config.write("max_batch_size: 8\ninput { name: \"x\" data_type: TYPE_FP32 dims: [ 4 ] }\n"
                         "parameters { key: \"unused\" value { string_value: \"\" } }\n")

    @classmethod
    def tearDownClass(cls):
        cls.models.cleanup()

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, *names):
        return os.path.join(self.scratch.name, *names)

    def refused(self, call, message, code, details):
        with self.assertRaises(grpc.RpcError) as caught:
            call(message, timeout=300)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(details, caught.exception.details())


class StatisticsTest(Models):
    def test_statistics(self):
        with Daemon(self.models.name) as daemon:
            for rows in (1, 3, 3):
                x = np.zeros((rows, 4), np.float32)
                daemon.stub.ModelInfer(request("batched", [("x", "FP32", x.shape, x.tobytes())]))
            with self.assertRaises(grpc.RpcError):
                daemon.stub.ModelInfer(request("batched", [("x", "FP32", [1, 5], bytes(20))]))
            stats = daemon.stub.ModelStatistics(pb.ModelStatisticsRequest(name="batched")).model_stats
            self.assertEqual(len(stats), 1)
            model = stats[0]
            self.assertEqual((model.name, model.version), ("batched", "1"))
            self.assertEqual((model.inference_count, model.execution_count), (7, 3))
            self.assertLess(abs(model.last_inference / 1000 - time.time()), 600)
            times = model.inference_stats
            self.assertEqual((times.success.count, times.fail.count, times.queue.count), (3, 1, 3))
            self.assertEqual((times.compute_infer.count, times.cache_hit.count), (3, 0))
            parts = times.queue.ns + times.compute_input.ns + times.compute_infer.ns + times.compute_output.ns
            self.assertGreater(times.compute_infer.ns, 0)
            self.assertLess(parts, times.success.ns)
            self.assertEqual([(b.batch_size, b.compute_infer.count) for b in model.batch_stats], [(1, 1), (3, 2)])
            self.assertEqual([usage.type for usage in model.memory_usage], ["CPU"])
            everything = daemon.stub.ModelStatistics(pb.ModelStatisticsRequest()).model_stats
            self.assertEqual([s.name for s in everything], ["batched", "linear", "raises", "words"])
            self.refused(daemon.stub.ModelStatistics, pb.ModelStatisticsRequest(name="nope"), CODE.NOT_FOUND,
                         "'nope' is not found")
            self.refused(daemon.stub.ModelStatistics, pb.ModelStatisticsRequest(name="linear", version="7"),
                         CODE.NOT_FOUND, "version 7 is not found")
            self.refused(daemon.stub.ModelStatistics, pb.ModelStatisticsRequest(version="1"), CODE.INVALID_ARGUMENT,
                         "needs the name")


    def test_forms_of_metrics(self):
        with Daemon(self.models.name) as daemon:
            def get(**headers):
                asked = urllib.request.Request(f"http://{daemon.ready['metrics']}/metrics", headers=headers)
                with urllib.request.urlopen(asked, timeout=60) as answer:
                    return answer.headers, answer.read()

            headers, plain = get(Accept="text/plain")
            self.assertIn("version=0.0.4", headers["Content-Type"])
            headers, packed = get(**{"Accept-Encoding": "gzip"})
            self.assertEqual(headers["Content-Encoding"], "gzip")
            self.assertIn(b"# TYPE tensord_requests_total counter", gzip.decompress(packed))
            headers, body = get(Accept="application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3")
            self.assertIn("application/openmetrics-text; version=1.0.0", headers["Content-Type"])
            self.assertIn(b"# TYPE tensord_requests counter", body)
            self.assertTrue(body.endswith(b"# EOF\n"))
            names = [{line.rsplit(" ", 1)[0] for line in form.decode().splitlines() if line[0] != "#"} for form in (plain, body)]
            self.assertEqual(*names)

    def test_responses_of_decoupled_models(self):
        models, trace_file = self.path("models"), self.path("trace.json")
        serve_models.save(Pieces(), models, "pieces")
        with open(os.path.join(models, "pieces", "config.pbtxt"), "w") as config:
            config.write("model_transaction_policy { decoupled: true }\n")
        flags = [f"triton,file={trace_file}", "level=TIMESTAMPS", "rate=1"]
        with Daemon(models, *[part for flag in flags for part in ("--trace-config", flag)]) as daemon:
            x = np.zeros((3, 2), np.float32)
            ask = request("pieces", [("x", "FP32", x.shape, x.tobytes())])
            answers = list(daemon.stub.ModelStreamInfer(iter([ask, ask]), timeout=300))
            self.assertEqual([answer.error_message for answer in answers], [""] * 6)
            stats = daemon.stub.ModelStatistics(pb.ModelStatisticsRequest(name="pieces")).model_stats[0]
            self.assertEqual((stats.inference_stats.success.count, stats.execution_count), (2, 2))
            self.assertEqual(sorted(stats.response_stats), ["0", "1", "2"])
            self.assertEqual([stats.response_stats[i].success.count for i in "012"], [2, 2, 2])
            self.assertEqual(daemon.metric("tensord_first_response_duration_seconds_count", model="pieces"), 2)
            self.assertEqual(daemon.metric("tensord_next_response_duration_seconds_count", model="pieces"), 4)
            self.assertEqual(daemon.stop(), 0)
        with open(trace_file) as file:
            stamps = [part["timestamps"] for part in json.load(file) if "timestamps" in part]
        self.assertEqual(len(stamps), 2)
        for names in ([stamp["name"] for stamp in trace] for trace in stamps):
            self.assertEqual(names.count("INFER_RESPONSE_COMPLETE"), 3)


class LogSettingsTest(Models):
    def test_settings_change_what_is_logged(self):
        log_file = self.path("daemon.log")
        with Daemon(self.models.name, "--log-file", log_file) as daemon:
            def set_log(**settings):
                message = pb.LogSettingsRequest()
                for key, value in settings.items():
                    field = {bool: "bool_param", int: "uint32_param", str: "string_param"}[type(value)]
                    setattr(message.settings[key], field, value)
                return daemon.stub.LogSettings(message, timeout=300).settings

            def written():
                with open(log_file) as log:
                    return log.read()

            before = set_log()
            self.assertEqual(before["log_file"].string_param, log_file)
            self.assertEqual((before["log_info"].bool_param, before["log_verbose_level"].uint32_param), (True, 0))
            self.assertEqual(before["log_format"].string_param, "text")
            self.assertRegex(written(), r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d\d:\d\d info model loaded model=")
            after = set_log(log_format="json", log_verbose_level=1, log_warning=False)
            self.assertEqual(after["log_format"].string_param, "json")
            self.assertFalse(after["log_warning"].bool_param)
            self.assertTrue(after["log_error"].bool_param)
            bad = pb.LogSettingsRequest()
            bad.settings["log_info"].bool_param = False
            bad.settings["log_format"].string_param = "xml"
            self.refused(daemon.stub.LogSettings, bad, CODE.INVALID_ARGUMENT, "invalid argument for log_format, got: xml")
            self.assertTrue(set_log()["log_info"].bool_param, "nothing of a refused change is kept")
            for key, field, value, code, details in (
                    ("log_file", "string_param", "/tmp/x", CODE.UNIMPLEMENTED, "can not be updated through network"),
                    ("log_info", "string_param", "yes", CODE.INVALID_ARGUMENT, "expect boolean for 'log_info'"),
                    ("log_verbose_level", "bool_param", True, CODE.INVALID_ARGUMENT, "expect int32"),
                    ("log_level", "bool_param", True, CODE.INVALID_ARGUMENT, "no log setting 'log_level'")):
                message = pb.LogSettingsRequest()
                setattr(message.settings[key], field, value)
                self.refused(daemon.stub.LogSettings, message, code, details)
            lines = len(written().splitlines())
            self.assertEqual(daemon.stop(), 0)
            new = [json.loads(line) for line in written().splitlines()[lines:]]
            self.assertIn("stopping", [line["message"] for line in new])


class AccessLogTest(Models):
    def test_a_line_for_each_request(self):
        log = self.path("access.log")
        with Daemon(self.models.name, "--log-format", "json", "--log-file", log, "--log-requests", "true") as daemon:
            daemon.stub.ModelInfer(request("linear", X, request_id="first"))
            list(daemon.stub.ModelStreamInfer(iter([request("linear", X, request_id="second")])))
            with self.assertRaises(grpc.RpcError):
                daemon.stub.ModelInfer(request("nothing", X))
            daemon.stop()
        with open(log) as file:
            all_lines = list(map(json.loads, file))
        with_version = {line["message"] for line in all_lines if "version" in line}
        self.assertGreaterEqual(with_version, {"model loaded", "request"})
        self.assertEqual([line for line in all_lines if not isinstance(line.get("version", ""), str)], [])
        lines = [line for line in all_lines if line["message"] == "request"]
        self.assertEqual([(line["model"], line["version"], line["id"], line["protocol"], line["status"]) for line in lines],
                         [("linear", "1", "first", "grpc", "OK"), ("linear", "1", "second", "grpc_stream", "OK"),
                          ("nothing", "", "", "grpc", "NOT_FOUND")])
        for line in lines:
            self.assertGreater(line["seconds"], 0)


class TraceTest(Models):
    def change(self, daemon, model="", **settings):
        message = pb.TraceSettingRequest(model_name=model)
        for key, values in settings.items():
            message.settings[key].value.extend(values)
        reply = daemon.stub.TraceSetting(message, timeout=300)
        return {key: list(setting.value) for key, setting in reply.settings.items()}

    def test_settings_and_file(self):
        trace_file = self.path("trace.json")
        with Daemon(self.models.name, "--trace-config", f"triton,file={trace_file}") as daemon:
            off = {"trace_level": ["OFF"], "trace_rate": ["1000"], "trace_count": ["-1"], "log_frequency": ["0"],
                   "trace_file": [trace_file], "trace_mode": ["triton"]}
            self.assertEqual(self.change(daemon), off)
            daemon.stub.ModelInfer(request("linear", X))
            mine = self.change(daemon, "linear", trace_level=["TIMESTAMPS", "TENSORS"], trace_rate=["2"])
            self.assertEqual(mine["trace_level"], ["TIMESTAMPS", "TENSORS"])
            self.assertEqual(self.change(daemon), off, "the server's settings stay")
            for i in range(4):
                daemon.stub.ModelInfer(request("linear", X, request_id=f"request {i + 1}"))
            daemon.stub.ModelInfer(request("words", [("words", "BYTES", [1], struct.pack("<I", 2) + b"hi")]))
            self.change(daemon, "linear", trace_level=[], trace_rate=[])
            self.assertEqual(self.change(daemon, "linear"), off)
            for settings, code, details in (({"trace_file": ["/tmp/x"]}, CODE.UNIMPLEMENTED, "trace file location can not"),
                                         ({"trace_rate": ["x"]}, CODE.INVALID_ARGUMENT, "Unable to parse 'trace_rate'"),
                                         ({"trace_count": ["-2"]}, CODE.INVALID_ARGUMENT, "out of range"),
                                         ({"trace_rate": ["1", "2"]}, CODE.INVALID_ARGUMENT, "expect only 1 value"),
                                         ({"trace_level": ["OFF", "TENSORS"]}, CODE.INVALID_ARGUMENT, "Expect only one"),
                                         ({"trace_color": ["red"]}, CODE.INVALID_ARGUMENT, "no trace setting")):
                message = pb.TraceSettingRequest()
                for key, values in settings.items():
                    message.settings[key].value.extend(values)
                self.refused(daemon.stub.TraceSetting, message, code, details)
            self.refused(daemon.stub.TraceSetting, pb.TraceSettingRequest(model_name="nope"), CODE.INVALID_ARGUMENT,
                         "Request for unknown model : nope")
            self.assertEqual(daemon.stop(), 0)
        with open(trace_file) as file:
            parts = json.load(file)
        heads = {part["id"]: part for part in parts if "model_name" in part}
        self.assertEqual(sorted(head["request_id"] for head in heads.values()), ["request 2", "request 4"])
        for part in parts:
            if "timestamps" in part:
                names = [stamp["name"] for stamp in part["timestamps"]]
                times = [stamp["ns"] for stamp in part["timestamps"]]
                self.assertEqual(times, sorted(times))
                for name in ("GRPC_WAITREAD_END", "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END",
                             "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END", "GRPC_SEND_END"):
                    self.assertEqual(names.count(name), 1, name)
        tensors = [part for part in parts if "tensor" in part]
        self.assertEqual(sorted({part["activity"] for part in tensors}),
                         ["TENSOR_BACKEND_OUTPUT", "TENSOR_QUEUE_INPUT"])
        inputs = [part["tensor"] for part in tensors if part["activity"] == "TENSOR_QUEUE_INPUT"]
        self.assertEqual(inputs[0], {"name": "x", "data": "0,1,2,3", "shape": "1,4", "dtype": "FP32"})

    def test_requests_over_http(self):
        trace_file = self.path("http_trace.json")
        with Daemon(self.models.name, "--trace-config", f"triton,file={trace_file}", "--trace-config", "level=TIMESTAMPS",
                    "--trace-config", "rate=1", "--allow-http", "true", "--http-port", "0") as daemon:
            for call, body in (("linear/infer", {"id": "whole", "inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [0] * 4}]}),
                               ("batched/generate_stream", {"id": "stream", "x": [0] * 4})):
                asked = urllib.request.Request(f"http://{daemon.ready['http']}/v2/models/{call}", json.dumps(body).encode())
                urllib.request.urlopen(asked, timeout=300).read()
            self.assertEqual(daemon.stop(), 0)
        with open(trace_file) as file:
            parts = json.load(file)
        self.assertEqual(sorted(part["request_id"] for part in parts if "model_name" in part), ["stream", "whole"])
        for stamps in [part["timestamps"] for part in parts if "timestamps" in part]:
            names = [stamp["name"] for stamp in stamps]
            self.assertEqual([stamp["ns"] for stamp in stamps], sorted(stamp["ns"] for stamp in stamps))
            self.assertEqual((names[:3], names[-2:]), (["HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START"],
                                                       ["HTTP_SEND_START", "HTTP_SEND_END"]))

    def test_spans_for_a_collector(self):
        received = []

        class Collector(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        config = ["mode=opentelemetry", "level=TIMESTAMPS", "rate=0",
                  f"opentelemetry,url=http://127.0.0.1:{server.server_port}/v1/traces",
                  "opentelemetry,resource=service.name=here", "opentelemetry,bsp_schedule_delay=100"]
        flags = [part for value in config for part in ("--trace-config", value)]
        with Daemon(self.models.name, "--allow-http", "true", "--http-port", "0", *flags) as daemon:
            self.assertEqual(self.change(daemon)["trace_mode"], ["opentelemetry"])
            trace_id, span_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
            daemon.stub.ModelInfer(request("linear", X))
            daemon.stub.ModelInfer(request("linear", X), metadata=[("traceparent", f"00-{trace_id}-{span_id}-00")])
            with self.assertRaises(grpc.RpcError):
                x = np.zeros((3, 1), np.float32)
                daemon.stub.ModelInfer(request("raises", [("x", "FP32", x.shape, x.tobytes())], request_id="mine"),
                                       metadata=[("traceparent", f"00-{trace_id}-{span_id}-01")])
            body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}).encode()
            other_id = "5bf92f3577b34da6a3ce929d0e0e4736"
            urllib.request.urlopen(urllib.request.Request(
                f"http://{daemon.ready['http']}/v2/models/linear/infer", body,
                {"traceparent": f"00-{other_id}-{span_id}-01"}), timeout=300).read()
            wait_until(lambda: received, "spans")
            daemon.stop()
        self.assertEqual({path for path, _ in received}, {"/v1/traces"})
        resources = [resource for _, body in received for resource in body["resourceSpans"]]
        self.assertIn({"key": "service.name", "value": {"stringValue": "here"}}, resources[0]["resource"]["attributes"])
        spans = [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]
        over_http = [span for span in spans if span["traceId"] == other_id]
        spans = [span for span in spans if span["traceId"] != other_id]
        self.assertEqual([span["name"] for span in spans], ["InferRequest", "raises", "compute"],
                         "with rate 0 only what the client samples")
        root, model, compute = spans
        self.assertEqual({span["traceId"] for span in spans}, {trace_id})
        self.assertEqual((root["parentSpanId"], model["parentSpanId"], compute["parentSpanId"]),
                         (span_id, root["spanId"], model["spanId"]))
        self.assertEqual(root["status"]["code"], 2)
        self.assertIn("got 3 rows", root["status"]["message"])

        def protocol(span):
            found = {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}
            return {name: value for name, value in found.items() if name.startswith(("rpc.", "server.", "http."))}

        self.assertEqual(protocol(root),
                         {"rpc.system": "grpc", "rpc.service": "inference.GRPCInferenceService", "rpc.method": "ModelInfer",
                          "rpc.grpc.status_code": "3", "server.address": "127.0.0.1",
                          "server.port": daemon.ready["grpc"].rsplit(":", 1)[1]})
        self.assertEqual(protocol(over_http[0]), {"http.request.method": "POST", "server.address": "127.0.0.1",
                                                  "server.port": daemon.ready["http"].rsplit(":", 1)[1]})
        self.assertEqual([protocol(span) for span in (model, compute)], [{}, {}])
        for span in spans:
            self.assertLess(abs(int(span["startTimeUnixNano"]) / 1e9 - time.time()), 600)
            self.assertLessEqual(int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
            self.assertIn({"key": "triton.request_id", "value": {"stringValue": "mine"}}, span["attributes"])


class CaptureTest(Models):
    def read(self, path):
        """Parses the file as described in server/executor/requests/recorded_requests.h."""
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(data[:8], b"TNSDREQ1")
        at, requests = 8, []
        while at < len(data):
            head_bytes, data_bytes = struct.unpack_from("<IQ", data, at)
            at += 12
            head = json.loads(data[at:at + head_bytes])
            at += head_bytes
            for tensor in head["inputs"] + head["outputs"]:
                tensor["data"] = data[at:at + tensor["bytes"]]
                at += tensor["bytes"]
            requests.append(head)
        return requests

    def test_capture(self):
        folder = self.path("captured")
        with Daemon(self.models.name, "--capture-dir", folder, "--capture-outputs", "true", "--capture-model", "linear",
                    "--capture-model", "raises", "--capture-max-requests", "2") as daemon:
            answers = [daemon.stub.ModelInfer(request("linear", X, request_id=f"r{i}")) for i in range(3)]
            daemon.stub.ModelInfer(request("batched", X))
            with self.assertRaises(grpc.RpcError):
                daemon.stub.ModelInfer(request("raises", [("x", "FP32", [3, 1], bytes(12))]))
            self.assertEqual(daemon.stop(), 0)
        files = glob.glob(os.path.join(folder, "*"))
        self.assertEqual(len(files), 1, "only requests that were answered well are kept")
        self.assertRegex(os.path.basename(files[0]), r"^linear-\d{8}T\d{6}\.requests$")
        requests = self.read(files[0])
        self.assertEqual([r["id"] for r in requests], ["r0", "r1"])
        self.assertEqual((requests[0]["model"], requests[0]["version"]), ("linear", "1"))
        self.assertEqual(requests[0]["inputs"][0]["data"], X[0][3])
        self.assertEqual(requests[0]["outputs"][0]["data"], answers[0].raw_output_contents[0])
        self.assertEqual(requests[0]["outputs"][0]["shape"], [1, 3])
        self.warm_up_with(files[0])

    def warm_up_with(self, file):
        """The same model with the file as its warm-up, and another model that does not accept such requests."""
        models = self.path("models")
        serve_models.save(serve_models.Linear(), models, "linear")
        serve_models.save(serve_models.Words(), models, "words")
        for name in ("linear", "words"):
            os.makedirs(os.path.join(models, name, "warmup"))
            shutil.copy(file, os.path.join(models, name, "warmup", "seen"))
            with open(os.path.join(models, name, "config.pbtxt"), "w") as config:
                config.write('parameters { key: "warmup_requests" value { string_value: "seen" } }\n')
        with Daemon(models) as daemon:
            daemon.stub.ModelInfer(request("linear", X))
            self.assertGreater(daemon.metric("tensord_plan_cache_hits_total", model="linear"), 0)
            self.refused(daemon.stub.ModelInfer, request("words", X), CODE.UNAVAILABLE, "seen")


class MetricsTest(Models):
    @needs("promtool")
    def test_names_of_triton(self):
        with Daemon(self.models.name, "--metrics-compat", "triton") as daemon:
            daemon.stub.ModelInfer(request("linear", X))
            with self.assertRaises(grpc.RpcError):
                daemon.stub.ModelInfer(request("raises", [("x", "FP32", [3, 1], bytes(12))]))
            self.assertEqual(daemon.metric("nv_inference_request_success", model="linear"), 1)
            self.assertEqual(daemon.metric("nv_inference_request_failure", model="raises", reason="BACKEND"), 1)
            self.assertGreater(daemon.metric("nv_inference_request_duration_us", model="linear"), 0)
            checked = subprocess.run(["promtool", "check", "metrics"], input=daemon.metrics(), capture_output=True,
                                     text=True)
            self.assertNotIn("error", (checked.stdout + checked.stderr).lower())

    @needs("prometheus")
    def test_prometheus_reads_native_histograms(self):
        config = self.path("prometheus.yml")
        with Daemon(self.models.name) as daemon:
            for _ in range(20):
                daemon.stub.ModelInfer(request("linear", X))
            with open(config, "w") as file:
                file.write("scrape_configs:\n- job_name: tensord\n  scrape_interval: 1s\n  static_configs:\n"
                           f"  - targets: ['{daemon.ready['metrics']}']\n")
            port = free_port()
            prometheus = subprocess.Popen(
                ["prometheus", "--config.file", config, "--storage.tsdb.path", self.path("tsdb"),
                 "--enable-feature=native-histograms", "--web.listen-address", f"127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                query = 'histogram_quantile(0.9, tensord_request_duration_seconds{model="linear"})'
                value = ask_prometheus(port, query)
                count = ask_prometheus(port, 'histogram_count(tensord_request_duration_seconds{model="linear"})')
            finally:
                prometheus.kill()
                prometheus.wait()
        self.assertEqual(count, 20)
        self.assertGreater(value, 1e-6)
        self.assertLess(value, 10)


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask_prometheus(port, query):
    import urllib.error
    import urllib.parse
    import urllib.request
    result = []

    def has_answer():
        try:
            url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            with urllib.request.urlopen(url, timeout=5) as response:
                result[:] = json.load(response)["data"]["result"]
        except (urllib.error.URLError, ConnectionError):
            return False
        return bool(result)

    wait_until(has_answer, query, timeout=60)
    return float(result[0]["value"][1])


if __name__ == "__main__":
    unittest.main()
