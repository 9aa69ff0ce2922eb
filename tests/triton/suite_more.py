"""L0_response_cache, L0_rate_limiter, L0_metrics, L0_logging, L0_trace, L0_request_cancellation, L0_grpc_state_cleanup,
L0_warmup, L0_secure_grpc, and a list of completely omitted suites."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import kit_paths as paths
from harness import (BIN, CLIENT, MODELS, PYTHON, QA, WORK, Server, check, copy_models, edit, folder, methods, metrics, prepared, run_methods,
                     run_script, skip)
from not_passing import LEFT_OUT_WHOLE

F = "_float32_float32_float32"


def append(path, text):
    path.write_text(path.read_text() + "\n" + text + "\n")


def model(target, source, name, more="", edits=()):
    paths.renamed(target, source, name, edits)
    append(target / name / "config.pbtxt", more)


def starts(suite, name, models, flags, want, text=None):
    with Server(models, flags=flags, name="starts", wait=10) as server:
        log = server.log
        good = server.up == want
        check(suite, name, good and (text is None or re.search(text, log) is not None), log[-500:], kind="qa")


def cache():
    models = folder("cache") / "models"
    model(models, MODELS / "small" / "identity_fp32", "identity_cache", "response_cache { enable: True }")
    explicit = ["--model-control-mode", "explicit", "--load-model", "identity_cache"]
    suite = "L0_response_cache"
    starts(suite, "test.sh: --response-cache-byte-size=8192", models, [*explicit, "--response-cache-byte-size=8192"], True)
    starts(suite, "test.sh: --cache-config=local,size=8192", models, [*explicit, "--cache-config=local,size=8192"], True)
    starts(suite, "test.sh: two caches are refused", models,
           [*explicit, "--cache-config=local,size=8192", "--cache-config=redis,key=value"], False)
    starts(suite, "test.sh: both flags are refused", models,
           [*explicit, "--response-cache-byte-size=12345", "--cache-config=local,size=67890"], False)
    skip(suite, "test.sh: redis (8 cases)", "no redis cache")
    decoupled = folder("cache_decoupled") / "models"
    model(decoupled, MODELS / "decoupled" / "square_int32", "decoupled_cache", "response_cache { enable: True }")
    with Server(decoupled, flags=["--cache-config=local,size=10480"], name="cache_decoupled", wait=10) as server:
        check(suite, "test.sh: a decoupled model with the cache is refused", "cannot be served" in server.log, server.log[-400:], kind="qa")
    test = prepared("L0_response_cache/ensemble_cache_test.py", folder("cache_test"))
    target = test.parent / "models" / "ensemble_models"
    shutil.rmtree(target.parent, ignore_errors=True)
    copy_models(MODELS / "qa_model", target, "onnx" + F)
    copy_models(MODELS / "qa_ensemble", target, "simple_onnx" + F)
    # This test's repository has versions 1 and 3.
    for name in methods(test):
        size = "200" if "insertion_failure" in name else "1048576"
        with Server(target, flags=["--cache-config", f"local,size={size}", "--model-control-mode", "explicit"], name="cache"):
            run_methods(suite, test, [name])


def limiter():
    suite = "L0_rate_limiter"
    test = prepared("L0_rate_limiter/rate_limiter_test.py", folder("limiter_test"))
    edit(test, (r"_inference_count = \d+", "_inference_count = 120"))

    def two(second='{ name: "resource1" count: 2 }, { name: "resource2" global: True count: 2 }'):
        models = folder("limiter") / "models"
        shape = [(r"dims: \[ -1 \]", "dims: [ 1 ]")]
        model(models, MODELS / "limits" / "delay_100", "custom_zero_1_float32",
              'instance_group [ { kind: KIND_CPU count: 1 rate_limiter { resources [ { name: "resource1" count: 4 } ] } } ]', shape)
        model(models, MODELS / "limits" / "delay_100", "custom_zero_1_float32_v2",
              f"instance_group [ {{ kind: KIND_CPU count: 1 rate_limiter {{ resources [ {second} ] priority: 2 }} }} ]", shape)
        return models

    on = "--rate-limit=execution_count"
    for name, flags, text in (
            ("a resource of 1 where 4 are needed", ["--rate-limit-resource=resource1:1"], None),
            ("a resource of 3 where 4 are needed", ["--rate-limit-resource=resource1:3", "--rate-limit-resource=resource2:2"], None)):
        with Server(two(), flags=[on, *flags], name="limiter", wait=15) as server:
            check(suite, f"test.sh: {name}: not served", not server.up or "cannot be served" in server.log, server.log[-500:], kind="qa")
    models = two('{ name: "resource1" count: 2 }, { name: "resource1" global: True count: 2 }')
    with Server(models, flags=[on], name="limiter", wait=15) as server:
        check(suite, "test.sh: a resource both global and not: not served", not server.up or "cannot be served" in server.log,
              server.log[-500:], kind="qa")
    # Triton ignores the device of a global resource; tensord requires `global` to be explicit.
    for more, label in (("", ""), (":global", " [resource2:2:global]")):
        with Server(two(), flags=[on, "--rate-limit-resource=resource1:4", "--rate-limit-resource=resource2:2" + more], name="limiter", wait=60):
            for name in ("test_single_model", "test_cross_model_prioritization_limited_resource"):
                run_methods(suite, test, ["RateLimiterTest." + name], timeout=180, label=label)
        with Server(two(), flags=[on, "--rate-limit-resource=resource1:6", "--rate-limit-resource=resource2:2" + more], name="limiter", wait=60):
            run_methods(suite, test, ["RateLimiterTest.test_cross_model_prioritization_plenty_resource"], timeout=180, label=label)
    models = folder("limiter_dynamic") / "models"
    model(models, MODELS / "limits" / "delay_100", "custom_zero_1_float32",
          "dynamic_batching { preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 5000000 }\n"
          'instance_group [ { kind: KIND_CPU count: 1 rate_limiter { resources [ { name: "resource1" count: 4 } ] } } ]',
          [(r"dims: \[ -1 \]", "dims: [ 1 ]")])
    with Server(models, flags=[on], name="limiter", wait=60):
        run_methods(suite, test, ["RateLimiterTest.test_single_model_dynamic_batching"], env={"TRITONSERVER_DELAY_SCHEDULER": "8"}, timeout=180)
    models = folder("limiter_sequence") / "models"
    model(models, MODELS / "sequence" / "custom_sequence_int32", "custom_sequence_int32", "", [
        (r"count: 1|kind: KIND_CPU", 'kind: KIND_CPU count: 2 rate_limiter { resources [ { name: "resource1" count: 4 } ] }')])
    with Server(models, flags=[on], name="limiter"):
        run_methods(suite, test, ["RateLimiterTest.test_single_model_sequence_batching"])


COMPAT = ["--metrics-compat", "triton"]


def metric():
    suite = "L0_metrics"
    test = prepared("L0_metrics/metrics_config_test.py", folder("metrics_test"))
    models = folder("metrics") / "models"
    model(models, MODELS / "small" / "identity_fp32", "identity_cache_off")
    model(models, MODELS / "small" / "identity_fp32", "identity_cache_on", "response_cache { enable: true }")
    one = lambda name: ["--model-control-mode", "explicit", "--load-model", name]
    plain = "MetricsConfigTest.test_inf_counters_exist"
    with Server(models, flags=one("identity_cache_off"), name="metrics"):
        run_methods(suite, test, [plain], label=" [without --metrics-compat]")
    with Server(models, flags=COMPAT + one("identity_cache_off"), name="metrics"):
        run_methods(suite, test, [plain, "MetricsConfigTest.test_inf_histograms_missing", "MetricsConfigTest.test_inf_summaries_missing",
                                  "MetricsConfigTest.test_cache_counters_missing", "MetricsConfigTest.test_cache_summaries_missing"])
    with Server(models, flags=COMPAT + one("identity_cache_on") + ["--cache-config", "local,size=1048576"], name="metrics"):
        run_methods(suite, test, [plain, "MetricsConfigTest.test_cache_counters_exist"], label=" [cache]")
    for name in ("test_inf_histograms_exist", "test_inf_summaries_exist", "test_inf_counters_missing", "test_summaries_custom_quantiles",
                 "test_inf_summaries_exist_with_cache", "test_cache_summaries_exist"):
        skip(suite, f"MetricsConfigTest.{name}", "needs --metrics-config; tensord's own histograms are always there, and summaries "
             "cannot be added up over servers")
    for name in ("test_model_namespacing_label_with_namespace_on", "test_model_namespacing_label_with_namespace_off"):
        skip(suite, f"MetricsConfigTest.{name}", "needs --model-namespacing; a name is one model's")
    skip(suite, "MetricsConfigTest.test_pinned_memory_metrics_exist", "no pinned memory")
    for name in ("test_ensemble_decoupled", "test_buckets_override"):
        skip(suite, f"TestHistogramMetrics.{name}", "needs --metrics-config histogram_latencies and a Python model")
    for name in methods(test.parent / "pinned_memory_metrics_test.py"):
        skip(suite, name, "no pinned memory")
    repository = copy_models(MODELS / "qa_model", folder("metrics_cpu") / "models", "libtorch" + F)
    with Server(repository, flags=COMPAT, name="metrics_cpu"):
        run_methods(suite, test.parent / "cpu_metrics_test.py", timeout=180)
    repository = folder("metrics_queue") / "models"
    shape = [(r"dims: \[ -1 \]", "dims: [ 1 ]")]
    slow = MODELS / "limits" / "delay_2000"
    fact = 'instance_group [ { count: 1 kind: KIND_CPU } ]\nparameters [ { key: "execute_delay_ms" value: { string_value: "2000" } } ]\n'
    wait = "max_queue_delay_microseconds: 1000000"
    model(repository, slow, "default", fact, shape)
    for name in ("dynamic", "dynamic_composing"):
        model(repository, slow, name, fact + f"dynamic_batching {{ {wait} }}", shape)
    model(repository, slow, "default_composing", fact, shape)
    model(repository, slow, "max_queue_size", fact + f"dynamic_batching {{ {wait} default_queue_policy {{ max_queue_size: 4 }} }}", shape)
    model(repository, slow, "sequence_direct", fact + f"sequence_batching {{ direct {{ {wait} minimum_slot_utilization: 1 }} }}", shape)
    model(repository, slow, "sequence_oldest", fact + f"sequence_batching {{ oldest {{ max_candidate_sequences: 4 {wait} }} }}", shape)
    shutil.copytree(QA / "L0_metrics" / "ensemble_delay", repository / "ensemble")
    append(repository / "ensemble" / "config.pbtxt", 'name: "ensemble"')
    (repository / "ensemble" / "1").mkdir()
    for name in methods(test.parent / "metrics_queue_size_test.py"):
        with Server(repository, flags=COMPAT, name="metrics_queue", wait=120):
            run_methods(suite, test.parent / "metrics_queue_size_test.py", [name], timeout=180)


def logs():
    test = prepared("L0_logging/logging_endpoint_test.py", folder("logging_test"))
    with Server(MODELS / "examples", name="logging", flags=["--log-format", "default"]):
        run_methods("L0_logging", test)
    # A short form of log_format_test.py, which starts a server by itself: lines in both formats, and a client's string
    # cannot forge one.
    text = (QA / "L0_logging" / "log_format_test.py").read_text()
    form = {name.lower(): re.search(rf'(?m)^{name}_LOG_RECORD = (r".*")$', text).group(1) for name in ("DEFAULT", "ISO8601")}
    for kind, pattern in form.items():
        pattern = eval(pattern)  # a raw string of the test
        path = folder("log_" + kind) / "server.log"
        with Server(MODELS / "examples", name="log_format", flags=["--log-format", "ISO8601" if kind == "iso8601" else kind, "--log-file",
                                                                   path, "--log-verbose", "1"], wait=8):
            time.sleep(4)
            lines = path.read_text().splitlines() if path.exists() else []
        bad = [line for line in lines if not re.match(pattern, line)]
        check("L0_logging", f"TestLogFormat.test_format[{kind}]: every line has Triton's form", lines and not bad, "\n".join(bad[:3]),
              kind="qa")
    for name in ("default_unescaped", "ISO8601_unescaped"):
        skip("L0_logging", f"TestLogFormat.test_format[{name}]", "needs TRITON_SERVER_ESCAPE_LOG_MESSAGES=0; what clients write is always escaped")
    path = folder("log_injection") / "server.log"
    with Server(MODELS / "examples", name="log_injection", flags=["--log-file", path, "--log-verbose", "1"], wait=8):
        subprocess.run([PYTHON, "-c", "import numpy as np, tritonclient.grpc as g\nc = g.InferenceServerClient('localhost:8001')\n"
                        "i = g.InferInput('\\nI0205 18:34:18.707423 1 file.cc:123] INJECTED\\n\\x1b[31m', [1, 3], 'FP32')\n"
                        "i.set_data_from_numpy(np.zeros((1, 3), np.float32))\ntry:\n    c.infer('simple', [i])\nexcept Exception:\n    pass\n"])
        time.sleep(0.5)
        text = path.read_text()
    check("L0_logging", "TestLogFormat.test_injection: a client's text makes no line of its own, and no control characters",
          not re.search(r"(?m)^I0205", text) and "\x1b" not in text, text[-400:], kind="qa")


def traces():
    suite = "L0_trace"
    test = prepared("L0_trace/trace_endpoint_test.py", folder("trace_test"))
    models = folder("trace") / "models"
    source = MODELS / "qa_model" / "onnx_int32_int32_int32"
    for name in ("simple", "global_simple"):
        paths.renamed(models, source, name)
        for version in ("2", "3"):
            shutil.rmtree(models / name / version)
    names = methods(test)

    def traced(*settings):
        return [part for setting in settings for part in ("--trace-config", setting)]

    os.chdir(folder("trace_cwd"))
    for name in names:
        with Server(models, name="trace", flags=traced("triton,file=global_unittest.log", "level=TIMESTAMPS", "rate=1")):
            run_methods(suite, test, [name])
    with Server(models, name="trace_old", flags=["--trace-file=global_unittest.log", "--trace-level=TIMESTAMPS", "--trace-rate=1"],
                wait=5) as server:
        check(suite, "the old flags --trace-file, --trace-level, --trace-rate", server.up, server.log[-200:], kind="qa")
    # test.sh: rate 1 after OFF; summaries by qa/common/trace_summary.py.
    summary = QA / "common" / "trace_summary.py"
    infer = CLIENT / "src" / "python" / "examples" / "simple_grpc_infer_client.py"
    from harness import environment
    path = pathlib.Path("trace_off_to_min.log").resolve()
    with Server(models, name="trace_off", flags=traced(f"triton,file={path}", "level=OFF", "rate=1")):
        for count in range(3):
            subprocess.run([PYTHON, infer], env=environment(), capture_output=True)
        subprocess.run([PYTHON, "-c", "import tritonclient.grpc as g; g.InferenceServerClient('localhost:8001').update_trace_settings("
                        "settings={'trace_level': ['TIMESTAMPS']})"], env=environment())
        for count in range(5):
            subprocess.run([PYTHON, infer], env=environment(), capture_output=True)
    run = subprocess.run([PYTHON, summary, "-t", path], capture_output=True, text=True, env=environment())
    check(suite, "test.sh: traces switched on by a call; trace_summary.py reads them: 10 requests with COMPUTE_INPUT_END",
          run.stdout.count("COMPUTE_INPUT_END") == 10,  # the client sends two requests
 run.stdout[-600:] + run.stderr[-600:], kind="qa")
    path = pathlib.Path("rate6.log").resolve()
    with Server(models, name="trace_rate", flags=traced(f"triton,file={path}", "level=TIMESTAMPS", "rate=6")):
        subprocess.run([PYTHON, "-c", "import tritonclient.grpc as g; g.InferenceServerClient('localhost:8001').update_trace_settings("
                        "'simple', {'log_frequency': '2'})"], env=environment())
        for count in range(10):
            subprocess.run([PYTHON, infer], env=environment(), capture_output=True)
    counts = []
    for part in ("0", "1"):
        run = subprocess.run([PYTHON, summary, "-t", f"{path}.{part}"], capture_output=True, text=True, env=environment())
        counts.append(run.stdout.count("COMPUTE_INPUT_END"))
    check(suite, "own: GRPC_WAITREAD_START is in the traces of ModelInfer (by it trace_summary.py knows gRPC)",
          "GRPC_WAITREAD_START" in path.with_name(path.name + ".0").read_text(), "it is not")
    check(suite, "test.sh: rate 6, log_frequency 2 for one model: 20 requests give files of 2 and 1", counts == [2, 1], str(counts), kind="qa")
    path = pathlib.Path("http.log").resolve()
    with Server(models, name="trace_http", flags=traced(f"triton,file={path}", "level=TIMESTAMPS", "rate=1")):
        subprocess.run([PYTHON, infer.with_name("simple_http_infer_client.py")], env=environment(), capture_output=True)
    run = subprocess.run([PYTHON, summary, path], capture_output=True, text=True, env=environment())
    check(suite, "own: trace_summary.py knows requests over HTTP", "HTTP infer request (avg)" in run.stdout and "Send (avg)" in run.stdout,
          run.stdout[-600:] + run.stderr[-600:])
    for name in re.findall(r"    def (test_\w+)", (test.parent / "opentelemetry_unittest.py").read_text()):
        skip(suite, f"OpenTelemetryTest.{name}", "needs the collector's container and Python models; see own checks")
    opentelemetry(models, environment)


def opentelemetry(models, environment):
    """The assertions of opentelemetry_unittest.py about a span over gRPC: names, parents, attributes, events."""
    import http.server
    import threading
    bodies = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    collector = http.server.HTTPServer(("127.0.0.1", 4318), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with Server(models, name="otel", flags=["--trace-config", "mode=opentelemetry", "--trace-config", "level=TIMESTAMPS", "--trace-config",
                                            "rate=1", "--trace-config", "opentelemetry,url=http://127.0.0.1:4318/v1/traces",
                                            "--trace-config", "opentelemetry,resource=test.key=test.value"]):
        subprocess.run([PYTHON, "-c", "import numpy as np, tritonclient.grpc as g\nc = g.InferenceServerClient('localhost:8001')\n"
                        "ins = []\nfor n in ('INPUT0', 'INPUT1'):\n    i = g.InferInput(n, [1, 16], 'INT32')\n"
                        "    i.set_data_from_numpy(np.ones((1, 16), np.int32)); ins.append(i)\n"
                        f"c.infer('simple', ins, request_id='1', headers={{'traceparent': '{parent}'}})\n"], env=environment())
        time.sleep(3)
    collector.shutdown()
    spans = [span for body in bodies for resource in body["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]
    resources = [attribute for body in bodies for resource in body["resourceSpans"] for attribute in resource["resource"]["attributes"]]
    by_name = {span["name"]: span for span in spans}
    kind = {name: {a["key"] for a in span.get("attributes", [])} for name, span in by_name.items()}
    events = {name: {e["name"] for e in span.get("events", [])} for name, span in by_name.items()}
    suite = "L0_trace"
    check(suite, "own: spans InferRequest, simple, compute", {"InferRequest", "simple", "compute"} <= set(by_name), str(list(by_name)))
    if {"InferRequest", "simple", "compute"} <= set(by_name):
        check(suite, "own: each is the child of the one before", by_name["simple"].get("parentSpanId") == by_name["InferRequest"]["spanId"] and
              by_name["compute"].get("parentSpanId") == by_name["simple"]["spanId"], str(by_name)[:600])
        check(suite, "own: traceparent's trace and span are the parents", by_name["InferRequest"]["traceId"] == parent[3:35] and
              by_name["InferRequest"].get("parentSpanId") == parent[36:52], str(by_name["InferRequest"])[:400])
        want = {"triton.model_name", "triton.model_version", "triton.trace_id", "triton.request_id"}
        check(suite, "own: attributes triton.model_name, .model_version, .trace_id, .request_id of the model's span",
              want <= kind["simple"], str(kind))
        check(suite, "own: events REQUEST_START, QUEUE_START, REQUEST_END of the model's span",
              {"REQUEST_START", "QUEUE_START", "REQUEST_END"} <= events["simple"], str(events))
        check(suite, "own: events COMPUTE_START, COMPUTE_INPUT_END, COMPUTE_OUTPUT_START, COMPUTE_END of compute",
              {"COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"} <= events["compute"], str(events))
        check(suite, "own: gRPC events of the root span", any("GRPC" in event for event in events["InferRequest"]), str(events))
    check(suite, "own: the resource has service.name triton-inference-server or what was configured, and test.key",
          any(a["key"] == "test.key" for a in resources) and any(a["key"] == "service.name" for a in resources), str(resources))


def cancellation():
    suite = "L0_request_cancellation"
    test = prepared("L0_request_cancellation/grpc_cancellation_test.py", folder("cancellation_test"))
    models = folder("cancellation") / "models"
    source = MODELS / "grpc" / "custom_identity_int32"
    paths.renamed(models, source, "custom_identity_int32")
    for name in methods(test):
        if "cancellation_at" in name or "cancellation_before" in name or "during_cancellation" in name:
            skip(suite, name, "needs TRITONSERVER_DELAY_GRPC_..., switches of Triton's tests")
            continue
        with Server(models, name="cancellation"):
            run_methods(suite, test, [name])
    scheduler = test.parent / "scheduler_test.py"
    models = folder("cancellation_scheduler") / "models"
    slow = MODELS / "limits" / "delay_5000"
    model(models, slow, "dynamic_batch", "instance_group [ { count: 1 kind: KIND_CPU } ]\ndynamic_batching { max_queue_delay_microseconds: 600000 }",
          [(r"max_batch_size: \d+", "max_batch_size: 2")])
    model(models, slow, "sequence_direct", "instance_group [ { count: 1 kind: KIND_CPU } ]\nsequence_batching { direct {} "
          "max_sequence_idle_microseconds: 6000000 }", [(r"max_batch_size: \d+", "max_batch_size: 1")])
    model(models, slow, "sequence_oldest", "instance_group [ { count: 1 kind: KIND_CPU } ]\nsequence_batching { oldest { "
          "max_candidate_sequences: 1 } max_sequence_idle_microseconds: 6000000 }", [(r"max_batch_size: \d+", "max_batch_size: 1")])
    model(models, slow, "delayed_identity", "", [(r"max_batch_size: \d+", "max_batch_size: 1")])
    paths.renamed(models, MODELS / "queue" / "ensemble_zero_1_float32", "ensemble_model", [
        (r"max_batch_size: \d+", "max_batch_size: 1"), (r'model_name: "custom_zero_1_float32"', 'model_name: "delayed_identity"')])
    for name in methods(scheduler):
        with Server(models, name="cancellation_scheduler", flags=COMPAT, wait=150):
            run_methods(suite, scheduler, [name])
    skip(suite, "implicit_state_test.py", "looks for lines of Triton's debug log")


def cleanup():
    suite = "L0_grpc_state_cleanup"
    # The test only finds the server's process if it is a main program.
    test = prepared("L0_grpc_state_cleanup/cleanup_test.py", folder("cleanup_test"), [
        ("L0_grpc_state_cleanup/cleanup_test.py", r"SERVER_PID = None", 'SERVER_PID = os.environ.get("SERVER_PID")')])
    models = folder("cleanup") / "models"
    paths.renamed(models, MODELS / "limits" / "delay_1000", "custom_zero_1_float32")
    paths.renamed(models, MODELS / "decoupled" / "repeat_int32", "repeat_int32")
    left_out = {name: "needs an answer that comes later; a script cannot wait between answers"
                for name in methods(test) if "decoupled" in name and ("timeout" in name or "cancellation" in name)}
    left_out["CleanUpTest.test_non_decoupled_streaming_multi_response"] = "a model with more answers than it says (custom backend)"
    for name in methods(test):
        if name in left_out:
            skip(suite, name, left_out[name])
            continue
        flags = ["--grpc-restricted-protocol", "inference:infer-key=infer-value"] if "error_status" in name else []
        with Server(models, name="cleanup", flags=flags, wait=60) as server:
            run_methods(suite, test, [name], env={"SERVER_PID": str(server.pid), "SERVER_LOG": str(server.log_path)})


def warmup():
    suite = "L0_warmup"
    zero = lambda key, datatype, dims: f'inputs {{ key: "{key}" value: {{ data_type: TYPE_{datatype} dims: {dims} zero_data: true }} }}'
    models = folder("warmup") / "models"
    model(models, MODELS / "qa_model" / ("libtorch" + F), "libtorch" + F,
          'model_warmup [{ name: "regular sample" batch_size: 1 ' + zero("INPUT0", "FP32", "16") +
          ' inputs { key: "INPUT1" value: { data_type: TYPE_FP32 dims: 16 random_data: true } } }]')
    model(models, MODELS / "qa_sequence" / "libtorch_sequence_int32", "libtorch_sequence_int32",
          'model_warmup [{ name: "sequence sample" count: 2 batch_size: 8 ' + zero("INPUT__0", "INT32", "1") + zero("START__1", "INT32", "1") +
          zero("READY__2", "INT32", "1") + " }]")
    with Server(models, name="warmup", wait=30) as server:
        check(suite, "test.sh: zero and random data, a sequence model's controls, count 2: both models are ready",
              server.up and "cannot be served" not in server.log, server.log[-600:], kind="qa")
    models = folder("warmup_string") / "models"
    model(models, MODELS / "qa_identity" / "onnx_zero_1_object", "onnx_zero_1_object",
          'model_warmup [ { name: "zero string stateless" batch_size: 1 ' + zero("INPUT0", "STRING", "16") +
          ' }, { name: "random string stateless" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_STRING dims: 16 '
          'random_data: true } } }, { name: "file" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_STRING dims: 1 '
          'input_data_file: "raw_string_data" } } } ]')
    (models / "onnx_zero_1_object" / "warmup").mkdir()
    (models / "onnx_zero_1_object" / "warmup" / "raw_string_data").write_bytes(b"\x03\x00\x00\x00233")
    with Server(models, name="warmup_string", wait=30) as server:
        check(suite, "test.sh: strings: zero, random and from a file: the model is ready", server.up and "cannot be served" not in server.log,
              server.log[-600:], kind="qa")
    models = folder("warmup_decoupled") / "models"
    model(models, MODELS / "decoupled" / "square_int32", "decoupled", 'model_warmup [{ name: "decoupled sample" ' + zero("IN", "INT32", "1") + " }]")
    with Server(models, name="warmup_decoupled", wait=30) as server:
        check(suite, "test.sh: a decoupled model is warmed up", server.up and "cannot be served" not in server.log, server.log[-600:], kind="qa")
    models = folder("warmup_bad") / "models"
    model(models, MODELS / "small" / "identity_fp32", "failing_infer",
          'model_warmup [{ name: "bad" batch_size: 1 inputs { key: "INPUT0" value: { data_type: TYPE_FP32 dims: 16 '
          'input_data_file: "not_there" } } }]')
    with Server(models, name="warmup_bad", wait=30) as server:
        check(suite, "own: a warm-up file that is not there: the model is not served, the reason says so",
              "not_there" in server.log and "cannot be served" in server.log, server.log[-600:])
    for name in ("images (4 cases)", "onnx BLS, python error (2 cases)"):
        skip(suite, f"test.sh: {name}", "other backends")


def tls():
    suite = "L0_secure_grpc"
    at = folder("tls")
    sh = lambda *args: subprocess.run(args, cwd=at, check=True, capture_output=True)
    sh("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=Root CA")
    for name in ("server", "client"):
        sh("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=localhost")
        (at / "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        sh("openssl", "x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile",
           "ext", "-out", f"{name}.crt")
    examples = CLIENT / "src" / "python" / "examples"
    good = ["--ssl", "--root-certificates", at / "ca.crt", "--private-key", at / "client.key", "--certificate-chain", at / "client.crt"]
    files = ["--grpc-server-cert", at / "server.crt", "--grpc-server-key", at / "server.key", "--grpc-root-cert", at / "ca.crt"]
    for case, flags in (("server", ["--grpc-use-ssl=1"]), ("mutual", ["--grpc-use-ssl-mutual=1"]),
                        ("both", ["--grpc-use-ssl=1", "--grpc-use-ssl-mutual=1"])):
        server = subprocess.Popen([BIN, "serve", "--model-repository", MODELS / "examples", "--grpc-port", "8001", "--metrics-port", "8002",
                                   *[str(flag) for flag in (*flags, *files)]], stderr=subprocess.DEVNULL)
        time.sleep(4)
        for name in ("simple_grpc_infer_client.py", "simple_grpc_aio_infer_client.py"):
            run_script(suite, f"{case}: {name} --ssl …", [PYTHON, examples / name, *good], want="PASS", kind="qa")
        done, text = None, ""
        run = subprocess.run([str(PYTHON), str(examples / "simple_grpc_infer_client.py")], capture_output=True, text=True, timeout=60)
        check(suite, f"{case}: a client without TLS fails", run.returncode != 0, "it passed", kind="qa")
        if case != "server":
            run = subprocess.run([str(PYTHON), str(examples / "simple_grpc_infer_client.py"), "--ssl", "--root-certificates", str(at / "ca.crt")],
                                 capture_output=True, text=True, timeout=60)
            check(suite, f"{case}: a client without a certificate fails", run.returncode != 0, "it passed", kind="qa")
        server.send_signal(signal.SIGTERM)
        server.wait(20)


OTHERS = {
    "L0_additional_dependency_dirs": "Windows", "L0_compute_capability, L0_dlpack_multi_gpu": "needs a GPU",
    "L0_client_build_variants, L0_client_java, L0_simple_go_client, L0_simple_nodejs_client": "clients in other languages",
    "L0_client_memory_growth, L0_client_valgrind, L0_memory_growth, L0_memory, L0_long_running_stress": "hours of the same requests",
    "L0_cmdline_trace": "the same settings as flags; L0_trace has them", "L0_doc_links": "the links of Triton's documentation",
    "L0_custom_ops, L0_initializer_as_input, L0_onnx_optimization, L0_trt_*": "other backends",
    "L0_dyna_implicit_state": "its models are ONNX and TensorRT only; L0_implicit_state and L0_dyna_sequence_batcher have the parts",
    "L0_mlflow, L0_multi_server, L0_python_api": "programs of Triton's own, not the server", "L0_perf_*": "measurements without a result",
    "L0_python_client_unit_tests, L0_simple_example": "what client library tests and client examples run",
    "L0_async_work_queue, L0_register, L0_triton_repo_agent, L0_backend_*, L0_java_*, L0_sdk, L0_simple_lib": "C API of the core, other backends",
    "L0_batch_custom": "custom batching strategies are libraries of a backend", "L0_batch_input": "batch_input; see L0_model_config",
    "L0_buffer_attributes, L0_parallel_copy, L0_pinned_memory, L0_cuda_*, L0_device_memory_tracker": "needs a GPU",
    "L0_openai, L0_sagemaker, L0_vertex_ai": "front ends of other services", "L0_orca": "metrics of the vLLM and TensorRT-LLM backends",
    "L0_json, data_compressor_test of L0_data_compression": "unit tests of Triton's C++ code",
    "L0_iterative_sequence": "loads a custom backend by configuration; tensord's own tests have iterative sequences",
    "L0_libtorch_shared_weights, L0_libtorch_inference_mode, L0_libtorch_optimized_execution, L0_libtorch_disable_cudnn": "lines of libtorch's log",
    "L0_model_namespacing": "needs --model-namespacing; a name is one model's",
    "L0_model_update": "counts instances of a custom backend that writes files",
    "L0_passive_instance": "instances that never run (`passive: true`)", "L0_query": "the C API's output query",
    "L0_repoagent_checksum": "repository agents, libraries that the server loads",
    "L0_response_statistics": "a custom backend that sends failed and empty answers",
    "L0_storage_*": "repositories in cloud storage; they are mounted as folders",
    "L0_torch_aoti*, L0_pytorch_python_runtime, L0_torchtrt": "other runtimes of the PyTorch backend",
}


def left_out():
    for name, reason in OTHERS.items():
        skip(LEFT_OUT_WHOLE, name, reason)


SUITES = {"cache": cache, "limiter": limiter, "metrics": metric, "logs": logs, "traces": traces, "cancellation": cancellation,
          "cleanup": cleanup, "warmup": warmup, "tls": tls, "others": left_out}
assert metrics and WORK
