"""Upgraders: operators with the semantics of older archive versions."""

import torch

from tests.ops.case import case, t


def _divide(a, b):
    """Integer division gave integers, rounded towards zero."""
    is_float = a.is_floating_point() or (b.is_floating_point() if isinstance(b, torch.Tensor) else isinstance(b, float))
    return torch.div(a, b) if is_float else torch.div(a, b, rounding_mode="trunc")


def _divide_into(a, b):
    return a.copy_(_divide(a, b))


def _full(size, number, **options):
    return torch.full(size, number if options.get("dtype") else float(number), **options)


TYPES = [torch.float32, torch.int64, torch.int32]
INTS = t(values=[7, -7, 5], dtype=torch.int64)
CASES = [
    case("upgraders::div.Tensor", t(2, 3), t(2, 3, low=1, high=4), dtypes=TYPES, reference=_divide),
    case("upgraders::div.Tensor", INTS, t(values=[2.0, 2.0, -2.0], dtype=torch.float32), reference=_divide),
    case("upgraders::div.Scalar", t(2, 3), 2, dtypes=TYPES, reference=_divide),
    case("upgraders::div.Scalar", INTS, 2.0, reference=_divide),
    case("upgraders::div_.Tensor", t(2, 3), t(3, low=1, high=4), dtypes=TYPES, reference=_divide_into),
    case("upgraders::div_.Scalar", t(2, 3), -2, dtypes=TYPES, reference=_divide_into),
    case("upgraders::full", [2, 3], 7, reference=_full),
    case("upgraders::full", [2], 7, dtype=torch.int64, reference=_full),
    case("upgraders::full", [2], 2.5, reference=_full),
]
