"""Losses of torch.nn.functional that are composed in Python."""

from __future__ import annotations

import math

from tensord.engine._operators import aten


def _reduced(loss, reduction: str):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction!r} is not a reduction; there are none, mean and sum")
    return loss if reduction == "none" else getattr(loss, reduction)()


def gaussian_nll_loss(input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
    shape, of_var = tuple(input.shape), tuple(var.shape)
    if of_var != shape:
        if shape[:-1] == of_var:
            var = var.unsqueeze(-1)
        elif not (shape[:-1] == of_var[:-1] and of_var[-1] == 1):
            raise ValueError(f"gaussian_nll_loss: var of {of_var} is not of the input's size {shape}")
    if (var < 0).any():
        raise ValueError("gaussian_nll_loss: var has negative entries")
    var = var.clone()
    var.detach().clamp_min_(eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def multilabel_soft_margin_loss(input, target, weight=None, reduction: str = "mean"):
    log = aten("log_sigmoid")
    loss = -(target * log(input) + (1 - target) * log(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(input.ndim - 1) / input.shape[-1], reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean"):
    distance = distance_function or aten("pairwise_distance")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0.0), reduction)


def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options=None):
    """cross_entropy of linear(input, linear_weight, linear_bias). Weights are [classes, …, features], logits [N,
    classes, …]."""
    if options is not None:
        raise NotImplementedError("linear_cross_entropy: options must be None; logits are made whole")
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"linear_cross_entropy: expected an input of 1 or 2 dimensions, got {input.ndim}")
    *of_logits, features = linear_weight.shape
    if not of_logits or input.shape[-1] != features:
        raise RuntimeError(f"linear_cross_entropy: input of {tuple(input.shape)} and linear_weight of {tuple(linear_weight.shape)} do not fit")
    if linear_bias is not None and list(linear_bias.shape) != of_logits:
        raise RuntimeError(f"linear_cross_entropy: expected linear_bias of {tuple(of_logits)}, got {tuple(linear_bias.shape)}")
    if len(of_logits) > 1 and input.ndim == 1:
        raise RuntimeError(f"linear_cross_entropy: a linear_weight of {tuple(linear_weight.shape)} needs a batch of inputs")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = aten("linear")(input, linear_weight.reshape(-1, features), bias).reshape([*input.shape[:-1], *of_logits])
    if ignore_index is not None and tuple(target.shape) == tuple(logits.shape):
        raise RuntimeError("linear_cross_entropy: ignore_index is of classes, and the target has probabilities")
    reduction_code = {"none": 0, "mean": 1, "sum": 2}.get(reduction)
    if reduction_code is None:
        raise ValueError(f"{reduction!r} is not a reduction; there are none, mean and sum")
    return aten("cross_entropy_loss")(logits, target, weight, reduction_code, -100 if ignore_index is None else ignore_index, label_smoothing)
