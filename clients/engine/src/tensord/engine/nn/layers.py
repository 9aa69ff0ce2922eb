"""Layers with parameters, pools and other steps between them."""

from __future__ import annotations

import math

from tensord.engine import _engine
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn.module import Module, Parameter

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Embedding", "Flatten", "GroupNorm", "Identity", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "Linear", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Unflatten",
]


def _empty(*shape):
    return Parameter(_engine._operator("aten::empty")(shape))


def _full(shape, value):
    return Parameter(_engine._operator("aten::full")(shape, float(value)))


def _repeat(value, count: int):
    return (value,) * count if isinstance(value, int) else tuple(value)


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = _empty(out_features, in_features)
        self.register_parameter("bias", _empty(out_features) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True):
        super().__init__()
        self.weight = _empty(out_features, in1_features, in2_features)
        self.register_parameter("bias", _empty(out_features) if bias else None)
        bound = 1 / math.sqrt(in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1, input2):
        return F._op("bilinear")(input1, input2, self.weight, self.bias)


class _Conv(Module):
    dims = 0
    is_transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, *rest, dilation=1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", output_padding=0):
        super().__init__()
        # By position: dilation, groups, bias, padding_mode; transposed ones have output_padding first and dilation last.
        order = ("output_padding", "groups", "bias", "dilation") if self.is_transposed else ("dilation", "groups", "bias", "padding_mode")
        given = dict(zip(order, rest))
        dilation, groups, bias = given.get("dilation", dilation), given.get("groups", groups), given.get("bias", bias)
        padding_mode, output_padding = given.get("padding_mode", padding_mode), given.get("output_padding", output_padding)
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(f"padding_mode {padding_mode!r} is not known")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{type(self).__name__}: {in_channels} and {out_channels} channels are not divisible by {groups} groups")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride = _repeat(kernel_size, self.dims), _repeat(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else _repeat(padding, self.dims)
        self.dilation, self.output_padding = _repeat(dilation, self.dims), _repeat(output_padding, self.dims)
        channels = (in_channels, out_channels // groups) if self.is_transposed else (out_channels, in_channels // groups)
        self.weight = _empty(*channels, *self.kernel_size)
        self.register_parameter("bias", _empty(out_channels) if bias else None)
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _margins(self):
        """What F.pad takes for the padding: last dimension first."""
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [part for total in reversed(totals) for part in (total // 2, total - total // 2)]
        sides = (0,) * self.dims if self.padding == "valid" else self.padding
        return [side for side in reversed(sides) for _ in range(2)]

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), self.padding_mode), (0,) * self.dims
        return F._op(f"conv{self.dims}d")(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        out = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if any(self.padding) if not isinstance(self.padding, str) else True:
            out += f", padding={self.padding}"
        return out + ("" if self.bias is not None else ", bias=False")


class _ConvTranspose(_Conv):
    is_transposed = True

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return F._op(f"conv_transpose{self.dims}d")(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        """The output padding that gives the size."""
        sizes = list(output_size)[-self.dims:]
        if len(output_size) not in (self.dims, input.ndim):
            raise ValueError(f"{type(self).__name__}: output_size has {len(output_size)} numbers, expected {self.dims} or {input.ndim}")
        least = [(have - 1) * stride - 2 * padding + dilation * (window - 1) + 1 for have, stride, padding, dilation, window in
                 zip(input.shape[-self.dims:], self.stride, self.padding, self.dilation, self.kernel_size)]
        if any(not low <= size < low + stride for size, low, stride in zip(sizes, least, self.stride)):
            raise ValueError(f"{type(self).__name__}: output_size {sizes} is not between {least} and a stride more")
        return tuple(size - low for size, low in zip(sizes, least))


Conv1d, Conv2d, Conv3d = (type(f"Conv{n}d", (_Conv,), {"dims": n, "__module__": __name__}) for n in (1, 2, 3))
ConvTranspose1d, ConvTranspose2d, ConvTranspose3d = (
    type(f"ConvTranspose{n}d", (_ConvTranspose,), {"dims": n, "__module__": __name__}) for n in (1, 2, 3))


class _BatchNorm(Module):
    ranks = ()

    def __init__(self, num_features: int, eps: float = 1e-5, momentum=0.1, affine: bool = True, track_running_stats: bool = True):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", _full((num_features,), 1) if affine else None)
        self.register_parameter("bias", _full((num_features,), 0) if affine else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", _engine._operator("aten::zeros")((num_features,)) if tracks else None)
        self.register_buffer("running_var", _engine._operator("aten::ones")((num_features,)) if tracks else None)
        self.register_buffer("num_batches_tracked", _engine._make_tensor(0, None) if tracks else None)

    def forward(self, input):
        if input.ndim not in self.ranks:
            raise ValueError(f"{type(self).__name__}: expected a tensor of {' or '.join(map(str, self.ranks))} dimensions, got {input.ndim}")
        factor = self.momentum or 0.0
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        uses_batch = self.training or self.running_mean is None
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, uses_batch, factor, self.eps)

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"


BatchNorm1d, BatchNorm2d, BatchNorm3d = (
    type(f"BatchNorm{n}d", (_BatchNorm,), {"ranks": ranks, "__module__": __name__}) for n, ranks in ((1, (2, 3)), (2, (4,)), (3, (5,))))


class _InstanceNorm(Module):
    dims = 0

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.register_parameter("weight", _full((num_features,), 1) if affine else None)
        self.register_parameter("bias", _full((num_features,), 0) if affine else None)
        tracks = track_running_stats
        self.register_buffer("running_mean", _engine._operator("aten::zeros")((num_features,)) if tracks else None)
        self.register_buffer("running_var", _engine._operator("aten::ones")((num_features,)) if tracks else None)
        self.register_buffer("num_batches_tracked", _engine._make_tensor(0, None) if tracks else None)

    def forward(self, input):
        if input.ndim not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"{type(self).__name__}: expected a tensor of {self.dims + 1} or {self.dims + 2} dimensions, got {input.ndim}")
        uses_input = self.training or not self.track_running_stats
        batch = input if input.ndim == self.dims + 2 else input.unsqueeze(0)
        found = F.instance_norm(batch, self.running_mean, self.running_var, self.weight, self.bias, uses_input, self.momentum, self.eps)
        return found if input.ndim == self.dims + 2 else found.squeeze(0)

    def extra_repr(self):
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


InstanceNorm1d, InstanceNorm2d, InstanceNorm3d = (
    type(f"InstanceNorm{n}d", (_InstanceNorm,), {"dims": n, "__module__": __name__}) for n in (1, 2, 3))


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True):
        super().__init__()
        self.normalized_shape, self.eps = _repeat(normalized_shape, 1), eps
        self.register_parameter("weight", _full(self.normalized_shape, 1) if elementwise_affine else None)
        self.register_parameter("bias", _full(self.normalized_shape, 0) if elementwise_affine else None)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class GroupNorm(Module):
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        super().__init__()
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.register_parameter("weight", _full((num_channels,), 1) if affine else None)
        self.register_parameter("bias", _full((num_channels,), 0) if affine else None)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class Embedding(Module):
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx=None, max_norm=None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, sparse: bool = False):
        super().__init__()
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        self.weight = _empty(num_embeddings, embedding_dim)
        init.normal_(self.weight)
        if padding_idx is not None:
            self.weight.detach()[padding_idx] = 0

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse)

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}"


class Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability must be between 0 and 1, got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input):
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self):
        return f"p={self.p}, inplace={self.inplace}"


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)


def _pool(name: str, function, **defaults):
    """A module that calls function(input, **options)."""

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        options = {**defaults, **dict(zip(defaults, args)), **kwargs}
        for option, value in options.items():
            if option not in defaults:
                raise TypeError(f"{name}() got an unexpected argument '{option}'")
            setattr(self, option, value)

    def forward(self, input):
        return function(input, **{option: getattr(self, option) for option in defaults})

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": __name__})


_MAX = {"kernel_size": None, "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_AVG = {"kernel_size": None, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
MaxPool1d = _pool("MaxPool1d", F.max_pool1d, **_MAX)
MaxPool2d = _pool("MaxPool2d", F.max_pool2d, **_MAX)
MaxPool3d = _pool("MaxPool3d", F.max_pool3d, **_MAX)
AvgPool1d = _pool("AvgPool1d", F.avg_pool1d, **_AVG)
AvgPool2d = _pool("AvgPool2d", F.avg_pool2d, **_AVG, divisor_override=None)
AvgPool3d = _pool("AvgPool3d", F.avg_pool3d, **_AVG, divisor_override=None)
AdaptiveAvgPool1d = _pool("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, output_size=None)
AdaptiveAvgPool2d = _pool("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, output_size=None)
AdaptiveAvgPool3d = _pool("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, output_size=None)
AdaptiveMaxPool1d = _pool("AdaptiveMaxPool1d", F.adaptive_max_pool1d, output_size=None, return_indices=False)
AdaptiveMaxPool2d = _pool("AdaptiveMaxPool2d", F.adaptive_max_pool2d, output_size=None, return_indices=False)
AdaptiveMaxPool3d = _pool("AdaptiveMaxPool3d", F.adaptive_max_pool3d, output_size=None, return_indices=False)
