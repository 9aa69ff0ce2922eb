"""Health checks must get responses whatever other clients do."""

import struct
import time

from tests.attacks import h2
from tests.attacks.registry import Figure, attack
from tests.e2e.daemon import request

WATCH = "/grpc.health.v1.Health/Watch"
STEPS = 200_000_000


@attack("watch_streams")
def watch_streams(context):
    """Twenty connections open a thousand watches each, and keep them."""
    with context.daemon() as daemon:
        headers = h2.request_headers(WATCH)
        with context.watched(daemon, 300, 1.0) as figures:
            connections = []
            for number in range(20):
                connection = h2.connect(daemon.grpc_port, source=f"127.0.1.{number + 1}")
                h2.begin(connection, acknowledge=True)
                try:
                    connection.sendall(b"".join(h2.call(1 + 2 * i, headers) for i in range(1000)))
                except OSError:
                    pass  # cut: all have too many
                connections.append(connection)
            time.sleep(2)
            before = daemon.metric("process_cpu_seconds_total")
            time.sleep(4)
            figures.append(Figure("idle", (daemon.metric("process_cpu_seconds_total") - before) / 4, 0.1, "cores"))
        with context.probe(daemon) as probe:
            time.sleep(1)
        figures.append(Figure("ServerLive beside them", probe.worst_s, 0.3, "s"))
        for connection in connections:
            connection.close()
    return figures


def steps(count):
    return request("steps", [("n", "INT64", [1], struct.pack("<q", count))])


@attack("long_operator")
def long_operator(context):
    """A model with a history of a hundred short runs spends seconds in one operator, on the threads that serve gRPC."""
    with context.daemon() as daemon:
        for _ in range(100):
            daemon.stub.ModelInfer(steps(10))
        with context.probe(daemon) as kept, context.probe(daemon, fresh_connections=True) as fresh:
            for _ in range(2):
                calls = [daemon.stub.ModelInfer.future(steps(STEPS), timeout=0.5) for _ in range(4)]
                for call in calls:
                    call.exception()
                time.sleep(0.5)
        return [kept.figure(0.5), Figure("fresh", fresh.worst_s, 0.5, "s")]


@attack("idle_connections", short=True)
def idle_connections(context):
    """More connections than allowed, silent after their settings: other clients can still connect."""
    with context.daemon("--grpc-max-connections", "40") as daemon:
        open_ones = []
        for number in range(60):
            connection = h2.connect(daemon.grpc_port, source=f"127.0.1.{number % 3 + 1}")
            h2.begin(connection, acknowledge=True)
            open_ones.append(connection)
        with context.probe(daemon, fresh_connections=True, limit_s=2) as probe:
            time.sleep(1)
        for connection in open_ones:
            connection.close()
        return [probe.figure(0.5), Figure("failed", probe.failed, 0, "calls")]
