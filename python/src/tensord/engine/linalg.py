"""Linear algebra under torch.linalg's names: the operators linalg_…."""

from tensord.engine import _operator_module

__getattr__, __dir__ = _operator_module.functions(__name__, globals())
