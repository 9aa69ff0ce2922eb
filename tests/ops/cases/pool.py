"""Pooling. For 16-bit dtypes PyTorch's float32 result is rounded once."""

import torch

from tests.ops.case import FULL, case, t

HALF = [torch.float16, torch.bfloat16]
LOOSE = {"rtol": 1e-4, "atol": 1e-5}
NAN = [[[1.0, 2.0, float("nan"), 0.0], [4.0, 3.0, 2.0, 1.0]]]


def _wide(op):
    name, _, overload = op.partition("::")[2].partition(".")
    function = getattr(getattr(torch.ops.aten, name), overload or "default")

    def call(x, *args):
        result = function(x.float(), *args)
        if isinstance(result, tuple):
            return (result[0].to(x.dtype), result[1])
        return result.to(x.dtype)

    return call


def _each(op, *argument_lists):
    rows = []
    for arguments in argument_lists:
        rows.append(case(op, *arguments, dtypes=FULL, **LOOSE))
        rows.append(case(op, *arguments, dtypes=HALF, reference=_wide(op), rtol=1.6e-2, atol=1.6e-2))
    return rows


def _max(dims, suffix=""):
    op = f"aten::max_pool{dims}d{suffix}"
    x = t(2, 3, *(11, 9, 7)[:dims])
    three, two, one = [3] * dims, [2] * dims, [1] * dims
    rows = _each(
        op,
        (x, three),
        (x, three, two, one),
        (x, three, two, one, one, True),
        (x, two, one, [0] * dims, two),
        (t(3, *(11, 9, 7)[:dims]), two, two),
        (t(2, 2, *(4, 5, 3)[:dims]), two),
    )
    rows.append(case(op, x, three, two, two, error="half of kernel size"))
    return rows


def _avg(dims):
    op = f"aten::avg_pool{dims}d"
    x = t(2, 3, *(11, 9, 7)[:dims])
    three, two, one = [3] * dims, [2] * dims, [1] * dims
    rows = _each(
        op,
        (x, three),
        (x, three, two, one),
        (x, three, two, one, True),
        (x, three, two, one, True, False),
        (t(3, *(11, 9, 7)[:dims]), two, two),
        (t(2, 2, *(4, 5, 3)[:dims]), two),
    )
    if dims > 1:
        rows += _each(op, (x, three, two, one, False, True, 5))
        rows.append(case(op, x, three, two, one, False, True, 0, error="divisor must be not zero"))
    return rows


def _adaptive(dims):
    x = t(2, 3, *(11, 9, 7)[:dims])
    sizes = [[1] * dims, [3] * dims, [5, 4, 3][:dims], [13, 12, 11][:dims]]
    rows = _each(f"aten::adaptive_avg_pool{dims}d", *[(x, size) for size in sizes], (t(3, *(11, 9, 7)[:dims]), [2] * dims),
                 (t(2, 2, *(4, 5, 3)[:dims]), [2] * dims))
    rows += _each(f"aten::adaptive_max_pool{dims}d", *[(x, size) for size in sizes], (t(3, *(11, 9, 7)[:dims]), [2] * dims),
                  (t(2, 2, *(4, 5, 3)[:dims]), [2] * dims))
    return rows


CASES = (
    _max(1) + _max(2) + _max(3) + _max(1, "_with_indices") + _max(2, "_with_indices") + _max(3, "_with_indices")
    + _avg(1) + _avg(2) + _avg(3) + _adaptive(1) + _adaptive(2) + _adaptive(3)
    + [
        case("aten::max_pool2d", t(1, 2, 4, values=NAN), [2, 2], dtypes=FULL),
        case("aten::max_pool2d_with_indices", t(1, 2, 4, values=NAN), [2, 2], dtypes=FULL),
        case("aten::max_pool3d", t(1, 2, 4, 5, 3), [2, 2, 2], [2, 1, 1], dtypes=FULL),
        case("aten::max_pool3d_with_indices", t(1, 2, 4, 5, 3), [2, 2, 2], [2, 1, 1], dtypes=FULL),
        case("aten::avg_pool3d", t(1, 2, 4, 5, 3), [2, 2, 2], [2, 1, 1], dtypes=FULL),
        case("aten::adaptive_avg_pool3d", t(1, 2, 4, 5, 3), [2, 2, 2], dtypes=FULL),
        case("aten::adaptive_avg_pool1d", t(2, 0, 3), [2]), case("aten::adaptive_avg_pool1d", t(0, 3), [2]),
        case("aten::adaptive_avg_pool2d", t(2, 0, 3, 4), [2, 1]),
        case("aten::adaptive_avg_pool3d", t(2, 0, 3, 4, 2), [2, 1, 1], error="non-zero size for non-batch dimensions"),
        *[case(f"aten::adaptive_avg_pool{dims}d", t(*shape), [1] * dims) for dims, shape in  # the mean of nothing
          ((1, (2, 0)), (1, (1, 2, 0)), (2, (2, 0, 3)), (2, (1, 2, 3, 0)), (3, (1, 2, 0, 1)), (3, (1, 0, 2, 1)), (3, (2, 1, 2, 0, 1)))],
        case("aten::adaptive_avg_pool2d", t(2, 3, 0), [1, 2], error="non-zero size for non-batch dimensions"),
        case("aten::adaptive_max_pool2d", t(2, 0, 3, 4), [2, 1], error="non-zero size for non-batch dimensions"),
        case("aten::adaptive_max_pool3d", t(1, 2, 4, 5, 3), [2, 2, 2], dtypes=FULL),
        case("aten::max_pool2d", t(2, 3, 8, 40), [3, 3], [4, 3], [1, 1], [2, 1], dtypes=FULL),
        case("aten::max_pool2d_with_indices_backward", t(1, 2, 2, 3), t(1, 2, 4, 6), [2, 2], [2, 2], [0, 0], [1, 1], False,
             t(1, 2, 2, 3, dtype=torch.int64, low=0, high=23), dtypes=FULL, strided=False),
        case("aten::max_pool3d_with_indices_backward", t(1, 2, 2, 3, 1), t(1, 2, 4, 6, 2), [2, 2, 2], [2, 2, 2], [0, 0, 0],
             [1, 1, 1], False, t(1, 2, 2, 3, 1, dtype=torch.int64, low=0, high=47), dtypes=FULL, strided=False),
        case("aten::adaptive_max_pool2d_backward", t(1, 2, 2, 3), t(1, 2, 4, 6), t(1, 2, 2, 3, dtype=torch.int64, low=0, high=23),
             dtypes=FULL, strided=False),
        case("aten::adaptive_max_pool3d_backward", t(1, 2, 2, 3, 1), t(1, 2, 4, 6, 2),
             t(1, 2, 2, 3, 1, dtype=torch.int64, low=0, high=47), dtypes=FULL, strided=False),
        case("aten::avg_pool2d_backward", t(1, 2, 2, 3), t(1, 2, 4, 6), [2, 2], [2, 2], [0, 0], False, True, None, dtypes=FULL),
        case("aten::avg_pool2d_backward", t(1, 2, 3, 3), t(1, 2, 5, 6), [3, 3], [2, 2], [1, 1], False, False, None, dtypes=FULL),
        case("aten::avg_pool3d_backward", t(1, 2, 2, 3, 2), t(1, 2, 4, 6, 3), [2, 2, 2], [2, 2, 1], [0, 0, 0], False, True, 7,
             dtypes=FULL),
        case("aten::_adaptive_avg_pool2d_backward", t(1, 2, 2, 3), t(1, 2, 5, 7), dtypes=FULL),
        case("aten::_adaptive_avg_pool3d_backward", t(1, 2, 2, 3, 1), t(1, 2, 5, 7, 2), dtypes=FULL),
        case("aten::max_pool2d", t(2, 3, 2, 2), [3, 3], error="Output size is too small"),
        case("aten::adaptive_avg_pool2d", t(5, 0, 0, 5), [1, 1]), case("aten::adaptive_avg_pool3d", t(2, 0, 3, 4, 2), [1, 1, 1]),
        case("aten::adaptive_avg_pool2d", t(2, 3, 0, 2), [3, 3], error="non-zero size for non-batch dimensions"),
    ]
)
