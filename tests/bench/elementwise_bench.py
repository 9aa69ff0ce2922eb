"""Elementwise operators, forward and backward, compared with eager PyTorch. The two alternate; one thread is
measured in CPU time, more threads in wall time.

    /usr/bin/python3 -m tests.bench.elementwise_bench build/tests/elementwise [--threads 1 2] [--rounds 3] [--only gelu]
"""

import functools

import torch

from tests.bench.turns import measure, run

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


def prepare(part, name, elements):
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


def rows():
    for part in ("forward", "recorded", "backward"):
        for name in OPERATORS:
            for elements in SIZES:
                text = f"{part} {name} {elements}"
                yield text, text, functools.partial(prepare, part, name, elements), elements


if __name__ == "__main__":
    run(__doc__, rows())
