"""Elementwise operators, forward and backward, against PyTorch eager: measured in turns, with the processor's
time on one thread and passed time on more.

    python3 tests/bench/elementwise_bench.py build/tests/elementwise [--threads 1 2] [--rounds 3] [--only gelu]
"""

import argparse
import statistics
import subprocess
import time

import torch

OPERATORS = {
    "add.Tensor": torch.add,
    "mul.Tensor": torch.mul,
    "div.Tensor": torch.div,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "pow.Tensor_Scalar": lambda x: torch.pow(x, 2),
}
SIZES = [4, 64 * 512, 1 << 20]


def now_us():
    """Of one thread the processor's time, which other processes take nothing of; of several what has passed."""
    return (time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()) * 1e6


def measure(call):
    """The median of batches of calls over 60 ms, at least 3, in microseconds of a call."""
    start = now_us()
    for _ in range(100):
        call()
    batch = max(1, int(2e5 / max(1.0, now_us() - start)))
    times = []
    while sum(times) * batch < 6e4 or len(times) < 3:
        begin = now_us()
        for _ in range(batch):
            call()
        times.append((now_us() - begin) / batch)
    return statistics.median(times)


def peer(part, name, elements):
    x, y, g = (torch.rand(elements) + 0.25 for _ in range(3))
    leaves = [x, y] if name.endswith(".Tensor") else [x]
    function = OPERATORS[name]
    if part == "forward":
        def forward():
            with torch.inference_mode():
                return measure(lambda: function(*leaves))
        return forward
    for leaf in leaves:
        leaf.requires_grad_()
    if part == "recorded":
        return lambda: measure(lambda: function(*leaves))
    result = function(*leaves)
    return lambda: measure(lambda: torch.autograd.grad(result, leaves, g, retain_graph=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose text has this")
    options = parser.parse_args()
    ours = subprocess.Popen([options.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for threads in options.threads:
        torch.set_num_threads(threads)
        print(f"{threads} thread{'s' if threads > 1 else ''}: microseconds of tensord, of PyTorch, ratio, ns/element")
        for part in ["forward", "recorded", "backward"]:
            for name in OPERATORS:
                for elements in SIZES:
                    text = f"{part:9} {name:18} {elements:8}"
                    if options.only not in text:
                        continue
                    times = [[], []]
                    measure_peer = peer(part, name, elements)
                    for _ in range(options.rounds):
                        print(threads, part, name, elements, file=ours.stdin, flush=True)
                        times[0].append(float(ours.stdout.readline()))
                        times[1].append(measure_peer())
                    mine, theirs = (min(t) for t in times)
                    each = f"{1e3 * mine / elements:8.3f} {1e3 * theirs / elements:8.3f}" if elements > 1000 else ""
                    print(f"{text} {mine:10.2f} {theirs:10.2f} {mine / theirs:6.2f} {each}", flush=True)


if __name__ == "__main__":
    main()
