"""Inspection of the namespace, and its dtypes."""

from __future__ import annotations

from typing import NamedTuple

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import BY_KIND, SCALARS, dtype_with_scalar

__all__ = ["__array_namespace_info__", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]


class FloatInfo(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: engine.dtype


class IntInfo(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: engine.dtype


class _Info:
    def capabilities(self) -> dict:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        return engine.device("cpu")

    def devices(self) -> tuple:
        return (engine.device("cpu"),)

    def default_dtypes(self, *, device=None) -> dict:
        real = engine.get_default_dtype()
        return {"real floating": real, "complex floating": engine.promote_types(real, engine.complex64), "integral": engine.int64, "indexing": engine.int64}

    def dtypes(self, *, device=None, kind=None) -> dict:
        kinds = (kind,) if isinstance(kind, str) else kind or ("bool", "numeric")
        return {dtype.name: dtype for name in kinds for dtype in BY_KIND[name]}


def __array_namespace_info__() -> _Info:
    return _Info()


def _dtype_of(given):
    return given.dtype if isinstance(given, Tensor) else given


def astype(x, dtype, /, *, copy=True, device=None) -> Tensor:
    if x.dtype.is_complex and not dtype.is_complex and dtype is not engine.bool:
        raise TypeError(f"astype: {x.dtype} cannot be made {dtype}; take real() or imag() of it")
    out = x.to(dtype) if device is None else x.to(device, dtype)
    return out.clone() if copy and out.is_same(x) else out


def can_cast(from_, to, /) -> bool:
    try:
        return engine.promote_types(_dtype_of(from_), to) is to
    except TypeError:
        return False


def result_type(*arrays_and_dtypes) -> engine.dtype:
    dtypes = [_dtype_of(item) for item in arrays_and_dtypes if not isinstance(item, SCALARS)]
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype")
    out = dtypes[0]
    for dtype in dtypes[1:]:
        out = engine.promote_types(out, dtype)
    for item in arrays_and_dtypes:
        if isinstance(item, SCALARS):
            out = dtype_with_scalar(out, item)
    return out


def isdtype(dtype, kind) -> bool:
    if isinstance(kind, tuple):
        return any(isdtype(dtype, item) for item in kind)
    if isinstance(kind, str):
        if kind not in BY_KIND:
            raise ValueError(f"isdtype: '{kind}' is not a kind of dtypes")
        return dtype in BY_KIND[kind]
    return dtype is kind


_FLOATS = {  # mantissa bits, smallest exponent, largest exponent, all bits
    engine.float16: (10, -14, 15, 16), engine.bfloat16: (7, -126, 127, 16), engine.float32: (23, -126, 127, 32), engine.float64: (52, -1022, 1023, 64),
    engine.complex64: (23, -126, 127, 32), engine.complex128: (52, -1022, 1023, 64),
}


def finfo(type, /) -> FloatInfo:
    dtype = _dtype_of(type)
    if dtype not in _FLOATS:
        raise TypeError(f"finfo: {dtype} is not a floating dtype")
    mantissa, lowest, highest, bits = _FLOATS[dtype]
    most = (2.0 - 2.0**-mantissa) * 2.0**highest
    real = {engine.complex64: engine.float32, engine.complex128: engine.float64}.get(dtype, dtype)
    return FloatInfo(bits, 2.0**-mantissa, most, -most, 2.0**lowest, real)


def iinfo(type, /) -> IntInfo:
    dtype = _dtype_of(type)
    if dtype not in BY_KIND["integral"]:
        raise TypeError(f"iinfo: {dtype} is not an integer dtype")
    bits = 8 * dtype.itemsize
    return IntInfo(bits, 255, 0, dtype) if dtype is engine.uint8 else IntInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)
