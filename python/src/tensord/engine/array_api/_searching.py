"""Searching, sorting and set functions."""

from __future__ import annotations

from typing import NamedTuple

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import SCALARS, axes, promote

__all__ = ["argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "unique_all", "unique_counts", "unique_inverse",
           "unique_values", "where"]


class UniqueAll(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def argmax(x, /, *, axis=None, keepdims=False) -> Tensor:
    out = engine.argmax(x if axis is not None else x.reshape(-1), 0 if axis is None else axis, keepdims and axis is not None)
    return out.reshape((1,) * x.ndim) if axis is None and keepdims else out


def argmin(x, /, *, axis=None, keepdims=False) -> Tensor:
    out = engine.argmin(x if axis is not None else x.reshape(-1), 0 if axis is None else axis, keepdims and axis is not None)
    return out.reshape((1,) * x.ndim) if axis is None and keepdims else out


def count_nonzero(x, /, *, axis=None, keepdims=False) -> Tensor:
    places = axes(axis, x.ndim)
    is_set = x != 0
    return engine.sum(is_set, places, keepdims) if places else is_set.long()


def nonzero(x, /) -> tuple:
    if x.ndim == 0:
        raise ValueError("nonzero: the array has no dimensions")
    return engine.nonzero(x, as_tuple=True)


def searchsorted(x1, x2, /, *, side="left", sorter=None) -> Tensor:
    if isinstance(x2, SCALARS):
        x1, x2 = promote(x1, x2)
    return engine.searchsorted(x1, x2, right=side == "right", sorter=sorter)


def where(condition, x1, x2, /) -> Tensor:
    return engine.where(condition, *promote(x1, x2))


def argsort(x, /, *, axis=-1, descending=False, stable=True) -> Tensor:
    return engine.sort(x, dim=axis, descending=descending, stable=stable).indices


def sort(x, /, *, axis=-1, descending=False, stable=True) -> Tensor:
    return engine.sort(x, dim=axis, descending=descending, stable=stable).values


def isin(x1, x2, /, *, invert=False) -> Tensor:
    if isinstance(x1, SCALARS) or isinstance(x2, SCALARS):
        x1, x2 = promote(x1, x2)
    if x1.dtype.is_complex or x2.dtype.is_complex:
        found = (x1.reshape(*x1.shape, 1) == x2.reshape(-1)).any(-1)
        return ~found if invert else found
    return engine.isin(*promote(x1, x2), invert=invert)


def _sorted_unique(x):
    """Unique values, the first index of each, the inverse indices and the counts. Each NaN counts as a different
    value."""
    flat = x.reshape(-1)
    if flat.dtype.is_complex:
        by_imag = engine.sort(engine.imag(flat), stable=True).indices
        order = by_imag[engine.sort(engine.real(flat)[by_imag], stable=True).indices]
    else:
        order = engine.sort(flat, stable=True).indices
    ordered = flat[order]
    starts = engine.ones(flat.shape, dtype=engine.bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    inverse = engine.empty(flat.shape, dtype=engine.int64)
    inverse[order] = engine.cumsum(starts, 0) - 1
    places = starts.nonzero().reshape(-1)
    counts = engine.diff(engine.cat([places, engine.tensor([flat.numel()])]))
    return ordered[places], order[places], inverse.reshape(x.shape), counts


def unique_all(x, /) -> UniqueAll:
    return UniqueAll(*_sorted_unique(x))


def unique_counts(x, /) -> UniqueCounts:
    values, _, _, counts = _sorted_unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x, /) -> UniqueInverse:
    values, _, inverse, _ = _sorted_unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x, /) -> Tensor:
    return _sorted_unique(x)[0]
