"""Runs one of our programs, which answers lines with microseconds, and calls of PyTorch in turns.

The counterpart of call_time.h: both sides are measured in the same way.
"""

import argparse
import statistics
import subprocess
import time

import torch


def now_us():
    """CPU time of one thread, which excludes other processes; wall time of several."""
    return (time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()) * 1e6


def measure(call):
    """Microseconds of a call: the median of batches of about 2 ms over 60 ms, at least 3."""
    start, calls = now_us(), 0
    while calls < 2 or now_us() - start < 2e3:
        call()
        calls += 1
    batch = max(1, int(calls * 2e3 / (now_us() - start)))
    times = []
    while sum(times) * batch < 6e4 or len(times) < 3:
        begin = now_us()
        for _ in range(batch):
            call()
        times.append((now_us() - begin) / batch)
    return statistics.median(times)


def run(description, rows):
    """Prints a line for each of `rows`: its name, the request to our program (after the number of threads), a function
    that prepares PyTorch's side and returns one that measures it, and the elements of a call or 0."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose text has this")
    options = parser.parse_args()
    chosen = [row for row in rows if options.only in row[0]]
    width = max((len(row[0]) for row in chosen), default=0)
    ours = subprocess.Popen([options.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'':{width}} threads    tensord    PyTorch  ratio  ns an element: tensord, PyTorch")
    for threads in options.threads:
        torch.set_num_threads(threads)
        for label, request, prepare, elements in chosen:
            times = []
            peer = prepare()
            for _ in range(options.rounds):
                print(threads, request, file=ours.stdin, flush=True)
                times.append((float(ours.stdout.readline()), peer()))
            mine, theirs = (statistics.median(column) for column in zip(*times))
            each = f"{1e3 * mine / elements:7.3f} {1e3 * theirs / elements:7.3f}" if elements > 1000 else ""
            print(f"{label:{width}} {threads:7} {mine:10.2f} {theirs:10.2f} {mine / theirs:6.2f}  {each}".rstrip(), flush=True)
