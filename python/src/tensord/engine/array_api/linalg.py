"""Linear algebra over the last two dimensions."""

from __future__ import annotations

from typing import NamedTuple

from tensord import engine
from tensord.engine import Tensor
from tensord.engine.array_api._promotion import axes as _axes
from tensord.engine.array_api._promotion import promote, sum_dtype

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
           "vector_norm"]


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x, /, *, upper=False) -> Tensor:
    return engine.linalg_cholesky(x, upper=upper)


def cross(x1, x2, /, *, axis=-1) -> Tensor:
    return engine.linalg_cross(*promote(x1, x2), dim=axis)


def det(x, /) -> Tensor:
    return engine.linalg_det(x)


def diagonal(x, /, *, offset=0) -> Tensor:
    return engine.diagonal(x, offset, -2, -1)


def eig(x, /) -> EigResult:
    return EigResult(*engine.linalg_eig(x))


def eigh(x, /) -> EigResult:
    return EigResult(*engine.linalg_eigh(x))


def eigvals(x, /) -> Tensor:
    return engine.linalg_eigvals(x)


def eigvalsh(x, /) -> Tensor:
    return engine.linalg_eigvalsh(x)


def inv(x, /) -> Tensor:
    return engine.linalg_inv(x)


def matmul(x1, x2, /) -> Tensor:
    return engine.matmul(*promote(x1, x2))


def matrix_norm(x, /, *, keepdims=False, ord="fro") -> Tensor:
    return engine.linalg_matrix_norm(x, ord, (-2, -1), keepdims)


def matrix_power(x, n, /) -> Tensor:
    return engine.linalg_matrix_power(x, n)


def matrix_rank(x, /, *, rtol=None) -> Tensor:
    return engine.linalg_matrix_rank(x, rtol=rtol)


def matrix_transpose(x, /) -> Tensor:
    if x.ndim < 2:
        raise ValueError("matrix_transpose: expected at least two dimensions")
    return x.mT


def outer(x1, x2, /) -> Tensor:
    return engine.outer(*promote(x1, x2))


def pinv(x, /, *, rtol=None) -> Tensor:
    return engine.linalg_pinv(x, rtol=rtol)


def qr(x, /, *, mode="reduced") -> QRResult:
    return QRResult(*engine.linalg_qr(x, mode))


def slogdet(x, /) -> SlogdetResult:
    return SlogdetResult(*engine.linalg_slogdet(x))


def solve(x1, x2, /) -> Tensor:
    x1, x2 = promote(x1, x2)
    # Only a 1-D array is a vector here; PyTorch accepts stacks of vectors too.
    if x2.ndim == 1:
        return engine.linalg_solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    batch = engine.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return engine.linalg_solve(x1.expand(*batch, *x1.shape[-2:]), x2.expand(*batch, *x2.shape[-2:]))


def svd(x, /, *, full_matrices=True) -> SVDResult:
    return SVDResult(*engine.linalg_svd(x, full_matrices))


def svdvals(x, /) -> Tensor:
    return engine.linalg_svdvals(x)


def tensordot(x1, x2, /, *, axes=2) -> Tensor:
    return engine.tensordot(*promote(x1, x2), axes)


def trace(x, /, *, offset=0, dtype=None) -> Tensor:
    return diagonal(x, offset=offset).sum(-1, dtype=dtype or sum_dtype(x.dtype))


def vecdot(x1, x2, /, *, axis=-1) -> Tensor:
    x1, x2 = promote(x1, x2)
    x1, x2 = (array.movedim(axis, -1) for array in (x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise ValueError(f"vecdot: sizes {x1.shape[-1]} and {x2.shape[-1]} along the axis")
    x1 = engine.conj_physical(x1) if x1.dtype.is_complex else x1
    return engine.matmul(x1.unsqueeze(-2), x2.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2) -> Tensor:
    places = _axes(axis, x.ndim)
    if not places:  # vectors with one element each
        return (x != 0).to(x.abs().dtype) if ord == 0 else x.abs()
    return engine.linalg_vector_norm(x, ord, places, keepdims)
