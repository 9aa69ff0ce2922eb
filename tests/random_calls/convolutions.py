"""Draws convolutions, their gradients, and epilogues."""

from __future__ import annotations

import torch

from tests.random_calls.draw import REALS, Draw

ACTIVATIONS = [("aten::relu",), ("aten::gelu", "none"), ("aten::gelu", "tanh"), ("aten::silu",), ("aten::sigmoid",),
               ("aten::tanh",), ("aten::hardswish",), ("aten::hardsigmoid",), ("aten::leaky_relu", 0.1),
               ("aten::elu", 1.0, 1, 1), ("aten::clamp", -1.0, None), ("aten::clamp", None, 1.5),
               ("aten::hardtanh", -1.0, 2.0), ("aten::relu6",)]


def epilogues(d: Draw) -> list:
    """Activations that may be fused with a convolution or linear layer."""
    if d.chance(0.15):  # nested bounds
        bounds = [step for step in ACTIVATIONS if "clamp" in step[0] or "hard" in step[0] or "relu" in step[0]]
        return [list(d.rng.choice(bounds)) for _ in range(d.pick(2, 3))]
    return [list(d.rng.choice(ACTIVATIONS)) for _ in range(d.pick(0, 0, 1, 1, 2))]


def conv_weights(d: Draw, spatial: int):
    """Channels, groups and kernel of a convolution, drawn such that all of our kernels are covered."""
    if d.chance(0.15):  # depthwise
        groups = d.pick(1, 3, 8, 16, 17, 20, 32)
        kernel = [d.pick(3, 3, 5, 7)] * spatial if d.chance(0.7) else d.numbers(spatial, 1, 5)
        return groups, groups * d.pick(1, 1, 1, 2), groups, kernel
    if d.chance(0.2):  # Winograd
        return d.pick(16, 32, 48), d.pick(16, 32, 48), 1, [3] * spatial
    groups = d.pick(1, 1, 1, 2, 3)
    kernel = [d.pick(1, 3)] * spatial if d.chance(0.4) else d.numbers(spatial, 1, 5)
    return groups * d.pick(1, 2, 3, 5, 8, 16), groups * d.pick(1, 2, 5, 8, 16, 17, 24, 33), groups, kernel


def conv_numbers(d: Draw, spatial: int):
    stride = d.number_list(spatial, 1, 3) if d.chance(0.6) else d.number_list(spatial, 1, d.pick(9, 9, 128))
    padding = d.number_list(spatial, 0, 2) if d.chance(0.6) else d.number_list(spatial, 0, d.pick(9, 9, 64))
    dilation = [1] if d.chance(0.6) else d.number_list(spatial, 1, 4)
    return stride, padding, dilation


def conv(d: Draw):
    spatial = d.pick(1, 2, 2, 2, 3)
    channels, out, groups, kernel = conv_weights(d, spatial)
    stride, padding, dilation = conv_numbers(d, spatial)
    if max(padding) > 9 and max(stride) < 9:
        padding = [min(p, 9) for p in padding]
    dtype = d.pick(*REALS, torch.float32, torch.float32, torch.bfloat16)
    high = 17 if spatial < 3 else 7
    image = [d.size(0 if d.chance(0.1) else 1, d.pick(4, high)) for _ in range(spatial)]
    batch = [] if d.chance(0.1) else [d.pick(1, 1, 2, 3) if d.chance(0.97) else 0]
    x = d.tensor(batch + [channels] + image, dtype)
    bias = d.tensor([out], dtype) if d.chance(0.6) else None
    if d.chance(0.2):
        dtype = torch.float32 if dtype == torch.bfloat16 else dtype
        x, bias = x.to(dtype), None if bias is None else bias.to(dtype)
        output_padding = [0] if d.chance(0.5) else d.numbers(spatial, 0, max(0, min(2, min(stride) - 1)))
        w = d.tensor([channels, out // groups] + kernel, dtype)
        op = f"aten::conv_transpose{spatial}d" + ("" if spatial == 1 else ".input")
        stride = [min(s, 9) for s in stride]
        return op, [x, w, bias, stride, padding, output_padding, groups, dilation], {}
    w = d.tensor([out, channels // groups] + kernel, dtype)
    if d.chance(0.1):
        name = d.pick("same", "valid")
        stride = [1] if name == "same" else stride
        return f"aten::conv{spatial}d.padding", [x, w, bias, stride, name, dilation, groups], {"then": epilogues(d)}
    return f"aten::conv{spatial}d", [x, w, bias, stride, padding, dilation, groups], {"then": epilogues(d)}


def conv_backward(d: Draw):
    spatial = d.pick(1, 2, 2, 3)
    channels, out, groups, kernel = conv_weights(d, spatial)
    stride, padding, dilation = ([v * spatial if len(v) == 1 else v for v in conv_numbers(d, spatial)])
    stride, padding = [min(s, 9) for s in stride], [min(p, 9) for p in padding]
    dtype = d.pick(*REALS)
    image = [d.size(1, 9 if spatial < 3 else 5) for _ in range(spatial)]
    transposed = d.chance(0.25)
    x = d.tensor([d.pick(1, 2, 3), channels] + image, dtype)
    w = d.tensor(([channels, out // groups] if transposed else [out, channels // groups]) + kernel, dtype)
    extra = [d.rng.randint(0, max(0, min(s, k) - 1)) for s, k in zip(stride, dilation)] if transposed else [0] * spatial
    y = torch.ops.aten.convolution(x, w, None, stride, padding, dilation, transposed, extra, groups)
    g = d.tensor(list(y.shape), dtype)
    mask = [d.chance(0.8) for _ in range(3)]
    return "aten::convolution_backward", [g, x, w, [out], stride, padding, dilation, transposed, extra, groups, mask], {}
