"""Requests that cost much more memory than their size."""

import contextlib
import gzip
import os
import struct
import time

import grpc

from tests.attacks import h2
from tests.attacks.registry import Figure, attack
from tests.e2e.daemon import pb, request

INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
RESOURCE_EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


def number(name, value):
    return name, "INT64", [1], struct.pack("<q", value)


def code_of(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def message(payload):
    """As gRPC frames it."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


def refused(name, code):
    return Figure(f"{name} refused", code == RESOURCE_EXHAUSTED, 1, at_least=True)


def settled_mb(daemon, wanted_mb, seconds=30):
    """Memory once it has fallen to `wanted_mb`, or after `seconds`."""
    end = time.monotonic() + seconds
    while daemon.rss_mb() > wanted_mb and time.monotonic() < end:
        time.sleep(0.5)
    return Figure("settled", daemon.rss_mb(), wanted_mb, "MB")


@attack("unread_answers")
def unread_answers(context):
    """Twelve streams whose client reads none of 58 responses of 4 MB; a run produces 240 MB, the quota is 128 MB."""
    with context.daemon("--client-memory-quota", "128MB") as daemon:
        with context.watched(daemon, 600) as figures:
            asked = request("answers", [number("count", 58), number("size", 1 << 20)]).SerializeToString()
            body, headers = message(asked), h2.request_headers(STREAM)
            connections = []
            for index in range(12):
                connection = h2.connect(daemon.grpc_port, source=f"127.0.1.{index + 1}")
                # The largest possible windows: only the socket throttles the server.
                h2.begin(connection, acknowledge=True, settings=struct.pack(">HI", 4, (1 << 31) - 1))
                connection.sendall(h2.frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536))
                                   + h2.frame(h2.HEADERS, h2.END_HEADERS, 1, headers)
                                   + h2.frame(h2.DATA, 0, 1, body))
                connections.append(connection)
                time.sleep(0.3)
            time.sleep(2)
        for connection in connections:
            connection.close()
        figures.append(settled_mb(daemon, 200))
    return figures


@attack("many_contents", short=True)
def many_contents(context):
    """Sixteen MB of empty contents, in thousands of inputs."""
    contents = b"\x2a\x00" * 4000
    length = bytes((0x80 | len(contents) & 127, len(contents) >> 7))
    inputs = (b"\x2a" + length + contents) * 2000
    with context.daemon() as daemon:
        with context.watched(daemon, 200) as figures:
            infer = daemon.channel.unary_unary(INFER)
            for _ in range(4):
                code_of(infer, pb.ModelInferRequest(model_name="identity").SerializeToString() + inputs)
    return figures


def empty_strings_request(count):
    return request("words", [("words", "BYTES", [count], bytes(4 * count))])


@attack("empty_texts", short=True)
def empty_texts(context):
    """Strings of four bytes in the message, which take many times that in memory."""
    with context.daemon("--client-memory-quota", "256MB") as daemon:
        with context.watched(daemon, 400) as figures:
            figures.append(refused("60 MB", code_of(daemon.stub.ModelInfer, empty_strings_request(15_000_000))))
            figures.append(Figure("4 MB taken", code_of(daemon.stub.ModelInfer, empty_strings_request(1_000_000)) == grpc.StatusCode.OK, 1,
                                  at_least=True))
        figures.append(settled_mb(daemon, 200))
    return figures


@attack("gzip_bomb", short=True)
def gzip_bomb(context):
    """400 KB that decompress to 400 MB."""
    with context.daemon() as daemon:
        x = request("identity", [("x", "FP32", [100 << 20], bytes(400 << 20))]).SerializeToString()
        packed = message(gzip.compress(x, 1))
        packed = b"\1" + packed[1:]
        del x
        headers = h2.request_headers(INFER, more=[("grpc-encoding", "gzip")])
        with context.watched(daemon, 300, 0.5) as figures:
            with h2.connect(daemon.grpc_port) as connection:
                h2.begin(connection, acknowledge=True)
                connection.sendall(h2.frame(h2.WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
                connection.sendall(h2.frame(h2.HEADERS, h2.END_HEADERS, 1, headers))
                begin = time.monotonic()
                for at in range(0, len(packed), 16384):
                    end = h2.END_STREAM if at + 16384 >= len(packed) else 0
                    connection.sendall(h2.frame(h2.DATA, end, 1, packed[at:at + 16384]))
                connection.settimeout(20)
                seen = b""
                while b"grpc-status" not in seen:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    seen += piece
            figures.append(Figure("answer", time.monotonic() - begin, 5.0, "s"))
            figures.append(Figure("refused", b"times its size" in seen, 1, at_least=True))
    return figures


@attack("sparse_region", short=True)
def sparse_region(context):
    """A shared memory object of 1 GB that is sparse until the server reads it."""
    name = f"tensord_attack_{os.getpid()}"
    path = f"/dev/shm/{name}"
    with contextlib.ExitStack() as stack:
        with open(path, "wb") as file:
            file.truncate(1 << 30)
        stack.callback(os.unlink, path)
        daemon = stack.enter_context(context.daemon("--allow-client-shm", "true", "--client-memory-quota", "128MB"))
        register = daemon.stub.SystemSharedMemoryRegister
        code = code_of(register, pb.SystemSharedMemoryRegisterRequest(name="r", key="/" + name, byte_size=1 << 30))
        shared = request("identity", [("x", "FP32", [1 << 28], None)])
        shared.inputs[0].parameters["shared_memory_region"].string_param = "r"
        shared.inputs[0].parameters["shared_memory_byte_size"].int64_param = 1 << 30
        code_of(daemon.stub.ModelInfer, shared)
        return [refused("1 GB", code), Figure("real", os.stat(path).st_blocks / 2048, 16, "MB")]
