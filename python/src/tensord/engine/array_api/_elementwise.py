"""Functions of each element. Those of two arguments take a Python scalar for one array."""

from __future__ import annotations

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import SCALARS, filled, promote

_UNARY = {
    "abs": "abs", "acos": "acos", "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atan": "atan", "atanh": "atanh", "bitwise_invert": "bitwise_not",
    "conj": "conj_physical", "cos": "cos", "cosh": "cosh", "exp": "exp", "imag": "imag", "isfinite": "isfinite", "isinf": "isinf", "isnan": "isnan",
    "log": "log", "log2": "log2", "log10": "log10", "logical_not": "logical_not", "negative": "neg", "positive": "positive", "real": "real",
    "reciprocal": "reciprocal", "signbit": "signbit", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
}
_BINARY = {
    "add": "add", "atan2": "atan2", "bitwise_and": "bitwise_and", "bitwise_left_shift": "bitwise_left_shift", "bitwise_or": "bitwise_or",
    "bitwise_right_shift": "bitwise_right_shift", "bitwise_xor": "bitwise_xor", "copysign": "copysign", "divide": "div", "equal": "eq",
    "floor_divide": "floor_divide", "greater": "gt", "greater_equal": "ge", "hypot": "hypot", "less": "lt", "less_equal": "le", "logaddexp": "logaddexp",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum",
    "multiply": "mul", "nextafter": "nextafter", "not_equal": "ne", "pow": "pow", "remainder": "remainder", "subtract": "sub",
}
_OF_INTEGERS = ("ceil", "floor", "round", "trunc")  # integers are returned unchanged

__all__ = [*_UNARY, *_BINARY, *_OF_INTEGERS, "clip", "expm1", "log1p", "sign"]


def _unary(name: str, operator: str):
    call = engine._engine._operator("aten::" + operator)

    def function(x, /) -> Tensor:
        return call(x)

    function.__name__ = function.__qualname__ = name
    return function


def _binary(name: str, operator: str):
    call = engine._engine._operator("aten::" + operator)

    def function(x1, x2, /) -> Tensor:
        return call(*promote(x1, x2))

    function.__name__ = function.__qualname__ = name
    return function


def _rounding(name: str):
    call = engine._engine._operator("aten::" + name)

    def function(x, /) -> Tensor:
        return call(x) if x.dtype.is_floating_point else x.clone()

    function.__name__ = function.__qualname__ = name
    return function


globals().update({name: _unary(name, operator) for name, operator in _UNARY.items()})
globals().update({name: _binary(name, operator) for name, operator in _BINARY.items()})
globals().update({name: _rounding(name) for name in _OF_INTEGERS})


def sign(x, /) -> Tensor:
    if x.dtype.is_complex:
        return engine.sgn(x)
    return engine.where(x.isnan(), x, engine.sign(x)) if x.dtype.is_floating_point else engine.sign(x)


def expm1(x, /) -> Tensor:
    if not x.dtype.is_complex:
        return engine.expm1(x)
    # exp(a + bi) - 1 without cancellation: expm1(a) cos(b) + (cos(b) - 1) + exp(a) sin(b) i.
    a, b = engine.real(x), engine.imag(x)
    real = engine.expm1(a) * engine.cos(b) - 2 * engine.sin(b / 2) ** 2 + 0.0  # never -0
    imag = engine.where(b == 0, b, engine.exp(a) * engine.sin(b))
    return engine.complex(engine.where(a.isfinite() & b.isfinite(), real, engine.real(engine.exp(x)) - 1),
                          engine.where(a.isfinite() & b.isfinite(), imag, engine.imag(engine.exp(x))))


def log1p(x, /) -> Tensor:
    if not x.dtype.is_complex:
        return engine.log1p(x)
    a, b = engine.real(x), engine.imag(x)
    near = engine.log1p(a * (2 + a) + b * b) / 2
    whole = engine.log(x + 1)
    is_small = (a.abs() < 0.5) & (b.abs() < 0.5)
    return engine.complex(engine.where(is_small, near, engine.real(whole)), engine.where(a.isfinite() & b.isfinite(), engine.atan2(b, 1 + a), engine.imag(whole)))


def clip(x, /, min=None, max=None) -> Tensor:
    """The result has the dtype of `x`."""
    def bound(value):
        if value is None:
            return None
        return filled((), value, x.dtype) if isinstance(value, SCALARS) else value.to(x.dtype)

    if min is None and max is None:
        return x.clone()
    for value in (min, max):
        if isinstance(value, Tensor) and value.dtype.is_floating_point and not x.dtype.is_floating_point:
            raise TypeError(f"clip: bounds of {value.dtype} for an array of {x.dtype}")
    return engine.clamp(x, bound(min), bound(max))
