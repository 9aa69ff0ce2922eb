"""Operators on lists of tensors, as optimizers call them."""

import torch

from tests.ops.case import FULL, case, t

LISTS = [[t(2, 3, low=0.2, high=0.9), t(4, low=0.2, high=0.9)], [t(2, 3, low=0.5, high=2.0), t(4, low=0.5, high=2.0)],
         [t(2, 3, low=0.5, high=2.0), t(4, low=0.5, high=2.0)]]
A, B, C = LISTS
UNARY = ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign "
         "sin sinh sqrt tan tanh trunc").split()
# Not in PyTorch 1.13.
NEWER = {"rsqrt", "sign"}
LOOSE = {"rtol": 1e-5, "atol": 1e-6}


def _each(function):
    """The operator by items: list arguments go by item, other arguments to all."""
    return lambda lists, *rest, **named: [function(item, *(one[i] if isinstance(one, list) else one for one in rest), **named)
                                          for i, item in enumerate(lists)]


def _written(function):
    def run(lists, *rest):
        _each(function)(lists, *rest)

    return run


def _rows(name, overload, *args, function=None, **kwargs):
    """The functional and the in-place variant, which PyTorch 1.13 does not record."""
    options = {**LOOSE, "dtypes": FULL}
    out = []
    for form in (name, name + "_"):
        reference, written = None, ()
        if function:
            written = (0,) if form != name else ()
            call = getattr(torch.Tensor, function + ("_" if form != name else ""))
            reference = _written(call) if form != name else _each(call)
        out.append(case(f"aten::_foreach_{form}{overload}", *args, reference=reference, written=written, gradient=form == name, **options, **kwargs))
    return out


CASES = [row for name in UNARY for row in _rows(name, "", A, function=name if name in NEWER else None)]
for name in ("add", "sub", "mul", "div"):
    CASES += _rows(name, ".Scalar", A, 2.5) + _rows(name, ".ScalarList", A, [2.5, -3.0]) + _rows(name, ".List", A, B)
CASES += _rows("add", ".List", A, B, alpha=0.5) + _rows("sub", ".List", A, B, alpha=0.5)
CASES += _rows("add", ".Tensor", A, t(values=2.0), function="add") + _rows("mul", ".Tensor", A, t(values=3.0), function="mul")
CASES += _rows("div", ".Tensor", A, t(values=3.0), function="div")
for name in ("clamp_min", "clamp_max"):
    CASES += _rows(name, ".Scalar", A, 0.5, function=name) + _rows(name, ".ScalarList", A, [0.5, 0.7], function=name)
    CASES += _rows(name, ".List", A, B, function=name)
CASES += _rows("pow", ".Scalar", A, 3.0, function="pow") + _rows("pow", ".ScalarList", A, [2.0, 0.5], function="pow")
CASES += _rows("pow", ".List", A, B, function="pow")
for name in ("addcmul", "addcdiv"):
    CASES += _rows(name, ".Scalar", A, B, C, 0.5) + _rows(name, ".ScalarList", A, B, C, [0.5, -2.0])
CASES += _rows("lerp", ".List", A, B, C, function="lerp") + _rows("lerp", ".Scalar", A, B, 0.25, function="lerp")
CASES += _rows("lerp", ".ScalarList", A, B, [0.25, 0.5], function="lerp")
CASES += _rows("maximum", ".List", A, B) + _rows("minimum", ".List", A, B)
for name, function in (("maximum", "clamp_min"), ("minimum", "clamp_max")):
    CASES += _rows(name, ".Scalar", A, 0.5, function=function) + _rows(name, ".ScalarList", A, [0.5, 0.7], function=function)


def _by_numbers(function):
    """The last argument is a tensor with one number for each item."""
    return lambda lists, a, b, numbers: [function(x, a[i], b[i], value=float(numbers[i])) for i, x in enumerate(lists)]


def _writes(run):
    def written(*args):
        run(*args)

    return written


NUMBERS = t(values=[0.5, -2.0])
for name in ("addcmul", "addcdiv"):
    call, in_place = _by_numbers(getattr(torch.Tensor, name)), _by_numbers(getattr(torch.Tensor, name + "_"))
    CASES.append(case(f"aten::_foreach_{name}.Tensor", A, B, C, NUMBERS, reference=call, gradient="no differences", dtypes=FULL, **LOOSE))
    CASES.append(case(f"aten::_foreach_{name}_.Tensor", A, B, C, NUMBERS, reference=_writes(in_place), written=(0,), gradient=False, dtypes=FULL, **LOOSE))
CASES.append(case("aten::_foreach_max", A, reference=_each(torch.max), dtypes=FULL))
CASES += [
    case("aten::_foreach_norm.Scalar", A, dtypes=FULL, **LOOSE),
    case("aten::_foreach_norm.Scalar", A, 1, dtypes=FULL, **LOOSE),
    case("aten::_foreach_zero_", A, dtypes=FULL, gradient=False),
    case("aten::_foreach_copy_", A, B, reference=_written(torch.Tensor.copy_), written=(0,), dtypes=FULL, gradient=False),
    case("aten::_foreach_add.Scalar", [t(3, dtype=torch.int64)], 0.5),
    case("aten::_foreach_add_.Scalar", [t(3, dtype=torch.int64)], 0.5, error="can't be cast to the desired output type"),
    case("aten::_foreach_add.Scalar", [], 1.0, error=("no tensor arguments", "Tensor list must have at least one tensor")),
    case("aten::_foreach_add.List", [t(2), t(3)], [t(2)], error="Tensor lists must have the same number of tensors, got 2 and 1"),
    case("aten::_foreach_mul.ScalarList", [t(2), t(3)], [1.0], error="Tensor list must have same number of elements as scalar list"),
]
