"""Writes the small model repository of the serve tests with real PyTorch."""

import os
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class AddSub(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
        return a + b, a - b


class InPlace(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"double": x * 2, "negative": -x}


class Pair(NamedTuple):
    total: Tensor
    count: int


class Named(nn.Module):
    def forward(self, x: Tensor) -> Pair:
        return Pair(x.sum(), x.numel())


class Mixed(nn.Module):
    def forward(self, x: Tensor, times: int, scale: float = 1.5, invert: bool = False,
                label: str = "none", bias: Optional[Tensor] = None) -> Tuple[Tensor, str]:
        y = x * times * scale
        if bias is not None:
            y = y + bias
        if invert:
            y = -y
        return y, label + "!"


class Words(nn.Module):
    def forward(self, words: List[str]) -> Tuple[List[str], int]:
        out: List[str] = []
        for word in words:
            out.append(word + word)
        return out, len(words)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(x)
        return self.seen


class Sleepy(nn.Module):
    """Runs for a long time, instruction by instruction."""

    def forward(self, x: Tensor, rounds: int) -> Tensor:
        y = x
        for _ in range(rounds):
            y = y + 1
        return y


class Raises(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > 2:
            raise ValueError(f"got {x.size(0)} rows")
        return x


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


MODELS = {"identity": Identity, "add_sub": AddSub, "in_place": InPlace, "branches": Branches, "named": Named,
          "mixed": Mixed, "words": Words, "counter": Counter, "sleepy": Sleepy, "raises": Raises, "linear": Linear}

CONFIGURED = """
name: "configured"
platform: "pytorch_libtorch"
max_batch_size: 4
input [ { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ 3 ] } ]
instance_group [ { count: 2 kind: KIND_CPU } ]
optimization { graph { level: 1 } }
"""


def save(module, root, name, version=1):
    folder = os.path.join(root, name, str(version))
    os.makedirs(folder, exist_ok=True)
    torch.jit.script(module.eval()).save(os.path.join(folder, "model.pt"))


def make_repository(root):
    for name, module in MODELS.items():
        save(module(), root, name)
    save(Linear(), root, "configured")
    with open(os.path.join(root, "configured", "config.pbtxt"), "w") as config:
        config.write(CONFIGURED)
    save(Identity(), root, "versions", 1)
    save(AddSub(), root, "versions", 3)
    with open(os.path.join(root, "versions", "config.pbtxt"), "w") as config:
        config.write('version_policy { all {} }\n')


def make_broken(root):
    """Models that cannot be loaded, each for another reason."""
    save(Identity(), root, "truncated")
    path = os.path.join(root, "truncated", "1", "model.pt")
    with open(path, "rb") as archive:
        data = archive.read()
    with open(path, "wb") as archive:
        archive.write(data[:len(data) // 2])
    save(Identity(), root, "bad_config")
    with open(os.path.join(root, "bad_config", "config.pbtxt"), "w") as config:
        config.write("max_batch_size: }\n")
    os.makedirs(os.path.join(root, "no_file", "1"))
    os.makedirs(os.path.join(root, "no_versions"))
    os.makedirs(os.path.join(root, "escape", "1"))
    os.symlink("/etc/passwd", os.path.join(root, "escape", "1", "model.pt"))
