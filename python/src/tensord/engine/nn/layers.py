"""Linear layers, dropout, pooling, and layers that change shapes."""

from __future__ import annotations

import math

from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn import init
from tensord.engine.nn._placement import optional_parameter, parameter, placed
from tensord.engine.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d",
    "AvgPool2d", "AvgPool3d", "Bilinear", "Dropout", "Flatten", "Identity", "Linear", "MaxPool1d", "MaxPool2d", "MaxPool3d", "Unflatten",
]


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Module):
    @placed
    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._make_parameters(bias)

    def _make_parameters(self, bias: bool) -> None:
        self.weight = parameter(self.out_features, self.in_features)
        self.register_parameter("bias", optional_parameter(bias, self.out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    @placed
    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = parameter(out_features, in1_features, in2_features)
        self.register_parameter("bias", optional_parameter(bias, out_features))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.in1_features)
        for tensor in (self.weight, self.bias):
            if tensor is not None:
                init.uniform_(tensor, -bound, bound)

    def forward(self, input1, input2):
        return aten("bilinear")(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


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

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input):
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


def _pool(name: str, function, shown, **defaults):
    """Makes a module class that calls function(input, **options). Its first option is required. `shown`: options in its
    repr."""
    first = next(iter(defaults))

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        if len(args) > len(defaults):
            raise TypeError(f"{name}() takes {len(defaults)} arguments, got {len(args)}")
        given = {**dict(zip(defaults, args)), **kwargs}
        for option in given:
            if option not in defaults:
                raise TypeError(f"{name}() got an unexpected argument '{option}'")
        if first not in given:
            raise TypeError(f"{name}() missing 1 required positional argument: '{first}'")
        for option, default in defaults.items():
            setattr(self, option, given.get(option, default))
        if "stride" in defaults and self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input):
        return function(input, **{option: getattr(self, option) for option in defaults})

    def extra_repr(self):
        return ", ".join(f"{option}={getattr(self, option)}" for option in shown)

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__module__": __name__})


_MAX = {"kernel_size": None, "stride": None, "padding": 0, "dilation": 1, "return_indices": False, "ceil_mode": False}
_MAX_SHOWN = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
_AVG = {"kernel_size": None, "stride": None, "padding": 0, "ceil_mode": False, "count_include_pad": True}
_AVG_SHOWN = ("kernel_size", "stride", "padding")
MaxPool1d = _pool("MaxPool1d", F.max_pool1d, _MAX_SHOWN, **_MAX)
MaxPool2d = _pool("MaxPool2d", F.max_pool2d, _MAX_SHOWN, **_MAX)
MaxPool3d = _pool("MaxPool3d", F.max_pool3d, _MAX_SHOWN, **_MAX)
AvgPool1d = _pool("AvgPool1d", F.avg_pool1d, _AVG_SHOWN, **_AVG)
AvgPool2d = _pool("AvgPool2d", F.avg_pool2d, _AVG_SHOWN, **_AVG, divisor_override=None)
AvgPool3d = _pool("AvgPool3d", F.avg_pool3d, _AVG_SHOWN, **_AVG, divisor_override=None)
_SIZE = ("output_size",)
AdaptiveAvgPool1d = _pool("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, _SIZE, output_size=None)
AdaptiveAvgPool2d = _pool("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, _SIZE, output_size=None)
AdaptiveAvgPool3d = _pool("AdaptiveAvgPool3d", F.adaptive_avg_pool3d, _SIZE, output_size=None)
AdaptiveMaxPool1d = _pool("AdaptiveMaxPool1d", F.adaptive_max_pool1d, _SIZE, output_size=None, return_indices=False)
AdaptiveMaxPool2d = _pool("AdaptiveMaxPool2d", F.adaptive_max_pool2d, _SIZE, output_size=None, return_indices=False)
AdaptiveMaxPool3d = _pool("AdaptiveMaxPool3d", F.adaptive_max_pool3d, _SIZE, output_size=None, return_indices=False)
