"""p99 of a model under load, alternately with and without reloads of the model: a reload may add 10 %.

    python3 tests/bench/reload_bench.py [--rounds 40] [--seconds 1.5] [--clients 4] [--reloads 1]

Prints two ratios as medians of all rounds, because other work on the machine changes p99 more than a reload does: the ratio
of the two periods of a round; and that of all requests of a period with reloads to those of its requests that ran during no
reload, which other work affects equally.
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


AFTER_RELOAD = 0.1  # seconds after a reload in which requests still count as affected by it


def send_until(daemon, message, end, requests, failures):
    while (start := time.perf_counter()) < end:
        try:
            daemon.stub.ModelInfer(message, timeout=60)
        except Exception as error:
            failures.append(error)
        requests.append((start, time.perf_counter()))


def measure_period(daemon, options, folder, reloads):
    """(start, end) of all requests of one period, those of the reloads, and what failed."""
    message = request("mlp", [("x", "FP32", [1, 256], bytes(1024))])
    end = time.perf_counter() + options.seconds
    results, failures, loads = [[] for _ in range(options.clients)], [], []
    threads = [threading.Thread(target=send_until, args=(daemon, message, end, requests, failures))
               for requests in results]
    for thread in threads:
        thread.start()
    for _ in range(reloads):
        time.sleep(options.seconds / (reloads + 1))
        os.utime(os.path.join(folder, "mlp", "1", "model.pt"))
        start = time.perf_counter()
        daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="mlp"), timeout=60)
        loads.append((start, time.perf_counter()))
    for thread in threads:
        thread.join()
    return [one for requests in results for one in requests], loads, failures


def p99(requests):
    return sorted(end - start for start, end in requests)[int(len(requests) * 0.99)]


def without_reloads(loads, requests):
    return [one for one in requests
            if not any(one[1] > start and one[0] < end + AFTER_RELOAD for start, end in loads)]


def print_row(name, p99s, others, rest):
    ratios = [mine / other for mine, other in zip(p99s, others)]
    lower, middle, upper = statistics.quantiles(ratios, n=4)
    print(f"| {name} | {statistics.median(p99s) * 1e3:.2f} | {middle:.2f} | {lower:.2f} to {upper:.2f} | {rest} |")


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
            measure_period(daemon, options, folder, 0)
            quiet, loaded, away, failed = [], [], [], 0
            for i in range(options.rounds):
                for reloads in (0, options.reloads) if i % 2 == 0 else (options.reloads, 0):
                    requests, loads, failures = measure_period(daemon, options, folder, reloads)
                    (loaded if reloads else quiet).append(p99(requests))
                    if reloads:
                        away.append(p99(without_reloads(loads, requests)))
                    failed += len(failures)
    print("| | p99 ms | ratio | half of the rounds | reloads | failed requests |")
    print("|---|---:|---:|---:|---:|---:|")
    print_row("without reloads", quiet, quiet, "0 | ")
    print_row("with, to without", loaded, quiet, f"{options.rounds * options.reloads} | {failed}")
    print_row("with, to those away from reloads", loaded, away, " | ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
