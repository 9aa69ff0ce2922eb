"""Matrix products."""

import torch

from tests.ops.case import FULL, INTEGRAL, case, t

HALF = [torch.float16, torch.bfloat16]
LOOSE = {"rtol": 1e-4, "atol": 1e-4}


def _wide(op):
    """The operator computed in float32 and rounded once."""
    name, _, overload = op.partition("::")[2].partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")

    def call(*args, **kwargs):
        dtype = args[0].dtype
        return function(*[a.float() if isinstance(a, torch.Tensor) else a for a in args], **kwargs).to(dtype)

    return call


def _rows(op, *args, **kwargs):
    """float32 and float64, 16-bit dtypes, and integers."""
    return [
        case(op, *args, dtypes=FULL, **LOOSE, **kwargs),
        case(op, *args, dtypes=HALF, reference=_wide(op), rtol=2e-2, atol=2e-2, **kwargs),
        case(op, *args, dtypes=INTEGRAL, **kwargs),
    ]


def _each(op, *argument_lists):
    return [row for arguments in argument_lists for row in _rows(op, *arguments)]


CASES = (
    _each("aten::mm", (t(3, 4), t(4, 5)), (t(1, 40), t(40, 33)), (t(33, 40), t(40, 1)), (t(17, 64), t(64, 19)))
    + [
        case("aten::mm", t(0, 4), t(4, 5), dtypes=FULL),
        case("aten::mm", t(3, 0), t(0, 5), dtypes=FULL + INTEGRAL),
        case("aten::mm", t(2, 3), t(4, 5), error="mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        case("aten::mm", t(2, 3), t(3), error="must be a matrix"),
    ]
    + _each("aten::bmm", (t(3, 4, 5), t(3, 5, 2)), (t(1, 1, 5), t(1, 5, 20)))
    + [
        case("aten::bmm", t(0, 4, 5), t(0, 5, 2), dtypes=FULL),
        case("aten::bmm", t(2, 4, 5), t(2, 6, 2), error="Expected size for first two dimensions of batch2 tensor to be: [2, 5] but got: [2, 6]."),
    ]
    + _each("aten::mv", (t(3, 4), t(4)), (t(33, 40), t(40)))
    + [case("aten::mv", t(3, 4), t(5), error="size mismatch")]
    + _each("aten::dot", (t(7), t(7)))
    + _each("aten::vdot", (t(7), t(7)))
    + [
        case("aten::dot", t(0), t(0), dtypes=FULL),
        case("aten::dot", t(3), t(4), error="to have the same number of elements"),
    ]
    + _each("aten::addmm", (t(3, 5), t(3, 4), t(4, 5)), (t(5), t(3, 4), t(4, 5)))
    + [
        case("aten::addmm", t(3, 5), t(3, 4), t(4, 5), beta=0.5, alpha=2.0, dtypes=FULL, **LOOSE),
        case("aten::addmm", t(3, 5), t(3, 4), t(4, 5), beta=0, alpha=3, dtypes=FULL + INTEGRAL, **LOOSE),
        case("aten::addmm", t(3, 5), t(3, 4), t(5, 5), error="mat1 and mat2 shapes cannot be multiplied (3x4 and 5x5)"),
    ]
    + _each("aten::baddbmm", (t(2, 3, 5), t(2, 3, 4), t(2, 4, 5)), (t(5), t(2, 3, 4), t(2, 4, 5)))
    + [case("aten::baddbmm", t(2, 3, 5), t(2, 3, 4), t(2, 4, 5), beta=0.5, alpha=0.25, dtypes=FULL, **LOOSE)]
    + _each("aten::addbmm", (t(3, 5), t(2, 3, 4), t(2, 4, 5)))
    + [case("aten::addbmm", t(5), t(2, 3, 4), t(2, 4, 5), beta=0.5, alpha=0.25, dtypes=FULL, **LOOSE)]
    + _each("aten::addmv", (t(3), t(3, 4), t(4)))
    + [case("aten::addmv", t(3), t(3, 4), t(4), beta=0.5, alpha=2, dtypes=FULL, **LOOSE)]
    + _each(
        "aten::matmul",
        (t(4), t(4)),
        (t(3, 4), t(4)),
        (t(4), t(4, 5)),
        (t(3, 4), t(4, 5)),
        (t(2, 3, 4), t(4, 5)),
        (t(2, 3, 4), t(4)),
        (t(4), t(2, 4, 5)),
        (t(3, 4), t(2, 4, 5)),
        (t(2, 1, 3, 4), t(5, 4, 2)),
        (t(2, 5, 3, 4), t(2, 5, 4, 2)),
    )
    + [
        case("aten::matmul", t(2, 0, 4), t(4, 5), dtypes=FULL),
        case("aten::matmul", t(2, 3, 0), t(0, 5), dtypes=FULL),
        case("aten::matmul", t(2, 3), t(4, 5), error="mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
        case("aten::matmul", t(), t(4, 5), error="both arguments to matmul need to be at least 1D"),
    ]
    + _each("aten::outer", (t(3), t(4)))
    + _each("aten::ger", (t(3), t(4)))
    + [
        case("aten::linear", t(2, 4), t(3, 4), t(3), dtypes=FULL, **LOOSE),
        case("aten::linear", t(2, 5, 4), t(3, 4), t(3), dtypes=FULL, **LOOSE),
        case("aten::linear", t(2, 5, 4), t(3, 4), None, dtypes=FULL, **LOOSE),
        case("aten::linear", t(4), t(3, 4), t(3), dtypes=FULL, **LOOSE),
        case("aten::linear", t(1, 64), t(50, 64), t(50), dtypes=FULL, **LOOSE),
        case("aten::linear", t(0, 4), t(3, 4), t(3), dtypes=FULL),
        case("aten::linear", t(2, 4), t(3, 4), t(3), dtypes=HALF, reference=_wide("aten::linear"), rtol=2e-2, atol=2e-2),
        case("aten::linear", t(2, 5), t(3, 4), None, error="mat1 and mat2 shapes cannot be multiplied (2x5 and 4x3)"),
    ]
)
