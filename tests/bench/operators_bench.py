"""The operators that real models spend most time in: tensord compared with PyTorch, typical and large sizes, forward and backward.

Usage: PYTHONPATH=build/dev/python build/pypi_torch/bin/python -m tests.bench.operators_bench [--threads 1 2] [--only TEXT] [--seconds S]
(scripts/setup pypi_torch, scripts/build dev). Both are called eagerly from Python, each in a process of its own, in turns; a cell is the
median of the rounds' best times in µs. With one thread it is CPU time, which excludes other processes.
Prints Markdown: a row for each operator and size, then how the ratios lie.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

from tests.bench.machine import describe
from tests.bench.operator_rows import rows

ENGINE, TORCH = "tensord", "torch"


def now(threads):
    return time.process_time() if threads == 1 else time.perf_counter()


def best(call, seconds, threads):
    """Microseconds of a call: the best of batches of about 1 ms, over `seconds`."""
    call()
    begin = now(threads)
    call()
    count = max(1, int(1e-3 / max(1e-7, now(threads) - begin)))
    least, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = now(threads)
        for _ in range(count):
            call()
        least = min(least, (now(threads) - begin) / count)
        if time.perf_counter() > end:
            return least * 1e6


def calls_of(library, row):
    """Forward without recording, and backward alone (None without a backward)."""
    library.manual_seed(0)
    inputs = row.inputs(library)
    function = row.function(library)
    leaves = [x for x in inputs if hasattr(x, "requires_grad") and str(x.dtype).endswith("float32")]

    def forward():
        with library.no_grad():
            return function(*inputs)

    if not row.backward or not leaves:
        return forward, None
    for leaf in leaves:
        leaf.requires_grad_(True)
    result = function(*inputs)
    result = result[0] if isinstance(result, (tuple, list)) else result
    incoming = library.ones_like(result)
    return forward, lambda: library.autograd.grad([result], leaves, [incoming], retain_graph=True, allow_unused=True)


def serve(name):
    """Answers lines {"row", "threads", "seconds"} with [forward µs, backward µs or null]."""
    if name == ENGINE:
        from tensord import engine as library
    else:
        import torch as library
    by_name = {row.name: row for row in rows()}
    made = (None, None)
    for line in sys.stdin:
        asked = json.loads(line)
        library.set_num_threads(asked["threads"])
        try:
            if made[0] != (asked["row"], asked["threads"]):
                made = ((asked["row"], asked["threads"]), calls_of(library, by_name[asked["row"]]))
            times = [best(call, asked["seconds"], asked["threads"]) if call else None for call in made[1]]
        except Exception as error:  # noqa: BLE001  the table says what cannot be called
            made, times = (None, None), {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(times), flush=True)


class Peer:
    def __init__(self, name):
        self.process = subprocess.Popen([sys.executable, "-W", "ignore", "-m", "tests.bench.operators_bench", "--serve", name],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def cell(ours, theirs, ratios):
    if ours is None or theirs is None:
        return "| | "
    ratios.append(ours / theirs)
    return f"{ours:.1f} | {theirs:.1f} | {ours / theirs:.2f}"


def measure(peers, row, threads, options):
    found = {name: [] for name in peers}
    for turn in range(options.rounds):
        for name in list(peers)[:: 1 if turn % 2 == 0 else -1]:
            times = peers[name].ask(row=row.name, threads=threads, seconds=options.seconds)
            if isinstance(times, dict):
                return f"{name}: {times['error']}"
            found[name].append(times)
    return {name: [None if column[0] is None else statistics.median(column) for column in zip(*times)] for name, times in found.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.02, help="of each measurement")
    parser.add_argument("--only", default="", help="rows whose text has this")
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    peers = {name: Peer(name) for name in (ENGINE, TORCH)}
    print(f"{describe()}; times in µs\n\n| operator | threads | forward: tensord | PyTorch | ratio | backward: tensord | PyTorch | ratio |\n" + "|---" * 8 + "|")
    ratios, slow = [], []
    for row in rows():
        if options.only not in row.name:
            continue
        for threads in options.threads:
            found = measure(peers, row, threads, options)
            if isinstance(found, str):
                print(f"| {row.name} | {threads} | {found} | | | | | |", flush=True)
                continue
            mine, theirs = found[ENGINE], found[TORCH]
            here = []
            cells = [cell(mine[i], theirs[i], here) for i in range(2)]
            print(f"| {row.name} | {threads} | {cells[0]} | {cells[1]} |", flush=True)
            ratios += here
            slow += [f"{row.name} ({threads})"] * sum(ratio > 1.2 for ratio in here)
    ratios.sort()
    if ratios:
        print(f"\n{len(ratios)} ratios: median {statistics.median(ratios):.2f}, nine tenths below {ratios[int(len(ratios) * 0.9)]:.2f}, "
              f"{sum(r > 1.2 for r in ratios)} above 1.2, largest {ratios[-1]:.2f}")
    return None


if __name__ == "__main__":
    main()
