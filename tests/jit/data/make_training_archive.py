#!/usr/bin/env python3
"""Writes training.pt next to itself, the archive of training_test.cpp."""

import os
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@torch.jit.script
class Noted:
    """Records when it is entered and exited."""

    def __init__(self, notes: List[int]):
        self.notes = notes

    def __enter__(self):
        self.notes.append(1)

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.notes.append(2)


class Head(nn.Module):
    def __init__(self, weight: nn.Parameter):
        super().__init__()
        self.weight = weight
        self.scale = nn.Parameter(torch.tensor([2.0]), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight) * self.scale


class Model(nn.Module):
    names: Dict[str, Tensor]
    pairs: List[Tuple[int, str]]
    note: Optional[str]

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.first = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.5)
        self.head = Head(self.first.weight)  # tied
        self.register_buffer("table", torch.arange(6.0).view(2, 3)[:, 1:])
        self.sizes = [1, 2]
        self.names = {"a": torch.ones(2), "b": torch.zeros(1)}
        self.pairs = [(1, "one"), (2, "two")]
        self.history = [torch.zeros(1)]
        self.note = None
        with torch.no_grad():
            self.first.weight.copy_(torch.tensor([[1.0, -1.0], [0.5, 2.0]]))
            self.first.bias.copy_(torch.tensor([0.25, -0.5]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.first(x)))

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return ((self.forward(x) - y) * (self.forward(x) - y)).sum()

    @torch.jit.export
    def normalized(self, x: Tensor) -> Tensor:
        return self.drop(self.norm(x))

    @torch.jit.export
    def step(self, x: Tensor, y: Tensor, lr: float) -> Tensor:
        loss = self.training_step(x, y)
        loss.backward()
        with torch.no_grad():
            for p in [self.first.weight, self.first.bias]:
                p.sub_(p.grad * lr)
                p.grad.zero_()
        return loss.detach()

    @torch.jit.export
    def second_order(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        first = torch.autograd.grad([(x * x * x).sum()], [x], create_graph=True)[0]
        assert first is not None
        second = torch.autograd.grad([first.sum()], [x])[0]
        assert second is not None
        return first, second

    @torch.jit.export
    def one_of_two(self, x: Tensor) -> Tensor:
        a = x * 2
        b = x * 2
        result = torch.autograd.grad([(a * b).sum()], [a])[0]
        assert result is not None
        return result

    @torch.jit.export
    def flags(self, x: Tensor) -> List[bool]:
        weight = self.first.weight
        made = x * weight
        out = [weight.requires_grad, self.head.scale.requires_grad, weight.is_leaf, made.requires_grad, made.is_leaf,
               made.detach().requires_grad, torch.is_grad_enabled()]
        with torch.no_grad():
            out += [torch.is_grad_enabled(), (x * weight).requires_grad]
        out += [torch.is_grad_enabled()]
        return out

    @torch.jit.export
    def raise_without_grad(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            assert x.size(0) > 100, "too few"
        return x

    @torch.jit.export
    def noted(self, fails: bool, notes: List[int]) -> List[int]:
        with Noted(notes):
            with Noted(notes):
                assert not fails, "as asked"
        return notes

    @torch.jit.export
    def leaf(self) -> Tensor:
        x = torch.zeros([2])
        x.requires_grad_()
        (x * 3).sum().backward()
        return x.grad

    @torch.jit.export
    def turn_off(self):
        torch.set_grad_enabled(False)

    @torch.jit.export
    def change(self, x: Tensor) -> int:
        self.sizes.append(3)
        self.history.append(x)
        self.names["c"] = x
        self.note = "changed"
        self.table.add_(1)
        return len(self.sizes)

    @torch.jit.export
    def state(self) -> Tuple[List[int], List[Tensor], Dict[str, Tensor], Optional[str], Tensor, List[Tuple[int, str]]]:
        return self.sizes, self.history, self.names, self.note, self.table, self.pairs


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "training.pt")
    torch.jit.script(Model().eval()).save(path)
