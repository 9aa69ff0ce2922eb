"""Device and dtype of the tensors that layers create: the arguments `device` and `dtype` of their __init__.

A layer's __init__ takes both as arguments and is decorated with `placed`; `parameter` and `buffer` then use them.
Layers created inside inherit them unless they are given others.
"""

from __future__ import annotations

import functools
import threading
from typing import Callable, TypeVar

from tensord.engine import _engine
from tensord.engine.nn.module import Parameter

_Init = TypeVar("_Init", bound=Callable[..., None])


class _Place(threading.local):
    device = None
    dtype = None


_place = _Place()


def placed(init: _Init) -> _Init:
    code = init.__code__
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    at_device, at_dtype = (names.index(name) if name in names[:code.co_argcount] else len(names) for name in ("device", "dtype"))

    @functools.wraps(init)
    def run(*args, **kwargs):
        device = args[at_device] if len(args) > at_device else kwargs.get("device")
        dtype = args[at_dtype] if len(args) > at_dtype else kwargs.get("dtype")
        if device is None and dtype is None:
            return init(*args, **kwargs)
        before = _place.device, _place.dtype
        if device is not None:
            _place.device = device
        if dtype is not None:
            _place.dtype = dtype
        try:
            return init(*args, **kwargs)
        finally:
            _place.device, _place.dtype = before

    return run  # type: ignore[return-value]


def place() -> dict:
    """Keyword arguments for factory operators."""
    return {"device": _place.device, "dtype": _place.dtype}


def empty(*shape: int):
    return _engine._operator("aten::empty")(shape, **place())


def parameter(*shape: int) -> Parameter:
    """An uninitialized parameter."""
    return Parameter(empty(*shape))


def optional_parameter(condition: bool, *shape: int):
    return parameter(*shape) if condition else None


def buffer(name: str, *shape: int):
    """A buffer of this shape, made by a factory operator (zeros, ones)."""
    return _engine._operator("aten::" + name)(shape, **place())


def counter():
    """An int64 zero, whatever the layer's dtype."""
    return _engine._operator("aten::zeros")((), device=_place.device, dtype=_engine.int64)
