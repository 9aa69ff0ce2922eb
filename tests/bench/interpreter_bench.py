"""Interpreter overhead on scalars, lists and strings: TorchScript run by tensord and by PyTorch.

Usage: PYTHONPATH=build/dev/python build/pypi_torch/bin/python -m tests.bench.interpreter_bench   (scripts/setup pypi_torch)
One process, one thread, CPU time, the two in turns; the best of several runs. Prints nanoseconds for one round of each loop.
"""

import argparse
import pathlib
import tempfile
import time
import warnings
from typing import Dict, List

import torch

warnings.filterwarnings("ignore")


class Point:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y

    def moved(self, by: float) -> float:
        self.x += by
        return self.x * self.y


class Loops(torch.nn.Module):
    """Each method runs n iterations and returns a number."""

    def forward(self, n: int) -> int:
        return n

    @torch.jit.export
    def ints(self, n: int) -> int:
        total = 0
        for i in range(n):
            if i % 3 == 0:
                total += i * 7 // 5
            else:
                total -= i
        return total

    @torch.jit.export
    def floats(self, n: int) -> float:
        x, y = 0.1, 0.2
        for _ in range(n):
            x, y = x * x - y * y + 0.3, 2.0 * x * y + 0.1
        return x + y

    @torch.jit.export
    def while_loop(self, n: int) -> int:
        left, steps = n, 0
        while left > 0:
            left -= 1
            steps += left & 1
        return steps

    @torch.jit.export
    def lists(self, n: int) -> int:
        items: List[int] = []
        for i in range(n):
            items.append(i)
        total = 0
        for item in items:
            total += item
        return total + items[n // 2] + len(items)

    @torch.jit.export
    def dicts(self, n: int) -> int:
        counts: Dict[int, int] = {}
        for i in range(n):
            key = i % 16
            if key in counts:
                counts[key] = counts[key] + 1
            else:
                counts[key] = 1
        return counts[3]

    @torch.jit.export
    def strings(self, n: int) -> int:
        length = 0
        for i in range(n):
            length += len("x" + str(i))
        return length

    def half(self, x: int) -> int:
        if x > 100:
            return x // 2
        return x + 1

    @torch.jit.export
    def calls(self, n: int) -> int:
        total = 0
        for i in range(n):
            total += self.half(i)
        return total

    @torch.jit.export
    def objects(self, n: int) -> float:
        point = Point(1.0, 2.0)
        total = 0.0
        for _ in range(n):
            total += point.moved(0.5)
        return total

    @torch.jit.export
    def tensors(self, n: int) -> float:
        x = torch.zeros([1])
        for _ in range(n):
            x = x + 1
        return float(x)


NAMES = {"ints": "integers, a branch", "floats": "floats, two variables", "while_loop": "while", "lists": "append, read", "dicts": "a dict of 16 keys",
         "texts": "texts", "calls": "calls of a method", "objects": "an object's fields", "tensors": "x + 1, one element"}


def nanoseconds(call, rounds, runs):
    call(rounds)
    call(rounds)
    best = float("inf")
    for _ in range(runs):
        begin = time.process_time()
        call(rounds)
        best = min(best, time.process_time() - begin)
    return best / rounds * 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    from tensord import engine

    from tests.bench.machine import describe

    torch.set_num_threads(1)
    engine.set_num_threads(1)
    theirs = torch.jit.script(Loops())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "loops.pt"
        theirs.save(str(path))
        ours = engine.jit.load(str(path))
    print(f"{describe()}, one thread; PyTorch {torch.__version__}; ns a round\n\n| loop | tensord | PyTorch | ratio |\n|---|---|---|---|")
    for name, label in NAMES.items():
        mine, peer = getattr(ours, name), getattr(theirs, name)
        if abs(float(mine(1000)) - float(peer(1000))) > 1e-9:
            raise SystemExit(f"{name}: {mine(1000)}, not {peer(1000)}")
        a, b = [], []
        for _ in range(3):
            a.append(nanoseconds(mine, options.rounds, options.runs))
            b.append(nanoseconds(peer, options.rounds, options.runs))
        print(f"| {label} | {min(a):.1f} | {min(b):.1f} | {min(a) / min(b):.2f} |", flush=True)


if __name__ == "__main__":
    main()
