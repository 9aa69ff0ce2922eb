"""The engine in Python, compared with PyTorch and NumPy in one process with one thread each: calls on 16 numbers, a chain of calls, forward
and backward of a small model, a data loader. Import time and memory are measured in separate processes.

Usage: PYTHONPATH=build/dev/python build/pypi_torch/bin/python -m tests.bench.engine_bench [--rounds N]   (scripts/setup pypi_torch)
Prints a table in microseconds: the best of many short rounds, in which the libraries alternate.
"""

import argparse
import subprocess
import sys
import time

from tests.bench.machine import describe

LIBRARIES = ("engine", "torch", "numpy")


def best(calls, rounds):
    """Seconds a call of each, the best of rounds in turns."""
    counts, times = {}, {name: float("inf") for name in calls}
    for name, call in calls.items():
        call()
        begin = time.perf_counter()
        call()
        counts[name] = max(1, int(0.001 / max(1e-7, time.perf_counter() - begin)))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name] = min(times[name], (time.perf_counter() - begin) / counts[name])
    return times


def small_calls(engine, torch, numpy):
    """Rows of operations on 16 numbers."""
    values = numpy.arange(16, dtype="float32") / 16
    x = {"engine": engine.tensor(values), "torch": torch.tensor(values), "numpy": values.copy()}
    square = {name: tensor.reshape(4, 4) for name, tensor in x.items()}
    index = {"engine": engine.tensor([3, 1, 2]), "torch": torch.tensor([3, 1, 2]), "numpy": numpy.array([3, 1, 2])}

    def chain(name, exp):
        def run(a=x[name]):
            b = a
            for _ in range(5):
                b = b * a
                b = b - a
            return exp(b)
        return run

    def view(name):
        return (lambda a=x[name]: a.view(4, 4)) if name != "numpy" else (lambda a=x[name]: a.reshape(4, 4))

    return {
        "add": {name: lambda a=x[name]: a + a for name in LIBRARIES},
        "matmul": {name: lambda a=square[name]: a @ a for name in LIBRARIES},
        "index by a number": {name: lambda a=x[name]: a[3] for name in LIBRARIES},
        "index by a tensor": {name: lambda a=x[name], i=index[name]: a[i] for name in LIBRARIES},
        "view": {name: view(name) for name in LIBRARIES},
        "sum": {name: lambda a=x[name]: a.sum() for name in LIBRARIES},
        "chain of ten and exp": {"engine": chain("engine", engine.exp), "torch": chain("torch", torch.exp), "numpy": chain("numpy", numpy.exp)},
    }


def model_calls(library, nn):
    library.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    x = library.randn(32, 64)

    def forward():
        return net(x)

    def both():
        for parameter in net.parameters():
            parameter.grad = None
        net(x).square().mean().backward()

    return forward, both


class Numbers:
    """5000 samples of 3 × 32 × 32 with labels."""

    def __init__(self, library):
        self.images = library.rand(512, 3, 32, 32)

    def __len__(self):
        return 5000

    def __getitem__(self, index):
        return self.images[index % 512], index


def loader_seconds(loader, dataset, workers):
    begin = time.perf_counter()
    for _ in loader(dataset, 64, num_workers=workers):
        pass
    return time.perf_counter() - begin


def import_cost(statement, rounds):
    """The best of rounds: milliseconds for the import, and MB of memory after it, without Python's own."""
    program = ("import time, resource, os; before = int(open('/proc/self/statm').read().split()[1]); begin = time.perf_counter()\n" + statement +
               "\nprint((time.perf_counter() - begin) * 1e3, (int(open('/proc/self/statm').read().split()[1]) - before) * 4096 / 1e6)")
    found = []
    for _ in range(rounds):
        found.append([float(part) for part in subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()])
    return min(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    import numpy
    import torch

    from tensord import engine
    from tensord.engine import data, nn

    torch.set_num_threads(1)
    engine.set_num_threads(1)
    print(f"{describe()}, one thread; PyTorch {torch.__version__}, NumPy {numpy.__version__}, Python {sys.version.split()[0]}\n")
    print("| | engine | PyTorch | NumPy | engine / PyTorch |\n|---|---|---|---|---|")

    def row(label, times, unit="µs", scale=1e6):
        cells = [f"{times[name] * scale:.2f} {unit}" if name in times else "" for name in LIBRARIES]
        print(f"| {label} | {' | '.join(cells)} | {times['engine'] / times['torch']:.2f} |", flush=True)

    for label, calls in small_calls(engine, torch, numpy).items():
        row(f"16 numbers: {label}", best(calls, rounds))
    ours, theirs = model_calls(engine, nn), model_calls(torch, torch.nn)
    for i, label in enumerate(["forward", "forward and backward"]):
        row(f"MLP 64-128-64-10, 32 rows: {label}", best({"engine": ours[i], "torch": theirs[i]}, rounds))
    for workers in (0, 2):
        sides = {"engine": (data.DataLoader, Numbers(engine)), "torch": (torch.utils.data.DataLoader, Numbers(torch))}
        times = {name: min(loader_seconds(loader, dataset, workers) for _ in range(3)) for name, (loader, dataset) in sides.items()}
        row(f"loader, 5000 samples of 12 KB, batches of 64, {workers} workers", times, "ms", 1e3)
    costs = {"engine": import_cost("from tensord import engine", 5), "torch": import_cost("import torch", 5), "numpy": import_cost("import numpy", 5)}
    row("import", {name: cost[0] for name, cost in costs.items()}, "ms", 1)
    row("memory of the import", {name: cost[1] for name, cost in costs.items()}, "MB", 1)


if __name__ == "__main__":
    main()
