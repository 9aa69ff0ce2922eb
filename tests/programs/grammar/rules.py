"""How a rule is declared, and how templates get their operands: each rule adds statements to a Builder, or raises Skip."""

from __future__ import annotations

import re

import torch

from tests.programs.builder import RULES, WEIGHTS, Builder, Skip

DTYPES = ["torch.float32"] * 3 + ["torch.float64", "torch.float16", "torch.bfloat16", "torch.int64", "torch.int32", "torch.bool", "torch.uint8"]


def rule(weight: float):
    def add(function):
        RULES.append(function)
        WEIGHTS.append(weight)
        return function

    return add


def expands(small, large) -> bool:
    return len(small) <= len(large) and all(a == b or a == 1 for a, b in zip(reversed(small), reversed(large)))


def number(b: Builder) -> str:
    return str(b.rng.choice([0.5, 1.0, -1.0, 2.0, -0.25, 0.1, 3.0, 0.0, round(b.rng.uniform(-3, 3), 3)]))


class Filler:
    """Puts operands into a template."""

    def __init__(self, b: Builder):
        self.b = b
        self.first = None

    def shape(self):
        return tuple(self.b.value(self.first).shape)

    def dim(self) -> int:
        rank = max(1, self.b.value(self.first).dim())
        return self.b.rng.randrange(-rank, rank)

    def operand(self, letter: str) -> str:
        b, rng = self.b, self.b.rng
        if letter == "f":
            name = b.float_tensor()
        elif letter == "x":
            name = b.pick()
        elif letter == "w":
            name = b.pick()
        elif letter == "i":
            name = self.or_fresh(lambda t: t.dtype in (torch.int64, torch.int32), torch.int64, -4, 4)
        elif letter == "b":
            name = self.or_fresh(lambda t: t.dtype == torch.bool, torch.bool, -1, 1)
        elif letter == "m":
            return self.mask()
        elif letter == "g":
            shape = self.shape()
            if rng.random() < 0.15:
                return b.fresh(tuple(s if rng.random() < 0.6 else 1 for s in shape[rng.randint(0, len(shape)):]))
            return b.pick("Tensor", lambda t: expands(t.shape, shape) or (expands(shape, t.shape) and rng.random() < 0.5))
        else:
            shape = self.shape()
            return b.pick("Tensor", lambda t: tuple(t.shape) == shape)
        self.first = self.first or name
        return name

    def or_fresh(self, fits, dtype, low, high) -> str:
        try:
            return self.b.pick("Tensor", fits)
        except Skip:
            return self.b.fresh(self.b.shape(1, 3), dtype, low, high)

    def mask(self) -> str:
        shape = self.shape()
        try:
            return self.b.pick("Tensor", lambda t: t.dtype == torch.bool and expands(t.shape, shape))
        except Skip:
            if self.b.rng.random() < 0.5:
                return self.b.fresh(shape[self.b.rng.randint(0, len(shape)):], torch.bool, -1, 1)
            return f"({self.first} > {number(self.b)})"

    def piece(self, letter: str) -> str:
        b, rng = self.b, self.b.rng
        if letter in "fxwibmge":
            return self.operand(letter)
        if letter == "d":
            return str(self.dim())
        if letter == "D":
            return str(sorted({self.dim() % max(1, len(self.shape())) for _ in range(rng.randint(1, 2))}))
        if letter == "P":
            order = list(range(len(self.shape())))
            rng.shuffle(order)
            return str(order)
        if letter == "S":
            return f"{self.first}.size({self.dim()})"
        if letter == "n":
            return str(rng.choice([1, 2, 2, 3, 0, -1]))
        if letter == "s":
            ints = [n for n, t in b.types.items() if t == "float"]
            return rng.choice(ints) if ints and rng.random() < 0.15 else number(b)
        if letter == "p":
            return str(rng.choice([0.5, 1.0, 2.0, 1e-3, 3.0]))
        if letter == "t":
            return str(rng.random() < 0.5)
        if letter == "r":
            return repr(rng.choice(["mean", "sum", "none"]))
        return rng.choice(DTYPES)

    def __call__(self, template: str) -> str:
        # Operands first, so that dimensions know the shape.
        names = iter([self.operand(m) if m in "fxwib" else None for m in re.findall(r"\{(\w)\}", template)])
        kept = {}

        def put(match):
            name, letter = next(names), match.group(1)
            if name is None:
                return self.piece(letter)
            # "{x}" twice is usually the same tensor.
            if letter in kept and self.b.rng.random() < 0.8:
                return kept[letter]
            kept[letter] = name
            return name

        return re.sub(r"\{(\w)\}", put, template)


def fill(b: Builder, template: str) -> str:
    return Filler(b)(template)
