"""The rows of the benchmark: a model with `training_step`, a batch, and the optimizer."""

import dataclasses
from typing import Callable, Tuple

import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

from tests.models import make_models


class Classifier(nn.Module):
    """A model that returns logits, with the loss that a training job calls."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x)

    @torch.jit.export
    def training_step(self, x: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(self.forward(x), label)


class Encoder(nn.Module):
    """Six layers of width 384 over word embeddings; predicts every next word."""

    def __init__(self, words: int = 1000, width: int = 384, heads: int = 6, layers: int = 6, length: int = 128):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.randn(1, length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, words)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.layers(self.words(ids) + self.places[:, : ids.size(1)]))

    @torch.jit.export
    def training_step(self, ids: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(self.forward(ids).flatten(0, 1), label.flatten())


def mlp() -> nn.Module:
    return Classifier(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)))


def digits() -> nn.Module:
    """For 8×8 images of handwritten digits."""
    return Classifier(nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)))


def tiny() -> nn.Module:
    """A step of it loads libraries and their tables into memory, which should not count."""
    return Classifier(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)))


def tiny_batch() -> Tuple[Tensor, Tensor]:
    return torch.randn(4, 1, 4, 4), torch.randint(0, 3, (4,))


def resnet18() -> nn.Module:
    return Classifier(make_models.condition(torchvision.models.resnet18(weights=None)))


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    model: Callable[[], nn.Module]
    batch: Callable[[], Tuple[Tensor, Tensor]]
    optimizer: str  # "sgd" (momentum 0.9) or "adamw"
    lr: float


ROWS = [
    Row("MLP, batch 64", mlp, lambda: (torch.randn(64, 784), torch.randint(0, 10, (64,))), "sgd", 0.01),
    Row("digits convnet, batch 128", digits, lambda: (torch.randn(128, 1, 8, 8), torch.randint(0, 10, (128,))), "sgd", 0.01),
    Row("resnet18, batch 8", resnet18, lambda: (torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))), "sgd", 0.001),
    Row("encoder 6×384, 8×128 words", Encoder,
        lambda: (torch.randint(0, 1000, (8, 128)), torch.randint(0, 1000, (8, 128))), "adamw", 1e-4),
]


def scripted(model: nn.Module) -> torch.jit.ScriptModule:
    """In training mode, as a training job loads it."""
    return torch.jit.script(model.train())
