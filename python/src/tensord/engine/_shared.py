"""Tensors shared between processes through file descriptors (core/tensor/memory/shared_memory.h), for multiprocessing
and DataLoader.

multiprocessing pickles objects (in queues, pipes and process arguments) with its ForkingPickler, where tensors are
registered here. A tensor in shared memory is sent as its descriptor, and both processes have the same memory; any other
tensor is sent as a copy. The copy does not move the tensor itself to shared memory, because a queue pickles on its own
thread while the program may be using the tensor.
"""

from __future__ import annotations

import os
import sys

from tensord.engine import _engine
from tensord.engine._engine import Tensor

_AS_BYTES = 1 << 18  # smaller copies are sent as bytes, which is cheaper than sending a descriptor
_REDUCTION = "multiprocessing.reduction"
_reducers = {}


def register(kind, tensor_of=lambda value: value) -> None:
    """Pickles objects of exactly this class as the tensor that `tensor_of` returns."""
    _reducers[kind] = lambda value: _reduce(tensor_of(value))
    if _REDUCTION in sys.modules:
        sys.modules[_REDUCTION].ForkingPickler.register(kind, _reducers[kind])


def install() -> None:
    register(Tensor)
    if _REDUCTION not in sys.modules:
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """Registers with ForkingPickler once multiprocessing is imported. Importing it here would add a tenth to the
    engine's import time."""

    def find_spec(self, name, path, target=None):
        if name != _REDUCTION:
            return None
        import importlib.util

        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_register(module):
            run(module)
            for kind, reducer in _reducers.items():
                module.ForkingPickler.register(kind, reducer)

        spec.loader.exec_module = run_and_register
        return spec


def _reduce(tensor):
    from multiprocessing import context, reduction

    shared = tensor
    if not tensor.is_shared():
        # Descriptors that a new process inherits must stay open until it runs. A copy has none.
        is_starting = context.get_spawning_popen() is not None
        if is_starting or not tensor.is_leaf or tensor.is_meta or tensor.is_sparse or tensor.device.type != "cpu" or tensor.nbytes <= _AS_BYTES:
            return Tensor.__reduce_ex__(tensor, 4)
        shared = _engine._shared_copy(tensor.detach())
    elif not tensor.is_leaf:
        return Tensor.__reduce_ex__(tensor, 4)  # raises with the reason
    file, *place = _engine._share(shared)
    return _open, (reduction.DupFd(file), place, tensor.requires_grad)


def _open(handle, place, requires_grad):
    out = _engine._open_shared(handle.detach(), *place)
    if requires_grad:
        out.requires_grad = True
    return out


def file_of(parts, size: int) -> int:
    """A descriptor of new shared memory of this size, filled with the (offset, buffer) parts, which touch every page.
    The caller closes it."""
    import fcntl

    file = os.memfd_create("tensord", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(file, size)
        for offset, part in parts:
            while part.nbytes:
                written = os.pwrite(file, part, offset)
                part, offset = part[written:], offset + written
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    except BaseException:
        os.close(file)
        raise
    return file


def bytes_of(file: int, size: int):
    """A uint8 tensor over memory that file_of made in another process; takes ownership of the descriptor."""
    return _engine._open_shared(file, size, 0, (size,), (1,), _engine.uint8)
