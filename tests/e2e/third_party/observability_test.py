"""What operators watch a server with: gRPC's health and reflection clients, Prometheus' parsers, OpenTelemetry's SDK."""

import base64
import http.server
import json
import queue
import threading
import unittest

import grpc
import requests
from google.protobuf import json_format
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from opentelemetry import trace
from opentelemetry.propagate import inject
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import parser
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics

from tests.e2e.third_party.server import ServerTest

WAIT_S = 60
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


class HealthAndReflectionTest(ServerTest):
    def test_health(self):
        with grpc.insecure_channel(self.grpc) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            serving = health_pb2.HealthCheckResponse.SERVING
            for name in ("", "inference.GRPCInferenceService", "linear"):
                self.assertEqual(stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=WAIT_S).status, serving, name)
            with self.assertRaises(grpc.RpcError) as caught:
                stub.Check(health_pb2.HealthCheckRequest(service="nothing"), timeout=WAIT_S)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
            watch = stub.Watch(health_pb2.HealthCheckRequest(service=""), timeout=WAIT_S)
            self.assertEqual(next(watch).status, serving)
            watch.cancel()

    def test_reflection(self):
        with grpc.insecure_channel(self.grpc) as channel:
            services = ProtoReflectionDescriptorDatabase(channel).get_services()
        self.assertIn("inference.GRPCInferenceService", services)


class PrometheusTest(ServerTest):
    flags = ("--metrics-compat", "triton")

    def scrape(self, **headers):
        return requests.get(f"http://{self.metrics}/metrics", headers=headers, timeout=WAIT_S)

    def samples(self, families):
        return {(sample.name, sample.labels["model"]): sample.value for family in families for sample in family.samples
                if "model" in sample.labels}

    def test_both_formats(self):
        for _ in range(3):
            requests.post(f"http://{self.http}/v2/models/linear/infer", json=BODY, timeout=WAIT_S)
        plain = self.scrape()
        self.assertIn("text/plain", plain.headers["Content-Type"])
        found = self.samples(parser.text_string_to_metric_families(plain.text))
        self.assertEqual(found[("nv_inference_request_success_total", "linear")], 3)  # as its parser calls counters
        opened = self.scrape(Accept=OPEN_METRICS)
        self.assertIn("application/openmetrics-text", opened.headers["Content-Type"])
        found = self.samples(parse_open_metrics(opened.text))
        self.assertEqual(found[("nv_inference_request_success", "linear")], 3)
        self.assertIn(("tensord_model_loads_total", "linear"), found)
        packed = self.scrape(**{"Accept-Encoding": "gzip"})
        self.assertEqual(packed.headers["Content-Encoding"], "gzip")
        self.assertIn("nv_inference_request_success", packed.text)


class Collector:
    """Receives spans as a collector does, over OTLP/HTTP."""

    def __init__(self):
        self.received = received = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.put((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self):
        path, kind, body = self.received.get(timeout=WAIT_S)
        assert path == "/v1/traces", path
        if kind == "application/x-protobuf":
            message = ExportTraceServiceRequest.FromString(body)
        else:  # ids are hexadecimal in OTLP's JSON, and base64 in protobuf's
            message = json_format.ParseDict(with_base64_ids(json.loads(body)), ExportTraceServiceRequest())
        return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


def with_base64_ids(value):
    if isinstance(value, list):
        return [with_base64_ids(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(item)).decode() if key in ("traceId", "spanId", "parentSpanId")
            else with_base64_ids(item) for key, item in value.items()}


class OpenTelemetryTest(ServerTest):
    collector = Collector()
    flags = ("--trace-config", "mode=opentelemetry", "--trace-config", "level=TIMESTAMPS", "--trace-config", "rate=0", "--trace-config",
             f"opentelemetry,url=http://127.0.0.1:{collector.server.server_port}/v1/traces")

    def test_spans_below_the_callers(self):
        trace.set_tracer_provider(TracerProvider())
        with trace.get_tracer("client").start_as_current_span("ask") as caller:
            headers = {}
            inject(headers)
            answer = requests.post(f"http://{self.http}/v2/models/linear/infer", json=BODY, headers=headers, timeout=WAIT_S)
            self.assertEqual(answer.status_code, 200)
            context = caller.get_span_context()
        spans = self.collector.spans()
        self.assertTrue(all(span.trace_id == context.trace_id.to_bytes(16, "big") for span in spans))
        below = [span for span in spans if span.parent_span_id == context.span_id.to_bytes(8, "big")]
        self.assertEqual(len(below), 1, spans)
        self.assertTrue(all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans))
        names = {attribute.key for attribute in below[0].attributes}
        self.assertLessEqual({"http.request.method", "server.address", "server.port"}, names)


if __name__ == "__main__":
    unittest.main()
