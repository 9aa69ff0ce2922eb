"""Trains and writes the models of examples/models with PyTorch. The archives are committed; this shows how they came to be.

Usage: python3 examples/make_models.py
"""

import math
import pathlib

import torch
from torch import Tensor, nn

from examples.shapes import SHAPES, draw
from examples.sentences import LANGUAGES, SENTENCES, encode

FOLDER = pathlib.Path(__file__).resolve().parent / "models"


class Block(nn.Module):
    def __init__(self, channels: int, out_channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out_channels, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out_channels)
        self.shortcut = nn.Conv2d(channels, out_channels, 1, stride, bias=False)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ShapeNet(nn.Module):
    """Classifies the shape in a 32 x 32 gray image."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(1, 8, 2), Block(8, 16, 2), Block(16, 24, 2))
        self.head = nn.Linear(24, len(SHAPES))

    def forward(self, image: Tensor) -> Tensor:
        return torch.softmax(self.head(self.blocks(image).mean([2, 3])), dim=1)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows, length, width = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(qkv[0], qkv[1].transpose(-2, -1)) / math.sqrt(width // self.heads)
        weights = torch.softmax(scores.masked_fill(mask[:, None, None, :] == 0, float("-inf")), -1)
        mixed = torch.matmul(weights, qkv[2]).transpose(1, 2).reshape(rows, length, width)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.down(torch.nn.functional.gelu(self.up(x))))


class LanguageNet(nn.Module):
    """Classifies the language of a text, given as UTF-8 bytes with a padding mask."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.letters = nn.Embedding(256, width)
        self.positions = nn.Parameter(torch.randn(128, width) * 0.02)
        self.pairs = nn.Conv1d(width, width, 3, padding=1)
        self.layers = nn.ModuleList([Layer(width, 4), Layer(width, 4)])
        self.head = nn.Linear(width, len(LANGUAGES))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.letters(ids) + self.positions[: ids.size(1)]
        x = x + torch.relu(self.pairs((x * mask.unsqueeze(-1)).transpose(1, 2))).transpose(1, 2)
        for layer in self.layers:
            x = layer(x, mask)
        weight = mask.unsqueeze(-1).to(x.dtype)
        return torch.softmax(self.head((x * weight).sum(1) / weight.sum(1)), dim=1)


def train(model: nn.Module, batch, steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    right = 0.0
    for step in range(steps):
        inputs, labels = batch()
        probabilities = model(*inputs)
        loss = nn.functional.nll_loss(torch.log(probabilities + 1e-9), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        right = 0.95 * right + 0.05 * (probabilities.argmax(1) == labels).float().mean().item()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}, right {right:.2f}", flush=True)


def shape_batch():
    labels = torch.randint(len(SHAPES), (48,))
    images = torch.stack([torch.tensor(draw(SHAPES[label])) for label in labels])
    return (images.unsqueeze(1),), labels


def sentence_batch(length: int = 48):
    rows, labels = [], []
    for _ in range(48):
        label = int(torch.randint(len(LANGUAGES), ()))
        words = " ".join(SENTENCES[LANGUAGES[label]]).split()
        start, count = int(torch.randint(len(words) - 3, ())), int(torch.randint(2, 9, ()))
        rows.append(encode(" ".join(words[start : start + count]), length))
        labels.append(label)
    ids, mask = zip(*rows)
    return (torch.tensor(ids), torch.tensor(mask)), torch.tensor(labels)


def write(model: nn.Module, name: str) -> None:
    path = FOLDER / name / "1" / "model.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.jit.save(torch.jit.script(model.eval()), str(path))
    print(path, path.stat().st_size, "bytes")


if __name__ == "__main__":
    torch.manual_seed(0)
    shapes = ShapeNet()
    train(shapes, shape_batch, 500)
    write(shapes, "shapes")
    language = LanguageNet()
    train(language, sentence_batch, 900)
    write(language, "language")
