"""A function for each family that draws one call: (operator, arguments, options)."""

from __future__ import annotations

import torch

from tests.random_calls.convolutions import conv, conv_backward, epilogues
from tests.random_calls.draw import EVERY, FLOATS, REALS, Draw

def has_taps(x, kernel, stride, padding, dilation, out) -> bool:
    """Whether every window contains a pixel of the image; otherwise PyTorch 1.13's backward writes out of bounds."""
    return all(any(0 <= o * s - p + i * w < size for i in range(k))
               for size, k, s, p, w, outs in zip(x.shape[2:], kernel, stride, padding, dilation, out.shape[2:])
               for o in range(outs))


def pool(d: Draw):
    spatial = d.pick(1, 2, 2, 3)
    dtype = d.pick(*REALS)
    kind = d.pick("max", "max", "avg", "adaptive_avg", "adaptive_max")
    batch = [] if d.chance(0.1) else [d.pick(1, 2)]
    x = d.tensor(batch + [d.pick(1, 2, 3, 8, 16, 17)] + [d.size(1, 17 if spatial < 3 else 7) for _ in range(spatial)],
                 dtype, edges="max" in kind and d.chance(0.2))
    if kind.startswith("adaptive"):
        return f"aten::{kind}_pool{spatial}d", [x, d.numbers(spatial, 0 if d.chance(0.1) else 1, 9)], {}
    kernel = d.number_list(spatial, 1, 5)
    padding = [d.rng.randint(0, k // 2) for k in kernel]
    stride = [] if d.chance(0.3) else d.number_list(spatial, 1, d.pick(3, 9))
    ceil = d.chance(0.4)
    if kind == "max":
        name = d.pick("aten::max_pool{}d", "aten::max_pool{}d_with_indices").format(spatial)
        # Without gradients PyTorch's max_pool1d returns an empty result if there is no complete window; otherwise it
        # refuses.
        dilation = d.number_list(spatial, 1, 3 if spatial > 1 or x.shape[-1] > 3 * kernel[0] else 1)
        return name, [x, kernel, stride, padding, dilation, ceil], {}
    rest = [d.chance(0.5)] + ([d.pick(None, 3, -2)] if spatial > 1 else [])
    return f"aten::avg_pool{spatial}d", [x, kernel, stride, padding, ceil, *rest], {}


def pool_backward(d: Draw):
    spatial = d.pick(2, 2, 3)
    dtype = d.pick(*REALS)
    x = d.tensor([d.pick(1, 2), d.pick(1, 3, 16)] + [d.size(1, 11 if spatial < 3 else 6) for _ in range(spatial)], dtype)
    kernel = d.numbers(spatial, 1, 4)
    padding = [d.rng.randint(0, k // 2) for k in kernel]
    stride = d.numbers(spatial, 1, 4)
    ceil = d.chance(0.4)
    if d.chance(0.5):
        rest = [kernel, stride, padding, d.numbers(spatial, 1, 2), ceil]
        y, indices = getattr(torch.ops.aten, f"max_pool{spatial}d_with_indices")(x, *rest)
        if not has_taps(x, *rest[:4], y):
            raise ValueError("an empty window")
        g = d.tensor(list(y.shape), dtype)
        return f"aten::max_pool{spatial}d_with_indices_backward", [g, x, *rest, indices], {}
    rest = [kernel, stride, padding, ceil, d.chance(0.5), d.pick(None, 3)]
    y = getattr(torch.ops.aten, f"avg_pool{spatial}d")(x, *rest)
    return f"aten::avg_pool{spatial}d_backward", [d.tensor(list(y.shape), dtype), x, *rest], {}


def upsample(d: Draw):
    spatial = d.pick(1, 2, 2, 3)
    dtype = d.pick(*REALS)
    x = d.tensor([d.pick(1, 2), d.pick(1, 3, 8, 17)] + [d.size(1, 9 if spatial < 3 else 5) for _ in range(spatial)], dtype)
    smooth = {1: ["linear"], 2: ["bilinear", "bicubic"], 3: ["trilinear"]}[spatial]
    kind = d.pick("nearest", "_nearest-exact", *smooth)
    sizes, scales = None, None
    if d.chance(0.5):
        sizes = d.numbers(spatial, 1, 13)
    else:
        scales = [d.pick(0.5, 0.7, 1.0, 1.5, 2.0, 2.3, 3.0) for _ in range(spatial)]
        # PyTorch interprets these sizes as a scale of 1 or 2 in channels_last, and uses the scale itself otherwise.
        if kind == "nearest" and any(s not in (1.0, 2.0) and int(size * s) in (size, 2 * size)
                                     for s, size in zip(scales, x.shape[2:])):
            raise ValueError("two answers")
    align = [] if "nearest" in kind else [d.chance(0.5)]
    name = f"_upsample_nearest_exact{spatial}d" if kind == "_nearest-exact" else f"upsample_{kind}{spatial}d"
    return f"aten::{name}.vec", [x, sizes, *align, scales], {}


def pad(d: Draw):
    spatial = d.pick(1, 2, 3)
    kind = d.pick("constant", "reflection", "replication")
    dtype = d.pick(*(EVERY if kind == "constant" else REALS))
    x = d.tensor([d.pick(1, 2), d.pick(1, 3)] + [d.size(1, 7) for _ in range(spatial)], dtype)
    if kind == "constant":
        count = d.rng.randint(1, x.dim())
        return "aten::constant_pad_nd", [x, d.numbers(2 * count, -2, 4), d.pick(0, 1, 2.5)], {}
    return f"aten::{kind}_pad{spatial}d", [x, d.numbers(2 * spatial, -1, 4)], {}


def patches(d: Draw):
    kernel, dilation, padding, stride = d.numbers(2, 1, 4), d.numbers(2, 1, 3), d.numbers(2, 0, 3), d.numbers(2, 1, 4)
    dtype = d.pick(*REALS)
    image = [d.size(1, 11), d.size(1, 11)]
    if d.chance(0.5):
        batch = [] if d.chance(0.2) else [d.pick(1, 2)]
        return "aten::im2col", [d.tensor(batch + [d.pick(1, 3)] + image, dtype), kernel, dilation, padding, stride], {}
    if d.chance(0.3):
        x = d.tensor(d.sizes(d.pick(1, 2, 3), 1), d.pick(*EVERY))
        at = d.axis(x.dim())
        return "aten::unfold", [x, at, d.rng.randint(0, x.shape[at]), d.rng.randint(1, 4)], {}
    blocks = [(i + 2 * p - w * (k - 1) - 1) // s + 1 for i, p, w, k, s in zip(image, padding, dilation, kernel, stride)]
    if min(blocks) <= 0:
        raise ValueError("no blocks")
    x = d.tensor([d.pick(1, 2), d.pick(1, 3) * kernel[0] * kernel[1], blocks[0] * blocks[1]], dtype)
    return "aten::col2im", [x, image, kernel, dilation, padding, stride], {}


UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac gelu hardsigmoid hardswish isfinite isinf isnan
log log10 log1p log2 log_sigmoid logical_not mish neg reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh
softplus sqrt square tan tanh trunc exp2 signbit deg2rad erfinv asinh acosh atanh sinc celu elu hardtanh leaky_relu
nan_to_num lgamma digamma positive bitwise_not""".split()


def unary(d: Draw):
    dtype = d.pick(*EVERY)
    x = d.tensor(d.sizes(d.pick(0, 1, 2, 3, 4)), dtype, low=-6, high=6, edges=d.chance(0.5))
    return "aten::" + d.pick(*UNARY), [x], {"elementwise": True, "in_graph": d.chance(0.5)}


BINARY = """add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum eq.Tensor ne.Tensor lt.Tensor le.Tensor gt.Tensor
ge.Tensor atan2 remainder.Tensor fmod.Tensor pow.Tensor_Tensor logical_and logical_or logical_xor floor_divide fmax fmin
hypot xlogy.Tensor copysign.Tensor bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor rsub.Tensor heaviside
logaddexp squared_difference div.Tensor_mode""".split()


def binary(d: Draw):
    sizes = d.sizes(d.pick(0, 1, 2, 3, 4))
    first, second = d.broadcast_sizes(sizes), d.broadcast_sizes(sizes)
    a = d.tensor(first, d.pick(*EVERY), edges=d.chance(0.2))
    b = d.tensor(second, a.dtype if d.chance(0.6) else d.pick(*EVERY), edges=d.chance(0.2))
    if d.chance(0.2):
        op = d.pick("add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "pow.Tensor_Scalar", "eq.Scalar", "lt.Scalar",
                    "fmod.Scalar", "remainder.Scalar", "rsub.Scalar")
        number = d.pick(0, 1, 2, 3, -2, 0.5, -1.5, 3.0)
        # PyTorch turns -2 into 254.
        return "aten::" + op, [a, abs(number) if a.dtype == torch.uint8 else number], {"elementwise": True}
    op = d.pick(*BINARY)
    if 0 in sizes and op in ("floor_divide", "remainder.Tensor", "fmod.Tensor", "div.Tensor_mode"):
        raise ValueError("whether a divisor is zero is asked, or not, where there is nothing to divide")
    rest = [d.pick("trunc", "floor")] if op == "div.Tensor_mode" else []
    return "aten::" + op, [a, b, *rest], {"elementwise": True}


def select(d: Draw):
    sizes = d.sizes(d.pick(0, 1, 2, 3, 4))
    dtype = d.pick(*EVERY)
    a, b, c = (d.tensor(d.broadcast_sizes(sizes), dtype) for _ in range(3))
    kind = d.pick("where", "clamp", "clamp_tensor", "lerp", "addcmul", "addcdiv", "masked_fill", "threshold", "tril", "triu")
    if kind == "where":
        return "aten::where.self", [d.tensor(d.broadcast_sizes(sizes), torch.bool), a, b], {}
    if kind == "clamp":
        low = d.pick(None, 0 if dtype == torch.uint8 else -1, 0.5)  # PyTorch turns -1 into 255
        return "aten::clamp", [a, low, d.pick(None, 2, 1.5)], {"elementwise": True}
    if kind == "clamp_tensor":
        if dtype == torch.bool:
            raise ValueError("bools are not clamped")
        return "aten::clamp.Tensor", [a, d.pick(None, b), d.pick(None, c)], {"elementwise": True}
    if kind == "lerp":
        return "aten::lerp.Tensor", [a, b, c], {"elementwise": True}
    if kind == "masked_fill":
        return "aten::masked_fill.Scalar", [d.tensor(sizes, dtype), d.tensor(d.broadcast_sizes(sizes), torch.bool), 2], {}
    if kind == "threshold":
        return "aten::threshold", [a, 0.5, -2], {}
    if kind in ("tril", "triu"):
        return f"aten::{kind}", [d.tensor(d.sizes(d.pick(2, 3)), dtype), d.rng.randint(-5, 5)], {}
    return f"aten::{kind}", [a, b, c], {"elementwise": True}


def reduce(d: Draw):
    dtype = d.pick(*EVERY)
    x = d.tensor(d.sizes(d.pick(0, 1, 2, 3, 4)), dtype, edges=d.chance(0.2))
    real = x if dtype.is_floating_point else d.tensor(x.shape, d.pick(*FLOATS))
    axes, axis, keep = d.axes(x.dim()), d.axis(x.dim()), d.chance(0.5)
    calls = [("sum.dim_IntList", [x, axes, keep]), ("mean.dim", [real, axes, keep]), ("amax", [x, axes, keep]),
             ("amin", [x, axes, keep]), ("max.dim", [x, axis, keep]), ("min.dim", [x, axis, keep]),
             ("argmax", [x, d.pick(None, axis), keep]), ("argmin", [x, d.pick(None, axis), keep]),
             ("prod.dim_int", [x, axis, keep]), ("std.dim", [real, axes, d.chance(0.5), keep]),
             ("var.dim", [real, axes, d.chance(0.5), keep]), ("var_mean.correction", [real, axes, d.pick(0, 1), keep]),
             ("logsumexp", [x, axes, keep]), ("any.dim", [x, axis, keep]), ("all.dim", [x, axis, keep]),
             ("norm.ScalarOpt_dim", [real, d.pick(None, 1, 2, 3, 0.5), axes, keep]), ("sum", [x]), ("mean", [real]),
             ("max", [x]), ("min", [x]), ("prod", [x]), ("any", [x]), ("all", [x]), ("aminmax", [x]),
             ("linalg_vector_norm", [real, d.pick(0, 1, 2, 3, float("inf")), axes, keep]), ("nansum", [x, axes, keep])]
    name, args = d.pick(*calls)
    return "aten::" + name, args, {}


def scan(d: Draw):
    dtype = d.pick(*EVERY)
    x = d.tensor(d.sizes(d.pick(0, 1, 2, 3)), dtype)
    axis = d.axis(x.dim())
    most = x.shape[axis] if x.dim() else 1
    if not dtype.is_floating_point and d.chance(0.5):
        x = d.tensor(x.shape, torch.float32)
    calls = [("cumsum", [x, axis]), ("cumprod", [x, axis]), ("cummax", [x, axis]), ("cummin", [x, axis]),
             ("logcumsumexp", [x, axis]), ("flip", [x, d.axes(x.dim())]), ("sort", [x, axis, d.chance(0.5)]),
             ("topk", [x, d.rng.randint(0, most), axis, d.chance(0.5), True]),
             ("roll", [x, [d.rng.randint(-9, 9)], [axis]] if x.dim() else [x, [1], []]),
             ("diff", [x, d.rng.randint(0, 3), axis]), ("argsort", [x, axis, False])]
    name, args = d.pick(*calls)
    if name in ("sort", "argsort", "cummax", "cummin") and d.chance(0.5):
        args[0] = d.tensor(x.shape, d.pick(*REALS), edges=d.chance(0.3))
        if "sort" in name:  # the order of equal elements is unspecified
            name, args = name + ".stable", [args[0], True, *args[1:]]
    elif name in ("sort", "topk", "argsort", "cummax", "cummin") and x.numel():
        args[0] = d.laid_out(torch.randperm(x.numel(), generator=d.generator).reshape(x.shape).to(torch.float32))
    return "aten::" + name, args, {}


def norm(d: Draw):
    dtype = d.pick(*REALS)
    sizes = d.sizes(d.pick(2, 3, 4, 5), 1)
    x = d.tensor(sizes, dtype)
    channels = sizes[1]
    vector = lambda: d.tensor([channels], dtype) if d.chance(0.7) else None  # noqa: E731
    kind = d.pick("layer", "layer", "batch", "group", "instance", "softmax", "log_softmax", "response")
    if kind == "layer":
        shape = sizes[d.rng.randint(0, len(sizes) - 1):]
        weight, bias = (d.tensor(shape, dtype) if d.chance(0.7) else None for _ in range(2))
        return "aten::layer_norm", [x, shape, weight, bias, 1e-5, False], {"loose": True}
    if kind == "batch":
        training = d.chance(0.4) and x.numel() > channels
        mean, var = d.tensor([channels], dtype), d.tensor([channels], dtype, low=0.5)
        return "aten::batch_norm", [x, vector(), vector(), mean, var, training, 0.1, 1e-5, False], {"loose": True}
    if kind == "group":
        groups = d.rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
        return "aten::group_norm", [x, groups, vector(), vector(), 1e-5, False], {"loose": True}
    if kind == "instance":
        return "aten::instance_norm", [x, vector(), vector(), None, None, True, 0.1, 1e-5, False], {"loose": True}
    x = d.tensor(d.sizes(d.pick(0, 1, 2, 3, 4)), d.pick(*FLOATS), high=d.pick(3, 30), edges=d.chance(0.1))
    return f"aten::{kind if kind != 'response' else 'softmax'}.int", [x, d.axis(x.dim())], {"loose": True}


def product(d: Draw):
    dtype = d.pick(*REALS, torch.float32, torch.float32, torch.bfloat16, torch.int64)
    size = lambda: d.rng.choice([0, 1, 2, 3, 5, 8, 16, 17, 31, 33, 48, 70]) if d.chance(0.6) else d.size()  # noqa: E731
    m, n, k, b = size(), size(), size(), d.pick(1, 2, 3, 5)
    if d.chance(0.04):  # larger than the panels of a product
        m, n, k = d.pick((m, n, 700), (m, 600, k), (600, n, k), (140, 150, 520))
    t = lambda *sizes: d.tensor(sizes, dtype)  # noqa: E731
    kind = d.pick("linear", "linear", "linear", "mm", "bmm", "matmul", "addmm", "baddbmm", "mv", "dot", "addmv", "addr", "einsum",
                  "bilinear")
    if kind == "linear":
        lead = d.pick([m], [b, m], [], [2, b, m])
        return "aten::linear", [t(*lead, k), t(n, k), t(n) if d.chance(0.6) else None], {"then": epilogues(d)}
    if kind == "mm":
        return "aten::mm", [t(m, k), t(k, n)], {"then": epilogues(d)}
    if kind == "bmm":
        return "aten::bmm", [t(b, m, k), t(b, k, n)], {}
    if kind == "matmul":
        left, right = d.pick([k], [m, k], [b, m, k], [b, 1, m, k]), d.pick([k], [k, n], [b, k, n], [1, b, k, n])
        return "aten::matmul", [t(*left), t(*right)], {}
    beta, alpha = (d.pick(0, 1, 2), d.pick(1, 3)) if dtype == torch.int64 else (d.pick(0, 1, 0.5), d.pick(1, 0, -1.5))
    if kind == "addmm":
        return "aten::addmm", [t(*d.pick([n], [1, n], [m, n], [m, 1], [])), t(m, k), t(k, n), beta, alpha], {"then": epilogues(d)}
    if kind == "baddbmm":
        beta = beta or 1  # PyTorch 1.13 multiplies uninitialized memory by 0
        return "aten::baddbmm", [t(*d.pick([n], [b, m, n], [1, m, n])), t(b, m, k), t(b, k, n), beta, alpha], {}
    if kind == "mv":
        return "aten::mv", [t(m, k), t(k)], {}
    if kind == "dot":
        return "aten::dot", [t(k), t(k)], {}
    if kind == "addmv":
        return "aten::addmv", [t(m), t(m, k), t(k), beta, alpha], {}
    if kind == "addr":
        return "aten::addr", [t(m, n), t(m), t(n), beta, alpha], {}
    if kind == "bilinear":
        m, n, k = 1 + m % 9, 1 + n % 9, 1 + k % 9
        return "aten::bilinear", [t(b, m), t(b, k), t(n, m, k), t(n) if d.chance(0.5) else None], \
            {"loose": dtype == torch.bfloat16}  # whose products are rounded before they are added, as PyTorch's
    equation, shapes = d.pick(("ij,jk->ik", [(m, k), (k, n)]), ("bij,bkj->bik", [(b, m, k), (b, n, k)]),
                          ("i,j->ij", [(m,), (n,)]), ("bij->bji", [(b, m, k)]), ("ii->i", [(m, m)]),
                          ("ijk,ilm,kl->jm", [(2, 3, 4), (2, 5, 3), (4, 5)]), ("...ij,...jk", [(b, m, k), (k, n)]))
    return "aten::einsum", [equation, [t(*shape) for shape in shapes]], {}


def dot_product_attention(query, key, value, mask, dropout, causal, scale):
    """As PyTorch documents it (and, if no key is left, as since 2.5: zeros), in float64."""
    scores = query.double() @ key.double().transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.double()
    weights = scores.softmax(-1).masked_fill((scores == -torch.inf).all(-1, keepdim=True), 0)
    return (weights @ value.double()).to(query.dtype)


def attention(d: Draw):
    dtype = d.pick(*REALS, torch.float32, torch.bfloat16)
    size = lambda: d.pick(d.size(1), d.size(1), 33, 64, 130, 300)  # noqa: E731
    rows, keys, width, values = size(), size(), d.pick(d.size(1), 16, 33, 64), d.pick(d.size(1), 16, 33, 64)
    lead = d.pick([], [2], [2, 3], [1, 2])
    if d.chance(0.7):
        values = width
    query = d.tensor([*lead, rows, width], dtype, high=d.pick(3, 3, 30))
    key, value = d.tensor([*lead, keys, width], dtype), d.tensor([*lead, keys, values], dtype)
    mask, causal = None, d.chance(0.3)
    if not causal and d.chance(0.5):
        sizes = d.pick([rows, keys], [1, keys], [rows, 1], [*lead, rows, keys])
        mask = d.tensor(sizes, d.pick(torch.bool, dtype))
    return "aten::scaled_dot_product_attention", [query, key, value, mask, 0.0, causal, d.pick(None, None, 0.3)], \
        {"loose": True, "reference": dot_product_attention}


def indices(d: Draw, sizes, most: int):
    """Positions below `most`, int64."""
    return d.laid_out(torch.randint(max(most, 1), tuple(sizes), generator=d.generator))


def index(d: Draw):
    dtype = d.pick(*EVERY)
    x = d.tensor(d.sizes(d.pick(1, 2, 3, 4), 1), dtype)
    at = d.axis(x.dim())
    n = x.shape[at]
    some = [d.rng.randint(0 if d.chance(0.1) else 1, s) for s in x.shape]
    wide = list(some)
    wide[at] = d.size()
    kind = d.pick("index_select", "gather", "scatter", "scatter_add", "index_add", "index_fill", "take", "masked_select",
                  "embedding", "embedding_bag", "index", "index_put", "take_along", "nonzero", "bucketize", "searchsorted",
                  "one_hot", "repeat_interleave", "scatter_value", "scatter_reduce")
    if kind == "index_select":
        return "aten::index_select", [x, at, indices(d, [d.size()], n)], {}
    if kind == "gather":
        return "aten::gather", [x, at, indices(d, wide, n)], {}
    if kind in ("scatter", "scatter_add", "scatter_value", "scatter_reduce"):
        where = torch.argsort(torch.rand(some[:at % x.dim()] + [n] + some[at % x.dim() + 1:], generator=d.generator), at)
        where = d.laid_out(where.narrow(at, 0, min(some[at], n)))
        if kind == "scatter_value":
            return "aten::scatter.value", [x, at, where, 2], {}
        source = d.tensor([s + d.pick(0, 0, 2) for s in where.shape], dtype)
        if kind == "scatter_reduce":
            reduction = d.pick("sum", "prod", "mean", "amax", "amin")
            return "aten::scatter_reduce.two", [x, at, where, source, reduction, d.chance(0.5)], {}
        return "aten::scatter.src" if kind == "scatter" else "aten::scatter_add", [x, at, where, source], {}
    if kind == "index_add":
        count = d.size()
        sizes = list(x.shape)
        sizes[at] = count
        return "aten::index_add", [x, at, indices(d, [count], n), d.tensor(sizes, dtype)], {}
    if kind == "index_fill":
        return "aten::index_fill.int_Scalar", [x, at, indices(d, [d.size()], n), 1], {}
    if kind == "take":
        return "aten::take", [x, indices(d, d.sizes(2), x.numel())], {}
    if kind == "masked_select":
        return "aten::masked_select", [x, d.tensor(d.broadcast_sizes(list(x.shape)), torch.bool)], {}
    if kind == "embedding":
        w = d.tensor([d.size(1), d.size()], d.pick(*REALS))
        return "aten::embedding", [w, indices(d, d.sizes(d.pick(1, 2)), w.shape[0])], {}
    if kind == "embedding_bag":
        w = d.tensor([d.size(1), d.size(1)], d.pick(torch.float32, torch.float64))
        count = d.size(1)
        offsets = torch.tensor(sorted([0] + d.numbers(d.rng.randint(0, 4), 0, count)))
        mode = d.pick(0, 1, 2)
        return "aten::embedding_bag", [w, indices(d, [count], w.shape[0]), offsets, False, mode, False, None, False], {}
    if kind == "index":
        picks = [d.pick(None, indices(d, [3], s), indices(d, [2, 1], s)) for s in x.shape]
        if all(p is None for p in picks):
            picks[0] = indices(d, [3], x.shape[0])
        return "aten::index.Tensor", [x, picks], {"no_graph": True}
    if kind == "index_put":
        order = torch.randperm(x.shape[0], generator=d.generator)[:d.rng.randint(0, x.shape[0])]
        return "aten::index_put", [x, [order], d.tensor([len(order)] + list(x.shape[1:]), dtype), d.chance(0.3)], {"no_graph": True}
    if kind == "take_along":
        return "aten::take_along_dim", [x, indices(d, wide, n), at], {}
    if kind == "nonzero":
        return "aten::nonzero", [x], {}
    edges = torch.sort(d.dense([d.size()], torch.float32, -3, 3, False))[0]
    if kind == "bucketize":
        return "aten::bucketize.Tensor", [d.tensor(d.sizes(2), d.pick(*REALS)), edges, d.chance(0.5), d.chance(0.5)], {}
    if kind == "searchsorted":
        return "aten::searchsorted.Tensor", [edges, d.tensor(d.sizes(2)), d.chance(0.5), d.chance(0.5)], {}
    if kind == "one_hot":
        return "aten::one_hot", [indices(d, d.sizes(2, 1), 7), d.pick(-1, 7, 9)], {}
    return "aten::repeat_interleave.self_int", [x, d.rng.randint(0, 3), d.pick(None, at)], {}


def shape(d: Draw):
    dtype = d.pick(*EVERY)
    x = d.tensor(d.sizes(d.pick(1, 2, 3, 4)), dtype)
    at = d.axis(x.dim())
    n = x.shape[at]
    begin = d.rng.randint(0, n)
    others = [d.tensor([d.size(0, 5) if i == at % x.dim() else s for i, s in enumerate(x.shape)],
                       dtype if d.chance(0.8) else d.pick(*EVERY)) for _ in range(d.pick(0, 1, 2, 3))]
    calls = [("cat", [[x, *others], at]), ("stack", [[x] * d.pick(1, 2, 3), d.rng.randint(0, x.dim())]),
             ("narrow", [x, at, begin, d.rng.randint(0, n - begin)]),
             ("slice.Tensor", [x, at, d.rng.randint(-n - 1, n + 1), d.rng.randint(-n - 1, n + 3), d.rng.randint(1, 3)]),
             ("select.int", [x, at, d.rng.randint(0, max(n - 1, 0))]), ("repeat", [x, d.numbers(x.dim() + d.pick(0, 1), 0, 3)]),
             ("permute", [x, d.rng.sample(range(x.dim()), x.dim())]), ("contiguous", [x]), ("clone", [x]),
             ("reshape", [x, [-1]] if x.numel() else [x, list(x.shape)]), ("flatten.using_ints", [x, 0, -1]),
             ("unsqueeze", [x, d.rng.randint(-x.dim() - 1, x.dim())]), ("squeeze", [x]), ("squeeze.dim", [x, at]),
             ("expand", [x, [2] + list(x.shape)]), ("split.Tensor", [x, d.rng.randint(1, 5), at]),
             ("chunk", [x, d.rng.randint(1, 5), at]), ("movedim.int", [x, at, d.axis(x.dim())]),
             ("transpose.int", [x, at, d.axis(x.dim())]), ("diagonal", [x, d.rng.randint(-3, 3), 0, 1] if x.dim() > 1 else [x]),
             ("to.dtype", [x, d.pick(*EVERY)]), ("rot90", [x, d.rng.randint(-2, 5), [0, 1]] if x.dim() > 1 else [x]),
             ("tile", [x, d.numbers(d.pick(1, x.dim()), 0, 3)]), ("flip", [x, d.axes(x.dim())])]
    name, args = d.pick(*calls)
    return "aten::" + name, args, {}


def shuffle(d: Draw):
    factor = d.rng.randint(1, 3)
    dtype = d.pick(*REALS)
    image = [d.size(1, 7), d.size(1, 7)]
    kind = d.pick("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "grid")
    if kind == "pixel_shuffle":
        return "aten::pixel_shuffle", [d.tensor([2, 2 * factor * factor, *image], dtype), factor], {}
    if kind == "pixel_unshuffle":
        return "aten::pixel_unshuffle", [d.tensor([2, 3, *[s * factor for s in image]], dtype), factor], {}
    if kind == "channel_shuffle":
        return "aten::channel_shuffle", [d.tensor([2, 2 * factor, *image], dtype), factor], {}
    x, grid = d.tensor([2, 3, *image], dtype), d.tensor([2, d.size(1, 7), d.size(1, 7), 2], dtype, low=-1.3, high=1.3)
    return "aten::grid_sampler_2d", [x, grid, d.pick(0, 1, 2), d.pick(0, 1, 2), d.chance(0.5)], {}


def recurrent(d: Draw):
    kind, gates = d.pick(("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1))
    inputs, hidden, steps, batch = d.size(1), d.size(1, 20), d.size(1, 6), d.size(1, 5)
    layers, both, first = d.pick(1, 1, 2), d.chance(0.4), d.chance(0.5)
    dtype = d.pick(torch.float32, torch.float32, torch.float64)
    t = lambda *sizes: d.tensor(sizes, dtype, low=-0.5, high=0.5)  # noqa: E731
    if d.chance(0.3):
        x, h = t(batch, inputs), t(batch, hidden)
        weights = [t(gates * hidden, inputs), t(gates * hidden, hidden)]
        weights += [t(gates * hidden), t(gates * hidden)] if d.chance(0.7) else [None, None]
        state = [h, t(batch, hidden)] if kind == "lstm" else h
        return f"aten::{kind}_cell", [x, state, *weights], {}
    weights, has_bias = [], d.chance(0.7)
    for layer in range(layers):
        for _ in range(2 if both else 1):
            size = inputs if layer == 0 else hidden * (2 if both else 1)
            weights += [t(gates * hidden, size), t(gates * hidden, hidden)] + ([t(gates * hidden), t(gates * hidden)] if has_bias else [])
    x = t(batch, steps, inputs) if first else t(steps, batch, inputs)
    h = t(layers * (2 if both else 1), batch, hidden)
    state = [h, t(*h.shape)] if kind == "lstm" else h
    return f"aten::{kind}.input", [x, state, weights, has_bias, layers, 0.0, False, both, first], {}


def loss(d: Draw):
    dtype = d.pick(*REALS)
    sizes = d.sizes(d.pick(1, 2, 3), 1)
    a, b, how = d.tensor(sizes, dtype), d.tensor(sizes, dtype), d.pick(0, 1, 2)
    wide = d.pick(a, d.tensor(sizes, dtype, edges=True))
    unit = lambda: d.tensor(sizes, dtype, low=0.01, high=0.99)  # noqa: E731
    classes = d.size(1)
    scores, labels = d.tensor([d.size(1), classes], dtype, edges=d.chance(0.2)), None
    labels = indices(d, [scores.shape[0]], classes)
    weight = d.tensor([classes], dtype, low=0.1) if d.chance(0.5) else None
    calls = [("mse_loss", [wide, b, how]), ("l1_loss", [wide, b, how]), ("smooth_l1_loss", [wide, b, how, d.pick(0.0, 0.5, 1.0)]),
             ("huber_loss", [wide, b, how, d.pick(0.5, 1.0)]), ("kl_div", [a, unit(), how, d.chance(0.3)]),
             ("binary_cross_entropy", [unit(), unit(), None, how]), ("soft_margin_loss", [a, b, how]),
             ("binary_cross_entropy_with_logits", [wide, unit(), None, None, how]),
             ("nll_loss", [scores, labels, weight, how, d.pick(-100, 0)]),
             ("cross_entropy_loss", [scores, labels, weight, how, d.pick(-100, 0), d.pick(0.0, 0.1)]),
             ("poisson_nll_loss", [wide, unit(), d.chance(0.5), False, 1e-8, how]), ("hinge_embedding_loss", [wide, b, 1.0, how])]
    name, args = d.pick(*calls)
    return "aten::" + name, args, {"loose": True}


FAMILIES = {f.__name__: f for f in (conv, conv_backward, pool, pool_backward, upsample, pad, patches, unary, binary, select,
                                    reduce, scan, norm, product, attention, index, shape, shuffle, recurrent, loss)}
# How often each is drawn.
SHARES = {"conv": 6, "product": 3, "pool": 2, "index": 2, "shape": 2, "unary": 2, "binary": 2, "reduce": 2}
