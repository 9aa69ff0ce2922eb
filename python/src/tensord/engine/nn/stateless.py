"""Calls with other tensors than the module's own, and modules without initialization."""

from __future__ import annotations

import inspect
from typing import Any

from tensord.engine.nn import init
from tensord.engine.nn.module import Module


def functional_call(module, parameters_and_buffers: dict, args, kwargs=None) -> Any:
    """Like func.functional_call; `args` is a tuple or a single argument."""
    from tensord.engine import func

    return func.functional_call(module, parameters_and_buffers, args, kwargs)


def skip_init(module_cls, *args, **kwargs):
    """Constructs the module with uninitialized parameters, to be loaded afterwards."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    with init.skipped():
        return module_cls(*args, **kwargs)
