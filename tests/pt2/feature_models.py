"""Small models, each for one feature of exported programs.

FEATURES: name -> Feature. `make_programs.py` exports them.
"""

import collections
import dataclasses
import typing

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

FEATURES: "dict[str, Feature]" = {}


@dataclasses.dataclass
class Feature:
    module: torch.nn.Module
    args: tuple
    kwargs: dict
    dynamic_shapes: object
    decomposed: bool  # also after run_decompositions()
    more: list  # further (args, kwargs) to run with


def feature(name, *args, kwargs=None, dynamic=None, decomposed=True, more=()):
    def add(cls):
        torch.manual_seed(0)
        module = cls() if isinstance(cls, type) else cls
        if not getattr(cls, "trains", False):
            module.eval()
        FEATURES[name] = Feature(module, args, kwargs or {}, dynamic, decomposed,
                                 [one if isinstance(one[-1], dict) else (one, {}) for one in more])
        return cls

    return add


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32).to(dtype)


BATCH = Dim("batch", min=2, max=64)


@feature("nested", randn(5, 4), {"a": randn(5, 8)}, kwargs={"k": randn(5)},
         dynamic={"x": {0: BATCH}, "d": {"a": {0: BATCH}}, "k": {0: BATCH}},
         more=[((randn(3, 4, seed=2), {"a": randn(3, 8, seed=3)}), {"k": randn(3)})])
class Nested(torch.nn.Module):
    """Dicts and lists as inputs and outputs, keyword arguments, constants, sizes in results."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.norm = torch.nn.BatchNorm1d(3)
        self.constant = torch.arange(3.0)

    def forward(self, x, d, flag: bool = True, *, k):
        y = self.norm(self.linear(x)) + self.constant + torch.tensor([1.0, 2.0, 3.0])
        return {"out": y, "list": [d["a"].reshape(x.shape[0] * 2, -1), x.shape[0] + 1], "k": k}


class Point(typing.NamedTuple):
    x: torch.Tensor
    y: list


if hasattr(pytree, "_register_namedtuple"):
    pytree._register_namedtuple(Point, serialized_type_name="feature_models.Point")


@feature("results", randn(2, 3))
class Results(torch.nn.Module):
    def forward(self, x):
        return x + 1, None, Point(x * 2, [x.sum(), 3]), collections.OrderedDict(b=x - 1, a=x)


@feature("conv", randn(2, 3, 8, 8), dynamic=({0: Dim("batch", max=32)},), more=[(randn(3, 3, 8, 8, seed=5),)])
class Conv(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4, 2)
        self.norm.running_mean += torch.arange(4.0) / 8
        self.norm.running_var += torch.arange(4.0) / 4

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return self.head(torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


@feature("attention", randn(2, 5, 8), dynamic=({0: Dim("batch"), 1: Dim("length", max=20)},),
         more=[(randn(1, 7, 8, seed=4),)])
class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(8, 24)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = torch.full((x.shape[1], x.shape[1]), float("-inf")).triu(1)
        scores = torch.softmax(q @ k.transpose(-1, -2) + mask, -1)
        return (out + scores @ v).transpose(1, 2).flatten(2)


@feature("tied", torch.tensor([[1, 2, 3], [5, 0, 1]]), dynamic=({0: Dim("batch", max=9), 1: Dim("length", max=9)},),
         more=[(torch.tensor([[0, 4], [3, 3]]),)])
class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(6, 4)
        self.head = torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.embedding(ids)))


@feature("buffers", randn(2, 3), more=[(randn(2, 3, seed=7),), (randn(2, 3, seed=8),)])
class Buffers(torch.nn.Module):
    """Each run changes what the next one sees."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("scratch", torch.ones(3), persistent=False)

    def forward(self, x):
        self.total += x.sum(0)
        self.count = self.count + 1
        self.scratch.mul_(2)
        return self.total / self.count, self.scratch * 1


@feature("input_mutation", randn(3, 4))
class InputMutation(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        x.add_(1)
        x[0] = 0
        return x.sum(0) + y.sum(0)


@feature("sizes", randn(6, 12), dynamic=({0: Dim("rows", max=40), 1: 4 * Dim("quarter", max=10)},),
         more=[(randn(9, 20, seed=2),), (randn(4, 8, seed=3),)])
class Sizes(torch.nn.Module):
    """Arithmetic with symbolic sizes."""

    def forward(self, x):
        rows, columns = x.shape
        half = columns // 2
        top = torch.sym_max(rows, half)
        index = torch.arange(rows * 2 - 1)
        return x[:, :half] * (rows - half), index % (columns + 1), x.new_zeros(top, half), x.reshape(-1, 4).sum(0)


@feature("number", randn(4, 3), 5, dynamic=(None, getattr(Dim, "DYNAMIC", None)), more=[(randn(4, 3), 9)])
class Number(torch.nn.Module):
    """An int argument that is not fixed."""

    def forward(self, x, n):
        return x * n, torch.arange(n * 2)


@feature("cond", randn(3, 4), more=[(randn(3, 4, seed=9) - 5,)])
class Cond(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)
        self.b = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: self.a(t) + 1, lambda t: self.b(t).relu(), (x,))


@feature("while_loop", torch.tensor(3), randn(4), more=[(torch.tensor(0), randn(4)), (torch.tensor(7), randn(4))])
class WhileLoop(torch.nn.Module):
    def forward(self, n, x):
        from torch._higher_order_ops.while_loop import while_loop

        return while_loop(lambda i, y: i > 0, lambda i, y: (i - 1, y * 1.5 + i), (n, x))


@feature("map", randn(5, 3), randn(3), dynamic=({0: Dim("rows", max=9)}, None), more=[(randn(2, 3), randn(3))])
class Map(torch.nn.Module):
    def forward(self, xs, y):
        from torch._higher_order_ops.map import map

        return map(lambda x, y: torch.sin(x) * y + x.sum(), xs, y)


@feature("scan", randn(3), randn(6, 3), decomposed=False)
class Scan(torch.nn.Module):
    def forward(self, init, xs):
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, x: (carry * 0.5 + x, carry.cos()), init, xs, dim=0)


@feature("associative_scan", randn(6, 3), randn(3), decomposed=False, more=[(randn(6, 3, seed=4), randn(3, seed=5))])
class AssociativeScan(torch.nn.Module):
    def forward(self, xs, y):
        from torch._higher_order_ops.associative_scan import associative_scan

        def combined(a, b):
            return a[0] + b[0], a[1] * b[1]

        # What runs on a CPU takes the one, what is exported as an operator the other.
        mode = "pointwise" if torch.compiler.is_exporting() else "generic"
        return associative_scan(combined, (xs, xs + y), dim=0, combine_mode=mode)


@feature("powers", randn(4, 3), dynamic=({0: Dim("rows", min=2, max=9)},), more=[(randn(2, 3),), (randn(9, 3),)], decomposed=False)
class Powers(torch.nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        return torch.arange(rows**2), torch.zeros(torch.sym_ite(rows > 3, rows, rows + 1)), x * rows**0.5


@feature("no_grad", randn(3, 4))
class NoGrad(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            scale = self.linear(x).abs().amax()
        return self.linear(x) / (scale + 1)


@feature("autocast_off", randn(3, 4))
class AutocastOff(torch.nn.Module):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return (x @ x.T).softmax(-1)


@feature("data_dependent", torch.tensor([0, 2, 0, 5]), randn(4, 3),
         more=[(torch.tensor([1, 1, 1, 0]), randn(4, 3)), (torch.tensor([0, 0, 0, 2]), randn(4, 3))])
class DataDependent(torch.nn.Module):
    def forward(self, ids, x):
        n = ids.max().item()
        torch._check(n >= 1)
        torch._check(n < 10)
        picked = torch.nonzero(ids)
        return torch.zeros(n) + x.sum(), picked, x[picked[:, 0]]


@feature("lists", randn(4, 9))
class Lists(torch.nn.Module):
    """Operators with several results, and results that are lists."""

    def forward(self, x):
        a, b, c = x.split([2, 3, 4], 1)
        rows = x.unbind(0)
        values, indices = x.max(1)
        top, places = torch.topk(x, 3)
        return torch.cat([b, a, c], 1), torch.stack(rows[:2]), values, indices, top, places, torch.meshgrid(a[0], b[0], indexing="ij")


@feature("numbers", randn(3, 4), torch.arange(12).reshape(3, 4))
class Numbers(torch.nn.Module):
    """Python numbers where operators take tensors, and their effect on type promotion."""

    def forward(self, x, i):
        return (i * 2, i * 2.5, i + True, x / 3, i / 3, i // 3, i % 3, x ** 2, 2 ** x, 1 - x, x > 0, i == 4, i & 3,
                torch.where(x > 0, x, 0.0), torch.where(x > 0, 1.0, x), x.clamp(-0.5, 0.5), x.add(i, alpha=2),
                x.masked_fill(x > 0, float("inf")), torch.maximum(x, x.new_tensor(0.25)))


@feature("dtypes", randn(3, 4), torch.arange(12, dtype=torch.int32).reshape(3, 4))
class Dtypes(torch.nn.Module):
    def forward(self, x, i):
        return (x.half(), x.bfloat16().float(), i.to(torch.uint8), x.double() * i, i.bool(), x.to(torch.int64),
                torch.ones(2, dtype=torch.float16), torch.full((2,), 7), i.float().to(torch.bfloat16), torch.empty_like(i).fill_(4))


@feature("training", randn(4, 3, 5), more=[(randn(4, 3, 5, seed=3),)])
class Training(torch.nn.Module):
    """Exported in training mode: statistics change."""

    trains = True

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.drop = torch.nn.Dropout(0.0)

    def forward(self, x):
        return self.drop(self.norm(x))


@feature("recurrent", randn(2, 5, 3), dynamic=({0: Dim("batch", max=9)},), more=[(randn(3, 5, 3, seed=4),)],
         decomposed=False)
class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 4, batch_first=True)
        self.gru = torch.nn.GRU(4, 2, batch_first=True)

    def forward(self, x):
        x, (h, c) = self.lstm(x)
        return self.gru(x)[0], h, c


@feature("views", randn(4, 6))
class Views(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[1:3, ::2] = 0
        y[0] += 1
        y.diagonal().mul_(3)
        z = torch.zeros(2, 3)
        z[:, 1] = y[:2, 0]
        return y, z, x.t().contiguous().view(-1)[3:], x.as_strided((2, 2), (1, 6)), x.squeeze().unsqueeze(1).squeeze((1,))


@feature("channels_last", randn(2, 3, 6, 6).to(memory_format=torch.channels_last))
class ChannelsLast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.conv(x.contiguous(memory_format=torch.channels_last)).clone(memory_format=torch.preserve_format)
