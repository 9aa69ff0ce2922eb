"""Large products and convolutions of bfloat16, for which processors with such instructions have other code: sums in float32, rounded once."""

import itertools

import pytest
from tensord import engine
from tensord.engine import nn

F = nn.functional


def rounded(*shape):
    """Numbers that bfloat16 holds, in both types."""
    x = engine.randn(*shape).bfloat16()
    return x, x.float()


def close(got, want, depth):
    """Within the rounding of the result, and of sums in another order."""
    assert got.dtype is engine.bfloat16
    limit = want.abs() * 2**-8 + 2**-20 * depth + 2**-7 * want.abs().max() * 2**-8
    assert ((got.float() - want).abs() <= limit).all().item(), (got.float() - want).abs().max().item()


@pytest.mark.parametrize("sizes", [(64, 96, 128), (33, 200, 70), (300, 9, 500), (9, 300, 500), (128, 128, 1024)])
def test_products(sizes):
    rows, columns, depth = sizes
    for turned_a, turned_b in itertools.product((False, True), repeat=2):
        a, wide_a = rounded(*((depth, rows) if turned_a else (rows, depth)))
        b, wide_b = rounded(*((columns, depth) if turned_b else (depth, columns)))
        if turned_a:
            a, wide_a = a.t(), wide_a.t()
        if turned_b:
            b, wide_b = b.t(), wide_b.t()
        want = wide_a @ wide_b
        close(a @ b, want, depth)
        close((b.t() @ a.t()).t(), want, depth)
        added, wide_added = rounded(rows, columns)
        close(engine.addmm(added, a, b), wide_added + want, depth)
        close(engine.addmm(added, a, b, alpha=2.0), wide_added + 2 * want, depth)
        out = engine.empty(columns, rows, dtype=engine.bfloat16).t()
        engine.mm(a, b, out=out)
        close(out, want, depth)
        gaps = engine.randn(rows, 2 * depth).bfloat16()[:, ::2]
        close(gaps @ b, gaps.float() @ wide_b, depth)


@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"padding": 1}, {"groups": 4, "padding": 1}, {"dilation": 2, "stride": 2}, {"groups": 16, "padding": 1}])
@pytest.mark.parametrize("last", [False, True])
def test_convolutions(options, last):
    groups = options.get("groups", 1)
    image, wide_image = rounded(4, 16, 15, 17)
    weight, wide_weight = rounded(32, 16 // groups, 3, 3)
    bias, wide_bias = rounded(32)
    if last:
        image = image.contiguous(memory_format=engine.channels_last)
    for x in (image, wide_image, weight, wide_weight, bias, wide_bias):
        x.requires_grad_()
    got, want = F.conv2d(image, weight, bias, **options), F.conv2d(wide_image, wide_weight, wide_bias, **options)
    close(got.detach(), want.detach(), 16 * 9)
    grad, wide_grad = rounded(*want.shape)
    got.backward(grad)
    want.backward(wide_grad)
    for one, other in ((image, wide_image), (weight, wide_weight), (bias, wide_bias)):
        close(one.grad, other.grad, 4 * 15 * 17)


def test_a_weight_gradient_that_onednn_has_wrong():
    """oneDNN 2.6 computes some of these in bfloat16 from memory that nobody set: here the kernel and the stride differ in both dimensions."""
    for _ in range(20):
        (image, wide_image), (weight, wide_weight) = rounded(4, 3, 13, 2), rounded(4, 3, 5, 2)
        for one in (weight, wide_weight):
            one.requires_grad_()
        got, want = (F.conv2d(x, w, stride=(1, 3), padding=1) for x, w in ((image, weight), (wide_image, wide_weight)))
        got.sum().backward()
        want.sum().backward()
        close(weight.grad, wide_weight.grad, 100)


def test_convolutions_of_other_ranks():
    for function, shape, kernel in ((F.conv1d, (4, 32, 100), (32, 32, 5)), (F.conv3d, (2, 8, 6, 7, 8), (16, 8, 3, 3, 3)),
                                    (F.conv_transpose2d, (2, 16, 9, 9), (16, 8, 3, 3))):
        (image, wide_image), (weight, wide_weight) = rounded(*shape), rounded(*kernel)
        close(function(image, weight), function(wide_image, wide_weight), 300)
