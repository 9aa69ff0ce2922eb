"""Manipulation of shapes, order and parts of arrays."""

from __future__ import annotations

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import axes

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis", "permute_dims", "repeat", "reshape",
           "roll", "squeeze", "stack", "take", "take_along_axis", "tile", "unstack"]


def broadcast_arrays(*arrays) -> tuple:
    return engine.broadcast_tensors(*arrays) if arrays else ()


def broadcast_shapes(*shapes) -> tuple:
    return tuple(engine.broadcast_shapes(*shapes))


def broadcast_to(x, /, shape) -> Tensor:
    return engine.broadcast_to(x, tuple(shape))


def _common(arrays) -> list:
    dtype = arrays[0].dtype
    for array in arrays[1:]:
        dtype = engine.promote_types(dtype, array.dtype)
    return [array.to(dtype) for array in arrays]


def concat(arrays, /, *, axis=0) -> Tensor:
    arrays = _common(list(arrays))
    if axis is None:
        return engine.cat([array.reshape(-1) for array in arrays])
    return engine.cat(arrays, axis)


def stack(arrays, /, *, axis=0) -> Tensor:
    return engine.stack(_common(list(arrays)), axis)


def unstack(x, /, *, axis=0) -> tuple:
    return tuple(engine.unbind(x, axis))


def expand_dims(x, /, axis=0) -> Tensor:
    for place in sorted(axes(axis, x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1))):
        x = x.unsqueeze(place)
    return x


def squeeze(x, /, axis) -> Tensor:
    places = axes(axis, x.ndim)
    for place in places:
        if x.shape[place] != 1:
            raise ValueError(f"squeeze: dimension {place} has size {x.shape[place]}, not 1")
    return x.reshape([size for place, size in enumerate(x.shape) if place not in places])


def flip(x, /, *, axis=None) -> Tensor:
    return engine.flip(x, axes(axis, x.ndim))


def moveaxis(x, source, destination, /) -> Tensor:
    return engine.movedim(x, source, destination)


def permute_dims(x, /, axes) -> Tensor:
    return engine.permute(x, tuple(axes))


def repeat(x, repeats, /, *, axis=None) -> Tensor:
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor) and repeats.ndim == 0:
        repeats = int(repeats)
    if isinstance(repeats, Tensor) and repeats.numel() == 1 and x.shape[axis] != 1:
        repeats = int(repeats[0])
    return engine.repeat_interleave(x, repeats if isinstance(repeats, int) else engine.asarray(repeats), axis)


def reshape(x, /, shape, *, copy=None) -> Tensor:
    if copy is False:
        return x.view(tuple(shape))
    out = engine.reshape(x, tuple(shape))
    return out.clone() if copy else out


def roll(x, /, shift, *, axis=None) -> Tensor:
    if axis is None:
        return engine.roll(x.reshape(-1), shift if isinstance(shift, int) else sum(shift)).reshape(x.shape)
    places = [axis] if isinstance(axis, int) else list(axis)
    return engine.roll(x, [shift] * len(places) if isinstance(shift, int) else list(shift), places)


def tile(x, repetitions, /) -> Tensor:
    return engine.tile(x, tuple(repetitions))


def take(x, indices, /, *, axis=None) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError("take: axis must be given for an array that has not one dimension")
        axis = 0
    flat = engine.index_select(x, axis, indices.reshape(-1).long() % x.shape[axis] if x.shape[axis] else indices.reshape(-1).long())
    return flat.unflatten(axis, tuple(indices.shape)) if indices.ndim != 1 else flat


def take_along_axis(x, indices, /, *, axis=-1) -> Tensor:
    return engine.take_along_dim(x, engine.where(indices < 0, indices + x.shape[axis], indices).long(), axis)
