"""Script classes, magic methods, inheritance, properties, static methods."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.case import Section
from tests.language.sections.tuples_and_enums import Color, Point

section = Section()
case = section.case
T = torch.tensor


@torch.jit.script
class Vector:
    def __init__(self, x: float, y: float = 2.0):
        self.x = x
        self.y = y
        self.history: List[float] = []

    def norm2(self) -> float:
        return self.x * self.x + self.y * self.y

    def scale(self, by: float):
        self.history.append(self.x)
        self.x *= by
        self.y *= by
        return self

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __sub__(self, other: "Vector") -> "Vector":
        return Vector(self.x - other.x, self.y - other.y)

    def __mul__(self, by: float) -> "Vector":
        return Vector(self.x * by, self.y * by)

    def __truediv__(self, by: float) -> "Vector":
        return Vector(self.x / by, self.y / by)

    def __floordiv__(self, by: float) -> "Vector":
        return Vector(self.x // by, self.y // by)

    def __mod__(self, by: float) -> "Vector":
        return Vector(self.x % by, self.y % by)

    def __pow__(self, by: float) -> "Vector":
        return Vector(self.x**by, self.y**by)

    def __matmul__(self, other: "Vector") -> float:
        return self.x * other.x + self.y * other.y

    def __neg__(self) -> "Vector":
        return Vector(-self.x, -self.y)

    def __eq__(self, other: "Vector") -> bool:
        return self.x == other.x and self.y == other.y

    def __ne__(self, other: "Vector") -> bool:
        return not (self.x == other.x and self.y == other.y)

    def __lt__(self, other: "Vector") -> bool:
        return self.norm2() < other.norm2()

    def __le__(self, other: "Vector") -> bool:
        return self.norm2() <= other.norm2()

    def __gt__(self, other: "Vector") -> bool:
        return self.norm2() > other.norm2()

    def __ge__(self, other: "Vector") -> bool:
        return self.norm2() >= other.norm2()

    def __len__(self) -> int:
        return 2 + len(self.history)

    def __contains__(self, value: float) -> bool:
        return value == self.x or value == self.y

    def __getitem__(self, i: int) -> float:
        return self.x if i == 0 else self.y

    def __setitem__(self, i: int, value: float) -> None:
        if i == 0:
            self.x = value
        else:
            self.y = value

    def __call__(self, z: float) -> float:
        return self.x + self.y + z

    def __str__(self) -> str:
        return "V(" + str(self.x) + ", " + str(self.y) + ")"

    def __bool__(self) -> bool:
        return self.x != 0.0

    def __int__(self) -> int:
        return int(self.x)

    def __float__(self) -> float:
        return self.x

    def __and__(self, other: "Vector") -> float:
        return self.x

    def __or__(self, other: "Vector") -> float:
        return self.y

    def __xor__(self, other: "Vector") -> float:
        return self.x - self.y

    def __invert__(self) -> float:
        return -1.0

    def __lshift__(self, n: int) -> float:
        return self.x + n

    def __rshift__(self, n: int) -> float:
        return self.x - n

    def __hash__(self) -> int:
        return 7

    def __abs__(self) -> float:
        return self.norm2()


@case((3.0,), (0.0,))
def arithmetic_methods(a: float):
    v, w = Vector(a), Vector(1.0, a + 1)
    r = [(v + w), (v - w), v * 2.0, v / 4.0, v % 2.0, v**2.0, -v]
    return [(e.x, e.y) for e in r]


@case((3.0,), (1.0,))
def comparison_methods(a: float):
    v, w = Vector(a, 1.0), Vector(1.0, 1.0)
    return v == w, v != w, v < w, v <= w, v > w, v >= w


@case((3.0,))
def container_methods(a: float):
    v = Vector(a)
    v[0] = 7.0
    v[1] = v[0] + 1
    return len(v), a in v, 7.0 in v, 9.0 not in v, v[0], v[1], v.x


@case((3.0,))
def call_method(a: float):
    v = Vector(a)
    return v(1.0), v.__call__(2.0)


@case((3.0,), (0.0,))
def conversion_methods(a: float):
    v = Vector(a)
    return str(v), bool(v), int(v), float(v)


@case((3.0,), (0.0,))
def truth_method(a: float):
    v = Vector(a)
    if v:
        return 1
    return 2


@case((3.0,))
def bit_methods(a: float):
    v = Vector(a)
    return v & v, v | v, v ^ v, v << 2, v >> 1


@case((3.0,))
def invert_method(a: float):
    return ~Vector(a)


@case((3.0,))
def augmented_methods(a: float):
    v = Vector(a)
    w = v
    v += Vector(1.0, 1.0)
    v *= 2.0
    return v.x, w.x, v is w


@case((3.0,))
def chained_methods(a: float):
    v = Vector(a)
    w = v.scale(2.0).scale(0.5)
    return w is v, v.history, len(v), Vector(x=a, y=1.0).norm2(), Vector(y=a, x=0.5).scale(2.0).x


@case((3.0,))
def objects_in_containers(a: float):
    v = Vector(a)
    l = [v, Vector(1.0), v]
    d = {"a": v, "b": l[1]}
    t = (v, 1)
    l[0].x = 10.0
    d["b"].y = 20.0
    t[0].y = 30.0
    o: Optional[Vector] = v
    if o is not None:
        o.x += 1
    return [(e.x, e.y) for e in l], d["a"].x


@case((3.0,))
def sorted_objects(a: float):
    l = [Vector(a), Vector(1.0), Vector(2.0)]
    l.sort()
    m = sorted(l, reverse=True) if False else sorted(l)
    return [e.x for e in l], [e.x for e in m], [e.x for e in reversed(l)] if False else [0.0]


@torch.jit.script
class Stack:
    limit: int

    def __init__(self, items: List[int], name: str = "stack"):
        self.items = items
        self.name = name
        self.limit = 3
        self.table: Dict[str, int] = {}

    def push(self, item: int) -> None:
        if len(self.items) >= self.limit:
            raise RuntimeError("user: full " + self.name)
        self.items.append(item)
        self.table[str(item)] = self.table.get(str(item), 0) + 1

    def pop(self) -> Optional[int]:
        if len(self.items) == 0:
            return None
        return self.items.pop()

    @staticmethod
    def of(n: int) -> List[int]:
        return [n] * n

    @property
    def size(self) -> int:
        return len(self.items)

    @size.setter
    def size(self, n: int) -> None:
        while len(self.items) > n:
            self.items.pop()

    def with_defaults(self, a: int = 1, b: Optional[str] = None, c: Tuple[int, int] = (1, 2)) -> int:
        return a + c[1] + (0 if b is None else len(b))


@case(([1],), ([1, 2, 3],), ([],))
def object_with_state(l: List[int]):
    s = Stack(l)
    s.push(5)
    a = s.pop()
    s.push(6)
    return a, s.pop(), s.pop(), s.table, s.name, l


@case(([1, 2, 3],))
def properties(l: List[int]):
    s = Stack(l)
    n = s.size
    s.size = 1
    return n, s.size, l


@case((2,))
def static_methods(n: int):
    return Stack.of(n), Stack.of(3)


@case(([1],))
def method_defaults(l: List[int]):
    s = Stack(l, name="q")
    return s.with_defaults(), s.with_defaults(5), s.with_defaults(b="xyz"), s.with_defaults(c=(3, 4), a=2)


@case(([1],))
def attributes_by_name(l: List[int]):
    s = Stack(l)
    return getattr(s, "name"), hasattr(s, "items"), hasattr(s, "nothing"), getattr(s, "nothing", 5) if False else 0


class Base:
    def __init__(self, x: int):
        self.x = x

    def twice(self) -> int:
        return self.x * 2


@torch.jit.script
class Holder:
    def __init__(self, t: Tensor, c: Color, p: Point):
        self.t = t
        self.c = c
        self.p = p
        self.v = Vector(1.0)

    def apply(self, x: Tensor) -> Tensor:
        if self.c == Color.RED:
            return x + self.t * self.p.x
        self.v.x += 1
        return x * self.v.x


@case((T([1.0, 2.0]), 1), (T([1.0, 2.0]), 2))
def objects_of_objects(x: Tensor, n: int):
    h = Holder(torch.ones(2), Color.RED if n == 1 else Color.BLUE, Point(n))
    a = h.apply(x)
    h.p = Point(n + 5)
    h.t += 1
    b = h.apply(x)
    return a, b, h.v.x, h.t


@torch.jit.script
class Context:
    def __init__(self, log: List[str]):
        self.log = log
        self.depth = 0

    def __enter__(self):
        self.log.append("enter")
        self.depth += 1
        return self.depth

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.log.append("exit")


@case((1,), (-1,))
def contexts(a: int):
    log: List[str] = []
    c = Context(log)
    with c as depth:
        log.append("body " + str(depth))
        with c as inner, Context(log):
            log.append("inner " + str(inner))
    with c:
        if a < 0:
            log.append("negative")
    return log, c.depth


@case((1,), (-1,))
def context_with_return(a: int):
    log: List[str] = []
    r = in_context(a, log)
    return r, log


def in_context(a: int, log: List[str]) -> int:
    with Context(log):
        if a < 0:
            return 0
        log.append("on")
    return a


@case((1,))
def context_with_raise(a: int):
    log: List[str] = []
    with Context(log):
        raise ValueError("user: inside")
    return log


@torch.jit.script
class Counter:
    def __init__(self, start: int, limit: Optional[int] = None, child: Optional[Vector] = None):
        self.n = start
        self.limit = limit
        self.names: List[str] = ["x"]
        self.child = child

    def step(self) -> int:
        self.n += 1
        limit = self.limit
        if limit is not None and self.n > limit:
            self.n = 0
        child = self.child
        if child is not None:
            child.x += self.n
        self.names[0] += "y"
        return self.n


@case((1,), (5,))
def optional_attributes(start: int):
    c = Counter(start)
    c.limit = 3
    c.child = Vector(0.0)
    r = [c.step() for _ in range(4)]
    child = c.child
    assert child is not None
    return r, child.x, c.names, c.child is child


@case((1,), (5,))
def objects_passed_on(start: int):
    c = Counter(start)
    for i in range(3):
        bump(c, i)
    d = bump(c)
    return c.n, d is c


def bump(c: Counter, by: int = 10) -> Counter:
    c.n += by
    return c
