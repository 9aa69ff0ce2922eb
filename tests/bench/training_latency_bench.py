"""Latency of requests while a training job runs on the same machine, compared with the same daemon while the job is paused.

Bursts with and without the job alternate. Prints p50 and p99 of both and their ratios; the goal for p99 is below 1.5.

    TENSORD_BINARY=… python3 -m tests.bench.training_latency_bench [--seconds 2] [--rounds 8] [--rate 100] [--nice 19]
"""

import argparse
import time

import torch
from torch import nn

from tests.e2e.training import training_models as models
from tests.e2e.daemon import request, training
from tests.e2e.training.training_daemon import PAUSED, RUNNING, TrainingDaemon


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="length of a burst")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--rate", type=float, default=100, help="requests a second")
    parser.add_argument("--nice", default="19", help="--training-nice of the daemon")
    parser.add_argument("--job-threads", type=int, default=1)
    return parser.parse_args()


def served_model(kind):
    if kind == "mlp":
        return models.Mlp(hidden=1024), [32, 64]
    channels = 24
    layers = [nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()]
    for _ in range(6):
        layers += [nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), [1, 3, 56, 56]


def burst(stub, message, seconds, rate, into):
    """Sends requests at a fixed rate; late ones are not skipped, so a stall counts for every request that it delays."""
    start = time.perf_counter()
    for i in range(int(seconds * rate)):
        due = start + i / rate
        wait = due - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        stub.ModelInfer(message, timeout=60)
        into.append(time.perf_counter() - due)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] * 1e3


def main():
    options = parse()
    server = TrainingDaemon(nice=options.nice)
    try:
        torch.manual_seed(0)
        shapes = {}
        for kind in ("mlp", "convnet"):
            module, shapes[kind] = served_model(kind)
            models.save(module, server.models, kind)
        models.save(models.Mlp(hidden=2048), server.models, "trained")
        x, y = models.clusters(5000, 64, 10, seed=1)
        server.save_data("clusters.pt", x=x, y=y)
        server.start()
        job = server.create(model="trained", steps=10**8, batch_size=128,
                            resources=training.Resources(threads=options.job_threads))
        print("| served model | without job p50 ms | p99 ms | with job p50 ms | p99 ms | p50 ratio | p99 ratio | job samples/s |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|")
        for kind, shape in shapes.items():
            run(server, job.id, kind, shape, options)
    finally:
        server.close()


def run(server, job_id, kind, shape, options):
    name = "x" if kind == "mlp" else "input"
    message = request(kind, [(name, "FP32", shape, torch.randn(shape).numpy().tobytes())])
    stub = server.daemon.stub
    for _ in range(50):
        stub.ModelInfer(message, timeout=60)
    latencies, speeds = {PAUSED: [], RUNNING: []}, []
    for _ in range(options.rounds):
        server.stub.PauseJob(training.PauseJobRequest(id=job_id))
        server.wait_until(job_id, lambda now: now.state == PAUSED)
        burst(stub, message, options.seconds, options.rate, latencies[PAUSED])
        server.stub.ResumeJob(training.ResumeJobRequest(id=job_id))
        before = server.wait_until(job_id, lambda now: now.state == RUNNING and now.progress.samples_per_second > 0)
        start = time.monotonic()
        burst(stub, message, options.seconds, options.rate, latencies[RUNNING])
        after = server.get(job_id)
        speeds.append((after.progress.samples - before.progress.samples) / (time.monotonic() - start))
    without, during = latencies[PAUSED], latencies[RUNNING]
    numbers = [percentile(without, 0.5), percentile(without, 0.99), percentile(during, 0.5), percentile(during, 0.99)]
    print(f"| {kind} | " + " | ".join(f"{number:.2f}" for number in numbers) +
          f" | {numbers[2] / numbers[0]:.2f} | {numbers[3] / numbers[1]:.2f} | {sum(speeds) / len(speeds):.0f} |", flush=True)


if __name__ == "__main__":
    main()
