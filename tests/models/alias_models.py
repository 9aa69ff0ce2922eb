"""Small scripts that reveal wrong optimizations: aliases of lists and tensors, writes to
apparent constants, arithmetic identities. @case gives the arguments of the calls of forward, in order.
"""

from typing import List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import cases

torch.manual_seed(20240517)

CASES, case = cases.collect()


@case((torch.randn(4), 3), (torch.randn(4), 0))
class ListsInLoops(nn.Module):
    def forward(self, x, n: int):
        xs = [x]
        ints = [1, 2, 3]
        for i in range(n):
            xs.append(xs[-1] + i)
            xs[0] = xs[0] * 2
            ints.append(len(ints) * i)
            ints[0] += ints[-1]
        y = xs[0]
        y.add_(1)
        d = {"a": x}
        for k in ["b", "c"]:
            d[k] = d["a"] + len(d)
        ys = xs
        ys.append(x)
        ints2 = ints + [n]
        ints2[0] = -1
        ints.insert(1, 77)
        ints.reverse()
        return xs, ints, d, len(xs), ints2, ints.pop(), ints.index(77)


@case((torch.randn(1, 1, 1, 1), 3), (torch.randn(1, 1, 1, 1), 0))
class OutThatReshapes(nn.Module):
    def forward(self, x, n: int):
        y = x.sum()
        same = y
        torch.add(x, x, out=y)
        return [same * float(k) for k in range(3)], same.dim(), y.size(), same.view(y.size())


@case((torch.randn(2, 3), 3), (torch.randn(2, 3), 0))
class OutInALoop(nn.Module):
    def forward(self, x, n: int):
        y = torch.zeros([0])
        z = x.sum()
        kept = [z, y]
        sizes = [z.numel()]
        for i in range(3):
            torch.mul(x, i, out=y)
            if i > 1:
                torch.add(x, y, out=z)
            sizes.append(kept[0].numel() + kept[1].dim())
        return y, z, kept, sizes, kept[0].numel() * 2


@case((torch.randn(2, 3),))
class PositiveIsItself(nn.Module):
    def forward(self, x):
        a = x * 2
        b = torch.positive(a)
        b.add_(1)
        return a, b


@case((torch.randn(4), True), (torch.randn(4), False))
class BranchAlias(nn.Module):
    def forward(self, x, flag: bool):
        a = x + 1
        b = x + 2
        c = a if flag else b
        c.mul_(10)
        d = a + b
        if flag:
            e = a
        else:
            e = a.clone()
        e.zero_()
        return a, b, c, d, e, x + 1


@case((torch.randn(4), 3), (torch.randn(4), 0))
class CseWrites(nn.Module):
    def forward(self, x, n: int):
        a = x + 1
        x = x.clone()
        b = x + 1
        x.add_(1)
        c = x + 1
        l1 = [1, 2]
        l2 = [1, 2]
        l1.append(3)
        z1 = torch.zeros(3)
        z2 = torch.zeros(3)
        z1.add_(1)
        s = x.sum()
        for i in range(n):
            x.mul_(2)
            s = s + x.sum()
        r1 = torch.sum(x)
        x.neg_()
        r2 = torch.sum(x)
        return a, b, c, l1, l2, z1, z2, s, r1, r2


@case(torch.randn(3, 4), torch.randn(1, 4), torch.randn(0, 4))
class InputWritten(nn.Module):
    def forward(self, x):
        y = x.relu_()
        z = x[0:1]
        z.fill_(2)
        w = x.unsqueeze(0).squeeze(0)
        w.sub_(1)
        return x, y, z, w


@case((torch.randn(3, 4),), (torch.ones(3,4),))
class ConstMutated(nn.Module):
    def forward(self, x):
        t = torch.zeros([4])
        t[1] = 5
        u = torch.tensor([1., 2., 3., 4.])
        u += x[0]
        v = torch.arange(4)
        w = v.view(2, 2)
        w[0, 0] = 9
        l = [torch.zeros(2), torch.zeros(2)]
        l[0].add_(1)
        a = torch.ones(2)
        bb = [a, a]
        bb[1].mul_(3)
        e = torch.zeros(2).expand(3, 2)
        return t, u, v, w, l, a, e, bb


@case((torch.randn(3, 4),), (torch.ones(3,4),))
class ConstReturned(nn.Module):
    def forward(self, x):
        return torch.zeros(3), [1, 2, 3], {"a": [1]}, (torch.ones(2), [torch.zeros(1)])


@case((2, 3.5), (-7, 2.0), (0, -0.0))
class Numbers(nn.Module):
    def forward(self, n: int, f: float):
        a: List[float] = []
        for i in range(n, n + 3):
            a.append(i / 3)
        return (
            n // 3, n % 3, f // 0.3, f % 0.3, n ** 2, f * 0, f + 0, f - f, n * 0, -f, 0 - f, round(f), int(f),
            float(n), bool(n), min(n, 3), max(f, 0.0), abs(n), a, divmod(n, 3), n / 4, n << 2, n & 3, n ^ 5,
            n | 8, str(f), f"{n}{f}", f == f, n == 2 or f > 1,
            n != 0 and f / (1.0 if n == 0 else float(n)) > 0,
        )


@case((torch.tensor([3.5, -0.0, -2.0]),), (torch.arange(3),))
class Identities(nn.Module):
    def forward(self, x):
        return (
            x + 0, x * 1, x - 0, x / 1, x ** 1, x * 0, x + 0.0, x * 1.0, x // 1, -(-x.float()),
            x.to(torch.float32), x.float().to(torch.float32), x.view(-1).view([x.size(0)]),
            torch.add(x, 0, alpha=2), x.contiguous(), x.expand(x.size(0)), x.type_as(x), x.detach(),
        )


@case((torch.randn(3),),)
class IdentityAlias(nn.Module):
    def forward(self, x):
        a = x.clone()
        b = a + 0
        b.mul_(2)
        c = a * 1
        c.mul_(2)
        d = a.to(torch.float32)
        d.add_(1)
        e = a.contiguous()
        e.add_(1)
        f = F.dropout(a, 0.5, False)
        f.add_(1)
        g = a.view(3)
        g.add_(1)
        h = a.clone()
        h.add_(1)
        i = a.to("cpu")
        i.add_(1)
        j = a.float()
        j.add_(1)
        k = a.detach()
        k.add_(1)
        l = torch.cat([a])
        l.add_(1)
        return a, b, c, d, e, f, g, h, i, j, k, l, x


@case((torch.randn(3), 2), (torch.randn(3), -1))
class EarlyExit(nn.Module):
    def forward(self, x, n: int):
        i = 0
        while True:
            i += 1
            if i > 5:
                break
            if i == n:
                continue
            x = x + i
            if n < 0:
                return x, i
        return x * 2, i


@case(([1,2,3],), ([],))
class ListMut(nn.Module):
    def forward(self, a: List[int]):
        b = a
        b.append(4)
        c = a[:]
        c.append(5)
        d = list(a)
        d.clear()
        e = [i * 2 for i in a]
        e.extend(a)
        f = a * 2
        a.sort(reverse=True)
        del b[0]
        g = sorted(f)
        return a, b, c, d, e, f, len(a), g, a == b, 3 in a, sum(c)


@case((torch.randn(2, 3),),)
class TupleAlias(nn.Module):
    def forward(self, x):
        a = x + 1
        t = (a, [a, x])
        t[0].mul_(2)
        t[1].append(a)
        u, v = t
        v[0].add_(1)
        o: Optional[Tensor] = None
        if x.size(0) > 1:
            o = a
        if o is not None:
            o.sub_(3)
        return t, u, v, a, o


@case((torch.tensor([True]), torch.randn(16, 1)), (torch.tensor([False]), torch.randn(16, 1)),
      (torch.tensor([False]), torch.randn(2, 3)))
class OutResizes(nn.Module):
    """The tensor of a result is resized, and its memory is free for the next run."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.randn(6), requires_grad=False)

    def forward(self, mask, x):
        y = self.p.masked_fill(mask, 0)
        torch.mul(x, 2.75, out=y)
        return y
