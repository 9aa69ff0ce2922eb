"""TypedStorage: a tensor's memory as elements of its dtype, in memory order."""

from __future__ import annotations

from tensord.engine._engine import Tensor


class TypedStorage:
    """The result of Tensor.storage(). Writes are visible in all tensors over the memory."""

    def __init__(self, tensor: Tensor):
        self._untyped = tensor.untyped_storage()
        count = self._untyped.nbytes() // tensor.dtype.itemsize
        self._flat = tensor.detach().as_strided((count,), (1,), 0)

    @property
    def dtype(self):
        return self._flat.dtype

    @property
    def device(self):
        return self._flat.device

    def __len__(self) -> int:
        return self._flat.numel()

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._flat[index].item()

    def __setitem__(self, index, value) -> None:
        self._flat[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def fill_(self, value) -> "TypedStorage":
        self._flat.fill_(value)
        return self

    def tolist(self) -> list:
        return self._flat.tolist()

    def size(self) -> int:
        return len(self)

    def nbytes(self) -> int:
        return self._untyped.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped.data_ptr()

    def untyped(self):
        return self._untyped

    def __repr__(self):
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"
