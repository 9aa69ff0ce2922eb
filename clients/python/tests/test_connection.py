"""Retries, deadlines, tokens, TLS and addresses, against scripted servers."""

import asyncio
import math
import subprocess
import time
from concurrent import futures

import grpc
import numpy as np
import pytest

import tensord
from conftest import start
from tensord._connection import Settings, resolve
from tensord._protocol import inference as pb

ROW = np.arange(16, dtype=np.int32)[None]


class Scripted(grpc.GenericRpcHandler):
    """Answers each call with the next of `steps`: a status code with trailers, message bytes, or a delay in seconds."""

    def __init__(self):
        self.steps = []
        self.calls = []

    def service(self, call_details):
        def answer(request, context):
            self.calls.append((call_details.method, time.monotonic(), dict(call_details.invocation_metadata)))
            step = self.steps.pop(0)
            if isinstance(step, float):
                time.sleep(step)
                return LIVE
            if isinstance(step, bytes):
                return step
            code, trailers = step
            context.set_trailing_metadata(trailers)
            context.abort(code, "as the test wants")

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture()
def scripted():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    handler = Scripted()
    server.add_generic_rpc_handlers((handler,))
    handler.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield handler
    server.stop(None)


UNAVAILABLE = (grpc.StatusCode.UNAVAILABLE, ())
LIVE = pb.ServerLiveResponse(live=True).SerializeToString()
QUICK = tensord.Retry(attempts=3, initial_backoff=0.01)


def live(scripted, is_async, **settings):
    if not is_async:
        with tensord.Client(scripted.address, **settings) as client:
            return client.live()

    async def ask():
        async with tensord.AsyncClient(scripted.address, **settings) as client:
            return await client.live()

    return asyncio.run(ask())


@pytest.mark.parametrize("is_async", [False, True])
def test_unavailable_is_tried_again(scripted, is_async):
    scripted.steps = [UNAVAILABLE, UNAVAILABLE, LIVE]
    assert live(scripted, is_async, retry=QUICK) and len(scripted.calls) == 3


@pytest.mark.parametrize("is_async", [False, True])
def test_not_more_often_than_said(scripted, is_async):
    scripted.steps = [UNAVAILABLE] * 4
    with pytest.raises(tensord.UnavailableError, match="as the test wants"):
        live(scripted, is_async, retry=QUICK)
    assert len(scripted.calls) == 3


def test_other_statuses_are_not_tried_again(scripted):
    scripted.steps = [(grpc.StatusCode.RESOURCE_EXHAUSTED, ()), LIVE]
    with pytest.raises(tensord.ResourceExhaustedError):
        live(scripted, False, retry=QUICK)
    assert live(scripted, False)
    scripted.steps = [(grpc.StatusCode.RESOURCE_EXHAUSTED, ()), LIVE]
    assert live(scripted, False, retry=tensord.Retry(codes=frozenset({"RESOURCE_EXHAUSTED"})))


def test_what_must_not_come_twice_is_sent_once(scripted):
    scripted.steps = [UNAVAILABLE] * 3
    with tensord.Client(scripted.address, retry=QUICK) as client:
        with pytest.raises(tensord.UnavailableError):
            client.train("m")
        with pytest.raises(tensord.UnavailableError):
            client.sequence("m").infer({"x": ROW})
    assert len(scripted.calls) == 2


def test_the_server_may_say_when(scripted):
    scripted.steps = [(grpc.StatusCode.UNAVAILABLE, (("grpc-retry-pushback-ms", "200"),)), LIVE]
    assert live(scripted, False, retry=QUICK)
    (_, first, _), (_, second, _) = scripted.calls
    assert second - first >= 0.2
    scripted.steps = [(grpc.StatusCode.UNAVAILABLE, (("grpc-retry-pushback-ms", "-1"),)), LIVE]
    with pytest.raises(tensord.UnavailableError):
        live(scripted, False, retry=QUICK)


def test_the_timeout_bounds_all_attempts(scripted):
    scripted.steps = [UNAVAILABLE] * 9
    begin = time.monotonic()
    with pytest.raises(tensord.UnavailableError):
        live(scripted, False, timeout=0.3, retry=tensord.Retry(attempts=9, initial_backoff=0.2, max_backoff=5))
    assert time.monotonic() - begin < 5 and len(scripted.calls) < 4


@pytest.mark.parametrize("is_async", [False, True])
def test_a_deadline(scripted, is_async):
    scripted.steps = [1.0]
    with pytest.raises(tensord.DeadlineExceededError):
        live(scripted, is_async, timeout=0.1)


def test_typed_contents(scripted):
    answer = pb.ModelInferResponse(model_name="m", model_version="2")
    for name, datatype, field, values in (("a", "FP32", "fp32_contents", [1.5]), ("b", "UINT8", "uint_contents", [7]),
                                          ("c", "BYTES", "bytes_contents", [b"t"]),
                                          ("d", "BOOL", "bool_contents", [True])):
        getattr(answer.outputs.add(name=name, datatype=datatype, shape=[1]).contents, field).extend(values)
    scripted.steps = [answer.SerializeToString()]
    with tensord.Client(scripted.address) as client:
        result = client.infer("m", {"x": ROW})
    assert {name: array.tolist() for name, array in result.items()} == {
        "a": [1.5], "b": [7], "c": [b"t"], "d": [True]}
    assert result["b"].dtype == np.uint8


@pytest.mark.parametrize("answer", [b"\x2a\xff", b"\xff", pb.ModelInferResponse(
    outputs=[{"name": "y", "datatype": "FP32", "shape": [2]}], raw_output_contents=[b"abc"]).SerializeToString(),
    pb.ModelInferResponse(outputs=[{"name": "y", "datatype": "FP32", "shape": [2]}]).SerializeToString()])
def test_answers_that_make_no_sense(scripted, answer):
    scripted.steps = [answer]
    with tensord.Client(scripted.address) as client, pytest.raises(tensord.TensordError) as caught:
        client.infer("m", {"x": ROW})
    assert caught.value.code == "INTERNAL"


def test_headers_and_tokens(scripted):
    tokens = iter(["first", "second"])
    scripted.steps = [LIVE, LIVE, pb.ModelInferResponse(model_name="m").SerializeToString()]
    with tensord.Client(scripted.address, token=lambda: next(tokens), headers={"X-Mine": "1"}) as client:
        client.live()
        client.live()
    with tensord.Client(scripted.address) as client:
        client.infer("m", {"x": ROW}, headers={"Traceparent": "t"})
    first, second, third = (headers for _, _, headers in scripted.calls)
    assert first["x-mine"] == "1" and first["authorization"] == "Bearer first" and "authorization" not in third
    assert second["authorization"] == "Bearer second" and third["traceparent"] == "t"


@pytest.mark.parametrize("address, target, has_tls", [
    ("host", "host:8001", False), ("host:1", "host:1", False), ("grpc://host:1/", "host:1", False),
    ("grpcs://host", "host:8001", True), ("unix:/a/b", "unix:/a/b", False), ("dns:///h:2", "dns:///h:2", False),
])
def test_addresses(address, target, has_tls):
    resolved, tls, _ = resolve(address, Settings())
    assert (resolved, tls is not None) == (target, has_tls)


def test_wrong_settings():
    for address in ("", "http://host:8000", "grpc://"):
        with pytest.raises(tensord.InvalidArgumentError, match="address"):
            tensord.Client(address)
    with pytest.raises(tensord.InvalidArgumentError, match="compression"):
        tensord.Client("host", compression="zip")
    with pytest.raises(FileNotFoundError):
        tensord.Client("host", tls=tensord.TLS("/not/there.pem"))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A key and a self-signed certificate for `tensord.test`."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj",
                    "/CN=tensord.test", "-addext", "subjectAltName=DNS:tensord.test"], check=True, capture_output=True)
    return folder


def test_tls_tokens_and_compression(certificates, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("inference,health secret\n")
    cert, key = str(certificates / "cert.pem"), str(certificates / "key.pem")
    socket = str(tmp_path / "socket")
    inputs = {"INPUT0": ROW, "INPUT1": ROW}
    with start("--grpc-use-ssl-mutual", "true", "--grpc-server-cert", cert, "--grpc-server-key", key,
               "--grpc-root-cert", cert, "--access-tokens", str(tokens), "--grpc-unix-socket", socket) as daemon:
        address = "grpcs://" + daemon.ready["grpc"]
        tls = tensord.TLS(cert, cert, (certificates / "key.pem").read_bytes(), server_name="tensord.test")
        for compression in ("", "gzip", "deflate"):
            with tensord.Client(address, tls=tls, token="secret", compression=compression) as client:
                np.testing.assert_array_equal(client.infer("simple", inputs)["OUTPUT0"], 2 * ROW)
                with pytest.raises(tensord.PermissionDeniedError):
                    client.models()
        with tensord.Client(address, tls=tls) as client, pytest.raises(tensord.UnauthenticatedError):
            client.infer("simple", inputs)
        with tensord.Client(address, tls=tensord.TLS(cert, server_name="tensord.test"), token="secret", timeout=2,
                            retry=tensord.NO_RETRY) as client, pytest.raises(tensord.UnavailableError):
            client.live()  # without a client certificate
        with tensord.Client("unix:" + socket, token="secret", timeout=math.inf) as client:
            assert client.infer("simple", inputs).version == "1"
