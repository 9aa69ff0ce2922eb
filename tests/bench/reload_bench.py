"""p99 of a model under load, in turns with and without reloads of that model going on: a reload may add 10 %.

    python3 tests/bench/reload_bench.py [--rounds 6] [--seconds 3] [--clients 4] [--reloads 2]
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon, pb, request  # noqa: E402


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
                                    nn.Linear(1024, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def ask_until(daemon, message, end, times, failures):
    while time.perf_counter() < end:
        start = time.perf_counter()
        try:
            daemon.stub.ModelInfer(message, timeout=60)
        except Exception as error:
            failures.append(error)
        times.append(time.perf_counter() - start)


def period(daemon, options, folder, has_reloads):
    """Times of all requests of one period, what failed, and how many reloads there were."""
    message = request("mlp", [("x", "FP32", [1, 256], bytes(1024))])
    end = time.perf_counter() + options.seconds
    results, failures = [[] for _ in range(options.clients)], []
    threads = [threading.Thread(target=ask_until, args=(daemon, message, end, times, failures)) for times in results]
    for thread in threads:
        thread.start()
    reloads = 0
    while has_reloads and time.perf_counter() < end - 0.5 and reloads < options.reloads:
        os.utime(os.path.join(folder, "mlp", "1", "model.pt"))
        daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="mlp"), timeout=60)
        reloads += 1
        time.sleep(options.seconds / (options.reloads + 1))
    for thread in threads:
        thread.join()
    return [value for times in results for value in times], failures, reloads


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--reloads", type=int, default=2, help="in each period that has them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(Mlp(), folder, "mlp")
        with open(os.path.join(folder, "mlp", "config.pbtxt"), "w") as config:
            config.write('input [ { name: "x" data_type: TYPE_FP32 dims: [ 1, 256 ] } ]\n')
        with Daemon(folder, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
            period(daemon, options, folder, False)
            quiet, loaded, reloads, failed = [], [], 0, 0
            for _ in range(options.rounds):
                for has_reloads, p99s in ((False, quiet), (True, loaded)):
                    times, failures, count = period(daemon, options, folder, has_reloads)
                    p99s.append(p99(times))
                    reloads += count
                    failed += len(failures)
    without, with_reloads = statistics.median(quiet), statistics.median(loaded)
    print("| | p99 ms | ratio | reloads | failed requests |")
    print("|---|---:|---:|---:|---:|")
    print(f"| without reloads | {without * 1e3:.2f} | 1 | 0 | |")
    print(f"| with | {with_reloads * 1e3:.2f} | {with_reloads / without:.2f} | {reloads} | {failed} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
