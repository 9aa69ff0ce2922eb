"""All-reduce and training steps of some processes over Gloo on loopback, beside PyTorch's gloo and DDP, in turns; all-reduce over Open MPI
too, where mpirun is installed.

Usage: /usr/bin/python3 -m tests.bench.distributed TENSORD DDP_BENCH [--python PYTHON] [--rounds 5] [--seconds 1.0] [--nproc 2]
         [--models MLP,resnet18] [--no-all-reduce]

TENSORD is the binary that launches both sides, DDP_BENCH the target ddp_bench of the build; one thread a process. PYTHON has the PyTorch
to compare with (default: the one that runs this). Prints markdown tables.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from tests.bench.distributed import cases
from tests.bench.training import models

SIZES = ["1024", "65536", "1048576", "16777216", "67108864"]
ROWS_BY_DEFAULT = ("MLP", "resnet18")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench.distributed", description=__doc__.splitlines()[0])
    parser.add_argument("tensord", type=os.path.abspath)
    parser.add_argument("bench", type=os.path.abspath)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--models", default=",".join(ROWS_BY_DEFAULT), help="beginnings of the names of rows of tests.bench.training")
    parser.add_argument("--no-all-reduce", action="store_true", help="steps alone")
    return parser.parse_args()


def run(options, launcher, program, *arguments) -> dict:
    command = [*launcher, *program, arguments[0], str(options.seconds), *arguments[1:]]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    if out.returncode:
        raise SystemExit(out.stderr)
    return json.loads(out.stdout.splitlines()[-1])


def in_turns(options, *arguments):
    launch = [options.tensord, "launch", "--nproc", str(options.nproc), "--log-line-prefix-template", "", "--no-python"]
    sides = {"tensord": (launch, [options.bench]), "PyTorch": (launch, [options.python, "-m", "tests.bench.distributed.worker"])}
    if arguments[0] == "all_reduce" and shutil.which("mpirun.openmpi"):
        sides["MPI"] = (["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(options.nproc)], [options.bench])
    results = {name: [] for name in sides}
    for turn in range(options.rounds):
        for name in list(sides)[:: 1 if turn % 2 else -1]:
            results[name].append(run(options, *sides[name], *arguments))
    return results


def main() -> None:
    options = parse()
    if not options.no_all_reduce:
        measure_all_reduce(options)
    measure_steps(options)


def measure_all_reduce(options) -> None:
    results = in_turns(options, "all_reduce", *SIZES)
    print("| all-reduce, bytes | tensord, Gloo ms | tensord, MPI ms | PyTorch, gloo ms | Gloo to PyTorch |\n|---:|---:|---:|---:|---:|")
    for size in SIZES:
        medians = {name: statistics.median(turn[size] for turn in turns) for name, turns in results.items()}
        ours, theirs = medians["tensord"], medians["PyTorch"]
        mpi = f"{medians['MPI']:.2f}" if "MPI" in medians else ""
        print(f"| {int(size):,} | {ours:.2f} | {mpi} | {theirs:.2f} | {ours / theirs:.2f} |", flush=True)
    print(flush=True)


def measure_steps(options) -> None:
    print(f"| step of {options.nproc} processes | tensord ms | PyTorch's DDP ms | ratio | tensord waits ms | losses differ by |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in (row for row in models.ROWS if row.name.startswith(tuple(options.models.split(",")))):
        with tempfile.TemporaryDirectory() as name:
            cases.save(row, options.nproc, name)
            results = in_turns(options, "step", name)
        ours, theirs = (statistics.median(turn["median_ms"] for turn in results[side]) for side in ("tensord", "PyTorch"))
        waits = statistics.median(turn["waited_ms"] for turn in results["tensord"])
        pairs = zip(results["tensord"][0]["losses"], results["PyTorch"][0]["losses"])
        error = max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)
        print(f"| {row.name} a process | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {waits:.1f} | {error:.1e} |", flush=True)


if __name__ == "__main__":
    main()
