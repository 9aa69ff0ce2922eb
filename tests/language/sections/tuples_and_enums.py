"""NamedTuples and enums."""

import enum
from collections import namedtuple
from typing import List, NamedTuple, Optional

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case


class Point(NamedTuple):
    x: int
    y: float = 2.5
    name: Optional[str] = None


Pair = namedtuple("Pair", ["a", "b"])


class Nested(NamedTuple):
    p: Point
    l: List[int]
    t: Tensor


@case((1,), (7,))
def named_tuples(n: int):
    p = Point(n)
    q = Point(n, 1.5, "q")
    r = Point(name="r", x=n, y=0.5)
    a, b, c = q
    return p.x, p.y, p.name, q[1], r.name, a, b, c, len(q), [p.x for p in [p, q]]


@case((1,))
def untyped_named_tuples(n: int):
    p = Pair(torch.ones(1) * n, torch.zeros(1))
    return p.a, p.b, p[0], len(p)


@case((1,))
def nested_named_tuples(n: int):
    w = Nested(Point(n), [n, 2], torch.ones(2))
    w.l.append(3)
    p, l, t = w
    return w.p.x, w.l, w.t, p.y, l, w[0][0], w.p.name is None


@case((1,))
def returned_named_tuple(n: int) -> Point:
    return make_point(n)


def make_point(n: int) -> Point:
    return Point(n + 1, float(n))


@case((1,))
def named_tuples_in_containers(n: int):
    l = [Point(i) for i in range(n + 1)]
    d = {"a": l[0]}
    return d["a"].x, [p.y for p in l], max([p.x for p in l])


@case((1,), (2,))
def inline_named_tuple(n: int):
    class_ = Point(n)
    f, *_ = class_.x, 1, 2
    return f


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    BLUE = 3


class Fruit(enum.Enum):
    APPLE = "apple"
    PEAR = "pear"


class Ratio(enum.Enum):
    HALF = 0.5
    ONE = 1.0


@case((1,), (2,))
def enums(n: int):
    c = Color.RED if n == 1 else Color.GREEN
    return c == Color.RED, c != Color.RED, c.name, c.value, Fruit.APPLE.value + Fruit.PEAR.name, Ratio.HALF.value + Ratio.ONE.value


@case((1,), (2,))
def enums_by_identity(n: int):
    c = Color.RED if n == 1 else Color.GREEN
    return c is Color.RED, c is not Color.RED


@case((1,), (2,))
def enums_in_containers(n: int):
    l = [Color.RED, Color.BLUE]
    l.append(Color.GREEN)
    d = {"r": Color.RED}
    t = (Color.BLUE, n)
    o: Optional[Color] = None
    if n == 1:
        o = Color.GREEN
    return [c.value for c in l], d["r"].name, t[0].value, -1 if o is None else o.value, l[0] == d["r"]


@case(())
def enums_iterated():
    return [c.value for c in Color], [c.name for c in Fruit], len([c for c in Color])


@case((1,), (2,))
def enum_arguments(n: int):
    return describe(Color.RED), describe(Color.BLUE) + describe()


def describe(c: Color = Color.GREEN) -> str:
    if c == Color.RED:
        return "red"
    elif c == Color.BLUE:
        return "blue"
    return c.name
