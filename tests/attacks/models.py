"""The small models that attacks use, made with PyTorch."""

import os
from typing import List

import torch
from torch import Tensor, nn


class Identity(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Words(nn.Module):
    def forward(self, words: List[str]) -> int:
        return len(words)


class Steps(nn.Module):
    """One operator of n steps."""

    def forward(self, n: int) -> Tensor:
        return torch.arange(n).sum()


class Rounds(nn.Module):
    """n operators of one step."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = x + 1
        return x


class Answers(nn.Module):
    """`count` responses of `size` numbers."""

    def forward(self, count: int, size: int) -> List[Tensor]:
        out: List[Tensor] = []
        for _ in range(count):
            out.append(torch.zeros(size))
        return out


class Line(nn.Module):
    """For training."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1024, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def tensor(name, kind, *dims):
    return f'{{ name: "{name}" data_type: {kind} dims: [{", ".join(map(str, dims))}] }}'


def config(inputs, outputs, more=""):
    return f"input [{', '.join(inputs)}]\noutput [{', '.join(outputs)}]\n{more}\n"


MODELS = {
    "identity": (Identity, config([tensor("x", "TYPE_FP32", -1)], [tensor("y", "TYPE_FP32", -1)])),
    "integers": (Identity, config([tensor("x", "TYPE_INT64", -1)], [tensor("y", "TYPE_INT64", -1)])),
    "words": (Words, config([tensor("words", "TYPE_STRING", -1)], [tensor("count", "TYPE_INT64", 1)])),
    "steps": (Steps, config([tensor("n", "TYPE_INT64", 1)], [tensor("total", "TYPE_INT64", 1)])),
    "rounds": (Rounds, config([tensor("x", "TYPE_FP32", -1), tensor("n", "TYPE_INT64", 1)],
                              [tensor("y", "TYPE_FP32", -1)])),
    "line": (Line, config([tensor("x", "TYPE_FP32", -1, 1024)], [tensor("y", "TYPE_FP32", -1, 1)])),
    "answers": (Answers, config([tensor("count", "TYPE_INT64", 1), tensor("size", "TYPE_INT64", 1)],
                                [tensor("zeros", "TYPE_FP32", -1)], "model_transaction_policy { decoupled: true }")),
}


def write_models(folder):
    for name, (module, model_config) in MODELS.items():
        os.makedirs(os.path.join(folder, name, "1"))
        torch.jit.script(module()).save(os.path.join(folder, name, "1", "model.pt"))
        with open(os.path.join(folder, name, "config.pbtxt"), "w") as out:
            out.write(model_config)
    return folder
