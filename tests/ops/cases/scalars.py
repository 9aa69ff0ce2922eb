"""Every TorchScript operator on plain numbers, booleans and strings, over a grid of values."""

import itertools

import torch

from tests.ops.case import Case

VALUES = {
    "int": [1, -7, 3, 12],  # PyTorch crashes on an integer division by zero
    "float": [0.0, 1.5, -2.25, 1e10],
    "bool": [True, False],
    "str": ["", "a b", "Hello World", "b"],
    "number": [2, -1.5, True],
}
# Side effects, global state, results that differ from run to run, or endless loops in PyTorch.
SKIPPED = {"manual_seed", "seed", "rand", "set_grad_enabled", "warn", "input", "Print", "breakpoint", "time", "sleep", "center", "ljust", "rjust"}


def _grid(schema):
    lists = [VALUES.get(str(argument.type)) for argument in schema.arguments]
    if not schema.arguments or len(schema.arguments) > 3 or any(values is None for values in lists):
        return []
    return itertools.product(*lists)


def _rows():
    rows = []
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        if namespace not in ("aten", "prim") or name in SKIPPED:
            continue
        full_name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        returns = [str(value.type) for value in schema.returns]
        if any(kind not in ("int", "float", "bool", "str", "number", "List[str]") for kind in returns):
            continue
        for values in _grid(schema):
            rows.append(Case(full_name, values, {}, [torch.float32], False, 1e-12, 0.0, "values", None, None, optional=True))
    return rows


CASES = _rows()
