"""Dynamic batching of an MLP, compared with the same model without batching.

One daemon serves both; bursts of calls with the same number of clients alternate between them. Prints the
throughput and p50 of each, the mean rows per batch, and the ratio of the throughputs.

    python3 tests/bench/batching_bench.py [--seconds 2] [--rounds 5] [--clients 64] [--width 2048]
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import torch  # noqa: E402

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon, pb, request  # noqa: E402

CONFIG = """
max_batch_size: 32
input [ {{ name: "input" data_type: TYPE_FP32 dims: [ {width} ] }} ]
output [ {{ name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ {width} ] }} ]
{batching}
"""


def make_repository(root, width):
    torch.manual_seed(0)
    layers = []
    for _ in range(3):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    for name, batching in (("single", ""), ("batched", "dynamic_batching { }")):
        serve_models.save(torch.nn.Sequential(*layers), root, name)
        with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
            file.write(CONFIG.format(width=width, batching=batching))


class Burst:
    """Keeps `clients` calls open for some seconds: each response sends the next request."""

    def __init__(self, stub, message, clients, seconds):
        self.call = stub.ModelInfer
        self.message = message
        self.lock = threading.Lock()
        self.open = clients
        self.done = threading.Event()
        self.latencies = []
        self.end = time.perf_counter() + seconds
        for _ in range(clients):
            self.send()
        self.done.wait()
        self.rate = len(self.latencies) / seconds

    def send(self):
        start = time.perf_counter()
        self.call.future(self.message, timeout=60).add_done_callback(lambda future: self.answered(future, start))

    def answered(self, future, start):
        future.result()
        now = time.perf_counter()
        if now < self.end:
            self.latencies.append(now - start)
            self.send()
            return
        with self.lock:
            self.open -= 1
            if self.open == 0:
                self.done.set()


def mean_batch(daemon, model):
    stats = daemon.stub.ModelStatistics(pb.ModelStatisticsRequest(name=model)).model_stats[0]
    return stats.inference_count, stats.execution_count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="length of a burst")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--width", type=int, default=2048)
    options = parser.parse_args()
    names = ("single", "batched")
    with tempfile.TemporaryDirectory() as folder:
        make_repository(folder, options.width)
        row = torch.rand(1, options.width).numpy().tobytes()
        messages = {name: request(name, [("input", "FP32", [1, options.width], row)]) for name in names}
        with Daemon(folder) as daemon:
            for name in names:  # the first requests build plans for the sizes of batches
                Burst(daemon.stub, messages[name], options.clients, options.seconds)
            before = {name: mean_batch(daemon, name) for name in names}
            bursts = {name: [] for name in names}
            for _ in range(options.rounds):
                for name in names:
                    bursts[name].append(Burst(daemon.stub, messages[name], options.clients, options.seconds))
            after = {name: mean_batch(daemon, name) for name in names}
    rates = {name: statistics.median(burst.rate for burst in bursts[name]) for name in names}
    print("| model | requests/s | p50 ms | rows a run |\n|---|---:|---:|---:|")
    for name in names:
        p50 = statistics.median(latency for burst in bursts[name] for latency in burst.latencies)
        rows, runs = (end - start for start, end in zip(before[name], after[name]))
        print(f"| {name} | {rates[name]:.0f} | {1000 * p50:.1f} | {rows / max(runs, 1):.1f} |")
    print(f"\nbatched / single: {rates['batched'] / rates['single']:.1f}")


if __name__ == "__main__":
    main()
