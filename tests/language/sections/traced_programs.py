"""Traces of whole functions: sizes as values, indexed writes, numbers from sizes, unusual operators, dicts and tuples
as arguments and results."""

import math
from typing import Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.decoding import ids, values
from tests.language.sections.module_programs import filled

section = Section()
made = section.made
T = torch.tensor


def traced(example: tuple, *others: tuple, rtol: float = 1e-5):
    """A row that is traced with `example`, and called with it and the others."""

    def add(function):
        made(function.__name__, lambda: torch.jit.trace(function, example, check_trace=False, strict=False), example, *others, rtol=rtol)
        return function

    return add


@traced((values(2, 3, 4),), (values(1, 5, 2, seed=1),))
def sizes_as_values(x):
    b, n, d = x.shape
    mask = torch.arange(n)[None, :] < torch.arange(1, b + 1)[:, None]
    y = x.reshape(b * n, -1).view(b, n, d).permute(1, 0, 2).flatten(1)
    z = torch.zeros(b, n + 1, d, dtype=x.dtype)
    z[:, 1:] = x
    half = x[:, : n // 2 + n % 2] * (d**-0.5) / n
    pad = F.pad(x, (0, d, n - 1, 0))
    return mask, y, z, half, pad, x.new_full((d, b), n), torch.full((n,), float(d)), x.sum() / (x.shape[0] * x.size(-1)), torch.ones(x.shape).cumsum(0)


@traced((values(3, 4), T([2, 0])), (values(5, 4, seed=1), T([1, 4])))
def index_writes(x, i):
    x = x.clone()
    x[i] = x[i.flip(0)] * 2
    x[i, 1] += torch.tensor([1.0, 2.0])
    x[:, [0, 2]] = 0.5
    x[..., -1].clamp_(max=0.25)
    x[x > 1] = -1.0
    x[0][x[0] < 0] *= 3
    v = x.view(-1)[::2]
    v[1:3] = torch.tensor([5.0, 6.0])
    x.index_put_((i, torch.zeros_like(i)), torch.ones(2), accumulate=True)
    x.transpose(0, 1)[1, :2] = i.to(x.dtype)
    return x, v, x[None, ..., 1:, None], x[torch.tensor(1)], x[i.unsqueeze(1), torch.arange(2)], x[-1, ::2]


@traced((values(4, 4),), (values(4, 4, seed=3),), rtol=1e-4)
def odd_operators(x):
    return (torch.tensordot(x, x, dims=([0], [1])), torch.kron(x[:2, :2], x[2:, 2:]), torch.block_diag(x[0], x[:2]), torch.cartesian_prod(x[0], x[1])[:5],
            torch.combinations(x[0], 2), torch.vander(x[0, :3]), torch.trapz(x, dx=0.5), torch.gradient(x, dim=1)[0], torch.cov(x), torch.corrcoef(x),
            torch.diff(x, n=2), torch.logcumsumexp(x, 1), torch.renorm(x, 2, 0, 1.0), torch.nanmedian(x), torch.quantile(x, 0.3, dim=0), torch.heaviside(x, x[0]),
            torch.lerp(x, x.t(), 0.3), torch.rot90(x), torch.movedim(x, 0, 1), torch.take_along_dim(x, x.argsort(1), 1), torch.histc(x, 4), x.frac(), x.logdet().isnan(),
            torch.chain_matmul(x, x, x), torch.addmv(x[0], x, x[1]), torch.dist(x, x.t()), torch.linalg.multi_dot([x, x, x]), torch.tril_indices(3, 3), x.nan_to_num(),
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), torch.erfinv(x / 3), torch.special.i0e(x), torch.polygamma(1, x.abs() + 1), x.to(torch.int8) << 1)


@traced((values(2, 5), T([1, 4])), (values(2, 5, seed=1), T([0, 3])))
def types_mixed(x, i):
    j = i.int()
    return (x + i[0], x * j.unsqueeze(1), i / 2, i // 2, j % 3, (x > 0) & (i > 0).unsqueeze(1), torch.where(x > 0, 1, 0), torch.where(x > 0, x, torch.tensor(0.0, dtype=torch.float64)),
            x.to(i), x.double() + x, torch.cat([i, j.float()]), x.sum(dtype=torch.float64), (x > 0).sum(1), i.float().mean(), x.type(torch.LongTensor), 2 - i, 1 / x, 2**i, i**2,
            x.half().float(), torch.tensor([1, 2]) * 1.5, i.bool().float().var(), torch.maximum(i, j), x.bfloat16() * 2, x.int().abs().sum())


@traced(({"a": values(2, 3), "b": values(3)},), ({"a": values(4, 3), "b": values(3, seed=5)},))
def dict_in_and_out(d):
    out = {k + "_sum": v.sum(-1) for k, v in d.items()}
    out["both"] = d["a"] @ d["b"]
    return out


@traced(((values(2, 3), (values(3), values(3, seed=2))), [values(1), values(2)]), ((values(1, 3), (values(3), values(3, seed=2))), [values(2), values(2)]))
def nests_in_and_out(pair, items):
    x, (w, b) = pair
    y = x * w + b
    return (y, [y.sum(), items[0]]), {"items": torch.cat(items), "w": w.clone()}, (items[1], (x, (y,)))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 4, 3, padding="same", dilation=2), nn.BatchNorm2d(4), nn.SiLU(), nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten())
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True, proj_size=3)
        self.norm = nn.LayerNorm([4, 6], elementwise_affine=True)
        self.bilinear = nn.Bilinear(6, 6, 2)

    def forward(self, x):
        y = self.norm(self.conv(x).view(-1, 4, 6))
        z, (h, c) = self.lstm(y)
        return z, h, c, self.bilinear(y[:, 0], z[:, -1]), F.normalize(z, dim=-1), F.cosine_similarity(y, z, -1)


made("layers_traced", lambda: torch.jit.trace(filled(Layers()), values(2, 1, 7, 6), check_trace=False), (values(2, 1, 7, 6),), (values(1, 1, 9, 5),), rtol=1e-4)
made("layers_traced_and_frozen", lambda: torch.jit.freeze(torch.jit.trace(filled(Layers()), values(2, 1, 7, 6), check_trace=False)), (values(3, 1, 7, 6),), rtol=1e-4)


@traced((values(1, 2, 6, 6),), (values(2, 2, 5, 7),), rtol=1e-4)
def pools_and_windows(x):
    y, i = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    u = F.unfold(x, 3, padding=1, stride=2)
    return (y, i, F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False, padding=1), u, F.fold(u, x.shape[-2:], 3, padding=1, stride=2), F.adaptive_max_pool2d(x, (2, 3)),
            x.unfold(2, 3, 2).unfold(3, 3, 2).mean((-1, -2)), F.pixel_shuffle(x.repeat(1, 2, 1, 1), 2), F.interpolate(x, scale_factor=2.0, mode="bicubic"), F.lp_pool2d(x.abs(), 2, 2),
            F.interpolate(x, size=(x.shape[2] * 2, 3), mode="bilinear", antialias=True), F.grid_sample(x, torch.stack(torch.meshgrid(torch.linspace(-1, 1, 3), torch.linspace(-1, 1, 4), indexing="xy"), -1).expand(x.shape[0], -1, -1, -1), align_corners=True))


@traced((values(2, 8),), (values(2, 8, seed=5),), rtol=1e-4)
def complex_numbers(x):
    c = torch.complex(x[:, :4], x[:, 4:])
    f = torch.fft.fft(c, norm="ortho")
    f[:, 1:3] *= 1j
    g = torch.fft.fftshift(f, dim=-1)
    m = c.t() @ c.conj()
    return c.abs(), f, g.real, g.imag.clone(), m, m.mH[0, 1:], torch.linalg.eigvalsh(m)[2:], (c * 2 + 1 - 0.5j), c.angle(), torch.fft.ihfft(x), torch.fft.rfft2(x), c.exp(), c.prod(), torch.view_as_real(f).sum(-1), c == c, c[0].conj().resolve_conj()


@traced((values(3, 6),), (values(3, 6, seed=1),))
def splits_and_joins(x):
    a, b, c = x.chunk(3, dim=1)
    d = x.tensor_split([1, 4], dim=1)
    e = torch.split(x, [1, 5], 1)
    f = x.unbind(0)
    x = x * 1
    h = x.split(2, 1)
    h[0].add_(1)
    return torch.stack([a, b, c]).max(0)[0], d[1], e[1] - e[0], torch.stack(f[::-1]), x, torch.hstack((a, b)), torch.dstack((a, c)), torch.atleast_3d(a), torch.column_stack(f), sum(f), torch.cat([h[0], *d], 1)


@torch.jit.script
def last_step(x, lengths: List[int], keep: bool = True):
    out: List[Tensor] = []
    for i, n in enumerate(lengths):
        out.append(x[i, n - 1] if keep else x[i, :n].mean(0))
    return torch.stack(out)


@traced((values(2, 3, 2),), (values(2, 4, 2, seed=2),))
def script_in_trace(x):
    return last_step(x, [1, 3]), last_step(x * 2, [2, 2], False)


@traced((values(2, 4, 6), values(2, 4, 6, seed=1), values(2, 4, 6, seed=2)), (values(1, 3, 6), values(1, 5, 6), values(1, 5, 6, seed=1)), rtol=1e-4)
def attention_by_hand(q, k, v):
    b, n, d = q.shape
    heads = 2
    split = lambda t: t.view(b, -1, heads, d // heads).transpose(1, 2)  # noqa: E731
    scores = split(q) @ split(k).transpose(-2, -1) / math.sqrt(d // heads)
    m = k.size(1)
    causal = torch.ones(n, m, dtype=torch.bool).tril(m - n)
    scores = scores.masked_fill(~causal, float("-inf"))
    slopes = 2 ** -torch.arange(1, heads + 1).float()
    scores = scores + slopes[:, None, None] * (torch.arange(m)[None] - torch.arange(n)[:, None])
    weights = scores.softmax(-1)
    out = (weights @ split(v)).transpose(1, 2).reshape(b, n, d)
    return out, weights, torch.einsum("bhij,bhjd->bihd", weights, split(v)).flatten(2)


@traced((ids(2, 5, most=7), values(7, 3)), (ids(1, 2, most=7, seed=3), values(7, 3, seed=1)))
def tables(tokens, table):
    e = F.embedding(tokens, table, padding_idx=0)
    bags = F.embedding_bag(tokens, table, mode="mean")
    weighted = F.embedding_bag(tokens.flatten(), table, torch.tensor([0, 1]), mode="sum", per_sample_weights=torch.ones(tokens.numel()))
    hot = F.one_hot(tokens, 7).float() @ table
    counts = torch.zeros(7).scatter_add_(0, tokens.flatten(), torch.ones(tokens.numel()))
    return e, bags, weighted, hot - e, counts, table.gather(0, tokens[:, :3]), table.index_select(1, torch.tensor([2, 0])), torch.take(table, tokens), e.masked_select(tokens.unsqueeze(-1) > 3)


@traced((values(3, 4), values(3, 4, seed=1)), (values(3, 4, seed=2), values(3, 4, seed=3)))
def losses(x, y):
    p, q = x.softmax(-1), y.softmax(-1)
    target = torch.arange(x.shape[0])
    return (F.kl_div(p.log(), q, reduction="batchmean"), F.huber_loss(x, y, delta=0.3), F.binary_cross_entropy_with_logits(x, q, pos_weight=torch.tensor(2.0)), F.nll_loss(p.log(), target, reduction="sum"),
            F.triplet_margin_loss(x, y, x.flip(0)), F.cosine_embedding_loss(x, y, torch.ones(x.shape[0])), F.multi_margin_loss(x, target), F.hinge_embedding_loss(x, y.sign()), F.soft_margin_loss(x, y.sign()),
            F.gaussian_nll_loss(x, y, q), F.poisson_nll_loss(x, q, full=True), F.multilabel_soft_margin_loss(x, (y > 0).float()), F.cross_entropy(x, q, label_smoothing=0.1), F.margin_ranking_loss(x[:, 0], x[:, 1], y[:, 0].sign()),
            F.ctc_loss(p.log().unsqueeze(1).repeat(4, 2, 1), torch.tensor([[1, 2], [3, 3]]), torch.tensor([x.shape[0] * 4] * 2), torch.tensor([2, 1])))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("queue", torch.zeros(2, 3))
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        self.seen += x.sum(0)
        self.queue[1:] = self.queue[:-1].clone()
        self.queue[0] = x[-1]
        return self.norm(x), self.seen.clone(), self.queue * 1


made("state_traced", lambda: torch.jit.trace(Counter().train(), values(4, 3), check_trace=False), (values(4, 3),), (values(2, 3, seed=1),), rtol=1e-5)


class Methods(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 2), nn.Linear(2, 3)

    def forward(self, x):
        return self.decode(self.encode(x))

    def encode(self, x):
        return torch.sigmoid(self.a(x))

    def decode(self, z):
        return self.b(z).relu()


made("methods_traced", lambda: torch.jit.trace_module(filled(Methods()), {"forward": values(2, 3), "encode": values(2, 3), "decode": values(2, 2)}, check_trace=False),
     ("forward", (values(4, 3),)), ("encode", (values(1, 3),)), ("decode", (values(3, 2),)), rtol=1e-5)


@traced((values(3, 3),), (values(3, 3, seed=4),), rtol=1e-3)
def decompositions(x):
    a = x @ x.t() + torch.eye(3)
    l = torch.linalg.cholesky(a)
    w, v = torch.linalg.eigh(a)
    q, r = torch.linalg.qr(x)
    return (l, w, v.abs(), (q @ r), torch.linalg.inv(a), torch.cholesky_solve(x, l), torch.linalg.slogdet(a)[1], torch.triangular_solve(x, l, upper=False)[0], torch.linalg.lstsq(a, x)[0],
            torch.linalg.pinv(x), torch.linalg.matrix_exp(x), torch.linalg.svdvals(x), torch.linalg.cond(a), torch.linalg.matrix_power(x, 3), torch.linalg.lu_factor(a)[1], torch.linalg.vander(x[0]), torch.linalg.cross(x, a), torch.lu_solve(x, *torch.linalg.lu_factor(a)))


class SwapTwo(nn.Module):
    def forward(self, x, y):
        x += 1
        y[:1] = x[:1]
        x, y = y, x
        x.mul_(2)
        return x - y, y


made("arguments_written_in_trace", lambda: torch.jit.trace(SwapTwo(), (values(2, 2), values(2, 2, seed=1)), check_trace=False), (values(2, 2), values(2, 2, seed=1)), (values(3, 2), values(3, 2)))
