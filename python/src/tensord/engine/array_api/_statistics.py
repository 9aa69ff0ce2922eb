"""Reductions and cumulative functions."""

from __future__ import annotations

import math

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import axes, sum_dtype

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


def sum(x, /, *, axis=None, dtype=None, keepdims=False) -> Tensor:
    dims, dtype = axes(axis, x.ndim), dtype or sum_dtype(x.dtype)
    return engine.sum(x, dims, keepdims, dtype=dtype) if dims else x.to(dtype).clone()


def prod(x, /, *, axis=None, dtype=None, keepdims=False) -> Tensor:
    out = x.to(dtype or sum_dtype(x.dtype))
    for dim in axes(axis, x.ndim):
        out = engine.prod(out, dim, True)
    return _result(out, x, axis, keepdims)


def _result(out, x, axis, keepdims: bool) -> Tensor:
    """Converts a reduction with keepdims=True to the requested shape."""
    if out is x:
        return x.clone()
    if keepdims:
        return out
    dims = axes(axis, x.ndim)
    return out.reshape([size for dim, size in enumerate(out.shape) if dim not in dims])


def _extreme(x, axis, keepdims: bool, function) -> Tensor:
    dims = axes(axis, x.ndim)
    return function(x, dims, keepdims) if dims else x.clone()


def max(x, /, *, axis=None, keepdims=False) -> Tensor:
    return _extreme(x, axis, keepdims, engine.amax)


def min(x, /, *, axis=None, keepdims=False) -> Tensor:
    return _extreme(x, axis, keepdims, engine.amin)


def mean(x, /, *, axis=None, keepdims=False) -> Tensor:
    dims = axes(axis, x.ndim)
    return engine.mean(x, dims, keepdims) if dims else x.clone()


def std(x, /, *, axis=None, correction=0.0, keepdims=False) -> Tensor:
    return var(x, axis=axis, correction=correction, keepdims=keepdims).sqrt()


def var(x, /, *, axis=None, correction=0.0, keepdims=False) -> Tensor:
    dims = axes(axis, x.ndim)
    if not dims:
        return x - x if correction == 0 else engine.full_like(x, float("nan"))
    if correction == int(correction):
        return engine.var(x, dims, correction=int(correction), keepdim=keepdims)
    count = math.prod(x.shape[dim] for dim in dims)
    if count <= correction:
        return engine.var(x, dims, correction=count, keepdim=keepdims)
    return engine.var(x, dims, correction=0, keepdim=keepdims) * (count / (count - correction))


def all(x, /, *, axis=None, keepdims=False) -> Tensor:
    out = x.to(engine.bool)
    for dim in axes(axis, x.ndim):
        out = engine.all(out, dim, True)
    return _result(out, x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False) -> Tensor:
    out = x.to(engine.bool)
    for dim in axes(axis, x.ndim):
        out = engine.any(out, dim, True)
    return _result(out, x, axis, keepdims)


def _cumulative(function, x, axis, dtype, first) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("axis must be given for an array that has not one dimension")
        axis = 0
    out = function(x, axis, dtype=dtype or sum_dtype(x.dtype))
    if first is None:
        return out
    sizes = list(x.shape)
    sizes[axis] = 1
    return engine.cat([engine.full(sizes, first, dtype=out.dtype), out], axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False) -> Tensor:
    return _cumulative(engine.cumsum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False) -> Tensor:
    return _cumulative(engine.cumprod, x, axis, dtype, 1 if include_initial else None)


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None) -> Tensor:
    return engine.diff(x, n, axis, prepend, append)
