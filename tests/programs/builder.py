"""Builds a random program statement by statement; each runs in PyTorch at once, and failing ones are dropped."""

from __future__ import annotations

import copy
import enum
import random
import re

import torch
import torch.nn.functional as F
from torch import nn

from tests.programs import program as parts
from tests.programs.program import Argument, Program, Statement

MAX_ELEMENTS = 40000
MAX_ABSOLUTE = 1e6


# What statements are drawn from: grammar/ fills them.
RULES, WEIGHTS = [], []


class Skip(Exception):
    """A rule does not apply here."""


class Builder:
    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.program = Program(seed)
        self.module = nn.Module().eval()
        self.names = {"torch": torch, "F": F, "nn": nn, "self": self.module, "filled": parts.filled, "seeded": parts.seeded}
        exec("import math\nfrom enum import Enum\nfrom typing import Dict, List, NamedTuple, Optional, Tuple\nfrom torch import Tensor", self.names)
        self.kinds: dict = {}  # name → class, of the program's declarations
        self.types: dict = {}  # variable → type, in order of creation
        self.frozen: set = set()  # loop variables, which are not assigned
        self.inputs: list = []  # (name, Argument) of forward
        self.block: list = []
        self.depth = 0
        self.counter = 0
        self.sizes = [self.rng.choice([1, 2, 3, 3, 4, 5, 6, 8]) for _ in range(3)]
        if self.rng.random() < 0.06:
            self.sizes[0] = 0
        if self.rng.random() < 0.08:
            self.sizes[1] = self.rng.choice([16, 33, 64])
            self.sizes[2] = self.rng.choice([24, 48, 67])
        # Some programs use 16-bit floats, some mix tensors of both memory formats.
        self.float_dtype = torch.bfloat16 if self.rng.random() < 0.1 else torch.float32
        self.layouts = ["plain"] * 9 + ["last", "last", "swapped", "gaps", "expanded"]
        if self.rng.random() < 0.15:
            self.layouts = ["plain", "last"]
        self.forward_open = True  # new inputs may still be added, outside of helpers

    # ---- names and values

    def new_name(self, letter: str = "v") -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def value(self, name: str):
        return eval(name, self.names)

    def pick(self, kind: str = "Tensor", fits=lambda value: True) -> str:
        fitting = [name for name, type_ in self.types.items() if type_ == kind and fits(self.value(name))]
        if not fitting:
            raise Skip(kind)
        # New variables are used more often, so that programs get deep.
        return self.rng.choice(fitting[-4:] if self.rng.random() < 0.6 else fitting)

    def float_tensor(self, fits=lambda value: True) -> str:
        return self.pick("Tensor", lambda t: t.is_floating_point() and fits(t))

    def size(self) -> int:
        return self.rng.choice(self.sizes)

    def shape(self, low: int = 0, high: int = 4) -> tuple:
        return tuple(1 if self.rng.random() < 0.12 else self.size() for _ in range(self.rng.randint(low, high)))

    def fresh(self, shape=None, dtype=None, low: float = -2.0, high: float = 2.0) -> str:
        """A tensor of this shape: an input, a parameter, or a buffer."""
        dtype = dtype or self.float_dtype
        shape = self.shape() if shape is None else tuple(shape)
        seed = self.rng.randrange(1 << 30)
        if self.forward_open and self.depth == 0 and len(self.inputs) < 6 and self.rng.random() < 0.6:
            argument = Argument("Tensor", shape, dtype, low, high, seed, self.rng.choice(self.layouts))
            name = self.new_name("x")
            self.inputs.append((name, argument))
            self.names[name] = argument.make(False)
            self.types[name] = "Tensor"
            return name
        tensor_source = f"filled({seed}, {shape}, '{str(dtype)[6:]}', {low}, {high})"
        is_parameter = dtype.is_floating_point and self.rng.random() < 0.6
        return self.member(f"nn.Parameter({tensor_source}, requires_grad=False)" if is_parameter else f"buffer {tensor_source}", "p")

    def some_float(self, shape) -> str:
        """A float32 tensor of exactly this shape: an existing one, or a new one."""
        shape = tuple(shape)
        try:
            if self.rng.random() < 0.7:
                return self.float_tensor(lambda t: tuple(t.shape) == shape and t.dtype == torch.float32)
        except Skip:
            pass
        return self.fresh(shape, torch.float32)

    def member(self, expression: str, letter: str = "m", annotation: str = "") -> str:
        name = self.new_name(letter)
        value = eval(expression[7:] if expression.startswith("buffer ") else expression, self.names)
        if expression.startswith("buffer "):
            self.module.register_buffer(name, value)
        elif isinstance(value, nn.Module):
            setattr(self.module, name, value.eval())
        else:
            setattr(self.module, name, value)
        self.program.members.append((name, expression, annotation))
        if isinstance(value, torch.Tensor):
            self.types[f"self.{name}"] = "Tensor"
        return f"self.{name}"

    def piece(self, expression: str):
        """A class or function before the module. Decorators are for PyTorch's compiler alone."""
        self.execute(re.sub(r"^@.*\n", "", expression))
        self.program.pieces.append(expression)
        found = re.match(r"(?:@.*\n)*class (\w+)", expression)
        if found:
            self.kinds[found.group(1)] = self.names[found.group(1)]

    def of_kind(self, prefix: str) -> list:
        """(variable, class) for declared classes whose names start with the prefix."""
        return [(name, kind) for name, kind in self.types.items() if kind in self.kinds and kind.startswith(prefix)]

    # ---- statements

    def _is_sane(self, value) -> bool:
        for leaf in _tensors(value):
            if leaf.numel() > MAX_ELEMENTS or leaf.dim() > 6 or leaf.is_complex() or leaf.layout != torch.strided:
                return False
            if leaf.is_floating_point() and leaf.numel():
                largest = leaf.detach().abs().max()
                if not bool(largest <= MAX_ABSOLUTE) and self.rng.random() < 0.95:
                    return False
            if leaf.dtype == torch.int64 and leaf.numel() and int(leaf.abs().max()) > 1 << 40:
                return False
        return True

    def execute(self, expression: str):
        try:
            exec(expression, self.names)
        except Skip:
            raise
        except Exception as error:
            raise Skip(str(error)) from error

    def let(self, expression: str, kind: str = "Tensor") -> str:
        """A new variable, or an old one of the same type, becomes this expression."""
        target = self.new_name()
        if self.rng.random() < (0.35 if self.depth else 0.08):
            old = [name for name, type_ in self.types.items() if type_ == kind and name[0] == "v" and name not in self.frozen]
            if old:
                target = self.rng.choice(old)
        before = self.names.get(target)
        self.execute(f"{target} = {expression}")
        if not self._is_sane(self.names[target]) or not _has_type(self.names[target], kind):
            self.names[target] = before
            raise Skip("a value that is not wanted")
        annotation = f": {kind}" if kind.startswith(("List", "Dict", "Optional")) and target not in self.types else ""
        self.block.append(Statement(f"{target}{annotation} = {expression}"))
        self.types[target] = kind
        return target

    def do(self, expression: str):
        """A statement for its effect; undone when it fails or overflows."""
        kept = self.snapshot()
        try:
            self.execute(expression)
            if not self._is_sane([self.value(name) for name in self.types]):
                raise Skip("a value that is not wanted")
        except Skip:
            self.restore(kept)
            raise
        self.block.append(Statement(expression))

    def snapshot(self):
        state = {name: self.names[name] for name in self.names if name not in _FIXED and self._is_data(self.names[name])}
        state["self"] = self.module
        return copy.deepcopy(state), dict(self.types)

    def _is_data(self, value) -> bool:
        return value is None or isinstance(value, (torch.Tensor, int, float, str, bool, list, dict, tuple)) or type(value) in self.kinds.values()

    def restore(self, kept):
        state, kinds = kept
        self.names.update(state)
        self.module = self.names["self"]
        self.types = dict(kinds)

    def nested(self, count: int) -> list:
        """Statements executed on a copy of the state."""
        kept, outer = self.snapshot(), self.block
        self.block = []
        self.depth += 1
        members = len(self.program.members)
        try:
            self.statements(count)
            made = self.block
        finally:
            self.depth -= 1
            self.block = outer
            self.restore(kept)
            self.add_members_again(members)
        return made

    def add_members_again(self, first: int):
        """Adds the members from this one on again, after the module was reset to before them."""
        for name, text, _ in self.program.members[first:]:
            if hasattr(self.module, name):
                continue
            value = eval(text[7:] if text.startswith("buffer ") else text, self.names)
            if text.startswith("buffer "):
                self.module.register_buffer(name, value)
            else:
                setattr(self.module, name, value.eval() if isinstance(value, nn.Module) else value)
            if isinstance(value, torch.Tensor):
                self.types[f"self.{name}"] = "Tensor"

    def compound(self, statement: Statement):
        """Runs a statement with a body and adds it to the program."""
        kept = self.snapshot()
        try:
            self.execute("\n".join(statement.lines("")))
            if not self._is_sane([self.value(name) for name in self.types]):
                raise Skip("a value that is not wanted")
            if any(not _has_type(self.value(name), kind) for name, kind in self.types.items()):
                raise Skip("a variable of another type")
        except Skip:
            self.restore(kept)
            raise
        self.block.append(statement)

    def statements(self, count: int):
        made = tries = 0
        while made < count and tries < count * 6:
            tries += 1
            rule = self.rng.choices(RULES, WEIGHTS)[0]
            try:
                rule(self)
                made += 1
                self.program.rules.add(rule.__name__)
            except Skip:
                pass  # the statements so far are valid and kept


_FIXED = {"torch", "F", "nn", "self", "filled", "seeded", "math", "Dict", "Enum", "List", "NamedTuple", "Optional", "Tuple", "Tensor", "__builtins__"}


def _tensors(value) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dict__") and not isinstance(value, (nn.Module, enum.Enum, type)):
        value = list(vars(value).values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _has_type(value, kind: str) -> bool:
    if kind.startswith("Optional["):
        return value is None or _has_type(value, kind[9:-1])
    if kind.startswith("List["):
        return isinstance(value, list) and all(_has_type(item, kind[5:-1]) for item in value)
    if kind.startswith("Dict["):
        key, item = kind[5:-1].split(", ", 1)
        return isinstance(value, dict) and all(_has_type(k, key) and _has_type(v, item) for k, v in value.items())
    if kind.startswith("Tuple["):
        return isinstance(value, tuple)
    return type(value).__name__ == kind or (kind == "Tensor" and isinstance(value, torch.Tensor))
