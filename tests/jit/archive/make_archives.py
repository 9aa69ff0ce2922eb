"""Writes the small archives in tests/jit/data that archive_test.cpp reads.

Run it once with PyTorch 1.13 and once with PyTorch 2.x; the latter's files end in _torch2. They
are committed because they show what real versions of PyTorch write:

    python3 tests/jit/archive/make_archives.py tests/jit/data
"""

import collections
import enum
import sys
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear(4, 3)
        self.out = torch.nn.Linear(3, 2)
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel(), dtype=torch.float32)
                parameter.copy_((values / 8 + i).view_as(parameter))

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: int
    y: torch.Tensor


class Counter(torch.nn.Module):
    """Saves state of its own."""

    count: int

    def __init__(self):
        super().__init__()
        self.count = 5

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return (self.count * 2, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]) -> None:
        self.count = state[0]
        self.training = state[1]

    def forward(self, x):
        return x + self.count


class Objects(torch.nn.Module):
    """Every kind of attribute that an archive can contain."""

    strings: List[str]
    table: Dict[str, List[int]]
    maybe: Optional[torch.Tensor]
    nothing: Optional[int]
    points: List[Point]
    tensors: List[torch.Tensor]

    def __init__(self):
        super().__init__()
        base = torch.arange(12.0).view(3, 4)
        self.register_buffer("base", base)
        self.register_buffer("row", base[1])
        self.register_buffer("transposed", base.t())
        self.register_buffer("expanded", base[:, :1].expand(3, 5))
        self.register_buffer("empty", torch.zeros(0, 3))
        self.register_buffer("half_tensor", torch.tensor([0.5, -2.0], dtype=torch.float16))
        self.register_buffer("brain", torch.tensor([0.5, -2.0], dtype=torch.bfloat16))
        self.register_buffer("flags", torch.tensor([True, False]))
        self.register_buffer("long_tensor", torch.tensor(1 << 40))
        self.weight = torch.nn.Parameter(torch.ones(2, 2))
        self.tied = self.weight
        self.counter = Counter()
        self.strings = ["a", "b\n"]
        self.table = {"x": [1, 2], "y": []}
        self.maybe = torch.tensor([3.0])
        self.nothing = None
        self.points = [Point(1, base[2])]
        self.tensors = [base, base[0]]
        self.numbers = (1, 2.5, True, -(1 << 40))
        self.floats = [1.5, float("inf")]
        self.color = Color.GREEN

    def forward(self, x):
        if self.color == Color.GREEN:
            print("grün")
        total = torch.zeros([]) + self.numbers[1] + self.points[0].x + self.floats[0] + self.table["x"][0]
        maybe = self.maybe
        if maybe is not None:
            total = total + maybe
        if self.nothing is None and len(self.strings) == 2:
            total = total + self.tensors[1].sum() + self.points[0].y.sum()
        for t in (self.row, self.transposed, self.expanded, self.empty):
            total = total + t.sum()
        for t in (self.half_tensor, self.brain, self.flags, self.long_tensor):
            total = total + t.sum()
        x = torch.nn.functional.gelu(x)  # makes this a version 10 archive
        return self.counter(x) + total + self.base.sum() + self.tied.sum() + self.weight.sum()


class Complex(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("c", torch.zeros(1, dtype=torch.complex64))

    def forward(self, x):
        return x


class Quantized(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("q", torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.qint8))

    def forward(self, x):
        return x


def values():
    base = torch.arange(12.0).view(3, 4)
    shared = [1, 2]
    return (
        base,
        base.t(),
        torch.nn.Parameter(base[0].clone()),
        (0, 1, -5, 300, -70000, 1 << 40, -(1 << 63), (1 << 63) - 1),
        (1.5, float("inf"), True, False, None, "hé"),
        [1, [2], "x"],
        {"a": base, "b": base[1]},
        collections.OrderedDict(k=1),
        torch.float32,
        torch.zeros(0, 3),
        torch.tensor([0.5, -2.0], dtype=torch.bfloat16),
        torch.tensor(7),
        torch.device("cpu"),
        torch.Size([2, 3]),
        [shared, shared],
        (),
    )


def main():
    folder = sys.argv[1]
    suffix = "" if torch.__version__.startswith("1.") else "_torch2"
    torch.jit.save(torch.jit.script(Mlp().eval()), f"{folder}/mlp{suffix}.pt")
    torch.save(values(), f"{folder}/values{suffix}.pt")
    torch.save(Mlp().state_dict(), f"{folder}/state_dict{suffix}.pt")
    if not suffix:
        extra = {"labels.txt": "cat\ndog\n"}
        torch.jit.save(torch.jit.script(Objects().eval()), f"{folder}/objects.pt", _extra_files=extra)
        torch.jit.save(torch.jit.script(Complex()), f"{folder}/complex.pt")
        torch.jit.save(torch.jit.script(Quantized()), f"{folder}/quantized.pt")


main()
