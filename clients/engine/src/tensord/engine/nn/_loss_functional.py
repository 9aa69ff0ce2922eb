"""Losses of torch.nn.functional that are composed here."""

from __future__ import annotations

import math

from tensord.engine import _engine


def _op(name: str):
    return _engine._operator("aten::" + name)


def _reduced(loss, reduction: str):
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction!r} is no reduction; there are none, mean and sum")
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
    log = _op("log_sigmoid")
    loss = -(target * log(input) + (1 - target) * log(-input))
    if weight is not None:
        loss = loss * weight
    return _reduced(loss.sum(input.ndim - 1) / input.shape[-1], reduction)


def triplet_margin_with_distance_loss(anchor, positive, negative, *, distance_function=None, margin: float = 1.0, swap: bool = False,
                                      reduction: str = "mean"):
    distance = distance_function or _op("pairwise_distance")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((margin + near - far).clamp_min(0.0), reduction)
