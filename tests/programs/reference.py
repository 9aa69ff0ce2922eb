"""PyTorch's side of a program: the archive, and each call's result with its tolerance."""

from __future__ import annotations

import contextlib
import copy
import math
import os

import torch

from tests.programs.program import Loaded, Program, make_all
from tests.programs.rounding import Rounding

# Relative to an element, and to the largest of its tensor: the effect of another summation order and of other
# libraries' functions.
RELATIVE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
OF_LARGEST = {torch.float64: 1e-9, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 2e-2}
# Times the difference between float32 (or the program's dtype) and float64.
OF_ROUNDING = 32.0
# Runs with other rounding, of which the largest difference counts; only if something differed.
ROUNDINGS = 8
# A leaf that rounding changes by more than this, relative to its largest element, is not compared.
MAX_ROUNDING = 1e-2
# The allowed error of lower precision, relative to the largest element, and as a multiple of float32's error.
PRECISIONS = {"bf16": (0.08, 2.0**17), "int8": (0.25, 2.0**18)}
# Larger errors are not compared.
MAX_LOWER = 0.75


class Unusable(Exception):
    """Not a usable program: PyTorch does not script it, or it has no results to compare."""


def leaves(value) -> list:
    """Tensors and numbers in the driver's order."""
    if isinstance(value, (torch.Tensor, bool, int, float)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(key) + leaves(item)]
    return []


def _finite_max(tensor: torch.Tensor) -> float:
    finite = tensor[torch.isfinite(tensor)]
    return float(finite.abs().max()) if finite.numel() else 0.0


NOTHING = (-1.0, 0.0, 0.0, 0.0)


def leaf_tolerance(value, exact, moved: list) -> tuple:
    """(absolute, relative, largest, rounding) of one leaf; absolute < 0: not compared. `moved`: values with other
    rounding."""
    rows = [_tolerance(value, exact)] + [_tolerance(other, exact) for other in moved]
    if any(row[0] < 0 for row in rows) or any(_kind(other) != _kind(value) for other in moved):
        return NOTHING
    _, relative, largest, _ = rows[0]
    return (max(row[0] for row in rows), relative, largest, max(row[3] for row in rows))


def _kind(value):
    return (value.dtype, value.shape) if isinstance(value, torch.Tensor) else type(value)


def _tolerance(value, exact) -> tuple:
    if not isinstance(value, torch.Tensor):
        if isinstance(value, float) and isinstance(exact, float):
            # A script's number usually was an element of a float32 tensor.
            value, exact = torch.tensor(value, dtype=torch.float32), torch.tensor(exact, dtype=torch.float64)
        else:
            return (0.0, 0.0, 0.0, 0.0) if type(value) is type(exact) and value == exact else NOTHING
    if exact is None or not isinstance(exact, torch.Tensor) or value.shape != exact.shape:
        return NOTHING
    if not value.is_floating_point():
        same = value.dtype == exact.dtype and torch.equal(value, exact)
        return (0.0, 0.0, 0.0, 0.0) if same else NOTHING
    a, b = value.double(), exact.double()
    if not torch.equal(torch.isnan(a), torch.isnan(b)) or not torch.equal(torch.isinf(a), torch.isinf(b)):
        return NOTHING
    largest = _finite_max(a)
    rounding = _finite_max(a - b)
    if rounding > MAX_ROUNDING * max(largest, 1e-3) * (10 if value.dtype in (torch.float16, torch.bfloat16) else 1):
        return NOTHING
    kind = value.dtype
    return (OF_LARGEST[kind] * largest + OF_ROUNDING * rounding + 1e-12, RELATIVE[kind], largest, rounding)


def tolerance_tables(value, exact, *moved) -> dict:
    """By precision: a row (absolute, relative) for each leaf."""
    found = leaves(value)
    exact, *moved = [_beside(found, other) for other in (exact, *moved)]
    rows = [leaf_tolerance(a, b, list(others)) for a, b, *others in zip(found, exact, *moved)]
    tables = {"f32": [row[:2] for row in rows]}
    for name, (of_largest, of_rounding) in PRECISIONS.items():
        table = []
        for leaf, (absolute, relative, largest, rounding) in zip(found, rows):
            is_float = isinstance(leaf, float) or (isinstance(leaf, torch.Tensor) and leaf.is_floating_point())
            # A float32 result that happens to be exact does not predict bf16's error.
            wide = of_largest * largest + of_rounding * rounding
            is_known = absolute >= 0 and is_float and wide <= MAX_LOWER * largest
            table.append((wide, relative) if is_known else (-1.0, 0.0))
        tables[name] = table
    return {name: torch.tensor(table, dtype=torch.float64).reshape(-1, 2) for name, table in tables.items()}


def _beside(found: list, other) -> list:
    right = leaves(other) if other is not None else []
    return right if len(right) == len(found) else [None] * len(found)


def copied(value):
    return plain(copy.deepcopy(value))


def plain(value):
    """NamedTuples as tuples: the driver knows no classes."""
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def compiled(program: Program, folder: str, is_double: bool):
    loaded = Loaded(program.source(is_double), folder)
    try:
        module = loaded.eager.double() if is_double else loaded.eager
        if program.is_traced:
            name, arguments = program.calls[0]
            inputs = tuple(make_all(arguments, is_double))
            return torch.jit.trace(module, inputs, check_trace=False)
        scripted = torch.jit.script(module)
        return torch.jit.freeze(scripted) if program.is_frozen else scripted
    finally:
        loaded.drop()


def run_calls(module, program: Program, is_double: bool) -> list:
    """(error, (result, arguments afterwards, buffers)) of each call, up to the first error."""
    outcomes = []
    for name, arguments in program.calls:
        values = make_all(arguments, is_double)
        try:
            result = copied(getattr(module, name)(*values))
        except Exception as error:  # whatever PyTorch raises
            outcomes.append((str(error).strip().split("\n")[-1] or type(error).__name__, None))
            return outcomes
        buffers = [copied(buffer) for _, buffer in module.named_buffers()]
        outcomes.append(("", (result, tuple(copied(values)), buffers)))
    return outcomes


def exact_calls(program: Program, folder: str) -> list:
    """The same in float64; [] if that is impossible."""
    try:
        with default_dtype(torch.float64):
            return run_calls(compiled(program, folder, True), program, True)
    except Exception:
        return []


def moved_calls(program: Program, archive: str) -> list:
    """The calls' results with other rounding."""
    runs = []
    for seed in range(ROUNDINGS):
        module = torch.jit.load(archive)
        with Rounding(seed):
            runs.append(run_calls(module, program, False))
    return runs


def _check_usable(outcomes):
    for error, found in outcomes:
        if any(word in error for word in ("INTERNAL ASSERT", "not implemented for", "not supported")):
            raise Unusable("PyTorch has no such kernel: " + error)
        for leaf in leaves(found[0]) if found else []:
            if isinstance(leaf, torch.Tensor) and (leaf.is_complex() or leaf.layout != torch.strided):
                raise Unusable("a result that is not compared")
            if isinstance(leaf, int) and abs(leaf) >= 1 << 62:
                raise Unusable("an overflow")


def write(program: Program, folder: str, name: str = "program", is_careful: bool = False) -> dict:
    """Writes NAME.pt (the archive) and NAME.calls.pt; {"archive", "calls", "leaves", "open", "error"}. Raises Unusable.

    One run beside the exact one says how far rounding goes; when it is careful, other roundings are tried as well.
    """
    torch.set_grad_enabled(False)
    try:
        module = compiled(program, folder, False)
        archive = os.path.join(folder, name + ".pt")
        module.save(archive)
    except Exception as error:
        raise Unusable(f"{type(error).__name__}: {error}") from error
    module = torch.jit.load(archive)
    # A traced number is saved as a 0-d float64 tensor, and only PyTorch's default executor turns it into a number
    # again.
    with torch.jit.optimized_execution(program.is_traced):
        outcomes = run_calls(module, program, False)
        _check_usable(outcomes)
        exact = exact_calls(program, folder)
        moved = moved_calls(program, archive) if is_careful else []
    records, total, open_leaves = [], 0, 0
    for i, (error, found) in enumerate(outcomes):
        call_name, arguments = program.calls[i]
        tables = tolerance_tables(found, *[run[i][1] if i < len(run) else None for run in (exact, *moved)]) if found else {}
        if found:
            total += len(tables["f32"])
            open_leaves += int((tables["f32"][:, 0] < 0).sum())
        records.append({"method": call_name, "arguments": tuple(make_all(arguments, False)), "error": error,
                        "expected": found if found else (), "tolerances": tables})
    calls = os.path.join(folder, name + ".calls.pt")
    torch.save(records, calls)
    return {"archive": archive, "calls": calls, "leaves": total, "open": open_leaves, "error": bool(outcomes and outcomes[-1][0])}
