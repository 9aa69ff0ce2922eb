"""Context managers and decorators for autograd modes, which are per thread."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from tensord.engine import _engine


class _Mode:
    """Sets the thread's mode while the block, or the decorated function, runs."""

    def _enter(self) -> int:
        raise NotImplementedError

    def _again(self) -> "_Mode":
        return type(self)()

    def __enter__(self):
        self._before = self._enter()
        return self

    def __exit__(self, *_):
        _engine._restore_grad_mode(self._before)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function):
            return self._generator(function)

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _generator(self, function):
        """The mode applies while the generator runs, but not in its caller."""

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            generator = function(*args, **kwargs)
            value = None
            while True:
                with self._again():
                    try:
                        item = generator.send(value)
                    except StopIteration as stop:
                        return stop.value
                value = yield item

        return wrapped


class no_grad(_Mode):
    """Disables recording for autograd."""

    def __new__(cls, function=None) -> Any:
        self = super().__new__(cls)
        return self(function) if function is not None else self

    def _enter(self):
        return _engine._set_grad_enabled(False)


class enable_grad(_Mode):
    """Enables recording for autograd, also within no_grad."""

    def __new__(cls, function=None) -> Any:
        self = super().__new__(cls)
        return self(function) if function is not None else self

    def _enter(self):
        return _engine._set_grad_enabled(True)


class set_grad_enabled(_Mode):
    """Called as a function, it sets the mode immediately; as a context, it restores the previous mode."""

    def __init__(self, mode: bool):
        self._mode = bool(mode)
        self._before = _engine._set_grad_enabled(self._mode)

    def __enter__(self):
        return self

    def _enter(self):
        return _engine._set_grad_enabled(self._mode)

    def _again(self):
        return set_grad_enabled(self._mode)

    def __call__(self, function):
        _engine._restore_grad_mode(self._before)
        return super().__call__(function)


class inference_mode(_Mode):
    """Like no_grad, but cheaper: tensors created within it can never take part in autograd."""

    def __new__(cls, mode=True) -> Any:
        self = super().__new__(cls)
        if callable(mode):
            self._mode = True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self._mode = bool(mode)

    def _enter(self):
        return _engine._set_inference_mode(self._mode)

    def _again(self):
        return inference_mode(self._mode)
