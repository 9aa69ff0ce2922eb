"""Padding of the spatial dimensions."""

from __future__ import annotations

from tensord.engine.nn import functional as F
from tensord.engine.nn.module import Module

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d",
    "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


class _Pad(Module):
    dims = 0
    mode = "constant"

    def __init__(self, padding):
        super().__init__()
        self.padding = (padding,) * (2 * self.dims) if isinstance(padding, int) else tuple(padding)
        if len(self.padding) != 2 * self.dims:
            raise ValueError(f"{type(self).__name__}: expected one number or {2 * self.dims}, got {len(self.padding)}")

    def forward(self, input):
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_Pad):
    def forward(self, input):
        return F.pad(input, self.padding, "constant", 0.0)


def _layers(name: str, base: type, **fields):
    return (type(f"{name}{n}d", (base,), {"dims": n, "__module__": __name__, **fields}) for n in (1, 2, 3))


ConstantPad1d, ConstantPad2d, ConstantPad3d = _layers("ConstantPad", _ConstantPad)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _layers("ZeroPad", _ZeroPad)
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _layers("ReflectionPad", _Pad, mode="reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _layers("ReplicationPad", _Pad, mode="replicate")
CircularPad1d, CircularPad2d, CircularPad3d = _layers("CircularPad", _Pad, mode="circular")
