"""Nested tensors: samples of different sizes in one object.

A NestedTensor holds its samples as tensors of their own, so gradients flow as usual. isinstance() takes it for a Tensor, but the C++ engine does not know it:
operators pass it to _nested_calls.py, which refuses unsupported ones by name; use unbind() or to_padded_tensor() then.
"""

from __future__ import annotations

from tensord.engine import _engine, _nested_calls
from tensord.engine._engine import Tensor
from tensord.engine._functions import tensor as _tensor
from tensord.engine._nested_tensor import NestedTensor

__all__ = ["NestedTensor", "as_nested_tensor", "nested_tensor", "to_padded_tensor"]

_nested_calls.install()


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
