"""engine.jit.trace: runs a function or module once and makes a TorchScript model of it.

The trace has operators with their scalar arguments. Tensors that are neither inputs nor the module's become
constants. Where Python reads sizes (`x.shape`), ranks, dtypes or strides, the model checks them there and refuses others; where it reads
elements (`if x.sum() > 0`), the trace keeps one branch, with a TracerWarning.
"""

from __future__ import annotations

import inspect
import warnings

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._grad_mode import no_grad
from tensord.engine._script_module import ScriptModule, load_written


class TracerWarning(UserWarning):
    """The traced function read elements of a tensor; the trace has their values as constants."""


def _weights(module) -> list:
    """(name, tensor, is a parameter, requires_grad) for each name."""
    out = [(name, tensor, True, tensor.requires_grad) for name, tensor in module.named_parameters()]
    return out + [(name, tensor, False, False) for name, tensor in module.named_buffers()]


def _names(function, count: int) -> list:
    call = function.forward if hasattr(function, "forward") else function
    try:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in inspect.signature(call).parameters.values() if p.kind in kinds][:count]
    except (TypeError, ValueError):
        names = []
    return names + [f"input_{i}" for i in range(len(names), count)]


def _tensors(value) -> list:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    raise TypeError(f"trace: the function gives a {type(value).__name__}; only tensors, and lists, tuples and dicts of them, can come out of a trace")


def trace_function(function, example_inputs, check_trace: bool, rtol: float, atol: float) -> ScriptModule:
    inputs = [example_inputs] if isinstance(example_inputs, Tensor) else list(example_inputs)
    for value in inputs:
        if not isinstance(value, Tensor):
            raise TypeError(f"trace: inputs must be tensors, not {type(value).__name__}")
    # Separate views, so that no two inputs are the same tensor, and a parameter passed as an input is an input.
    inputs = [value.detach() for value in inputs]
    copies = [value.clone() for value in inputs]
    weights = _weights(function) if hasattr(function, "named_parameters") else []
    state = [tensor.detach().clone() for _, tensor, is_parameter, _ in weights if not is_parameter]
    tracing = _engine._Trace(weights, list(zip(_names(function, len(inputs)), inputs)))
    tracing.start()
    try:
        result = function(*inputs)
    finally:
        tracing.stop()
    wanted = _tensors(result)
    if tracing.are_values_read:
        warnings.warn("trace: Python read elements of a tensor (if, int(), .item(), .numpy() …); the trace keeps what they were", TracerWarning, stacklevel=3)
    traced = load_written(lambda path: tracing.save(path, result))
    # The module's buffers are as they were before the run, in it and in the trace.
    buffers = [tensor for _, tensor, is_parameter, _ in weights if not is_parameter]
    with no_grad():
        for tensor, before in zip(buffers, state):
            tensor.copy_(before)
        for tensor, before in zip(traced.buffers(), state):
            tensor.copy_(before)
    if check_trace:
        _check(traced, copies, wanted, rtol, atol)
        with no_grad():
            for tensor, before in zip(traced.buffers(), state):
                tensor.copy_(before)
    return traced


def _check(traced: ScriptModule, inputs: list, wanted: list, rtol: float, atol: float) -> None:
    with no_grad():
        got = _tensors(traced(*inputs))
    for index, (one, other) in enumerate(zip(got, wanted)):
        other = other.detach()
        if one.shape != other.shape or one.dtype is not other.dtype or not _engine._operator("aten::allclose")(one, other, rtol, atol, True):
            warnings.warn(f"trace: output {index} of the trace differs from the function's on the same inputs; does it draw random numbers, or keep "
                          "state outside of tensors?", TracerWarning, stacklevel=4)
            return
