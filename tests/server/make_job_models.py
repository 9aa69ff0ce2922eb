"""Writes models of training's tests to tests/server/data: python3 tests/server/make_job_models.py

endless.pt: its load never ends by itself. chances.pt: random draws with constant probabilities.
"""

import os

import torch
from torch import Tensor, nn

CHANCES = torch.tensor([0.0, 0.0])


class Endless(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    @torch.jit.export
    def __getstate__(self) -> tuple[int, bool]:
        return self.n, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[int, bool]):
        self.n = state[0]
        self.training = state[1]
        while self.n >= 0:
            self.n = self.n + 1

    def forward(self, x: Tensor) -> Tensor:
        return x


class Chances(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.zeros_like(x).bernoulli_(CHANCES)


folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
torch.jit.script(Endless()).save(os.path.join(folder, "endless.pt"))
torch.jit.trace(Chances(), torch.zeros(2), check_trace=False).save(os.path.join(folder, "chances.pt"))
