"""weight_norm and spectral_norm: weights that are recomputed before each call."""

from __future__ import annotations

from tensord.engine._grad_mode import no_grad
from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn.convolutions import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from tensord.engine.nn.module import Module, Parameter


def first_dim(module: Module) -> int:
    """The dimension of output channels in the weight."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


def as_matrix(weight, dim: int):
    """The weight as a matrix: that dimension, and all others flattened."""
    front = weight.movedim(dim, 0)
    return front.reshape(front.shape[0], -1)


@no_grad()
def unit_vectors(matrix, eps: float) -> tuple:
    """Random ones, for the left and the right side."""
    empty = aten("empty")
    made = [empty((size,), dtype=matrix.dtype, device=matrix.device).normal_(0, 1) for size in matrix.shape]
    return tuple(F.normalize(vector, dim=0, eps=eps) for vector in made)


class _Computed:
    """A forward pre-hook that sets the computed weight, which is no longer a parameter."""

    title = ""

    def __init__(self, name: str):
        self.name = name

    def compute(self, module: Module, is_update: bool):
        raise NotImplementedError

    def __call__(self, module: Module, args) -> None:
        setattr(module, self.name, self.compute(module, module.training))

    def install(self, module: Module) -> None:
        self.handle = module.register_forward_pre_hook(self)

    @classmethod
    def found(cls, module: Module, name: str):
        for hook, _ in module._forward_pre_hooks:
            if isinstance(hook, cls) and hook.name == name:
                return hook
        return None

    @classmethod
    def parameter(cls, module: Module, name: str) -> Parameter:
        if cls.found(module, name) is not None:
            raise RuntimeError(f"Cannot register two {cls.title} hooks on the same parameter {name}")
        weight = module._parameters.get(name)
        if weight is None:
            raise ValueError(f"{cls.title} cannot be applied: {type(module).__name__} has no parameter '{name}'")
        return weight

    @classmethod
    def remove(cls, module: Module, name: str, *suffixes: str) -> Module:
        hook = cls.found(module, name)
        if hook is None:
            raise ValueError(f"{cls.title} of '{name}' not found in {module}")
        with no_grad():
            weight = hook.compute(module, False)
        hook.handle.remove()
        for part in (name, *(name + suffix for suffix in suffixes)):
            delattr(module, part)
        module.register_parameter(name, Parameter(weight))
        return module


class WeightNorm(_Computed):
    title = "weight_norm"

    def __init__(self, name: str, dim: int):
        super().__init__(name)
        self.dim = dim

    def compute(self, module, is_update):
        return aten("_weight_norm")(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrizes the weight as `weight_g` times `weight_v` divided by its norm over all dimensions but `dim` (None:
    over all)."""
    weight = WeightNorm.parameter(module, name)
    hook = WeightNorm(name, -1 if dim is None else dim)
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(aten("norm_except_dim")(weight.detach(), 2, hook.dim)))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute(module, False))
    hook.install(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    return WeightNorm.remove(module, name, "_g", "_v")


class SpectralNorm(_Computed):
    title = "spectral_norm"

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float):
        super().__init__(name)
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def compute(self, module, is_update):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if is_update:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.t().mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # copies for the graph, because the next call changes the vectors in place
        return weight / u.dot(matrix.mv(v))


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Parametrizes the weight as `weight_orig` divided by its largest singular value, whose estimate improves with each
    call in training mode."""
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    weight = SpectralNorm.parameter(module, name)
    hook = SpectralNorm(name, n_power_iterations, first_dim(module) if dim is None else dim, eps)
    u, v = unit_vectors(as_matrix(weight.detach(), hook.dim), eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.detach())
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    hook.install(module)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    return SpectralNorm.remove(module, name, "_u", "_v", "_orig")
