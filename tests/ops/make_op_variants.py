"""Derives variants of the rows of tests/ops/cases, and saves PyTorch's results.

Usage: python3 -m tests.ops.make_op_variants OUTPUT_FOLDER [--part N] [FAMILY ...]

With --part N one variant of N.

Of each operator's first rows: every dtype, for all tensors and for one of them; every tensor broadcast in each of its
dimensions, without its first dimension, with one more, without dimensions, and expanded; every size empty; the in-place
form. A record whose `refused` is not empty is one that PyTorch refuses. op_cases_test replays them. A result may be as far off
as four times what PyTorch's own is from the same in float64.
"""

import argparse
import collections
import copy
import dataclasses
import importlib
import multiprocessing
import pathlib
import pkgutil
import sys
import warnings

import torch

from tests.ops import cases as cases_package
from tests.ops.case import ALL, TensorSpec, tensors_in
from tests.ops.make_op_cases import operator, run_case, schema_of

MOST_ELEMENTS = 4000
OF_ROUNDING = 4.0
ROWS_FOR_DTYPES, ROWS_FOR_SHAPES = 2, 1
MIXED = [torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool]
# Random results.
SKIPPED = {"aten::empty_strided", "aten::new_empty_strided"}
# PyTorch checks too little here: with other shapes it reads out of bounds.
UNCHECKED = {"aten::rrelu_with_noise", "aten::rrelu_with_noise_", "aten::fused_moving_avg_obs_fake_quant",
             "aten::_fused_moving_avg_obs_fq_helper", "aten::embedding_bag", "aten::_embedding_bag", "aten::embedding_bag.padding_idx", "aten::native_batch_norm",
             "aten::lstm.data", "aten::gru.data", "aten::rnn_tanh.data", "aten::rnn_relu.data", "aten::_pad_packed_sequence",
             "aten::_reshape_alias", "aten::_weight_norm", "aten::native_channel_shuffle", "torchvision::roi_align", "torchvision::roi_pool", "torchvision::ps_roi_align",
             "torchvision::ps_roi_pool", "torchvision::_roi_align_backward", "torchvision::_roi_pool_backward",
             "torchvision::_ps_roi_align_backward", "torchvision::_ps_roi_pool_backward", "torchvision::deform_conv2d",
             "torchvision::nms"}
# Here it reads the memory of bools and ints as another type, or divides by an int that is 0.
UNTYPED = {"aten::_embedding_bag_backward", "aten::_embedding_bag_per_sample_weights_backward", "aten::smooth_l1_loss_backward"}


@dataclasses.dataclass
class Expanded(TensorSpec):
    """A tensor whose dimension `dim` has stride 0."""

    dim: int = 0

    def make(self, dtype, generator, strided):
        full = super().make(dtype, generator, False)
        return full.narrow(self.dim, 0, 1).expand(full.shape)


@dataclasses.dataclass
class Dense(Expanded):
    """The same in contiguous memory."""

    def make(self, dtype, generator, strided):
        return super().make(dtype, generator, strided).contiguous()


def specs_in(value) -> list:
    if isinstance(value, (list, tuple)):
        return [spec for item in value for spec in specs_in(item)]
    return [value] if isinstance(value, TensorSpec) else []


def with_spec(value, old, new):
    if isinstance(value, (list, tuple)):
        return type(value)(with_spec(item, old, new) for item in value)
    return new if value is old else value


def with_specs(row, change):
    """The row with change(spec) for every tensor."""
    def walk(value):
        if isinstance(value, (list, tuple)):
            return type(value)(walk(item) for item in value)
        return change(value) if isinstance(value, TensorSpec) else value

    return dataclasses.replace(row, args=walk(row.args), kwargs={k: walk(v) for k, v in row.kwargs.items()})


def distinct(row):
    """The row with a separate object for every tensor, since rows use one spec for several arguments."""
    return with_specs(row, lambda spec: dataclasses.replace(spec))


def shape_of(spec):
    return tuple(torch.tensor(spec.values).shape) if spec.values is not None else tuple(spec.sizes)


def replaced(row, old, new):
    return dataclasses.replace(row, args=with_spec(row.args, old, new),
                               kwargs={k: with_spec(v, old, new) for k, v in row.kwargs.items()})


def dtype_variants(row, specs):
    if row.reference:  # written for its own dtypes
        return
    for dtype in ALL:
        if dtype not in row.dtypes:
            yield f"{dtype}", row, dtype
    for i, spec in enumerate(specs):
        for dtype in ALL if spec.dtype is not None else MIXED if len(specs) > 1 else []:
            if dtype != (spec.dtype or row.dtypes[0]):
                yield f"tensor {i} {dtype}", replaced(row, spec, dataclasses.replace(spec, dtype=dtype)), row.dtypes[0]


def resized(spec, sizes):
    return dataclasses.replace(spec, sizes=tuple(sizes))


def shape_variants(row, specs):
    dtype = row.dtypes[0]
    for i, spec in enumerate(specs):
        sizes = shape_of(spec)
        if spec.values is None:
            for dim, size in enumerate(sizes):
                if size > 1:
                    yield f"tensor {i} 1 in {dim}", replaced(row, spec, resized(spec, (*sizes[:dim], 1, *sizes[dim + 1:]))), dtype
            if sizes:
                yield f"tensor {i} without 0", replaced(row, spec, resized(spec, sizes[1:])), dtype
                yield f"tensor {i} 0-d", replaced(row, spec, resized(spec, ())), dtype
            yield f"tensor {i} one more", replaced(row, spec, resized(spec, (2, *sizes))), dtype
        for dim, size in enumerate(sizes):
            if size > 1 and "expand" not in row.op and "strided" not in row.op:
                expanded = Expanded(*[getattr(spec, f.name) for f in dataclasses.fields(spec)], dim=dim)
                yield f"tensor {i} expanded {dim}", replaced(row, spec, expanded), dtype

    def emptied(size):
        def change(spec):
            sizes = shape_of(spec)
            if size not in sizes:
                return spec
            return dataclasses.replace(spec, sizes=tuple(0 if s == size else s for s in sizes), values=None,
                                       dtype=spec.dtype or (torch.tensor(spec.values).dtype
                                                            if spec.values is not None and dtype is None else None))
        return change

    for size in sorted({size for spec in specs for size in shape_of(spec)}):
        yield f"{size} empty", with_specs(row, emptied(size)), dtype
    yield "all 0-d", with_specs(row, lambda spec: resized(spec, ()) if spec.values is None else spec), dtype


def inplace_name(op):
    name, _, overload = op.partition(".")
    return f"{name}_.{overload}" if overload else f"{name}_"


def record_of(row, dtype, what, seed):
    try:
        record = run_case(row, dtype, False, seed)
        if not is_steady(row, dtype, record, seed):
            return None
    except Exception as error:  # noqa: BLE001: PyTorch refuses it
        record = {"op": row.op, "refused": str(error).split("\n")[0][:200] or "refused"}
        try:
            record["args"] = run_case(dataclasses.replace(row, reference=lambda *a, **k: None, check="shape"), dtype, False,
                                      seed)["args"]
        except Exception:  # noqa: BLE001: not even the arguments can be made
            return None
    else:
        record["refused"] = ""
        used = [x for x in dtypes_in([record["args"], record["results"]]) if x.is_floating_point]
        if any(x in (torch.float16, torch.bfloat16) for x in used):
            record["rtol"], record["atol"] = (6e-2, 6e-2) if torch.bfloat16 in used else (8e-3, 8e-3)
        elif torch.float32 in used:
            record["rtol"], record["atol"] = max(record["rtol"], 1e-4), max(record["atol"], 1e-5)
        record["atol"] = max(record["atol"], OF_ROUNDING * rounding_of(row, record))
    record["optional"] = True
    record["label"] = f"{row.op} {what}"
    detail = what.split(": ", 1)[1]
    record["what"] = detail[6:] if detail.startswith("torch.") else "mixed" if "torch." in detail else "shapes"
    record["differences"] = False
    return record


def widened(value):
    """Floating-point tensors as float64, and requested dtypes likewise."""
    if isinstance(value, (list, tuple)):
        return type(value)(widened(item) for item in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.double()
    return value


def rounding_of(row, record) -> float:
    """The difference between PyTorch's results and those in float64; 0 if unknown."""
    schema = schema_of(row.op)
    if row.check != "values" or schema is None:
        return 0.0
    try:
        arguments = widened(copy.deepcopy(record["args"]))
        given = {a.name: value for a, value in list(zip(schema.arguments, arguments)) if a.kwarg_only}
        exact = operator(row.op)(*[value for a, value in zip(schema.arguments, arguments) if not a.kwarg_only], **given)
    except Exception:  # noqa: BLE001: not in float64
        return 0.0
    worst = 0.0
    for ours, right in zip(tensors_in(record["results"]), tensors_in(list(exact) if isinstance(exact, tuple) else [exact])):
        if ours.shape == right.shape and ours.is_floating_point() and right.dtype == torch.float64:
            distance = (ours.double() - right).abs()
            distance = distance[torch.isfinite(distance)]
            worst = max(worst, float(distance.max()) if distance.numel() else 0.0)
    return worst


def is_steady(row, dtype, record, seed):
    """Whether PyTorch's results are the same for contiguous copies: some operators treat strided arguments as
    contiguous."""
    dense = with_specs(row, lambda spec: Dense(*[getattr(spec, f.name) for f in dataclasses.fields(spec)])
                       if isinstance(spec, Expanded) else spec)
    if not any(isinstance(spec, Expanded) for spec in specs_in([*row.args, *row.kwargs.values()])):
        return True
    if row.check != "values" or record["mutated"] or "stride" in row.op or "contiguous" in row.op:
        return True
    return same(run_case(dense, dtype, False, seed)["results"], record["results"])


def same(a, b):
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        wide = torch.complex128 if a.is_complex() else torch.float64
        return a.shape == b.shape and torch.allclose(a.to(wide), b.to(wide), 1e-2, 1e-2, equal_nan=True)
    return True


def fits(tensor):
    """Whether it can be saved, and lies within its storage, which fails if PyTorch has resized a view."""
    if tensor.dtype == torch.complex32:  # which cannot be saved
        return False
    if tensor.numel() == 0:
        return True
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    return last < tensor.storage().size()


def is_mistaken(record) -> bool:
    """PyTorch 1.13's errors with complex numbers: in-place comparisons with converted operands write 1 + 1j, and
    convolutions over zero channels return none."""
    tensors = tensors_in(record["args"])
    if not any(tensor.is_complex() for tensor in tensors):
        return False
    name = record["op"].partition(".")[0]
    return name in ("aten::eq_", "aten::ne_") or ("conv" in name and any(tensor.numel() == 0 for tensor in tensors))


def dtypes_in(value) -> list:
    if isinstance(value, (list, tuple)):
        return [dtype for item in value for dtype in dtypes_in(item)]
    return [value.dtype] if isinstance(value, torch.Tensor) else []


def variants(row, number):
    if row.reference and schema_of(row.op):  # torch.ops is wrong here
        return
    row = distinct(row)
    specs = specs_in([*row.args, *row.kwargs.values()])
    if not specs or any(torch.Size(shape_of(spec)).numel() > MOST_ELEMENTS for spec in specs):
        return
    derived = []
    if number < ROWS_FOR_DTYPES and row.op not in UNTYPED:
        derived += dtype_variants(row, specs)
    if number < ROWS_FOR_SHAPES and "_backward" not in row.op and row.op not in UNCHECKED and not row.op.startswith("tensord::"):
        derived += shape_variants(row, specs)
    for what, variant, dtype in derived:
        yield what, variant, dtype
        inplace = inplace_name(row.op)
        if row.reference is None and specs_in(row.args[:1]) and schema_of(inplace) and row.check == "values":
            yield what, dataclasses.replace(variant, op=inplace), dtype


def write_family(name, folder, current, part):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    records, seen, count = [], collections.Counter(), 0
    for index, row in enumerate(importlib.import_module(f"{cases_package.__name__}.{name}").CASES):
        if row.error is not None or row.check == "drawn" or row.op in SKIPPED:
            continue
        for what, variant, dtype in variants(row, seen[row.op]):
            count += 1
            if count % part != 0:
                continue
            current.value = f"{variant.op} {what} {variant.args}"[:500].encode()
            record = record_of(variant, dtype, f"row {index}: {what}", index)
            if record and not is_mistaken(record) and all(map(fits, tensors_in([record["args"], record.get("results"), record.get("mutated")]))):
                records.append(record)
        seen[row.op] += 1
    torch.save(records, folder / f"{name}.pt")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--part", type=int, default=1)
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for module_info in pkgutil.iter_modules(cases_package.__path__):
        if options.families and module_info.name not in options.families:
            continue
        # PyTorch may crash on calls that nobody makes; then the test must know which one.
        current = multiprocessing.Array("c", 600)
        process = multiprocessing.Process(target=write_family, args=(module_info.name, folder, current, options.part))
        process.start()
        process.join()
        if process.exitcode != 0:
            failed = options.part == 1  # otherwise it only concerns PyTorch
            print(f"{module_info.name}: PyTorch ended with {process.exitcode} at {current.value.decode()}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
