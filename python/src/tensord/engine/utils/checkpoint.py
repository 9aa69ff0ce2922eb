"""torch.utils.checkpoint: activations that are computed again in the backward pass instead of kept. Always with the meaning of
`use_reentrant=False`: any arguments and results, keywords, and gradients with autograd.grad."""

from __future__ import annotations

from typing import Any, Callable

from tensord.engine import _engine

__all__ = ["checkpoint", "checkpoint_sequential"]


def checkpoint(function: Callable, *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """function(*args, **kwargs), of which the backward pass keeps the arguments alone. It runs once more in the backward pass, with the random
    numbers (unless preserve_rng_state is False) and the autocast of this call, and must do the same then."""
    if use_reentrant:
        raise ValueError("checkpoint: only use_reentrant=False is implemented; its gradients are the same")
    scope = _engine._CheckpointScope(lambda: function(*args, **kwargs), preserve_rng_state)
    try:
        return function(*args, **kwargs)
    finally:
        scope.end()


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True) -> Any:
    """Runs functions (a Sequential, or a list) one after the other in that many segments, of which all but the last are checkpointed."""
    modules = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not 0 < segments <= len(modules):
        raise ValueError(f"checkpoint_sequential: expected 1 to {len(modules)} segments, got {segments}")

    def run(part: list) -> Callable:
        def forward(value: Any) -> Any:
            for module in part:
                value = module(value)
            return value

        return forward

    size = len(modules) // segments
    for first in range(0, size * (segments - 1), size):
        input = checkpoint(run(modules[first:first + size]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return run(modules[size * (segments - 1):])(input)
