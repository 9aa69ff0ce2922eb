"""Converts arrays to the protocol's tensors and back."""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass
from typing import Any, List, Protocol, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from tensord._dlpack import from_dlpack
from tensord._wire import Buffer
from tensord.errors import InternalError, InvalidArgumentError

try:
    from ml_dtypes import bfloat16 as _ml_bfloat16
except ImportError:
    _ml_bfloat16 = None  # type: ignore[assignment,misc,unused-ignore]

Array = npt.NDArray[Any]


class SupportsDLPack(Protocol):
    def __dlpack__(self) -> object: ...

    def __dlpack_device__(self) -> Tuple[int, int]: ...


@dataclass(frozen=True)
class Tensor:
    """Elements and the protocol's name of their type, for types that NumPy lacks: BF16 as its bits in uint16."""

    data: Array
    datatype: str


# What an input may be: arrays of any library with DLPack or NumPy's interfaces, numbers, strings, and lists of those.
TensorLike = Union[npt.ArrayLike, SupportsDLPack, Tensor]

_DTYPES = {
    "BOOL": np.dtype(np.bool_), "UINT8": np.dtype("u1"), "UINT16": np.dtype("<u2"), "UINT32": np.dtype("<u4"),
    "UINT64": np.dtype("<u8"), "INT8": np.dtype("i1"), "INT16": np.dtype("<i2"), "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"), "FP16": np.dtype("<f2"), "FP32": np.dtype("<f4"), "FP64": np.dtype("<f8"),
}
_NAMES = {(dtype.kind, dtype.itemsize): name for name, dtype in _DTYPES.items()}


def bfloat16(values: npt.ArrayLike) -> Tensor:
    """Converts numbers to a BF16 tensor, rounding to nearest, ties to even; for use without ml_dtypes."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
    # Rounding the bits of a NaN could make it infinite.
    return Tensor(np.where(np.isnan(bits.view(np.float32)), (bits >> 16) | 0x40, rounded).astype("<u2"), "BF16")


def datatype_of(dtype: np.dtype[Any]) -> str:
    """The protocol's name of a NumPy dtype."""
    name = _NAMES.get((dtype.kind, dtype.itemsize))
    if name is not None:
        return name
    if dtype.kind in "OSU":
        return "BYTES"
    if dtype.name == "bfloat16":
        return "BF16"
    raise InvalidArgumentError(f"dtype {dtype} has no counterpart in the protocol")


def dtype_of(datatype: str) -> np.dtype[Any]:
    """The NumPy dtype of a result: bfloat16 if ml_dtypes is installed, otherwise float32; object for BYTES."""
    if datatype == "BF16":
        return np.dtype(np.float32) if _ml_bfloat16 is None else np.dtype(_ml_bfloat16)
    if datatype == "BYTES":
        return np.dtype(object)
    if datatype not in _DTYPES:
        raise InternalError(f"the server sent a tensor of the unknown type '{datatype}'")
    return _DTYPES[datatype]


def needs_datatype(value: TensorLike) -> bool:
    """Whether the type depends on the model: lists and numbers have none of their own."""
    return isinstance(value, (bool, int, float, list, tuple))


def to_tensor(value: TensorLike, datatype: str = "") -> Tensor:
    """Converts an input to a little-endian row-major array; lists and numbers become `datatype`.

    Copies only if necessary.
    """
    if isinstance(value, np.ndarray):
        array = np.asarray(value)
        tensor = Tensor(array, datatype_of(array.dtype))
    elif isinstance(value, Tensor):
        tensor = value
    elif needs_datatype(value):
        tensor = _from_list(value, datatype)
    elif isinstance(value, (str, bytes)):
        tensor = Tensor(np.array(value, object), "BYTES")
    elif not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        array = np.asarray(value)
        tensor = Tensor(array, datatype_of(array.dtype))
    else:
        array, is_bfloat16 = from_dlpack(value)
        tensor = Tensor(array, "BF16" if is_bfloat16 else datatype_of(array.dtype))
    if tensor.datatype == "BYTES":
        return tensor
    array = tensor.data
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return tensor if array is tensor.data else Tensor(array, tensor.datatype)


def _from_list(value: Any, datatype: str) -> Tensor:
    try:
        if datatype == "BF16":
            return bfloat16(value)
        array = _as_type(value, dtype_of(datatype)) if datatype else np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(f"the values do not make a tensor of {datatype or 'any type'}: {error}") from error
    if array.dtype.kind in "SU":
        array = np.array(value, object)  # NumPy's strings lose zeros at their ends
    return Tensor(array, datatype_of(array.dtype))


def _as_type(value: Any, dtype: np.dtype[Any]) -> Array:
    """Converts to the dtype. Raises for fractions and overflows, which NumPy would truncate, some versions silently."""
    if dtype.kind in "iu":
        wide = np.asarray(value)
        if wide.size > 0 and wide.dtype.kind not in "biu":
            raise ValueError(f"whole numbers are wanted, got {wide.dtype}")
        limits = np.iinfo(dtype)
        if wide.size > 0 and not (limits.min <= int(wide.min()) and int(wide.max()) <= limits.max):
            raise ValueError(f"must be from {limits.min} to {limits.max}")
    return np.asarray(value, dtype)


def to_buffer(tensor: Tensor) -> Buffer:
    """The bytes of a tensor of `to_tensor`: its own memory, or for BYTES each element after its length."""
    if tensor.datatype == "BYTES":
        elements = [_element(item) for item in tensor.data.reshape(-1).tolist()]
        lengths = map(struct.Struct("<I").pack, map(len, elements))
        return b"".join(itertools.chain.from_iterable(zip(lengths, elements)))
    return tensor.data.reshape(-1).view(np.uint8).data


def _element(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, (bytearray, memoryview)):
        return bytes(item)
    return str(item).encode()


def from_buffer(data: memoryview, datatype: str, shape: Sequence[int]) -> Array:
    """The array in `data`, a read-only view if its elements are aligned."""
    if datatype == "BYTES":
        return _split_elements(data, shape)
    dtype = np.dtype("<u2") if datatype == "BF16" else dtype_of(datatype)
    count = math.prod(shape)
    if len(data) != count * dtype.itemsize:
        raise InternalError(f"the server sent {len(data)} bytes for a tensor of {datatype} and shape {list(shape)}")
    array: Array = np.frombuffer(data, dtype, count).reshape(shape)
    if not array.flags.aligned:
        array = array.copy()
    if datatype != "BF16":
        return array
    if _ml_bfloat16 is not None:
        return array.view(_ml_bfloat16)
    return (array.astype("<u4") << 16).view(np.float32)


def size_bytes(data: memoryview, datatype: str, shape: Sequence[int]) -> int:
    """Size of the tensor that starts at `data`."""
    count = math.prod(shape)
    if datatype != "BYTES":
        return count * (2 if datatype == "BF16" else dtype_of(datatype).itemsize)
    position = 0
    for _ in range(count):
        position += 4 + int.from_bytes(data[position:position + 4], "little")
    return position


def _split_elements(data: memoryview, shape: Sequence[int]) -> Array:
    elements: List[bytes] = []
    position = 0
    while position + 4 <= len(data):
        size = int.from_bytes(data[position:position + 4], "little")
        elements.append(bytes(data[position + 4:position + 4 + size]))
        position += 4 + size
    array = np.empty(len(elements), object)
    array[:] = elements
    if position != len(data) or len(elements) != math.prod(shape):
        raise InternalError(f"the server sent {len(elements)} strings in {len(data)} bytes for shape {list(shape)}")
    return array.reshape(shape)


def from_contents(contents: Any, datatype: str, shape: Sequence[int]) -> Array:
    """The array of a response with typed contents, which some servers send instead of raw ones."""
    fields = {
        "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
        "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
        "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", "BYTES": "bytes_contents",
    }
    if datatype not in fields:
        raise InternalError(f"the server sent a tensor of {datatype} outside of its raw contents")
    values = list(getattr(contents, fields[datatype]))
    array = np.empty(len(values), dtype_of(datatype))
    array[:] = values
    return array.reshape(shape)


def texts(array: Array) -> Array:
    """The elements of a BYTES tensor as str."""
    out = np.empty(array.shape, object)
    out.reshape(-1)[:] = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1)]
    return out
