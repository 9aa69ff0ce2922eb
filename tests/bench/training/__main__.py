"""Time and memory of a training step against eager PyTorch on the CPU, in one interleaved run.

Usage: /usr/bin/python3 -m tests.bench.training TRAIN_STEP_BINARY [--models MLP,resnet18,…] [--threads 1,2]
         [--rounds 5] [--seconds 1.0]

TRAIN_STEP_BINARY is the target train_step of the build. A step is forward, backward and optimizer on one batch; both sides
start from the same weights and take turns in bursts of some steps, tensord with interpreted and with planned steps, which must give
the same losses. Prints a markdown table.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch

from tests.bench import machine
from tests.bench.training import models


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench.training", description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--models", default="", help="beginnings of the names of rows, separated by commas; all")
    parser.add_argument("--threads", type=lambda counts: [int(part) for part in counts.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a burst")
    parser.add_argument("--plan", choices=["exact", "fused"], default="exact", help="how the planned side plans its steps")
    parser.add_argument("--losses", type=int, default=10, help="first steps whose losses are compared")
    return parser.parse_args()


class Side:
    def __init__(self, command: list, threads: int):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **{name: str(threads) for name in names}}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, command: str, argument) -> dict:
        self.process.stdin.write(f"{command} {argument}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args[:3]} stopped at: {command} {argument}")
        return json.loads(line)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(row, threads: int, options, folder: pathlib.Path) -> str:
    weights, batch = str(folder / "weights.pt"), str(folder / "batch.pt")
    command = [options.binary, str(folder), str(threads), row.optimizer, str(row.lr)]
    sides = {
        "tensord": Side(command, threads),
        "planned": Side(command, threads),
        "PyTorch": Side([sys.executable, "-m", "tests.bench.training.worker", row.name, str(threads), weights, batch], threads),
    }
    sides["planned"].ask("plan", options.plan)
    losses = {name: side.ask("losses", options.losses)["losses"] for name, side in sides.items()}
    if options.plan == "exact" and losses["planned"] != losses["tensord"]:
        raise SystemExit(f"{row.name}: planned steps give other losses: {losses}")
    error = max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(losses["tensord"], losses["PyTorch"]))
    bursts = {name: [] for name in sides}
    for turn in range(options.rounds):
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            bursts[name].append(sides[name].ask("burst", options.seconds)["median_ms"])
    report = sides["planned"].ask("report", 0)
    if not report["planned"]:
        print(f"{row.name} is not planned: {report['reason']}", file=sys.stderr)
    memory = {name: side.ask("memory", 0)["bytes"] / 1e6 for name, side in sides.items()}
    for side in sides.values():
        side.stop()
    ratios = {name: statistics.median(a / b for a, b in zip(bursts[name], bursts["PyTorch"])) for name in ("tensord", "planned")}
    times = " | ".join(f"{statistics.median(bursts[name]):.2f}" for name in sides)
    megabytes = " | ".join(f"{memory[name]:.0f}" for name in sides)
    return (f"| {row.name} | {threads} | {times} | {ratios['tensord']:.2f} | {ratios['planned']:.2f} | {megabytes} | {error:.1e} |")


def main() -> int:
    options = parse()
    print(machine.describe(), end="\n\n")
    print("| model | threads | interpreted ms | planned ms | PyTorch ms | ratio | planned ratio | interpreted MB | planned MB | "
          "PyTorch MB | loss differs by |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for row in models.ROWS:
        if not row.name.startswith(tuple(options.models.split(","))):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            torch.manual_seed(0)
            model = row.model()
            torch.save(model.state_dict(), folder / "weights.pt")
            torch.save(row.batch(), folder / "batch.pt")
            models.scripted(model).save(str(folder / "model.pt"))
            models.scripted(models.tiny()).save(str(folder / "tiny.pt"))
            torch.save(models.tiny_batch(), folder / "tiny_batch.pt")
            for threads in options.threads:
                print(measure(row, threads, options, folder), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
