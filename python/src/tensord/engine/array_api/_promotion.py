"""Type promotion by dtype only, as the standard requires. The engine, like PyTorch, also considers which tensor has
dimensions."""

from __future__ import annotations

from tensord import engine
from tensord.engine import Tensor

BY_KIND = {
    "bool": (engine.bool,),
    "signed integer": (engine.int8, engine.int16, engine.int32, engine.int64),
    "unsigned integer": (engine.uint8,),
    "integral": (engine.int8, engine.int16, engine.int32, engine.int64, engine.uint8),
    "real floating": (engine.float32, engine.float64),
    "complex floating": (engine.complex64, engine.complex128),
}
BY_KIND["numeric"] = BY_KIND["integral"] + BY_KIND["real floating"] + BY_KIND["complex floating"]
SCALARS = (bool, int, float, complex)


def dtype_with_scalar(dtype: engine.dtype, scalar) -> engine.dtype:
    """The dtype of a result of an array and a Python scalar."""
    if isinstance(scalar, complex) and not dtype.is_complex:
        return engine.complex128 if dtype is engine.float64 else engine.complex64
    if isinstance(scalar, float) and not (dtype.is_floating_point or dtype.is_complex):
        return engine.get_default_dtype()
    if isinstance(scalar, int) and not isinstance(scalar, bool) and dtype is engine.bool:
        return engine.int64
    return dtype


def filled(shape: tuple, value, dtype=None, device=None) -> Tensor:
    if isinstance(value, Tensor):
        value = value.item()
    if not isinstance(value, complex):
        return engine.full(shape, value, dtype=dtype, device=device)
    dtype = dtype or engine.promote_types(engine.get_default_dtype(), engine.complex64)
    return engine.tensor(value, dtype=dtype, device=device).expand(shape).clone()


def promote(x1, x2):
    """Both arguments of a function as tensors of one dtype; one of them may be a Python scalar."""
    if isinstance(x1, Tensor) and isinstance(x2, Tensor):
        if x1.dtype is x2.dtype:
            return x1, x2
        dtype = engine.promote_types(x1.dtype, x2.dtype)
        return x1.to(dtype), x2.to(dtype)
    if isinstance(x1, Tensor) and isinstance(x2, SCALARS):
        dtype = dtype_with_scalar(x1.dtype, x2)
        return x1.to(dtype), filled((), x2, dtype)
    if isinstance(x2, Tensor) and isinstance(x1, SCALARS):
        dtype = dtype_with_scalar(x2.dtype, x1)
        return filled((), x1, dtype), x2.to(dtype)
    raise TypeError(f"expected two arrays, or one and a number, got {type(x1).__name__} and {type(x2).__name__}")


def sum_dtype(dtype: engine.dtype) -> engine.dtype:
    """The default dtype of sums and products."""
    return dtype if dtype.is_floating_point or dtype.is_complex else engine.int64


def axes(axis, ndim: int) -> list:
    """The axes as non-negative numbers; all axes for None."""
    if axis is None:
        return list(range(ndim))
    out = []
    for item in axis if isinstance(axis, (tuple, list)) else (axis,):
        if not -ndim <= item < ndim:
            raise IndexError(f"axis {item} is out of range for an array of {ndim} dimensions")
        out.append(item % ndim)
    if len(set(out)) != len(out):
        raise ValueError(f"axis {axis} names a dimension twice")
    return out
