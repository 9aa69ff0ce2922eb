"""PyTorch's side, eager: python -m tests.bench.training.worker ROW THREADS WEIGHTS BATCH

Reads commands from standard input and answers each with one line of JSON, as train_step does:
  losses N        the losses of N steps from the weights in the file
  burst SECONDS   takes steps for about that time: the median and the fastest, in ms
  memory 0        the most memory that steps took so far beyond what was there before the model, after a
                  step of a tiny one, in bytes
"""

import json
import statistics
import sys
import time

import torch

from tests.bench.training import models


def memory_bytes(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))


class Run:
    def __init__(self, row, model, batch):
        self.model, self.batch = model.train(), batch
        if row.optimizer == "sgd":
            self.optimizer = torch.optim.SGD(model.parameters(), row.lr, momentum=0.9)
        else:
            self.optimizer = torch.optim.AdamW(model.parameters(), row.lr)

    def step(self) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model.training_step(*self.batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def burst(self, seconds: float) -> dict:
        for _ in range(2):
            self.step()
        times, end = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            start = time.perf_counter()
            self.step()
            times.append((time.perf_counter() - start) * 1e3)
        return {"median_ms": statistics.median(times), "best_ms": min(times)}


def main():
    _, name, threads, weights, batch = sys.argv
    torch.set_num_threads(int(threads))
    row = next(row for row in models.ROWS if row.name == name)
    Run(row, models.tiny(), models.tiny_batch()).step()
    before = memory_bytes("VmRSS")
    model = row.model()
    model.load_state_dict(torch.load(weights))
    run = Run(row, model, torch.load(batch))
    for line in sys.stdin:
        command, argument = line.split()
        if command == "losses":
            result = {"losses": [run.step().item() for _ in range(int(argument))]}
        elif command == "burst":
            result = run.burst(float(argument))
        else:
            result = {"bytes": memory_bytes("VmHWM") - before}
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
