"""Decoders whose fixed-size cache is written in place, in every common way, with rotary embeddings, norms, a GELU and
grouped heads; each step gets the cache that the previous one returned."""

import itertools

import torch
from torch import nn

from tests.language.case import Section

section = Section()
WIDTH, HEADS, DEPTH, LENGTH = 16, 4, 8, 12


def rotated(x, cos, sin):
    half = DEPTH // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Decoder(nn.Module):
    def __init__(self, way: str, front: str, layers: int, own_heads: int):
        super().__init__()
        torch.manual_seed(0)
        self.way, self.front, self.own_heads = way, front, own_heads
        self.layers = nn.ModuleList(nn.ModuleDict({"q": nn.Linear(WIDTH, HEADS * DEPTH), "k": nn.Linear(WIDTH, own_heads * DEPTH), "v": nn.Linear(WIDTH, own_heads * DEPTH),
                                                   "o": nn.Linear(HEADS * DEPTH, WIDTH)}) for _ in range(layers))

    def write(self, cache, new, now):
        if self.way == "scatter":
            cache.scatter_(2, now[:, None, :, None].expand_as(new), new)
        elif self.way == "index_copy":
            cache.index_copy_(2, now[0], new)
        elif self.way == "index_put":
            cache[:, :, now[0]] = new
        else:
            cache.masked_scatter_((torch.arange(LENGTH)[None, :] == now[:, -1:])[:, None, :, None].expand_as(cache), new)

    def forward(self, x, cache, position):
        batch, count = x.shape[0], x.shape[1]
        now = position + torch.arange(count)
        mask = (torch.arange(LENGTH)[None, None, :] <= now[:, :, None])[:, None]
        angle = now[:, None, :, None].float() / torch.arange(1, DEPTH // 2 + 1).repeat(2)
        for i, layer in enumerate(self.layers):
            h = x
            if "norm" in self.front:
                h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
            if "gelu" in self.front:
                h = 0.5 * h * (1 + torch.erf(h / 1.4142135623730951))
            q, k, v = (layer[name](h).view(batch, count, heads, DEPTH).transpose(1, 2) for name, heads in (("q", HEADS), ("k", self.own_heads), ("v", self.own_heads)))
            if "rope" in self.front:
                q, k = rotated(q, angle.cos(), angle.sin()), rotated(k, angle.cos(), angle.sin())
            keys, values = cache[:, 2 * i], cache[:, 2 * i + 1]
            self.write(keys, k, now)
            self.write(values, v, now)
            if self.own_heads != HEADS:
                shape = (batch, self.own_heads, HEADS // self.own_heads, LENGTH, DEPTH)
                keys, values = (c[:, :, None].expand(shape).reshape(batch, HEADS, LENGTH, DEPTH) for c in (keys, values))
            weights = torch.softmax((q @ keys.transpose(2, 3) * DEPTH**-0.5).masked_fill(~mask, -1e9), -1)
            x = x + layer["o"]((weights @ values).transpose(1, 2).reshape(batch, count, HEADS * DEPTH))
        return x, cache, position + count


def traced(way, front, layers, own_heads, count):
    with torch.no_grad():
        return torch.jit.trace(Decoder(way, front, layers, own_heads).eval(), step(layers, own_heads, count, 0), check_trace=False)


def step(layers, own_heads, count, position):
    generator = torch.Generator().manual_seed(position)
    return torch.randn(1, count, WIDTH, generator=generator), torch.randn(1, 2 * layers, own_heads, LENGTH, DEPTH, generator=generator), torch.tensor([[position]])


for way, front, (layers, own_heads) in itertools.product(("scatter", "index_copy", "index_put", "masked_scatter"), ("", "rope", "norm_gelu", "rope_norm_gelu"), ((2, 4), (3, 2), (1, 1))):
    count = 1 if way == "masked_scatter" else 2
    section.made(f"{way}_{front or 'plain'}_{layers}_{own_heads}", lambda a=(way, front, layers, own_heads, count): traced(*a),
                 *(step(layers, own_heads, count, position) for position in (0, 3, 7)), rtol=1e-3)
