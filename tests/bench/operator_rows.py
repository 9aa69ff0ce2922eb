"""The rows of operators_bench: operators with the shapes that models use, typical and large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable


@dataclass
class Row:
    name: str
    inputs: Callable  # library → list of tensors
    function: Callable  # library → function of these
    backward: bool = True


def floats(*shapes):
    return lambda library: [library.randn(*shape) for shape in shapes]


def named(name, *args, **kwargs):
    """A function of the library (of nn.functional if the library has none of this name)."""
    def find(library):
        function = getattr(library, name, None) or getattr(library.nn.functional, name)
        return lambda *inputs: function(*inputs, *args, **kwargs)
    return find


def method(name, *args, **kwargs):
    return lambda library: lambda x, *rest: getattr(x, name)(*rest, *args, **kwargs)


SMALL, LARGE = (32, 256), (512, 4096)


def elementwise():
    for name in ("relu", "sigmoid", "tanh", "exp", "log1p", "sqrt", "rsqrt", "abs", "neg", "sin", "cos", "erf", "square"):
        for shape in (SMALL, LARGE):
            yield Row(f"{name} {list(shape)}", lambda library, shape=shape: [library.rand(*shape) + 0.1], named(name))
    for name in ("gelu", "silu", "hardswish", "leaky_relu", "elu", "softplus"):
        for shape in (SMALL, LARGE):
            yield Row(f"{name} {list(shape)}", floats(shape), lambda library, name=name: activation(library, name))
    for name in ("add", "sub", "mul", "div", "maximum"):
        for shape in (SMALL, LARGE):
            yield Row(f"{name} {list(shape)}", floats(shape, shape), named(name))
    for name in ("add", "mul"):
        yield Row(f"{name} [512, 4096] and [4096]", floats(LARGE, (4096,)), named(name))
    for shape in (SMALL, LARGE):
        yield Row(f"pow 2 {list(shape)}", floats(shape), named("pow", 2.0))
        yield Row(f"clamp {list(shape)}", floats(shape), named("clamp", -0.5, 0.5))
        yield Row(f"where {list(shape)}", lambda library, shape=shape: [library.randn(*shape) > 0, library.randn(*shape), library.randn(*shape)],
                  named("where"))
        yield Row(f"gt {list(shape)}", floats(shape, shape), named("gt"), backward=False)
        yield Row(f"masked_fill {list(shape)}", lambda library, shape=shape: [library.randn(*shape), library.randn(*shape) > 0],
                  method("masked_fill", -1.0))
        yield Row(f"to bfloat16 {list(shape)}", floats(shape), lambda library: lambda x: x.to(library.bfloat16), backward=False)
        yield Row(f"lerp {list(shape)}", floats(shape, shape), named("lerp", 0.3))
        yield Row(f"addcmul {list(shape)}", floats(shape, shape, shape), named("addcmul"))


def activation(library, name):
    module = {"gelu": "GELU", "silu": "SiLU", "hardswish": "Hardswish", "leaky_relu": "LeakyReLU", "elu": "ELU", "softplus": "Softplus"}[name]
    made = getattr(library.nn, module, None)
    return made() if made else getattr(library, name)


def reductions():
    for shape in (SMALL, LARGE):
        for name in ("sum", "mean", "amax", "logsumexp", "var"):
            yield Row(f"{name} dim=1 {list(shape)}", floats(shape), named(name, 1))
        yield Row(f"sum dim=0 {list(shape)}", floats(shape), named("sum", 0))
        yield Row(f"sum of all {list(shape)}", floats(shape), named("sum"))
        yield Row(f"argmax {list(shape)}", floats(shape), named("argmax", 1), backward=False)
        yield Row(f"max dim=1 {list(shape)}", floats(shape), named("max", 1))
        yield Row(f"cumsum {list(shape)}", floats(shape), named("cumsum", 1))
        yield Row(f"softmax {list(shape)}", floats(shape), named("softmax", 1))
        yield Row(f"log_softmax {list(shape)}", floats(shape), named("log_softmax", 1))
        yield Row(f"topk 10 {list(shape)}", floats(shape), named("topk", 10))
        yield Row(f"sort {list(shape)}", floats(shape), named("sort"))
        yield Row(f"norm {list(shape)}", floats(shape), method("norm"))
    yield Row("softmax [8, 12, 128, 128]", floats((8, 12, 128, 128)), named("softmax", -1))


def products():
    for n in (64, 256, 1024):
        yield Row(f"mm [{n}, {n}]", floats((n, n), (n, n)), named("mm"))
    yield Row("matmul [8, 128, 768] × [768, 768]", floats((8, 128, 768), (768, 768)), named("matmul"))
    yield Row("bmm [96, 128, 64]", floats((96, 128, 64), (96, 64, 128)), named("bmm"))
    yield Row("mv [1024, 1024]", floats((1024, 1024), (1024,)), named("mv"))
    yield Row("addmm [128, 768] × [768, 3072]", floats((3072,), (128, 768), (768, 3072)), named("addmm"))
    for rows_, inner, outer in ((1, 768, 768), (32, 768, 3072), (1024, 768, 3072)):
        yield Row(f"linear {rows_} × {inner} → {outer}", floats((rows_, inner), (outer, inner), (outer,)), functional("linear"))
    yield Row("einsum bhqd,bhkd->bhqk [4, 12, 128, 64]", floats((4, 12, 128, 64), (4, 12, 128, 64)),
              lambda library: lambda a, b: library.einsum("bhqd,bhkd->bhqk", [a, b]) if library.__name__ != "torch" else
              library.einsum("bhqd,bhkd->bhqk", a, b))
    yield Row("scaled_dot_product_attention [4, 12, 128, 64]", floats(*[(4, 12, 128, 64)] * 3), functional("scaled_dot_product_attention"))
    yield Row("scaled_dot_product_attention [1, 12, 1024, 64]", floats(*[(1, 12, 1024, 64)] * 3), functional("scaled_dot_product_attention"))


def functional(name, *args, **kwargs):
    def find(library):
        function = getattr(library.nn.functional, name, None) or getattr(library, name)
        return lambda *inputs: function(*inputs, *args, **kwargs)
    return find


def convolutions():
    for label, x, w, options in (
            ("conv2d 3×3 64 [1, 64, 56, 56]", (1, 64, 56, 56), (64, 64, 3, 3), dict(padding=1)),
            ("conv2d 3×3 256 [8, 256, 14, 14]", (8, 256, 14, 14), (256, 256, 3, 3), dict(padding=1)),
            ("conv2d 1×1 256→64 [8, 256, 56, 56]", (8, 256, 56, 56), (64, 256, 1, 1), {}),
            ("conv2d 7×7 stride 2 [8, 3, 224, 224]", (8, 3, 224, 224), (64, 3, 7, 7), dict(stride=2, padding=3)),
            ("conv2d depthwise [8, 128, 28, 28]", (8, 128, 28, 28), (128, 1, 3, 3), dict(padding=1, groups=128)),
            ("conv1d 5 256 [8, 256, 400]", (8, 256, 400), (256, 256, 5), dict(padding=2))):
        yield Row(label, floats(x, w), functional(label.split()[0], **options))
    yield Row("conv_transpose2d 4×4 stride 2 [4, 128, 14, 14]", floats((4, 128, 14, 14), (128, 64, 4, 4)),
              functional("conv_transpose2d", stride=2, padding=1))
    image = (8, 64, 56, 56)
    yield Row("max_pool2d 3 stride 2 [8, 64, 56, 56]", floats(image), functional("max_pool2d", 3, 2, 1))
    yield Row("avg_pool2d 2 [8, 64, 56, 56]", floats(image), functional("avg_pool2d", 2))
    yield Row("adaptive_avg_pool2d 1 [8, 64, 56, 56]", floats(image), functional("adaptive_avg_pool2d", (1, 1)))


def norms():
    for shape in ((32, 768), (1024, 768)):
        yield Row(f"layer_norm {list(shape)}", floats(shape, (768,), (768,)),
                  lambda library: lambda x, w, b: library.layer_norm(x, [768], w, b, 1e-5))
    for shape in ((8, 64, 56, 56), (8, 256, 14, 14)):
        c = (shape[1],)
        yield Row(f"batch_norm training {list(shape)}", floats(shape, c, c),
                  lambda library: lambda x, w, b: library.batch_norm(x, w, b, None, None, True, 0.1, 1e-5, False))
        yield Row(f"group_norm 32 {list(shape)}", floats(shape, c, c), lambda library: lambda x, w, b: library.group_norm(x, 32, w, b, 1e-5))


def losses():
    for n, classes in ((32, 1000), (1024, 32000)):
        yield Row(f"cross_entropy [{n}, {classes}]", lambda library, n=n, c=classes: [library.randn(n, c), library.randint(0, c, (n,))],
                  functional("cross_entropy"))
    for shape in (SMALL, LARGE):
        yield Row(f"mse_loss {list(shape)}", floats(shape, shape), functional("mse_loss"))
        yield Row(f"binary_cross_entropy_with_logits {list(shape)}",
                  lambda library, shape=shape: [library.randn(*shape), library.rand(*shape).detach()],
                  functional("binary_cross_entropy_with_logits"))


def indexing():
    for rows_, width, count in ((1000, 64, 256), (50000, 768, 4096)):
        yield Row(f"embedding {rows_} × {width}, {count}", lambda library, r=rows_, w=width, c=count:
                  [library.randn(r, w), library.randint(0, r, (c,))], lambda library: lambda w, i: library.embedding(w, i))
        yield Row(f"index_select {rows_} × {width}, {count}", lambda library, r=rows_, w=width, c=count:
                  [library.randn(r, w), library.randint(0, r, (c,))], lambda library: lambda x, i: library.index_select(x, 0, i))
    for shape in (SMALL, LARGE):
        yield Row(f"gather {list(shape)}", lambda library, s=shape: [library.randn(*s), library.randint(0, s[1], s)],
                  lambda library: lambda x, i: library.gather(x, 1, i))
        yield Row(f"scatter_add {list(shape)}", lambda library, s=shape: [library.zeros(*s), library.randint(0, s[1], s), library.randn(*s)],
                  lambda library: lambda x, i, y: library.scatter_add(x, 1, i, y))
        yield Row(f"cat {list(shape)}", floats(shape, shape), lambda library: lambda a, b: library.cat([a, b], 1))
        yield Row(f"stack {list(shape)}", floats(shape, shape), lambda library: lambda a, b: library.stack([a, b], 0))
        yield Row(f"transpose, contiguous {list(shape)}", floats(shape), lambda library: lambda x: x.transpose(0, 1).contiguous())
        yield Row(f"flip {list(shape)}", floats(shape), lambda library: lambda x: library.flip(x, [1]))
        yield Row(f"roll {list(shape)}", floats(shape), lambda library: lambda x: library.roll(x, [3], [1]))
        yield Row(f"tril {list(shape)}", floats(shape), named("tril"))
        yield Row(f"repeat_interleave {list(shape)}", floats(shape), lambda library: lambda x: library.repeat_interleave(x, 2, 0))
        yield Row(f"masked_select {list(shape)}", lambda library, s=shape: [library.randn(*s), library.randn(*s) > 0], named("masked_select"))
    yield Row("permute 0 2 3 1, contiguous [8, 64, 56, 56]", floats((8, 64, 56, 56)), lambda library: lambda x: x.permute(0, 2, 3, 1).contiguous())


def rows() -> list:
    return [row for group in (elementwise, reductions, products, convolutions, norms, losses, indexing) for row in group()]
