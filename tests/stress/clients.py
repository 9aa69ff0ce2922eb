"""More kinds of clients, for the chaos test (chaos.py): HTTP, generation, TLS, the command line with its C++ client,
crowds, and clients that request too much."""

import http.client
import json
import socket
import struct
import subprocess

import grpc
import torch

from tests.e2e import sequence_models
from tests.e2e.daemon import BINARY, inference_pb2_grpc, pb, request
from tests.stress.actors import BUSY, WAIT_S, Actor, Stream, int32, int64

MB = 1 << 20
PROMPTS = ([1, 2, 3], [7], [4, 4, 4, 4, 4, 9], [11, 12, 13], [60], [5, 6, 7, 8])
LONGEST = 30
# The gRPC codes that HTTP statuses stand for.
REFUSED = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
CUT = (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead, socket.timeout)


def answers_of_decoders():
    """Each decoder's result for each prompt, computed by PyTorch."""
    torch.set_num_threads(1)
    growing, fixed = sequence_models.GrowingDecoder().eval(), sequence_models.FixedDecoder().eval()
    out = {}
    for prompt in PROMPTS:
        out["fixed", tuple(prompt)] = sequence_models.fixed_tokens(fixed, prompt, LONGEST)
        out["growing", tuple(prompt)] = out["whole", tuple(prompt)] = sequence_models.growing_tokens(growing, prompt, LONGEST)
    return out


class Http(Actor):
    """Uses a new connection each time."""

    def __init__(self, address, seed, folder, http_address):
        super().__init__(address, seed, folder)
        self.host, self.port = http_address.rsplit(":", 1)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=WAIT_S)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def refused(self, status, body):
        """Whether the daemon may refuse for lack of resources."""
        if status in REFUSED:
            self.count(REFUSED[status])
        return status in REFUSED


class Rest(Http):
    """JSON and binary tensors, and pages."""

    def act(self):
        try:
            self.random.choice((self.sums, self.sums, self.binary, self.pages, self.unknown))()
        except CUT:
            self.count("cut")  # there were too many connections
            assert self.counts["cut"] < 20 + sum(self.counts.values()) / 4, self.counts

    def sums(self):
        a, b = ([self.random.randrange(-1000, 1000) for _ in range(16)] for _ in range(2))
        inputs = [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": values} for name, values in (("INPUT0", a), ("INPUT1", b))]
        status, _, body = self.ask("POST", "/v2/models/simple/infer", json.dumps({"inputs": inputs}))
        if self.refused(status, body):
            return
        assert status == 200, body
        outputs = {output["name"]: output["data"] for output in json.loads(body)["outputs"]}
        assert outputs == {"OUTPUT0": [x + y for x, y in zip(a, b)], "OUTPUT1": [x - y for x, y in zip(a, b)]}
        self.count("OK")

    def binary(self):
        data = self.random.randbytes(4 * self.random.randrange(1, 50000))
        head = json.dumps({
            "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, len(data) // 4], "parameters": {"binary_data_size": len(data)}}],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}).encode()
        status, headers, body = self.ask("POST", "/v2/models/identity_fp32/infer", head + data,
                                         {"Inference-Header-Content-Length": str(len(head))})
        if self.refused(status, body):
            return
        assert status == 200, body
        assert body[int(headers["Inference-Header-Content-Length"]):] == data
        self.count("OK binary")

    def pages(self):
        path = self.random.choice(("/metrics", "/status.json", "/v2", "/v2/models/simple", "/v2/models/simple/stats", "/v2/health/ready"))
        status, _, body = self.ask("GET", path)
        if not self.refused(status, body):
            assert status == 200, (path, status, body)
            self.count("OK page")

    def unknown(self):
        status, _, body = self.ask("POST", "/v2/models/nobody/infer", b'{"inputs": []}')
        if not self.refused(status, body):
            assert status == 404, body
            self.count("NOT_FOUND")


class Generations(Http):
    """Tokens one by one, over HTTP and gRPC, to the end or cancelled in the middle."""

    expected = None

    def act(self):
        prompt, count = self.random.choice(PROMPTS), self.random.randrange(1, LONGEST)
        try:
            self.random.choice((self.events, self.whole, self.stream, self.stream))(prompt, count)
        except CUT:
            self.count("cut")

    def check(self, model, prompt, tokens, count, is_whole=True):
        wanted = self.expected[model, tuple(prompt)][:count]
        assert tokens == (wanted if is_whole else wanted[:len(tokens)]), (model, prompt, count, tokens, wanted)

    def events(self, prompt, count):
        model = self.random.choice(("growing", "fixed"))
        body = json.dumps({"tokens": prompt, "parameters": {"max_tokens": count}})
        status, _, answer = self.ask("POST", f"/v2/models/{model}/generate_stream", body)
        if self.refused(status, answer):
            return
        assert status == 200, answer
        events = [json.loads(line[6:]) for line in answer.decode().splitlines() if line.startswith("data: ")]
        tokens = [event["token"] for event in events if "error" not in event]
        errors = [event["error"] for event in events if "error" in event]
        assert all("quota" in error or "queue" in error for error in errors), errors
        self.check(model, prompt, tokens, count, not errors)
        self.count("error event" if errors else "OK events")

    def whole(self, prompt, count):
        status, _, body = self.ask("POST", "/v2/models/whole/generate", json.dumps({"tokens": prompt, "max_tokens": count}))
        if self.refused(status, body):
            return
        assert status == 200, body
        tokens = json.loads(body)["token"]
        self.check("whole", prompt, tokens if isinstance(tokens, list) else [tokens], count)
        self.count("OK whole")

    def stream(self, prompt, count):
        model = self.random.choice(("growing", "fixed"))
        message = request(model, [("tokens", "INT64", [1, len(prompt)], int64(*prompt))], outputs=["token"],
                          parameters={"max_tokens": pb.InferParameter(int64_param=count)})
        stream, tokens = Stream(self.stub), []
        stop_after = count if self.random.random() < 0.7 else self.random.randrange(count)
        stream.send(message)
        try:
            while len(tokens) < stop_after:
                response = next(stream.call, None)
                if response is None:
                    break
                if response.error_message:
                    assert "quota" in response.error_message or "queue" in response.error_message, response.error_message
                    self.count("stream error")
                    break
                tokens += struct.unpack("<q", response.infer_response.raw_output_contents[0])
                if len(tokens) == len(self.expected[model, tuple(prompt)]):
                    break
            self.check(model, prompt, tokens, count, False)
            self.count("OK stream" if len(tokens) == count else "left stream")
        finally:
            stream.call.cancel()
            stream.end()


class Tls(Actor):
    """A new TLS connection each time, whatever happens to the certificate files."""

    def __init__(self, address, seed, folder, tls_address, root):
        super().__init__(address, seed, folder)
        self.tls_address, self.root = tls_address, root

    def act(self):
        a, b, message = self.add_sub(2)
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.secure_channel(self.tls_address, grpc.ssl_channel_credentials(self.root), options) as channel:
            try:
                # The connection may take the place of another one, and be cut in turn.
                response = inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(message, timeout=WAIT_S, wait_for_ready=True)
            except grpc.RpcError as error:
                return self.allow(error, BUSY)
        assert response.raw_output_contents[0] == int32(*(x + y for x, y in zip(a, b)))
        self.count("OK")
        self.rest(0.1)


class CommandLine(Actor):
    """`tensord infer`, which uses the C++ client; some are killed."""

    def act(self):
        prompt, count = self.random.choice(PROMPTS), self.random.randrange(1, LONGEST)
        process = subprocess.Popen(
            [BINARY, "infer", "growing", "--address", self.address, "--stream", "--json", "--input", f"tokens={json.dumps([prompt])}",
             "--parameter", f"max_tokens={count}", "--timeout", str(WAIT_S)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.random.random() < 0.2:
            self.rest(0, 0.2)
            process.kill()
        out, errors = process.communicate(timeout=2 * WAIT_S)
        if process.returncode == -9:
            return self.count("killed")
        if process.returncode:
            assert any(f"[{code.name}]" in errors for code in BUSY), (process.returncode, errors)
            return self.count("refused")
        tokens = [json.loads(line)["outputs"]["token"][0][0] for line in out.splitlines()]
        assert tokens == Generations.expected["growing", tuple(prompt)][:count], (prompt, count, out, errors)
        self.count("OK")
        self.rest(0.5)


class Hog(Http):
    """Requests more memory than available: many large requests at a time, over both protocols."""

    def act(self):
        size = self.random.randrange(8, 40) * MB
        data = self.random.randbytes(MB) * (size // MB)
        message = request("identity_fp32", [("INPUT0", "FP32", [1, size // 4], data)])
        calls = [self.stub.ModelInfer.future(message, timeout=WAIT_S) for _ in range(self.random.randrange(1, 5))]
        try:
            self.over_http(data)
        except CUT:
            self.count("HTTP cut")
        for call in calls:
            if self.random.random() < 0.2:
                call.cancel()
            try:
                assert call.result().raw_output_contents[0] == data
                self.count("OK")
            except grpc.FutureCancelledError:
                self.count("CANCELLED")
            except grpc.RpcError as error:
                self.allow(error, BUSY)
        self.rest(1)

    def over_http(self, data):
        head = json.dumps({
            "inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, len(data) // 4], "parameters": {"binary_data_size": len(data)}}],
            "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}).encode()
        status, headers, body = self.ask("POST", "/v2/models/identity_fp32/infer", head + data,
                                         {"Inference-Header-Content-Length": str(len(head))})
        if status in REFUSED:
            return self.count("HTTP " + REFUSED[status])
        assert status == 200, body[:1000]
        assert body[int(headers["Inference-Header-Content-Length"]):] == data
        self.count("HTTP OK")


class Crowd(Http):
    """Connections that send nothing, half a request, or noise, and close or stay open."""

    def __init__(self, address, seed, folder, http_address, others):
        super().__init__(address, seed, folder, http_address)
        self.places = [http_address, *others]

    def act(self):
        words = (b"", b"GET / HT", b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n{",
                 b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        open_ones = []
        for _ in range(self.random.randrange(1, 200)):
            host, port = self.random.choice(self.places).rsplit(":", 1)
            try:
                one = socket.create_connection((host, int(port)), timeout=5)
                one.sendall(self.random.choice((*words, self.random.randbytes(200))))
                open_ones.append(one)
            except OSError:
                self.count("refused")
        self.count("crowds")
        self.rest(0, 3)
        for one in open_ones:
            one.close()
        self.rest(3)


class Auditor(Http):
    """The only client of one model; records every response: the daemon's counts must be the same."""

    MODEL = "audited"
    booked = ("OK", "INVALID_ARGUMENT", "INTERNAL")
    STATUS = {200: "OK", 400: "INVALID_ARGUMENT", 500: "INTERNAL"}

    def act(self):
        shape, value = self.random.choice((([1, 1], 1.5), ([1, 1], 2.5), ([1, 1], -1.0), ([2], 1.0)))
        data = struct.pack("<f", value) * (shape[0])
        if self.random.random() < 0.5:
            try:
                self.stub.ModelInfer(request(self.MODEL, [("x", "FP32", shape, data)]), timeout=WAIT_S)
                return self.count("OK")
            except grpc.RpcError as error:
                return self.count(error.code().name)
        body = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": shape, "data": [value] * shape[0]}]})
        try:
            status, _, _ = self.ask("POST", f"/v2/models/{self.MODEL}/infer", body)
            self.count(REFUSED.get(status) or self.STATUS[status])
        except CUT:
            self.count("cut")


