"""Runs every row of tests/ops/cases with PyTorch and saves arguments and results for op_cases_test.

Usage: python3 -m tests.ops.make_op_cases OUTPUT_FOLDER [FAMILY ...]
"""

import copy
import importlib
import pathlib
import pkgutil
import sys

import torch

from tests.ops import cases as cases_package
from tests.ops.case import INVARIANTS, Case, TensorSpec, tensors_in

DTYPE_NUMBERS = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
    torch.float32: 6, torch.float64: 7, torch.bool: 11, torch.bfloat16: 15, torch.complex64: 9, torch.complex128: 10,
}
MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2}
DIFFERENTIABLE = (torch.float32, torch.float64, torch.complex64, torch.complex128)
GRADIENT_TOLERANCES = {torch.float64: (1e-7, 1e-8), torch.float32: (5e-4, 5e-5), torch.float16: (4e-3, 4e-3),
                       torch.bfloat16: (3e-2, 3e-2), torch.complex64: (5e-4, 5e-5), torch.complex128: (1e-7, 1e-8)}
TOLERANCES = {torch.float64: (1e-9, 1e-9), torch.complex128: (1e-9, 1e-9), torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2)}
DEFAULT_TOLERANCE = (1.3e-5, 1e-5)
DRAWN_SEED = 4711  # for rows with check="drawn"


def build(argument, dtype, generator, strided):
    """Replaces tensor specs by tensors."""
    if isinstance(argument, TensorSpec):
        return argument.make(dtype, generator, strided)
    if isinstance(argument, (list, tuple)):
        return type(argument)(build(item, dtype, generator, strided) for item in argument)
    if isinstance(argument, dict):
        return {key: build(value, dtype, generator, strided) for key, value in argument.items()}
    return argument


def portable(value):
    """A result or argument as in TorchScript, where dtypes are numbers."""
    if isinstance(value, torch.dtype):
        return DTYPE_NUMBERS[value]
    if isinstance(value, torch.memory_format):
        return MEMORY_FORMATS[value]
    if isinstance(value, torch.layout):
        return 0
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return list(value)
    if isinstance(value, tuple):
        return tuple(portable(item) for item in value)
    if isinstance(value, list):
        return [portable(item) for item in value]
    if isinstance(value, dict):
        return {key: portable(item) for key, item in value.items()}
    return value.detach().resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value


def schema_of(op: str):
    name, _, overload = op.partition(".")
    for schema in torch._C._jit_get_schemas_for_operator(name):
        if schema.overload_name == overload:
            return schema
    return None


def operator(op: str):
    qualified, _, overload = op.partition(".")
    namespace, name = qualified.split("::")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


def positional(schema, args, kwargs):
    """Arguments in schema order, without trailing defaults."""
    values = list(args)
    for argument in schema.arguments[len(args):]:
        if argument.name in kwargs:
            values.append(kwargs[argument.name])
        elif any(later.name in kwargs for later in schema.arguments[len(values) + 1:]):
            values.append(argument.default_value)
        else:
            break
    return values


def comparable(row: Case, results):
    """Results, or the part of them that does not depend on free choices."""
    return tuple(INVARIANTS[row.check](*results)) if row.check in INVARIANTS else results


def versions_of(value):
    return [item._version for item in (value if isinstance(value, list) else [value]) if isinstance(item, torch.Tensor)]


def counts_as_written(value, before):
    return bool(before) and all(now > then for now, then in zip(versions_of(value), before))


def run_case(row: Case, dtype, strided, seed):
    generator = torch.Generator().manual_seed(seed)
    args = build(row.args, dtype, generator, strided)
    kwargs = build(row.kwargs, dtype, generator, strided)
    schema = schema_of(row.op)
    ordered = positional(schema, args, kwargs) if schema else list(args) + list(kwargs.values())
    saved_args = portable(copy.deepcopy(ordered))
    dtypes = sorted(set(map(str, (a.dtype for a in ordered if isinstance(a, torch.Tensor)))))
    label = f"{row.op}({', '.join(dtypes)}{', strided' if strided else ''})"
    theirs, ours = row.error if isinstance(row.error, tuple) else (row.error, row.error or "")
    record = {"op": row.op, "label": label, "args": saved_args, "check": row.check, "error": ours,
              "results": [], "mutated": [], "optional": row.optional}
    function = row.reference or operator(row.op)
    versions = [versions_of(a) for a in ordered]
    if row.check == "drawn":
        torch.manual_seed(DRAWN_SEED)
    try:
        results = comparable(row, function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001: any refusal of PyTorch's is the expected result
        if theirs is None or theirs not in str(error):
            raise
        return record
    if theirs is not None:
        raise AssertionError(f"{label}: PyTorch raised nothing, expected {theirs!r}")
    has_result = results is not None or (schema is not None and len(schema.returns) == 1)
    is_multiple = isinstance(results, tuple) and (schema is None or len(schema.returns) > 1 or row.check in INVARIANTS)
    record["results"] = portable(list(results) if is_multiple else [results] if has_result else [])
    if schema:
        writes = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
        record["mutated"] = [(i, portable(ordered[i]), counts_as_written(ordered[i], versions[i]))
                             for i in range(min(len(ordered), len(writes))) if writes[i]]
    else:
        record["mutated"] = [(i, portable(ordered[i]), False) for i in row.written]
    rtol, atol = TOLERANCES.get(dtype, DEFAULT_TOLERANCE)
    record["rtol"] = float(row.rtol if row.rtol is not None else rtol)
    record["atol"] = float(row.atol if row.atol is not None else atol)
    record["differences"] = row.gradient is True and not dtype.is_complex
    gradient = gradient_record(row, schema, dtype, strided, seed)
    if gradient is not None:
        used = [x.dtype for x in continuous_tensors_in([args, list(kwargs.values()), record["results"]])]
        coarsest = max([dtype, *used], key=lambda d: torch.finfo(d).eps)
        rtol, atol = GRADIENT_TOLERANCES[coarsest]
        record["gradient"] = {**gradient, "rtol": rtol, "atol": atol}
    return record


def continuous_tensors_in(value) -> list:
    """The floating point and complex tensors of arguments or results."""
    return [tensor for tensor in tensors_in(value) if is_continuous(tensor)]


def is_continuous(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def real_numbers(tensor):
    """A complex tensor as pairs of real numbers."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def replace(value, by_id: dict):
    if isinstance(value, (list, tuple)):
        return type(value)(replace(item, by_id) for item in value)
    return by_id.get(id(value), value)


def weights(tensor, seed: int):
    """Numbers in -1 … 1 that op_gradients_test generates in the same way."""
    if tensor.is_complex():
        return torch.view_as_complex(weights(torch.empty(*tensor.shape, 2, dtype=torch.float32 if tensor.dtype == torch.complex64 else torch.float64), seed))
    at = torch.arange(tensor.numel(), dtype=torch.int64) + 7919 * seed
    return ((at * 2654435761 % 2**32).double() / 2.0**31 - 1).to(tensor.dtype).reshape(tensor.shape)


def sample(gradient):
    """Up to 256 of the elements, so that the files stay small; op_gradients_test selects the same."""
    if gradient is None:
        return None
    gradient = gradient.resolve_conj().resolve_neg()
    dense = torch.empty_like(gradient, memory_format=torch.contiguous_format).copy_(gradient.detach()).reshape(-1)
    return dense[::dense.numel() // 256 + 1].clone()


def gradients(row: Case, schema, dtype, strided: bool, seed: int, with_written: bool, with_second: bool):
    """Gradients of the row's results for fixed grad_outputs, and of these again; None where nothing requires one.

    Written arguments are copies of leaves, or need no gradient when not `with_written`.
    """
    generator = torch.Generator().manual_seed(seed)
    args = build(row.args, dtype, generator, strided)
    kwargs = build(row.kwargs, dtype, generator, strided)
    ordered = positional(schema, args, kwargs) if schema else list(args) + list(kwargs.values())
    written = [a for i, a in enumerate(ordered) if schema and isinstance(a, torch.Tensor)
               and schema.arguments[i].alias_info is not None and schema.arguments[i].alias_info.is_write]
    numbered = list(enumerate(continuous_tensors_in(ordered)))
    leaves = [(i, x.requires_grad_()) for i, x in numbered if with_written or not any(x is w for w in written)]
    if not leaves:
        return None
    copies = {id(w): w.clone() for w in written}
    results = comparable(row, (row.reference or operator(row.op))(*replace(args, copies), **replace(kwargs, copies)))
    outputs = continuous_tensors_in([results])
    outputs += [c for c in copies.values() if is_continuous(c) and all(c is not output for output in outputs)]
    record = {"leaves": [i for i, _ in leaves], "requires": [output.requires_grad for output in outputs]}
    roots = [output for output in outputs if output.requires_grad]
    if not roots:
        return record
    grad_outputs = [weights(root, i).requires_grad_() for i, root in enumerate(roots)]
    inputs = [leaf for _, leaf in leaves]
    first = torch.autograd.grad(roots, inputs, grad_outputs, create_graph=with_second, allow_unused=True)
    record["first"] = [sample(g) for g in first]
    if not with_second:
        return record
    total = [(real_numbers(g) * weights(real_numbers(g), 100 + i)).sum() for i, g in enumerate(first) if g is not None and g.requires_grad]
    if total:
        try:
            second = torch.autograd.grad(sum(total), inputs + grad_outputs, allow_unused=True)
        except RuntimeError:  # PyTorch has none
            return record
        record["second"] = [sample(g) for g in second]
    return record


def gradient_record(row: Case, schema, dtype, strided: bool, seed: int):
    """The gradients of a row that op_gradients_test checks, or None."""
    if row.error is not None or row.check in ("shape", "drawn") or dtype not in DIFFERENTIABLE or not row.gradient:
        return None
    for with_written in [True, False]:
        try:
            return gradients(row, schema, dtype, strided, seed, with_written, dtype == torch.float64 and not strided and row.gradient != "first")
        except Exception:  # noqa: BLE001: PyTorch has no gradient
            continue
    return None


def has_tensors(argument) -> bool:
    if isinstance(argument, (list, tuple)):
        return any(map(has_tensors, argument))
    return isinstance(argument, TensorSpec)


def extra_gradients(row: Case, seed: int, strided_too: bool) -> list:
    """Gradients are compared in float64 for every row of float32."""
    records = []
    if torch.float32 not in row.dtypes or torch.float64 in row.dtypes:
        return records
    for strided in [False, True] if strided_too else [False]:
        try:
            record = run_case(row, torch.float64, strided, seed)
        except Exception:  # noqa: BLE001: the row is of float32
            continue
        if "gradient" in record:
            records.append(record)
    return records


def main() -> int:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    total, problems = 0, []
    for module_info in pkgutil.iter_modules(cases_package.__path__):
        if len(sys.argv) > 2 and module_info.name not in sys.argv[2:]:
            continue
        records = []
        for index, row in enumerate(importlib.import_module(f"{cases_package.__name__}.{module_info.name}").CASES):
            strided_too = row.strided and any(map(has_tensors, [*row.args, *row.kwargs.values()]))
            for dtype in row.dtypes:
                for strided in [False, True] if strided_too else [False]:
                    try:
                        records.append(run_case(row, dtype, strided, index))
                    except Exception as error:  # noqa: BLE001
                        if not row.optional:
                            problems.append(f"{module_info.name}: {row.op} {dtype}: {type(error).__name__}: {error}"[:600])
            records += extra_gradients(row, index, strided_too)
        torch.save(records, folder / f"{module_info.name}.pt")
        total += len(records)
    print(f"{total} cases written to {folder}")
    for problem in problems:
        print(problem)
    return 1 if problems or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
