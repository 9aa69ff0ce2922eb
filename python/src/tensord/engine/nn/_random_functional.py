"""Random functions of torch.nn.functional: channel dropouts and Gumbel-softmax."""

from __future__ import annotations

import warnings

from tensord.engine._operators import aten


def _dropped(name: str, input, p: float, training: bool, inplace: bool):
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: the probability must be between 0 and 1, got {p}")
    found = aten(name)(input, p, training)
    return input.copy_(found) if inplace else found


def alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False):
    return _dropped("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False):
    return _dropped("feature_alpha_dropout", input, p, training, inplace)


def _of_one(input, p, training, inplace):
    """For a sample without a batch dimension."""
    found = _dropped("feature_dropout", input.unsqueeze(0), p, training, False).squeeze(0)
    return input.copy_(found) if inplace else found


def dropout1d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    if input.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: expected 2 or 3 dimensions, got {input.ndim}")
    return _dropped("feature_dropout", input, p, training, inplace) if input.ndim == 3 else _of_one(input, p, training, inplace)


def dropout2d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    if input.ndim not in (3, 4):
        warnings.warn(f"dropout2d: expected 3 or 4 dimensions, got {input.ndim}", stacklevel=2)
    return _dropped("feature_dropout", input, p, training, inplace)


def dropout3d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    if input.ndim not in (4, 5):
        warnings.warn(f"dropout3d: expected 4 or 5 dimensions, got {input.ndim}", stacklevel=2)
    return _of_one(input, p, training, inplace) if input.ndim == 4 else _dropped("feature_dropout", input, p, training, inplace)


def gumbel_softmax(logits, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1):
    """A sample of the categories as soft weights; with `hard` one-hot ones, with the gradient of the soft ones."""
    noise = -aten("empty_like")(logits).exponential_().log()
    soft = aten("softmax")((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, True)[1]
    chosen = aten("zeros_like")(logits).scatter_(dim, index, 1.0)
    return chosen - soft.detach() + soft
