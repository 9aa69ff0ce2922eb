"""The client commands, which use the C++ client, against programs that are not servers, and against malicious servers."""

import random
import resource
import socket
import ssl
import subprocess
import threading
import time
from concurrent import futures

import grpc

from tests.attacks.hosts import fill
from tests.attacks.registry import Figure, attack
from tests.e2e.authority import Authority
from tests.e2e.daemon import BINARY, pb, training

TIMEOUT_S = 2
MEMORY_MB = 1500  # limit of address space; the binary itself maps some hundred MB
COMMANDS = (("infer", "m", "--random"), ("infer", "m", "--random", "--stream"), ("infer", "m", "--input", "[1,2]", "--json"), ("models",),
            ("load", "m"), ("unload", "m"), ("jobs", "list"), ("jobs", "watch", "j"), ("jobs", "show", "j", "--json"),
            ("bench", "m", "--seconds", "0.2", "--input", "x=[1,2]"))


class RawServer:
    """A port whose connections are passed to a function; an exception there closes the connection."""

    def __init__(self, behave, context=None):
        self.behave, self.context = behave, context
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.kept = []
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.play, args=(one,), daemon=True).start()

    def play(self, one):
        try:
            one.settimeout(20)
            if self.context:
                one = self.context.wrap_socket(one, server_side=True)
            self.behave(one)
            one.close()
        except OSError:
            self.kept.append(one)

    def close(self):
        self.listener.close()
        for one in self.kept:
            one.close()


def frame(kind, flags, stream, payload, size=None):
    return (len(payload) if size is None else size).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4, 0, 0, b"")


def endless(data, begin=b""):
    def behave(one):
        one.sendall(begin)
        while True:
            one.sendall(data)
    return behave


def once(data, waits=True, half=False):
    def behave(one):
        one.sendall(data)
        if half:
            one.shutdown(socket.SHUT_WR)
        if waits:
            while one.recv(65536):
                pass
    return behave


def dripping(data, pause_s):
    def behave(one):
        for byte in data:
            one.sendall(bytes([byte]))
            time.sleep(pause_s)
    return behave


RAW = {
    "closes": once(b"", waits=False),
    "says nothing": once(b""),
    "half closed": once(SETTINGS, half=True),
    "noise": once(random.Random(1).randbytes(5000)),
    "endless noise": endless(random.Random(2).randbytes(65536)),
    "endless settings": endless(SETTINGS * 100, SETTINGS),
    "endless pings": endless(frame(6, 0, 0, bytes(8)) * 100, SETTINGS),
    "a frame of 16 MB": once(SETTINGS + frame(0, 0, 1, b"x" * 1000, size=(1 << 24) - 1)),
    "endless headers": endless(frame(9, 0, 1, b"\x00\x01a" + b"\x7f\x81\x7f" + b"b" * 252), SETTINGS + frame(1, 0, 1, b"\x88")),
    "goes away": once(SETTINGS + frame(7, 0, 0, bytes(8) + b"\x1b[31mgo")),
    "HTTP/1": once(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 1000),
    "TLS alert": once(b"\x15\x03\x03\x00\x02\x02\x28"),
    "drips": dripping(SETTINGS * 50, 0.2),
}
HTTP = {
    "endless head": endless(b"X-A: " + b"a" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
    "endless body": endless(b"x" * 65536, b"HTTP/1.1 200 OK\r\n\r\n"),
    "endless chunks": endless(b"5\r\nabcde\r\n", b"HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n"),
    "huge length": once(b"HTTP/1.1 503 No\r\nContent-Length: 18446744073709551615\r\n\r\nx"),
    "drips": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100, 0.2),
    "redirects": once(b"HTTP/1.1 302 Found\r\nLocation: /v2/health/ready\r\nContent-Length: 0\r\n\r\n"),
}


class LyingServer:
    """Speaks valid gRPC, and answers each call with a message of its type with random fields, or with invalid bytes."""

    RESPONSES = {}

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_send_message_length", -1)])
        self.server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()
        for module in (pb, training):
            for service in module.DESCRIPTOR.services_by_name.values():
                for method in service.methods:
                    self.RESPONSES[f"/{service.full_name}/{method.name}"] = (method.output_type, method.client_streaming, method.server_streaming)

    def service(self, details):
        output, streams_in, streams_out = self.RESPONSES.get(details.method, (None, False, False))
        if output is None:
            return None

        def one(_, context):
            return self.answer(output, context)

        def many(_, context):
            for _ in range(self.chance.randrange(200)):
                yield self.answer(output, context)
        if streams_out:
            return (grpc.stream_stream_rpc_method_handler if streams_in else grpc.unary_stream_rpc_method_handler)(many)
        return (grpc.stream_unary_rpc_method_handler if streams_in else grpc.unary_unary_rpc_method_handler)(one)

    def answer(self, output, context):
        if self.chance.random() < 0.1:
            context.abort(grpc.StatusCode(self.chance.choice([code.value for code in grpc.StatusCode if code.value[0]])),
                          "\x1b[31mred\x1b[0m \u202e \x07\n" + "x" * self.chance.choice((0, 5000)))
        message = getattr(pb if output.file.name.startswith("inference") else training, output.name)()
        if output.name in ("ModelMetadataResponse", "ModelInferResponse", "ModelStreamInferResponse") and self.chance.random() < 0.7:
            nearly_right(message, self.chance)
        else:
            fill(message, self.chance, ["m"])
        data = bytearray(message.SerializeToString())
        if data and self.chance.random() < 0.3:
            for _ in range(self.chance.randrange(1, 5)):
                data[self.chance.randrange(len(data))] = self.chance.randrange(256)
        return bytes(data[:self.chance.randrange(len(data) + 1)] if self.chance.random() < 0.1 else data)

    def close(self):
        self.server.stop(None)


def nearly_right(message, chance):
    """A valid message with one wrong number or string."""
    right = chance.random() < (0.8 if message.DESCRIPTOR.name == "ModelMetadataResponse" else 0.3)
    shape = [2] if right else chance.choice(([1, 2], [], [-1], [1 << 62], [1 << 31, 1 << 31, 4], [-5], [0], [1] * 200, [3]))
    datatype = "FP32" if right else chance.choice(("FP32", "INT64", "BYTES", "BOOL", "FP16", "BF16", "", "NONE", "FP32\x1b[31m"))
    name = "x" if right else chance.choice(("x", "", "x" * 10000, "\x1b]0;title\x07"))
    if message.DESCRIPTOR.name == "ModelMetadataResponse":
        message.name, message.platform = "m", "pytorch_libtorch"
        message.versions.append("1")
        message.inputs.add(name=name, datatype=datatype, shape=shape)
        message.outputs.add(name="y", datatype=datatype, shape=shape)
        return
    response = message.infer_response if message.DESCRIPTOR.name == "ModelStreamInferResponse" else message
    response.model_name, response.model_version = "m", "1"
    response.outputs.add(name=name, datatype=datatype, shape=shape)
    response.raw_output_contents.append(chance.choice((bytes(8), b"", bytes(7), b"\xff\xff\xff\x7f" + bytes(8), b"\x04\0\0\0\x1b[31", bytes(100000))))


def run_client(address, command, *flags):
    """The failure of a command; empty if it ended in time and in order."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
    where = ("--timeout-secs", str(TIMEOUT_S)) if command[0] == "health" else ("--timeout", str(TIMEOUT_S))
    process = subprocess.Popen([BINARY, *command, "--address", address, *where, *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=limit)
    try:
        out, errors = process.communicate(timeout=15 * TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"{command} does not end"
    if process.returncode not in (0, 1, 2, 3):
        return f"{command} ends with {process.returncode}: {errors[-500:]}"
    if any(sign in errors for sign in (b"\x1b", b"\x07", "\u202e".encode(), b"INTERNAL error", b"bad_alloc")):
        return f"{command} prints {errors[-500:]}"
    if b"\x1b" in out or b"\x07" in out:
        return f"{command} prints {out[-500:]}"
    return ""


def play(names_and_servers, commands, *flags):
    """Runs each command against each server; returns the number of runs, and the failures. Many run at a time, since
    most wait."""
    servers = list(names_and_servers)
    meetings = [(name, server, command) for name, server in servers for command in commands]
    try:
        with futures.ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda one: run_client(one[1].address, one[2], *flags), meetings))
    finally:
        for _, server in servers:
            server.close()
    wrong = [f"{name}: {fault}" for (name, _, _), fault in zip(meetings, found) if fault]
    if wrong:
        raise RuntimeError("\n".join(wrong[:10]))
    return Figure("commands", len(meetings), 1, at_least=True)


@attack("commands_against_no_server", short=True)
def commands_against_no_server(context):
    """The listener speaks no gRPC, or floods, or is silent."""
    servers = ((name, RawServer(behave)) for name, behave in RAW.items())
    return play(servers, (("infer", "m", "--random"), ("jobs", "watch", "j")))


@attack("all_commands_against_no_server")
def all_commands_against_no_server(context):
    return play(((name, RawServer(behave)) for name, behave in RAW.items()), COMMANDS)


@attack("health_against_no_server", short=True)
def health_against_no_server(context):
    return play(((name, RawServer(behave)) for name, behave in {**HTTP, **RAW}.items()), (("health",),))


@attack("commands_against_a_liar", short=True)
def commands_against_a_liar(context):
    """The server speaks gRPC, and its messages are contradictory."""
    return play(((f"seed {seed}", LyingServer(seed)) for seed in range(6)), COMMANDS)


@attack("commands_against_many_liars")
def commands_against_many_liars(context):
    for begin in range(100, 300, 20):
        figure = play(((f"seed {seed}", LyingServer(seed)) for seed in range(begin, begin + 20)), COMMANDS)
    return figure


@attack("commands_against_wrong_tls", short=True)
def commands_against_wrong_tls(context):
    """The listener has another authority's certificate, or disconnects, or sends noise over TLS."""
    right, stranger = Authority(context.folder, "right"), Authority(context.folder, "stranger")
    contexts = []
    for authority in (right, stranger):
        authority.sign(f"server_of_{authority.name}")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(context.path(f"server_of_{authority.name}.pem"), context.path(f"server_of_{authority.name}.key"))
        tls.set_alpn_protocols(["h2"])
        contexts.append(tls)
    noise = random.Random(3).randbytes(5000)
    servers = [("no TLS", RawServer(once(SETTINGS))), ("noise", RawServer(once(noise))), ("stranger", RawServer(once(SETTINGS), contexts[1])),
               ("noise within", RawServer(once(noise), contexts[0])), ("endless noise within", RawServer(endless(noise), contexts[0])),
               ("half a handshake", RawServer(once(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc" + noise[:100]))),
               ("closes", RawServer(once(b"", waits=False), contexts[0]))]
    return play(servers, (("infer", "m", "--random"), ("models",)), "--root-cert", right.cert)
