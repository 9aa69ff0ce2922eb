"""`tensord bench` against Debian's PyTorch, eager and TorchScript frozen, in one interleaved run.

Usage: /usr/bin/python3 -m tests.bench.models TENSORD_BINARY [--models resnet50,…] [--threads 1,2] [--batch 1,8] [--rounds 3]

Each round runs the three in turn, each for about --seconds; the table has the median of the rounds' medians, in milliseconds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torchvision

from tests.models import script_models

VISION = ["resnet50", "mobilenet_v2"]


def model_and_inputs(name: str, batch: int):
    torch.manual_seed(0)
    if name in VISION:
        return getattr(torchvision.models, name)(weights=None).eval(), (torch.randn(batch, 3, 224, 224),)
    if name == "encoder":
        model = script_models.Encoder(words=1000, width=384, heads=6, layers=6).eval()
        return model, (torch.randint(1, 1000, (batch, 128)), torch.ones(batch, 128, dtype=torch.int64))
    raise SystemExit(f"unknown model {name}; known are {', '.join([*VISION, 'encoder'])}")


def pytorch_ms(call, inputs, seconds: float) -> float:
    times = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call(*inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def tensord_ms(binary: str, archive: str, args: str, threads: int, seconds: float) -> float:
    command = [binary, "bench", archive, "--args", args, "--threads", str(threads), "--seconds", str(seconds), "--json"]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)["median_ms"]


def measure(binary, name, threads, batch, rounds, seconds, folder):
    model, inputs = model_and_inputs(name, batch)
    archive, args = str(folder / f"{name}.pt"), str(folder / f"{name}.{batch}.args.pt")
    scripted = torch.jit.script(model)
    scripted.save(archive)
    torch.save(inputs, args)
    frozen = torch.jit.freeze(scripted)
    torch.set_num_threads(threads)
    rows = []
    with torch.inference_mode():
        for call in (model, frozen):  # the profiling executor compiles in its first runs
            for _ in range(3):
                call(*inputs)
        for _ in range(rounds):
            rows.append((tensord_ms(binary, archive, args, threads, seconds), pytorch_ms(model, inputs, seconds),
                         pytorch_ms(frozen, inputs, seconds)))
    return [statistics.median(column) for column in zip(*rows)]


def numbers(text: str) -> list:
    return [int(part) for part in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--models", default="resnet50,mobilenet_v2,encoder")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--batch", type=numbers, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    binary = os.path.abspath(options.binary)
    print("| model | threads | batch | tensord ms | PyTorch eager ms | ratio | PyTorch frozen ms | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models.split(","):
            for threads in options.threads:
                for batch in options.batch:
                    ours, eager, frozen = measure(binary, name, threads, batch, options.rounds, options.seconds,
                                                  pathlib.Path(folder))
                    print(f"| {name} | {threads} | {batch} | {ours:.2f} | {eager:.2f} | {ours / eager:.2f} | "
                          f"{frozen:.2f} | {ours / frozen:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
