"""Collates samples into a batch."""

from __future__ import annotations

import collections.abc

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._functions import as_tensor, tensor


def default_collate(batch: list):
    """Tensors, arrays and numbers are stacked; dicts, tuples and lists become ones of batches; strings stay a list."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _engine._operator("aten::stack")(batch)
    if hasattr(first, "__array_interface__"):
        return _engine._operator("aten::stack")([as_tensor(item) for item in batch])
    if isinstance(first, float):
        return tensor(batch, dtype=_engine.float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        made = {key: default_collate([item[key] for item in batch]) for key in first}
        return made if type(first) is dict else type(first)(made)
    if isinstance(first, collections.abc.Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("default_collate: each sample of the batch must have as many items")
        columns = [default_collate(list(column)) for column in zip(*batch)]
        if hasattr(first, "_fields"):
            return type(first)(*columns)
        return columns
    raise TypeError(f"default_collate: a batch must contain tensors, arrays, numbers, dicts or lists; found {type(first)}")


def default_convert(sample):
    """Converts samples that are not batched: arrays become tensors."""
    return as_tensor(sample) if hasattr(sample, "__array_interface__") and not isinstance(sample, Tensor) else sample


def pin(batch):
    """Copies the tensors in dicts, tuples and lists to pinned memory."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, collections.abc.Mapping):
        made = {key: pin(value) for key, value in batch.items()}
        return made if type(batch) is dict else type(batch)(made)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pin, batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(map(pin, batch))
    return batch
