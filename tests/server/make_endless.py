"""Writes tests/server/data/endless.pt, whose loading never ends by itself: python3 tests/server/make_endless.py"""

import os

import torch
from torch import Tensor, nn


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


folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
torch.jit.script(Endless()).save(os.path.join(folder, "endless.pt"))
