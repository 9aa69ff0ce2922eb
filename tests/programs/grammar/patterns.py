"""Patterns that passes rewrite, and near misses."""

from __future__ import annotations

import re

import torch

from tests.programs.grammar.rules import rule


@rule(3)
def attention(b):
    """Attention composed of basic operators; sometimes slightly wrong."""
    rng = b.rng
    batch, heads, time, width = rng.choice([1, 2]), rng.choice([1, 2, 3]), rng.choice([1, 3, 5, 8]), rng.choice([2, 4, 8])
    sizes = (batch, time, heads * width)
    if rng.random() < 0.6:
        q, k, v = (b.let(f"{b.some_float(sizes)}.view({batch}, {time}, {heads}, {width}).transpose(1, 2)") for _ in range(3))
    else:
        q, k, v = (b.some_float((batch, heads, time, width)) for _ in range(3))
    scale = rng.choice([f" / {width ** 0.5}", f" * {width ** -0.5}", "", f" / math.sqrt({q}.size(-1))", " * 2.0"])
    scores = b.let(f"torch.matmul({q}, {k}.transpose(-2, -1)){scale}" if rng.random() < 0.85 else f"torch.matmul({q}, {k}.transpose(-2, -1)).mul_({width ** -0.5})")
    mask = rng.randrange(6)
    if mask == 1:
        scores = b.let(f"{scores} + {b.some_float((time, time))}")
    elif mask == 2:
        scores = b.let(f"{scores}.masked_fill({b.fresh((batch, 1, 1, time), torch.bool, -1, 1)}, {rng.choice(['-1e9', 'float(-10000.0)', '-5.0'])})")
    elif mask == 3:
        scores = b.let(f"torch.where(torch.tril(torch.ones([{time}, {time}])) > 0, {scores}, torch.tensor(-1e4))")
    elif mask == 4:
        scores = b.let(f"torch.add({scores}, {b.some_float((batch, 1, 1, time))}, alpha={rng.choice([1, 1, 2])})")
    elif mask == 5:
        scores = b.let(f"{b.some_float((batch, heads, time, time))} + {scores}")
    weights = b.let(f"torch.softmax({scores}, {rng.choice([-1, -1, -1, 3, -2])})")
    out = b.let(f"torch.matmul({weights}, {v})")
    if rng.random() < 0.7:
        b.let(f"{out}.transpose(1, 2).{rng.choice(['contiguous().view', 'reshape'])}({batch}, {time}, {heads * width})")
    if rng.random() < 0.15:
        b.do(f"{rng.choice([weights, q, v])}.add_(0.5)")


WRITES_OF_ROWS = """{c}.index_copy_(2, {now}, {k})
{c}.index_add_(2, {now}, {k}, alpha=2)
{c}.scatter_(2, {now}.view(1, 1, -1, 1).expand_as({k}), {k})
{c}.scatter_add_(2, {now}.view(1, 1, -1, 1).expand_as({k}), {k})
{c}.index_fill_(2, {now}, 0.5)
{c}[:, :, {now}] = {k}
{c}[:, :, {first}:{last}] = {k}
{c}[:, :, {first}:{last}].copy_({k})""".split("\n")


def rotated(b, x, now, width):
    """Rotated as by rotary embeddings."""
    angle = b.let(f"{now}.float().unsqueeze(-1) * {b.some_float((width // 2,))}")
    cos, sin = (b.let(f"torch.cat([{angle}.{part}(), {angle}.{part}()], -1)") for part in ("cos", "sin"))
    return b.let(f"{x} * {cos} + torch.cat([-{x}[..., {width // 2}:], {x}[..., :{width // 2}]], -1) * {sin}")


@rule(3)
def cache(b):
    """Keys and values of fixed size, written in place, with grouped-head attention over them."""
    rng = b.rng
    batch, own, times, width, length = rng.choice([1, 2]), rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), rng.choice([2, 4, 8]), rng.choice([5, 8])
    count = rng.choice([1, 1, 2, 4])
    first = rng.randrange(length - count + 1)
    now = b.let(f"torch.arange({count}) + {first}")
    both = b.some_float((batch, 2, own, length, width)) if rng.random() < 0.6 else ""
    stored = [b.let(f"{both}[:, {i}]") if both else b.some_float((batch, own, length, width)) for i in range(2)]
    query = b.some_float((batch, own * times, count, width))
    new = [b.some_float((batch, own, count, width)) for _ in range(2)]
    if rng.random() < 0.5:
        query, new[0] = rotated(b, query, now, width), rotated(b, new[0], now, width)
    elif rng.random() < 0.5:
        new[0] = b.let(f"F.gelu({new[0]})")
    write = rng.choice(WRITES_OF_ROWS)
    for held, rows in zip(stored, new):
        b.do(write.format(c=held, now=now, k=rows, first=first, last=first + count))
    if rng.random() < 0.15:
        b.let(f"{stored[0]} + 1.0")
    if times > 1 and rng.random() < 0.5:
        stored = [b.let(f"{held}[:, :, None].expand({batch}, {own}, {times}, {length}, {width}).reshape({batch}, {own * times}, {length}, {width})") for held in stored]
    else:
        stored = [b.let(f"torch.repeat_interleave({held}, {times}, dim=1)") for held in stored]
    if rng.random() < 0.15:
        b.do(f"{rng.choice([both or new[0], stored[0]])}.mul_(0.5)")
    scores = b.let(f"torch.matmul({query}, {stored[0]}.transpose(2, 3)) * {width ** -0.5}")
    if rng.random() < 0.5:
        scores = b.let(f"{scores}.masked_fill(torch.arange({length}) > {now}.unsqueeze(-1), -1e4)")
    out = b.let(f"torch.matmul(torch.softmax({scores}, -1), {stored[1]})")
    if rng.random() < 0.7:
        b.let(f"{out}.transpose(1, 2).reshape({batch}, {count}, {own * times * width})")


PATTERNS = """{x} * torch.sigmoid({x})
torch.sigmoid({x}) * {y}
{x} * torch.tanh(F.softplus({x}))
{x} * torch.tanh(F.softplus({x}, beta=2))
{x} * torch.tanh(F.softplus({y}))
{x} * 0.5 * (1.0 + torch.erf({x} / 1.4142135623730951))
0.5 * {x} * (1 + torch.erf({x} * 0.7071067811865476))
{x} * 0.5 * (1.0 + torch.erf({y} / 1.4142135623730951))
{x} * 0.5 * (1.0 + torch.erf({x} / 1.5))
0.5 * {x} * (1 + torch.tanh(0.7978845608028654 * ({x} + 0.044715 * torch.pow({x}, 3.0))))
0.5 * {x} * (1 + torch.tanh(0.7978845608028654 * ({x} + 0.044715 * {x} * {x} * {x})))
0.5 * {x} * (1 + torch.tanh(0.7978845608028654 * ({x} + 0.044715 * torch.pow({x}, 2.0))))
{x} * 0.7978845608028654 * (1 + 0.044715 * {x} * {x})
{x} * F.relu6({x} + 3) / 6
{x} * F.relu6({x} + 3.0) * 0.16666666666666666
{x} * torch.clamp({x} + 3, 0, 6) / 6
{x} * F.relu6({x} + 2) / 6
{y} * F.relu6({x} + 3) / 6
F.relu6({x} + 3) / 6
F.hardtanh({x} + 3, 0.0, 6.0) / 6
torch.clamp(torch.add({x}, 3, alpha=2), 0, 6) / 6
{x} * F.hardsigmoid({x})
({x} - {x}.mean(-1, keepdim=True)) / torch.sqrt(({x} - {x}.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True) + 1e-5)
({x} - {x}.mean(-1, keepdim=True)) / torch.sqrt({x}.var(-1, keepdim=True, unbiased=False) + 1e-3)
({x} - {x}.mean(-1, keepdim=True)) / torch.sqrt({x}.var(-1, keepdim=True, unbiased=True) + 1e-3)
({x} - {x}.mean(0, keepdim=True)) / torch.sqrt({x}.var(-1, keepdim=True, unbiased=False) + 1e-3)
({x} - {x}.mean(-1, keepdim=True)) * torch.rsqrt({y}.var(-1, keepdim=True, unbiased=False) + 1e-3)
torch.exp({x} - torch.amax({x}, -1, True)) / torch.exp({x} - torch.amax({x}, -1, True)).sum(-1, keepdim=True)
torch.exp({x} - torch.amax({x}, -1, True)) / torch.exp({x} - torch.amax({x}, -1, True)).sum(0, keepdim=True)
torch.exp({x} - torch.amax({x}, 0, True)) / torch.exp({x} - torch.amax({x}, -1, True)).sum(-1, keepdim=True)
F.layer_norm({x}, [{x}.size(-1)]) * {w} + {w2}
torch.add(F.layer_norm({x}, [{x}.size(-1)]) * {w}, {w2}, alpha=3)
F.layer_norm({x}, [{x}.size(-1)], {w}) + {w2}
torch.relu(torch.relu({x}))
torch.relu(torch.sigmoid({x}) + {y})
{x}.t().t()
{x}.transpose(0, 1).transpose(1, 0)
{x}.transpose(0, 1).transpose(0, -1)
{x}.contiguous().contiguous()
{x}.view({x}.size()) + {y}
torch.sigmoid({x}) + torch.sigmoid({x}).t()
torch.sigmoid({x}) + torch.sigmoid({x}).flip(0)
torch.tanh({x}) * torch.tanh({x}).sum()""".split("\n")


@rule(6)
def pattern(b):
    """Patterns of fuse_patterns and peepholes, and near misses, with parts that other statements read or write."""
    rng = b.rng
    x = b.float_tensor(lambda t: t.dim() >= 1)
    shape = b.value(x).shape
    template = rng.choice(PATTERNS)
    y = b.pick("Tensor", lambda t: t.shape == shape and t.is_floating_point())
    source = template.replace("{x}", x).replace("{y}", y)
    for hole in ("{w}", "{w2}"):
        if hole in source:
            source = source.replace(hole, b.some_float(shape[-1:]))
    # Parts in variables of their own, of which some are used again.
    for _ in range(rng.choice([0, 0, 1, 2])):
        inner = re.findall(r"(?:torch|F)\.\w+\([^()]*\)", source)
        if not inner:
            break
        part = rng.choice(inner)
        name = b.let(part)
        source = source.replace(part, name)
        if rng.random() < 0.2:
            b.do(f"{rng.choice([name, x])}.add_(1)")
    y = b.let(source)
    if rng.random() < 0.15:
        b.do(f"{x}.mul_(0.5)")
