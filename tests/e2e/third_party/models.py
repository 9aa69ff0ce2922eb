"""Writes the models of these tests as TorchScript, most of them without config.pbtxt: what a client learns of their
inputs is what the graph makes certain.

Usage: /usr/bin/python3 -m tests.e2e.third_party.models FOLDER
"""

import pathlib
import sys
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

from tests.e2e.third_party.chat import CHAT


class Linear(nn.Module):
    """linear: y is the sum of the three numbers of each row."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.layer.weight.data.fill_(1)
        self.layer.bias.data.zero_()

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"y": self.layer(x)}


class Words(nn.Module):
    """words: the row of a table for each number."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 2)
        self.table.weight.data.copy_(torch.arange(20.0).view(10, 2))

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids)


class Image(nn.Module):
    """image: the mean of each channel of a convolution with ones."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 1, bias=False)
        self.layer.weight.data.fill_(1)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.layer(pixels).mean((2, 3))


class Upper(nn.Module):
    """upper: texts."""

    def forward(self, texts: List[str]) -> List[str]:
        return [text.upper() for text in texts]


class Chat(nn.Module):
    """chat: a response for each word of the prompt, at most max_tokens of them."""

    def forward(self, text_input: List[List[str]], max_tokens: Tensor, top_k: Tensor, top_p: Tensor, temperature: Tensor,
                length_penalty: Tensor, repetition_penalty: Tensor, random_seed: Tensor, beam_width: Tensor,
                stream: Tensor) -> List[List[str]]:
        answers: List[List[str]] = []
        for word in text_input[0][0].split(" ")[:int(max_tokens.item())]:
            answers.append([word.upper() + " "])
        return answers


class Echo(nn.Module):
    """echo: the prompt, behind the words of an answer."""

    def forward(self, text_input: str) -> Dict[str, str]:
        return {"text_output": "answer: " + text_input}


MODELS: Tuple = (("linear", Linear, ""), ("words", Words, ""), ("image", Image, ""), ("upper", Upper, ""), ("echo", Echo, ""),
                 ("chat", Chat, CHAT))


def main(folder):
    for name, module, config in MODELS:
        version = pathlib.Path(folder) / name / "1"
        version.mkdir(parents=True)
        torch.jit.script(module().eval()).save(str(version / "model.pt"))
        if config:
            (version.parent / "config.pbtxt").write_text(f'name: "{name}"\nplatform: "pytorch_libtorch"\n{config}')


if __name__ == "__main__":
    main(sys.argv[1])
