"""Jacobians, Hessians and products with them, built from backward passes, and `vmap`, built from calls. Arguments and
results are those of torch.autograd.functional and torch.func.vmap.

`func` takes a tensor or a tuple of tensors and returns a tensor or a tuple. Inputs on which the results do not depend
have zero gradients; with `strict` they are an error. Without `create_graph` the results have no history.
"""

from __future__ import annotations

from typing import Any

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp", "vmap"]


def _call(name: str, *arguments):
    return _engine._operator(name)(*arguments)


def _tuple(value, what: str) -> tuple:
    items = (value,) if isinstance(value, Tensor) else value
    if not isinstance(items, (tuple, list)) or not all(isinstance(item, Tensor) for item in items):
        raise TypeError(f"{what} must be a tensor or a tuple of tensors")
    return tuple(items)


def _like(items: tuple, given) -> Any:
    """Returns a single tensor if a single tensor was given."""
    return items[0] if isinstance(given, Tensor) else items


def _prepared(inputs, create_graph: bool) -> tuple:
    """Copies of the inputs that require gradients, so that the caller's tensors are unchanged."""
    out = []
    for item in _tuple(inputs, "inputs"):
        if create_graph and item.requires_grad:
            out.append(_call("aten::view_as", item, item))
        else:
            out.append(item.detach().requires_grad_(True))
    return tuple(out)


def _grad(outputs: tuple, inputs: tuple, vectors, create_graph: bool, strict: bool, what: str) -> tuple:
    """Gradients of `outputs`, zeros where they do not depend on an input."""
    live = [(output, None if vectors is None else vector) for output, vector in zip(outputs, vectors or outputs) if output.requires_grad]
    if not live and strict:
        raise RuntimeError(f"{what}: the function's results do not depend on its inputs")
    found = [None] * len(inputs)
    if live:
        found = _engine._grad([one for one, _ in live], list(inputs), [vector for _, vector in live], True, create_graph, True)
    if strict and any(item is None for item in found):
        raise RuntimeError(f"{what}: the results do not depend on input {[item is None for item in found].index(True)}")
    return tuple(_call("aten::zeros_like", one) if item is None else item for one, item in zip(inputs, found))


def _vectors(v, like: tuple, what: str) -> tuple:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{what}: v is needed unless there is one tensor of one element")
        return (_call("aten::ones_like", like[0].detach()),)
    vectors = _tuple(v, "v")
    if len(vectors) != len(like) or any(a.shape != b.shape for a, b in zip(vectors, like)):
        raise RuntimeError(f"{what}: v must have the shapes {[tuple(item.shape) for item in like]}, not {[tuple(item.shape) for item in vectors]}")
    return vectors


def _finished(items: tuple, create_graph: bool) -> tuple:
    return items if create_graph else tuple(item.detach() for item in items)


def vjp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), v · J)."""
    with enable_grad():
        given = _prepared(inputs, create_graph)
        result = func(*given)
        outputs = _tuple(result, "results")
        found = _grad(outputs, given, _vectors(v, outputs, "vjp"), create_graph, strict, "vjp")
    return _like(_finished(outputs, create_graph), result), _like(_finished(found, create_graph), inputs)


def jvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """Returns (func(inputs), J · v), computed as the gradient of a gradient."""
    with enable_grad():
        given = _prepared(inputs, create_graph)
        vectors = _vectors(v, given, "jvp")
        result = func(*given)
        outputs = _tuple(result, "results")
        # v · J is linear in v, so its gradient is J.
        dual = tuple(_call("aten::zeros_like", one.detach()).requires_grad_(True) for one in outputs)
        rows = _grad(outputs, given, dual, True, strict, "jvp")
        found = _grad(rows, dual, vectors, create_graph, False, "jvp")
    return _like(_finished(outputs, create_graph), result), _like(_finished(found, create_graph), result)


def _scalar(func, given: tuple, what: str):
    result = func(*given)
    if not isinstance(result, Tensor) or result.numel() != 1:
        raise RuntimeError(f"{what}: the function must give one tensor of one element")
    return result


def vhp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), v · H) of a scalar-valued function."""
    with enable_grad():
        given = _prepared(inputs, create_graph)
        vectors = _vectors(v, given, "vhp")
        result = _scalar(func, given, "vhp")
        first = _grad((result,), given, None, True, strict, "vhp")
        found = _grad(first, given, vectors, create_graph, strict, "vhp")
    return _finished((result,), create_graph)[0], _like(_finished(found, create_graph), inputs)


def hvp(func, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(inputs), H · v) of a scalar-valued function. A Hessian is symmetric: this is `vhp`, which costs one pass less."""
    return vhp(func, inputs, v, create_graph, strict)


def jacobian(func, inputs, create_graph: bool = False, strict: bool = False):
    """d results / d inputs: for one result and one input, a tensor with the result's shape followed by the input's;
    otherwise tuples by result and by input."""
    with enable_grad():
        given = _prepared(inputs, create_graph)
        result = func(*given)
        outputs = _tuple(result, "results")
        found = []
        for output in outputs:
            flat = output.reshape(-1)
            rows = [_grad((flat[i],), given, None, create_graph, strict, "jacobian") for i in range(flat.numel())]
            blocks = []
            for index, one in enumerate(given):
                shape = tuple(output.shape) + tuple(one.shape)
                parts = [row[index] for row in rows]
                blocks.append(_call("aten::stack", parts).reshape(shape) if parts else _call("aten::zeros_like", one.detach()).new_zeros(shape))
            found.append(_like(_finished(tuple(blocks), create_graph), inputs))
    return _like(tuple(found), result)


def hessian(func, inputs, create_graph: bool = False, strict: bool = False):
    """Second derivatives of a scalar-valued function: of one input a tensor of its shape twice, else tuples of tuples."""
    alone = isinstance(inputs, Tensor)

    def first(*given):
        with enable_grad():
            own = tuple(one if one.requires_grad else one.detach().requires_grad_(True) for one in given)
            found = _grad((_scalar(func, own, "hessian"),), own, None, True, strict, "hessian")
        return found[0] if alone else found

    return jacobian(first, inputs, create_graph, strict)


def _rows(value, dim, count):
    if dim is None:
        return [value] * count
    if isinstance(value, Tensor):
        return [value.select(dim, i) for i in range(count)]
    parts = [_rows(item, one, count) for item, one in zip(value, dim if isinstance(dim, (tuple, list)) else [dim] * len(value))]
    return [type(value)(part[i] for part in parts) for i in range(count)]


def _size(value, dim):
    if dim is None:
        return set()
    if isinstance(value, Tensor):
        return {value.size(dim)}
    return set().union(*(_size(item, one) for item, one in zip(value, dim if isinstance(dim, (tuple, list)) else [dim] * len(value))))


def _stacked(results: list, dim):
    first = results[0]
    if isinstance(first, Tensor):
        return _call("aten::stack", results, dim)
    if not isinstance(first, (tuple, list)):
        raise TypeError("vmap: the function must give tensors, or tuples of them")
    dims = dim if isinstance(dim, (tuple, list)) else [dim] * len(first)
    return type(first)(_stacked([one[i] for one in results], dims[i]) for i in range(len(first)))


def vmap(func, in_dims=0, out_dims=0):
    """Maps `func` over dimension `in_dims` of its arguments (None: the same value for each call) and stacks the results
    along `out_dims`. Makes one call per row: it is for functions without a batched form, not for speed."""

    def mapped(*args):
        dims = in_dims if isinstance(in_dims, (tuple, list)) else [in_dims] * len(args)
        if len(dims) != len(args):
            raise ValueError(f"vmap: in_dims has {len(dims)} entries for {len(args)} arguments")
        sizes = set().union(*(_size(value, dim) for value, dim in zip(args, dims))) if args else set()
        if len(sizes) != 1:
            raise ValueError(f"vmap: the mapped dimensions must have one size, not {sorted(sizes)}")
        (count,) = sizes
        if count == 0:
            raise ValueError("vmap: the mapped dimension is empty")
        rows = [_rows(value, dim, count) for value, dim in zip(args, dims)]
        return _stacked([func(*(row[i] for row in rows)) for i in range(count)], out_dims)

    return mapped
