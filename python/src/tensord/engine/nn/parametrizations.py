"""Predefined parametrizations: orthogonal weights, weight norm and spectral norm."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._grad_mode import no_grad
from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn._weight_norms import as_matrix, first_dim, unit_vectors
from tensord.engine.nn.module import Module
from tensord.engine.nn.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _tensor(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _orthonormal(matrix):
    """The nearest by columns from the left."""
    q, r = aten("linalg_qr")(matrix)
    return q * r.diagonal(0, -2, -1).sgn().unsqueeze(-2)


def _eye(size: int, like):
    return aten("eye")(size, dtype=like.dtype, device=like.device)


def _is_orthonormal(matrix) -> bool:
    eps = {_engine.float64: 2.0**-52, _engine.complex128: 2.0**-52}.get(matrix.dtype, 2.0**-23)
    return bool(aten("allclose")(matrix.mT.conj() @ matrix, _eye(matrix.shape[-1], matrix), atol=10 * matrix.shape[-2] * eps))


class _Orthogonal(Module):
    """Made from the lower triangle of the value; multiplied by `base`, the initial tensor, if it is stored."""

    def __init__(self, weight, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map, self.use_trivialization = tuple(weight.shape), orthogonal_map, use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, given):
        is_wide = given.shape[-2] < given.shape[-1]
        tall = given.mT if is_wide else given
        found = self._reflected(tall) if self.orthogonal_map == "householder" else self._rotated(tall)
        if self.use_trivialization:
            found = self.base @ found
        return found.mT if is_wide else found

    def _rotated(self, tall):
        """Uses the matrix exponential, or the Cayley map, of a skew-symmetric matrix."""
        n, k = tall.shape[-2:]
        lower = tall.tril()
        if n != k:
            lower = F.pad(lower, (0, n - k))
        skew = lower - lower.mT.conj()
        if self.orthogonal_map == "matrix_exp":
            found = aten("matrix_exp")(skew)
        else:
            one = _eye(n, skew)
            found = aten("linalg_solve")(one - skew / 2, one + skew / 2)
        return found[..., :k]

    def _reflected(self, tall):
        """Uses one Householder reflection per column; the diagonal has the signs of the columns."""
        vectors = tall.tril(-1)
        lengths = 2.0 / (1.0 + (vectors * vectors).sum(-2))
        signs = tall.detach().diagonal(0, -2, -1).trunc().unsqueeze(-2)
        return aten("linalg_householder_product")(vectors, lengths) * signs

    @no_grad()
    def right_inverse(self, value):
        if tuple(value.shape) != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {tuple(value.shape)}.")
        is_wide = value.shape[-2] < value.shape[-1]
        tall = value.mT if is_wide else value
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError("It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                                          "use_trivialization=False.")
            found = self._reflections(tall)
            return found.mT if is_wide else found
        n, k = tall.shape[-2:]
        if n != k:  # any columns that complete them
            more = aten("randn")((*tall.shape[:-2], n, n - k), dtype=tall.dtype, device=tall.device)
            self.base = _orthonormal(aten("cat")([tall, more], -1))
        else:
            self.base = tall.clone() if _is_orthonormal(tall) else _orthonormal(tall)
        # The base alone comes of this, by each of the maps.
        return aten("zeros_like")(value) - aten("eye")(*value.shape[-2:], dtype=value.dtype, device=value.device)

    def _reflections(self, tall):
        """What _reflected() makes the matrix of, where it is orthonormal."""
        packed, lengths = aten("geqrf")(tall)
        diagonal = packed.diagonal(0, -2, -1)
        signs = diagonal.sign()
        signs = aten("where")(lengths == 0, -signs, signs)
        return packed.tril(-1) + packed.triu(1) + F.pad(aten("diag_embed")(signs), (0, 0, 0, tall.shape[-2] - tall.shape[-1]))


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Keeps the rows or the columns, whichever are fewer, orthonormal."""
    weight = _tensor(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    return register_parametrization(module, name, _Orthogonal(weight, orthogonal_map, use_trivialization), unsafe=True)


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations: int, dim: int, eps: float):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-weight.ndim}, {weight.ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = unit_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            self._iterate(matrix, 15)

    @no_grad()
    def _iterate(self, matrix, count: int) -> None:
        for _ in range(count):
            self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / self._u.clone().dot(matrix.mv(self._v.clone()))

    def right_inverse(self, value):
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divides by the largest singular value, whose estimate improves with each use in training mode."""
    weight = _tensor(module, name)
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, first_dim(module) if dim is None else dim, eps))


class _WeightNorm(Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim

    def forward(self, length, direction):
        return aten("_weight_norm")(direction, length, self.dim)

    def right_inverse(self, value):
        return aten("norm_except_dim")(value, 2, self.dim), value


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits into lengths, `original0`, and directions, `original1`; the norm is over all dimensions but `dim` (None:
    over all)."""
    _tensor(module, name)
    return register_parametrization(module, name, _WeightNorm(-1 if dim is None else dim), unsafe=True)
