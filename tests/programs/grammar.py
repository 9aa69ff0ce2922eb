"""Rules of the programs: each adds statements to a Builder, or raises Skip."""

from __future__ import annotations

import re

import torch

from tests.programs import templates
from tests.programs.builder import Builder, Skip
from tests.programs.program import Argument, Method, Statement

RULES, WEIGHTS = [], []
DTYPES = ["torch.float32"] * 3 + ["torch.float64", "torch.float16", "torch.bfloat16", "torch.int64", "torch.int32", "torch.bool", "torch.uint8"]


def rule(weight: float):
    def add(function):
        RULES.append(function)
        WEIGHTS.append(weight)
        return function

    return add


def expands(small, large) -> bool:
    return len(small) <= len(large) and all(a == b or a == 1 for a, b in zip(reversed(small), reversed(large)))


def number(b: Builder) -> str:
    return str(b.rng.choice([0.5, 1.0, -1.0, 2.0, -0.25, 0.1, 3.0, 0.0, round(b.rng.uniform(-3, 3), 3)]))


class Filler:
    """Puts operands into a template."""

    def __init__(self, b: Builder):
        self.b = b
        self.first = None

    def shape(self):
        return tuple(self.b.value(self.first).shape)

    def dim(self) -> int:
        rank = max(1, self.b.value(self.first).dim())
        return self.b.rng.randrange(-rank, rank)

    def operand(self, letter: str) -> str:
        b, rng = self.b, self.b.rng
        if letter == "f":
            name = b.float_tensor()
        elif letter == "x":
            name = b.pick()
        elif letter == "w":
            name = b.pick()
        elif letter == "i":
            name = self.or_fresh(lambda t: t.dtype in (torch.int64, torch.int32), torch.int64, -4, 4)
        elif letter == "b":
            name = self.or_fresh(lambda t: t.dtype == torch.bool, torch.bool, -1, 1)
        elif letter == "m":
            return self.mask()
        elif letter == "g":
            shape = self.shape()
            if rng.random() < 0.15:
                return b.fresh(tuple(s if rng.random() < 0.6 else 1 for s in shape[rng.randint(0, len(shape)):]))
            return b.pick("Tensor", lambda t: expands(t.shape, shape) or (expands(shape, t.shape) and rng.random() < 0.5))
        else:
            shape = self.shape()
            return b.pick("Tensor", lambda t: tuple(t.shape) == shape)
        self.first = self.first or name
        return name

    def or_fresh(self, fits, dtype, low, high) -> str:
        try:
            return self.b.pick("Tensor", fits)
        except Skip:
            return self.b.fresh(self.b.shape(1, 3), dtype, low, high)

    def mask(self) -> str:
        shape = self.shape()
        try:
            return self.b.pick("Tensor", lambda t: t.dtype == torch.bool and expands(t.shape, shape))
        except Skip:
            if self.b.rng.random() < 0.5:
                return self.b.fresh(shape[self.b.rng.randint(0, len(shape)):], torch.bool, -1, 1)
            return f"({self.first} > {number(self.b)})"

    def piece(self, letter: str) -> str:
        b, rng = self.b, self.b.rng
        if letter in "fxwibmge":
            return self.operand(letter)
        if letter == "d":
            return str(self.dim())
        if letter == "D":
            return str(sorted({self.dim() % max(1, len(self.shape())) for _ in range(rng.randint(1, 2))}))
        if letter == "P":
            order = list(range(len(self.shape())))
            rng.shuffle(order)
            return str(order)
        if letter == "S":
            return f"{self.first}.size({self.dim()})"
        if letter == "n":
            return str(rng.choice([1, 2, 2, 3, 0, -1]))
        if letter == "s":
            ints = [n for n, t in b.types.items() if t == "float"]
            return rng.choice(ints) if ints and rng.random() < 0.15 else number(b)
        if letter == "p":
            return str(rng.choice([0.5, 1.0, 2.0, 1e-3, 3.0]))
        if letter == "t":
            return str(rng.random() < 0.5)
        if letter == "r":
            return repr(rng.choice(["mean", "sum", "none"]))
        return rng.choice(DTYPES)

    def __call__(self, template: str) -> str:
        # Operands first, so that dimensions know the shape.
        names = iter([self.operand(m) if m in "fxwib" else None for m in re.findall(r"\{(\w)\}", template)])
        kept = {}

        def put(match):
            name, letter = next(names), match.group(1)
            if name is None:
                return self.piece(letter)
            # "{x}" twice is mostly the same tensor.
            if letter in kept and self.b.rng.random() < 0.8:
                return kept[letter]
            kept[letter] = name
            return name

        return re.sub(r"\{(\w)\}", put, template)


def fill(b: Builder, template: str) -> str:
    return Filler(b)(template)


@rule(20)
def pointwise(b):
    b.let(fill(b, b.rng.choice(templates.POINTWISE)))


@rule(7)
def reduce(b):
    b.let(fill(b, b.rng.choice(templates.REDUCE)))


@rule(11)
def view(b):
    b.let(fill(b, b.rng.choice(templates.VIEWS)))


@rule(9)
def write(b):
    b.do(fill(b, b.rng.choice(templates.WRITES)))


@rule(2)
def loss(b):
    b.let(fill(b, b.rng.choice(templates.LOSSES)))


@rule(2)
def new_tensor(b):
    kind = b.rng.choice([torch.float32, torch.float32, torch.int64, torch.int32, torch.bool, torch.float64, torch.float16, torch.bfloat16, torch.uint8])
    low = 0 if kind == torch.uint8 else -3
    b.fresh(None, kind, low, 3)


@rule(2)
def again(b):
    """An expression that stands there already."""
    lines = [s for s in b.block if s.body is None and re.match(r"v\d+(: [^=]*)? = ", s.text)]
    if not lines:
        raise Skip
    line = b.rng.choice(lines).text
    target = re.match(r"v\d+", line).group()
    b.let(line.split(" = ", 1)[1], b.types.get(target) or "Tensor")


# ---- products, layers


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


def activation(b, y):
    """What epilogues are made of, or nearly."""
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
    return b.fresh((b.rng.choice([1, 2, 2, 3]), channels or b.rng.choice([1, 2, 3, 4, 6, 8, 16]), *[b.rng.choice([1, 3, 5, 7, 8, 12]) for _ in range(rank)]))


@rule(8)
def convolution(b):
    rng = b.rng
    rank = rng.choice([1, 2, 2, 2, 2, 3])
    x = image(b, rank)
    cin = b.value(x).shape[1]
    if not cin:  # PyTorch gives results of other shapes then
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


@rule(3)
def attention(b):
    """Written with plain operators; now and then not quite what it ought to be."""
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
    """What fuse_patterns and peepholes look for, and what only looks like it, with parts that others read or write."""
    rng = b.rng
    x = b.float_tensor(lambda t: t.dim() >= 1)
    shape = b.value(x).shape
    template = rng.choice(PATTERNS)
    y = b.pick("Tensor", lambda t: t.shape == shape and t.is_floating_point())
    text = template.replace("{x}", x).replace("{y}", y)
    for hole in ("{w}", "{w2}"):
        if hole in text:
            text = text.replace(hole, b.some_float(shape[-1:]))
    # Parts in variables of their own, of which some are used again.
    for _ in range(rng.choice([0, 0, 1, 2])):
        inner = re.findall(r"(?:torch|F)\.\w+\([^()]*\)", text)
        if not inner:
            break
        part = rng.choice(inner)
        name = b.let(part)
        text = text.replace(part, name)
        if rng.random() < 0.2:
            b.do(f"{rng.choice([name, x])}.add_(1)")
    y = b.let(text)
    if rng.random() < 0.15:
        b.do(f"{x}.mul_(0.5)")


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


# ---- numbers, lists, dicts, tuples


@rule(5)
def numbers(b):
    rng = b.rng
    x = b.pick()
    ints = [n for n, t in b.types.items() if t == "int"] or ["2"]
    floats = [n for n, t in b.types.items() if t == "float"] or ["0.5"]
    i, j, f = rng.choice(ints), rng.choice(ints), rng.choice(floats)
    kind = rng.choice(["int"] * 3 + ["float"] * 2 + ["bool"])
    texts = {"int": [f"{x}.size(0)", f"{x}.dim()", f"{x}.numel()", f"{x}.size(-1)", f"{i} + {j}", f"{i} * 2 - {j}", f"{i} // 2", f"{i} % 3", f"max({i}, {j})",
                     f"int({x}.sum())", f"{x}.shape[0] + 0", f"len({x})", f"{x}.stride(0)", f"abs(-{i})", f"-{i}", f"{i} if {i} > {j} else {j}", f"{x}.storage_offset()"],
             "float": [f"float({x}.sum())", f"{f} * 2.0", f"float({i})", f"{i} / 4", f"{f} + {i}", f"math.sqrt(abs({f}))", f"float({x}.mean())", f"{x}.max().item() * 1.0"],
             "bool": [f"{x}.dim() > 2", f"bool({x}.sum() > 0)", f"{i} == {j}", f"{x}.is_contiguous()", f"{x}.is_floating_point()", f"not {i} > 2", f"{i} > 1 and {j} < 4",
                      f"torch.equal({x}, {b.pick()})", f"{x}.is_contiguous(memory_format=torch.channels_last)"]}
    name = b.let(rng.choice(texts[kind]), kind)
    if kind == "int" and abs(b.value(name)) > 1 << 20:
        raise Skip


@rule(5)
def lists(b):
    rng = b.rng
    known = [n for n, t in b.types.items() if t == "List[Tensor]"]
    if not known or rng.random() < 0.3:
        x = b.pick()
        b.let(rng.choice([f"[{x}, {b.pick()}]", f"[{x}]", f"[{x} * float(k) for k in range(3)]", f"list(torch.unbind({x}))", f"[t for t in {x}.split(1)]",
                          f"torch.chunk({x}, 2)" if rng.random() < 0.2 else f"[{x}, {x}, {b.pick()}]"]), "List[Tensor]")
        return
    name = rng.choice(known)
    style = rng.randrange(10)
    if style < 3:
        b.let(rng.choice([f"{name}[0]", f"{name}[-1]", f"torch.cat({name})", f"torch.stack({name})", f"torch.cat({name}, -1)"]))
    elif style < 6:
        b.do(rng.choice([f"{name}.append({b.pick()})", f"{name}[0] = {b.pick()}", f"{name}.insert(0, {b.pick()})", f"{name}.reverse()", f"{name}.extend({name})", f"{name} += [{b.pick()}]",
                         f"{name}.clear()", f"{name}[0].add_(1)", f"{name}[-1].mul_(2)"]))
    elif style == 6:
        b.let(f"{name}.pop()")
    elif style == 7:
        b.let(f"len({name})", "int")
    elif style == 8:
        b.let(rng.choice([f"{name}[1:]", f"{name}[::-1]", f"{name} + {name}", f"[t + 1 for t in {name}]", f"{name}.copy()", f"{name} * 2"]), "List[Tensor]")
    else:
        b.let(f"{name}", "List[Tensor]")


@rule(2)
def number_lists(b):
    rng = b.rng
    kind = rng.choice(["int", "float"])
    known = [n for n, t in b.types.items() if t == f"List[{kind}]"]
    x = b.pick()
    if not known or rng.random() < 0.3:
        b.let(rng.choice([f"{x}.size()" if False else f"[{x}.size(0), 1, 3]", f"[k * 2 for k in range({x}.dim())]", f"list({x}.shape)"]) if kind == "int"
              else rng.choice(["[0.5, -1.0, 2.0]", f"[float({x}.sum()), 1.0]"]), f"List[{kind}]")
        return
    name = rng.choice(known)
    style = rng.randrange(4)
    if style == 0:
        b.do(rng.choice([f"{name}.sort()", f"{name}.sort(reverse=True)", f"{name}.append({name}[0])", f"{name}.reverse()", f"{name}[0] = {name}[-1]", f"{name}.insert(1, {name}[-1])", f"{name}.pop()"]))
    elif style == 1:
        b.let(rng.choice([f"{name}[0]", f"max({name})", f"min({name})", f"sum({name})", f"{name}[-1]"]), kind)
    elif style == 2:
        b.let(rng.choice([f"sorted({name})", f"{name}[1:]", f"{name} + {name}", f"{name}[::-1]", f"{name}.copy()"]), f"List[{kind}]")
    else:
        b.let(f"torch.tensor({name})")


@rule(3)
def dicts(b):
    rng = b.rng
    kind = rng.choice(["Dict[str, Tensor]", "Dict[int, Tensor]"])
    keys = ['"a"', '"b"', '"c"'] if "str" in kind else ["0", "1", "5"]
    known = [n for n, t in b.types.items() if t == kind]
    if not known or rng.random() < 0.25:
        b.let(f"{{{keys[0]}: {b.pick()}, {keys[1]}: {b.pick()}}}", kind)
        return
    name, key = rng.choice(known), rng.choice(keys)
    style = rng.randrange(6)
    if style == 0:
        b.let(rng.choice([f"{name}[{key}]", f"{name}.pop({key})", f"{name}.setdefault({key}, {b.pick()})", f"{name}.get({key}, {b.pick()})"]))
    elif style == 1:
        b.do(rng.choice([f"{name}[{key}] = {b.pick()}", f"{name}.update({{{key}: {b.pick()}}})", f"del {name}[{key}]", f"{name}[{key}].add_(1)", f"{name}.clear()"]))
    elif style == 2:
        b.let(rng.choice([f"len({name})"]), "int")
    elif style == 3:
        b.let(f"{key} in {name}", "bool")
    elif style == 4:
        b.let(f"list({name}.values())", "List[Tensor]")
    else:
        b.let(f"{name}.copy()", kind)


@rule(2)
def tuples(b):
    known = [n for n, t in b.types.items() if t == "Tuple[Tensor, int]"]
    if not known or b.rng.random() < 0.4:
        x = b.pick()
        b.let(f"({x}, {x}.dim())", "Tuple[Tensor, int]")
    elif b.rng.random() < 0.5:
        b.let(f"{b.rng.choice(known)}[0]")
    else:
        b.let(f"{b.rng.choice(known)}[1]", "int")


@rule(2)
def state(b):
    """Attributes that calls change."""
    rng = b.rng
    style = rng.randrange(5)
    if style == 0:
        counter = b.member("0", "c", "int")
        b.do(f"{counter} += 1")
        b.let(f"{counter} * 2", "int")
    elif style == 1:
        x = b.float_tensor(lambda t: t.dtype == torch.float32)
        buffer = b.member(f"buffer filled({rng.randrange(10**6)}, {tuple(b.value(x).shape)})", "p")
        b.do(rng.choice([f"{buffer}.mul_(0.9).add_({x}, alpha=0.1)", f"{buffer}.copy_({x})", f"{buffer} = {buffer} * 0.5 + {x}", f"{buffer}.add_({x})", f"{buffer}[0] = {x}[0]"]))
        b.let(rng.choice([f"{buffer} + 1", f"{buffer}.clone()", f"{buffer}"]))
    elif style == 2:
        history = b.member("torch.jit.annotate(List[float], [])", "h", "List[float]")
        b.do(f"{history}.append(float({b.pick()}.sum()))")
        b.let(f"len({history})", "int")
    elif style == 3:
        cache = b.member("torch.jit.annotate(Dict[str, Tensor], {})", "h", "Dict[str, Tensor]")
        x = b.pick()
        b.do(f'{cache}["last"] = {x}.clone()')
        b.let(f'{cache}["last"]')
    else:
        x = b.float_tensor(lambda t: t.dim() in (2, 3, 4) and t.shape[1] > 0 and t.numel() > t.shape[1] and t.dtype == torch.float32)
        value = b.value(x)
        layer = b.member(f"seeded({rng.randrange(10**6)}, lambda: nn.BatchNorm{ {2: '1d', 3: '1d', 4: '2d'}[value.dim()] }({value.shape[1]}))")
        b.let(f"F.batch_norm({x}, {layer}.running_mean, {layer}.running_var, None, None, True, 0.3)")


@rule(1.5)
def optional(b):
    x = b.pick()
    name = b.let(b.rng.choice([f"{x}", "None"]), "Optional[Tensor]")
    b.compound(Statement(f"if {name} is None:", [Statement(f"{name} = {b.pick()}")]))
    b.let(f"torch.jit._unwrap_optional({name})")


# ---- control flow


def condition(b) -> str:
    rng = b.rng
    bools = [n for n, t in b.types.items() if t == "bool"]
    if bools and rng.random() < 0.3:
        return rng.choice(bools)
    x = b.pick()
    return rng.choice([f"{x}.dim() > {rng.choice([1, 2, 3])}", f"{x}.size(0) > 2", f"bool({x}.sum() > {rng.choice([0, 1])})", f"{x}.numel() % 2 == 0", f"{x}.size(-1) == 3",
                       f"{x}.is_floating_point()", f"{x}.dtype == torch.float32", "self.training", f"bool(({x} > 0).any())"])


@rule(4)
def branch(b):
    if b.depth >= 2:
        raise Skip
    text = condition(b)
    body = b.nested(b.rng.randint(1, 4))
    orelse = b.nested(b.rng.randint(1, 3)) if b.rng.random() < 0.5 else None
    if not body:
        raise Skip
    b.compound(Statement(f"if {text}:", body, orelse))


@rule(3)
def loop(b):
    if b.depth >= 2:
        raise Skip
    rng = b.rng
    x = b.pick()
    index = b.new_name("k")
    style = rng.randrange(4)
    lists_ = [n for n, t in b.types.items() if t == "List[Tensor]"]
    kept = dict(b.types)
    if style == 0 and lists_:
        head, kind, first = f"for {index} in {rng.choice(lists_)}.copy():", "Tensor", x
    elif style == 1:
        counter = b.let("0", "int")
        head, kind, first = f"while {counter} < {rng.choice(['2', '3', f'{x}.dim()'])}:", "", ""
        b.frozen.add(counter)
    else:
        head, kind, first = f"for {index} in range({rng.choice(['2', '3', '0', f'{x}.size(0)', f'{x}.dim()'])}):", "int", "1"
    if kind:
        b.names[index] = b.value(first)
        b.types[index] = kind
        b.frozen.add(index)
    body = b.nested(rng.randint(1, 3))
    if kind:
        b.types.pop(index, None)
    if not body:
        raise Skip
    if head.startswith("while"):
        body.append(Statement(f"{counter} += 1"))
    elif rng.random() < 0.25:
        body.insert(rng.randint(0, len(body)), Statement(f"if {condition_of_loop(b, index, kind)}:", [Statement(rng.choice(["break", "continue"]))]))
    b.compound(Statement(head, body))
    if kind:
        b.types.pop(index, None)


def condition_of_loop(b, index: str, kind: str) -> str:
    return f"{index} == 1" if kind == "int" else f"{index}.dim() > 1"


@rule(2.5)
def helper(b):
    """A method or a function of its own, called twice."""
    if b.depth:
        raise Skip
    rng = b.rng
    x = b.pick()
    name, argument = b.new_name("f"), b.new_name("v")
    kept, outer, is_open = b.snapshot(), b.block, b.forward_open
    b.block, b.forward_open = [], False
    is_method = rng.random() < 0.5
    b.types = {n: t for n, t in b.types.items() if is_method and n.startswith("self.")}
    b.names[argument] = b.value(x)
    b.types[argument] = "Tensor"
    b.depth += 2
    members = len(b.program.members)
    try:
        b.statements(rng.randint(1, 4))
        body = b.block
        result = b.pick()
    finally:
        b.depth -= 2
        b.block, b.forward_open = outer, is_open
        b.restore(kept)
    if len(b.program.members) > members and not is_method:
        del b.program.members[members:]
        raise Skip
    for member, text, _ in b.program.members[members:]:
        value = eval(text[7:] if text.startswith("buffer ") else text, b.names)
        b.module.register_buffer(member, value) if text.startswith("buffer ") else setattr(b.module, member, value)
    if rng.random() < 0.3:
        body.insert(rng.randint(0, len(body)), Statement(f"if {argument}.dim() > {rng.choice([1, 2])}:", [Statement(f"return {argument}")]))
    method = Method(name, [(argument, "Tensor")], body, [(result, "Tensor")])
    if is_method:
        lines = method.lines("", True)[1:]
        b.execute("\n".join(lines))
        setattr(b.module, name, b.names.pop(name).__get__(b.module))
        b.program.methods.append(method)
    else:
        text = "\n".join(method.lines("", False)) + "\n"
        b.execute(text)
        b.program.pieces.append(text)
    call = ("self." if is_method else "") + name
    b.let(f"{call}({x})")
    if rng.random() < 0.5:
        b.let(f"{call}({b.pick()})")


# ---- the end


RESULT_TYPES = ("Tensor", "int", "float", "bool", "List[Tensor]", "List[int]", "List[float]", "Dict[str, Tensor]", "Dict[int, Tensor]", "Tuple[Tensor, int]")


def finish(b: Builder):
    """Results, an early return, and the calls."""
    rng, program = b.rng, b.program
    names = [(n, t) for n, t in b.types.items() if t in RESULT_TYPES]
    made = [pair for pair in names if pair[0][0] == "v"] or names
    results = rng.sample(made[-8:], min(len(made[-8:]), rng.randint(1, 5)))
    forward = Method("forward", [(n, a.type) for n, a in b.inputs], b.block, results)
    program.methods.append(forward)
    program.is_traced = rng.random() < 0.08 and not program.pieces
    program.is_frozen = not program.is_traced and rng.random() < 0.08
    calls = rng.choice([1, 2, 2, 3])
    program.calls = [("forward", [a for _, a in b.inputs])]
    for _ in range(calls - 1):
        program.calls.append(("forward", [changed(b, a) for _, a in b.inputs] if rng.random() < 0.5 else [Argument(**{**a.__dict__, "seed": a.seed + 1}) for _, a in b.inputs]))
    if rng.random() < 0.4 and len(program.calls) > 1:
        program.calls.append(program.calls[0])


def changed(b: Builder, argument: Argument) -> Argument:
    """Another size of the first dimension wherever it is that of the program."""
    old = b.sizes[0]
    new = (old + 1) if old < 40 else old - 3
    shape = tuple(new if size == old and i == 0 else size for i, size in enumerate(argument.shape))
    return Argument(**{**argument.__dict__, "shape": shape, "seed": argument.seed + 7})
