"""Modules: attributes, submodules, lists and dicts of them, hooks, export, ignore, unused, Final, properties."""

from typing import Callable, Dict, Final, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.language.case import Section

section = Section()
case, made = section.case, section.made
T = torch.tensor
X = T([[1.0, -2.0, 3.0]])


def linear(n: int, m: int) -> nn.Linear:
    layer = nn.Linear(n, m)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(float(n * m)).reshape(m, n) - 2)
        layer.bias.copy_(torch.arange(float(m)))
    return layer


@case((X, 2), (X, -1))
class Attributes(nn.Module):
    scale: Final[int]
    names: List[str]
    table: Dict[str, int]
    maybe: Optional[int]
    nested: Dict[str, List[int]]

    def __init__(self):
        super().__init__()
        self.scale = 3
        self.names = ["a", "b"]
        self.table: Dict[str, int] = {"x": 1}
        self.pair = (1, "y")
        self.flag = True
        self.ratio = 0.5
        self.text = "text"
        self.maybe: Optional[int] = None
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("offset", torch.arange(3.0))
        self.register_buffer("none", None)
        self.tensors = [torch.ones(1), torch.zeros(2)]
        self.nested: Dict[str, List[int]] = {"k": [1, 2]}
        self.dtype = torch.float64
        self.device = torch.device("cpu")
        self.size = torch.Size([1, 2])
        self.z = 1 + 2j

    def forward(self, x: Tensor, n: int):
        self.table["n"] = n
        self.names.append(str(n))
        self.maybe = n if n > 0 else None
        self.offset += 1
        maybe = self.maybe
        return (x * self.scale * self.weight + self.offset, self.names, self.table, self.pair, self.flag, self.ratio, self.text, maybe, self.tensors,
                self.nested, self.none is None, x.to(self.dtype), self.device.type, self.z, self.training)


@case((1,), (1,), (5,))
class State(nn.Module):
    seen: List[int]

    def __init__(self):
        super().__init__()
        self.count = 0
        self.seen: List[int] = []
        self.register_buffer("sum", torch.zeros(1))

    def forward(self, n: int):
        self.count += n
        self.seen.append(n)
        self.sum += n
        self.sum[0] *= 2
        return self.count, self.seen, self.sum.clone()


class Leaf(nn.Module):
    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        return x * self.k + 1

    def helper(self, x: Tensor, times: int = 2) -> Tensor:
        for _ in range(times):
            x = x + self.k
        return x


@case((X,))
class Submodules(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Leaf(2)
        self.b = Leaf(3)
        self.same = self.a
        self.lin = linear(3, 2)

    def forward(self, x: Tensor):
        return self.a(x), self.b(self.a(x)), self.same.helper(x), self.b.helper(x, times=1), self.lin(x), self.a.k + self.b.k, self.lin.weight, self.own(x)

    def own(self, x: Tensor) -> Tensor:
        return self.a(x) - 1


@case((X, 1), (X, 5))
class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Leaf(i) for i in range(4)])
        self.sequence = nn.Sequential(Leaf(1), nn.ReLU(), Leaf(2))

    def forward(self, x: Tensor, n: int):
        for layer in self.layers:
            x = layer(x)
        r: List[Tensor] = []
        for i, layer in enumerate(self.layers):
            if i < n:
                r.append(layer(x) + i)
        for layer, other in zip(self.layers, self.layers[1:]):
            r.append(layer(x) + other.forward(x))
        for layer in self.layers[1:3]:
            r.append(layer(x))
        for layer in self.layers[::-1]:
            x = layer(x)
        for layer in self.sequence:
            r.append(layer(x))
        return x, r, self.layers[0](x), self.layers[-1](x), self.sequence(x), len(self.layers), self.sequence[1](x), len(self.sequence)


@case((X,))
class Dicts(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict({"one": Leaf(1), "two": Leaf(2), "relu": nn.ReLU()})

    def forward(self, x: Tensor):
        names: List[str] = []
        for name, part in self.parts.items():
            x = part(x)
            names.append(name)
        for part in self.parts.values():
            x = part(x)
        for name in self.parts.keys():
            names.append(name + "!")
        for name in self.parts:
            names.append(name)
        return x, names, self.parts["two"](x), "one" in self.parts, "zero" in self.parts, len(self.parts)


@case((X,))
class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.ParameterList([nn.Parameter(torch.full([3], float(i))) for i in range(3)])
        self.d = nn.ParameterDict({"a": nn.Parameter(torch.ones(3)), "b": nn.Parameter(torch.zeros(3))})

    def forward(self, x: Tensor):
        for p in self.l:
            x = x + p
        return x, self.l[1], self.d["a"]


@case((X,))
class BufferDict(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Module()
        self.a.register_buffer("deep", torch.ones(3))
        self.a.inner = nn.Module()
        self.a.inner.n = 5

    def forward(self, x: Tensor):
        return x + self.a.deep, self.a.inner.n


@case(("forward", (X,)), ("other", (X, 3)), ("third", ()))
class Exported(nn.Module):
    def forward(self, x: Tensor):
        return x + 1

    @torch.jit.export
    def other(self, x: Tensor, n: int = 2):
        return self.hidden(x) * n

    @torch.jit.export
    def third(self) -> str:
        return "third"

    def hidden(self, x: Tensor) -> Tensor:
        return x - 1


@case((X, False), (X, True))
class Unused(nn.Module):
    def forward(self, x: Tensor, use: bool):
        if use:
            return self.not_here(x)
        return x + 1

    @torch.jit.unused
    def not_here(self, x: Tensor) -> Tensor:
        import numpy

        return torch.from_numpy(numpy.ones(3))


@case((X,))
class NotScripting(nn.Module):
    def forward(self, x: Tensor):
        if torch.jit.is_scripting():
            x = x + 1
        else:
            x = self.python_only(x)
        return x, torch.jit.is_scripting(), torch.jit.is_tracing()

    @torch.jit.ignore
    def python_only(self, x):
        return x


@case((X,))
class Constants(nn.Module):
    __constants__ = ["a", "b", "mode"]
    limit: Final[float]
    choices: Final[List[int]]

    def __init__(self):
        super().__init__()
        self.a = 5
        self.b = (1, 2.5, "x")
        self.mode = "sum"
        self.limit = 0.5
        self.choices = [1, 2, 3]

    def forward(self, x: Tensor):
        if self.mode == "sum":
            y = x.sum()
        else:
            y = x.mean()
        for c in self.choices:
            y = y + c
        return y, self.a, self.b, self.limit, self.b[2], self.choices


@case((X,))
class OptionalModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.here = Leaf(2)
        self.missing = None
        self.here_function = torch.relu

    def forward(self, x: Tensor):
        if self.missing is not None:
            x = self.missing(x)
        if self.here is not None:
            x = self.here(x)
        return self.here_function(x)


@case((X,))
class HasAttribute(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = 1

    def forward(self, x: Tensor):
        if hasattr(self, "a"):
            x = x + self.a
        if hasattr(self, "b"):
            x = x + self.b
        return x, getattr(self, "a"), getattr(self, "b", 7)


@case((X,))
class Property(nn.Module):
    def __init__(self):
        super().__init__()
        self._k = 2

    @property
    def k(self) -> int:
        return self._k * 10

    @k.setter
    def k(self, value: int) -> None:
        self._k = value

    def forward(self, x: Tensor):
        a = self.k
        self.k = 5
        return x * a, self.k


@case((X,))
class FunctionAttribute(nn.Module):
    def __init__(self, act: Callable[[Tensor], Tensor] = torch.tanh):
        super().__init__()
        self.act = nn.functional.relu
        self.script = scripted

    def forward(self, x: Tensor):
        return self.act(x), self.script(x, 2)


@torch.jit.script
def scripted(x: Tensor, n: int) -> Tensor:
    return x * n


def pre_hook(module, inputs: Tuple[Tensor]) -> Tuple[Tensor]:
    return (inputs[0] * 10,)


def post_hook(module, inputs: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + inputs[0]


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Leaf(2)
        self.inner.register_forward_pre_hook(pre_hook)
        self.inner.register_forward_hook(post_hook)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def outer_hooks() -> nn.Module:
    module = Hooked()
    module.register_forward_hook(post_hook)
    return module


made("hooks", Hooked, (X,))
made("hooks_of_outer", outer_hooks, (X,))


class Overloads(nn.Module):
    @torch.jit._overload_method
    def get(self, x: int) -> int:  # noqa: F811
        pass

    @torch.jit._overload_method
    def get(self, x: str) -> str:  # noqa: F811
        pass

    def get(self, x):  # noqa: F811
        if isinstance(x, int):
            return x + 1
        return x + "!"

    def forward(self, n: int, s: str):
        return self.get(n), self.get(s)


made("overloaded_methods", Overloads, (1, "a"))


@case((X,))
class Generic(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(linear(3, 2), nn.Tanh(), nn.Dropout(0.5), nn.LayerNorm(2))
        self.rnn = nn.Identity()

    def forward(self, x: Tensor):
        out = self.block.eval()(x) if False else self.rnn(x)
        return out


def evaluated() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(), linear(4, 2)).eval()


def mixed() -> nn.Module:
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.traced = torch.jit.trace(Leaf(4), X)
            self.scripted = torch.jit.script(Leaf(5))

        def forward(self, x: Tensor):
            return self.traced(x), self.scripted(x)

    return Outer()


class ScriptModule(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3) * 2)
        self.n = torch.jit.Attribute(3, int)

    @torch.jit.script_method
    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight + self.n


made("sequential_evaluated", evaluated, (X,))
made("frozen", lambda: torch.jit.freeze(torch.jit.script(Submodules().eval())), (X,))
made("frozen_sequential", lambda: torch.jit.freeze(torch.jit.script(evaluated())), (X,), rtol=1e-5)
made("frozen_keeps", lambda: torch.jit.freeze(torch.jit.script(Exported().eval()), preserved_attrs=["other"]), ("forward", (X,)), ("other", (X, 2)))
made("frozen_state", lambda: torch.jit.freeze(torch.jit.script(State().eval())), (1,), (2,))
made("optimized_for_inference", lambda: torch.jit.optimize_for_inference(torch.jit.script(Submodules().eval())), (X,))
made("traced_in_scripted", mixed, (X,))
made("scripted_in_traced", lambda: torch.jit.trace(nn.Sequential(torch.jit.script(Leaf(2)), Leaf(3)), X), (X,), (X * 2,))
made("script_module", ScriptModule, (X,))
made("traced", lambda: torch.jit.trace(Lists1(), X), (X,), (torch.ones(2, 3),))
made("traced_methods", lambda: torch.jit.trace_module(Leaf(3), {"forward": X, "helper": (X,)}), ("forward", (X,)), ("helper", (X,)))


class Lists1(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Leaf(i) for i in range(3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {"out": x, "sum": x.sum()}["out"], [x, x + 1], (x.size(0) * x[0], x.shape[1])


@case((X, [X, X]), (X, []))
class ManyKinds(nn.Module):
    def forward(self, x: Tensor, l: List[Tensor], k: Optional[Tensor] = None, d: Optional[Dict[str, Tensor]] = None, t: Tuple[int, float] = (1, 2.0), flag: bool = False):
        return x, len(l), k is None, d is None, t[0], flag


@case((X,))
class Recursion(nn.Module):
    def forward(self, x: Tensor):
        return self.down(x, 3)

    def down(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.one(x)
        return x

    def one(self, x: Tensor) -> Tensor:
        return x + 1


class Inherited(Leaf):
    def __init__(self):
        super().__init__(4)
        self.extra = 1

    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x) + self.extra


made("inherited", Inherited, (X,))


@case((X,), (X * 0,))
class Nonlocal(nn.Module):
    best: Optional[Tensor]
    log: List[Tuple[str, int]]
    pairs: Dict[str, Tuple[int, Tensor]]

    def __init__(self):
        super().__init__()
        self.best: Optional[Tensor] = None
        self.log: List[Tuple[str, int]] = []
        self.pairs: Dict[str, Tuple[int, Tensor]] = {}

    def forward(self, x: Tensor):
        best = self.best
        if best is None or bool(x.sum() > best.sum()):
            self.best = x
            self.log.append(("better", len(self.log)))
        self.pairs["k"] = (len(self.log), x)
        best = self.best
        assert best is not None
        return best, self.log, self.pairs["k"][0]


@case((X,), (X * 2,))
class DeeplyShared(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))
        self.deep = (self.sum,)
        for _ in range(20):
            self.deep = (self.deep,)

    def forward(self, x: Tensor) -> Tensor:
        self.sum.add_(x[0])
        return self.deep[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0] * 1
