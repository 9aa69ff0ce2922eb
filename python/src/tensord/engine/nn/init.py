"""Parameter initialization, with the same random draws as torch.nn.init. All functions write in place and return the
tensor."""

from __future__ import annotations

import contextlib
import math
import threading
import warnings

from tensord.engine import _engine
from tensord.engine._grad_mode import no_grad

_thread = threading.local()


@contextlib.contextmanager
def skipped():
    """Within the context, initialization in this thread does nothing."""
    before = getattr(_thread, "is_skipped", False)
    _thread.is_skipped = True
    try:
        yield
    finally:
        _thread.is_skipped = before


def _is_skipped() -> bool:
    return getattr(_thread, "is_skipped", False)


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
    if not _is_skipped():
        (_engine._operator("aten::view_as_real")(tensor) if tensor.dtype.is_complex else tensor).uniform_(a, b)
    return tensor


@no_grad()
def normal_(tensor, mean: float = 0.0, std: float = 1.0):
    return tensor if _is_skipped() else tensor.normal_(mean, std)


@no_grad()
def constant_(tensor, val: float):
    return tensor if _is_skipped() else tensor.fill_(val)


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


@no_grad()
def trunc_normal_(tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0):
    """A truncated normal distribution within [a, b], drawn as the quantiles of a uniform one."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn("mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.", stacklevel=3)
    if _is_skipped():
        return tensor
    low, high = (math.erf((bound - mean) / std / math.sqrt(2.0)) for bound in (a, b))
    return tensor.uniform_(low, high).erfinv_().mul_(std * math.sqrt(2.0)).add_(mean).clamp_(a, b)


@no_grad()
def eye_(tensor):
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    tensor.zero_().diagonal().fill_(1)
    return tensor


@no_grad()
def dirac_(tensor, groups: int = 1):
    """Convolution kernels that copy as many input channels as possible."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    count = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    tensor.zero_()
    for group in range(groups):
        for i in range(min(count, tensor.shape[1])):
            tensor[(group * count + i, i, *middle)] = 1
    return tensor


@no_grad()
def orthogonal_(tensor, gain: float = 1):
    """Orthonormal rows or columns, whichever are fewer, of the matrix [first dimension, all others]."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or _is_skipped():
        return tensor
    rows = tensor.shape[0]
    drawn = _engine._operator("aten::empty")((rows, tensor.numel() // rows), dtype=tensor.dtype, device=tensor.device).normal_(0, 1)
    is_wide = rows < drawn.shape[1]
    q, r = _engine._operator("aten::linalg_qr")(drawn.t() if is_wide else drawn)
    q = q * r.diagonal().sign()  # makes the distribution uniform
    tensor.copy_((q.t() if is_wide else q).reshape(tensor.shape))
    return tensor.mul_(gain)


@no_grad()
def sparse_(tensor, sparsity: float, std: float = 0.01):
    """A normal distribution, with this part of each column set to zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if _is_skipped():
        return tensor
    rows, columns = tensor.shape
    tensor.normal_(0, std)
    for column in range(columns):
        tensor[_engine._operator("aten::randperm")(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor
