"""Backward hooks of a module: identity functions around it see the incoming and outgoing gradients."""

from __future__ import annotations

from tensord.engine import _engine
from tensord.engine.autograd import Function


class _State:
    def __init__(self, module):
        self.module, self.grad_output, self.has_inputs = module, (), False


class _AtOutputs(Function):
    @staticmethod
    def forward(ctx, state, *tensors):
        ctx.state = state
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        ctx.state.grad_output = grads
        if not ctx.state.has_inputs:
            for hook in ctx.state.module._backward_hooks:
                hook(ctx.state.module, (), grads)
        return (None, *grads)


class _AtInputs(Function):
    @staticmethod
    def forward(ctx, state, *tensors):
        ctx.state = state
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        for hook in ctx.state.module._backward_hooks:
            found = hook(ctx.state.module, grads, ctx.state.grad_output)
            if found is not None:
                grads = found if isinstance(found, tuple) else (found,)
        return (None, *grads)


def _marked(function, state, values):
    """The values, with their tensors passed through the function."""
    places = [i for i, value in enumerate(values) if isinstance(value, _engine.Tensor)]
    if not places:
        return values
    found = function.apply(state, *(values[i] for i in places))
    out = list(values)
    for place, tensor in zip(places, found):
        out[place] = tensor
    return tuple(out)


def run(module, args, kwargs):
    state = _State(module)
    state.has_inputs = any(isinstance(item, _engine.Tensor) and item.requires_grad for item in args)
    if state.has_inputs:
        args = _marked(_AtInputs, state, args)
    result = module.forward(*args, **kwargs)
    if isinstance(result, _engine.Tensor):
        return _marked(_AtOutputs, state, (result,))[0]
    if isinstance(result, tuple):
        return _marked(_AtOutputs, state, result)
    raise TypeError(f"register_full_backward_hook: {type(module).__name__} gives {type(result).__name__}, not tensors")
