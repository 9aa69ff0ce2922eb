#!/usr/bin/env python3
"""Writes runtime.pt next to itself, the archive of runtime_test.cpp."""

import os
from typing import List, Tuple

import torch
from torch import Tensor, nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.tied = self.inner.weight
        self.calls = 0
        self.register_buffer("sum", torch.zeros(2))

    def forward(self, x: Tensor, times: int = 1) -> Tensor:
        for _ in range(times):
            x = self.inner(x)
        return x

    @torch.jit.export
    def step(self, x: Tensor) -> int:
        self.calls += 1
        self.sum.add_(x)
        return self.calls

    @torch.jit.export
    def state(self) -> Tuple[int, Tensor]:
        return self.calls, self.sum

    @torch.jit.export
    def refuse(self, items: List[int]) -> int:
        assert len(items) > 2, "too few items"
        return items[1]

    @torch.jit.export
    def spin(self, n: int) -> int:
        steps = 0
        while steps < n:
            steps += 1
        return steps


path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runtime.pt")
torch.jit.script(Model().eval()).save(path)
