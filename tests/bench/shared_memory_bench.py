"""ModelInfer with inputs and outputs in shared memory: the server's overhead must not grow with the size.

Sizes and models alternate. Prints the p50 of each, its ratio to the smallest size, and the bytes copied per call for the
identity model with its result in the input's memory, a model that returns the first 1,000 numbers, one that computes its
result (x + 1), and the identity model with its result elsewhere, which requires a copy. The last column is the time of one
plain copy of these bytes in this process.

    python3 tests/bench/shared_memory_bench.py [--rounds 20] [--calls 20]
"""

import argparse
import mmap
import os
import statistics
import sys
import tempfile
import time

import numpy
import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon, pb, request  # noqa: E402

SIZES = (4_096, 600_000, 4_000_000, 64_000_000)


class First(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:1000]


class Increment(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


# The measured kinds: the model, and whether the result overwrites the input.
KINDS = {"identity, in place": ("identity", True), "first 1000": ("first", False), "x + 1": ("increment", False),
         "identity, elsewhere": ("identity", False)}


def message(region, size, model, is_in_place):
    out = request(model, [("x", "FP32", [size // 4], None)], outputs=["OUTPUT__0"])
    for item, offset in ((out.inputs[0], 0), (out.outputs[0], 0 if is_in_place else -(-size // 4096) * 4096)):
        item.parameters["shared_memory_region"].string_param = region
        item.parameters["shared_memory_byte_size"].int64_param = size
        item.parameters["shared_memory_offset"].int64_param = offset
    return out


class Case:
    """One size and kind."""

    def __init__(self, daemon, region, size, kind):
        self.daemon, self.size, self.kind = daemon, size, kind
        self.model, is_in_place = KINDS[kind]
        self.message = message(region, size, self.model, is_in_place)
        self.times, self.copied = [], 0

    def copied_bytes(self):
        return self.daemon.metric("tensord_copied_bytes_total", model=self.model)

    def ask(self, calls):
        before = self.copied_bytes()
        for _ in range(calls):
            start = time.perf_counter()
            self.daemon.stub.ModelInfer(self.message, timeout=60)
            self.times.append(time.perf_counter() - start)
        self.copied += self.copied_bytes() - before


def register(daemon, size):
    """A region for an input and an output; returns its name and its memory."""
    name = f"tensord_bench_{os.getpid()}_{size}"
    file = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    whole = 2 * -(-size // 4096) * 4096
    os.ftruncate(file, whole)
    memory = numpy.frombuffer(mmap.mmap(file, whole), numpy.uint8)
    memory[:] = 0
    os.close(file)
    daemon.stub.SystemSharedMemoryRegister(
        pb.SystemSharedMemoryRegisterRequest(name=name, key="/" + name, byte_size=whole), timeout=60)
    return name, memory


def copy_seconds(memory, size):
    start = time.perf_counter()
    memory[-size:] = memory[:size]
    return time.perf_counter() - start


def run(daemon, rounds, calls):
    regions = {}
    try:
        for size in SIZES:
            regions[size] = register(daemon, size)
        cases = [Case(daemon, regions[size][0], size, kind) for size in SIZES for kind in KINDS]
        for case in cases:
            case.ask(3)
            case.times, case.copied = [], 0
        copies = {size: [] for size in SIZES}
        for _ in range(rounds):
            for case in cases:
                case.ask(calls)
            for size in SIZES:
                copies[size] += [copy_seconds(regions[size][1], size) for _ in range(calls)]
    finally:
        for name, _ in regions.values():
            os.unlink("/dev/shm/" + name)
    report(cases, copies)


def report(cases, copies):
    print("| bytes | " + " | ".join(f"{kind}, µs | ratio | copied" for kind in KINDS) + " | a copy, µs |")
    print("|---:|" + "---:|---:|---:|" * len(KINDS) + "---:|")
    p50 = {(case.size, case.kind): statistics.median(case.times) * 1e6 for case in cases}
    for size in SIZES:
        row = [f"| {size} |"]
        for case in cases:
            if case.size != size:
                continue
            value = p50[size, case.kind]
            row.append(f" {value:.0f} | {value / p50[SIZES[0], case.kind]:.2f} | {case.copied / len(case.times):.0f} |")
        print("".join(row) + f" {statistics.median(copies[size]) * 1e6:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), folder, "identity")
        serve_models.save(First(), folder, "first")
        serve_models.save(Increment(), folder, "increment")
        with Daemon(folder, "--allow-client-shm", "true") as daemon:
            run(daemon, options.rounds, options.calls)


if __name__ == "__main__":
    main()
