"""Fourier transforms under torch.fft's names: the operators fft_…."""

from tensord.engine import _operator_module

__getattr__, __dir__ = _operator_module.functions(__name__, globals())
