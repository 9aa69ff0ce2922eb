"""Writes tests/server/data/counter.pt, a model that returns its own buffer: python3 tests/server/make_counter.py"""

import os

import torch
from torch import Tensor, nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(x)
        return self.seen


folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(folder, exist_ok=True)
torch.jit.script(Counter()).save(os.path.join(folder, "counter.pt"))
