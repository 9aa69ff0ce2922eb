"""Interfaces of classes and of modules."""

from typing import List, Optional, Union

import torch
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.modules import Leaf, X

section = Section()
case = section.case


@torch.jit.interface
class Stage(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


@torch.jit.interface
class Helper(nn.Module):
    def helper(self, x: Tensor, times: int = 2) -> Tensor:
        pass

    def forward(self, x: Tensor) -> Tensor:
        pass


class OtherLeaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.full([3], 2.0))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x - self.w * self.calls

    def helper(self, x: Tensor, times: int = 2) -> Tensor:
        return x / times


@case((X, 0), (X, 1), (X, 2))
class ModuleInterfaces(nn.Module):
    stage: Stage
    other: Helper

    def __init__(self):
        super().__init__()
        self.stage = Leaf(2)
        self.other = OtherLeaf()
        self.layers = nn.ModuleList([Leaf(3), OtherLeaf(), Leaf(5)])

    def forward(self, x: Tensor, i: int):
        layer: Stage = self.layers[i]
        return self.stage(x), self.other.helper(x, 2), self.other.helper(x, 4), self.other.forward(x), layer.forward(x)


@case((X, "a"), (X, "b"), (X, "c"))
class ModuleInterfaceByKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"a": Leaf(3), "b": OtherLeaf()})

    def forward(self, x: Tensor, key: str):
        part: Stage = self.parts[key]
        return part.forward(x)


@torch.jit.interface
class Shape:
    def area(self, k: float) -> float:
        pass

    def grow(self, by: float) -> None:
        pass


@torch.jit.script
class Square:
    def __init__(self, a: float):
        self.a = a

    def area(self, k: float) -> float:
        return self.a * self.a * k

    def grow(self, by: float) -> None:
        self.a += by


@torch.jit.script
class Disc:
    def __init__(self, r: float):
        self.r = r

    def area(self, k: float) -> float:
        return 3.0 * self.r * self.r * k

    def grow(self, by: float) -> None:
        self.r *= by


def total(shapes: List[Shape], k: float) -> float:
    r = 0.0
    for s in shapes:
        s.grow(2.0)
        r += s.area(k)
    return r


@case((1.0,), (0.5,))
def interfaces(k: float):
    a, b = Square(2.0), Disc(1.0)
    shapes: List[Shape] = [a, b, a]
    first: Shape = a
    return total(shapes, k), first.area(k), a.a, b.r


def area_of(s: Shape) -> float:
    return s.area(1.0)


@case((1.0,), (-0.5,))
def interface_chosen(k: float):
    if k < 0:
        return area_of(Disc(k))
    return area_of(Square(k))


def area_or(s: Optional[Shape], other: float) -> float:
    return other if s is None else s.area(1.0)


def chosen(k: float) -> Union[Square, Disc]:
    if k < 0:
        return Disc(k)
    return Square(k)


@case((1.0,), (-0.5,))
def unions_for_interfaces(k: float):
    s = chosen(k)
    return area_of(s), area_or(s, 0.5), area_or(None, 0.5), area_of(s)
