"""Models and data of the training tests, made with real PyTorch."""

import os

import torch
from torch import Tensor, nn


class Mlp(nn.Module):
    """`forward` returns scores; `training_step` is a loss of its own."""

    def __init__(self, features: int = 64, hidden: int = 64, classes: int = 10, dropout: float = 0.0):
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.dropout = nn.Dropout(dropout)
        self.scores = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.dropout(torch.relu(self.hidden(x))))

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(self.forward(x), y)

    @torch.jit.export
    def vector_loss(self, x: Tensor, y: Tensor) -> Tensor:
        return self.forward(x).sum(1)

    @torch.jit.export
    def detached_loss(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(self.forward(x).detach(), y)


class BatchNormNet(nn.Module):
    """Buffers, dropout and a counter: all state that a checkpoint must keep."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Chances(nn.Module):
    """Rows that sum to 1, which cross_entropy refuses."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.scores(x), dim=1)


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def save(module, folder, name, version=1):
    path = os.path.join(folder, name, str(version))
    os.makedirs(path)
    torch.jit.script(module.eval()).save(os.path.join(path, "model.pt"))


def clusters(rows, features, classes, seed, spread=1.0):
    """Points around one center for each class: easy to learn."""
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(classes, features, generator=generator) * 2
    labels = torch.randint(classes, (rows,), generator=generator)
    return centers[labels] + torch.randn(rows, features, generator=generator) * spread, labels
