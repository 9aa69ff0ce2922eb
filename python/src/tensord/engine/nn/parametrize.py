"""Parameters and buffers that are computed from others by modules on each access."""

from __future__ import annotations

import collections.abc
import contextlib
import functools

from tensord.engine._engine import Tensor
from tensord.engine._grad_mode import no_grad
from tensord.engine.nn.containers import ModuleDict, ModuleList
from tensord.engine.nn.module import Module, Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations", "transfer_parametrizations_and_params",
           "type_before_parametrizations"]

_values: dict = {}
_depth = 0


@contextlib.contextmanager
def cached():
    """Within the context, each value is computed once."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            _values.clear()


def _register(module: Module, name: str, tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _check_alike(got, want, what: str) -> None:
    """Raises unless it is a tensor of the same dtype and shape."""
    if not isinstance(got, Tensor):
        raise ValueError(f"{what} must return a tensor. Got {type(got).__name__}.")
    if got.dtype is not want.dtype:
        raise ValueError(f"{what} may not change the dtype of the tensor, unless `unsafe` is set: {want.dtype} became {got.dtype}")
    if tuple(got.shape) != tuple(want.shape):
        raise ValueError(f"{what} may not change the shape of the tensor, unless `unsafe` is set: {tuple(want.shape)} became {tuple(got.shape)}")


class ParametrizationList(ModuleList):
    """The modules, applied in order, and the tensors they start from: `original`, or `original0`, `original1`, … if the
    first module's right_inverse() returns several."""

    def __init__(self, modules, original: Tensor, unsafe: bool = False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shown = original.detach().clone()
        with no_grad():
            found = self._inverted(original, is_strict=False)
        self.is_tensor = isinstance(found, Tensor)
        if self.is_tensor:
            if found.dtype is not original.dtype:
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the dtype: {original.dtype} became {found.dtype}")
            if found is not original:
                original.data = found.detach()
            _register(self, "original", original)
        else:
            self._register_several(found, original)
        if not unsafe:
            _check_alike(self(), shown, "A parametrization")

    def _register_several(self, found, original) -> None:
        if not isinstance(found, collections.abc.Sequence):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(found).__name__}")
        for i, tensor in enumerate(found):
            if not isinstance(tensor, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(tensor).__name__}.")
            if isinstance(original, Parameter):
                tensor = Parameter(tensor.detach(), original.requires_grad)
            _register(self, f"original{i}", tensor)
        self.ntensors = len(found)

    def _inverted(self, value, is_strict: bool):
        """The originals for a value. Modules without right_inverse() count as the identity, unless `is_strict`."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                try:
                    value = module.right_inverse(value)
                except NotImplementedError:
                    if is_strict:
                        raise
            elif is_strict:
                raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
        return value

    def originals(self) -> list:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    @no_grad()
    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the modules return the value, as far as possible."""
        found = self._inverted(value, is_strict=True)
        found = [found] if isinstance(found, Tensor) else found
        own = self.originals()
        if not isinstance(found, collections.abc.Sequence) or len(found) != len(own):
            raise ValueError(f"'right_inverse' must return a sequence of {len(own)} tensors. Got {type(found).__name__}"
                             + (f" of length {len(found)}." if isinstance(found, collections.abc.Sized) else "."))
        for i, (tensor, original) in enumerate(zip(found, own)):
            if not isinstance(tensor, Tensor):
                raise ValueError(f"`right_inverse` must return tensors. Got element {i} of type {type(tensor).__name__}")
            if tensor.dtype is not original.dtype:
                raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype}, while the original has dtype {original.dtype}")
        for tensor, original in zip(found, own):
            original.data = tensor.detach().clone()

    def forward(self) -> Tensor:
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


def _lists(module: Module):
    found = module.__dict__.get("_modules", {}).get("parametrizations")
    return found if isinstance(found, ModuleDict) else None


def _value(module: Module, name: str) -> Tensor:
    compute = _lists(module)[name]
    if not _depth:
        return compute()
    key = id(module), name
    if key not in _values:
        _values[key] = compute()
    return _values[key]


def _made(original_class: type):
    return object.__new__(_parametrized_class(original_class))


@functools.lru_cache(maxsize=None)
def _parametrized_class(original: type) -> type:
    """A subclass whose properties compute the tensors."""

    def __getattr__(self, name: str):
        lists = _lists(self)
        return _value(self, name) if lists is not None and name in lists else original.__getattr__(self, name)

    def __setattr__(self, name: str, value):
        lists = _lists(self)
        if lists is not None and name in lists:
            lists[name].right_inverse(value)
        else:
            original.__setattr__(self, name, value)

    def __reduce_ex__(self, protocol):
        return _made, (original,), dict(self.__dict__)

    return type(f"Parametrized{original.__name__}", (original,), {"__getattr__": __getattr__, "__setattr__": __setattr__, "__reduce_ex__": __reduce_ex__,
                                                                 "__module__": original.__module__})


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Replaces `module.tensor_name` by the parametrization's result for it; several are applied in order of
    registration. right_inverse() defines the initial original, and the result of assignments."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            value = getattr(module, tensor_name)
            result = parametrization(value)
            _check_alike(result, value, "A parametrization")
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    _check_alike(parametrization.right_inverse(result), value, "parametrization.right_inverse")
        found = module.parametrizations[tensor_name]
        found.append(parametrization)
        found.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    found = _lists(module)
    return found is not None and (len(found) > 0 if tensor_name is None else tensor_name in found)


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Restores the tensor: with its current value, or, unless `leave_parametrized`, the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    found = module.parametrizations[tensor_name]
    if not found.is_tensor and not leave_parametrized:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    value = getattr(module, tensor_name) if leave_parametrized else None
    if found.is_tensor:
        restored = found.original
        if value is not None:
            restored.data = value.detach()
    else:
        restored = Parameter(value.detach()) if value.requires_grad else value
    del module.parametrizations._modules[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    _register(module, tensor_name, restored)
    return module


def type_before_parametrizations(module: Module) -> type:
    kind = type(module)
    return kind.__bases__[0] if kind is not Module and kind is _parametrized_class(kind.__bases__[0]) else kind


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Module:
    """Copies the parametrizations to the other module, with the same originals."""
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations.keys()):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        found = from_module.parametrizations[name]
        for module in found:
            register_parametrization(to_module, name, module)
        target = to_module.parametrizations[name]
        for part in ["original"] if found.is_tensor else [f"original{i}" for i in range(found.ntensors)]:
            setattr(target, part, getattr(found, part))
    return to_module
