"""Convolutions. For 16-bit dtypes the reference runs in float32, because PyTorch lacks some CPU kernels."""

import torch

from tests.ops.case import FULL, case, t

HALF = [torch.float16, torch.bfloat16]
LOOSE = {"rtol": 1e-4, "atol": 1e-4}


def _wide(op):
    """The operator computed in float32 and rounded once."""
    name, _, overload = op.partition("::")[2].partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")

    def call(*args):
        dtype = args[0].dtype
        return function(*[a.float() if isinstance(a, torch.Tensor) else a for a in args]).to(dtype)

    return call


def _halves(op, *args):
    return case(op, *args, dtypes=HALF, reference=_wide(op), rtol=2e-2, atol=2e-2)


def _conv(dims, suffix=""):
    spatial = (9, 8, 7)[:dims]
    kernel = (3, 2, 3)[:dims]
    op = f"aten::conv{dims}d{suffix}"
    return [
        case(op, t(1, 2, *[3] * dims), t(2, 2, *[2] * dims), t(2), dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), t(6), dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), None, [2] * dims, [1] * dims, [1] * dims, 1, dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 2, *kernel), t(6), [1] * dims, [1] * dims, [2] * dims, 2, dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(8, 1, *kernel), t(8), [2] * dims, [2] * dims, [1] * dims, 4, dtypes=FULL, **LOOSE),
        case(op, t(4, *spatial), t(6, 4, *kernel), t(6), [1] * dims, [1] * dims, dtypes=FULL, **LOOSE),
        case(op, t(0, 4, *spatial), t(6, 4, *kernel), t(6), strided=False),
        _halves(op, t(2, 4, *spatial), t(6, 4, *kernel), t(6)),
        case(op, t(2, 5, *spatial), t(6, 4, *kernel), None, error="to have 4 channels, but got 5 channels instead"),
        case(op, t(2, 4, *[1] * dims), t(6, 4, *[3] * dims), None, error="Kernel size can't be greater than actual input size"),
        case(op, t(2, 4, *[0] * dims), t(6, 4, *kernel), None, [1] * dims, [3] * dims, error="Only zero batch or zero channel inputs are supported"),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), t(7), error="expected bias to be 1-dimensional with 6 elements"),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), None, [0] * dims, error="non-positive stride is not supported"),
    ]


def _conv_mode(dims):
    spatial = (9, 8, 7)[:dims]
    kernel = (3, 2, 4)[:dims]
    op = f"aten::conv{dims}d.padding"
    return [
        case(op, t(1, 2, *[3] * dims), t(2, 2, *[2] * dims), t(2), [1] * dims, "same", dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), t(6), [1] * dims, "same", dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), None, [1] * dims, "same", [2] * dims, dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), None, [2] * dims, "valid", dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(6, 4, *kernel), None, [2] * dims, "same", error="not supported for strided convolutions"),
    ]


def _transposed(dims):
    spatial = (5, 4, 3)[:dims]
    kernel = (3, 2, 3)[:dims]
    op = f"aten::conv_transpose{dims}d" + ("" if dims == 1 else ".input")
    return [
        case(op, t(2, 4, *spatial), t(4, 6, *kernel), t(6), dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(4, 6, *kernel), None, [2] * dims, [1] * dims, [1] * dims, dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(4, 3, *kernel), t(6), [2] * dims, [0] * dims, [0] * dims, 2, [2] * dims, dtypes=FULL, **LOOSE),
        case(op, t(2, 4, *spatial), t(4, 3, *kernel), None, [1] * dims, [0] * dims, [2] * dims, 1, [3] * dims, dtypes=FULL, **LOOSE),
        case(op, t(4, *spatial), t(4, 6, *kernel), t(6), dtypes=FULL, **LOOSE),
        _halves(op, t(2, 4, *spatial), t(4, 6, *kernel), t(6)),
        case(op, t(2, 5, *spatial), t(4, 6, *kernel), None, error="to have 4 channels, but got 5 channels instead"),
        case(op, t(2, 4, *spatial), t(4, 6, *kernel), None, [2] * dims, [0] * dims, [5] * dims,
             error="output padding must be smaller than either stride or dilation"),
    ]


_FLAGS4 = (False, False, True, True)
CASES = (
    _conv(1) + _conv(2) + _conv(3) + _conv_mode(1) + _conv_mode(2) + _conv_mode(3) + _transposed(1) + _transposed(2) + _transposed(3) + [
        case("aten::convolution", t(2, 4, 9, 8), t(6, 4, 3, 3), t(6), [2, 1], [1, 0], [1, 1], False, [0, 0], 1, dtypes=FULL, **LOOSE),
        case("aten::convolution", t(2, 4, 5, 5), t(4, 6, 3, 3), t(6), [2, 2], [1, 1], [1, 1], True, [1, 1], 1, dtypes=FULL, **LOOSE),
        case("aten::convolution", t(2, 4, 9), t(6, 4, 3), None, [2], [1], [1], False, [0], 1, dtypes=FULL, **LOOSE),
        case("aten::_convolution", t(1, 2, 4, 3), t(2, 1, 2, 2), t(2), [1, 1], [0, 0], [1, 1], False, [0, 0], 2, *_FLAGS4, dtypes=FULL),
        case("aten::_convolution.deprecated", t(1, 2, 4, 3), t(2, 2, 2, 2), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, *_FLAGS4[:3],
             dtypes=FULL),
        case("aten::_convolution_mode", t(1, 2, 4, 3), t(2, 2, 3, 3), None, [1, 1], "same", [1, 1], 1, dtypes=FULL),
        case("aten::conv_transpose3d.input", t(1, 2, 2, 3, 2), t(2, 2, 2, 2, 2), dtypes=FULL),
        case("aten::_convolution", t(2, 4, 9, 8), t(6, 2, 3, 3), t(6), [2, 2], [1, 1], [1, 1], False, [0, 0], 2, *_FLAGS4, dtypes=FULL, **LOOSE),
        case("aten::_convolution.deprecated", t(2, 4, 9, 8), t(6, 4, 3, 3), None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1, *_FLAGS4[:3],
             dtypes=FULL, **LOOSE),
        case("aten::_convolution_mode", t(2, 4, 9, 8), t(6, 4, 3, 3), None, [1, 1], "same", [1, 1], 1, dtypes=FULL, **LOOSE),
    ]
)


def _backward(grad, x, weight, stride, padding, dilation, transposed=False, output_padding=0, groups=1, bias=4, **more):
    n = len(x.sizes) - 2
    lists = [[value] * n for value in (stride, padding, dilation)]
    return case("aten::convolution_backward", grad, x, weight, [bias], *lists, transposed, [output_padding] * n, groups,
                [True] * 3, **more)


CASES += [
    _backward(t(2, 4, 5, 4), t(2, 3, 5, 4), t(4, 3, 3, 3), 1, 1, 1, dtypes=FULL, **LOOSE),
    _backward(t(2, 4, 3, 3), t(2, 6, 6, 5), t(4, 3, 3, 2), 2, 1, 1, groups=2, dtypes=FULL, **LOOSE),
    _backward(t(2, 4, 7), t(2, 3, 11), t(4, 3, 3), 1, 0, 2, dtypes=FULL, **LOOSE),
    _backward(t(2, 4, 2, 3, 2), t(2, 2, 3, 4, 3), t(4, 2, 2, 2, 2), 1, 0, 1, dtypes=FULL, **LOOSE),
    _backward(t(2, 4, 10, 8), t(2, 3, 5, 4), t(3, 4, 3, 3), 2, 1, 1, True, 1, dtypes=FULL, **LOOSE),
    _backward(t(2, 64, 9, 7), t(2, 48, 9, 7), t(64, 48, 3, 3), 1, 1, 1, bias=64, rtol=1e-4, atol=2e-3),
]


def _part(which):
    """Some of the gradients of convolution_backward."""
    def part(grad, x, weight, stride, padding, dilation, transposed, output_padding, groups):
        found = torch.ops.aten.convolution_backward(grad, x, weight, [grad.shape[1]], stride, padding, dilation, transposed,
                                                    output_padding, groups, [i in which for i in range(3)])
        return found[which[0]] if len(which) == 1 else tuple(found[i] for i in which)
    return part


for name, which in [("input", [0]), ("weight", [1]), ("bias", [2]), ("weight_bias", [1, 2])]:
    CASES.append(case(f"tensord::conv_{name}_gradient", t(2, 4, 5, 4), t(2, 3, 5, 4), t(4, 3, 3, 3), [1, 1], [1, 1], [1, 1], False,
                      [0, 0], 1, dtypes=FULL, gradient=False, reference=_part(which), **LOOSE))
    CASES.append(case(f"tensord::conv_{name}_gradient", t(2, 4, 7), t(2, 6, 11), t(4, 3, 3), [1], [0], [2], False, [0], 2,
                      dtypes=FULL, gradient=False, reference=_part(which), **LOOSE))
