"""A TorchScript module as data: members, functions, statements and calls, so that it can be written out, run by PyTorch
and reduced."""

from __future__ import annotations

import copy
import dataclasses
import re
import sys
import types
from typing import Optional

import torch
from torch import nn

HEADER = """import math
from enum import Enum
from typing import Dict, List, NamedTuple, Optional, Tuple
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from tests.programs.program import filled, seeded

"""


def random_tensor(shape, dtype: torch.dtype, low: float, high: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    real = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    if dtype == torch.bool:
        return real > (low + high) / 2
    return (real if dtype.is_floating_point else real.round()).to(dtype)


def filled(seed: int, shape, dtype: str = "float32", low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    """A tensor member's initial contents; the same numbers if the default dtype is float64."""
    tensor = random_tensor(shape, getattr(torch, dtype), low, high, seed)
    return tensor.to(torch.get_default_dtype()) if dtype == "float32" or torch.get_default_dtype() == torch.float64 and tensor.is_floating_point() else tensor


def seeded(seed: int, make):
    """A layer with weights of its own seed, and statistics as after training."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    torch.manual_seed(seed)
    layer = make()
    with torch.no_grad():
        for name, tensor in list(layer.named_parameters()) + list(layer.named_buffers()):
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 2.0)
            elif name.endswith("running_mean") or (tensor.is_floating_point() and tensor.dim() == 1):
                tensor.uniform_(-1.0, 1.0)
    torch.set_default_dtype(dtype)
    return layer.to(dtype)


@dataclasses.dataclass
class Argument:
    """An argument of a call."""

    type: str
    shape: tuple = ()
    dtype: torch.dtype = torch.float32
    low: float = -2.0
    high: float = 2.0
    seed: int = 0
    layout: str = "plain"  # or "last" (channels_last), "swapped" (transposed memory), "gaps", "expanded"
    value: object = None  # of non-tensors; for a list of tensors their Arguments
    is_none: bool = False  # of an Optional
    same_as: Optional[int] = None  # the argument whose memory this one shares
    how: str = "same"  # or "view", "turned", "row"

    def __str__(self):
        if self.is_none or self.type not in ("Tensor", "Optional[Tensor]"):
            return "None" if self.is_none else f"{self.type} {[str(item) for item in self.value] if self.type == 'List[Tensor]' else self.value}"
        alias = "" if self.same_as is None else f" ({self.how} of argument {self.same_as})"
        return f"{self.layout} {tuple(self.shape)} {self.dtype} [{self.low}, {self.high}] seed {self.seed}{alias}"

    def make(self, is_double: bool):
        if self.is_none:
            return None
        if self.type == "List[Tensor]":
            return [item.make(is_double) for item in self.value]
        if self.type not in ("Tensor", "Optional[Tensor]"):
            return copy.deepcopy(self.value)
        plain = random_tensor(self.shape, self.dtype, self.low, self.high, self.seed)
        if is_double and plain.is_floating_point():
            plain = plain.double()
        return self.laid_out(plain)

    def laid_out(self, plain: torch.Tensor) -> torch.Tensor:
        if self.layout == "last" and plain.dim() == 4:
            return plain.contiguous(memory_format=torch.channels_last)
        if self.layout == "swapped" and plain.dim() >= 2:
            return plain.transpose(0, -1).contiguous().transpose(0, -1)
        if self.layout == "gaps" and plain.dim() >= 1:
            wide = torch.zeros(tuple(plain.shape[:-1]) + (plain.shape[-1] * 2 + 1,), dtype=plain.dtype)
            view = wide[..., 1::2]
            view.copy_(plain)
            return view
        if self.layout == "expanded" and plain.dim() >= 1 and plain.shape[0] > 0:
            return plain[:1].clone().expand(plain.shape)
        return plain


def make_all(arguments: list, is_double: bool) -> list:
    """A call's values; some are other arguments, or views of them."""
    values = [argument.make(is_double) for argument in arguments]
    for i, argument in enumerate(arguments):
        if argument.same_as is not None:
            base = values[argument.same_as]
            values[i] = {"same": lambda t: t, "view": lambda t: t[...], "turned": lambda t: t.transpose(-1, -2), "row": lambda t: t[0]}[argument.how](base)
    return values


@dataclasses.dataclass
class Statement:
    """A line, or a head with a body (and an else)."""

    text: str
    body: Optional[list] = None
    orelse: Optional[list] = None

    def lines(self, indent: str) -> list:
        out = [indent + line for line in self.text.split("\n")]
        for head, block in ((None, self.body), ("else:", self.orelse)):
            if block is None:
                continue
            if head:
                out.append(indent + head)
            out += lines_of(block, indent + "    ")
        return out


def lines_of(block: list, indent: str) -> list:
    lines = [line for statement in block for line in statement.lines(indent)]
    return lines or [indent + "pass"]


@dataclasses.dataclass
class Method:
    name: str
    inputs: list  # (name, type)
    body: list = dataclasses.field(default_factory=list)
    results: list = dataclasses.field(default_factory=list)  # (name, type)
    defaults: dict = dataclasses.field(default_factory=dict)

    def result_type(self) -> str:
        return "Tuple[" + ", ".join(kind for _, kind in self.results) + "]" if len(self.results) > 1 else self.results[0][1]

    def result_text(self) -> str:
        return ", ".join(name for name, _ in self.results)

    def lines(self, indent: str, is_method: bool = True) -> list:
        inputs = ["self"] if is_method else []
        inputs += [f"{n}: {t}" + (f" = {self.defaults[n]}" if n in self.defaults else "") for n, t in self.inputs]
        export = [indent + "@torch.jit.export"] if is_method and self.name != "forward" else []
        return export + [indent + f"def {self.name}({', '.join(inputs)}) -> {self.result_type()}:",
                         *lines_of(self.body, indent + "    "), indent + f"    return {self.result_text()}"]


@dataclasses.dataclass
class Program:
    seed: int
    members: list = dataclasses.field(default_factory=list)  # (name, source of its initial value, annotation or "")
    pieces: list = dataclasses.field(default_factory=list)  # sources of functions and classes before the module
    methods: list = dataclasses.field(default_factory=list)  # helpers first, forward last
    calls: list = dataclasses.field(default_factory=list)  # (method name, [Argument])
    rules: set = dataclasses.field(default_factory=set)  # the rules that made it
    is_traced: bool = False
    is_frozen: bool = False

    def source(self, is_double: bool = False) -> str:
        lines = [HEADER, *self.pieces, "class M(nn.Module):"]
        lines += [f"    {name}: {kind}" for name, _, kind in self.members if kind]
        lines += ["    def __init__(self):", "        super().__init__()"]
        for name, text, _ in self.members:
            if text.startswith("buffer "):
                lines.append(f"        self.register_buffer('{name}', {text[7:]})")
            else:
                lines.append(f"        self.{name} = {text}")
        for method in self.methods:
            lines += ["", *method.lines("    ")]
        text = "\n".join(lines) + "\n"
        if is_double:
            for half in ("torch.float32", "torch.float16", "torch.bfloat16"):
                text = text.replace(half, "torch.float64")
            text = re.sub(r"\.(float|half|bfloat16)\(\)", ".double()", text)
        return text

    def method(self, name: str) -> Method:
        return next(method for method in self.methods if method.name == name)


class Loaded:
    """A program's eager module, from a source file that torch.jit.script can read."""

    count = 0

    def __init__(self, source: str, folder: str):
        Loaded.count += 1
        self.name = f"program_{Loaded.count}"
        path = f"{folder}/{self.name}.py"
        with open(path, "w") as file:
            file.write(source)
        module = types.ModuleType(self.name)
        module.__file__ = path
        sys.modules[self.name] = module
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        self.path = path
        self.eager = module.M().eval()

    def drop(self):
        import linecache
        import os

        sys.modules.pop(self.name, None)
        linecache.cache.pop(self.path, None)
        os.unlink(self.path)
