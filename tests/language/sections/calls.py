"""Functions: defaults, recursion, closures, lambdas, ignored ones, overloads, fork and wait, tracing, warnings."""

from typing import Callable, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.language.case import Section

section = Section()
case, made = section.case, section.made
T = torch.tensor
X = T([1.0, -2.0, 3.0])


def add(a: int, b: int = 2, c: int = 3) -> int:
    return a + b * 10 + c * 100


@case((1,))
def defaults_and_keywords(a: int):
    return add(a), add(a, 5), add(a, c=1), add(b=1, a=a), add(a, 7, c=9)


def many_defaults(a: float = 1, b: Optional[float] = None, c: Tuple[int, str] = (1, "x"), d: str = "q", e: bool = False, f: Optional[List[int]] = None, g: float = -1e-5, h: float = float("inf")):
    return a, b, c, d, e, f, g, h


@case((1,))
def kinds_of_defaults(a: int):
    return many_defaults(), many_defaults(2.0, 3.0, (4, "z"), f=[1])


def first(x: List[int]) -> int:
    return x[0]


def outer(n: int) -> int:
    return middle(n) + 1


def middle(n: int) -> int:
    return inner(n) * 2


def inner(n: int):
    return n - 3


@case((10,))
def calls_of_calls(n: int):
    return outer(n), first([outer(n), 2]), inner(middle(n))


@case((X, 2), (X, 0))
def closures_for_fork(x: Tensor, n: int):
    futures = [torch.jit.fork(work, x, i) for i in range(n)]
    single = torch.jit.fork(work, x, 10)
    r = [torch.jit.wait(f) for f in futures]
    return r, torch.jit.wait(single)


def work(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = x + i
    return x * n


@case((X,))
def futures_as_values(x: Tensor):
    f: torch.jit.Future[Tensor] = torch.jit.fork(work, x, 2)
    l: List[torch.jit.Future[Tensor]] = [f]
    l.append(torch.jit.fork(work, x, n=3))
    return f.wait(), torch.jit.wait(l[1])


@case((X,))
def fork_of_many_kinds(x: Tensor):
    a = torch.jit.fork(pair, x, "s")
    b = torch.jit.fork(ints, [1, 2])
    t, s = torch.jit.wait(a)
    return t, s, torch.jit.wait(b)


def pair(x: Tensor, s: str) -> Tuple[Tensor, str]:
    return x + 1, s + "!"


def ints(l: List[int]) -> List[int]:
    l.append(3)
    return l


@case((X, 1), (X, -1))
def error_in_fork(x: Tensor, n: int):
    f = torch.jit.fork(fails, x, n)
    y = x * 2
    return torch.jit.wait(f) + y


def fails(x: Tensor, n: int) -> Tensor:
    if n < 0:
        raise ValueError("user: from the fork")
    return x


@case((X,))
def nested_forks(x: Tensor):
    f = torch.jit.fork(forks, x)
    return torch.jit.wait(f)


def forks(x: Tensor) -> Tensor:
    a = torch.jit.fork(work, x, 1)
    b = torch.jit.fork(work, x, 2)
    return torch.jit.wait(a) + torch.jit.wait(b)


class ForksMethods(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    def forward(self, x: Tensor):
        f = torch.jit.fork(self.other, x)
        g = torch.jit.fork(self.other, x + 1)
        return torch.jit.wait(f), torch.jit.wait(g)

    def other(self, x: Tensor) -> Tensor:
        return x * self.k


made("forks_of_methods", ForksMethods, (X,))


@torch.jit._overload
def either(x: int) -> int:  # noqa: F811
    pass


@torch.jit._overload
def either(x: List[int]) -> int:  # noqa: F811
    pass


def either(x):  # noqa: F811
    if isinstance(x, int):
        return x + 1
    return len(x)


@case((1,))
def overloaded_functions(n: int):
    return either(n), either([n, n])


@torch.jit.unused
def unused(x: int) -> int:
    return x.nothing


@torch.jit.ignore
def ignored(x: int) -> int:
    return x + 1


@case((1,), (-1,))
def calls_unused(n: int):
    if n < 0:
        return unused(n)
    return n


@case((X,))
def functionals(x: Tensor):
    return F.relu(x), F.softmax(x, dim=0), F.pad(x, [1, 1]), F.pad(x, (1, 0), "constant", 2.0), F.dropout(x, 0.5, False), F.one_hot(T0()), F.interpolate(x[None, None], scale_factor=2.0), torch.nn.functional.elu(x)


def T0() -> Tensor:
    return torch.tensor([0, 2])


@case((X,))
def torch_functions(x: Tensor):
    return torch.where(x > 0, x, -x), torch.einsum("i,j->ij", x, x), torch.split(x, [1, 2]), torch.split(x, 2), torch.chunk(x, 2), torch.meshgrid([x, x[:2]]), torch.unique(x), torch.stack([x, x]), torch.cat((x, x)), torch.norm(x), torch.tensordot(x, x, dims=1), torch.atleast_2d(x), torch.broadcast_tensors(x, x[:1]), torch.block_diag(x, x)


@case((X,))
def multiple_results(x: Tensor):
    values, indices = torch.sort(x)
    v, i = x.max(dim=0)
    m = torch.max(x, 0)
    t = torch.topk(x, 2)
    a, b = t
    return values, indices, v, i, m[0], m.values if False else m[1], a, b, t[0]


@case((X,))
def results_by_name(x: Tensor):
    t = torch.sort(x)
    return t[0], torch.max(x, dim=0)[1]


@case((X,), (X * 0,))
def out_variants(x: Tensor):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    torch.mul(x, y, out=y)
    return y


@case((T([1.0, 2.0]),), grad=True)
def autograd_inside(x: Tensor):
    y = x.detach().clone().requires_grad_(True)
    z = (y * y).sum()
    g = torch.autograd.grad([z], [y])
    h = g[0]
    assert h is not None
    return h, y.requires_grad, z.requires_grad


@case((T([1.0, 2.0]),), grad=True)
def backward_inside(x: Tensor):
    y = x.detach().clone().requires_grad_(True)
    z = (y * y * y).sum()
    z.backward()
    g = y.grad
    return torch.zeros(1) if g is None else g


@case((3,))
def random_streams(n: int):
    torch.manual_seed(n)
    a = torch.rand(4)
    torch.manual_seed(n)
    b = torch.rand(4)
    return a, torch.equal(a, b), torch.randn(2), torch.randint(0, 10, [3]), torch.randperm(5)


@case((X,))
def apply_twice(x: Tensor):
    return twice(x), twice(twice(x))


@torch.jit.script
def twice(x: Tensor) -> Tensor:
    return x + x


@torch.jit.script_if_tracing
def script_if_tracing(x: Tensor, n: int) -> Tensor:
    if int(x.sum()) > n:
        x = x * 2
    return x


def traced_function():
    def f(x):
        y = script_if_tracing(x, 1)
        return y + x.size(0), y[0]

    return torch.jit.trace(f, X)


made("traced_with_scripted_control", traced_function, (X,), (torch.ones(5),), (torch.zeros(2),))
made("traced_dict_outputs", lambda: torch.jit.trace(lambda x: {"a": x + 1, "b": x.sum()}, X, strict=False), (X,))
made("traced_many_inputs", lambda: torch.jit.trace(lambda x, y: (x + y[0] * y[1], [x, y[0]]), (X, (X, X + 1)), strict=False), (X, (X, X)))
made("traced_inplace", lambda: torch.jit.trace(lambda x: inplace(x.clone()), X), (X,), (X + 1,))


def inplace(x):
    x[0] = 5
    x.add_(1)
    x[1:] *= 2
    return x, x.view(-1)[0]


@case((X, 3))
def numbers_to_operators(x: Tensor, n: int):
    return torch.clamp(x, min=-1), torch.clamp(x, max=1.5), x.clamp(-1, n), torch.full_like(x, n), x.fill_(2.5) if False else x, x.add(n), torch.pow(x, n), torch.pow(n, x), torch.where(x > 0, 1.0, 0.0)


@case((torch.zeros(2, 3, 4), 2))
def lists_to_operators(x: Tensor, n: int):
    return x.view([6, 4]).shape, x.view(-1, n).shape, x.reshape(n, -1).shape, x.permute(2, 0, 1).shape, x.permute([0, 2, 1]).shape, x.sum((0, 1)).shape, x.sum(dim=[n]).shape, x.expand(2, -1, 4).shape, x.repeat(1, 2, 1).shape, x.new_zeros((n, n)).shape, x.transpose(0, 1).flatten(1).shape, F.avg_pool1d(x, 2).shape, F.avg_pool1d(x, [2], stride=[1]).shape


@case((X,), (T([]),))
def checks(x: Tensor):
    if x.numel() == 0:
        return "empty"
    if not torch.is_tensor(x) if False else torch.any(x > 2.5):
        return "large"
    return "other"


@case((T([1, 2, 3]), [0.5, 1.5]), (T([4]), []))
def mixed_arguments(x: Tensor, l: List[float]):
    for v in l:
        x = x * v
    return x, x.dtype == torch.float32


@case((12,), (1,))
def fibonacci(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case((30,), (2,))
def primes(n: int):
    r: List[int] = []
    for i in range(2, n):
        prime = True
        for p in r:
            if p * p > i:
                break
            if i % p == 0:
                prime = False
                break
        if prime:
            r.append(i)
    return r


@case(("the cat the dog",), ("",))
def word_count(s: str):
    d: Dict[str, int] = {}
    for w in s.split():
        d[w] = d.get(w, 0) + 1
    best = ""
    for w, n in d.items():
        if best == "" or n > d[best]:
            best = w
    return d, best


@case((torch.arange(6.0).reshape(2, 3), 2))
def beam(x: Tensor, k: int):
    scores: List[Tuple[float, List[int]]] = [(0.0, torch.jit.annotate(List[int], []))]
    for t in range(x.size(0)):
        new: List[Tuple[float, List[int]]] = []
        for score, path in scores:
            for i in range(x.size(1)):
                new.append((score + float(x[t, i]), path + [i]))
        new.sort(reverse=True)
        scores = new[:k]
    return scores
