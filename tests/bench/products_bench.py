"""The matrix products of training steps, forward and backward, compared with eager PyTorch. The two alternate;
one thread is measured in CPU time, more threads in wall time.

    /usr/bin/python3 -m tests.bench.products_bench build/tests/products [--threads 1 2] [--rounds 3] [--only resnet]
"""

import functools

import torch

from tests.bench.turns import measure, run

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


def prepare(make, part, shape):
    with torch.no_grad():
        call = make(part, *shape)

    def measured():
        with torch.no_grad():
            return measure(call)

    return measured


def shapes():
    """Model, kind, part, shape and PyTorch's side."""
    for model, layers in LINEAR.items():
        for shape in layers:
            yield from ((model, "linear", part, shape, torch_linear) for part in ("forward", "input", "weight", "bias"))
    for model, layers in ATTENTION.items():
        for shape in layers:
            yield from ((model, "attention", part, shape, torch_attention) for part in ("forward", "backward"))
    for model, layers in CONV.items():
        for shape in layers:
            for last in (0, 1):
                for part in ("forward", "input", "weight"):
                    yield model, "conv" + (" nhwc" if last else ""), part, (*shape, last), torch_conv


def rows():
    for model, kind, part, shape, make in shapes():
        numbers = " ".join(map(str, shape))
        yield (f"{model:9} {kind:10} {part:8} {numbers}", f"{kind.split()[0]} {part} {numbers}",
               functools.partial(prepare, make, part, shape), 0)


if __name__ == "__main__":
    run(__doc__, rows())
