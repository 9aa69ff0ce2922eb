"""Floods of HTTP/2 frames without a token, and legitimate clients that look similar."""

import os
import struct
import subprocess
import sys
import threading

import grpc

from tests.attacks import h2
from tests.attacks.registry import Figure, attack
from tests.e2e.daemon import request

SECONDS = 3
MEMORY_MB, LIVE_S = 300, 1.0
# gRPC's own limits end these connections, or make them cheap.
REFUSED_BY_GRPC = {"hpack_table", "made_reset"}
CUTS = "tensord_grpc_connections_cut_total"


def make_certificate(context):
    cert, key = context.path("cert.pem"), context.path("key.pem")
    if not os.path.exists(cert):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


def play(context, kind, connections, acknowledges, uses_tls, seconds=SECONDS):
    """One daemon under one flood; returns its figures."""
    cert, key = make_certificate(context) if uses_tls else ("", "")
    flags = ["--grpc-use-ssl", "true", "--grpc-server-cert", cert, "--grpc-server-key", key] if uses_tls else []
    with context.daemon(*flags) as daemon:
        with context.watched(daemon, MEMORY_MB, LIVE_S, credentials=cert) as figures:
            subprocess.run([sys.executable, "-m", "tests.attacks.flooder", kind, str(daemon.grpc_port), str(connections),
                            str(seconds), "ack" if acknowledges else "silent", cert], check=True, capture_output=True)
        if kind not in REFUSED_BY_GRPC:
            figures.append(Figure("cut", daemon.metric(CUTS), 1, "connections", at_least=True))
    return figures


def worst(variants):
    """The worst of each figure over many variants, with the name of the variant."""
    out = {}
    for label, figures in variants:
        for figure in figures:
            last = out.get(figure.name)
            is_worse = last is None or (figure.value < last.value if figure.at_least else figure.value > last.value)
            if is_worse:
                figure.unit = f"{figure.unit} ({label})"
                out[figure.name] = figure
    return list(out.values())


def register(kind):
    @attack(f"flood_{kind}")
    def flood(context):
        return worst([(f"{connections} {'ack' if acknowledges else 'silent'} {'tls' if uses_tls else 'plain'}",
                       play(context, kind, connections, acknowledges, uses_tls))
                      for connections in (2, 24) for acknowledges in (True, False) for uses_tls in (False, True)])


for name in h2.floods():
    register(name)


@attack("floods", short=True)
def some_floods(context):
    """Two connections each, one second each."""
    cases = [("rapid_reset", False, False), ("calls", True, False), ("continuation", False, True),
             ("hpack_table", False, False), ("settings", True, False)]
    return worst([(kind, play(context, kind, 2, acknowledges, uses_tls, seconds=1))
                  for kind, acknowledges, uses_tls in cases])


def many_calls(call, count, after):
    """Starts `count` calls on one channel and applies `after` to each; returns the number of calls by status code."""
    calls = [call() for _ in range(count)]
    for one in calls:
        after(one)
    codes = {}
    for one in calls:
        code = one.code()
        codes[code] = codes.get(code, 0) + 1
    return codes


@attack("honest_crowd", short=True)
def honest_crowd(context):
    """Three thousand calls at once, and three thousand cancelled ones, on one channel: neither counts as a flood."""
    with context.daemon() as daemon:
        live = daemon.channel.unary_unary(h2.LIVE)
        codes = many_calls(lambda: live.future(b"", timeout=60), 3000, lambda call: None)
        # Open until cancelled, because no request is ever sent.
        stream = daemon.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        never = threading.Event()

        def nothing():
            never.wait()
            return
            yield

        calls = [stream(nothing()) for _ in range(300)]
        infer = daemon.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        slow = request("rounds", [("x", "FP32", [1], b"\0" * 4), ("n", "INT64", [1], struct.pack("<q", 10**9))])
        message = slow.SerializeToString()
        cancelled = many_calls(lambda: infer.future(message), 3000, lambda call: call.cancel())
        for call in calls:
            call.cancel()
        never.set()
        live(b"", timeout=10)
        return [Figure("answered", codes.get(grpc.StatusCode.OK, 0), 3000, at_least=True),
                Figure("cancelled", cancelled.get(grpc.StatusCode.CANCELLED, 0), 3000, at_least=True),
                Figure("cut", daemon.metric(CUTS), 0, "connections")]
