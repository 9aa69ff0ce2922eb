"""Requests per second at full load within a bound of p99: the daemon beside servers with ONNX Runtime and OpenVINO inside.

    build/peers/bin/python -m tests.bench.load [--models resnet50 BERT MLP] [--seconds 4] [--rounds 3]
        [--call-load build/dev/tests/call_load]            (TENSORD_BINARY is the daemon)

scripts/setup bench makes build/peers. PyPI has no server with these engines, so each is in a minimal one of Python
(engine_server.py). Each server, the daemon too, runs in two arrangements: one worker with all cores, and one for each core.
All serve the same ONNX file, and where rows can be gathered, all gather up to 32. Servers run one at a time, in turns.
Closed loops of 1 to 64 clients on the same machine (call_load); what counts is the highest rate whose p99 is within the bound.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

from tests.bench import machine
from tests.bench.cpu_inference import files, models
from tests.e2e.daemon import ROOT, DaemonProcess, pb

METHOD = "/inference.GRPCInferenceService/ModelInfer"
CLIENTS = (1, 2, 4, 8, 16, 32, 64)
CORES = len(os.sched_getaffinity(0))
BATCH = 32
WARM_SECONDS = 5


class WideMlp(torch.nn.Sequential):
    def __init__(self):
        super().__init__(*[layer for _ in range(3) for layer in (torch.nn.Linear(2048, 2048), torch.nn.ReLU())])


def mixed_words(batch):
    return [models.words(batch, random.Random(i).randint(8, 128)) for i in range(40)]


# Model, bound of p99 in ms, and whether rows of requests are gathered.
ROWS = [
    (models.Row("resnet50", lambda: models.vision("resnet50"), models.image, ("x",), 1.0), 250, False),
    (models.Row("BERT-base (8–128 words)", models.bert, mixed_words, ("ids", "mask"), 1.0, dynamic_axis=1), 500, False),
    (models.Row("MLP 3×2048, gathered", WideMlp, lambda batch: [(torch.randn(batch, 2048),)], ("x",), 1.0,
                dynamic_axis=0), 25, True),
]
CONFIG = """platform: "onnxruntime_onnx"
max_batch_size: {batch}
dynamic_batching {{ }}
"""


class Tensord:
    def __init__(self, workers, folder, gathers):
        self.title, self.workers = f"tensord, {workers} × {CORES // workers}", workers
        self.repository = folder / f"repository{workers}"
        (self.repository / "model" / "1").mkdir(parents=True)
        shutil.copy(folder / "model.onnx", self.repository / "model" / "1" / "model.onnx")
        if gathers:
            (self.repository / "model" / "config.pbtxt").write_text(CONFIG.format(batch=BATCH))

    @contextlib.contextmanager
    def running(self):
        with DaemonProcess(str(self.repository), "--workers", str(self.workers)) as daemon:
            yield daemon.ready["grpc"]


class Engine:
    def __init__(self, engine, workers, folder, gathers):
        self.title = f"{engine}, {workers} × {CORES // workers}"
        self.command = [sys.executable, "-m", "tests.bench.load.engine_server", engine, str(folder / "model.onnx"),
                        str(workers), str(CORES // workers), str(BATCH if gathers else 1)]

    @contextlib.contextmanager
    def running(self):
        with subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
            try:
                port = process.stdout.readline().strip()
                if not port:
                    sys.exit(f"{self.title} did not start")
                yield f"127.0.0.1:{port}"
            finally:
                process.kill()


def write_messages(row, folder):
    """A request of each shape as bytes."""
    paths = []
    for i, request in enumerate(files.load_requests(folder / "requests.npz", row.input_names)):
        message = pb.ModelInferRequest(model_name="model")
        for name, array in request.items():
            message.inputs.add(name=name, datatype="FP32" if array.dtype == numpy.float32 else "INT64",
                               shape=array.shape)
            message.raw_input_contents.append(array.tobytes())
        paths.append(folder / f"message{i}")
        paths[-1].write_bytes(message.SerializeToString())
    return ",".join(map(str, paths))


def load(options, address, messages, clients, seconds):
    """Requests a second, and p99 in ms."""
    run = subprocess.run([options.call_load, address, METHOD, messages, str(clients), str(seconds), "0.3"],
                         capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{address}: {run.stderr}")
    rate, _, p99_us, _ = map(float, run.stdout.split())
    return rate, p99_us / 1e3


def sweep(options, address, messages, bound_ms):
    """The highest rate within the bound: (requests a second, clients, p99 in ms); None if p99 is never within it."""
    load(options, address, messages, 8, WARM_SECONDS)  # engines prepare each shape when they meet it
    best, late = None, 0
    for clients in CLIENTS:
        rate, p99 = load(options, address, messages, clients, options.seconds)
        late = late + 1 if p99 > bound_ms else 0
        if late == 2:
            break
        if late == 0 and (best is None or rate > best[0]):
            best = rate, clients, p99
    return best


def measure(options, row, bound_ms, gathers):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        files.write(row, 1, folder)
        messages = write_messages(row, folder)
        servers = [Tensord(workers, folder, gathers) for workers in (1, CORES)]
        servers += [Engine(engine, workers, folder, gathers) for engine in ("ONNX Runtime", "OpenVINO")
                    for workers in (1, CORES)]
        results = {server.title: [] for server in servers}
        for _ in range(options.rounds):
            for server in servers:
                with server.running() as address:
                    results[server.title].append(sweep(options, address, messages, bound_ms))
    return results


def report(row, bound_ms, results):
    """A line of the table for each server: medians over rounds, and the better rate of tensord's by the server's."""
    medians = {title: [statistics.median(column) for column in zip(*rounds)]
               for title, rounds in results.items() if None not in rounds}
    ours = max((found[0] for title, found in medians.items() if title.startswith("tensord")), default=None)
    for title in results:
        if title not in medians:
            print(f"| {row.name} | {bound_ms} | {title} | never within the bound | | | |", flush=True)
            continue
        rate, clients, p99 = medians[title]
        share = f"{ours / rate:.2f}" if ours else ""
        print(f"| {row.name} | {bound_ms} | {title} | {rate:.1f} | {clients:.0f} | {p99:.1f} | {share} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=[""], help="beginnings of the names of rows")
    parser.add_argument("--seconds", type=float, default=4, help="length of a measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--call-load", default=pathlib.Path(ROOT) / "build" / "dev" / "tests" / "call_load")
    options = parser.parse_args()
    if not os.path.exists(options.call_load):
        sys.exit(f"{options.call_load} is not there: scripts/build dev call_load")
    warnings.filterwarnings("ignore")
    print(machine.describe(os.environ.get("TENSORD_BINARY")))
    print("\n| model | p99 at most, ms | server, workers × threads | requests/s | clients | p99, ms | tensord / server |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for row, bound_ms, gathers in ROWS:
        if row.name.startswith(tuple(options.models)):
            report(row, bound_ms, measure(options, row, bound_ms, gathers))


if __name__ == "__main__":
    main()
