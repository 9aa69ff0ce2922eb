"""p99 of a model under load, in turns with and without reloads of that model going on: a reload may add 10 %.

    python3 tests/bench/reload_bench.py [--rounds 40] [--seconds 1.5] [--clients 4] [--reloads 1]

The ratio is that of the two periods of a round, in the middle of all rounds: what else a machine does changes p99 more
than a reload, and what is measured side by side has the same of it.
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
    """Times of all requests of one period, and what failed."""
    message = request("mlp", [("x", "FP32", [1, 256], bytes(1024))])
    end = time.perf_counter() + options.seconds
    results, failures = [[] for _ in range(options.clients)], []
    threads = [threading.Thread(target=ask_until, args=(daemon, message, end, times, failures)) for times in results]
    for thread in threads:
        thread.start()
    for _ in range(options.reloads if has_reloads else 0):
        time.sleep(options.seconds / (options.reloads + 1))
        os.utime(os.path.join(folder, "mlp", "1", "model.pt"))
        daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="mlp"), timeout=60)
    for thread in threads:
        thread.join()
    return [value for times in results for value in times], failures


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1.5, help="of a period; a round has two")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--reloads", type=int, default=1, help="in each period that has them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(Mlp(), folder, "mlp")
        with open(os.path.join(folder, "mlp", "config.pbtxt"), "w") as config:
            config.write('input [ { name: "x" data_type: TYPE_FP32 dims: [ 1, 256 ] } ]\n')
        with Daemon(folder, "--model-control-mode", "explicit", "--load-model", "*") as daemon:
            period(daemon, options, folder, False)
            p99s, failed = {False: [], True: []}, 0
            for i in range(options.rounds):
                for has_reloads in (False, True) if i % 2 == 0 else (True, False):
                    times, failures = period(daemon, options, folder, has_reloads)
                    p99s[has_reloads].append(p99(times))
                    failed += len(failures)
    ratios = [loaded / quiet for quiet, loaded in zip(p99s[False], p99s[True])]
    lower, middle, upper = statistics.quantiles(ratios, n=4)
    print("| | p99 ms | ratio | half of the rounds | reloads | failed requests |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| without reloads | {statistics.median(p99s[False]) * 1e3:.2f} | 1 | | 0 | |")
    print(f"| with | {statistics.median(p99s[True]) * 1e3:.2f} | {middle:.2f} | {lower:.2f} to {upper:.2f} | "
          f"{options.rounds * options.reloads} | {failed} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
