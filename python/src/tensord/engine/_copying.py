"""Copying and pickling of tensors."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine._engine import Tensor


def _empty(dtype) -> Tensor:
    return _engine._operator("aten::empty")((0,), dtype=dtype)


def _rebuild(buffer, dtype, shape, requires_grad, strides=None, device=None):
    buffer = memoryview(buffer)
    # Uses out-of-band pickle memory if there is any; otherwise copies.
    out = _engine.frombuffer(bytearray(buffer) if buffer.readonly else buffer, dtype=dtype) if buffer.nbytes else _empty(dtype)
    out = out.reshape(shape) if strides is None else out.as_strided(shape, strides)
    if device is not None:
        out = out.to(device)
    if requires_grad:
        out.requires_grad = True
    return out


def _is_dense(sizes, strides) -> bool:
    """Whether the elements are dense in memory, in any order of dimensions."""
    step = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, sizes) if size != 1):
        if stride != step:
            return False
        step *= size
    return True


def _layout(tensor):
    """The elements in memory order, and the strides that restore the tensor; None if it is contiguous."""
    if tensor.device.type != "cpu" or tensor.is_contiguous() or not tensor.numel():
        return tensor.cpu().contiguous(), None
    shape, strides = tuple(tensor.shape), tensor.stride()
    sizes = [1 if stride == 0 else size for size, stride in zip(shape, strides)]  # expanded dimensions are stored once
    if not _is_dense(sizes, strides):
        return tensor.contiguous(), None
    count = 1
    for size in sizes:
        count *= size
    return tensor.as_strided((count,), (1,)), strides


def _reduce_ex(self, protocol: int):
    if not self.is_leaf:
        raise RuntimeError("pickle: only leaves can be pickled, the tensor has a grad_fn; use tensor.detach()")
    dense, strides = _layout(self.detach())
    raw = memoryview(_engine._as_bytes(dense)) if dense.numel() else b""
    if protocol >= 5 and dense.numel():
        import pickle

        buffer = pickle.PickleBuffer(raw)
    else:
        buffer = bytes(raw)
    device = None if self.device.type == "cpu" else str(self.device)
    return _rebuild, (buffer, self.dtype, tuple(self.shape), self.requires_grad, strides, device)


def _copy(self):
    """A tensor that shares the memory."""
    made = self.detach()
    if self.requires_grad:
        made.requires_grad = True
    return made


def _with_own_storage(tensor, memo) -> Tensor:
    """A copy of the whole storage; within one deepcopy, tensors that shared storage share the copy."""
    if tensor.device.type != "cpu" or tensor.is_sparse or tensor.is_meta or not tensor.is_writable() or not tensor.numel():
        return tensor.clone()
    storage = tensor.untyped_storage()
    key = ("tensord storage", storage.data_ptr(), storage.nbytes())
    if key not in memo:
        memo[key] = _empty(_engine.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).clone()
    return _empty(tensor.dtype).set_(memo[key].untyped_storage(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


def _deepcopy(self, memo):
    if not self.is_leaf:
        raise RuntimeError("deepcopy: only leaves can be copied, the tensor has a grad_fn; use tensor.detach()")
    if id(self) in memo:
        return memo[id(self)]
    made = _with_own_storage(self.detach(), memo)
    if self.requires_grad:
        made.requires_grad = True
    if self.grad is not None:
        made.grad = self.grad.detach().clone()
    memo[id(self)] = made
    return made


METHODS = {"__reduce_ex__": _reduce_ex, "__copy__": _copy, "__deepcopy__": _deepcopy}
