"""Refusals of in-place and out= variants: each of the engine's against PyTorch's of the same schema, where the written tensor
has another dtype than the result, has elements that share memory, or shares memory with an input.

If PyTorch refuses, the engine must; if PyTorch has a result, the engine gives the same or refuses. With shared memory
PyTorch's results often depend on what it has just written; these are not compared ("unlike"). See README.md.
Usage: PYTHONPATH=build/dev/python python3 -m tests.op_db.written [--strict] [NAME…]
"""

from __future__ import annotations

import argparse
import collections
import itertools
import multiprocessing
import sys
import warnings

import torch

from tests.op_db.check import difference
from tensord import engine

DTYPES = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.complex64, torch.bool)
SHAPES = ((4, 4), (4,), (2, 4, 4), (1, 2, 4, 4), (1, 2, 4, 4, 4))
VALUES = {"int": 1, "Scalar": 2, "number": 2, "float": 0.5, "bool": False, "str": "mean", "List[int]": [1], "ScalarType": 6}
# Random results, and operators that change more of a tensor than its elements.
LEFT_OUT = ("resize_", "set_", "rename_", "squeeze_", "unsqueeze_", "t_", "transpose_", "swapaxes_", "swapdims_", "as_strided_", "detach_",
            "requires_grad_", "random_", "normal_", "uniform_", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_")
# PyTorch 1.13 writes 1+1j for True.
WRONG_OF_COMPLEX = ("eq_", "ne_")
# Refusals that do not depend on the call: PyTorch has no kernel for the dtype.
NO_WORD = ("not implemented for", "INTERNAL ASSERT")


def forms() -> list:
    """(name, overload) of every variant that writes into a given tensor, here and in PyTorch."""
    found = []
    for name in engine.ops.aten.__dir__():
        for record in engine._engine._schemas("aten::" + name):
            written = [argument["name"] for argument in record["arguments"] if argument["is_written"]]
            if written in (["out"], ["self"]) and name not in LEFT_OUT and schema_of(name, record["overload"]):
                found.append((name, record["overload"]))
    return found


def schema_of(name: str, overload: str):
    try:
        return getattr(getattr(torch.ops.aten, name), overload or "default")._schema
    except (AttributeError, RuntimeError):
        return None


def value_of(argument, shape, dtype, of_index):
    kind = str(argument.type)
    if kind == "Tensor" and argument.name in ("index", "indices"):
        return torch.zeros(of_index, dtype=torch.int64)
    if kind == "Tensor" and argument.name == "mask":
        return torch.ones(shape, dtype=torch.bool)
    if kind in ("Tensor", "List[Tensor]"):
        made = [(torch.rand(shape) * 0.5 + 0.25 if dtype.is_floating_point or dtype.is_complex else torch.randint(0, 2, shape)).to(dtype) for _ in range(2)]
        return made[0] if kind == "Tensor" else made
    if argument.name == "dim" and kind == "int":
        return 0
    return VALUES[kind]


def arguments_of(schema, shape, dtype, of_index) -> list:
    torch.manual_seed(1)
    given = [a for a in schema.arguments if not a.is_out and not a.has_default_value()]
    return [None if "Optional" in str(a.type) else value_of(a, shape, dtype, of_index) for a in given]


def tensors_in(arguments):
    """(position, index in a list or None) of each tensor."""
    for i, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor):
            yield i, None
        elif isinstance(argument, list) and argument and isinstance(argument[0], torch.Tensor):
            yield i, 0


def replaced(arguments, place, tensor) -> list:
    i, within = place
    copy = [list(a) if isinstance(a, list) else a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
    if within is None:
        copy[i] = tensor
    else:
        copy[i][within] = tensor
    return copy


def at(arguments, place):
    return arguments[place[0]] if place[1] is None else arguments[place[0]][place[1]]


class Form:
    def __init__(self, name: str, overload: str):
        self.name, self.overload = name, overload or "default"
        self.schema = schema_of(name, overload)
        self.is_out = any(argument.is_out for argument in self.schema.arguments)

    def call(self, library, arguments, out):
        function = getattr(getattr(library.ops.aten, self.name), self.overload)
        return function(*arguments, out=out) if self.is_out else function(*arguments)

    def starts(self):
        """Arguments that PyTorch accepts, with the written tensor afterwards."""
        for dtype, shape, index in itertools.product(DTYPES, SHAPES, ("same", "one")):
            try:
                arguments = arguments_of(self.schema, shape, dtype, shape if index == "same" else (1,))
                # The dtype of the result is that of the functional variant, unless out= determines it.
                out = torch.empty(0, dtype=dtype) if self.is_out else None
                written = self.call(torch, replaced(arguments, (0, None), arguments[0].clone()) if not self.is_out else arguments, out)
            except Exception:  # noqa: BLE001: no such call
                continue
            if written.dim() > 0 and written.numel() > 1:
                yield arguments, written
                return

    def situations(self, arguments, written):
        """(what, arguments, out) as PyTorch's tensors."""
        target = None if self.is_out else (0, None)
        def case(what, tensor, given=arguments):
            fresh = [[t.clone() if isinstance(t, torch.Tensor) else t for t in a] if isinstance(a, list) else a for a in given]
            return (what, fresh, tensor) if self.is_out else (what, replaced(fresh, target, tensor), None)

        for dtype in DTYPES:
            yield case(f"dtype {dtype}", written.to(dtype))
        for dim, size in enumerate(written.shape):
            if size > 1:
                narrow = written.narrow(dim, 0, 1).clone()
                yield case(f"itself {dim}", narrow.expand(written.shape))
        for place in tensors_in(arguments):
            if place == target or at(arguments, place).dtype != written.dtype:
                continue
            read = at(arguments, place)
            memory = torch.zeros(read.numel() + written.numel() + 8, dtype=written.dtype)
            beside = memory[:read.numel()].view(read.shape).copy_(read)
            for what, start in (("partly", 1), ("wholly", 0)):
                memory_copy = memory.clone()
                beside = memory_copy[:read.numel()].view(read.shape)
                tensor = memory_copy[start:start + written.numel()].view(written.shape)
                given = replaced(arguments, place, beside)
                yield (f"{what} {place}", given, tensor) if self.is_out else (f"{what} {place}", replaced_keep(given, tensor), None)


def replaced_keep(arguments, tensor) -> list:
    return [tensor, *arguments[1:]]


class Memory:
    """Tensors of the engine that share memory as PyTorch's do."""

    def __init__(self):
        self.storages = {}

    def of(self, value):
        if isinstance(value, (list, tuple)):
            return [self.of(item) for item in value]
        if not isinstance(value, torch.Tensor):
            return value
        key = (value.storage().data_ptr(), value.dtype)
        if key not in self.storages:
            flat = torch.empty(0, dtype=value.dtype).set_(value.storage()).clone()
            self.storages[key] = engine.tensor(flat.tolist(), dtype=engine.bool) if value.dtype is torch.bool else engine.from_dlpack(flat).clone()
        return self.storages[key].as_strided(list(value.shape), list(value.stride()), value.storage_offset())


def to_torch(tensor):
    return torch.tensor(tensor.tolist(), dtype=torch.bool) if tensor.dtype is engine.bool else torch.from_dlpack(tensor.clone())


def rounded(tensor):
    """As exact as the composed calls."""
    return tensor.to({torch.float64: torch.float32, torch.complex128: torch.complex64}.get(tensor.dtype, tensor.dtype))


def first_line(error) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def check_form(job) -> list:
    """(kind, what) of each call that differs from PyTorch's."""
    name, overload = job
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    form = Form(name, overload)
    found = []
    label = f"{name}.{overload}"
    for arguments, written in form.starts():
        for what, given, out in form.situations(arguments, written):
            memory = Memory()
            ours, our_out = memory.of(given), memory.of(out) if out is not None else None
            try:
                want, refusal = form.call(torch, given, out).clone(), None
            except Exception as error:  # noqa: BLE001
                want, refusal = None, first_line(error)
            try:
                got, said = to_torch(form.call(engine, ours, our_out)), None
            except Exception as error:  # noqa: BLE001
                got, said = None, first_line(error)
            if refusal and any(words in refusal for words in NO_WORD):
                continue
            if name in WRONG_OF_COMPLEX and "complex" in what:
                continue
            if refusal and not said:
                found.append(("taken", f"{label} {what}: is taken, where PyTorch says: {refusal[:160]}"))
            elif said and not refusal:
                found.append(("refused", f"{label} {what}: refused: {said[:160]}"))
            elif not refusal and (unlike := difference([rounded(got)], [rounded(want)])):
                found.append(("differs" if what.startswith("dtype") else "unlike", f"{label} {what}: {unlike[:160]}"))
            else:
                found.append(("", what))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--strict", action="store_true", help="print also what is refused here alone")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    jobs = [form for form in forms() if not options.names or form[0] in options.names]
    counts = collections.Counter()
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1) as pool:
        for found in pool.imap(check_form, jobs):
            counts["forms" if found else "forms without a sample"] += 1
            for kind, what in found:
                counts[kind or "alike"] += 1
                if kind in ("taken", "differs") or (kind and options.strict):
                    print(kind, what, flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    # A run over everything that finds few variants, or refuses most calls, proves nothing.
    is_idle = not options.names and (counts["forms"] < 350 or counts["alike"] < 4000)
    if is_idle:
        print("too little was compared")
    return 1 if counts["taken"] or counts["differs"] or is_idle else 0


if __name__ == "__main__":
    sys.exit(main())
