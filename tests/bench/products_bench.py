"""The products of training steps, forward and backward, against PyTorch eager: measured in turns, with
the processor's time on one thread and passed time on more.

    python3 tests/bench/products_bench.py build/tests/products [--threads 1 2] [--rounds 3] [--only resnet]
"""

import argparse
import statistics
import subprocess
import time

import torch

LINEAR = {
    "mlp": [(64, 784, 512), (64, 512, 512), (64, 512, 10)],
    "encoder": [(1024, 384, 1152), (1024, 384, 384), (1024, 384, 1536), (1024, 1536, 384)],
}
# batch, channels, size, channels, kernel, stride, padding
CONV = {
    "digits": [(128, 1, 8, 16, 3, 1, 1), (128, 16, 8, 32, 3, 1, 1), (128, 16, 4, 32, 3, 1, 1)],
    "resnet18": [
        (8, 3, 224, 64, 7, 2, 3),
        (8, 64, 56, 64, 3, 1, 1),
        (8, 64, 56, 128, 3, 2, 1),
        (8, 64, 56, 128, 1, 2, 0),
        (8, 128, 28, 128, 3, 1, 1),
        (8, 128, 28, 256, 3, 2, 1),
        (8, 256, 14, 256, 3, 1, 1),
        (8, 256, 14, 512, 3, 2, 1),
        (8, 512, 7, 512, 3, 1, 1),
    ],
}
ATTENTION = {"encoder": [(48, 128, 64)]}
aten = torch.ops.aten


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


def torch_linear(part, rows, inputs, outputs):
    x, w, b, g = (torch.rand(*s) - 0.5 for s in [(rows, inputs), (outputs, inputs), (outputs,), (rows, outputs)])
    return {
        "forward": lambda: torch.nn.functional.linear(x, w, b),
        "input": lambda: g.mm(w),
        "weight": lambda: g.t().mm(x),
        "bias": lambda: g.sum(0, keepdim=True),
    }[part]


def torch_conv(part, batch, channels, size, out, kernel, stride, padding, last):
    to = (size + 2 * padding - kernel) // stride + 1
    order = torch.channels_last if last else torch.contiguous_format
    shapes = [(batch, channels, size, size), (out, channels, kernel, kernel), (batch, out, to, to)]
    x, w, g = ((torch.rand(*s) - 0.5).contiguous(memory_format=order) for s in shapes)
    if part == "forward":
        return lambda: torch.conv2d(x, w, None, stride, padding)
    mask = [part == "input", part == "weight", False]
    return lambda: aten.convolution_backward(
        g, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, mask)


def torch_attention(part, heads, rows, width):
    q, k, v, g = (torch.rand(heads, rows, width) - 0.5 for _ in range(4))

    def forward():
        return torch.softmax(q.mul(0.125).bmm(k.transpose(1, 2)), -1).bmm(v)

    if part == "forward":
        return forward
    for t in (q, k, v):
        t.requires_grad_()
    with torch.enable_grad():
        out = forward()

    def backward():
        with torch.enable_grad():
            torch.autograd.grad(out, (q, k, v), g, retain_graph=True)

    return backward


def rows_of(only):
    for model, shapes in LINEAR.items():
        for shape in shapes:
            yield from ((model, "linear", part, shape, torch_linear) for part in ("forward", "input", "weight", "bias"))
    for model, shapes in ATTENTION.items():
        for shape in shapes:
            yield from ((model, "attention", part, shape, torch_attention) for part in ("forward", "backward"))
    for model, shapes in CONV.items():
        for shape in shapes:
            for last in (0, 1):
                for part in ("forward", "input", "weight"):
                    yield model, "conv" + (" nhwc" if last else ""), part, (*shape, last), torch_conv


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose text has this")
    options = parser.parse_args()
    ours = subprocess.Popen([options.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for threads in options.threads:
        torch.set_num_threads(threads)
        print(f"{threads} thread{'s' if threads > 1 else ''}: microseconds of tensord, of PyTorch, ratio")
        for model, kind, part, shape, make in rows_of(options.only):
            text = f"{model:9} {kind:10} {part:8} {' '.join(map(str, shape)):28}"
            if options.only not in text:
                continue
            times = [[], []]
            with torch.no_grad():
                call = make(part, *shape)
                for _ in range(options.rounds):
                    print(threads, kind.split()[0], part, *shape, file=ours.stdin, flush=True)
                    times[0].append(float(ours.stdout.readline()))
                    times[1].append(measure(call))
            mine, peer = (min(t) for t in times)
            print(f"{text} {mine:10.1f} {peer:10.1f} {mine / peer:6.2f}", flush=True)


if __name__ == "__main__":
    main()
