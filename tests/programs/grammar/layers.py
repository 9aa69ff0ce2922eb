"""Products and layers, with epilogues that may be fused."""

from __future__ import annotations

import torch

from tests.programs.builder import Skip
from tests.programs.grammar.rules import number, rule


@rule(6)
def linear(b):
    x = b.float_tensor(lambda t: t.dim() >= 1 and t.dtype == torch.float32)
    k, n = b.value(x).shape[-1], b.rng.choice([1, 2, 3, 5, 8, 16, 17])
    bias = b.rng.random() < 0.7
    style = b.rng.randrange(4)
    if style == 0:
        layer = b.member(f"seeded({b.rng.randrange(10**6)}, lambda: nn.Linear({k}, {n}, bias={bias}))")
        y = b.let(f"{layer}({x})")
    else:
        w = b.some_float((n, k))
        if style == 1:
            y = b.let(f"F.linear({x}, {w}, {b.some_float((n,))})" if bias else f"F.linear({x}, {w})")
        elif style == 2:
            y = b.let(f"torch.matmul({x}, {w}.t())" + (f" + {b.some_float((n,))}" if bias else ""))
        else:
            y = b.let(f"torch.addmm({b.some_float((n,))}, {x}, {w}.t(), beta={number(b)}, alpha={number(b)})")
    activation(b, y)


@rule(3)
def half_layer(b):
    """A layer with bfloat16 weights, as in most checkpoints."""
    x = b.float_tensor(lambda t: t.dim() >= 1)
    shape = b.value(x).shape
    k, n, seed = shape[-1], b.rng.choice([1, 3, 8, 17, 40]), b.rng.randrange(10**6)
    layers = [f"nn.Linear({k}, {n}, bias={b.rng.random() < 0.7})"]
    if len(shape) == 4 and shape[1]:
        layers += [f"nn.Conv2d({shape[1]}, {n}, {b.rng.choice([1, 3])}, padding=1)"] * 2
    if len(shape) == 3:
        layers += [f"nn.{b.rng.choice(['LSTM', 'GRU'])}({k}, {n}, batch_first={b.rng.random() < 0.5})"]
    layer = b.rng.choice(layers)
    member = b.member(f"seeded({seed}, lambda: {layer}).bfloat16()")
    y = b.let(f"{member}({x}.to(torch.bfloat16))" + ("[0]" if "batch_first" in layer else ""))
    b.let(f"{y}.float()")


def activation(b, y):
    """Operators that are epilogues, or nearly so."""
    for _ in range(b.rng.choice([0, 1, 1, 2])):
        template = b.rng.choice(["F.relu({y})", "F.gelu({y})", "torch.sigmoid({y})", "F.silu({y})", "torch.tanh({y})", "F.hardswish({y})", "F.relu6({y})",
                                 "F.leaky_relu({y}, 0.2)", "F.hardtanh({y}, -0.5, 0.7)", "{y} + {z}", "{z} + {y}", "{y} * {z}", "{y} * 0.5", "{y} - {z}",
                                 "torch.add({y}, {z}, alpha=2)", "F.elu({y})", "F.hardsigmoid({y})", "F.mish({y})"])
        shape = tuple(b.value(y).shape)
        z = b.some_float(shape[-1:] if b.rng.random() < 0.3 else shape) if "{z}" in template else ""
        target = b.let(template.format(y=y, z=z))
        if b.rng.random() < 0.2:
            b.do(f"{y}.add_(1)")
        y = target
    if b.rng.random() < 0.15:
        b.do(b.rng.choice([f"F.relu({y}, inplace=True)", f"{y}.mul_(2)", f"{y}.clamp_(0, 6)"]))


@rule(4)
def product(b):
    x = b.float_tensor(lambda t: t.dim() >= 1 and t.dtype == torch.float32)
    value = b.value(x)
    k = value.shape[-1]
    style = b.rng.randrange(6)
    n = b.size()
    if style == 0 and value.dim() == 3:
        y = b.let(f"torch.bmm({x}, {b.some_float((value.shape[0], k, n))})")
    elif style == 1 and value.dim() == 3:
        y = b.let(f"torch.baddbmm({b.some_float((value.shape[0], value.shape[1], n))}, {x}, {b.some_float((value.shape[0], k, n))}, beta={number(b)}, alpha={number(b)})")
    elif style == 2:
        y = b.let(f"torch.einsum('...i,ij->...j', {x}, {b.some_float((k, n))})")
    elif style == 3:
        y = b.let(f"torch.matmul({x}, {b.some_float((k,))})")
    elif style == 4:
        y = b.let(f"{x} @ {x}.transpose(-1, -2)")
    else:
        y = b.let(f"torch.matmul({x}, {b.some_float((k, n))})")
    activation(b, y)


def image(b, rank: int, channels=None) -> str:
    """A float32 tensor of a batch of images with `rank` dimensions each."""
    fits = lambda t: t.dim() == rank + 2 and t.dtype == torch.float32 and (channels is None or t.shape[1] == channels)
    try:
        if b.rng.random() < 0.8:
            return b.float_tensor(fits)
    except Skip:
        pass
    return b.fresh((b.rng.choice([1, 2, 2, 3]), channels or b.rng.choice([1, 2, 3, 4, 6, 8, 16]), *[b.rng.choice([1, 3, 5, 7, 8, 12]) for _ in range(rank)]), torch.float32)


@rule(8)
def convolution(b):
    rng = b.rng
    rank = rng.choice([1, 2, 2, 2, 2, 3])
    x = image(b, rank)
    cin = b.value(x).shape[1]
    if not cin:  # PyTorch's results have other shapes then
        raise Skip
    groups = rng.choice([g for g in (1, 1, 2, cin) if g and cin % g == 0] or [1])
    cout = groups * rng.choice([1, 2, 3, 4, 8])
    options = f"{cin}, {cout}, {rng.choice([1, 1, 2, 3, 3, 5])}, stride={rng.choice([1, 1, 2, 3])}, padding={rng.choice([0, 1, 1, 2])}"
    name = f"Conv{rank}d"
    if rng.random() < 0.2:
        name = f"ConvTranspose{rank}d"
    else:
        options += f", dilation={rng.choice([1, 1, 1, 2])}, padding_mode={rng.choice(['zeros'] * 8 + ['reflect', 'circular'])!r}"
    layer = b.member(f"seeded({rng.randrange(10**6)}, lambda: nn.{name}({options}, groups={groups}, bias={rng.random() < 0.6}))")
    y = b.let(f"{layer}({x})")
    if rng.random() < 0.5:
        norm = b.member(f"seeded({rng.randrange(10**6)}, lambda: nn.BatchNorm{rank}d({cout}, eps={rng.choice([1e-5, 1e-3])}, affine={rng.random() < 0.8}))")
        z = b.let(f"{norm}({y})")
        if rng.random() < 0.15:
            b.let(f"{y} + {z}")
        y = z
    activation(b, y)


@rule(3)
def pool(b):
    rng = b.rng
    rank = rng.choice([1, 2, 2, 2, 3])
    x = image(b, rank)
    k = rng.choice([1, 2, 2, 3])
    b.let(rng.choice([f"F.max_pool{rank}d({x}, {k}, {rng.choice([1, 2])}, {k // 2}, ceil_mode={rng.random() < 0.4})", f"F.max_pool{rank}d({x}, {k})",
                      f"F.avg_pool{rank}d({x}, {k}, {rng.choice([1, 2])}, {k // 2}, ceil_mode={rng.random() < 0.4}, count_include_pad={rng.random() < 0.5})",
                      f"F.adaptive_avg_pool{rank}d({x}, {rng.choice([1, 1, 2, 3])})", f"F.adaptive_max_pool{rank}d({x}, {rng.choice([1, 2, 3])})",
                      f"F.lp_pool1d({x}, 2.0, {k})" if rank == 1 else f"F.avg_pool{rank}d({x}, {k})"]))


@rule(2)
def upsample(b):
    rng = b.rng
    rank = rng.choice([1, 2, 2, 2, 3])
    x = image(b, rank)
    smooth = {1: "linear", 2: rng.choice(["bilinear", "bicubic"]), 3: "trilinear"}[rank]
    size = f"size={[rng.choice([1, 2, 4, 7]) for _ in range(rank)]}" if rng.random() < 0.5 else f"scale_factor={[rng.choice([0.5, 1.5, 2.0]) for _ in range(rank)]}"
    b.let(rng.choice([f"F.interpolate({x}, {size}, mode='nearest')", f"F.interpolate({x}, {size}, mode='{smooth}', align_corners={rng.random() < 0.5})",
                      f"F.interpolate({x}, {size}, mode='area')", f"F.pixel_shuffle({x}, 2)", f"F.pixel_unshuffle({x}, 2)", f"F.channel_shuffle({x}, 2)",
                      f"F.pad({x}, {[1] * (2 * rank)}, mode='replicate')", f"F.pad({x}, {[0, 2] * rank}, mode='constant', value=0.5)"]))


@rule(4)
def normalize(b):
    rng = b.rng
    x = b.float_tensor(lambda t: t.dim() >= 2 and t.dtype == torch.float32)
    shape = b.value(x).shape
    c = shape[1]
    seed = rng.randrange(10**6)
    kinds = [f"nn.LayerNorm({shape[-1]}, eps={rng.choice([1e-5, 1e-2])}, elementwise_affine={rng.random() < 0.8})", f"nn.LayerNorm({list(shape[-2:])})"]
    if c:
        kinds += [f"nn.GroupNorm({rng.choice([g for g in (1, 2, c) if c % g == 0])}, {c})"]
        if 2 <= len(shape) <= 5:
            rank = {2: "1d", 3: "1d", 4: "2d", 5: "3d"}[len(shape)]
            kinds += [f"nn.BatchNorm{rank}({c})", f"nn.BatchNorm{rank}({c}, affine=False)"]
            if len(shape) > 2:
                kinds += [f"nn.InstanceNorm{rank}({c}, affine=True)"]
    activation(b, b.let(f"{b.member(f'seeded({seed}, lambda: {rng.choice(kinds)})')}({x})"))


@rule(2)
def recurrent(b):
    rng = b.rng
    h, i = rng.choice([1, 3, 4, 8]), rng.choice([1, 2, 4, 5])
    batch, time = rng.choice([1, 2, 3]), rng.choice([1, 2, 4])
    seed = rng.randrange(10**6)
    if rng.random() < 0.45:
        x, state = b.some_float((batch, i)), b.some_float((batch, h))
        kind = rng.choice(["RNNCell", "GRUCell", "LSTMCell"])
        cell = b.member(f"seeded({seed}, lambda: nn.{kind}({i}, {h}, bias={rng.random() < 0.8}" + (", nonlinearity='relu'))" if kind == "RNNCell" and rng.random() < 0.3 else "))"))
        if kind == "LSTMCell":
            b.let(f"{cell}({x}, ({state}, {b.some_float((batch, h))}))[{rng.choice([0, 1])}]")
        else:
            b.let(f"{cell}({x}, {state})")
        return
    x = b.some_float((batch, time, i))
    kind = rng.choice(["RNN", "GRU", "LSTM"])
    layer = b.member(f"seeded({seed}, lambda: nn.{kind}({i}, {h}, num_layers={rng.choice([1, 1, 2])}, batch_first={rng.random() < 0.5}, bidirectional={rng.random() < 0.3}))")
    if rng.random() < 0.7 or kind == "LSTM":
        b.let(f"{layer}({x})[0]")
    else:
        b.let(f"{layer}({x})[1]")



@rule(1.5)
def embedding(b):
    rng = b.rng
    count, width = rng.choice([3, 5]), rng.choice([1, 2, 4, 8])
    index = b.fresh(b.shape(1, 2), rng.choice([torch.int64, torch.int64, torch.int32]), 0, count - 1)
    if rng.random() < 0.25:
        b.let(f"F.embedding_bag({index}.flatten(), {b.some_float((count, width))}, torch.tensor([0]).to({index}.dtype), mode={rng.choice(['sum', 'mean', 'max'])!r})")
        return
    layer = b.member(f"seeded({rng.randrange(10**6)}, lambda: nn.Embedding({count}, {width}, padding_idx={rng.choice([None, 0])}))")
    b.let(f"{layer}({index})")
