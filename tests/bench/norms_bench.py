"""Normalisations, pooling, dropout and losses of training steps, forward and with backward, against PyTorch eager:
measured in turns, with the processor's time on one thread and passed time on more.

    python3 tests/bench/norms_bench.py build/tests/norms [--threads 1 2] [--rounds 3] [--only batch_norm]
"""

import argparse
import statistics
import subprocess
import time

import torch

F = torch.nn.functional
# batch, channels, size, channels_last
BATCH_NORM = [(8, 64, 112), (8, 64, 56), (8, 128, 28), (8, 256, 14), (8, 512, 7)]
SHAPES = (
    [("batch_norm", *s, last) for last in (0, 1) for s in BATCH_NORM]
    + [("layer_norm", 1024, 384), ("softmax", 48, 128, 128)]
    + [("max_pool", 8, 64, 112, 0), ("max_pool", 8, 64, 112, 1), ("avg_pool", 8, 512, 7, 0), ("avg_pool", 8, 512, 7, 1)]
    + [("cross_entropy", 64, 10), ("cross_entropy", 1024, 10000), ("dropout", 1024, 1536)]
)


def now_us():
    """Of one thread the processor's time, which other processes take nothing of; of several what has passed."""
    return (time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()) * 1e6


def measure(call):
    """The median of batches of calls over 60 ms, at least 3, in microseconds of a call."""
    start = now_us()
    for _ in range(2):
        call()
    batch = max(1, int(2e3 / max(1.0, now_us() - start)))
    times = []
    while sum(times) * batch < 6e4 or len(times) < 3:
        begin = now_us()
        for _ in range(batch):
            call()
        times.append((now_us() - begin) / batch)
    return statistics.median(times)


def leaf(*sizes, last=0):
    order = torch.channels_last if last else torch.contiguous_format
    return (torch.rand(*sizes) - 0.5).contiguous(memory_format=order).requires_grad_()


def torch_call(kind, *n):
    """The forward, and the leaves."""
    if kind in ("batch_norm", "max_pool", "avg_pool"):
        x = leaf(n[0], n[1], n[2], n[2], last=n[3])
        if kind == "max_pool":
            return lambda: F.max_pool2d(x, 3, 2, 1), [x]
        if kind == "avg_pool":
            return lambda: F.adaptive_avg_pool2d(x, 1), [x]
        w, b, mean, var = leaf(n[1]), leaf(n[1]), torch.rand(n[1]), torch.rand(n[1])
        return lambda: F.batch_norm(x, mean, var, w, b, True), [x, w, b]
    x = leaf(*n)
    if kind == "softmax":
        return lambda: x.softmax(-1), [x]
    if kind == "dropout":
        return lambda: F.dropout(x, 0.1, True), [x]
    if kind == "layer_norm":
        w, b = leaf(n[1]), leaf(n[1])
        return lambda: F.layer_norm(x, (n[1],), w, b), [x, w, b]
    y = torch.arange(n[0]) * 7 % n[1]
    return lambda: F.cross_entropy(x, y), [x]


def torch_time(part, shape):
    forward, leaves = torch_call(*shape)
    if part == "forward":
        return measure(forward)
    g = torch.full_like(forward().detach(), 0.5)
    return measure(lambda: torch.autograd.grad(forward(), leaves, g))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    ours = subprocess.Popen([args.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    print(f"{'':38} {'tensord':>10} {'PyTorch':>10} {'ratio':>6}")
    for threads in args.threads:
        torch.set_num_threads(threads)
        for shape in SHAPES:
            if args.only not in shape[0]:
                continue
            for part in ("forward", "both"):
                times = []
                for _ in range(args.rounds):
                    ours.stdin.write(f"{threads} {part} {' '.join(map(str, shape))}\n")
                    ours.stdin.flush()
                    times.append((float(ours.stdout.readline()), torch_time(part, shape)))
                mine, theirs = (statistics.median(column) for column in zip(*times))
                name = f"{shape[0]} {'x'.join(map(str, shape[1:]))} {part} {threads}t"
                print(f"{name:38} {mine:10.1f} {theirs:10.1f} {mine / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
