"""tensord against Debian's PyTorch, ONNX Runtime and OpenVINO on the CPU, in one interleaved run.

Usage: build/peers/bin/python -m tests.bench.cpu_inference TENSORD_BINARY [--models resnet50,BERT,…] [--threads 1,2]
         [--batch 1,8] [--rounds 5] [--seconds 0.5] [--best] [--clock cpu] [--quiet 0.06] [--also bf16,int8]
         [--tensord-flags "…"] [--json FILE]

scripts/setup bench makes build/peers. Prints a markdown table; docs/benchmarks.md says how to read it.
"""

import argparse
import json
import os
import pathlib
import shlex
import sys
import tempfile
import warnings

from tests.bench import machine
from tests.bench.cpu_inference import driver, files, models, report


def numbers(argument: str) -> list:
    return [int(part) for part in argument.split(",")]


def words(argument: str) -> list:
    return [part for part in argument.split(",") if part]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.bench.cpu_inference", description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--models", default="", help="beginnings of the names of rows, separated by commas; all")
    parser.add_argument("--peers", type=words, default=driver.PEERS, help="a part of them, separated by commas")
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--batch", type=numbers, default=[1, 8],
                        help="1 and 8 (MLP and DLRM: 64 in the place of 8)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a burst")
    parser.add_argument("--best", action="store_true", help="show the fastest cycles, not medians: for a busy machine")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="show CPU time of the whole process: for a busy machine, with one thread")
    parser.add_argument("--quiet", type=float, default=0.0,
                        help="repeat bursts during which other processes took more than this share of the CPUs")
    parser.add_argument("--also", type=words, default=[], help="precisions in which tensord is measured besides f32")
    parser.add_argument("--tensord-flags", type=shlex.split, default=[], help="more flags for tensord run and bench")
    parser.add_argument("--json", help="write everything that was measured to this file")
    return parser.parse_args()


def main() -> int:
    options = parse()
    warnings.filterwarnings("ignore")
    chosen = tuple(options.models.split(","))
    results, remarks = [], []
    print(f"{machine.describe(options.binary)}\n\n{report.header(options.also)}", flush=True)
    for row in models.ROWS:
        if not row.name.startswith(chosen):
            continue
        batches = [1] if 1 in options.batch else []
        if row.large_batch and any(batch > 1 for batch in options.batch):
            batches.append(row.large_batch)
        for batch in batches:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                written = files.write(row, batch, folder)
                for threads in options.threads:
                    result = driver.measure(row, threads, batch, options, folder, written)
                    results.append(result.to_json())
                    remarks += report.remarks(result, options.clock, options.best)
                    print(report.line(result, options.clock, options.best, options.also), flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(results, indent=1), encoding="utf-8")
    print("", *remarks, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
