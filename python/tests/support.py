"""Comparisons with PyTorch (Debian's), which runs beside the engine in tests."""

from __future__ import annotations

import numpy
import torch

from tensord import engine

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "bfloat16"]


def to_torch(tensor: engine.Tensor) -> torch.Tensor:
    """A copy."""
    return torch.from_dlpack(tensor.detach().clone()) if tensor.dtype is not engine.bool else torch.tensor(tensor.tolist(), dtype=torch.bool).reshape(tuple(tensor.shape))


def from_torch(tensor: torch.Tensor) -> engine.Tensor:
    made = engine.from_dlpack(tensor.detach().clone()) if tensor.dtype is not torch.bool else engine.tensor(tensor.tolist(), dtype=engine.bool).reshape(tuple(tensor.shape))
    if tensor.requires_grad:
        made.requires_grad_(True)
    return made


def same(got, want, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Fails unless values, shape and dtype agree."""
    assert str(got.dtype).removeprefix("engine.") == str(want.dtype).removeprefix("torch.")
    assert tuple(got.shape) == tuple(want.shape)
    torch.testing.assert_close(to_torch(got), want.detach(), rtol=rtol, atol=atol, equal_nan=True)


def arrays(*shape, dtype="float32"):
    return numpy.arange(numpy.prod(shape, dtype=int), dtype=dtype).reshape(shape)
