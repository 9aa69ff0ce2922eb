"""Draws random calls of operators, and saves them with PyTorch's results.

Usage: python3 -m tests.random_calls.make_calls OUTPUT_FILE [COUNT [FIRST_SEED [FAMILY ...]]]
Every call has a seed of its own: COUNT 1 and its seed reproduce it.
"""

from __future__ import annotations

import copy
import random
import sys
import warnings

import torch

from tests.ops.case import tensors_in
from tests.ops.make_op_cases import operator, portable, schema_of
from tests.random_calls.draw import Draw
from tests.random_calls.families import FAMILIES, SHARES

# The tolerances, relative to the element, and for sums to the largest element of the result.
TOLERANCES = {torch.float64: (1e-9, 1e-10), torch.float32: (2e-5, 1e-5), torch.bfloat16: (2e-2, 1.6e-2),
              torch.float16: (4e-3, 2e-3)}


SUMS = ("conv", "product", "reduce", "scan", "norm")


def tolerance(args, results, is_elementwise: bool, is_loose: bool):
    """(rtol, atol) for the coarsest dtype involved."""
    floats = [x for x in [*tensors_in(args), *tensors_in(results)] if x.is_floating_point()]
    if not floats:
        return 1e-6, 1e-6
    coarsest = max((x.dtype for x in floats), key=lambda dtype: torch.finfo(dtype).eps)
    rtol, share = TOLERANCES[coarsest]
    largest = 1.0
    if not is_elementwise:
        for x in tensors_in(results):
            finite = x.double()[torch.isfinite(x)]
            largest = max(largest, float(finite.abs().max()) if finite.numel() else 0.0)
    return rtol, share * largest * (10 if is_loose else 1)


HALVES = (torch.bfloat16, torch.float16)


def widened(value):
    if isinstance(value, (list, tuple)):
        return type(value)(widened(item) for item in value)
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in HALVES else value


def run_wide(op: str, args: list):
    """Computed in float32 and rounded at the end: PyTorch's own 16-bit sums lose precision."""
    dtypes = [x.dtype for x in tensors_in(args) if x.dtype in HALVES]
    results = run(op, widened(args))
    return [x.to(dtypes[0]) if dtypes and isinstance(x, torch.Tensor) and x.dtype == torch.float32 else x for x in results]


def run(op: str, args: list):
    schema = schema_of(op)
    named = {a.name: value for a, value in zip(schema.arguments, args) if a.kwarg_only}
    results = operator(op)(*args[:len(args) - len(named)], **named)
    is_multiple = isinstance(results, tuple) and len(schema.returns) > 1
    return list(results) if is_multiple else [results] if schema.returns else []


def make_call(seed: int, names: list):
    """The record of one call; None if the schema is not PyTorch's or the draw itself was refused."""
    torch.manual_seed(seed)
    d = Draw(seed)
    shares = [SHARES.get(name, 1) for name in names]
    family = random.Random(seed).choices(names, shares)[0]
    try:
        op, args, options = FAMILIES[family](d)
    except (RuntimeError, IndexError, ValueError):
        return None
    schema, reference = schema_of(op), options.get("reference")  # for operators that this PyTorch lacks
    if schema is None and reference is None:
        return None
    args = args if reference else args[:len(schema.arguments)]
    then = options.get("then", [])
    record = {"op": op, "label": f"{op} seed {seed}", "args": portable(copy.deepcopy(args)), "then": then, "error": "",
              "results": [], "rtol": 0.0, "atol": 0.0, "in_graph": not options.get("no_graph", False)}
    try:
        results = [reference(*args)] if reference else (run_wide if family in SUMS else run)(op, args)
        sums = results  # precision is lost before a bound makes the results small
        for step in then:
            results = run(step[0], [results[0], *step[1:]])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        record["error"] = str(error).split("\n")[0] or "refused"
        return record
    record["results"] = portable(results)
    record["rtol"], record["atol"] = tolerance(args, [*results, *sums], options.get("elementwise", False), options.get("loose", False))
    return record


def main() -> int:
    output, count, first = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5000, \
        int(sys.argv[3]) if len(sys.argv) > 3 else 0
    names = sys.argv[4:] or list(FAMILIES)
    torch.set_num_threads(1)
    # PyTorch 1.13's oneDNN convolutions write out of bounds if all taps are in the padding.
    torch.backends.mkldnn.enabled = False
    warnings.simplefilter("ignore")
    records = [record for seed in range(first, first + count) if (record := make_call(seed, names)) is not None]
    torch.save(records, output)
    refused = sum(1 for record in records if record["error"])
    print(f"{len(records)} calls written to {output}, {refused} of them refused by PyTorch")
    return 0 if len(records) > count / 2 else 1


if __name__ == "__main__":
    sys.exit(main())
