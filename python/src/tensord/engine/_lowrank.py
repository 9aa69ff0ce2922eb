"""Approximate SVD of large matrices, from products with a few random vectors (Halko et al., 2009)."""

from __future__ import annotations

from tensord.engine._engine import Tensor
from tensord.engine._operators import aten


def _basis(matrix: Tensor, count: int, rounds: int) -> Tensor:
    """Orthonormal columns that span most of the matrix's."""
    drawn = aten("randn")((matrix.shape[-1], count), dtype=matrix.dtype, device=matrix.device)
    found = aten("linalg_qr")(matrix @ drawn)[0]
    for _ in range(rounds):
        found = aten("linalg_qr")(aten("mH")(matrix) @ found)[0]
        found = aten("linalg_qr")(matrix @ found)[0]
    return found


def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> tuple:
    """Returns U, S and V for the `q` largest singular values of A, or of A - M."""
    if A.is_sparse:
        raise NotImplementedError("svd_lowrank: sparse matrices are not there")
    matrix = A if M is None else A - M
    rows, columns = matrix.shape[-2:]
    svd = aten("linalg_svd")
    if rows < columns or columns > q:
        right = _basis(aten("mH")(matrix), q, niter)
        u, s, vh = svd(matrix @ right, False)
        return u, s, right @ aten("mH")(vh)
    left = _basis(matrix, q, niter)
    u, s, vh = svd(aten("mH")(left) @ matrix, False)
    return left @ u, s, aten("mH")(vh)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple:
    """Returns U, S and V for the first `q` principal components of A's rows."""
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(rows, columns)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A, q, niter, A.mean(-2, True) if center else None)
