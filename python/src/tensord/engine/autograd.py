"""Gradients: backward and grad, custom functions, and gradient checks."""

from __future__ import annotations

import functools
from typing import Any

from tensord.engine import _autograd_functional as functional
from tensord.engine import _autograd_graph as graph
from tensord.engine import _engine
from tensord.engine._engine import Node, RemovableHandle, is_anomaly_check_nan_enabled, is_anomaly_enabled
from tensord.engine._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function", "Node", "RemovableHandle", "backward", "detect_anomaly", "enable_grad", "function", "functional", "grad", "gradcheck",
    "gradgradcheck", "graph", "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "no_grad", "once_differentiable",
    "set_detect_anomaly", "set_grad_enabled",
]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph: bool = False, inputs=None) -> None:
    """Adds the gradients of `tensors` to the leaves that they depend on."""
    _engine._backward(tensors, grad_tensors, retain_graph, create_graph, inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph: bool = False, allow_unused: bool = False):
    """Returns the gradients of `outputs` with respect to `inputs` as a tuple, without accumulating them in `grad`."""
    return _engine._grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)


class FunctionCtx(_engine._FunctionContext):
    """Passes state from forward to backward. Further attributes may be set on it."""

    @property
    def needs_input_grad(self):
        return tuple(self._needs_input_grad(i) for i in range(self._arguments))


class Function:
    """A custom function: define the static methods forward(ctx, …) and backward(ctx, *grads), and call apply(…)."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a Function must have a static method forward(ctx, ...)")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a Function must have a static method backward(ctx, ...) to be differentiated")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """If overridden, forward takes no ctx, and this method gets forward's inputs and output."""
        raise NotImplementedError("setup_context is not implemented")

    @classmethod
    def apply(cls, *args, **kwargs) -> Any:
        called: Any = cls
        if cls.setup_context is not Function.setup_context:
            args = _bound(cls.forward, args, kwargs)
            called = _Called(cls, lambda ctx, *given: _forward_and_setup(cls, ctx, given))
        elif kwargs:
            called = _Called(cls, lambda ctx, *given: cls.forward(ctx, *given, **kwargs))
        ctx = FunctionCtx()
        ctx._arguments = len(args)
        return _engine._apply_function(called, ctx, *args)


class _Called:
    """A Function whose forward is called in another way."""

    def __init__(self, function, forward):
        self.__name__, self.forward, self.backward = function.__name__, forward, function.backward


def _bound(forward, args, kwargs) -> tuple:
    import inspect

    found = inspect.signature(forward).bind(*args, **kwargs)
    found.apply_defaults()
    return found.args


def _forward_and_setup(function, ctx, inputs):
    output = function.forward(*inputs)
    function.setup_context(ctx, inputs, output)
    return output


def once_differentiable(backward_function):
    """Marks a backward that cannot be differentiated again."""

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
    """Called as a function, sets anomaly mode; as a context, sets it for the block. Slow, because nodes record where
    they were created."""

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


def _real(tensor):
    return _engine._operator("aten::view_as_real")(tensor) if tensor.dtype.is_complex else tensor


def _parts(tensor):
    """Real and imaginary parts as a leaf."""
    return _real(tensor.detach()).requires_grad_(tensor.requires_grad)


def _of_tensors(function, inputs):
    """The function restricted to its tensor arguments, and these. Complex tensors become pairs of real ones."""
    arguments = _as_list(inputs)
    complexes = [isinstance(item, _engine.Tensor) and item.dtype.is_complex for item in arguments]
    arguments = [_parts(item) if is_complex else item for item, is_complex in zip(arguments, complexes)]
    places = [i for i, item in enumerate(arguments) if isinstance(item, _engine.Tensor)]

    def call(*tensors):
        given = list(arguments)
        for place, item in zip(places, tensors):
            given[place] = _engine._operator("aten::view_as_complex")(item) if complexes[place] else item
        result = function(*given)
        results = [result] if isinstance(result, _engine.Tensor) else list(result)
        return [_real(item) for item in results if isinstance(item, _engine.Tensor)]

    return call, [arguments[i] for i in places]


def gradcheck(func, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True) -> bool:
    """Compares gradients with finite differences, in float64 or complex128."""
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
    """Does the same for second-order gradients."""
    call, tensors = _of_tensors(func, inputs)
    given = None if grad_outputs is None else [_real(item) for item in _as_list(grad_outputs)]
    try:
        _engine._gradgradcheck(call, tensors, given, eps, atol, rtol, nondet_tol)
    except _engine.FailedPreconditionError:
        if raise_exception:
            raise
        return False
    return True
