"""Memory shared with NumPy and, through DLPack, with other libraries."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine._engine import Tensor


def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor over the memory of another library's array. copy=True always copies; copy=None copies if the device
    requires it."""
    made = _engine.from_dlpack(ext_tensor)
    if copy:
        made = made.clone()
    if device is None or (device if isinstance(device, _engine.device) else _engine.device(device)) == made.device:
        return made
    if copy is False:
        raise BufferError(f"from_dlpack: copy=False, but {made.device} memory must be copied to {device}")
    return made.to(device)


def _dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if dl_device is not None and tuple(dl_device) != _engine._dlpack_device(self):
        if tuple(dl_device)[0] != 1 or copy is False:
            raise BufferError(f"__dlpack__: a tensor on {self.device} cannot be exported to the device {tuple(dl_device)}"
                              + (" without a copy" if copy is False else ""))
        self = self.cpu()
    return _engine._to_dlpack(self, stream, max_version, dl_device, copy)


def _numpy(self, *, force: bool = False):
    """A NumPy array over the tensor's memory."""
    import numpy

    if force:
        self = self.detach().cpu()
    return numpy.asarray(memoryview(self))


def _array(self, dtype=None, copy=None):
    array = _numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: a copy is needed to make {dtype} of {array.dtype}")
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(self, array, context=None, return_scalar: bool = False):
    """Wraps the results of NumPy functions on tensors: a tensor over the array if its dtype is supported."""
    import numpy

    array = numpy.asarray(array)
    try:
        return _engine.from_numpy(array)
    except _engine.UnimplementedError:
        return array


def _array_ufunc(self, ufunc, method: str, *inputs, **options):
    """NumPy computes ufuncs on arrays and tensors. The result is a tensor unless the destination is an array (out=,
    array += tensor)."""
    import numpy

    out = options.get("out", ())
    if any(isinstance(array, Tensor) for array in out):
        return NotImplemented
    # NumPy scalars count as Python scalars.
    given = [_numpy(x) if isinstance(x, Tensor) else x.item() if isinstance(x, numpy.generic) else x for x in inputs]
    found = getattr(ufunc, method)(*given, **options)
    if found is None or out:
        return found
    return tuple(_array_wrap(self, array) for array in found) if isinstance(found, tuple) else _array_wrap(self, found)


METHODS = {
    "numpy": _numpy, "__array__": _array, "__array_wrap__": _array_wrap, "__array_ufunc__": _array_ufunc, "__array_priority__": 1000,
    "__dlpack__": _dlpack, "__dlpack_device__": lambda self: _engine._dlpack_device(self),
}
