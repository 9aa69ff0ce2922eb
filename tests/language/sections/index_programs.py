"""Whole programs: lists of tensors as indices, call times, nested state, unusual dtypes."""

import math
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.decoding import ids, values

section = Section()
case, made = section.case, section.made
T = torch.tensor


@case((values(3, 4), [T([0, 2]), T([1, 3])]), (values(3, 4), [T([True, False, True])]))
def lists_as_indices(x: Tensor, where: List[Tensor]):
    a = torch.ops.aten.index(x, where)
    b = torch.index_put(x, where, torch.full_like(a, 5.0))
    x.index_put_(where, torch.ones_like(a), accumulate=True)
    found = torch.where(x > 1)
    return a, b, x, found


@case((values(4, 3), T([2, 0, 1, 3], dtype=torch.int32)), (values(2, 3), T([0, 2], dtype=torch.int32)))
def repeats_of_rows(x: Tensor, n: Tensor):
    at = torch.repeat_interleave(n)
    rows = torch.repeat_interleave(x, n, dim=0)
    starts = n.cumsum(0) - n
    inside = torch.arange(at.numel()) - starts[at.long()]
    means = torch.zeros_like(x).index_add_(0, at, rows) / n.clamp(min=1).unsqueeze(1)
    return at, rows, inside, means, x.repeat_interleave(2, 1), x * 1


class Node(NamedTuple):
    feature: int
    limit: float
    left: int
    right: int


class Trees(nn.Module):
    trees: List[List[Node]]

    def __init__(self):
        super().__init__()
        self.trees = [[Node(0, 0.5, 1, 2), Node(-1, 1.0, 0, 0), Node(1, -0.5, 3, 4), Node(-1, 2.0, 0, 0), Node(-1, -3.0, 0, 0)], [Node(-1, 0.25, 0, 0)]]

    def forward(self, x: Tensor) -> Tuple[Tensor, List[List[int]]]:
        out = x.new_zeros(x.size(0))
        paths: List[List[int]] = []
        for r in range(x.size(0)):
            for tree in self.trees:
                at, path = 0, [0][:0]
                while tree[at].feature >= 0:
                    path += [at]
                    node = tree[at]
                    at = node.left if float(x[r, node.feature]) < node.limit else node.right
                out[r] += tree[at].limit
                paths.append(path)
        return out, paths


made("Trees", Trees, (values(3, 2),))


@case((["b", "a", "c", "a"], [3, 1, 2]), ([""], []))
def zips_of_other_lengths(names: List[str], counts: List[int]):
    pairs = [(n, c) for n, c in zip(names, counts)]
    groups: Dict[str, List[int]] = {}
    for i, (n, c) in enumerate(pairs):
        if n not in groups:
            groups[n] = [i]
        else:
            groups[n].append(c)
    keys = list(groups.keys())
    keys.sort()
    total = 0
    for k in keys:
        total = total * 10 + sum(groups[k])
    return pairs, groups, keys, total, all([c > 0 for c in counts]), any([c > 2 for c in counts]), max(counts) if len(counts) > 0 else None, names.count("a"), names.index("a") if "a" in names else -1


@case((values(2, 3), 2.5), (values(1, 3), -0.5))
def numbers_of_modules(x: Tensor, f: float):
    scale, offsets = 0.5, (1, -2)
    y = x * scale + offsets[0]
    k = math.floor(f) + math.ceil(f) - int(f) + round(f)
    angle = math.atan2(f, scale) + math.sqrt(abs(f))
    return y, k, angle, math.isnan(f), math.pow(f, 2), math.copysign(1.0, f), math.degrees(f), math.gcd(12, 18), math.fmod(f, 2.0), math.exp(f), math.pi, 7 // 2, -7 // 2, -7 % 3, 7.5 // 2, int(-2.7), 2**-1, abs(-3), -f


@case((values(2, 6), 2, True), (values(2, 6), 3, False))
def heads_in_many_ways(x: Tensor, heads: int, split: bool):
    b, d = x.size()
    y = x.view(b, heads, -1) if split else x.view(b, -1, heads).transpose(1, 2)
    z = y.clone()
    for h in range(heads):
        part = z[:, h]
        if h % 2 == 0:
            part.mul_(h + 1)
        else:
            z[:, h] = part.flip(-1)
        part -= part.mean(-1, keepdim=True)
    w = z.transpose(1, 2)
    w[:, 0] = 0
    u = w.reshape(b, d)
    u[0] += 1
    return y, z, w, u, z.is_contiguous(), w.stride()


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.student, self.teacher = nn.Linear(3, 2, bias=False), nn.Linear(3, 2, bias=False)
        with torch.no_grad():
            self.student.weight.copy_(values(2, 3))
            self.teacher.weight.copy_(self.student.weight)
        self.register_buffer("center", torch.zeros(1, 2))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        s, t = self.student(x), self.teacher(x)
        targets = ((t - self.center) / 0.1).softmax(-1).detach()
        loss = -(targets * s.log_softmax(-1)).sum(-1).mean()
        self.center.mul_(0.9).add_(t.mean(0, keepdim=True), alpha=0.1)
        self.steps += 1
        with torch.no_grad():
            for p, q in zip([self.student.weight], [self.teacher.weight]):
                q.mul_(0.5).add_(p * float(self.steps), alpha=0.5)
        return loss, self.center.clone(), self.teacher.weight.clone()


made("Teacher", Teacher, (values(4, 3),), (values(2, 3, seed=1),), rtol=1e-5)


@case((values(3, 5), T([2, 5, 3])), (values(1, 5), T([1])), rtol=1e-5)
def masked_statistics(x: Tensor, lengths: Tensor):
    mask = torch.arange(x.size(1)) < lengths.unsqueeze(1)
    filled = torch.where(mask, x, torch.full_like(x, float("nan")))
    count = mask.sum(1)
    mean = filled.nansum(1) / count
    centered = (x - mean[:, None]).masked_fill(~mask, 0)
    var = centered.square().sum(1) / (count - 1).clamp(min=1)
    order = x.masked_fill(~mask, float("inf")).sort(1)[0]
    median = order.gather(1, ((lengths - 1) // 2).unsqueeze(1)).squeeze(1)
    ranks = x.masked_fill(~mask, float("-inf")).argsort(1, descending=True).argsort(1)
    return mean, var, median, ranks * mask, filled.nanmean(1), torch.isnan(filled).sum(), x[mask]


@case((values(2, 3, 4, 4), 2), (values(1, 3, 6, 6), 3), rtol=1e-4)
def patches_and_back(x: Tensor, p: int):
    b, c, h, w = x.shape
    y = x.reshape(b, c, h // p, p, w // p, p).permute([0, 2, 4, 3, 5, 1]).reshape(b, -1, p * p * c)
    keep = y.norm(2, -1).argsort(1)[:, : y.size(1) // 2]
    kept = torch.gather(y, 1, keep.unsqueeze(-1).expand(-1, -1, y.size(2)))
    full = torch.full_like(y, 0.25).scatter(1, keep.unsqueeze(-1).expand(-1, -1, y.size(2)), kept)
    back = full.view(b, h // p, w // p, p, p, c).permute([0, 5, 1, 3, 2, 4]).reshape(b, c, h, w)
    mask = torch.zeros(b, y.size(1)).scatter_(1, keep, 1.0) > 0
    return y, kept, back, mask, F.mse_loss(back, x, reduction="none").mean([1, 2, 3])


@case((T([[1.0, 2.0], [3.0, 4.0]]), 3), (T([[2.0, 0.0], [0.0, 1.0]]), 0))
def lazily_made(x: Tensor, n: int) -> Dict[str, Tensor]:
    out: Dict[str, Tensor] = {}
    for i in range(n):
        key = "p" + str(i)
        if i == 0:
            out[key] = torch.eye(2)
        else:
            out[key] = out["p" + str(i - 1)] @ x
            if i % 2 == 1:
                out["p" + str(i - 1)] *= 0
    if "p2" in out:
        out["p2"] += out.pop("p1")
    return out


class Optionals(nn.Module):
    def __init__(self, with_bias: bool):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.register_parameter("bias", nn.Parameter(torch.tensor([1.0, -1.0])) if with_bias else None)
        self.norm: Optional[nn.Module] = nn.LayerNorm(2) if with_bias else None
        self.register_buffer("shift", None)

    def forward(self, x: Tensor, extra: Optional[List[Optional[Tensor]]] = None) -> Tensor:
        y = x * self.scale
        if self.bias is not None:
            y = y + self.bias
        if self.norm is not None:
            y = self.norm(y)
        if self.shift is not None:
            y = y + self.shift
        if extra is not None:
            for e in extra:
                if e is not None:
                    y = y + e
        return y


made("OptionalsThere", lambda: Optionals(True), (values(3, 2), None), (values(3, 2), [None, values(2)]), rtol=1e-5)
made("OptionalsNone", lambda: Optionals(False), (values(3, 2), None), (values(3, 2), [values(2), None, values(1)]))


@case((values(3, 3, seed=7),), (values(2, 2),))
def chains_of_views(x: Tensor):
    a = x.t().unsqueeze(0).expand(2, -1, -1)
    b = a[1].diagonal()
    c = b[1:]
    d = x.view(-1).unfold(0, 2, 1)[::2]
    x.mul_(10)
    e = c.clone()
    c.copy_(c + 1)
    f = d.select(1, 0)
    f[0] = -5
    g = torch.as_strided(x, [2, 2], [1, 2])
    g += 1
    return a.sum(0), b, c, d, e, f, g, x


@case((ids(2, 4, most=2).bool(), ids(2, 4, most=2, seed=1).bool()))
def bools_as_numbers(a: Tensor, b: Tensor):
    c = a ^ b
    c &= ~a
    n = a + b
    m = a * 2 - b.int()
    return c, n, m, a.sum(), a.cumsum(1), (a | b).float().mean(), a.any(0), a.all(1), torch.logical_xor(a, b), a == b, a > b, a.to(torch.uint8) << 2, torch.where(a, b, ~b), a.max(), torch.max(a, b), a.prod(1), a.float().std(), torch.count_nonzero(a, 1), a.masked_fill(b, 1), -a.int(), a.sort(1)[0]
