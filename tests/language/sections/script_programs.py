"""Whole programs with unusual scripting features: writes through chains of subscripts, parsers, mixed numbers, mutated
constants."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.decoding import ids, values

section = Section()
case, made = section.case, section.made
T = torch.tensor


@case((values(3, 4), T([2, 0])), (values(4, 4), T([1, 1])))
def chained_subscript_writes(x: Tensor, idx: Tensor):
    x[1][2] = 10.0
    x[0][1:3][0] += 5
    x[:, idx] = x[:, idx.flip(0)]
    x[idx, idx] += 1
    x[torch.tensor(1)] *= 2
    x[..., -1][::2] = torch.tensor([7.0, 8.0])
    x[x > 6][0] = 100.0
    x[x.sum(1) > 0, 1:] = 0
    y = x[None, ..., None]
    y[0, 0, 0, 0] = -1
    return x, y.shape, x[-1, -2].item(), x[idx[0], idx[1]]


@case((3,), (1,))
def nested_container_writes(n: int):
    l = [[0] * n for _ in range(n)]
    d: Dict[str, List[Tensor]] = {"a": [torch.zeros(2)], "b": []}
    for i in range(n):
        for j in range(i, n):
            l[i][j] += i * 10 + j
            l[-1][0] -= 1
        d["a"][0] += i
        d["a"][0][0] *= 2
        d["b"].append(d["a"][0].clone())
        d["a"][-1][1:] = float(i)
    t = [(i, str(i)) for i in range(n)]
    t[0] = (5, "five")
    shared = d["a"]
    shared.insert(0, torch.ones(1))
    d["c"] = shared
    d["c"].pop()
    return l, d, t, d["a"] is d["c"]


@case((3,), (0,))
def constants_written_in_loops(n: int):
    out: List[Tensor] = []
    total = torch.zeros(2, 2)
    for i in range(n):
        z = torch.zeros(2, 2)
        c = torch.tensor([1.0, 2.0])
        e = torch.eye(2)
        z[0] += c
        c *= i
        e[0, 1] = c[1]
        out.append(z + e)
        e.add_(z)
        total += e
        ones = torch.ones(2)
        ones.sub_(c)
        out.append(ones)
    fresh = torch.zeros(2, 2)
    return out, total, fresh, torch.tensor([1.0, 2.0])


@case((values(2, 2),),)
def same_tensor_twice(x: Tensor):
    y = x + 0
    z = x.view(4)
    l = [x, y, x]
    z[0] = 9.0
    l[2][1, 1] = 8.0
    w = l[0].contiguous()
    w.neg_()
    y.copy_(x)
    return x, x, l, (y, y), w, z.clone(), x.to(torch.float32), x.expand(2, 2)


@case(('lr = 0.1\n# none\nlayers=3, 4 ,5\nname = "a=b"\nflag=true\n\nbad',), ("",))
def config_parser(text: str):
    numbers: Dict[str, float] = {}
    lists: Dict[str, List[int]] = {}
    strings: Dict[str, str] = {}
    problems: List[str] = []
    for i, line in enumerate(text.splitlines()):
        line = line.strip()
        if len(line) == 0 or line.startswith("#"):
            continue
        at = line.find("=")
        if at < 0:
            problems.append("line {}: {} has no '='".format(i + 1, line))
            continue
        key, value = line[:at].rstrip(), line[at + 1 :].lstrip()
        if value.startswith('"') and value.endswith('"'):
            strings[key] = value[1:-1]
        elif "," in value:
            lists[key] = [int(v.strip()) for v in value.split(",")]
        elif value.lower() in ["true", "false"]:
            numbers[key] = float(value.lower() == "true")
        else:
            numbers[key] = float(value)
    return numbers, lists, strings, problems


@case(("3 + 4 * ( 2 - 1 ) - 6 / 4",), ("2 * ( 3 + 4 ) * 5",), ("1 / 0",), ("1 +",))
def calculator(text: str):
    order: Dict[str, int] = {"+": 1, "-": 1, "*": 2, "/": 2}
    out: List[float] = []
    waiting: List[str] = []
    for token in text.split(" ") + [")"]:
        if token == "(":
            waiting.append(token)
        elif token in order or token == ")":
            rank = order[token] if token in order else 0
            while len(waiting) > 0 and waiting[-1] != "(" and order[waiting[-1]] >= rank:
                op = waiting.pop()
                b = out.pop()
                a = out.pop()
                if op == "+":
                    out.append(a + b)
                elif op == "-":
                    out.append(a - b)
                elif op == "*":
                    out.append(a * b)
                else:
                    out.append(a / b)
            if token == ")":
                if len(waiting) > 0:
                    waiting.pop()
            else:
                waiting.append(token)
        else:
            out.append(float(token))
    return out


@case((T(3), T(2.5), 4), (T(-7), T(-0.5), -2), (T(2), T(1.0), 1))
def scalars_of_tensors(a: Tensor, b: Tensor, n: int):
    x, y = a.item(), b.item()
    s = x + y
    r = (x * n, y / n, s, x - y, y * 2.5)
    q = torch.tensor([1, 2, 3]) * y
    w = torch.full([2], x)
    p = a + n
    return r, q, w, p, int(x), float(y), bool(x), x == y, x < n, a * n == x, b**2 > y, torch.add(a, b, alpha=n)


@case((7, -2, 2.5), (-7, 3, -0.5), (8, 2, 0.5))
def number_corners(a: int, b: int, f: float):
    q, r = divmod(a, b)
    return (q, r, a // b, a % b, a / b, f // b, f % b, round(f), round(f * 1.2345), a**2, 2.0**b, int(-f), abs(a), a & 6, a | 1, a ^ b, a << 2, a >> 1, float(a) == a, min(a, b), max(f, 1.5), pow(a, 2), float("nan") != f, hash(a) == a, bin(abs(a)), str(f), str(1e20), str(1e-7))


class Item(NamedTuple):
    name: str
    tensor: Tensor
    rank: int = 0
    tags: Optional[List[str]] = None


def tagged(item: Item, tag: str) -> Item:
    tags = item.tags
    new = [tag] if tags is None else tags + [tag]
    return Item(item.name, item.tensor, tags=new, rank=item.rank + 1)


@case((values(3, 2),))
def named_tuples_by_keyword(x: Tensor):
    items = {str(i): Item(name=f"row{i}", tensor=row) for i, row in enumerate(x)}
    items["1"] = tagged(tagged(items["1"], "a"), "b")
    tags: List[str] = []
    for key, item in items.items():
        name, t, rank, found = item
        if found is not None:
            tags.extend([name + "." + f for f in found])
        assert rank <= 2, f"{key}: {rank}"
    best = items["0"]
    for item in items.values():
        if item.rank > best.rank or (item.rank == best.rank and item.tensor.sum() > best.tensor.sum()):
            best = item
    return tags, best, best[0], best.tags, len(items), best.tensor


@case(([1, 2.5, "x", [1, 2], {"a": T(1.0)}, None, T([1, 2])],), ([],))
def any_values(x: List[Any]):
    ints, rest, names = 0, 0.0, [""]
    for v in x:
        if isinstance(v, int):
            ints += v
            names.append("int")
        elif isinstance(v, float):
            rest += v
            names.append("float")
        elif isinstance(v, str):
            names.append(v)
        elif torch.jit.isinstance(v, List[int]):
            ints += sum(v)
            names.append("ints")
        elif torch.jit.isinstance(v, Dict[str, Tensor]):
            rest += float(sum([float(t) for t in v.values()]))
            names.append(",".join(list(v.keys())))
        elif v is None:
            names.append("none")
        else:
            names.append("other")
    return ints, rest, names


@case((T([[5, 1], [3, 3], [5, 0]]),))
def sorted_in_many_ways(x: Tensor):
    a: List[List[int]] = x.tolist()
    flat = [row[0] * 10 + row[1] for row in a]
    flat.sort(reverse=True)
    words = sorted(["b", "B", "aa", "", "ä"])
    bools = sorted([True, False, True])
    floats = sorted([2.0, float("-inf"), -0.0, 1.5e-3])
    order = sorted([(v, i)[0] for i, v in enumerate(flat)])
    return flat, words, bools, floats, order, order[::-1], [w for w in words[::-1]]


@case((values(0, 3), values(2, 0)), (values(0, 3), values(0, 0)))
def empty_tensors(x: Tensor, y: Tensor):
    a = y @ torch.zeros(y.size(1), 3)
    b = torch.cat([x, a])
    c = x.sum(0), x.prod(), y.sum(1), x.mean(0)
    d = F.softmax(x, 0), F.relu(y), x.t() @ x, torch.einsum("ij,ik->jk", x, x)
    e = [s.shape for s in torch.split(b, 1)] if b.size(0) > 0 else [b.shape]
    f = x.view(-1, 3).unsqueeze(0).expand(2, -1, -1), x.nonzero().shape, x[x > 0], torch.stack([x, x]), x.flatten().cumsum(0)
    g = x.reshape(0, 3, 1), torch.arange(0), torch.linspace(0, 1, 0), x.sort(0)[1], torch.unique(x), x.norm(), x.var(0), x.any(), x.all(0)
    for row in x:
        b = b + row
    return a, b, c, d, e, f, g


@case((values(3, 2), 5), (values(3, 2), -1), (values(3, 2), 0))
def errors_with_texts(x: Tensor, i: int):
    names = {"a": 0}
    assert i >= -5, f"{i} is below {-5}"
    if i == 0:
        return x[i], names["a"]
    if i < 0:
        assert x.dim() == 3, "expected 3 dimensions, got {}".format(x.dim())
    if i not in [1, 2]:
        raise IndexError(f"index {i} of {list(x.shape)}: " + ", ".join(["%d" % k for k in range(3)]))
    return x[i], names["b"]


def merged(a: Dict[str, List[int]], b: Dict[str, List[int]], join: bool = True, into: Optional[Dict[str, List[int]]] = None) -> Dict[str, List[int]]:
    out: Dict[str, List[int]] = {} if into is None else into
    for source in [a, b]:
        for k, v in source.items():
            if join and k in out:
                out[k] = out[k] + v
            else:
                out[k] = v
    return out


@case(({"x": [1], "y": [2]}, {"x": [3], "z": []}))
def merged_dicts(a: Dict[str, List[int]], b: Dict[str, List[int]]):
    c = merged(a, b)
    d = merged(a, b, False)
    d["x"].append(9)
    e = merged(b, a, into=c.copy())
    e.setdefault("q", [0]).append(1)
    got = e.pop("y")
    e.update({"w": [len(e)]})
    del e["z"]
    return a, b, c, d, e, got, "q" in c, list(e.values()), [f"{k}={v}" for k, v in e.items()]


@case((values(2, 3, 4),), (values(1, 1, 2),))
def shapes_as_numbers(x: Tensor):
    b, n, d = x.shape
    s = list(x.shape)
    s[0], s[-1] = s[-1], s[0]
    y = x.permute(2, 1, 0).reshape(s).reshape(d, n * b)
    z = x.new_zeros([d, n]).new_full((b, 2), 3)
    k = x.numel() // max(1, d - 1)
    pads = [0, k % 3] + [1, 0] * (x.dim() - 2)
    w = F.pad(x, pads, value=float(d))
    u = torch.zeros(x.shape[0], 1, 1).expand(-1, n, d)
    return y, z, w, u.stride(), x.size()[1:], x.shape == u.shape, len(x), x.stride(0), w.flatten(1).size(-1), x.ndim, x[0].is_contiguous(), x.transpose(0, 1).is_contiguous()


@case((values(4, 3), "mean"), (values(4, 3), "none"), (values(4, 3), "max"), (values(4, 3), "bad"))
def dispatch_by_string(x: Tensor, how: str) -> Tuple[Tensor, Optional[Tensor]]:
    which: Optional[Tensor] = None
    if how == "none":
        y = x
    elif how in ("mean", "sum"):
        y = x.mean(0) if how == "mean" else x.sum(0)
    elif how == "max":
        y, which = x.max(0)
    else:
        y = torch.zeros([])
        raise NotImplementedError(how)
    return y, which


@case((ids(3, 4, most=3), 4), (ids(2, 2, most=2), 2))
def game_of_life(x: Tensor, rounds: int):
    cells = x > 0
    seen: List[List[int]] = []
    for r in range(rounds):
        n = F.conv2d(F.pad(cells.float()[None, None], (1, 1, 1, 1), mode="circular" if x.numel() > 4 else "constant"), torch.ones(1, 1, 3, 3))[0, 0] - cells.float()
        new = ((n == 3) | (cells & (n == 2))).logical_and(torch.ones_like(cells))
        where: List[int] = new.nonzero()[:, 0].tolist()
        seen.append(where)
        if torch.equal(new, cells):
            break
        cells = new
    return cells, seen


@case((values(5), 3), (values(5), 9))
def early_exits(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if i >= x.numel():
            return x * 0
        for j in range(n):
            if j == i:
                continue
            if bool(x[i] + j > 3.2):
                return x + i * 10 + j
            if j > 3:
                break
        while n > 4:
            n -= 1
            if n == 6:
                return torch.tensor([float(n)])
    return x
