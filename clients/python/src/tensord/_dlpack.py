"""Views of other libraries' arrays as NumPy arrays, through DLPack.

NumPy's own `from_dlpack` does not support bfloat16; here its bits are returned as uint16.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Tuple

import numpy as np
import numpy.typing as npt

from tensord.errors import InvalidArgumentError

_CPU, _CUDA_HOST = 1, 3  # DLDeviceType
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6  # DLDataTypeCode
_KINDS = {_INT: "i", _UINT: "u", _FLOAT: "f", _BOOL: "b"}


class _Tensor(ctypes.Structure):
    """DLTensor of dlpack.h, the first member of DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Exported:
    """Exposes a capsule's memory to NumPy and keeps the capsule alive, which owns the memory."""

    def __init__(self, capsule: object, tensor: _Tensor, typestr: str) -> None:
        self._capsule = capsule
        size = int(typestr[2:])
        shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        strides = tuple(tensor.strides[i] * size for i in range(tensor.ndim)) if tensor.strides else None
        self.__array_interface__: Dict[str, Any] = {
            "version": 3, "typestr": typestr, "shape": shape, "strides": strides,
            "data": ((tensor.data or 0) + tensor.byte_offset, True),
        }


def from_dlpack(value: Any) -> Tuple[npt.NDArray[Any], bool]:
    """A read-only array over the memory of `value`, and whether its elements are bits of bfloat16."""
    device = tuple(value.__dlpack_device__())
    if device[0] not in (_CPU, _CUDA_HOST):
        raise InvalidArgumentError(f"the array is on device {device} of DLPack; move it to the CPU first")
    try:
        capsule = value.__dlpack__()
    except (BufferError, RuntimeError) as error:  # such as a tensor that requires a gradient
        raise InvalidArgumentError(f"the array cannot be lent: {error}") from error
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    is_bfloat16 = (tensor.code, tensor.bits) == (_BFLOAT, 16)
    if tensor.lanes != 1 or not (is_bfloat16 or tensor.code in _KINDS):
        raise InvalidArgumentError(f"DLPack type (code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes) has no "
                                   "counterpart in the protocol")
    typestr = "<u2" if is_bfloat16 else f"{'|' if tensor.bits == 8 else '<'}{_KINDS[tensor.code]}{tensor.bits // 8}"
    if 0 in [tensor.shape[i] for i in range(tensor.ndim)]:  # without memory, NumPy cannot make a view
        return np.empty([tensor.shape[i] for i in range(tensor.ndim)], typestr), is_bfloat16
    return np.asarray(_Exported(capsule, tensor, typestr)), is_bfloat16
