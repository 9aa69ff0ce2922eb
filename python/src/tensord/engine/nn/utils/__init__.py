"""Gradient clipping, and parameters as one vector."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.nn import parametrizations, parametrize, stateless  # noqa: F401
from tensord.engine.nn._fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights  # noqa: F401
from tensord.engine.nn._weight_norms import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm  # noqa: F401
from tensord.engine.nn.parameter import is_lazy
from tensord.engine.nn.stateless import skip_init  # noqa: F401
from tensord.engine.nn.utils import rnn  # noqa: F401


def _list(parameters):
    found = [parameters] if isinstance(parameters, _engine.Tensor) else list(parameters)
    if any(is_lazy(tensor) for tensor in found):
        raise ValueError("nn.utils: a parameter is uninitialized; call its lazy module once first")
    return found


def clip_grad_norm_(parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False):
    """Scales all gradients so that their total norm is at most `max_norm`; returns the norm before scaling."""
    found = _engine._clip_grad_norm_(_list(parameters), float(max_norm), float(norm_type), error_if_nonfinite)
    return _engine._make_tensor(found, None)


def clip_grad_value_(parameters, clip_value: float) -> None:
    _engine._clip_grad_value_(_list(parameters), float(clip_value))


def parameters_to_vector(parameters):
    return _engine._operator("aten::cat")([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vector, parameters) -> None:
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        parameter.data.copy_(vector[begin:end].view(parameter.shape))
        begin = end
