"""Operators as templates. {f} a float tensor, {x} any tensor, {g} one that broadcasts with the first, {e} one of its shape, {i} an int
tensor, {b} a bool tensor, {m} a mask that broadcasts with the first, {d} a dimension of the first, {D} a list of dimensions, {n} a
small int, {s} a float, {p} a positive float, {t} True or False, {r} a reduction, {T} a dtype, {S} its size at a dimension."""

UNARY = """relu sigmoid tanh abs neg floor ceil round trunc frac sign square exp sin cos erf erfc atan asinh expm1 sgn rad2deg deg2rad
isnan isinf isfinite isposinf signbit logical_not clone detach positive sinh cosh exp2 selu celu""".split()
FUNCTIONAL = """relu6 hardswish hardsigmoid silu mish gelu softsign tanhshrink logsigmoid elu leaky_relu softplus hardtanh hardshrink
softshrink selu celu""".split()
POSITIVE = "sqrt rsqrt log log1p log2 log10 reciprocal lgamma digamma".split()
BINARY = """add sub mul maximum minimum fmax fmin atan2 eq ne lt le gt ge logical_and logical_or logical_xor hypot copysign heaviside
nextafter""".split()

POINTWISE = [f"torch.{name}({{x}})" for name in UNARY]
POINTWISE += [f"F.{name}({{f}})" for name in FUNCTIONAL]
POINTWISE += [f"torch.{name}({{f}}.abs() + {{p}})" for name in POSITIVE]
POINTWISE += [f"torch.{name}({{x}}, {{g}})" for name in BINARY]
POINTWISE += """{x} + {g}
{x} - {g}
{x} * {g}
{x} / ({g}.abs() + {p})
{x} + {s}
{s} - {x}
{x} * {s}
{x} / {p}
{n} * {x}
{x} + {n}
{x} * 1.0
{x} * 1
{x} + 0
{x} - 0
{x} / 1
-{x}
~{b}
{x} // {p}
{x} % {p}
{x} ** 2
{f} ** {n}
{p} ** {f}
{x} > {s}
{x} <= {n}
{x} == {g}
{x} != {g}
{b} & {m}
{b} | {m}
{b} ^ {m}
{x}.to({T})
{x}.to({T}).to({T})
{x}.type_as({g})
{x}.float()
{x}.double()
{x}.int()
torch.add({x}, {g}, alpha={n})
torch.sub({x}, {g}, alpha={n})
torch.rsub({x}, {g}, alpha={n})
torch.add({x}, {s}, alpha={n})
torch.addcmul({f}, {g}, {g}, value={s})
torch.addcdiv({f}, {g}, {g}.abs() + {p}, value={s})
torch.lerp({f}, {g}, {s})
torch.lerp({f}, {g}, {e})
torch.clamp({x}, {s}, {p})
torch.clamp({x}, min={s})
torch.clamp({x}, max={s})
torch.clamp({f}, min={g})
torch.clamp({f}, {g}, {e})
torch.where({m}, {x}, {g})
torch.where({x} > {s}, {x}, {g})
torch.where({m}, {f}, {s})
{x}.masked_fill({m}, {s})
{x}.masked_fill({m}, {n})
torch.div({x}, {p}, rounding_mode='floor')
torch.div({x}, {p}, rounding_mode='trunc')
torch.floor_divide({x}, {p})
torch.fmod({x}, {p})
torch.remainder({x}, {p})
torch.pow({f}.abs() + {p}, {g})
torch.xlogy({f}, {g}.abs() + {p})
torch.nan_to_num({f}, {s})
torch.bitwise_and({i}, {n})
torch.bitwise_or({i}, {n})
torch.bitwise_left_shift({i}, 1)
torch.logit({f}.sigmoid(), 1e-3)
torch.threshold({f}, {s}, {s})
F.elu({f}, {p})
F.leaky_relu({f}, {s})
F.softplus({f}, {p}, {p})
F.hardtanh({f}, {s}, {p})
F.hardshrink({f}, {p})
F.softshrink({f}, {p})
F.gelu({f}, approximate='tanh')
F.celu({f}, {p})
F.threshold({f}, {s}, {s})
F.glu(torch.cat([{f}, {e}], {d}), {d})
F.dropout({f}, 0.5, False)
torch.zeros_like({x})
torch.ones_like({x})
torch.full_like({x}, {n})
torch.empty_like({x}).fill_({n})
{x}.new_zeros({x}.size())
{x}.new_full([2, 3], {n})
torch.bucketize({f}, torch.tensor([-1.0, 0.0, 0.7]))""".split("\n")

REDUCE = """torch.sum({x})
torch.sum({x}, {d})
torch.sum({x}, {D}, {t})
torch.mean({f}, {d}, {t})
torch.mean({f}, {D})
{f}.mean()
torch.var({f}, {D}, {t}, {t})
torch.std({f}, {d}, {t})
torch.var({f}, unbiased={t})
torch.prod({f}, {d}, {t})
torch.amax({x}, {D}, {t})
torch.amin({x}, {d}, {t})
torch.max({x})
torch.min({x})
torch.max({x}, {d}, {t})[0]
torch.max({x}, {d})[1]
torch.min({x}, {d}, {t})[0]
torch.argmax({x}, {d}, {t})
torch.argmin({x})
torch.any({x}, {d}, {t})
torch.all({x}, {d}, {t})
torch.any({x})
torch.all({x})
torch.logsumexp({f}, {D}, {t})
torch.cumsum({x}, {d})
torch.cumprod({f}, {d})
torch.cummax({f}, {d})[0]
torch.logcumsumexp({f}, {d})
torch.norm({f}, {p}, {D}, {t})
torch.linalg.vector_norm({f}, {n}, {D}, {t})
torch.softmax({f}, {d})
torch.log_softmax({f}, {d})
F.softmax({f}, {d}, dtype=torch.float64)
F.softmin({f}, {d})
torch.median({f}, {d}, {t})[0]
torch.median({f})
torch.kthvalue({f}, 1, {d}, {t})[0]
torch.sort({x}, {d}, {t})[0]
torch.sort({x}, {d}, {t})[1]
torch.argsort({x}, {d}, {t})
torch.topk({x}, 1, {d}, {t})[0]
torch.topk({f}, min({S}, 2), {d}, {t})[1]
torch.count_nonzero({x}, {d})
torch.sum({x}, {d}, dtype={T})
torch.var_mean({f}, {D}, {t})[1]
torch.aminmax({f}, dim={d}, keepdim={t})[0]
torch.trace({f}.flatten().unsqueeze(0))
F.normalize({f}, {p}, {d})
F.layer_norm({f}, [{f}.size(-1)])
F.layer_norm({f}, [{f}.size(-1)], eps={p})
F.instance_norm({f})
F.local_response_norm({f}, {n})
F.cosine_similarity({f}, {e}, {d})
F.pairwise_distance({f}, {e})
torch.unique({i})
torch.bincount({i}.flatten().abs())
torch.nonzero({x})""".split("\n")

VIEWS = """{x}.transpose({d}, {d})
{x}.unsqueeze({d})
{x}.squeeze({d})
{x}.squeeze()
{x}.select({d}, 0)
{x}.select({d}, -1)
{x}.narrow({d}, 0, {S})
{x}[1:]
{x}[:-1]
{x}[::2]
{x}[..., 1:]
{x}[..., 0]
{x}[None]
{x}[:, None]
{x}[:, :1]
{x}[:, ::2]
{x}[-1]
{x}.flatten()
{x}.flatten(-2)
{x}.view(-1)
{x}.reshape(-1)
{x}.reshape({x}.size(0), -1)
{x}.view({x}.size())
{x}.view([-1, 1])
{x}.expand({x}.size())
{x}.expand([2] + {x}.size())
{x}.unsqueeze(0).expand([3] + {x}.shape)
{x}.t()
{x}.mT
{x}.movedim(0, -1)
{x}.swapaxes(0, -1)
{x}.diagonal()
{x}.unfold({d}, 1, 1)
{x}.unfold({d}, 2, 1)
torch.chunk({x}, 2, {d})[0]
torch.split({x}, 1, {d})[0]
{x}.unbind({d})[0]
{x}.permute({P})
{x}.permute({P}).contiguous()
{x}.contiguous()
{x}.contiguous(memory_format=torch.channels_last)
{x}.clone()
{x}.view_as({e})
{x}.broadcast_to({x}.shape)
torch.flip({x}, [{d}])
torch.roll({x}, {n}, {d})
torch.rot90({x})
torch.tile({x}, [2])
{x}.repeat([2] + [1] * {x}.dim())
{x}.repeat_interleave(2, {d})
torch.cat([{x}, {e}], {d})
torch.cat([{x}, {x}], {d})
torch.cat([{x}, {e}, {x}], -1)
torch.stack([{x}, {e}], {d})
torch.stack([{x}, {e}])
torch.tril({x})
torch.triu({x}, {n})
torch.diag({x})
torch.atleast_2d({x})
F.pad({f}, [1, 2])
F.pad({f}, [0, 1], value={s})
F.pad({f}, [1, -1])
F.pad({f}, [1, 0, 0, 1])
torch.broadcast_tensors({x}, {g})[1]
torch.as_strided({f}.contiguous(), [1], [1])
{x}.index_select({d}, torch.tensor([0, -1 + {S}]))
{x}[torch.tensor([0, 0])]
{x}[{x} > {s}]
{x}[:, torch.tensor([0])]
torch.gather({x}, {d}, torch.zeros_like({x}, dtype=torch.long))
torch.take({x}, torch.tensor([0, -1]))
torch.masked_select({x}, {m})
torch.scatter({f}, {d}, torch.zeros_like({f}, dtype=torch.long), {e})
torch.scatter_add({f}, {d}, torch.zeros_like({f}, dtype=torch.long), {e})
torch.index_add({f}, {d}, torch.tensor([0]), {f}.narrow({d}, 0, 1), alpha={n})
torch.index_fill({x}, {d}, torch.tensor([0]), {n})
torch.index_copy({f}, {d}, torch.tensor([0]), {f}.narrow({d}, 0, 1))
torch.index_put({f}, [torch.tensor([0, 0])], torch.tensor({s}), {t})
torch.nn.functional.one_hot({i}.abs() % 4, 4)
torch.take_along_dim({f}, torch.zeros_like({f}, dtype=torch.long), {d})
torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), {f})
torch.meshgrid([{f}.flatten(), {f}.flatten()], indexing='ij')[0]
torch.arange({x}.size({d}))
torch.arange({x}.numel()).view_as({x})
torch.linspace(0.0, {p}, {n})
torch.zeros([{x}.size(0), 2])
torch.ones([2, {x}.size(-1)])
torch.full([{x}.size(0)], {s})
torch.eye({n})
torch.tensor([{s}, {p}])
torch.tensor({n})
torch.tensor({s})
torch.scalar_tensor({s})""".split("\n")

# Statements that write.
RESHAPES = """{w}.unsqueeze_({d})
{w}.squeeze_()
{w}.squeeze_({d})
{w}.t_()
{w}.transpose_({d}, {d})
{w}.swapaxes_({d}, {d})""".split("\n")

WRITES = """{w}.add_({g})
{w}.add_({g}, alpha={n})
{w}.sub_({g})
{w}.mul_({s})
{w}.mul_({g})
{w}.div_({p})
{w}.relu_()
{w}.sigmoid_()
{w}.tanh_()
{w}.neg_()
{w}.abs_()
{w}.clamp_({s}, {p})
{w}.fill_({n})
{w}.zero_()
{w}.copy_({g})
{w}.copy_({s} * {e})
{w}.masked_fill_({m}, {s})
{w}.hardtanh_({s}, {p})
{w}[0] = {s}
{w}[1:] = 0.5
{w}[..., 0] = {n}
{w}[:, 0] = {w}[:, -1]
{w}[1:] += {s}
{w}[0].add_({n})
{w}[..., :1].mul_({s})
{w}.view(-1)[0] = {n}
{w}.select({d}, 0).copy_({e}.select({d}, -1))
{w}.transpose({d}, {d}).add_({s})
{w}.t().mul_({s})
{w}.unsqueeze(0).add_({n})
{w}[{m}] = {s}
{w} += {g}
{w} *= {s}
{w} -= {e}
{w}.index_fill_({d}, torch.tensor([0]), {n})
{w}.index_add_({d}, torch.tensor([0]), {w}.narrow({d}, 0, 1).clone())
{w}.scatter_({d}, torch.zeros_like({w}, dtype=torch.long), {s})
{w}.addcmul_({g}, {g}, value={s})
{w}.lerp_({g}, {s})
{w}.clamp_min_({s})
{w}.sqrt_().abs_()
{w}.exp_()
{w}.eq_({g})
F.relu_({w})
F.relu({w}, inplace=True)
F.hardswish({w}, inplace=True)
F.silu({w}, inplace=True)
F.leaky_relu({w}, {s}, inplace=True)
torch.add({w}, {g}, out={w})
torch.mul({w}, {s}, out={w})""".split("\n")

LOSSES = """F.mse_loss({f}, {e}, reduction={r})
F.l1_loss({f}, {e}, reduction={r})
F.smooth_l1_loss({f}, {e}, reduction={r}, beta={p})
F.huber_loss({f}, {e}, reduction={r}, delta={p})
F.binary_cross_entropy_with_logits({f}, {e}.sigmoid(), reduction={r})
F.binary_cross_entropy({f}.sigmoid(), {e}.sigmoid(), reduction={r})
F.kl_div(torch.log_softmax({f}, -1), torch.softmax({e}, -1), reduction={r})
F.soft_margin_loss({f}, torch.sign({e}), reduction={r})
F.hinge_embedding_loss({f}, torch.sign({e}), {p}, reduction={r})
F.poisson_nll_loss({f}, {e}.abs(), reduction={r})
F.gaussian_nll_loss({f}, {e}, {e}.abs() + {p}, reduction={r})
F.cross_entropy({f}, torch.softmax({e}, 1), reduction={r})
F.margin_ranking_loss({f}, {e}, torch.sign({f}), {p}, reduction={r})
F.triplet_margin_loss({f}, {e}, {e} + 1, reduction={r})
F.cross_entropy({f}.flatten(1), torch.zeros({f}.size(0), dtype=torch.long), reduction={r}, label_smoothing=0.1)
F.nll_loss({f}.flatten(1), torch.zeros({f}.size(0), dtype=torch.long), reduction={r})""".split("\n")
