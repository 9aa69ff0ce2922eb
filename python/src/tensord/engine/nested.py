"""Nested tensors: samples of different sizes in one object.

A NestedTensor holds its samples as separate tensors, so gradients work as usual. It passes isinstance(x, Tensor), but
the engine does not know it: operators delegate to _nested_calls.py, and unsupported ones raise an error with their
name. Use unbind() or to_padded_tensor() for those.
"""

from __future__ import annotations

from typing import Any

from tensord.engine import _engine, _nested_calls
from tensord.engine._engine import Tensor
from tensord.engine._functions import tensor as _tensor

__all__ = ["NestedTensor", "as_nested_tensor", "nested_tensor", "to_padded_tensor"]


def _op(name: str):
    return _engine._operator("aten::" + name)


class NestedTensor:
    """The result of nested_tensor() and as_nested_tensor(). Its first dimension counts the samples."""

    is_nested = True
    is_sparse = is_quantized = is_meta = False
    __hash__ = object.__hash__
    __array_ufunc__ = None  # makes NumPy use the methods of this class for arithmetic

    @property
    def __class__(self):  # for isinstance(n, Tensor)
        return Tensor

    def __reduce__(self):
        return NestedTensor, (self._samples,)

    def __init__(self, samples):
        self._samples = list(samples)
        first = self._samples[0] if self._samples else None
        for i, sample in enumerate(self._samples):
            if sample.ndim != first.ndim:
                raise RuntimeError("All Tensors given to nested_tensor must have the same dimension. Found dimension "
                                   f"{sample.ndim} for Tensor at index {i} and dimension {first.ndim} for Tensor at index 0.")
            if sample.dtype is not first.dtype or sample.device != first.device:
                raise RuntimeError(f"nested_tensor: samples are of {sample.dtype} on {sample.device} and of {first.dtype} on {first.device}")

    # Metadata.

    @property
    def dtype(self):
        return self._samples[0].dtype if self._samples else _engine.get_default_dtype()

    @property
    def device(self):
        return self._samples[0].device if self._samples else _engine.device("cpu")

    @property
    def layout(self):
        return _engine.strided

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def requires_grad(self) -> bool:
        return any(sample.requires_grad for sample in self._samples)

    @property
    def is_leaf(self) -> bool:
        return all(sample.is_leaf for sample in self._samples)

    @property
    def grad(self):
        """The samples' gradients; None if there are none."""
        found = [sample.grad for sample in self._samples]
        if all(grad is None for grad in found):
            return None
        return NestedTensor(_op("zeros_like")(sample) if grad is None else grad for sample, grad in zip(self._samples, found))

    def requires_grad_(self, requires_grad: bool = True) -> "NestedTensor":
        for sample in self._samples:
            sample.requires_grad_(requires_grad)
        return self

    def dim(self) -> int:
        return 1 + (self._samples[0].ndim if self._samples else 0)

    ndim = property(dim)

    def numel(self) -> int:
        return sum(sample.numel() for sample in self._samples)

    def size(self, dim=None):
        if dim is None:
            raise RuntimeError("size: a nested tensor has no sizes, as samples differ; ask for the size of one dimension")
        at = self._dim(dim)
        if at == 0:
            return len(self._samples)
        sizes = {sample.shape[at - 1] for sample in self._samples}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return sizes.pop()

    @property
    def shape(self):
        return self.size()

    def is_contiguous(self) -> bool:
        return all(sample.is_contiguous() for sample in self._samples)

    def is_same_size(self, other) -> bool:
        return isinstance(other, NestedTensor) and [x.shape for x in self._samples] == [x.shape for x in other._samples]

    def _dim(self, dim: int) -> int:
        if not -self.dim() <= dim < self.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {dim})")
        return dim % self.dim()

    def _inner(self, name: str, dim: int) -> int:
        """The dimension within a sample."""
        at = self._dim(dim)
        if at == 0:
            raise RuntimeError(f"{name}: not along dimension 0 of a nested tensor")
        return at - 1

    # Samples.

    def unbind(self, dim: int = 0) -> tuple:
        if self._dim(dim) != 0:
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        return tuple(sample.view_as(sample) for sample in self._samples)

    def to_padded_tensor(self, padding: float, output_size=None) -> Tensor:
        """Pads the samples at the end with `padding`: [samples, …]."""
        if not self._samples:
            raise RuntimeError("to_padded_tensor: a nested tensor without samples has no size")
        sizes = [max(sample.shape[i] for sample in self._samples) for i in range(self.dim() - 1)]
        if output_size is not None:
            if len(output_size) != self.dim():
                raise RuntimeError("Length of output_size does not match NestedTensor dims. Broadcasting is not supported.")
            if output_size[0] != len(self._samples) or any(wanted < size for wanted, size in zip(output_size[1:], sizes)):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            sizes = list(output_size[1:])
        pads = [[part for size, have in zip(reversed(sizes), reversed(sample.shape)) for part in (0, size - have)] for sample in self._samples]
        return _op("stack")([_op("constant_pad_nd")(sample, pad, padding) for sample, pad in zip(self._samples, pads)])

    def __getitem__(self, index):
        first, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(first, int):
            raise NotImplementedError("a nested tensor is indexed by the number of a sample first")
        found = self._samples[first]
        return found[tuple(rest)] if rest else found.view_as(found)

    def select(self, dim: int, index: int):
        if self._dim(dim) == 0:
            return self[index]
        return self._each(lambda sample: sample.select(self._inner("select", dim), index))

    # Operators that run per sample; _nested_calls.py has the others.

    def _engine_call(self, operator, args, kwargs):
        """Called by operators that do not support one of their arguments."""
        return _nested_calls.call(operator, args, kwargs)

    def _each(self, function) -> "NestedTensor":
        return NestedTensor(function(sample) for sample in self._samples)

    def to(self, *args, **kwargs) -> "NestedTensor":
        return self._each(lambda sample: sample.to(*args, **kwargs))

    def transpose(self, dim0: int, dim1: int) -> "NestedTensor":
        a, b = self._inner("transpose", dim0), self._inner("transpose", dim1)
        return self._each(lambda sample: sample.transpose(a, b))

    swapaxes = swapdims = transpose

    def unsqueeze(self, dim: int) -> "NestedTensor":
        if not -self.dim() - 1 <= dim <= self.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [{-self.dim() - 1}, {self.dim()}], but got {dim})")
        if dim in (0, -self.dim() - 1):
            raise RuntimeError("unsqueeze: not along dimension 0 of a nested tensor")
        at = dim - 1 if dim > 0 else dim
        return self._each(lambda sample: sample.unsqueeze(at))

    def squeeze(self, dim: int) -> "NestedTensor":
        at = self._inner("squeeze", dim)
        return self._each(lambda sample: sample.squeeze(at))

    def chunk(self, chunks: int, dim: int = 0) -> tuple:
        at = self._inner("chunk", dim)
        return tuple(NestedTensor(parts) for parts in zip(*(sample.chunk(chunks, at) for sample in self._samples)))

    def matmul(self, other) -> "NestedTensor":
        if not isinstance(other, NestedTensor):
            raise RuntimeError("matmul: Expected both to be nested, but got a nested self and non-nested other")
        if len(self._samples) != len(other._samples):
            raise RuntimeError(f"matmul: {len(self._samples)} and {len(other._samples)} samples")
        return NestedTensor(a @ b for a, b in zip(self._samples, other._samples))

    bmm = __matmul__ = matmul

    def reshape(self, *shape) -> "NestedTensor":
        """The first size is the number of samples; -1 in other places keeps each sample's own size."""
        sizes = list(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else list(shape)
        if not sizes or sizes[0] != len(self._samples):
            raise RuntimeError(f"reshape: the first size of a nested tensor is the number of its samples, {len(self._samples)}")
        if len(sizes) < self.dim():
            raise RuntimeError("reshape: a nested tensor's dimensions cannot be joined")
        return self._each(lambda sample: sample.reshape(
            [sample.shape[i] if size == -1 and i < sample.ndim else size for i, size in enumerate(sizes[1:])]))

    view = reshape

    def copy_(self, src) -> "NestedTensor":
        if not self.is_same_size(src):
            raise RuntimeError("copy_: expected a nested tensor of the same sizes")
        for sample, other in zip(self._samples, src._samples):
            sample.copy_(other)
        return self

    def __bool__(self):
        raise RuntimeError("Boolean value of a nested tensor is ambiguous")

    def __len__(self):
        return self.size()

    def __iter__(self):
        return iter(self.unbind())

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Tensor, name):
            raise _nested_calls.refusal(name)
        raise AttributeError(f"'NestedTensor' object has no attribute '{name}'")

    def __repr__(self):
        samples = ["  " + repr(sample).replace("\n", "\n  ") for sample in self._samples]
        return "nested_tensor([\n" + ",\n".join(samples) + "\n])"


_nested_calls.install(NestedTensor)


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad: bool = False, pin_memory: bool = False) -> NestedTensor:
    """A leaf made from copies of tensors, or of lists of numbers."""
    _check_layout("nested_tensor", layout, pin_memory)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("nested_tensor: Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    dtype = dtype or next((item.dtype for item in tensor_list if isinstance(item, Tensor)), None)
    made = NestedTensor(_tensor(item, dtype=dtype, device=device) for item in tensor_list)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None) -> NestedTensor:
    """Made from tensors, or the rows of one tensor, with their history."""
    _check_layout("as_nested_tensor", layout, False)
    if isinstance(ts, NestedTensor):
        return ts if dtype is None and device is None else ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    if not isinstance(ts, Tensor) and not (isinstance(ts, (list, tuple)) and all(isinstance(item, Tensor) for item in ts)):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    samples = ts.unbind() if isinstance(ts, Tensor) else ts
    return NestedTensor(sample.to(device=device or sample.device, dtype=dtype or sample.dtype) for sample in samples)


def _check_layout(name: str, layout, pin_memory: bool) -> None:
    if layout is not None and layout is not _engine.strided:
        raise NotImplementedError(f"{name}: layout={layout}; nested tensors are strided")
    if pin_memory:
        raise NotImplementedError(f"{name}: pin_memory")


def to_padded_tensor(input: NestedTensor, padding: float, output_size=None) -> Tensor:
    if not isinstance(input, NestedTensor):
        raise NotImplementedError(f"to_padded_tensor: expected a nested tensor, got {type(input).__name__}")
    return input.to_padded_tensor(padding, output_size)
