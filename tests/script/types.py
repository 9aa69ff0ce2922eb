"""Classes and names that programs use. PyTorch needs their source in a file."""

import enum
import math  # noqa: F401
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union  # noqa: F401

import torch
from torch import Tensor  # noqa: F401


@torch.jit.script
class Item:
    """Ordered by key; the label distinguishes equal ones."""

    def __init__(self, key: int, label: int):
        self.key = key
        self.label = label

    def __lt__(self, other: "Item") -> bool:
        return self.key < other.key

    def __eq__(self, other: "Item") -> bool:
        return self.key == other.key


@torch.jit.script
class Plain:
    def __init__(self, key: int):
        self.key = key


class Pair(NamedTuple):
    first: int
    second: str


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Word(enum.Enum):
    A = "a"
    B = "b"


class Base(torch.nn.Module):
    """The programs are methods of this module."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.scale = 2.5
        self.names: List[str] = ["a", "b"]
        self.table: Dict[str, int] = {"a": 1}
        self.numbers: List[int] = [1, 2, 3]
        self.pair: Tuple[int, str] = (1, "x")
        self.maybe = torch.jit.Attribute(None, Optional[int])
        self.register_buffer("state", torch.arange(4.0))
