"""Makes the program of a seed from the rules of the grammar."""

from __future__ import annotations

import torch

from tests.programs.builder import Builder
from tests.programs.grammar import finish
from tests.programs.program import Program


def build(seed: int) -> Program:
    torch.set_grad_enabled(False)
    builder = Builder(seed)
    for _ in range(builder.rng.randint(1, 2)):
        builder.fresh(builder.shape(1, 4))
    builder.statements(builder.rng.randint(2, 14))
    finish(builder)
    return builder.program
