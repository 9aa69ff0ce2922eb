"""Modules that expose the operators with one prefix, such as linalg_… in torch.linalg."""

from __future__ import annotations

from tensord.engine import _engine, _aliases


def names(prefix: str) -> list:
    found = {name.removeprefix("aten::") for name in _engine._operator_names() if name.startswith("aten::" + prefix)} | set(_aliases.NAMES)
    return sorted(name.removeprefix(prefix) for name in found if name.startswith(prefix) and not name.endswith("_"))


def functions(module: str, space: dict) -> tuple:
    """__getattr__ and __dir__ for the module with these globals."""
    prefix = module.rpartition(".")[2] + "_"

    def __getattr__(name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            found = _engine._operator(f"aten::{prefix}{name}")
        except AttributeError:
            raise AttributeError(f"module '{module}' has no attribute '{name}'") from None
        space[name] = found
        return found

    def __dir__():
        return names(prefix)

    return __getattr__, __dir__
