"""Runs samples of PyTorch's operator database eagerly through tensord.engine: values, gradients, gradients of gradients.

PyTorch's own functions are called with tensors of the engine, which answer by `__torch_function__` with the engine's function
of the same name. See README.md. Usage: python3 -m tests.op_db.engine [--dtype float32,…] [--gradients] [NAME…]
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import sys

import torch

from tests.op_db.check import difference
from tests.op_db.samples import MOST_SAMPLES, all_operators, name_of, tensors_in
from tensord import engine

KNOWN = pathlib.Path(__file__).with_name("engine_unsupported.txt")


def to_engine(value):
    if isinstance(value, torch.Tensor):
        if value.dtype is torch.bool:
            return engine.tensor(value.tolist(), dtype=engine.bool).reshape(tuple(value.shape))
        # Non-contiguous tensors stay so; those that DLPack cannot export are skipped.
        return engine.from_dlpack(value.detach())
    if isinstance(value, torch.dtype):
        return getattr(engine, str(value).split(".")[1])
    if isinstance(value, torch.device):
        return engine.device(str(value))
    if isinstance(value, torch.memory_format):
        return getattr(engine, str(value).split(".")[1])
    if type(value) in (list, tuple):
        return type(value)(map(to_engine, value))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, dict):
        return {key: to_engine(item) for key, item in value.items()}
    return value


def to_torch(value):
    if isinstance(value, engine.Tensor):
        value = value.detach()
        if value.dtype is engine.bool:
            return torch.tensor(value.tolist(), dtype=torch.bool).reshape(tuple(value.shape))
        return torch.from_dlpack(value)
    if isinstance(value, (list, tuple)):
        return [to_torch(item) for item in value]
    return value


class NoFunction(Exception):
    pass


def function_of(function):
    """The engine's function for one of PyTorch's."""
    name, module = function.__name__, getattr(function, "__module__", None) or ""
    if name == "__get__":  # a property
        attribute = function.__self__.__name__
        return lambda tensor: getattr(tensor, attribute)
    is_nn = module in ("torch.nn.functional", "torch._C._nn")
    places = [engine.nn.functional, engine] if is_nn else [engine, engine.nn.functional]
    for place in places:
        found = getattr(place, name, None)
        if found is not None:
            return found
    if hasattr(engine.Tensor, name):
        return getattr(engine.Tensor, name)
    raise NoFunction(name)


def torch_function(cls, function, types, args=(), kwargs=None):
    # Deprecated in PyTorch, but still passed.
    kwargs = {name: value for name, value in to_engine(kwargs or {}).items()
              if name != "_stacklevel" and (value is not None or name not in ("size_average", "reduce", "out"))}
    if function.__name__.endswith("_with_indices") and function.__module__ == "torch.nn.functional":
        kwargs["return_indices"] = True
        return getattr(engine.nn.functional, function.__name__.removesuffix("_with_indices"))(*to_engine(list(args)), **kwargs)
    return function_of(function)(*to_engine(list(args)), **kwargs)


engine.Tensor.__torch_function__ = classmethod(torch_function)


def converting(method):
    return lambda self, *args, **kwargs: method(self, *to_engine(list(args)), **to_engine(kwargs))


# Methods are called with PyTorch's dtypes and memory formats.
for name in ("to", "new_zeros", "new_ones", "new_empty", "new_full", "float", "double", "half", "bfloat16", "int", "long", "short", "char",
             "byte", "bool", "sum", "clone", "contiguous"):
    setattr(engine.Tensor, name, converting(getattr(engine.Tensor, name)))

# Attributes that PyTorch's programs read from a tensor before a call.
engine.Tensor.layout = property(lambda self: torch.strided)
seed_torch = torch.manual_seed


def manual_seed(seed):
    engine.manual_seed(seed)
    return seed_torch(seed)


torch.manual_seed = manual_seed


def samples(info, dtype, requires_grad: bool) -> list:
    torch.manual_seed(0)
    found = []
    for sample in info.sample_inputs("cpu", dtype, requires_grad=requires_grad):
        found.append(sample)
        if len(found) == MOST_SAMPLES:
            break
    return found


def floats(value) -> list:
    """The tensors of a result that gradients flow to."""
    if isinstance(value, (torch.Tensor, engine.Tensor)):
        return [value] if value.dtype in (torch.float64, engine.float64) else []
    return [item for part in value for item in floats(part)] if isinstance(value, (list, tuple)) else []


def leaves(value) -> list:
    if isinstance(value, (torch.Tensor, engine.Tensor)):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        value = list(value.values())
    return [item for part in value for item in leaves(part)] if isinstance(value, (list, tuple)) else []


def gradients(call, arguments, library) -> list:
    """First gradients of a weighted sum of the results, and those of their squares' sum."""
    total = None
    for i, result in enumerate(floats(call(*arguments))):
        if result.requires_grad:
            count = result.numel()
            weights = library.linspace(0.5, 1.5, max(count, 1), dtype=library.float64)[:count].reshape(tuple(result.shape))
            part = (result * (weights + i)).sum()
            total = part if total is None else total + part
    inputs = leaves(arguments)
    if total is None or not inputs:
        return []
    def whole(found):
        # The gradient of an unused input may be None or zeros.
        return [library.zeros_like(x) if g is None else g.detach() for g, x in zip(found, inputs)]

    first = library.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
    squares = [(g * g).sum() for g in first if g is not None and g.requires_grad]
    second = library.autograd.grad(sum(squares[1:], squares[0]), inputs, allow_unused=True) if squares else [None] * len(inputs)
    return whole(first) + whole(second)


def with_leaves(value):
    """A copy for the engine whose leaves are those of the sample."""
    if isinstance(value, torch.Tensor):
        made = to_engine(value).clone()
        return made.requires_grad_(True) if value.requires_grad else made
    if type(value) in (list, tuple):
        return type(value)(map(with_leaves, value))
    if isinstance(value, dict):
        return {key: with_leaves(item) for key, item in value.items()}
    return value


def check_sample(info, sample, checks_gradients: bool) -> str:
    """"" if correct, "-" if PyTorch has no result, otherwise the reason."""
    def call(first, args, kwargs):
        if isinstance(first, engine.Tensor) and (info.name.startswith("__") or info.name.endswith("_")):
            return getattr(first, info.name)(*args, **kwargs)  # PyTorch's descriptor only accepts PyTorch's tensors
        return info.op(first, *args, **kwargs)

    arguments = [sample.input, list(sample.args), sample.kwargs]
    try:
        want = []
        for seed in range(3):
            torch.manual_seed(seed)
            found = gradients(call, arguments, torch) if checks_gradients else tensors_in(call(*arguments))
            want.append([t.detach().clone() for t in found])
    except Exception:  # noqa: BLE001
        return "-"
    if checks_gradients and not want[0]:
        return "-"
    try:
        own = with_leaves(arguments)
        torch.manual_seed(0)
        got = gradients(call, own, engine) if checks_gradients else call(*own)
        return difference(tensors_in(to_torch(got)), *want)
    except NoFunction as error:
        return f"no function: {error}"
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def check(info, dtype, checks_gradients: bool) -> tuple:
    if "empty" in info.name:  # uninitialized memory
        return 0, 0, ""
    if dtype not in info.dtypes or (checks_gradients and not info.supports_autograd):
        return 0, 0, ""
    try:
        found = samples(info, dtype, checks_gradients)
    except Exception:  # noqa: BLE001
        return 0, 0, ""
    results = [r for r in (check_sample(info, sample, checks_gradients) for sample in found) if r != "-"]
    return results.count(""), len(results), next((r for r in results if r), "")


def check_errors(info) -> tuple:
    """The number of calls that PyTorch's tests expect to fail and PyTorch refuses, and how many of them the engine
    refuses too."""
    if not info.error_inputs_func:
        return 0, 0, ""
    right = count = 0
    reason = ""
    for error in info.error_inputs("cpu"):
        sample = error.sample_input
        arguments = [sample.input, list(sample.args), sample.kwargs]
        try:
            info.op(sample.input, *sample.args, **sample.kwargs)
            continue  # newer or older than its test
        except Exception as refusal:  # noqa: BLE001
            expected = str(refusal).splitlines()[0] if str(refusal) else type(refusal).__name__
        try:
            own = with_leaves(arguments)
        except Exception:  # noqa: BLE001: no tensor of ours
            continue
        count += 1
        try:
            info.op(own[0], *own[1], **own[2])
            reason = reason or f"is taken, where PyTorch says: {expected}"
        except NoFunction as missing:
            reason = reason or f"no function: {missing}"
        except Exception:  # noqa: BLE001: refused
            right += 1
    return right, count, reason


def known(kind: str) -> dict:
    lines = KNOWN.read_text().splitlines() if KNOWN.exists() else []
    rows = [line.split(" ", 2) for line in lines if line and not line.startswith("#")]
    return {name: reason for row_kind, name, reason in rows if row_kind == kind}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only operators whose names begin so")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true", help="first and second ones, in float64")
    parser.add_argument("--errors", action="store_true", help="calls that have to fail")
    parser.add_argument("--every", type=int, default=1, help="only every n-th operator")
    parser.add_argument("--check-list", action="store_true", help=f"fail where {KNOWN.name} is not right")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    engine.set_num_threads(1)
    problems = 0
    kinds = ["errors"] if arguments.errors else ["gradients"] if arguments.gradients else arguments.dtype.split(",")
    for kind in kinds:
        dtype = torch.float64 if kind in ("gradients", "errors") else getattr(torch, kind)
        reasons, whole, count = collections.Counter(), 0, 0
        listed = known(kind)
        for i, info in enumerate(all_operators()):
            if i % arguments.every or (arguments.names and not name_of(info).startswith(tuple(arguments.names))):
                continue
            right, all_, reason = check_errors(info) if kind == "errors" else check(info, dtype, kind == "gradients")
            if all_ == 0:
                continue
            count += 1
            whole += right == all_
            name = name_of(info)
            if right != all_:
                reasons[reason.split(":")[0]] += 1
            if arguments.check_list and (right != all_) == (name in listed):
                continue
            if right != all_ or arguments.check_list:
                found = f"{right} of {all_}: {reason[:200]}" if right != all_ else f"is whole, but in {KNOWN.name}"
                print(kind, name, found, flush=True)
                problems += arguments.check_list
        others = "".join(f"; {n} × {reason}" for reason, n in reasons.most_common(6))
        print(f"{kind}: {whole} of {count} operators whole{others}", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
