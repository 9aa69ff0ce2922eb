"""torch.autocast: within it, matrix products and convolutions compute in 16 bits, and what needs more digits in float32."""

from __future__ import annotations

import functools

from tensord.engine import _engine

__all__ = ["autocast", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cpu_enabled", "is_autocast_enabled"]

_DEFAULTS = {"cpu": _engine.bfloat16, "cuda": _engine.float16}


class autocast:
    """A context manager and a decorator. Parameters are cast once in the outermost block; their gradients have their own dtype. Call backward()
    outside of the block. Of the calling thread, and of threads that the engine starts for it."""

    def __init__(self, device_type: str, dtype: _engine.dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None):
        if device_type not in _DEFAULTS:
            raise RuntimeError(f"autocast: expected the device type 'cpu' or 'cuda', got {device_type!r}")
        self.device = device_type
        self.fast_dtype = _DEFAULTS[device_type] if dtype is None else dtype
        if enabled and self.fast_dtype not in (_engine.bfloat16, _engine.float16):
            raise RuntimeError(f"autocast: expected the dtype bfloat16 or float16, got {self.fast_dtype}")
        self._enabled, self._cache_enabled = bool(enabled), cache_enabled
        self._scopes: list = []

    def __enter__(self):
        caches = _engine.is_autocast_cache_enabled() if self._cache_enabled is None else self._cache_enabled
        self._scopes.append(_engine._AutocastScope(self.device, self.fast_dtype, self._enabled, caches))
        return self

    def __exit__(self, *_):
        self._scopes.pop().end()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return function(*args, **kwargs)

        return wrapped


def is_autocast_enabled() -> bool:
    """On CUDA devices."""
    return _engine._autocast_dtype("cuda") is not None


def is_autocast_cpu_enabled() -> bool:
    return _engine._autocast_dtype("cpu") is not None


def get_autocast_gpu_dtype() -> _engine.dtype:
    return _engine._autocast_dtype("cuda") or _DEFAULTS["cuda"]


def get_autocast_cpu_dtype() -> _engine.dtype:
    return _engine._autocast_dtype("cpu") or _DEFAULTS["cpu"]
