"""Methods of Tensor written in Python. The binding adds those of registered operators."""

from __future__ import annotations

from tensord.engine import _copying, _engine, _functions, _interchange, _python_methods, _printing
from tensord.engine._engine import Tensor


def install(tensor_class) -> None:
    for name, function in _METHODS.items():
        setattr(tensor_class, name, function)
    _python_methods.install(tensor_class)
    _engine._add_methods(tensor_class)


def _converter(dtype):
    def convert(self, memory_format=None):
        return self.to(dtype) if memory_format is None else self.to(dtype=dtype, memory_format=memory_format)

    convert.__doc__ = f"As .to({dtype})."
    return convert


def _type(self, dtype=None):
    if dtype is None:
        return f"engine.{self.dtype.name}"
    return self.to(dtype)


def cuda_device(device):
    """The argument of cuda(): none, an index, or a device."""
    return "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device


def _cuda(self, device=None):
    return self.to(cuda_device(device))


def _format(self, spec: str) -> str:
    if self.ndim == 0:
        return self.item().__format__(spec)
    return str(self) if not spec else object.__format__(self, spec)


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad: bool = False):
    return _functions.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _array_namespace(self, *, api_version=None):
    from tensord.engine import array_api

    if api_version is not None and not "2021.12" <= api_version <= array_api.__array_api_version__:
        raise ValueError(f"__array_namespace__: version {api_version} of the array API is not there")
    return array_api


def _to_device(self, device, /, *, stream=None):
    if stream is not None:
        raise ValueError("to_device: streams are not there")
    return self.to(device)


def _reversed(self):
    return self if self.ndim == 0 else self.flip(0)


def _dir(self):
    return sorted(set(dir(type(self))))


_METHODS = {
    **_interchange.METHODS,
    "__repr__": _printing.tensor_repr,
    "__str__": _printing.tensor_repr,
    "__format__": _format,
    **_copying.METHODS,
    "__array_namespace__": _array_namespace,
    "to_device": _to_device,
    "__complex__": lambda self: complex(self.item()),
    "__reversed__": _reversed,
    "__dir__": _dir,
    "float": _converter(_engine.float32), "double": _converter(_engine.float64), "half": _converter(_engine.float16),
    "bfloat16": _converter(_engine.bfloat16), "int": _converter(_engine.int32), "long": _converter(_engine.int64),
    "short": _converter(_engine.int16), "char": _converter(_engine.int8), "byte": _converter(_engine.uint8),
    "bool": _converter(_engine.bool), "cfloat": _converter(_engine.complex64), "cdouble": _converter(_engine.complex128),
    "type": _type,
    "cuda": _cuda,
    "new_tensor": _new_tensor,
    "nonzero": _functions.nonzero,
    "norm": _functions.norm,
    "split": _functions.split,
    "unique": _functions.unique,
    "unique_consecutive": _functions.unique_consecutive,
}
