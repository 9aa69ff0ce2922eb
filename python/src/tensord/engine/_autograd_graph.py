"""Hooks on what is kept for the backward pass, as torch.autograd.graph."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine._engine import Node

__all__ = ["Node", "save_on_cpu", "saved_tensors_hooks"]


class saved_tensors_hooks:  # noqa: N801: a context
    """Inside, `pack_hook` is called with each tensor that is saved for a backward pass, and what it gives is kept in its place; `unpack_hook`
    gives the tensor back, as often as a pass reads it: of the same shape, dtype and device. Of nested ones the inner counts."""

    def __init__(self, pack_hook, unpack_hook):
        self._hooks = _engine._saved_tensors_hooks(pack_hook, unpack_hook)

    def __enter__(self) -> None:
        self._hooks.begin()

    def __exit__(self, *_) -> None:
        self._hooks.end()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801: a context
    """Inside, tensors that are saved on another device lie in the host's memory until the backward pass reads them. What is pinned is
    up to the engine: `pin_memory` is taken for PyTorch's sake and must be False."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        if pin_memory:
            raise _engine.UnimplementedError("save_on_cpu: pin_memory=True")
        if device_type != "cuda":
            raise _engine.UnimplementedError(f"save_on_cpu: device_type={device_type!r}")
        self._hooks = _engine._save_on_cpu()
