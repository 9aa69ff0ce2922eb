"""Requests of every kind at 1, 10 and 100 times a size: the memory that they occupy stays within the quota, requests above it
are refused, and other clients are not delayed."""

import http.client
import json
import os
import threading
import time

import grpc

from tests.attacks import models
from tests.attacks.http_memory import ask, port_of
from tests.attacks.memory import RESOURCE_EXHAUSTED, code_of, settled_mb
from tests.attacks.registry import Figure, attack
from tests.e2e.daemon import pb, request

HTTP = ("--allow-http", "true", "--http-port", "0", "--http-max-input-size", "64MB", "--client-memory-quota", "128MB")
# Memory that is not the clients': the daemon itself, pages cached by the allocator, and buffers of requests about to be
# refused.
IDLE_MB, MORE_MB = 128, 64


def listed(count, one):
    return b",".join([one] * count)


def numbered(count, form):
    return b",".join(form % index for index in range(count))


def infer(datatype, shape, data):
    return b'{"inputs":[{"name":"x","datatype":"%s","shape":[%d],"data":[%s]}]}' % (datatype, shape, data)


# Path and body of a request `times` as large as the smallest; the largest is about 40 MB.
KINDS = {
    "numbers": lambda times: ("/v2/models/identity/infer", infer(b"FP32", 200_000 * times, listed(200_000 * times, b"1"))),
    "texts": lambda times: ("/v2/models/words/infer", infer(b"BYTES", 130_000 * times, listed(130_000 * times, b'""')).replace(
        b'"x"', b'"words"', 1)),
    "inputs": lambda times: ("/v2/models/identity/infer", b'{"inputs":[%s]}' % listed(
        8_000 * times, b'{"name":"x","datatype":"FP32","shape":[1],"data":[1]}')),
    "parameters": lambda times: ("/v2/models/identity/infer", b'{"inputs":[%s]}' % listed(
        100 * times, b'{"name":"x","datatype":"FP32","shape":[1],"data":[1],"parameters":{%s}}' % numbered(500, b'"%d":1'))),
    "lists": lambda times: ("/v2/models/identity/infer", infer(b"FP32", 1, listed(100_000 * times, b"[]"))),
    "one input": lambda times: ("/v2/models/identity/generate", b"{%s}" % listed(66_000 * times, b'"x":1')),
    "generated": lambda times: ("/v2/models/identity/generate", b'{"x":[%s]}' % listed(200_000 * times, b"1")),
    "log settings": lambda times: ("/v2/logging", b"{%s}" % numbered(30_000 * times, b'"%d":true')),
    "log names": lambda times: ("/v2/logging", b"{%s}" % listed(26_000 * times, b'"log_info":true')),
    "trace levels": lambda times: ("/v2/trace/setting", b'{"trace_level":[%s]}' % listed(36_000 * times, b'"OFF"')),
    "loads": lambda times: ("/v2/repository/models/identity/load",
                            b'{"parameters":{%s}}' % numbered(30_000 * times, b'"%d":""')),
    "unloads": lambda times: ("/v2/repository/models/identity/unload",
                              b'{"parameters":{%s}}' % numbered(25_000 * times, b'"%d":true')),
    "unknown": lambda times: ("/v2/repository/index", b'{"more":{%s}}' % numbered(25_000 * times, b'"%d":[{}]')),
}


@attack("charged_requests", short=True)
def charged_requests(context):
    with context.daemon(*HTTP) as daemon:
        figures = []
        for name, make in KINDS.items():
            for times in (1, 10, 100):
                path, body = make(times)
                with context.watched(daemon, IDLE_MB + 128 + MORE_MB, live_s=2) as seen:
                    status, answer = ask(daemon, path, body)
                    json.loads(answer or b"{}")
                figures += [Figure(f"{name} x{times} {figure.name}", figure.value, figure.bound, figure.unit) for figure in seen]
                if status == 429:
                    figures.append(Figure(f"{name} x{times} says the figure", b"of the 134217728 bytes" in answer, 1, at_least=True))
        figures.append(settled_mb(daemon, 200))
        status, _ = ask(daemon, "/v2/models/identity/infer", infer(b"FP32", 1, b"1"))
        figures.append(Figure("an honest request afterwards", status, 200))
    worst = {}
    for figure in figures:
        kind = figure.name.split()[-1]
        if not figure.holds() or kind not in worst or figure.value > worst[kind].value:
            worst[kind if figure.holds() else figure.name] = figure
    return list(worst.values())


@attack("control_json", short=True)
def control_json(context):
    """Two bodies of 1.2 MB for each serving thread; their clients hang up after a second."""
    body = b"{%s}" % numbered(100_000, b'"%d":null')
    deep = b'{"a":[%s]}' % listed(250_000, b"[1]")
    with context.daemon(*HTTP) as daemon:
        for path, data in (("/v2/logging", body), ("/v2/logging", deep), ("/v2/trace/setting", body), ("/v2/trace/setting", deep)):
            connection = http.client.HTTPConnection("127.0.0.1", port_of(daemon))
            connection.request("POST", path, data)
            threading.Timer(1, connection.close).start()
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port_of(daemon), timeout=60)
        connection.request("GET", "/v2/models/identity")
        status = connection.getresponse().status
        return [Figure("metadata", time.monotonic() - begin, 3, "s"), Figure("status", status, 200)]


@attack("large_json_answer", short=True)
def large_json_answer(context):
    """100 MB of numbers are 400 MB of JSON, and were twice that while it grew."""
    body = b'{"inputs":[{"name":"x","shape":[%d],"datatype":"FP32","parameters":{"binary_data_size":%d}}]}' % (25 << 20, 100 << 20)
    flags = [flag if flag != "128MB" else "256MB" for flag in HTTP]
    flags[flags.index("64MB")] = "512MB"
    with context.daemon(*flags) as daemon:
        with context.watched(daemon, IDLE_MB + 256 + 100 + MORE_MB, live_s=2) as figures:
            status, answer = ask(daemon, "/v2/models/identity/infer", body + b"\x01\x02\x03\x04" * (25 << 20),
                                 {"Inference-Header-Content-Length": str(len(body))})
        figures.append(Figure("refused", status, 429, at_least=True))
        figures.append(Figure("says the figure", b"of the 268435456 bytes" in answer, 1, at_least=True))
        figures.append(settled_mb(daemon, 200, seconds=120))
    return figures


@attack("sequence_names", short=True)
def sequence_names(context):
    """Ids of 1 MB, which a model keeps as long as their sequences."""
    repository = context.path("models")
    for name, extra in (("direct", ""), ("oldest", "oldest { max_candidate_sequences: 1000 }")):
        os.makedirs(os.path.join(repository, name, "1"))
        os.link(os.path.join(context.repository, "identity", "1", "model.pt"), os.path.join(repository, name, "1", "model.pt"))
        config = models.MODELS["identity"][1] + "max_batch_size: 8 sequence_batching { max_sequence_idle_microseconds: 60000000 %s }" % extra
        with open(os.path.join(repository, name, "config.pbtxt"), "w") as out:
            out.write(config)
    with context.daemon(*HTTP, repository=repository) as daemon:
        with context.watched(daemon, IDLE_MB + 128 + MORE_MB, live_s=2) as figures:
            codes = []
            for index in range(300):
                asked = request("oldest", [("x", "FP32", [1, 1], bytes(4))])
                asked.parameters["sequence_id"].string_param = f"{index}" + "x" * (1 << 20)
                asked.parameters["sequence_start"].bool_param = True
                codes.append(code_of(daemon.stub.ModelInfer, asked))
            for index in range(8):
                body = json.dumps({"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [1]}],
                                   "parameters": {"sequence_id": f"{index}" + "x" * (20 << 20), "sequence_start": True}})
                codes.append(ask(daemon, "/v2/models/direct/infer", body)[0])
        refused = [code in (grpc.StatusCode.INVALID_ARGUMENT, 400) for code in codes]
        figures.append(Figure("refused", sum(refused), len(refused), at_least=True))
        figures.append(settled_mb(daemon, 200))
    return figures


@attack("watched_names", short=True)
def watched_names(context):
    """Forty health watches, each of a service whose name has 20 MB; they need no token."""
    from tests.e2e.daemon import health_pb2

    with context.daemon(*HTTP) as daemon:
        with context.watched(daemon, IDLE_MB + 128 + MORE_MB, live_s=2) as figures:
            codes, watches = [], []
            for index in range(40):
                watch = daemon.health.Watch(health_pb2.HealthCheckRequest(service=f"{index}" + "x" * (20 << 20)))
                watches.append(watch)
                try:
                    next(watch)
                    codes.append(grpc.StatusCode.OK)
                except grpc.RpcError as error:
                    codes.append(error.code())
        figures.append(Figure("refused", codes.count(grpc.StatusCode.INVALID_ARGUMENT), 40, at_least=True))
    return figures


@attack("grpc_lists", short=True)
def grpc_lists(context):
    """Messages whose entries are two bytes each, and become objects when they are parsed."""
    def field(tag, body):
        size, length = b"", len(body)
        while length > 127:
            size, length = size + bytes((0x80 | length & 127,)), length >> 7
        return tag + size + bytes((length,)) + body

    values = field(b"\x0a", field(b"\x0a", b"trace_level") + field(b"\x12", b"\x0a\x00" * (16 << 20)))
    unknown = b"\xfa\x07\x00" * (11 << 20)
    with context.daemon(*HTTP) as daemon:
        with context.watched(daemon, IDLE_MB + 128 + MORE_MB, live_s=2) as figures:
            for method, body in (("TraceSetting", values), ("LogSettings", unknown), ("RepositoryIndex", unknown)):
                call = daemon.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
                figures.append(Figure(f"{method} refused", code_of(call, body) == RESOURCE_EXHAUSTED, 1, at_least=True))
        figures.append(settled_mb(daemon, 200))
    return figures


@attack("shared_memory_copies", short=True)
def shared_memory_copies(context):
    """Requests of a few bytes, each for a copy of the same 32 MB of shared memory."""
    name = f"tensord_copies_{os.getpid()}"
    with open(f"/dev/shm/{name}", "wb") as file:
        file.write(bytes(32 << 20))
    try:
        with context.daemon(*HTTP, "--allow-client-shm", "true") as daemon:
            daemon.stub.SystemSharedMemoryRegister(pb.SystemSharedMemoryRegisterRequest(name="r", key="/" + name, byte_size=32 << 20))
            asked = request("integers", [("x", "INT64", [4 << 20], None)])
            asked.inputs[0].parameters["shared_memory_region"].string_param = "r"
            asked.inputs[0].parameters["shared_memory_byte_size"].int64_param = 32 << 20
            with context.watched(daemon, IDLE_MB + 128 + 64 + MORE_MB, live_s=2) as figures:
                calls = [daemon.stub.ModelInfer.future(asked, timeout=30) for _ in range(40)]
                codes = [call.code() for call in calls]
            figures.append(Figure("answered or refused", codes.count(grpc.StatusCode.OK) + codes.count(RESOURCE_EXHAUSTED), 40,
                                  at_least=True))
            figures.append(Figure("one by itself", code_of(daemon.stub.ModelInfer, asked) == grpc.StatusCode.OK, 1, at_least=True))
    finally:
        os.unlink(f"/dev/shm/{name}")
    return figures
