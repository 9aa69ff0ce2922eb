"""Special functions under torch.special's names: the operators special_…."""

from tensord.engine import _operator_module

__getattr__, __dir__ = _operator_module.functions(__name__, globals())
