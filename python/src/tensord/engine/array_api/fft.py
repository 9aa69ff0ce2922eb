"""Fourier transforms."""

from __future__ import annotations

from tensord import engine
from tensord.engine import Tensor

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]


def _of_one(name: str):
    call = engine._engine._operator("aten::fft_" + name)

    def function(x, /, *, n=None, axis=-1, norm="backward") -> Tensor:
        return call(x, n, axis, norm)

    function.__name__ = function.__qualname__ = name
    return function


def _of_many(name: str):
    call = engine._engine._operator("aten::fft_" + name)

    def function(x, /, *, s=None, axes=None, norm="backward") -> Tensor:
        return call(x, s, axes, norm)

    function.__name__ = function.__qualname__ = name
    return function


globals().update({name: _of_one(name) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")})
globals().update({name: _of_many(name) for name in ("fftn", "ifftn", "rfftn", "irfftn")})


def fftfreq(n, /, *, d=1.0, dtype=None, device=None) -> Tensor:
    return engine.fft_fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None) -> Tensor:
    return engine.fft_rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x, /, *, axes=None) -> Tensor:
    return engine.fft_fftshift(x, axes)


def ifftshift(x, /, *, axes=None) -> Tensor:
    return engine.fft_ifftshift(x, axes)
