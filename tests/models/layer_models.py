"""Small convolutions that expose wrong optimizations: writes into views and into operands of fused operators, values
used again, mutable state, observable layouts. @case gives the arguments of the calls of forward, in order."""

import torch
import torch.nn.functional as F
from torch import nn

import cases

torch.manual_seed(20240517)

CASES, case = cases.collect()


def images(count=2):
    return torch.randn(count, 8, 9, 9)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.nobias = nn.Conv2d(8, 8, 1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.lin = nn.Linear(9, 9)
        self.bn.running_mean.uniform_(-1, 1)
        self.bn.running_var.uniform_(0.5, 2)
        nn.init.uniform_(self.bn.weight, 0.5, 2)
        nn.init.uniform_(self.bn.bias, -1, 1)
        self.register_buffer("buf", torch.ones(8, 9))
        self.count = 0


@case(images(), images(1), images(0))
class ConvBnRelu(Base):
    def forward(self, x):
        return F.relu(self.bn(self.conv2(x))), self.bn(self.nobias(x))


@case(images(), images(1), images(0))
class ResidualOrders(Base):
    def forward(self, x):
        return (
            F.relu(self.conv(x) + x), F.relu(x + self.conv2(x)), torch.add(x, self.conv(x), alpha=2),
            torch.add(self.conv(x), x, alpha=3), self.conv(x) - x, x - self.conv(x),
        )


@case(images(), images(1))
class ResidualUsedAfter(Base):
    def forward(self, x):
        a = self.conv(x)
        b = self.conv2(a)
        c = a + b
        d = F.relu(c)
        return c, d, a * 2, b + 1


@case(images(), images(1))
class InplaceResidual(Base):
    def forward(self, x):
        a = self.conv(x)
        b = self.bn(self.conv2(x))
        b += a
        a.add_(1)
        r = F.relu(b, inplace=True)
        return a, b, r


@case(images())
class InplaceOnResidualOther(Base):
    def forward(self, x):
        y = x.clone()
        a = self.conv(y)
        y.add_(1)
        y += a
        y.relu_()
        z = self.conv2(y)
        y.mul_(0)
        return z + y, y


@case(images())
class PreActivationReturned(Base):
    def forward(self, x):
        a = self.conv(x)
        b = a.relu()
        c = self.conv2(x)
        d = c.relu_()
        return a, b, c, d


@case(images(), images(1))
class ViewThenInplace(Base):
    def forward(self, x):
        a = self.conv(x)
        v = a.view(a.size(0), -1)
        a.relu_()
        return v, a


@case(images(), images(1))
class ViewWritten(Base):
    def forward(self, x):
        a = self.conv(x)
        v = a.view(a.size(0), -1)
        v.add_(1)
        b = self.conv2(a)
        v.mul_(0)
        return v, a, b


@case(images(), images(1))
class SliceWritten(Base):
    def forward(self, x):
        a = self.conv(x)
        a[:, 1:3] = 0
        b = a.relu()
        a[0] += 1
        t = a.transpose(1, 2)
        t[:, 0] = 5
        return a, b, t


@case(images(2), images(1), images(0))
class BroadcastAdd(Base):
    def forward(self, x):
        a = self.conv(x)
        s = x.mean([2, 3], keepdim=True)
        return (
            F.relu(a + s), F.relu(s + self.conv2(x)), a + x[:, :1], self.nobias(x) + 1,
            self.conv(x) + x.new_ones(3, 1, 1, 1, 1),
        )


@case(images(1))
class BroadcastUp(Base):
    def forward(self, x):
        a = self.nobias(x)
        big = torch.cat([x, x, x], 0)
        return a + big, big + self.conv(x), F.relu(self.nobias(x[:, :, :1, :1]) + x)


@case(images(), images(1), images(0))
class LayoutOut(Base):
    def forward(self, x):
        a = self.conv(x)
        return (
            a, a.flatten(1), a.view(-1), a.permute(0, 2, 3, 1), a.mean([2, 3]), torch.cat([a, x], 1),
            a.split(4, 1), a.chunk(2, 0), a.transpose(1, 3).contiguous(), a.stride(), a.is_contiguous(),
            a.unbind(1),
        )


@case(images(), images(1))
class LayoutChain(Base):
    def forward(self, x):
        a = F.max_pool2d(F.relu(self.conv(x)), 2)
        b = F.adaptive_avg_pool2d(self.conv2(a), 1)
        c = torch.cat([self.conv(x), x, self.conv2(x)], 1)
        d = c.reshape(c.size(0), 3, 8, -1).transpose(1, 2).contiguous()
        e = d
        return (
            a, torch.flatten(b, 1), d, e, self.conv(x).sum(1), self.conv(x)[:, :, ::2],
            self.conv(x).expand(-1, -1, -1, -1), self.conv(x).softmax(1),
        )


@case(images(), images(1))
class LayoutStride(Base):
    def forward(self, x):
        a = self.conv(x)
        b = torch.as_strided(a, [2, 3], [1, 7])
        return (
            b, torch.empty_like(a).stride(), a.reshape(-1)[::3], a.unfold(2, 3, 1).sum(-1),
            a.clone().stride(), a.storage_offset(),
        )


@case(torch.randn(3, 9), torch.randn(0, 9), torch.randn(2, 3, 9), torch.randn(9))
class LinearEpilogue(Base):
    def forward(self, x):
        a = self.lin(x)
        b = F.gelu(a)
        c = F.relu(self.lin(x) + x)
        d = torch.sigmoid(self.lin(x))
        e = self.lin(x) * d
        f = F.hardtanh(self.lin(x), -0.5, 0.25)
        g = F.leaky_relu(self.lin(x), 0.3)
        h = F.elu(self.lin(x), 0.7)
        i = self.lin(x).clamp(min=0.1)
        j = self.lin(x).clamp(max=0.1)
        k = torch.tanh(self.lin(x))
        l = F.silu(self.lin(x))
        m = F.hardswish(self.lin(x))
        n = F.relu6(self.lin(x))
        o = F.gelu(self.lin(x), approximate="tanh")
        return (
            a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, F.hardsigmoid(self.lin(x)), F.mish(self.lin(x)),
            F.softplus(self.lin(x)),
        )


@case(images(), images())
class StateKept(Base):
    def forward(self, x):
        self.buf.add_(1)
        self.count += 1
        y = self.buf * 2
        self.buf[0] = 3
        return self.buf.clone(), y, self.count


@case(images(), images(), images())
class StateReplaced(Base):
    def forward(self, x):
        old = self.buf
        self.buf = self.buf + x[0, :, 0].sum()
        return old, self.buf


@case(images(), images())
class StateView(Base):
    def forward(self, x):
        v = self.buf.view(-1)
        v[0] += 1
        w = self.buf.t()
        w.mul_(2)
        return self.buf, v, w


@case(images(), images())
class WeightChanged(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.conv(x)
            self.conv.weight.mul_(0.5)
            self.bn.running_mean.add_(1)
            return y, self.bn(self.conv(x))


@case(images(), images())
class BnTrain(Base):
    def forward(self, x):
        a = self.bn(self.conv(x))
        self.bn.training = not self.bn.training
        b = self.bn(self.conv(x))
        return a, b, self.bn.running_mean, self.bn.num_batches_tracked


@case((torch.randn(2, 8, 9, 9), 0), (torch.randn(2, 8, 9, 9), 3))
class ConvLoop(Base):
    def forward(self, x, n: int):
        y = self.conv(x)
        acc = [y]
        for i in range(n):
            y = F.relu(self.bn(self.conv2(y)) + y)
            if i % 2 == 0:
                y.add_(1)
            acc.append(y)
        return y, acc, torch.stack(acc).sum(0)


@case((images(), True), (images(), False))
class ConvBranch(Base):
    def forward(self, x, f: bool):
        y = self.conv(x)
        if f:
            z = F.relu(y)
        else:
            z = y.transpose(2, 3)
            z[0] = 1
        w = z + y
        return z, y, w


@case(images(), images(1))
class ConvListViews(Base):
    def forward(self, x):
        ys = [self.conv(x), self.conv2(x)]
        ys.append(self.nobias(x))
        o = torch.cat(ys, 1)
        ys[0].zero_()
        p, q, r = ys
        q.add_(1)
        return o, p, q, r, torch.cat(ys, 1), torch.stack(ys)


@case(images(), images(1))
class ConvOutDict(Base):
    def forward(self, x):
        d = {"a": self.conv(x)}
        d["b"] = F.relu(d["a"])
        d["a"].add_(1)
        t = (self.conv(x), x)
        u = t[0].relu_()
        return d, t, u


@case(images(), images(1))
class SharedBn(Base):
    def forward(self, x):
        a = self.conv(x)
        b = self.bn(a)
        c = self.bn(self.conv(x))
        return a, b, c, self.bn(x), self.bn(F.relu(self.conv(x)))


@case(images())
class ConvInputWritten(Base):
    def forward(self, x):
        a = self.conv(x)
        b = self.conv2(x)
        x.zero_()
        c = a + b
        x.add_(1)
        return c, x, self.conv(x) + a


@case(images())
class ResidualWrittenBetween(Base):
    def forward(self, x):
        r = x * 2
        a = self.conv(x)
        r.mul_(3)
        b = r + a
        r.mul_(0)
        s = self.conv2(r)
        r.add_(1)
        s += r
        return b, r, s


@case(images())
class SelfSum(Base):
    def forward(self, x):
        a = self.conv(x)
        b = a + a
        c = self.conv2(x)
        c += c
        d = self.nobias(x)
        d = d.add_(d.relu())
        e = self.conv(x)
        e.add_(e.view(e.size(0), 8, -1).view(e.size()).relu())
        return b, c, d, e


@case((torch.randn(2,8,9,9),), (torch.randn(8,9,9),))
class ConvUnbatched(Base):
    def forward(self, x):
        return F.relu(self.conv(x)), self.conv2(x) + x, F.relu(self.nobias(x)).flatten()


@case(torch.randn(2, 4, 11, 12), torch.randn(1, 4, 11, 12))
class ConvMore(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(4, 8, (3, 2), stride=(2, 1), padding="valid")
        self.b = nn.Conv2d(8, 8, 3, padding="same", dilation=2)
        self.c = nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect")
        self.d = nn.Conv2d(8, 8, 3, groups=8, padding=1)
        self.t = nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1, padding=1)
        self.o = nn.Conv1d(8, 6, 3, padding=1)
        self.v = nn.Conv3d(2, 3, 2)
        self.bn4 = nn.BatchNorm2d(4, affine=False)
        self.bn4.running_mean.uniform_(-1, 1)
        self.bn1 = nn.BatchNorm1d(6)
        self.bn1.running_var.uniform_(0.5, 2)
        self.bnn = nn.BatchNorm2d(8, track_running_stats=False)
    def forward(self, x):
        y = self.d(self.c(self.b(self.a(x))))
        z = F.relu(self.bn4(self.t(y)))
        p = self.bn1(self.o(y.flatten(2)))
        q = self.v(x.view(x.size(0), 2, 2, x.size(2), x.size(3)))
        return y, z, p, F.relu(p), q, self.bnn(y)



@case((images(),), (images(1),))
class ForkCase(Base):
    def forward(self, x):
        f = torch.jit.fork(self.conv, x)
        y = self.conv2(x)
        z = torch.jit.wait(f)
        z.add_(y)
        return z, y, F.relu(z)


@case(
    (images(), torch.randn(2,8,9,9)), (images(2), torch.randn(9)), (images(2), torch.randn(1,8,1,1)),
    (images(1), torch.randn(4,8,9,9)), (images(), torch.ones(2,8,9,9, dtype=torch.float64)),
    (images(), torch.ones(2,8,9,9, dtype=torch.int64)), (images(), torch.tensor(2.0)),
    (images(), torch.randn(2,9,9,8).permute(0,3,1,2)),
    (images(),images().to(memory_format=torch.channels_last)),
)
class AddOther(Base):
    def forward(self, x, o):
        a = self.conv(x)
        a = a + o
        b = torch.relu(o + self.bn(self.conv2(x)))
        return a, b, a.stride()


@case(
    (images(2),), (images(1).to(memory_format=torch.channels_last),),
    (torch.randn(2,9,9,8).permute(0,3,1,2)[:, :, ::2],),
)
class OddInput(Base):
    def forward(self, x):
        a = self.conv(x)
        return (
            a, F.relu(self.conv2(x) + x), a.add_(x),
            self.lin(F.relu(x).transpose(1, 2)[..., :1].expand(-1, -1, -1, 9)),
        )
