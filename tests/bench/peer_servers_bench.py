"""The same archives in tensord and in other servers from PyPI: NVIDIA's Triton (nvidia-pytriton: the server with its Python
backend), TorchServe and MLServer, which run them with Debian's PyTorch (peer_servers.py).

All servers run throughout, and measurements alternate. The load generator is call_load: it sends the same bytes over gRPC
to each (TorchServe has another message) and ignores the answers. --perf-analyzer uses NVIDIA's perf_analyzer, which supports
only tensord and Triton. Prints requests per second with p50 and p99, and tensord's rate divided by each peer's.

    scripts/setup bench test       # build/peer_servers, build/torchserve, build/mlserver, build/clients
    TENSORD_BINARY=… /usr/bin/python3 -m tests.bench.peer_servers_bench --call-load build/dev/tests/call_load
        [--seconds 3] [--rounds 3] [--only mlp] [--servers 'Triton, Python backend' TorchServe MLServer] [--perf-analyzer]
"""

import argparse
import contextlib
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch
import torchvision

from tests.bench.peer_servers import BATCH, PEERS, ROOT, Peer, Triton, kserve_message
from tests.e2e import serve_models
from tests.e2e.daemon_process import DaemonProcess

WIDTH = 2048
CONFIG = """
max_batch_size: {rows}
input [ {{ name: "{input}" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
output [ {{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ {out} ] }} ]
{batching}
"""
# Label, model, shape of a request, size of a response, clients.
ROWS = (("identity, 1 KB", "identity", (250,), 250, 1), ("identity, 1 KB", "identity", (250,), 250, 16),
        ("identity, 4 MB", "identity", (1000000,), 1000000, 1), ("identity, 4 MB", "identity", (1000000,), 1000000, 4),
        ("MLP, batched", "mlp", (1, WIDTH), WIDTH, 1), ("MLP, batched", "mlp", (1, WIDTH), WIDTH, 64),
        ("resnet50", "resnet50", (1, 3, 224, 224), 1000, 1), ("resnet50", "resnet50", (1, 3, 224, 224), 1000, 4))
WARM_SHARE = 0.2  # as a fraction of a measurement


def write_model(root, name, module, **config):
    serve_models.save(module, root, name)
    with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
        file.write(CONFIG.format(**{"input": "x", "rows": 0, "batching": "", **config}))


def make_repository(root):
    torch.manual_seed(0)
    layers = []
    for _ in range(3):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    write_model(root, "identity", serve_models.Identity(), dims=-1, out=-1)
    write_model(root, "mlp", torch.nn.Sequential(*layers), input="input", dims=WIDTH, out=WIDTH, rows=BATCH,
                batching="dynamic_batching { }")
    write_model(root, "resnet50", torchvision.models.resnet50(), dims="1, 3, 224, 224", out="1, 1000")


def ask_with_perf_analyzer(options, address, model, shape, concurrency, seconds):
    """Like `ask`."""
    perf = pathlib.Path(options.clients) / "perf"
    # Triton knows the shape of the MLP from its configuration.
    shapes = [] if model == "mlp" else ["--shape", "x:" + ",".join(map(str, shape))]
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table.csv")
        # It measures at least three times and averages them; the threshold accepts every result as stable.
        run = subprocess.run(
            [perf / "bin" / "perf_analyzer", "-m", model, "-u", address, "-i", "grpc", "--async", *shapes,
             "--concurrency-range", str(concurrency), "--measurement-interval", str(int(1000 * seconds)),
             "--max-trials", "3", "--stability-percentage", "999", "-f", table],
            env={**os.environ, "LD_LIBRARY_PATH": str(perf / "nvidia" / "cuda_runtime" / "lib")}, capture_output=True,
            text=True)
        if "use a larger time window" in run.stdout + run.stderr:
            return ask_with_perf_analyzer(options, address, model, shape, concurrency, 3 * seconds)
        if run.returncode != 0:
            sys.exit(f"perf_analyzer: {run.stdout}{run.stderr}")
        with open(table) as rows:
            row = next(csv.DictReader(rows))
    return float(row["Inferences/Second"]), float(row["p50 latency"]), float(row["p99 latency"])


class Tensord:
    """The daemon, with the interface of peer_servers.Peer."""

    title, method, message = "tensord", Peer.method, staticmethod(kserve_message)

    def __init__(self, models):
        self.daemon = DaemonProcess(models)
        self.grpc = self.daemon.ready["grpc"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.daemon.stop()


def ask(options, server, model, shape, numbers, concurrency, folder):
    """Requests a second, p50 and p99 in microseconds."""
    if options.perf_analyzer:
        return ask_with_perf_analyzer(options, server.grpc, model, shape, concurrency, options.seconds)
    message = pathlib.Path(folder) / "message"
    message.write_bytes(server.message(model, np.random.default_rng(0).random(shape, dtype=np.float32)))
    run = subprocess.run([options.call_load, server.grpc, server.method, message, str(concurrency), str(options.seconds),
                          str(WARM_SHARE * options.seconds)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{server.title}, {model}: {run.stderr}")
    rate, p50, p99, answer_bytes = map(float, run.stdout.split())
    if answer_bytes < 4 * numbers:
        sys.exit(f"{server.title}, {model}: an answer of {answer_bytes:.0f} bytes cannot have {numbers} numbers")
    return rate, p50, p99


def chosen_peers(options):
    for peer in PEERS:
        if options.perf_analyzer and peer.title != Triton.title or peer.title not in options.servers:
            continue
        if peer.is_installed():
            yield peer
        else:
            print(f"{peer.title}: not installed: scripts/setup bench", file=sys.stderr)


def compare(options, servers, folder):
    peers = "".join(f" | {peer.title} | ratio" for peer in servers[1:])
    print(f"| requests/s (p50, p99 in ms) | clients | {servers[0].title}{peers} |")
    print("|---|---:|---:" + "|---:|---:" * len(servers[1:]) + "|")
    for label, model, shape, numbers, concurrency in ROWS:
        if options.only not in label:
            continue
        rounds = [[ask(options, server, model, shape, numbers, concurrency, folder) for server in servers]
                  for _ in range(options.rounds)]
        medians = [[statistics.median(column) for column in zip(*each)] for each in zip(*rounds)]
        cells = [f"{rate:.1f} ({p50 / 1000:.2f}, {p99 / 1000:.2f})" for rate, p50, p99 in medians]
        ratios = [f"{medians[0][0] / rate:.1f}" for rate, _, _ in medians]
        others = "".join(f" | {cell} | {ratio}" for cell, ratio in zip(cells[1:], ratios[1:]))
        print(f"| {label} | {concurrency} | {cells[0]}{others} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3, help="length of a measurement; of perf_analyzer, of its three parts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this")
    parser.add_argument("--servers", nargs="*", default=[peer.title for peer in PEERS])
    parser.add_argument("--call-load", default=ROOT / "build" / "dev" / "tests" / "call_load")
    parser.add_argument("--perf-analyzer", action="store_true")
    parser.add_argument("--clients", default=ROOT / "build" / "clients", help="the environment with perf_analyzer")
    options = parser.parse_args()
    if not options.perf_analyzer and not os.path.exists(options.call_load):
        sys.exit(f"{options.call_load} is not there: scripts/build dev call_load")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        models = os.path.join(folder, "models")
        make_repository(models)
        peers = [running.enter_context(peer(models, folder)) for peer in chosen_peers(options)]
        for peer in peers:
            peer.wait_until_ready()
        compare(options, [running.enter_context(Tensord(models)), *peers], folder)


if __name__ == "__main__":
    main()
