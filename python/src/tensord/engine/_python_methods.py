"""Methods and properties of Tensor that are aliases of operators, or that read elements in Python."""

from __future__ import annotations

import builtins

from tensord.engine import _engine, _functions, _aliases, _storage
from tensord.engine._engine import Size, Tensor
from tensord.engine._operators import aten


def _where(self, condition, other) -> Tensor:
    """The tensor's elements where the condition holds, `other`'s elsewhere."""
    return aten("where")(condition, self, other)


def _polygamma(self, n: int) -> Tensor:
    return aten("polygamma")(n, self)


def _as_strided_(self, size, stride, storage_offset=None) -> Tensor:
    offset = self.storage_offset() if storage_offset is None else storage_offset
    return self.set_(self.untyped_storage(), offset, list(size), list(stride))


def _resize_as_(self, the_template) -> Tensor:
    return self.resize_(the_template.shape)


def _conj_physical_(self) -> Tensor:
    return self.copy_(aten("conj_physical")(self)) if self.is_complex() else self


def _is_set_to(self, tensor) -> bool:
    """Whether both tensors have the same elements of the same memory."""
    return (self.untyped_storage().data_ptr() == tensor.untyped_storage().data_ptr() and self.storage_offset() == tensor.storage_offset()
            and tuple(self.shape) == tuple(tensor.shape) and self.stride() == tensor.stride())


def _new(self, *args, device=None) -> Tensor:
    """A tensor of the same dtype and device: of the given sizes, uninitialized, or with the values of a list."""
    device = self.device if device is None else device
    if len(args) == 1 and not isinstance(args[0], (int, Size)):
        data = args[0]
        if isinstance(data, Tensor):
            return data.detach().to(device, self.dtype)
        if not hasattr(data, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
        return _functions.tensor(data, dtype=self.dtype, device=device)
    sizes = (tuple(args[0]) if args and isinstance(args[0], Size) else args) or (0,)
    return aten("empty")(sizes, dtype=self.dtype, device=device)


def _as_subclass(self, cls):
    """The same tensor as an instance of the subclass."""
    made = cls.__new__(cls)
    Tensor.__init__(made, self)
    return made


def _typed_storage(self):
    return _storage.TypedStorage(self)


def _to_sparse_coo(self) -> Tensor:
    return self.to_sparse()


def _is_distributed(self) -> bool:
    return False


def _check_elements(name: str, *tensors) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise TypeError(f"{name} is only implemented on CPU tensors")
        if tensor.dtype is not tensors[0].dtype:
            raise TypeError(f"{name}: expected a tensor of {tensors[0].dtype}, got {tensor.dtype}")
    if any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _by_elements(self, name: str, function, *others):
    _check_elements(name, self, *others)
    flat = [aten("broadcast_to")(tensor, self.shape).reshape(-1).tolist() for tensor in others]
    made = [function(*values) for values in zip(self.reshape(-1).tolist(), *flat)]
    return self.copy_(_functions.tensor(made, dtype=self.dtype).reshape(self.shape))


def _apply_(self, callable) -> Tensor:
    """Replaces each element by the function's result for it; slow."""
    return _by_elements(self, "apply_", callable)


def _map_(self, tensor, callable) -> Tensor:
    return _by_elements(self, "map_", callable, tensor)


def _map2_(self, x, y, callable) -> Tensor:
    return _by_elements(self, "map2_", callable, x, y)


def _adjoint(self):
    if self.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
                           + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else ""))
    return self.mH if self.ndim else self.conj()


def _set_part(name: str):
    def set_part(self, value):
        aten(name)(self).copy_(value if isinstance(value, Tensor) else _functions.tensor(value))

    return set_part


METHODS = {
    **_aliases.methods(),
    "where": _where, "polygamma": _polygamma, "as_strided_": _as_strided_, "resize_as_": _resize_as_, "conj_physical_": _conj_physical_,
    "is_set_to": _is_set_to, "new": _new, "as_subclass": _as_subclass, "apply_": _apply_, "map_": _map_, "map2_": _map2_,
    "storage": _typed_storage, "to_sparse_coo": _to_sparse_coo, "is_distributed": _is_distributed,
}
# By name: getter, setter or None, and type for the stubs.
PROPERTIES: dict = {
    "H": (_adjoint, None, Tensor), "mH": (lambda self: aten("mH")(self), None, Tensor), "real": (lambda self: aten("real")(self), _set_part("real"), Tensor),
    "imag": (lambda self: aten("imag")(self), _set_part("imag"), Tensor), "is_cpu": (lambda self: self.device.type == "cpu", None, builtins.bool),
    "is_sparse_csr": (lambda self: self.layout is _engine.sparse_csr, None, builtins.bool),
    "is_nested": (lambda self: False, None, builtins.bool),
}


def install(tensor_class) -> None:
    for name, function in METHODS.items():
        setattr(tensor_class, name, function)
    for name, (getter, setter, _) in PROPERTIES.items():
        setattr(tensor_class, name, property(getter, setter))
