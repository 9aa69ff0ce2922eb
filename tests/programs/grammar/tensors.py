"""Operators on tensors, from templates."""

from __future__ import annotations

import re

import torch

from tests.programs import templates
from tests.programs.builder import Skip
from tests.programs.grammar.rules import fill, rule


@rule(20)
def pointwise(b):
    b.let(fill(b, b.rng.choice(templates.POINTWISE)))


@rule(7)
def reduce(b):
    b.let(fill(b, b.rng.choice(templates.REDUCE)))


@rule(11)
def view(b):
    b.let(fill(b, b.rng.choice(templates.VIEWS)))


@rule(9)
def write(b):
    b.do(fill(b, b.rng.choice(templates.WRITES)))


# Rare: such a program runs as written, without passes.
@rule(0.3)
def reshape_in_place(b):
    b.do(fill(b, b.rng.choice(templates.RESHAPES)))


@rule(2)
def loss(b):
    b.let(fill(b, b.rng.choice(templates.LOSSES)))


@rule(2)
def new_tensor(b):
    kind = b.rng.choice([torch.float32, torch.float32, torch.int64, torch.int32, torch.bool, torch.float64, torch.float16, torch.bfloat16, torch.uint8])
    low = 0 if kind == torch.uint8 else -3
    b.fresh(None, kind, low, 3)


@rule(2)
def again(b):
    """Repeats an existing expression."""
    lines = [s for s in b.block if s.body is None and re.match(r"v\d+(: [^=]*)? = ", s.text)]
    if not lines:
        raise Skip
    line = b.rng.choice(lines).text
    target = re.match(r"v\d+", line).group()
    b.let(line.split(" = ", 1)[1], b.types.get(target) or "Tensor")
