"""Normalization, pooling, dropout and losses of training steps, forward and with backward, compared with eager
PyTorch. The two alternate; one thread is measured in CPU time, more threads in wall time.

    /usr/bin/python3 -m tests.bench.norms_bench build/tests/norms [--threads 1 2] [--rounds 3] [--only batch_norm]
"""

import functools

import torch

from tests.bench.turns import measure, run

F = torch.nn.functional
# batch, channels, size, channels_last
BATCH_NORM = [(8, 64, 112), (8, 64, 56), (8, 128, 28), (8, 256, 14), (8, 512, 7)]
SHAPES = (
    [("batch_norm", *s, last) for last in (0, 1) for s in BATCH_NORM]
    + [("layer_norm", 1024, 384), ("softmax", 48, 128, 128)]
    + [("max_pool", 8, 64, 112, 0), ("max_pool", 8, 64, 112, 1), ("avg_pool", 8, 512, 7, 0), ("avg_pool", 8, 512, 7, 1)]
    + [("cross_entropy", 64, 10), ("cross_entropy", 1024, 10000), ("dropout", 1024, 1536)]
)


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


def prepare(part, shape):
    forward, leaves = torch_call(*shape)
    if part == "forward":
        return lambda: measure(forward)
    g = torch.full_like(forward().detach(), 0.5)
    return lambda: measure(lambda: torch.autograd.grad(forward(), leaves, g))


def rows():
    for shape in SHAPES:
        for part in ("forward", "both"):
            text = f"{shape[0]} {'x'.join(map(str, shape[1:]))} {part}"
            yield text, f"{part} {' '.join(map(str, shape))}", functools.partial(prepare, part, shape), 0


if __name__ == "__main__":
    run(__doc__, rows())
