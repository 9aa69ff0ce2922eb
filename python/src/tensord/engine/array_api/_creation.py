"""Array creation."""

from __future__ import annotations

import math

from tensord import engine
from tensord.engine import Tensor
from tensord.engine._functions import as_shape
from tensord.engine.array_api._promotion import filled

__all__ = ["arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid", "ones", "ones_like",
           "tril", "triu", "zeros", "zeros_like"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None) -> Tensor:
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: step is zero")
    if dtype is None:
        dtype = engine.int64 if all(isinstance(item, int) for item in (start, stop, step)) else engine.get_default_dtype()
    if math.ceil((stop - start) / step) <= 0:
        return engine.empty((0,), dtype=dtype, device=device)
    return engine.arange(start, stop, step, dtype=dtype, device=device)


def asarray(obj, /, *, dtype=None, device=None, copy=None) -> Tensor:
    return engine.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x, /, *, device=None, copy=None) -> Tensor:
    return engine.from_dlpack(x, device=device, copy=copy)


def empty(shape, *, dtype=None, device=None) -> Tensor:
    return engine.empty(as_shape(shape), dtype=dtype, device=device)


def zeros(shape, *, dtype=None, device=None) -> Tensor:
    return engine.zeros(as_shape(shape), dtype=dtype, device=device)


def ones(shape, *, dtype=None, device=None) -> Tensor:
    return engine.ones(as_shape(shape), dtype=dtype, device=device)


def full(shape, fill_value, *, dtype=None, device=None) -> Tensor:
    return filled(as_shape(shape), fill_value, dtype, device)


def empty_like(x, /, *, dtype=None, device=None) -> Tensor:
    return engine.empty_like(x, dtype=dtype, device=device)


def zeros_like(x, /, *, dtype=None, device=None) -> Tensor:
    return engine.zeros_like(x, dtype=dtype, device=device)


def ones_like(x, /, *, dtype=None, device=None) -> Tensor:
    return engine.ones_like(x, dtype=dtype, device=device)


def full_like(x, /, fill_value, *, dtype=None, device=None) -> Tensor:
    return filled(tuple(x.shape), fill_value, dtype or x.dtype, device or x.device)


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None) -> Tensor:
    n_cols = n_rows if n_cols is None else n_cols
    out = engine.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        out.diagonal(k).fill_(1)
    return out


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True) -> Tensor:
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    if dtype is None:
        dtype = engine.promote_types(engine.get_default_dtype(), engine.complex64) if is_complex else engine.get_default_dtype()
    if endpoint:
        return engine.linspace(start, stop, num, dtype=dtype, device=device)
    return engine.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays, indexing="xy") -> tuple:
    return engine.meshgrid(*arrays, indexing=indexing) if arrays else ()


def tril(x, /, *, k=0) -> Tensor:
    return engine.tril(x, k)


def triu(x, /, *, k=0) -> Tensor:
    return engine.triu(x, k)
