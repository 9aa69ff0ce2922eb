"""First values of parameters, as torch.nn.init draws them. All write in place and give the tensor back."""

from __future__ import annotations

import math

from tensord.engine._grad_mode import no_grad


def calculate_gain(nonlinearity: str, param=None) -> float:
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 0.75
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    raise ValueError(f"calculate_gain: {nonlinearity!r} is not known")


def _fans(tensor):
    if tensor.ndim < 2:
        raise ValueError("init: fan in and fan out need a tensor of at least 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


@no_grad()
def uniform_(tensor, a: float = 0.0, b: float = 1.0):
    return tensor.uniform_(a, b)


@no_grad()
def normal_(tensor, mean: float = 0.0, std: float = 1.0):
    return tensor.normal_(mean, std)


@no_grad()
def constant_(tensor, val: float):
    return tensor.fill_(val)


def zeros_(tensor):
    return constant_(tensor, 0.0)


def ones_(tensor):
    return constant_(tensor, 1.0)


def xavier_uniform_(tensor, gain: float = 1.0):
    fan_in, fan_out = _fans(tensor)
    bound = gain * math.sqrt(2.0 / (fan_in + fan_out)) * math.sqrt(3.0)
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain: float = 1.0):
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)))


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _fans(tensor)[{"fan_in": 0, "fan_out": 1}[mode]]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0  # without a fan there are no elements


def kaiming_uniform_(tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"):
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"):
    return normal_(tensor, 0.0, _kaiming_std(tensor, a, mode, nonlinearity))
