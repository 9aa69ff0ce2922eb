"""How training steps scale with the number of workers: a model of Gloo's ring with a latency and a time a byte, beside what is measured here.

Usage: /usr/bin/python3 -m tests.bench.distributed.scaling TENSORD DDP_BENCH [--rounds 5] [--seconds 1.0]   measures 2 and 4 processes, and predicts them
       /usr/bin/python3 -m tests.bench.distributed.scaling --paper                                           64 and 1,024 workers, of the figures below

Prints markdown tables: those of docs/distributed.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

from tests.bench.distributed import cases
from tests.bench.training import models

MIB = 1 << 20
SIZES = [1024, MIB, 16 * MIB, 64 * MIB]
FIRST_BUCKET, BUCKET = MIB, 25 * MIB
# Extra messages of a training job's step beside the gradients: used parameters, and loss with requests.
SMALL_MESSAGES = 2


def ring(size, workers, alpha, beta):
    """Seconds of an all-reduce: each rank sends and receives 2(W-1) times, 1/W of the bytes each time."""
    return 2 * (workers - 1) * (alpha + size / workers * beta)


def bcube(size, workers, alpha, beta):
    """Recursive halving and doubling: the same number of bytes, and log2(W) messages each way."""
    return 2 * (workers - 1).bit_length() * alpha + 2 * (workers - 1) / workers * size * beta


def buckets_of(size):
    out = [min(size, FIRST_BUCKET)]
    while sum(out) < size:
        out.append(min(BUCKET, size - sum(out)))
    return out


def step(forward, backward, size, workers, alpha, beta, all_reduce=ring, overlaps=True, messages=SMALL_MESSAGES):
    """Seconds of a step: a bucket is sent when the backward pass has computed it and the previous bucket is reduced."""
    computed, sent = forward, forward
    for bucket in buckets_of(size):
        computed += backward * bucket / size
        sent = max(sent, computed if overlaps else forward + backward) + all_reduce(bucket, workers, alpha, beta)
    return max(sent, forward + backward) + messages * all_reduce(24, workers, alpha, beta)


def fit(times):
    """Latency and time a byte, from the smallest and the largest message of two processes."""
    alpha = times[SIZES[0]] / 2
    return alpha, (times[SIZES[-1]] - times[SIZES[0]]) / SIZES[-1]


def launched(options, workers, command, *arguments):
    """The output of rank 0."""
    done = subprocess.run([options.tensord, "launch", "--nproc", str(workers), "--log-line-prefix-template", "", "--no-python", options.bench,
                           command, str(options.seconds), *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measured(options, workers):
    """Median seconds by size."""
    turns = [launched(options, workers, "all_reduce", *map(str, SIZES)) for _ in range(options.rounds)]
    return {size: statistics.median(turn[str(size)] for turn in turns) / 1e3 for size in SIZES}


def measure(options):
    two, four = (measured(options, workers) for workers in (2, 4))
    alpha, beta = fit(two)
    share = max(1, 4 / os.cpu_count())
    slice_ = four[SIZES[0]] / 6
    print(f"latency {alpha * 1e6:.0f} us, {1e-9 / beta:.2f} GB/s; {slice_ * 1e6:.0f} us where 4 processes share {os.cpu_count()} cores\n")
    print("| all-reduce, bytes | 2: measured ms | 2: predicted | 4: measured | 4: predicted |\n|---:|---:|---:|---:|---:|")
    for size in SIZES:
        print(f"| {size:,} | {two[size] * 1e3:.2f} | {ring(size, 2, alpha, beta) * 1e3:.2f} | {four[size] * 1e3:.2f} "
              f"| {ring(size, 4, slice_, beta * share) * 1e3:.2f} |", flush=True)
    print("\n| step | gradients, MB | 1: measured ms | 2: measured | 2: predicted | 4: measured | 4: predicted |\n|---|---:|---:|---:|---:|---:|---:|")
    for row in (row for row in models.ROWS if row.name.startswith(tuple(options.models.split(",")))):
        with tempfile.TemporaryDirectory() as folder:
            size = cases.save(row, 4, folder)
            times = {}
            for workers in (1, 2, 4):
                turns = [launched(options, workers, "step", folder)["median_ms"] for _ in range(options.rounds)]
                times[workers] = statistics.median(turns) / 1e3
        predicted = {2: step(times[1] / 3, times[1] * 2 / 3, size, 2, alpha, beta, overlaps=False, messages=0),
                     4: step(times[1] / 3 * share, times[1] * 2 / 3 * share, size, 4, slice_, beta * share, overlaps=False, messages=0)}
        cells = [times[1], times[2], predicted[2], times[4], predicted[4]]
        print(f"| {row.name} a process | {size / 1e6:.1f} | " + " | ".join(f"{cell * 1e3:.0f}" for cell in cells) + " |", flush=True)


# Measured here: a step of resnet18 on one core, the size of its gradients, latency, and the bytes a second that a
# process transfers and adds.
ALONE, GRADIENTS = 0.661, 46_800_000
LATENCY, HOST_RATE = 216e-6, 0.70e9
RATES = {"0.70 GB/s, as measured (10 and 100 Gbit/s)": HOST_RATE, "1.25 GB/s, all of 10 Gbit/s": 10e9 / 8, "12.5 GB/s, all of 100 Gbit/s": 100e9 / 8}


def paper():
    """Weak scaling: each worker is a host with its own link, and has as many samples as a single one."""
    print("| resnet18 on | bytes travel at | ring, 64 workers | 1,024 | half is lost at | bcube, 64 | 1,024 |\n|---|---|---:|---:|---:|---:|---:|")
    for cores in (1, 16):
        alone = ALONE / cores
        for label, rate in RATES.items():
            def of(workers, kind, alone=alone, rate=rate):
                return step(alone / 3, alone * 2 / 3, GRADIENTS, workers, LATENCY, 1 / rate, kind)

            def cell(workers, kind, of=of, alone=alone):
                return f"{of(workers, kind) * 1e3:,.0f} ms, {alone / of(workers, kind):.0%}"

            half = next(workers for workers in range(2, 1 << 20) if of(workers, ring) > 2 * alone)
            print(f"| {cores} core{'s' if cores > 1 else ''}, {alone * 1e3:.0f} ms | {label} | {cell(64, ring)} | {cell(1024, ring)} | {half} "
                  f"| {cell(64, bcube)} | {cell(1024, bcube)} |")


def main():
    parser = argparse.ArgumentParser(prog="tests.bench.distributed.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("tensord", type=os.path.abspath, nargs="?")
    parser.add_argument("bench", type=os.path.abspath, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--models", default="MLP,resnet18", help="beginnings of the names of rows of tests.bench.training")
    parser.add_argument("--paper", action="store_true")
    options = parser.parse_args()
    if options.paper:
        return paper()
    if not options.bench:
        parser.error("TENSORD and DDP_BENCH are needed")
    return measure(options)


if __name__ == "__main__":
    main()
