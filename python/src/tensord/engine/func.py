"""Function transforms, as in torch.func, built from backward passes and calls (see
tensord.engine.autograd.functional)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensord.engine import _autograd_functional as _functional
from tensord.engine import _engine
from tensord.engine._autograd_functional import vmap
from tensord.engine._engine import Tensor
from tensord.engine._grad_mode import enable_grad

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


def _leaves(value) -> list:
    """The tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    raise TypeError(f"expected tensors, or tuples, lists and dicts of them, but got {type(value).__name__}")


def _rebuilt(value, leaves):
    """The same structure with other tensors, taken from the iterator."""
    if isinstance(value, Tensor):
        return next(leaves)
    if isinstance(value, dict):
        return {key: _rebuilt(item, leaves) for key, item in value.items()}
    items = [_rebuilt(item, leaves) for item in value]
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def _split_aux(result, has_aux: bool, what: str):
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{what}: with has_aux=True the function must give (output, aux)")
    return result


def _views(leaves: list) -> list:
    """Tensors to differentiate by, which keep their history, since transforms may be nested."""
    return [_functional._call("aten::view_as", one, one) if one.requires_grad else one.detach().requires_grad_(True) for one in leaves]


def _detached(value):
    return _rebuilt(value, iter([leaf.detach() for leaf in _leaves(value)]))


def _keeps_graph(leaves: list) -> bool:
    return _engine.is_grad_enabled() and any(leaf.requires_grad for leaf in leaves)


def _positions(argnums, count: int, what: str) -> tuple:
    positions = argnums if isinstance(argnums, tuple) else (argnums,)
    for position in positions:
        if not -count <= position < count:
            raise RuntimeError(f"{what}: argnums {position} for {count} arguments")
    return tuple(position % count for position in positions)


def grad_and_value(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradients, value), or (gradients, (value, aux)), of a scalar-valued one."""

    def wrapped(*args, **kwargs):
        positions = _positions(argnums, len(args), "grad")
        chosen = [args[position] for position in positions]
        before = _leaves(chosen)
        with enable_grad():
            given = _views(before)
            own = iter(_rebuilt(chosen, iter(given)))
            called = list(args)
            for position in positions:
                called[position] = next(own)
            value, aux = _split_aux(func(*called, **kwargs), has_aux, "grad")
            if not isinstance(value, Tensor) or value.dim() != 0:
                raise RuntimeError("grad: the function must give one tensor without dimensions")
            # Outer values that this call depends on may be differentiated again.
            found = _functional._grad((value,), tuple(given), None, True, False, "grad")
        keeps = any(one.requires_grad for one in before) or value.requires_grad and _hangs_outside(before, kwargs, args)
        found = list(found) if keeps else [one.detach() for one in found]
        value = value if keeps else value.detach()
        rebuilt = _rebuilt(chosen, iter(found))
        gradients = tuple(rebuilt) if isinstance(argnums, tuple) else rebuilt[0]
        return gradients, ((value, aux) if has_aux else value)

    return wrapped


def _hangs_outside(before: list, kwargs: dict, args: tuple) -> bool:
    """Whether another argument requires gradients."""
    rest = [value for value in [*args, *kwargs.values()] if isinstance(value, Tensor)]
    return any(value.requires_grad for value in rest)


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradients of a scalar-valued one; with `has_aux` (gradients, aux)."""

    def wrapped(*args, **kwargs):
        gradients, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapped


def vjp(func: Callable[..., Any], *primals, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns (func(*primals), vjp_function), and aux; vjp_function maps cotangents v to a tuple with v · J for each
    primal."""
    before = _leaves(primals)
    with enable_grad():
        given = _views(before)
        result, aux = _split_aux(func(*_rebuilt(primals, iter(given))), has_aux, "vjp")
    outputs = _leaves(result)

    def pull(*cotangents):
        cotangents = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors = _leaves(cotangents)
        if len(vectors) != len(outputs) or any(a.shape != b.shape for a, b in zip(vectors, outputs)):
            raise RuntimeError(f"vjp: expected cotangents of the shapes {[tuple(one.shape) for one in outputs]}")
        keeps = any(one.requires_grad for one in [*before, *vectors])
        found = _functional._grad(tuple(outputs), tuple(given), tuple(vectors), keeps, False, "vjp")
        rebuilt = _rebuilt(primals, iter([one if keeps else one.detach() for one in found]))
        return rebuilt if len(primals) > 1 else (rebuilt[0],)

    shown = result if _keeps_graph(before) else _detached(result)
    return (shown, pull, aux) if has_aux else (shown, pull)


def jvp(func: Callable[..., Any], primals: tuple, tangents: tuple, *, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns (func(*primals), J · tangents), and aux."""
    aux = None

    def call(*leaves):
        nonlocal aux, shape
        result, aux = _split_aux(func(*_rebuilt(primals, iter(leaves))), has_aux, "jvp")
        shape = result
        return tuple(_leaves(result))

    shape = None
    before = _leaves(tuple(primals))
    keeps = any(one.requires_grad for one in before)
    outputs, found = _functional.jvp(call, tuple(before), tuple(_leaves(tuple(tangents))), create_graph=keeps)
    out = _rebuilt(shape, iter(outputs)), _rebuilt(shape, iter(found))
    return (*out, aux) if has_aux else out


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the Jacobian with respect to the arguments `argnums`: a tensor, or a tuple of them."""

    def wrapped(*args, **kwargs):
        positions = _positions(argnums, len(args), "jacrev")
        chosen = tuple(args[position] for position in positions)
        aux = None

        def call(*given):
            nonlocal aux
            called = list(args)
            for position, one in zip(positions, given):
                called[position] = one
            result, aux = _split_aux(func(*called, **kwargs), has_aux, "jacrev")
            return result

        keeps = any(isinstance(one, Tensor) and one.requires_grad for one in args)
        inputs = chosen if isinstance(argnums, tuple) else chosen[0]
        found = _functional.jacobian(call, inputs, create_graph=keeps)
        return (found, aux) if has_aux else found

    return wrapped


# Also computed in reverse mode, one backward pass per result.
jacfwd = jacrev


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of a scalar-valued one."""
    return jacfwd(jacrev(func, argnums), argnums)


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, strict: bool = False) -> Any:
    """Calls the module with these tensors in place of its own, by name. The module is restored afterwards."""
    dicts = [parameter_and_buffer_dicts] if isinstance(parameter_and_buffer_dicts, dict) else list(parameter_and_buffer_dicts)
    tensors = {}
    for one in dicts:
        tensors.update(one)
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    unknown, missing = [name for name in tensors if name not in own], [name for name in own if name not in tensors]
    if unknown or (strict and missing):
        raise RuntimeError(f"functional_call: unexpected {unknown}" + (f", missing {missing}" if strict else ""))
    places = []
    for name, tensor in tensors.items():
        path, _, last = name.rpartition(".")
        inner = module.get_submodule(path)
        table = inner._parameters if last in inner._parameters else inner._buffers
        places.append((table, last, table[last], tensor))
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    try:
        for table, name, _, tensor in places:
            table[name] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for table, name, before, _ in places:
            table[name] = before
