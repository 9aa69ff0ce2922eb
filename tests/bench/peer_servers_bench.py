"""The same archives behind tensord and behind NVIDIA Triton (nvidia-pytriton: Triton's server with its Python backend,
which runs them with Debian's PyTorch), under the load of NVIDIA's perf_analyzer.

Both serve all the time; measurements alternate between them. Prints requests a second and latencies of each, and the
ratio of the rates (above 1: tensord answers more).

    scripts/setup bench test       # build/peer_servers, build/clients
    TENSORD_BINARY=… /usr/bin/python3 tests/bench/peer_servers_bench.py [--seconds 3] [--rounds 3] [--only mlp]
"""

import argparse
import csv
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torchvision  # noqa: E402

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon_process import DaemonProcess  # noqa: E402

WIDTH = 2048
BATCH = 32  # as in pytriton_server.py
CONFIG = """
max_batch_size: {rows}
input [ {{ name: "{input}" data_type: TYPE_FP32 dims: [ {dims} ] }} ]
output [ {{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ {out} ] }} ]
{batching}
"""
START_TIMEOUT_S = 300
# What it is called, the model, its shapes for perf_analyzer, clients.
ROWS = (("identity, 1 KB", "identity", ("--shape", "x:250"), 1), ("identity, 1 KB", "identity", ("--shape", "x:250"), 16),
        ("identity, 4 MB", "identity", ("--shape", "x:1000000"), 1),
        ("identity, 4 MB", "identity", ("--shape", "x:1000000"), 4),
        ("MLP, batched", "mlp", (), 1), ("MLP, batched", "mlp", (), 64),
        ("resnet50", "resnet50", ("--shape", "x:1,3,224,224"), 1),
        ("resnet50", "resnet50", ("--shape", "x:1,3,224,224"), 4))


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


class Triton:
    """The peer, on the given port and the two after it."""

    def __init__(self, python, models, port, folder):
        self.address = f"127.0.0.1:{port}"
        self.log = open(os.path.join(folder, "triton.txt"), "w")
        script = ROOT / "tests" / "bench" / "pytriton_server.py"
        self.process = subprocess.Popen([python, script, models, *(str(port + i) for i in range(3))], stdout=self.log,
                                        stderr=self.log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready(port + 1):
            if self.process.poll() is not None or time.monotonic() > deadline:
                sys.exit("Triton did not start:\n" + pathlib.Path(self.log.name).read_text()[-3000:])
            time.sleep(0.2)

    def is_ready(self, http_port):
        try:
            return all(urllib.request.urlopen(f"http://127.0.0.1:{http_port}/v2/models/{name}/ready").status == 200
                       for name in ("identity", "mlp", "resnet50"))
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def measure(clients, address, model, shapes, concurrency, seconds):
    """Requests a second, p50 and p99 in microseconds."""
    perf = pathlib.Path(clients) / "perf"
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table.csv")
        # It measures at least three times, and averages them; every result is stable for it.
        run = subprocess.run(
            [perf / "bin" / "perf_analyzer", "-m", model, "-u", address, "-i", "grpc", "--async", *shapes,
             "--concurrency-range", str(concurrency), "--measurement-interval", str(int(1000 * seconds)),
             "--max-trials", "3", "--stability-percentage", "999", "-f", table],
            env={**os.environ, "LD_LIBRARY_PATH": str(perf / "nvidia" / "cuda_runtime" / "lib")}, capture_output=True,
            text=True)
        if "use a larger time window" in run.stdout + run.stderr:
            return measure(clients, address, model, shapes, concurrency, 3 * seconds)
        if run.returncode != 0:
            sys.exit(f"perf_analyzer: {run.stdout}{run.stderr}")
        with open(table) as rows:
            row = next(csv.DictReader(rows))
    return float(row["Inferences/Second"]), float(row["p50 latency"]), float(row["p99 latency"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3, help="length of each of the three parts of a measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name has this")
    parser.add_argument("--port", type=int, default=19310, help="of the peer, with the two after it")
    parser.add_argument("--python", default=ROOT / "build" / "peer_servers" / "bin" / "python")
    parser.add_argument("--clients", default=ROOT / "build" / "clients", help="the environment with perf_analyzer")
    options = parser.parse_args()
    print("| | clients | ours requests/s | p50 ms | p99 ms | Triton requests/s | p50 ms | p99 ms | ratio |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        models = os.path.join(folder, "models")
        make_repository(models)
        with DaemonProcess(models) as daemon, Triton(options.python, models, options.port, folder) as triton:
            addresses = daemon.ready["grpc"], triton.address
            for text, model, shapes, concurrency in ROWS:
                if options.only not in text:
                    continue
                runs = [[measure(options.clients, address, model, shapes, concurrency, options.seconds)
                         for address in addresses] for _ in range(options.rounds)]
                ours, peer = ([statistics.median(column) for column in zip(*side)] for side in zip(*runs))
                cells = " | ".join(f"{rate:.1f} | {p50 / 1000:.2f} | {p99 / 1000:.2f}" for rate, p50, p99 in (ours, peer))
                print(f"| {text} | {concurrency} | {cells} | {ours[0] / peer[0]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
