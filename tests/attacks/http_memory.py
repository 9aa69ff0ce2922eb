"""HTTP requests and answers that cost much more memory than their size, under a quota of 128 MB."""

import gzip
import http.client
import json
import socket
import time

from tests.attacks.memory import settled_mb
from tests.attacks.registry import Figure, attack

QUOTA = ("--allow-http", "true", "--http-port", "0", "--client-memory-quota", "128MB")


def port_of(daemon):
    return int(daemon.ready["http"].rsplit(":", 1)[1])


def head(path, size, *more):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {size}", *more, "", ""]).encode()


def asked(daemon, index, data):
    """A connection from an address of its own that sends `data` as far as the server accepts it, and reads nothing."""
    connection = socket.socket()
    connection.bind((f"127.0.1.{index % 200 + 1}", 0))
    connection.connect(("127.0.0.1", port_of(daemon)))
    connection.settimeout(2)
    try:
        connection.sendall(data)
    except OSError:
        pass  # it was refused
    return connection


def ask(daemon, path, body, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port_of(daemon), timeout=60)
    try:
        connection.request("POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def held(daemon, connections, figures):
    time.sleep(2)
    for connection in connections:
        connection.close()
    figures.append(settled_mb(daemon, 120))
    status, _ = ask(daemon, "/v2/models/identity/infer",
                    json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1]}]}))
    figures.append(Figure("an honest request afterwards", status, 200))


@attack("http_unread_streams")
def http_unread_streams(context):
    """Twelve clients that read none of 58 events of 4 MB; a run produces 240 MB."""
    body = json.dumps({"count": 58, "size": 1 << 20}).encode()
    with context.daemon(*QUOTA) as daemon:
        connections = []
        with context.watched(daemon, 600) as figures:
            for index in range(12):
                connections.append(asked(daemon, index, head("/v2/models/answers/generate_stream", len(body)) + body))
                time.sleep(0.3)
            time.sleep(2)
        held(daemon, connections, figures)
    return figures


@attack("http_unread_answers", short=True)
def http_unread_answers(context):
    """A hundred clients that do not read their 4 MB responses."""
    text = json.dumps({"inputs": [{"name": "x", "shape": [1 << 20], "datatype": "FP32", "parameters": {"binary_data_size": 4 << 20}}],
                       "parameters": {"binary_data_output": True}}).encode()
    body = text + bytes(4 << 20)
    data = head("/v2/models/identity/infer", len(body), f"Inference-Header-Content-Length: {len(text)}") + body
    with context.daemon(*QUOTA) as daemon:
        with context.watched(daemon, 400) as figures:
            connections = [asked(daemon, index, data) for index in range(100)]
        held(daemon, connections, figures)
    return figures


@attack("http_announced_bodies", short=True)
def http_announced_bodies(context):
    """Two hundred bodies of 8 MB that stop before their end."""
    data = head("/v2/models/identity/infer", 8 << 20, "Inference-Header-Content-Length: 0") + bytes(7 << 20)
    with context.daemon(*QUOTA) as daemon:
        with context.watched(daemon, 300) as figures:
            connections = [asked(daemon, index, data) for index in range(200)]
        held(daemon, connections, figures)
    return figures


@attack("http_gzip_bomb", short=True)
def http_gzip_bomb(context):
    """400 KB that decompress to 400 MB."""
    packed = gzip.compress(bytes(400 << 20), 9)
    with context.daemon(*QUOTA) as daemon:
        with context.watched(daemon, 300) as figures:
            begin = time.monotonic()
            codes = [ask(daemon, "/v2/models/identity/infer", packed, {"Content-Encoding": "gzip"})[0] for _ in range(4)]
            figures.append(Figure("each", (time.monotonic() - begin) / 4, 1, "s"))
            figures.append(Figure("refused", sum(code in (400, 429) for code in codes), 4, at_least=True))
        held(daemon, [], figures)
    return figures


@attack("http_large_json", short=True)
def http_large_json(context):
    """60 MB of valid JSON: nested lists, and one string."""
    with context.daemon("--allow-http", "true", "--http-port", "0") as daemon:
        with context.watched(daemon, 300) as figures:
            for data in (b"[" + b"[]," * (20 << 20) + b"[]]", b'"' + b"\\u0041" * (10 << 20) + b'"'):
                body = b'{"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":' + data + b"}]}"
                status, answer = ask(daemon, "/v2/models/identity/infer", body)
                figures.append(Figure("refused", status, 400, at_least=True))
                json.loads(answer)
        held(daemon, [], figures)
    return figures
