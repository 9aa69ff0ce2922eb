"""torch.nn.functional.embedding_bag."""

from __future__ import annotations

from tensord.engine._grad_mode import no_grad
from tensord.engine._operators import aten

_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(input, weight, offsets=None, max_norm=None, norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
                  sparse: bool = False, per_sample_weights=None, include_last_offset: bool = False, padding_idx=None):
    """Sums, means or maxima of rows of `weight`. Each row of a 2-D input is a bag; in a 1-D input, bags begin at
    `offsets`."""
    if mode not in _MODES:
        raise ValueError(f"mode has to be one of sum, mean or max, got {mode!r}")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None:
        if mode != "sum":
            raise NotImplementedError(f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode={mode!r})")
        if per_sample_weights.shape != input.shape:
            raise ValueError(f"embedding_bag: per_sample_weights should have the shape of input, {tuple(input.shape)}, "
                             f"got {tuple(per_sample_weights.shape)}")
        per_sample_weights = per_sample_weights.reshape(-1)
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as its rows are the bags")
        rows, width = input.shape
        offsets = aten("arange")(rows, dtype=input.dtype, device=input.device) * width
        if include_last_offset:  # the end of the last bag
            offsets = aten("cat")([offsets, aten("full")((1,), rows * width, dtype=input.dtype, device=input.device)])
        input = input.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    elif offsets is None or offsets.ndim != 1:
        raise ValueError(f"offsets has to be a 1D Tensor but got {'None' if offsets is None else f'{offsets.ndim} dimensions'}")
    if max_norm is not None:
        with no_grad():
            aten("embedding_renorm_")(weight.detach(), input, max_norm, norm_type)
    return aten("embedding_bag.padding_idx")(weight, input, offsets, scale_grad_by_freq, _MODES[mode], sparse, per_sample_weights,
                                             include_last_offset, padding_idx)[0]
