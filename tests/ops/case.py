"""Rows of operator tests. A row names an operator and its arguments; PyTorch gives the expected results."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

import torch

FLOATING = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
FULL = [torch.float32, torch.float64]  # for operators without 16-bit CPU kernels in PyTorch
INTEGRAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
BOOL = [torch.bool]
NUMERIC = FLOATING + INTEGRAL
ALL = NUMERIC + BOOL
COMPLEX = [torch.complex64, torch.complex128]


@dataclasses.dataclass
class TensorSpec:
    """A random tensor, created for every dtype and memory format of a row."""

    sizes: tuple
    dtype: torch.dtype | None  # None: the row's current dtype
    low: float
    high: float
    values: Any = None  # exact contents instead of random ones

    def make(self, dtype: torch.dtype, generator: torch.Generator, strided: bool) -> torch.Tensor:
        dtype = self.dtype or dtype
        if self.values is not None:
            out = torch.tensor(self.values, dtype=dtype)
        else:
            out = self._random(dtype, generator)
        return _as_strided_view(out) if strided and out.dim() > 0 else out

    def _random(self, dtype, generator):
        if dtype == torch.bool:
            return torch.rand(self.sizes, generator=generator) > 0.5
        if dtype.is_complex:
            parts = [torch.rand(self.sizes, generator=generator, dtype=torch.float64) for _ in range(2)]
            return torch.complex(*[part * (self.high - self.low) + self.low for part in parts]).to(dtype)
        real = torch.rand(self.sizes, generator=generator, dtype=torch.float64) * (self.high - self.low) + self.low
        if not dtype.is_floating_point:
            real = real.round()
            if dtype == torch.uint8:
                real = real.abs()
        return real.to(dtype)


def _as_strided_view(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in memory with gaps, last dimension outermost."""
    reversed_dims = list(range(tensor.dim()))[::-1]
    sizes = [s * 2 + 1 for s in tensor.permute(reversed_dims).shape]
    base = torch.zeros(sizes, dtype=tensor.dtype)
    view = base[tuple(slice(1, 1 + 2 * s, 2) for s in tensor.permute(reversed_dims).shape)].permute(reversed_dims)
    view.copy_(tensor)
    return view


def _times(matrix, row):
    """Columns times the numbers of a row."""
    return matrix * row.unsqueeze(-2)


def _of_svd(u, s, vh):
    count = s.shape[-1]
    left, right = u[..., :count], vh[..., :count, :]
    weights = torch.arange(1, count + 1, dtype=s.dtype)
    return [_times(left, s) @ right, s, _times(left, weights) @ left.mH, _times(right.mH, weights) @ right, u.mH @ u, vh @ vh.mH]


def _of_eigh(values, vectors):
    weights = torch.arange(1, values.shape[-1] + 1, dtype=values.dtype)
    return [_times(vectors, values) @ vectors.mH, values, _times(vectors, weights) @ vectors.mH, vectors.mH @ vectors]


def _of_eig(values, vectors):
    """Sorted by absolute value: their order is arbitrary, and so are length and phase of vectors, which have length
    1."""
    order = values.abs().argsort(dim=-1)
    values = values.gather(-1, order)
    vectors = vectors.gather(-1, order.unsqueeze(-2).expand(vectors.shape))
    return [values, (vectors.abs() ** 2).sum(-2), _times(vectors, values) @ torch.linalg.inv(vectors)]


# The parts of results that do not depend on the signs of vectors, which libraries choose freely; op_cases.h has the
# same.
INVARIANTS = {"svd": _of_svd, "svd of V": lambda u, s, v: _of_svd(u, s, v.mH), "eigh": _of_eigh, "eig": _of_eig}


def t(*sizes: int, dtype: torch.dtype | None = None, low: float = -3.0, high: float = 3.0, values: Any = None) -> TensorSpec:
    """A tensor argument: t(2, 3), t(values=[1, 2], dtype=torch.int64)."""
    return TensorSpec(sizes, dtype, low, high, values)


def ints(*values: int) -> TensorSpec:
    """A tensor of indices: int64 with these values."""
    return t(values=list(values), dtype=torch.int64)


def tensors_in(value) -> list:
    """The tensors of arguments or results, also those in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return [value] if isinstance(value, torch.Tensor) else []


@dataclasses.dataclass
class Case:
    op: str
    args: tuple
    kwargs: dict
    dtypes: list
    strided: bool
    rtol: float | None
    atol: float | None
    check: str  # "values", "shape", "drawn" (random numbers of a fixed seed), or a name in INVARIANTS
    reference: Callable | None
    error: str | tuple | None
    gradient: bool | str = True
    written: tuple = ()  # positions of arguments that `reference` writes, if PyTorch's registry does not declare it
    optional: bool = False  # only checked if the operator is registered


def case(op: str, *args, dtypes=None, strided=True, rtol=None, atol=None, check="values", reference=None, error=None,
         gradient=True, written=(), **kwargs) -> Case:
    """One row: case("aten::softmax.int", t(2, 3), 1, dtypes=FLOATING).

    Arguments are those of the schema. Each row runs for every dtype, and once more with strided inputs.
    `reference` replaces torch.ops' operator; `error` is a part of the message that both must raise, or a pair of
    PyTorch's and ours; without `gradient` the row says nothing of gradients, with "no differences" they are not compared
    with finite differences, with "first" second ones are not compared either.
    """
    return Case(op, args, kwargs, dtypes or [torch.float32], strided, rtol, atol, check, reference, error, gradient, written)
