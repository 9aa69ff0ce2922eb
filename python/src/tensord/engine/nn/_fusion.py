"""Folds an eval-mode batch norm into the layer before it."""

from __future__ import annotations

import copy

from tensord.engine import _engine
from tensord.engine._grad_mode import no_grad
from tensord.engine.nn.module import Parameter


@no_grad()
def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps: float, bn_w, bn_b, transpose: bool = False):
    """Weight and bias of the convolution that includes the norm; `transpose` if output channels are the second
    dimension."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


@no_grad()
def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps: float, bn_w, bn_b):
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(weight, bias, mean, variance, eps, scale, shift, dim: int):
    factor = _engine._operator("aten::rsqrt")(variance + eps)
    if scale is not None:
        factor = factor * scale
    shape = [1] * weight.ndim
    shape[dim] = -1
    moved = -mean if bias is None else bias - mean
    new_bias = moved * factor if shift is None else moved * factor + shift
    new_weight = weight * factor.reshape(shape)
    return (Parameter(new_weight.to(weight.dtype), weight.requires_grad),
            Parameter(new_bias.to(weight.dtype), weight.requires_grad if bias is None else bias.requires_grad))


def _fuse(layer, bn, fuse, *more):
    if layer.training or bn.training:
        raise ValueError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError("the norm has no running_mean and running_var")
    made = copy.deepcopy(layer)
    made.weight, made.bias = fuse(layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *more)
    return made


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A copy of the convolution that includes the norm."""
    return _fuse(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear, bn):
    """A copy of the linear layer that includes the norm."""
    return _fuse(linear, bn, fuse_linear_bn_weights)
