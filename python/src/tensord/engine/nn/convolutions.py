"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math

from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import optional_parameter, parameter, placed
from tensord.engine.nn.module import Module

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


def _repeat(value, count: int):
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(Module):
    dims = 0
    is_transposed = False

    @placed
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1, groups: int = 1, bias: bool = True,
                 padding_mode: str = "zeros", device=None, dtype=None):
        super().__init__()
        self._set(in_channels, out_channels, kernel_size, stride, padding, 0, groups, dilation, padding_mode)
        self._make_parameters(bias)

    def _set(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, dilation, padding_mode) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"padding_mode {padding_mode!r} is not known; there are {', '.join(_PADDING_MODES)}")
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{type(self).__name__}: {in_channels} and {out_channels} channels are not divisible by {groups} groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"{type(self).__name__}: padding {padding!r} is not known; there are numbers, 'same' and 'valid'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride = _repeat(kernel_size, self.dims), _repeat(stride, self.dims)
        self.padding = padding if isinstance(padding, str) else _repeat(padding, self.dims)
        self.dilation, self.output_padding = _repeat(dilation, self.dims), _repeat(output_padding, self.dims)
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")

    def _weight_shape(self) -> tuple:
        channels = (self.in_channels, self.out_channels) if self.is_transposed else (self.out_channels, self.in_channels)
        return (channels[0], channels[1] // self.groups, *self.kernel_size)

    def _make_parameters(self, bias: bool) -> None:
        self.weight = parameter(*self._weight_shape())
        self.register_parameter("bias", optional_parameter(bias, self.out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight.shape[1] * math.prod(self.kernel_size)
        if self.bias is not None and fan_in:
            init.uniform_(self.bias, -1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in))

    def _margins(self):
        """The padding as F.pad takes it, last dimension first."""
        if self.padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [part for total in reversed(totals) for part in (total // 2, total - total // 2)]
        sides = (0,) * self.dims if self.padding == "valid" else self.padding
        return [side for side in reversed(sides) for _ in range(2)]

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._margins(), self.padding_mode), (0,) * self.dims
        return aten(f"conv{self.dims}d")(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        nothing, ones = (0,) * self.dims, (1,) * self.dims
        for option, default in (("padding", nothing), ("dilation", ones), ("output_padding", nothing), ("groups", 1)):
            if getattr(self, option) != default:
                parts.append(f"{option}={getattr(self, option)}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _ConvTranspose(_Conv):
    is_transposed = True

    @placed
    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, output_padding=0, groups: int = 1, bias: bool = True,
                 dilation=1, padding_mode: str = "zeros", device=None, dtype=None):
        Module.__init__(self)
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._set(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, dilation, padding_mode)
        self._make_parameters(bias)

    def forward(self, input, output_size=None):
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return aten(f"conv_transpose{self.dims}d")(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        """The output padding that gives the requested size."""
        sizes = list(output_size)[-self.dims:]
        if len(output_size) not in (self.dims, input.ndim):
            raise ValueError(f"{type(self).__name__}: output_size has {len(output_size)} numbers, expected {self.dims} or {input.ndim}")
        least = [(have - 1) * stride - 2 * padding + dilation * (window - 1) + 1 for have, stride, padding, dilation, window in
                 zip(input.shape[-self.dims:], self.stride, self.padding, self.dilation, self.kernel_size)]
        if any(not low <= size < low + stride for size, low, stride in zip(sizes, least, self.stride)):
            raise ValueError(f"{type(self).__name__}: output_size {sizes} is not between {least} and a stride more")
        return tuple(size - low for size, low in zip(sizes, least))


class Conv1d(_Conv):
    dims = 1


class Conv2d(_Conv):
    dims = 2


class Conv3d(_Conv):
    dims = 3


class ConvTranspose1d(_ConvTranspose):
    dims = 1


class ConvTranspose2d(_ConvTranspose):
    dims = 2


class ConvTranspose3d(_ConvTranspose):
    dims = 3
