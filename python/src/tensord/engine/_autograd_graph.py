"""Hooks on tensors that are saved for the backward pass, as in torch.autograd.graph."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine._engine import Node

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801: a context
    """Within the context, `pack_hook` is called with each tensor that is saved for backward, and its result is saved
    instead; `unpack_hook` returns the tensor each time a backward pass reads it, with the same shape, dtype and device.
    Of nested contexts the innermost applies."""

    def __init__(self, pack_hook, unpack_hook):
        self._hooks = _engine._saved_tensors_hooks(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        self._hooks.begin()

    def __exit__(self, *_) -> None:
        self._hooks.end()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801: a context
    """Within the context, tensors saved on another device are kept in CPU memory until the backward pass reads them.
    The engine decides what is pinned: `pin_memory` exists for compatibility with PyTorch and must be False."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        if pin_memory:
            raise _engine.UnimplementedError("save_on_cpu: pin_memory=True")
        if device_type != "cuda":
            raise _engine.UnimplementedError(f"save_on_cpu: device_type={device_type!r}")
        self._hooks = _engine._save_on_cpu()
