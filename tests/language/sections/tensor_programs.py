"""Whole programs on tensors: einsum, masks, writes through views in branches, signals, geometry, losses, structured
results."""

import math
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.case import Section
from tests.language.sections.decoding import ids, values

section = Section()
case, made = section.case, section.made
T = torch.tensor


@case((values(2, 3, 4), values(4, 5), values(2, 3, 5)), rtol=1e-5)
def einsums_with_ellipsis(x: Tensor, w: Tensor, y: Tensor):
    a = torch.einsum("...i,ij->...j", x, w)
    b = torch.einsum("b...d, ...d -> b...", a, y[0])
    c = torch.einsum("bij,bik->bjk", x, y)
    d = torch.einsum("bii->bi", c[..., :4])
    e = torch.einsum("b i j -> j", x)
    f = torch.einsum("i,j->ij", e, w[0])
    g = torch.einsum("...ij->...ji", x)
    h = torch.einsum("bij,bij->", y, a)
    return a, b, c, d, e, f, g, h, torch.einsum("ij,jk,kl->il", w.t(), w, w.t())


@case((values(2, 4), values(2, 3, 8)), (values(2, 2), values(2, 3, 8)))
def out_of_another_size(x: Tensor, memory: Tensor):
    base = memory.clone()
    view = base[1].t()
    torch.add(x, 1, out=view)
    whole = base.view(-1)
    torch.stack([x, x], out=whole)
    own = torch.empty(0)
    torch.mul(x, x, out=own)
    return view, base, whole, own


@case((values(2, 3), T([[True, False, True], [False, False, True]])), (values(2, 3), torch.zeros(2, 3, dtype=torch.bool)))
def bool_mask_writes(x: Tensor, mask: Tensor):
    y = x.clone()
    y[mask] = 7.0
    z = x.clone()
    z[mask] = torch.arange(int(mask.sum()), dtype=x.dtype)
    z.index_put_([mask], torch.tensor(0.5), accumulate=True)
    w = torch.zeros(4, 3)
    rows = torch.tensor([0, 1, 0, 3])
    w.index_put_([rows], torch.ones(4, 3) * torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    w.index_put_([rows, torch.tensor([0, 0, 0, 2])], torch.tensor([10.0, 20.0, 30.0, 40.0]), accumulate=True)
    x[mask.any(1)] += 1
    x[:, mask.any(0)] *= 2
    v = x[mask]
    v.zero_()
    return x, y, z, w, v


@case((values(4, 6), 3), (values(4, 6), 0), (values(4, 6), -1))
def views_written_under_branches(x: Tensor, n: int):
    v = x.view(2, 2, 6)
    w = v[0].t()
    if n > 0:
        w[1:3].mul_(2)
        u = v.select(1, 0)
    elif n == 0:
        w.zero_()
        u = x.narrow(1, 0, 3)
    else:
        x = x.clone()
        u = x[::2]
    for i in range(max(n, 1)):
        u[..., i] += i + 1
        if i == 1:
            u = u.detach().clone()
    x.diagonal().fill_(-1)
    return x, v, w, u


@case((values(3, 4), True), (values(3, 4), False))
def aliases_through_loops(x: Tensor, swap: bool):
    a, b = x[:, :2], x[:, 2:]
    for i in range(3):
        if swap:
            a, b = b, a
        a.add_(i)
        b.sub_(a)
        x[i] = x[i].flip(0)
    c = a.expand(2, 3, 2)
    a.add_(100)
    return x, a, b, c.sum(0)


# Newer versions have another FFT, and small elements of the signal are sums of large ones.
@case((values(2, 400),), (values(1, 256, seed=3),), rtol=1e-4, before=(2,))
def spectrogram_and_back(x: Tensor):
    window = torch.hann_window(64)
    s = torch.stft(x, 64, 16, 64, window, center=True, pad_mode="reflect", normalized=False, onesided=True, return_complex=True)
    power = torch.abs(s).pow(2.0)
    phase = torch.angle(s)
    again = torch.polar(power.sqrt(), phase)
    y = torch.istft(again, 64, 16, 64, window, length=x.shape[-1])
    return s.shape, torch.view_as_real(s), 10.0 * torch.log10(torch.clamp(power, min=1e-10)), y


@case((values(1, 300), 20), rtol=1e-3)
def mel_filter_bank(x: Tensor, n_mels: int):
    freqs = torch.linspace(0, 4000, 33)
    m_max = 2595.0 * math.log10(1.0 + 4000.0 / 700.0)
    points = 700.0 * (10.0 ** (torch.linspace(0.0, m_max, n_mels + 2) / 2595.0) - 1.0)
    diff = points[1:] - points[:-1]
    slopes = points.unsqueeze(0) - freqs.unsqueeze(1)
    bank = torch.max(torch.zeros(1), torch.min((-1.0 * slopes[:, :-2]) / diff[:-1], slopes[:, 2:] / diff[1:]))
    s = torch.stft(x, 64, return_complex=True, window=torch.hamming_window(64)).abs() ** 2
    mel = torch.log(torch.matmul(s.transpose(-1, -2), bank) + 1e-6)
    deltas = F.conv1d(F.pad(mel.transpose(1, 2), (2, 2), mode="replicate"), torch.arange(-2.0, 3.0).repeat(n_mels, 1, 1), groups=n_mels) / 10
    return bank, mel, deltas


@case((values(2, 3, 16), values(3, 3, seed=1)), rtol=1e-4)
def complex_beamformer(x: Tensor, w: Tensor):
    s = torch.fft.rfft(x, dim=-1)
    cov = torch.einsum("bct,bdt->bcd", s, s.conj()) / s.size(-1)
    loaded = cov + torch.eye(3, dtype=cov.dtype) * 1e-3 * cov.diagonal(dim1=-2, dim2=-1).sum(-1).real[:, None, None]
    steer = torch.complex(w[0], w[1])
    solved = torch.linalg.solve(loaded, steer.expand(2, 3).unsqueeze(-1)).squeeze(-1)
    weights = solved / (steer.conj() * solved).sum(-1, keepdim=True)
    y = torch.fft.irfft((weights.conj().unsqueeze(-1) * s).sum(1), n=16)
    return y, weights.abs(), torch.is_complex(cov), cov.imag


@case((values(2, 8),), rtol=1e-4)
def rotary_by_complex(x: Tensor):
    c = torch.view_as_complex(x.reshape(2, 4, 2))
    angles = torch.outer(torch.arange(2).float(), 1.0 / (10000.0 ** (torch.arange(0, 8, 2)[:4].float() / 8)))
    turned = c * torch.polar(torch.ones_like(angles), angles)
    out = torch.view_as_real(turned).flatten(1)
    turned.mul_(2j)
    return out, turned.real, (turned - c).conj().imag, c.abs().sum()


class Detections(NamedTuple):
    boxes: Tensor
    labels: Tensor
    names: List[str]
    extra: Optional[Dict[str, Tensor]] = None


class Head(nn.Module):
    anchors: Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("anchors", values(3, 2, low=0.5, high=2.0))
        self.names: Dict[int, str] = {0: "cat", 1: "dog", 2: "{}"}
        self.conv = nn.Conv2d(2, 3 * 7, 1)
        with torch.no_grad():
            self.conv.weight.copy_(values(21, 2, 1, 1))
            self.conv.bias.zero_()

    def forward(self, x: Tensor, threshold: float = 0.5) -> List[Detections]:
        b, _, h, w = x.shape
        p = self.conv(x).view(b, 3, 7, h, w).permute(0, 1, 3, 4, 2)
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((xs, ys), 2).view(1, 1, h, w, 2).float()
        xy = (p[..., :2].sigmoid() + grid) / torch.tensor([w, h])
        wh = torch.exp(p[..., 2:4]) * self.anchors[None, :, None, None]
        scores, labels = p[..., 4:].softmax(-1).max(-1)
        found: List[Detections] = []
        for i in range(b):
            keep = scores[i] > threshold
            boxes = torch.cat([xy[i][keep], wh[i][keep]], -1)
            names = [self.names[int(k)] for k in labels[i][keep]]
            extra = {"scores": scores[i][keep]} if len(names) > 2 else None
            found.append(Detections(boxes, labels[i][keep], names, extra))
        return found


made("Head", Head, (values(2, 2, 3, 2),), (values(1, 2, 2, 2), 0.9), (values(1, 2, 2, 2), 2.0), rtol=1e-5)


def distance(a: Tensor, b: Tensor, p: float = 2.0, root: bool = True, eps: float = 1e-6) -> Tensor:
    d = (a - b + eps).abs().pow(p).sum(-1)
    return d.pow(1 / p) if root else d


@case((values(3, 4), values(3, 4, seed=1)), rtol=1e-5)
def calls_with_keywords(a: Tensor, b: Tensor):
    return distance(a, b), distance(a, b, root=False), distance(a, p=1.0, b=b), distance(a, b, 3.0, eps=0.1, root=True)


@case((values(4, 3),), rtol=1e-5)
def forks_over_chunks(x: Tensor):
    futures: List[torch.jit.Future[Tuple[Tensor, int]]] = []
    for i, part in enumerate(x.chunk(3)):
        futures.append(torch.jit.fork(piece, part, i))
    results = [torch.jit.wait(f) for f in futures]
    total = torch.zeros(3)
    where: Dict[int, Tensor] = {}
    for value, i in results:
        total = total + value.sum(0)
        where[i] = value
    return total, where


def piece(x: Tensor, i: int) -> Tuple[Tensor, int]:
    inner = torch.jit.fork(torch.tanh, x)
    return torch.jit.wait(inner) * (i + 1), i * i


@case((values(2, 3), T([0, 2]), "mean", None), (values(2, 3), T([0, -100]), "sum", values(3, low=0.0)), (values(2, 3), T([1, 1]), "none", None), (values(2, 3), T([1, 1]), "x", None), rtol=1e-5)
def focal_loss(logits: Tensor, target: Tensor, reduction: str, weight: Optional[Tensor]):
    ce = F.cross_entropy(logits, target, weight=weight, reduction="none", ignore_index=-100)
    p = torch.exp(-ce)
    loss = (1 - p) ** 2.0 * ce
    if reduction == "mean":
        return loss.mean()
    elif reduction == "sum":
        return loss.sum()
    elif reduction == "none":
        return loss
    raise ValueError("reduction {} is not known; one of {}".format(reduction, ["mean", "sum", "none"]))


@case((values(5, 3), T([0, 2, 2, 1, 0]), 3), (values(2, 1), T([1, 1]), 4), rtol=1e-5)
def graph_convolution(x: Tensor, index: Tensor, n: int):
    out = torch.zeros(n, x.size(1)).scatter_add_(0, index.unsqueeze(-1).expand_as(x), x)
    count = torch.bincount(index, minlength=n).clamp_(min=1)
    mean = out / count.unsqueeze(1)
    top = torch.full((n, x.size(1)), float("-inf")).scatter_reduce(0, index[:, None].expand_as(x), x, "amax")
    e = (x.sum(1) - torch.zeros(n).scatter_reduce(0, index, x.sum(1), reduce="amax", include_self=False)[index]).exp()
    att = e / torch.zeros(n).index_add(0, index, e)[index]
    return out, mean, torch.where(torch.isinf(top), torch.zeros_like(top), top), att


@case((values(2, 4, 4, 3), 2, 1), (values(1, 4, 4, 2), 2, 0), rtol=1e-5)
def shifted_windows(x: Tensor, size: int, shift: int):
    b, h, w, c = x.shape
    if shift > 0:
        x = torch.roll(x, shifts=(-shift, -shift), dims=(1, 2))
    windows = x.view(b, h // size, size, w // size, size, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size, c)
    attention = windows @ windows.transpose(-2, -1)
    if shift > 0:
        mask = torch.zeros(1, h, w, 1)
        count = 0
        for hs in [(0, h - size), (h - size, h - shift), (h - shift, h)]:
            for ws in [(0, w - size), (w - size, w - shift), (w - shift, w)]:
                mask[:, hs[0] : hs[1], ws[0] : ws[1], :] = count
                count += 1
        m = mask.view(1, h // size, size, w // size, size, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, size * size)
        attention = attention.view(b, -1, size * size, size * size) + ((m.unsqueeze(1) - m.unsqueeze(2)) != 0).float().mul(-100.0)
        attention = attention.flatten(0, 1)
    return attention.softmax(-1) @ windows


@case((values(3, 3, 3),), (torch.eye(3).expand(2, 3, 3),), rtol=2e-3)
def rotations(m: Tensor):
    u, s, v = torch.linalg.svd(m)
    r = u @ v
    flip = torch.det(r).sign()
    d = torch.diag_embed(torch.stack([torch.ones_like(flip), torch.ones_like(flip), flip], -1))
    proper = u @ d @ v
    trace = proper.diagonal(0, -1, -2).sum(-1)
    angle = torch.acos(((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6))
    return proper, s, angle, torch.det(proper), torch.linalg.matrix_norm(proper)


@case((values(2, 3, 8, 8), values(2, 2, 3, seed=1)), (values(1, 1, 4, 4), values(1, 2, 3)), rtol=1e-4)
def spatial_transformer(x: Tensor, theta: Tensor):
    grid = F.affine_grid(theta, x.size(), align_corners=False)
    a = F.grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    b = F.grid_sample(x, grid.clamp(-1, 1), mode="nearest", padding_mode="border", align_corners=True)
    c = F.interpolate(a, scale_factor=[0.5, 2.0], mode="bilinear", align_corners=False, recompute_scale_factor=True)
    d = F.interpolate(b, size=(3, 5), mode="bicubic", align_corners=True)
    return a, c, d, F.interpolate(x, scale_factor=1.5, mode="nearest-exact")


@case((values(2, 6), 3), (values(1, 8), 2), rtol=1e-5)
def running_statistics(x: Tensor, k: int):
    windows = x.unfold(-1, k, 1)
    mean, std = windows.mean(-1), windows.std(-1, unbiased=False)
    med = windows.median(-1)
    q = torch.quantile(windows, torch.tensor([0.25, 0.75]), dim=-1)
    peaks = (x[:, 1:-1] > x[:, :-2]) & (x[:, 1:-1] > x[:, 2:])
    return mean, std, med.values, med.indices, q, peaks.nonzero(), torch.stack(torch.where(peaks)), x.cummax(-1)[1], torch.var_mean(x, dim=1, keepdim=True)


@case((ids(4, 3),), (ids(1, 2, seed=4),))
def sets_of_rows(x: Tensor):
    rows, back, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
    flat, where = torch.unique(x, return_inverse=True)
    order = torch.argsort(x[:, 0] * 10 + x[:, 1], stable=True)
    found = torch.searchsorted(flat, torch.tensor([0, 2, 9]))
    hot = F.one_hot(x, 5).sum(0)
    return rows, back, counts, flat, where, x[order], found, hot, torch.isin(x, torch.tensor([1, 3])), torch.bucketize(x, flat, right=True)


@case((values(6), 4), (values(3), 2), rtol=1e-4)
def recurrence_with_history(x: Tensor, order: int):
    history = torch.zeros(order)
    coefficients = torch.linspace(0.5, -0.25, order)
    out = torch.empty(0)
    for i in range(len(x)):
        y = x[i] + (coefficients * history).sum()
        history = torch.roll(history, 1)
        history[0] = y
        out = torch.cat((out, y.view(1)))
    return out, history


@case((values(3, 3),), rtol=1e-3, grad=True)
def newton_with_gradients(x: Tensor):
    x = x.detach().clone().requires_grad_()
    for _ in range(3):
        loss = (x.pow(4).sum() - 3 * x.prod()).log1p().pow(2) if bool(x.sum() > 100) else (x**2).sum() + x.cos().sum()
        g = torch.autograd.grad([loss], [x])[0]
        assert g is not None
        x = (x - 0.1 * g).detach().requires_grad_()
    return x.detach()


@case((values(2, 3), 1), (values(2, 3), "a"), (values(2, 3), [1, 2]), (values(2, 3), None), (values(2, 3), values(3)), rtol=1e-5)
def unions_of_many(x: Tensor, y: Union[int, str, List[int], Tensor, None]):
    if y is None:
        return x
    elif isinstance(y, int):
        return x + y
    elif isinstance(y, str):
        return x * len(y)
    elif isinstance(y, Tensor):
        return x @ y
    else:
        return x[:, torch.jit.annotate(List[int], y)]


@case((3.14159, 42, "x", T([1.5, 2.0])), (-0.0, -7, "", T(3)))
def formatted(f: float, i: int, s: str, t: Tensor):
    a = f"{f} {i} [{s}] {t.shape} {t.dtype}"
    b = "{} and {}, {}".format(i, f, [i, i + 1])
    c = "%d|%s|%f|%s" % (i, s, f, s)
    d = "{}{}{}".format((i, s), {s: i}, None)
    return a, b, c, d, str(i) + str(f) + str([f]), "-".join([str(k) for k in t.shape])


@case((T([3.90625, 0.3, -3.90625, 7.5, -0.3, 1.1, 8.25, -2.125]).to(torch.bfloat16), 0.3), (T([3.90625, 0.3, -3.90625, 7.5]).to(torch.float16), -1.1), before=(2,))  # does not round the number
def numbers_beside_halves(x: Tensor, k: float):
    fused = (x % 0.3 + 0.1) * 2.0 - 0.7
    again = torch.where(x >= 0.3, (x + k) % 0.7, (1.3 - x) % k)
    return (x % k, torch.fmod(x, k), x // k, torch.remainder(k, x), k % x, x + k, x - k, k - x, x < k, x == k, x != 0.3, torch.div(x, k, rounding_mode="floor"), torch.div(x, k, rounding_mode="trunc") + 1,
            fused, again, x.remainder_(k))
