"""Time of a training step in float32 and in mixed precision (bfloat16), in turns in one process, on one thread.

Usage: PYTHONPATH=build/release/python:. /usr/bin/python3 -m tests.bench.training.mixed_precision [--models MLP,resnet18,…] [--rounds 7] [--threads 1]

A step is loss, backward and optimizer of a scripted model, as a training job runs it. Prints a markdown table with medians, and the losses of
both after some steps from the same weights.
"""

import argparse
import pathlib
import statistics
import tempfile
import time

import torch
from tensord import engine

from tests.bench import machine
from tests.bench.training import models

LOSS_STEPS = 10


class Trainer:
    def __init__(self, row, path: str, batch, precision: str):
        self.model = engine.load(path, trainable=True)
        self.model.train()
        self.batch, self.precision = batch, precision
        parameters = list(self.model.parameters())
        self.optimizer = engine.optim.AdamW(parameters, lr=row.lr) if row.optimizer == "adamw" else engine.optim.SGD(parameters, lr=row.lr, momentum=0.9)

    def step(self) -> float:
        self.optimizer.zero_grad()
        with engine.autocast("cpu", engine.bfloat16, enabled=self.precision == "bf16"):
            loss = self.model.training_step(*self.batch)
        loss.backward()
        self.optimizer.step()
        return loss.item()


def from_torch(tensor: torch.Tensor) -> engine.Tensor:
    return engine.from_dlpack(tensor.clone())


def measure(row, rounds: int, folder: str) -> str:
    torch.manual_seed(0)
    path = str(pathlib.Path(folder, "model.pt"))
    models.scripted(row.model()).save(path)
    batch = [from_torch(tensor) for tensor in row.batch()]
    trainers = [Trainer(row, path, batch, precision) for precision in ("f32", "bf16")]
    losses = [[trainer.step() for _ in range(LOSS_STEPS)][-1] for trainer in trainers]
    times: list = [[], []]
    for _ in range(rounds):
        for trainer, own in zip(trainers, times):
            start = time.perf_counter()
            steps = 0
            while time.perf_counter() - start < 0.5:
                trainer.step()
                steps += 1
            own.append((time.perf_counter() - start) / steps * 1e3)
    f32, bf16 = (statistics.median(own) for own in times)
    return f"| {row.name} | {f32:.2f} | {bf16:.2f} | {bf16 / f32:.2f} | {losses[0]:.4f} | {losses[1]:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="", help="beginnings of the names of rows, separated by commas; all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    engine.set_num_threads(options.threads)
    print(machine.describe() + f"; {options.threads} threads\n")
    print(f"| step | f32 (ms) | bf16 (ms) | ratio | loss after {LOSS_STEPS} steps, f32 | bf16 |\n|---|---:|---:|---:|---:|---:|")
    for row in models.ROWS:
        if options.models and not row.name.startswith(tuple(options.models.split(","))):
            continue
        with tempfile.TemporaryDirectory() as folder:
            print(measure(row, options.rounds, folder), flush=True)


if __name__ == "__main__":
    main()
