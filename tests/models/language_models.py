"""Wider use of the language: classes, enums, interfaces, fork, unions, strings, slices."""

import enum
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn


class Color(enum.Enum):
    RED = 1
    GREEN = 2


@torch.jit.interface
class Op(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class AddOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3.0

    def forward(self, x: Tensor) -> Tensor:
        return x * self.k


@torch.jit.script
class Stack:
    def __init__(self, n: int):
        self.items = torch.jit.annotate(List[int], [])
        self.n = n

    def push(self, i: int):
        if len(self.items) < self.n:
            self.items.append(i)

    def total(self) -> int:
        t = 0
        for i in self.items:
            t += i
        return t

    def __add__(self, o: int) -> int:
        return self.total() + o


class Point(NamedTuple):
    a: int
    b: Tensor


class Features(nn.Module):
    sel: Op

    def __init__(self):
        super().__init__()
        self.mods = nn.ModuleList([AddOne(), Scale(), AddOne()])
        self.sel = AddOne()
        self.d = nn.ModuleDict({"x": AddOne(), "y": Scale()})
        self.names: Dict[str, int] = {"a": 1, "b": 2}
        self.color = Color.RED

    def work(self, x: Tensor, n: int) -> Tuple[Tensor, int]:
        return x * n, n

    def forward(self, x: Tensor, i: int) -> Tensor:
        m: Op = self.mods[i]
        y = m.forward(x)
        return self.sel.forward(y)

    @torch.jit.export
    def forks(self, x: Tensor) -> Tensor:
        futs = torch.jit.annotate(List[torch.jit.Future[Tuple[Tensor, int]]], [])
        for i in range(3):
            futs.append(torch.jit.fork(self.work, x + i, i))
        y = x
        for f in futs:
            a, n = torch.jit.wait(f)
            y = y + a * n
        return y

    @torch.jit.export
    def objects(self, n: int) -> Tuple[int, int, str]:
        s = Stack(5)
        for i in range(n):
            s.push(i * 2)
        c = Color.RED
        if n > 3:
            c = Color.GREEN
        r = "green" if c == Color.GREEN else "red"
        return s.total(), s + 10, r + ":" + c.name + str(c.value)

    @torch.jit.export
    def strings(self, s: str, k: float) -> List[str]:
        out: List[str] = []
        out.append(s.upper())
        out.append("%s=%d" % (s, 3))
        out.append("{}-{}".format(s, k))
        out.extend(s.split("-"))
        out.append(",".join(out))
        out.extend([s[1:3], s[-1], s.replace("a", "bb"), str(k), str([1, 2])])
        out.append(str(len(s)) + s.strip())
        out.append(f"{k} {s} {True}")
        return out

    @torch.jit.export
    def dicts(self, d: Dict[str, int]) -> Tuple[List[str], int, Dict[str, int], Optional[int]]:
        keys = list(d.keys())
        t = 0
        for k, v in d.items():
            t += v
            if k in self.names:
                t += self.names[k]
        e = {k: v * 2 for k, v in d.items()}
        e.pop("a") if "a" in e else 0
        return sorted(keys), t, e, d.get("zz")

    @torch.jit.export
    def union(self, x: Union[int, str, Tensor]) -> str:
        if isinstance(x, int):
            return "int"
        elif isinstance(x, str):
            return "str" + x
        else:
            return "tensor"

    @torch.jit.export
    def numbers(self, a: int, b: int, f: float) -> List[float]:
        return [float(a // b),
                float(a % b), a / b, float(a ** 2), f ** 0.5, float(int(f)), round(f), float(abs(-a)),
                float(max(a, b)), float(min([a, b, 7])), float(a << 2), float(a & b), float(sum([1, 2, 3])),
                float(bool(a) and not bool(b)), float(divmod(a, b)[0])]

    @torch.jit.export
    def nt(self, x: Tensor) -> Point:
        p = Point(3, x)
        a, b = p
        with torch.no_grad():
            b = b + p.a + a
        return Point(a, b)

    @torch.jit.export
    def lists(self, xs: List[int]) -> Tuple[List[int], List[int], List[int], int, bool]:
        ys = [x * x for x in xs]
        zs = xs[::-1] if False else xs[1:3]
        ys.insert(0, 9)
        ys.sort()
        ys.reverse()
        w = list(range(1, 10, 3))
        del w[0]
        return ys, zs, w, xs.index(2), 3 in xs

    @torch.jit.export
    def slices(self, x: Tensor, m: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
        y = x.clone()
        y[0, 1:] = 5.0
        y[m] = -1.0
        z = x[:, None, ..., 0]
        w = x[m]
        n = 0
        for row in x:
            n += row.numel()
        while n > 10:
            n -= 3
            if n == 4:
                break
        return y, z, w, x[1][2], n
