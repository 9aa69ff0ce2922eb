"""Tensors between processes: memory by descriptor (core/tensor/memory/shared_memory.h), for multiprocessing and DataLoader.

What multiprocessing pickles (queues, pipes, arguments of processes) goes through its ForkingPickler, which is told here of tensors: one whose
memory is shared goes as its descriptor, and both processes have the same memory; any other goes as a copy. Such a copy is not made by moving
the tensor itself: a queue pickles on a thread of its own, while the program may compute with the tensor.
"""

from __future__ import annotations

import os
import sys

from tensord.engine import _engine
from tensord.engine._engine import Tensor

_AS_BYTES = 1 << 18  # copies of tensors up to here go as bytes: cheaper than a descriptor and what fetches it
_REDUCTION = "multiprocessing.reduction"
_reducers = {}


def register(kind, tensor_of=lambda value: value) -> None:
    """Objects of exactly this class are pickled for other processes as the tensor that `tensor_of` gives."""
    _reducers[kind] = lambda value: _reduce(tensor_of(value))
    if _REDUCTION in sys.modules:
        sys.modules[_REDUCTION].ForkingPickler.register(kind, _reducers[kind])


def install() -> None:
    register(Tensor)
    if _REDUCTION not in sys.modules:
        sys.meta_path.insert(0, _WhenImported())


class _WhenImported:
    """Tells ForkingPickler when it comes: the engine's import does without multiprocessing, which takes a tenth of its time."""

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
        # What a starting process inherits must stay open until it runs, and a copy does not.
        is_starting = context.get_spawning_popen() is not None
        if is_starting or not tensor.is_leaf or tensor.is_meta or tensor.is_sparse or tensor.device.type != "cpu" or tensor.nbytes <= _AS_BYTES:
            return Tensor.__reduce_ex__(tensor, 4)
        shared = _engine._shared_copy(tensor.detach())
    elif not tensor.is_leaf:
        return Tensor.__reduce_ex__(tensor, 4)  # which says why not
    file, *place = _engine._share(shared)
    return _open, (reduction.DupFd(file), place, tensor.requires_grad)


def _open(handle, place, requires_grad):
    out = _engine._open_shared(handle.detach(), *place)
    if requires_grad:
        out.requires_grad = True
    return out


def file_of(parts, size: int) -> int:
    """The descriptor of new memory of this size with these (offset, buffer) in it, which leave no page out. The caller closes it."""
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
    """A tensor of uint8 over all of what file_of made in another process; takes the descriptor over."""
    return _engine._open_shared(file, size, 0, (size,), (1,), _engine.uint8)
