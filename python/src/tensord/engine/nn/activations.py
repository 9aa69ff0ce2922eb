"""Element-wise layers, without parameters except for PReLU."""

from __future__ import annotations

from tensord.engine._operators import aten
from tensord.engine.nn import functional as F
from tensord.engine.nn import init as initial
from tensord.engine.nn._placement import parameter, placed
from tensord.engine.nn.module import Module

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish",
    "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]


def _layer(name: str, function, *parameters, **defaults):
    """Makes a module class that calls function(input, *parameters); the arguments are named and stored as
    attributes."""
    names = list(parameters)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        for i, parameter in enumerate(names):
            value = args[i] if i < len(args) else kwargs.pop(parameter, defaults.get(parameter))
            setattr(self, parameter, value)
        if kwargs or len(args) > len(names):
            raise TypeError(f"{name}() takes {', '.join(names) or 'no arguments'}")

    def forward(self, input):
        return function(input, *(getattr(self, parameter) for parameter in names))

    def extra_repr(self):
        return ", ".join(f"{parameter}={getattr(self, parameter)}" for parameter in names if getattr(self, parameter) is not False)

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "extra_repr": extra_repr, "__module__": __name__})


def _with_inplace(function):
    return lambda input, *args: function(input, *args[:-1], inplace=args[-1])


ReLU = _layer("ReLU", _with_inplace(F.relu), "inplace", inplace=False)
ReLU6 = _layer("ReLU6", _with_inplace(F.relu6), "inplace", inplace=False)
SiLU = _layer("SiLU", _with_inplace(F.silu), "inplace", inplace=False)
Mish = _layer("Mish", _with_inplace(F.mish), "inplace", inplace=False)
SELU = _layer("SELU", _with_inplace(F.selu), "inplace", inplace=False)
Hardswish = _layer("Hardswish", _with_inplace(F.hardswish), "inplace", inplace=False)
Hardsigmoid = _layer("Hardsigmoid", _with_inplace(F.hardsigmoid), "inplace", inplace=False)
ELU = _layer("ELU", _with_inplace(F.elu), "alpha", "inplace", alpha=1.0, inplace=False)
CELU = _layer("CELU", _with_inplace(F.celu), "alpha", "inplace", alpha=1.0, inplace=False)
LeakyReLU = _layer("LeakyReLU", _with_inplace(F.leaky_relu), "negative_slope", "inplace", negative_slope=0.01, inplace=False)
Hardtanh = _layer("Hardtanh", _with_inplace(F.hardtanh), "min_val", "max_val", "inplace", min_val=-1.0, max_val=1.0, inplace=False)
Threshold = _layer("Threshold", _with_inplace(F.threshold), "threshold", "value", "inplace", inplace=False)
GELU = _layer("GELU", F.gelu, "approximate", approximate="none")
GLU = _layer("GLU", lambda x, dim: aten("glu")(x, dim), "dim", dim=-1)
Sigmoid = _layer("Sigmoid", lambda x: x.sigmoid())
Tanh = _layer("Tanh", lambda x: x.tanh())
LogSigmoid = _layer("LogSigmoid", F.logsigmoid)
Softsign = _layer("Softsign", F.softsign)
Softmax = _layer("Softmax", F.softmax, "dim")
LogSoftmax = _layer("LogSoftmax", F.log_softmax, "dim")
Softmin = _layer("Softmin", F.softmin, "dim")
Hardshrink = _layer("Hardshrink", lambda x, lambd: aten("hardshrink")(x, lambd), "lambd", lambd=0.5)
Softshrink = _layer("Softshrink", lambda x, lambd: aten("softshrink")(x, lambd), "lambd", lambd=0.5)
Tanhshrink = _layer("Tanhshrink", F.tanhshrink)
Softplus = _layer("Softplus", lambda x, beta, threshold: aten("softplus")(x, beta, threshold), "beta", "threshold", beta=1, threshold=20)


class PReLU(Module):
    @placed
    def __init__(self, num_parameters: int = 1, init: float = 0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = parameter(num_parameters)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        initial.constant_(self.weight, self.init)

    def forward(self, input):
        return aten("prelu")(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class Softmax2d(Module):
    """Softmax over the channels of each pixel."""

    def forward(self, input):
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected a tensor of 3 or 4 dimensions, got {input.ndim}")
        return F.softmax(input, -3)
