"""TorchScript: models from files, and from functions and modules by tracing or from their source."""

from __future__ import annotations

import os

from tensord.engine._script_module import Graph, ScriptModule, Submodule, load_module  # noqa: F401
from tensord.engine._tracing import TracerWarning, trace_function

__all__ = ["ScriptModule", "TracerWarning", "load", "save", "script", "trace"]


def load(path, *, trainable: bool = False, optimize: bool = True) -> ScriptModule:
    """Like engine.load, for models only."""
    path = os.fspath(path)
    with open(path, "rb"):
        pass
    return load_module(path, trainable, optimize)


def save(module: ScriptModule, path) -> None:
    module.save(path)


def trace(function, example_inputs, *, check_trace: bool = True, rtol: float = 1e-5, atol: float = 1e-5) -> ScriptModule:
    """The operators that `function` (or a Module) calls for these inputs, as a model: see tensord.engine._tracing."""
    return trace_function(function, example_inputs, check_trace, rtol, atol)


def script(function_or_module) -> ScriptModule:
    """Compiles a function or Module from its Python source, including control flow: see tensord.engine._scripting."""
    from tensord.engine._scripting import script_object

    return script_object(function_or_module)
