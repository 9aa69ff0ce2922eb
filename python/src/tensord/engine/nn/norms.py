"""Batch, instance, layer and group normalization."""

from __future__ import annotations

from tensord.engine._functions import as_shape
from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import buffer, counter, optional_parameter, placed
from tensord.engine.nn.module import Module

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "CrossMapLRN2d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "RMSNorm",
]


class _Affine(Module):
    """A norm with optional affine parameters, initialized to ones and zeros."""

    def _make_affine(self, shape, has_weight: bool, has_bias: bool) -> None:
        self.register_parameter("weight", optional_parameter(has_weight, *shape))
        self.register_parameter("bias", optional_parameter(has_bias, *shape))

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class RunningNorm(_Affine):
    """Base of batch and instance norms: affine parameters and running statistics. `ranks`: the allowed input ranks."""

    ranks: tuple = ()

    def _make(self, num_features: int, eps: float, momentum, affine: bool, track_running_stats: bool, bias: bool) -> None:
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._make_parameters(bias)
        self.register_buffer("num_batches_tracked", counter() if track_running_stats else None)

    def _make_parameters(self, bias: bool) -> None:
        self._make_affine((self.num_features,), self.affine, self.affine and bias)
        self.register_buffer("running_mean", buffer("zeros", self.num_features) if self.track_running_stats else None)
        self.register_buffer("running_var", buffer("ones", self.num_features) if self.track_running_stats else None)
        _Affine.reset_parameters(self)

    def _check_rank(self, input) -> None:
        if input.ndim not in self.ranks:
            raise ValueError(f"{type(self).__name__}: expected a tensor of {' or '.join(map(str, self.ranks))} dimensions, got {input.ndim}")

    def reset_running_stats(self) -> None:
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        self.reset_running_stats()
        super().reset_parameters()

    def extra_repr(self):
        # A missing bias is shown only if there is a weight.
        bias = ", bias=False" if self.weight is not None and self.bias is None else ""
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}{bias}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(RunningNorm):
    @placed
    def __init__(self, num_features: int, eps: float = 1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True, device=None,
                 dtype=None, bias: bool = True):
        super().__init__()
        self._make(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, input):
        self._check_rank(input)
        factor = self.momentum or 0.0
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        uses_batch = self.training or self.running_mean is None
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, uses_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    ranks = (5,)


class _InstanceNorm(RunningNorm):
    @placed
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
                 device=None, dtype=None, bias: bool = True):
        super().__init__()
        self._make(num_features, eps, momentum, affine, track_running_stats, bias)

    def forward(self, input):
        self._check_rank(input)
        is_batched = input.ndim == self.ranks[1]
        uses_input = self.training or not self.track_running_stats
        batch = input if is_batched else input.unsqueeze(0)
        found = F.instance_norm(batch, self.running_mean, self.running_var, self.weight, self.bias, uses_input, self.momentum, self.eps)
        return found if is_batched else found.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    ranks = (4, 5)


class LayerNorm(_Affine):
    @placed
    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = as_shape(normalized_shape), eps, elementwise_affine
        self._make_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias)
        self.reset_parameters()

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        bias = ", bias=False" if self.weight is not None and self.bias is None else ""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}{bias}"


class RMSNorm(Module):
    """Divides by the root mean square of the last dimensions. The default eps is that of the dtype."""

    @placed
    def __init__(self, normalized_shape, eps=None, elementwise_affine: bool = True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape, self.eps, self.elementwise_affine = as_shape(normalized_shape), eps, elementwise_affine
        self.register_parameter("weight", optional_parameter(elementwise_affine, *self.normalized_shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input):
        return aten("rms_norm")(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    @placed
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, bias: bool = True):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        self._make_affine((num_channels,), affine, affine and bias)
        self.reset_parameters()

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        bias = ", bias=False" if self.weight is not None and self.bias is None else ""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}{bias}"


class CrossMapLRN2d(Module):
    """Divides each pixel by a power of the sum of squares in neighboring channels, with zeros beyond the edges.

    Computes PyTorch's sums, in which the first channel stays once it was added, so that models give the same results;
    gradients are those of these sums.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        side = (self.size - 1) // 2
        window = 2 * side + 1  # an even size uses the window of the next smaller odd one, but its own divisor
        squares = input.square()
        padded = F.pad(squares.unsqueeze(1), [0, 0, 0, 0, side, side], "constant", 0.0)
        sums = aten("avg_pool3d")(padded, [window, 1, 1], [1, 1, 1]).squeeze(1) * window
        channels = aten("arange")(input.shape[1], device=input.device).reshape(1, -1, 1, 1)
        sums = sums + squares[:, :1] * (channels > side)
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
