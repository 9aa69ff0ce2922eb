"""Memory shared with the server, so that tensors in it are not sent."""

from __future__ import annotations

import mmap
import os
import secrets
import threading
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import numpy.typing as npt

from tensord.errors import InvalidArgumentError, ResourceExhaustedError

_ALIGNMENT = 64  # of arrays: a cache line
_FOLDER = "/dev/shm"


class SharedMemory:
    """A region in /dev/shm from which arrays are allocated sequentially.

    Arrays in it are not sent when they are given to `infer` as inputs or as destinations of outputs. They stay valid
    after the region is unregistered. Allocating arrays is not thread-safe.
    """

    def __init__(self, byte_size: int, name: str = "") -> None:
        if byte_size <= 0:
            raise InvalidArgumentError(f"byte_size: must be above 0, got {byte_size}")
        self.name = name or f"tensord-{os.getpid()}-{secrets.token_hex(6)}"
        self.key = "/" + self.name.strip("/").replace("/", "-")
        self.byte_size = byte_size
        self._used = 0
        file = os.open(_FOLDER + self.key, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            # ftruncate alone would not reserve the memory, and a write to a full /dev/shm would raise SIGBUS.
            os.posix_fallocate(file, 0, byte_size)
            self._memory: npt.NDArray[np.uint8] = np.frombuffer(mmap.mmap(file, byte_size), np.uint8)
        except OSError as error:
            os.unlink(_FOLDER + self.key)
            raise ResourceExhaustedError(f"{_FOLDER}: no room for {byte_size} bytes: {error}") from error
        finally:
            os.close(file)
        self._address: int = self._memory.__array_interface__["data"][0]

    def array(self, shape: Union[int, Sequence[int]], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """Allocates an array in the region, aligned to 64 bytes; it is zero while the region is new."""
        kind = np.dtype(dtype)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        size = int(np.prod(sizes, dtype=np.int64)) * kind.itemsize
        begin = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        if kind.hasobject:
            raise InvalidArgumentError(f"dtype {kind} cannot lie in shared memory")
        if begin + size > self.byte_size:
            raise ResourceExhaustedError(
                f"region {self.name}: {size} bytes wanted, {self.byte_size - min(begin, self.byte_size)} are left")
        self._used = begin + size
        return self._memory[begin:begin + size].view(kind).reshape(sizes)

    def put(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Copies the values into a new array in the region."""
        source = np.asarray(values)
        out = self.array(source.shape, source.dtype)
        out[...] = source
        return out

    def reset(self) -> None:
        """Starts allocation from the beginning again; existing arrays would share their memory with new ones."""
        self._used = 0

    def offset_of(self, array: npt.NDArray[Any]) -> Optional[int]:
        """Offset of the array in the region; None if it is elsewhere or not contiguous."""
        offset: int = array.__array_interface__["data"][0] - self._address
        is_inside = 0 <= offset and offset + array.nbytes <= self.byte_size
        return offset if is_inside and array.flags.c_contiguous and array.nbytes > 0 else None

    def unlink(self) -> None:
        """Removes the name. The memory is freed with the last array and the server's mapping."""
        try:
            os.unlink(_FOLDER + self.key)
        except FileNotFoundError:
            pass


@dataclass(frozen=True)
class Place:
    """The location of a tensor in shared memory, as a request describes it."""

    region: str
    offset: int
    byte_size: int


class Regions:
    """The regions that a client has registered. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._regions: Dict[str, SharedMemory] = {}
        self._snapshot: Tuple[SharedMemory, ...] = ()

    def add(self, region: SharedMemory) -> None:
        with self._lock:
            self._regions[region.name] = region
            self._snapshot = tuple(self._regions.values())

    def remove(self, region: SharedMemory) -> None:
        with self._lock:
            self._regions.pop(region.name, None)
            self._snapshot = tuple(self._regions.values())

    def find(self, array: npt.NDArray[Any]) -> Optional[Place]:
        for region in self._snapshot:
            offset = region.offset_of(array)
            if offset is not None:
                return Place(region.name, offset, array.nbytes)
        return None
