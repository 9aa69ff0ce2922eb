"""Parameters and buffers, including uninitialized ones."""

from __future__ import annotations

import itertools

from tensord.engine import _engine, _shared
from tensord.engine._engine import Tensor


class Parameter(Tensor):
    """A tensor that is registered as a parameter when it is assigned to a module's attribute."""

    def __init__(self, data, requires_grad: bool = True):
        super().__init__(data.detach() if isinstance(data, Tensor) else data)
        if requires_grad:
            self.requires_grad = True

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __copy__(self):
        return type(self)(self.detach(), self.requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (_PlainTensor(self), self.requires_grad)


class _PlainTensor:
    """Pickles a parameter as a plain tensor."""

    def __init__(self, tensor):
        self._tensor = tensor

    def __reduce_ex__(self, protocol):
        return Tensor(self._tensor.detach()).__reduce_ex__(protocol)


def _rebuild_parameter(data, requires_grad):
    return Parameter(data, requires_grad)


class Buffer(Tensor):
    """A tensor that is registered as a buffer when it is assigned to a module's attribute."""

    persistent = True

    def __init__(self, data, persistent: bool = True):
        super().__init__(data)
        self.persistent = persistent


_shared.register(_PlainTensor, lambda value: value._tensor.detach())
_shared.register(Buffer)


def _refusal(name: str) -> ValueError:
    return ValueError(f"{name}: Attempted to use an uninitialized parameter. A lazy module makes its parameters in its first call; call it once "
                      "before its parameters are used")


class UninitializedTensorMixin:
    """A tensor without a shape: it has a dtype and a device, and every operator refuses it until materialize() is
    called."""

    _becomes: type
    _known = frozenset({"device", "dtype", "requires_grad", "grad", "grad_fn", "is_leaf", "is_sparse", "is_cuda", "layout", "to", "cpu", "cuda", "float",
                        "double", "half", "bfloat16", "data", "share_memory_", "materialize"})

    def __init__(self, requires_grad: bool, device, dtype):
        self._like = _engine._operator("aten::empty")((0,), device=device, dtype=dtype)
        self._requires_grad = requires_grad

    def __getattribute__(self, name: str):
        kind = object.__getattribute__(self, "__class__")
        if name.startswith("_") or name in kind._known or not hasattr(Tensor, name):
            return object.__getattribute__(self, name)
        if name == "shape":
            raise RuntimeError(f"shape: an {kind.__name__} has none yet. Call forward() of its module first")
        raise _refusal(name)

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Allocates uninitialized memory and turns the object into a Parameter or a Buffer."""
        like, requires_grad = self._like, self._requires_grad
        made = _engine._operator("aten::empty")(tuple(shape), device=device or like.device, dtype=dtype or like.dtype)
        Tensor.__init__(self, made)
        del self._like, self._requires_grad
        self.__class__ = self._becomes
        if requires_grad:
            self.requires_grad = True

    def _convert(self, convert):
        self._like = convert(self._like)
        return self

    def share_memory_(self):
        raise RuntimeError("share_memory_: Can't share memory on an uninitialized parameter or buffer. Call forward() of its module first")

    __hash__ = object.__hash__

    def __repr__(self):
        return f"<{type(self).__name__}>"

    __str__ = __repr__

    def __format__(self, spec: str):
        return format(repr(self), spec)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._again()
        return memo[id(self)]

    def __copy__(self):
        return self._again()

    def _again(self):
        kind, arguments = self.__reduce_ex__(0)
        return kind(*arguments)

    def __reduce_ex__(self, protocol):
        persistence = (self.persistent,) if isinstance(self, Buffer) else ()
        return type(self), (self._requires_grad, str(self._like.device), self._like.dtype, *persistence)


# Python looks these up on the class.
_KEPT = {"__class__", "__getattribute__", "__setattr__", "__delattr__", "__init__", "__new__", "__hash__", "__repr__", "__str__", "__deepcopy__", "__copy__",
         "__reduce_ex__", "__reduce__", "__doc__", "__module__", "__dict__", "__weakref__", "__dir__", "__sizeof__", "__subclasshook__", "__init_subclass__",
         "__getstate__", "__array_priority__", "__format__"}


def _refused(name: str):
    def refuse(self, *args, **kwargs):
        raise _refusal(name.strip("_"))

    return refuse


for _name in dir(Tensor):
    if _name.startswith("__") and _name not in _KEPT:
        setattr(UninitializedTensorMixin, _name, _refused(_name))


def _forwarded(name: str):
    return property(lambda self: getattr(self._like, name))


for _name in ("device", "dtype", "is_sparse", "is_cuda", "layout", "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "data"):
    setattr(UninitializedTensorMixin, _name, _forwarded(_name))
for _name, _value in (("grad", None), ("grad_fn", None), ("is_leaf", True)):
    setattr(UninitializedTensorMixin, _name, property(lambda self, value=_value: value))
setattr(UninitializedTensorMixin, "requires_grad", property(
    lambda self: self._requires_grad, lambda self, value: object.__setattr__(self, "_requires_grad", bool(value))))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    _becomes = Parameter

    def __init__(self, requires_grad: bool = True, device=None, dtype=None):
        super().__init__(requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    _becomes = Buffer

    def __init__(self, requires_grad: bool = False, device=None, dtype=None, persistent: bool = True):
        super().__init__(requires_grad, device, dtype)
        self.persistent = persistent


def is_lazy(tensor) -> bool:
    return isinstance(tensor, UninitializedTensorMixin)


def refuse_lazy(module, name: str) -> None:
    if any(is_lazy(tensor) for tensor in itertools.chain(module.parameters(), module.buffers())):
        raise RuntimeError(f"Modules with uninitialized parameters can't be used with `{name}`. Run a dummy forward pass to correctly initialize "
                           "the modules")
