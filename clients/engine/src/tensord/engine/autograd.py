"""Gradients: backward and grad, functions with a backward of their own, and checks."""

from __future__ import annotations

import functools
from typing import Any

from tensord.engine import _autograd_functional as functional
from tensord.engine import _autograd_graph as graph
from tensord.engine import _engine
from tensord.engine._engine import Node, RemovableHandle
from tensord.engine._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function", "Node", "RemovableHandle", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph: bool = False, inputs=None) -> None:
    """Adds the gradients of `tensors` to the leaves they hang on."""
    _engine._backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph: bool = False, allow_unused: bool = False):
    """The gradients of `outputs` with respect to `inputs`, a tuple; they are added up nowhere."""
    return _engine._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)


class FunctionCtx(_engine._FunctionContext):
    """What forward hands to backward. Other attributes may be set on it."""

    @property
    def needs_input_grad(self):
        return tuple(self._needs_input_grad(i) for i in range(self._arguments))


class Function:
    """A function with a backward of its own: static methods forward(ctx, …) and backward(ctx, *grads); call apply(…)."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a Function must have a static method forward(ctx, ...)")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a Function must have a static method backward(ctx, ...) to be differentiated")

    @classmethod
    def apply(cls, *args) -> Any:
        ctx = FunctionCtx()
        ctx._arguments = len(args)
        return _engine._apply_function(cls, ctx, *args)


def once_differentiable(backward_function):
    """Marks a backward whose own gradient is not to be asked for."""

    @functools.wraps(backward_function)
    def wrapped(ctx, *grads):
        return backward_function(ctx, *grads)

    wrapped._is_once_differentiable = True
    return wrapped


class function:  # noqa: N801: torch.autograd.function.once_differentiable
    once_differentiable = staticmethod(once_differentiable)
    Function = Function
    FunctionCtx = FunctionCtx


class set_detect_anomaly:
    """As a function sets anomaly mode; as a context only for its block. Slow: nodes remember where they were made."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self._scope = _engine._AnomalyScope(mode, check_nan)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._scope.end()


class detect_anomaly(set_detect_anomaly):
    def __init__(self, check_nan: bool = True):
        super().__init__(True, check_nan)


def _as_list(inputs):
    return [inputs] if isinstance(inputs, _engine.Tensor) else list(inputs)


def _of_tensors(function, inputs):
    """The function of the tensors among its arguments alone, and those."""
    arguments = _as_list(inputs)
    places = [i for i, item in enumerate(arguments) if isinstance(item, _engine.Tensor)]

    def call(*tensors):
        given = list(arguments)
        for place, item in zip(places, tensors):
            given[place] = item
        result = function(*given)
        results = [result] if isinstance(result, _engine.Tensor) else list(result)
        return [item for item in results if isinstance(item, _engine.Tensor)]

    return call, [arguments[i] for i in places]


def gradcheck(func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True) -> bool:
    """Whether gradients are what finite differences say, in float64."""
    call, tensors = _of_tensors(func, inputs)
    try:
        _engine._gradcheck(call, tensors, eps, atol, rtol, nondet_tol, check_undefined_grad)
    except _engine.FailedPreconditionError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func, inputs, grad_outputs=None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  raise_exception: bool = True, nondet_tol: float = 0.0) -> bool:
    """The same for the gradients' own gradients."""
    call, tensors = _of_tensors(func, inputs)
    given = None if grad_outputs is None else _as_list(grad_outputs)
    try:
        _engine._gradgradcheck(call, tensors, given, eps, atol, rtol, nondet_tol)
    except _engine.FailedPreconditionError:
        if raise_exception:
            raise
        return False
    return True
