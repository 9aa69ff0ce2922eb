"""Every module of torch.nn that PyTorch scripts or traces, in training and in evaluation mode, called with each
combination of None and given optional arguments."""

import inspect
import itertools
from typing import Optional, Tuple

import torch
from torch import nn

from tests.language.case import Section, version

section = Section(before=(2,))


class Opt:
    """An argument that may be None."""

    def __init__(self, value):
        self.value = value


def t(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes) + len(sizes)))


def positive(*sizes):
    return t(*sizes).abs() + 0.1


def ints(high, *sizes):
    return torch.randint(high, sizes, generator=torch.Generator().manual_seed(high))


def signs(*sizes):
    return (ints(2, *sizes) * 2 - 1).float()


def hidden(*sizes):
    """A padding mask: the last key of the first row is masked."""
    mask = torch.zeros(*sizes, dtype=torch.bool)
    mask[0, -1] = True
    return mask


def causal(n):
    return torch.full((n, n), float("-inf")).triu(1)


def causal_bool(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


WIDTH = 8
IMAGE, LINE, VOLUME = t(2, 4, 6, 6), t(2, 4, 9), t(2, 4, 5, 5, 5)
SEQUENCE = t(2, 5, WIDTH)  # batch first


def attention(**options):
    """query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights."""
    first = options.get("batch_first", True)
    x = SEQUENCE if first else SEQUENCE.transpose(0, 1)
    memory = t(2, 4, WIDTH) if first else t(2, 4, WIDTH).transpose(0, 1)
    masks = [(Opt(hidden(2, 5)), Opt(causal(5))), (Opt(hidden(2, 5)), Opt(causal_bool(5)))]
    calls = [call for padding, mask in masks for needs in (True, False) for call in combinations([x, x, x, padding, needs, mask])]
    calls += combinations([x, memory, memory, Opt(hidden(2, 4)), True, None, False])
    return lambda: nn.MultiheadAttention(WIDTH, 2, batch_first=first, **{k: v for k, v in options.items() if k != "batch_first"}), calls


def encoder(norm_first, activation="relu", layers=0, nested=True):
    def layer():
        return nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.0, activation, batch_first=True, norm_first=norm_first)

    make = layer if not layers else lambda: nn.TransformerEncoder(layer(), layers, nn.LayerNorm(WIDTH), enable_nested_tensor=nested)
    return make, combinations([SEQUENCE, Opt(causal_bool(5)), Opt(hidden(2, 5))]) + combinations([SEQUENCE, Opt(causal(5)), None])


def decoder(norm_first, layers=0):
    def layer():
        return nn.TransformerDecoderLayer(WIDTH, 2, 16, 0.0, batch_first=True, norm_first=norm_first)

    make = layer if not layers else lambda: nn.TransformerDecoder(layer(), layers)
    memory = t(2, 4, WIDTH)
    return make, combinations([SEQUENCE, memory, Opt(causal_bool(5)), Opt(t(5, 4)), Opt(hidden(2, 5)), Opt(hidden(2, 4))])


def transformer():
    masks = [Opt(causal_bool(5)), Opt(causal_bool(4)), Opt(t(4, 5)), Opt(hidden(2, 5)), Opt(hidden(2, 4)), Opt(hidden(2, 5))]
    return lambda: nn.Transformer(WIDTH, 2, 1, 1, 16, 0.0, batch_first=True), combinations([SEQUENCE, t(2, 4, WIDTH), *masks])


def recurrent(kind, **options):
    directions = 2 if options.get("bidirectional") else 1
    layers = options.get("num_layers", 1)
    x = t(5, 2, 4)
    state = t(directions * layers, 2, options.get("proj_size", 0) or 6)
    if kind is nn.LSTM:
        state = (state, t(directions * layers, 2, 6) * 0.5)
    wrapper = OfPairs if kind is nn.LSTM else OfStates
    return lambda: wrapper(kind(4, 6, **options)), combinations([x, Opt(state)])


class OfStates(nn.Module):
    """A recurrent layer in a model; scripted alone it has no forward, but one for packed sequences and one for
    others."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, state: Optional[torch.Tensor] = None):
        return self.layer(x, state)


class OfPairs(OfStates):
    def forward(self, x, state: Optional[Tuple[torch.Tensor, torch.Tensor]] = None):
        return self.layer(x, state)


def cell(kind):
    state = t(2, 6) if kind is not nn.LSTMCell else (t(2, 6), t(2, 6) * 0.5)
    return lambda: kind(4, 6), combinations([t(2, 4), Opt(state)])


def combinations(arguments):
    choices = [(None, a.value) if isinstance(a, Opt) else (a,) for a in arguments]
    return list(itertools.product(*choices))


def of(make, *arguments):
    return make, combinations(arguments)


def losses(make, *arguments):
    """With every reduction."""
    return {r: (lambda r=r: make(reduction=r), combinations(arguments)) for r in ("mean", "sum", "none")}


ELEMENTWISE = ["CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU",
               "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Identity", "Flatten"]
LABELS = ints(3, 4)
PADDING = torch.tensor([5, 3])

TABLE = {
    **{name: of(getattr(nn, name), IMAGE) for name in ELEMENTWISE},
    "Threshold": of(lambda: nn.Threshold(0.1, 2.0), IMAGE),
    "RReLU": of(lambda: nn.RReLU(0.25, 0.25), IMAGE),
    "GLU": of(nn.GLU, IMAGE),
    "Softmax": of(lambda: nn.Softmax(1), IMAGE),
    "Softmin": of(lambda: nn.Softmin(1), IMAGE),
    "LogSoftmax": of(lambda: nn.LogSoftmax(1), IMAGE),
    "Softmax2d": of(nn.Softmax2d, IMAGE),
    **{name: of(lambda name=name: getattr(nn, name)(0.0), IMAGE)
       for name in ("Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout")},
    "Dropout1d": of(lambda: nn.Dropout1d(0.0), LINE),
    "Dropout3d": of(lambda: nn.Dropout3d(0.0), VOLUME),
    # Layers with weights.
    "Linear": of(lambda: nn.Linear(6, 5), IMAGE),
    "Linear_no_bias": of(lambda: nn.Linear(6, 5, bias=False), IMAGE),
    "Bilinear": of(lambda: nn.Bilinear(4, 3, 5), t(2, 4), t(2, 3)),
    "Bilinear_no_bias": of(lambda: nn.Bilinear(4, 3, 5, bias=False), t(2, 4), t(2, 3)),
    "Embedding": of(lambda: nn.Embedding(7, 4, padding_idx=1), ints(7, 2, 3)),
    "Embedding_max_norm": of(lambda: nn.Embedding(7, 4, max_norm=1.0), ints(7, 2, 3)),
    **{f"EmbeddingBag_{mode}": (lambda mode=mode: nn.EmbeddingBag(7, 4, mode=mode),
                                combinations([ints(7, 6), torch.tensor([0, 2, 4]), Opt(t(6)) if mode == "sum" else None]) +
                                combinations([ints(7, 2, 3), None, Opt(t(2, 3)) if mode == "sum" else None]))
       for mode in ("sum", "mean", "max")},
    **{f"Conv{d}d": of(lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 3, padding=1), x) for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"Conv{d}d_circular": of(lambda d=d: getattr(nn, f"Conv{d}d")(4, 6, 3, padding=1, padding_mode="circular", groups=2, bias=False), x)
       for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"ConvTranspose{d}d": (lambda d=d: getattr(nn, f"ConvTranspose{d}d")(4, 6, 3, stride=2),
                              combinations([x, Opt([2 * n + 1 + 1 for n in x.shape[2:]])]))
       for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"{kind}Norm{d}d{name}": of(lambda kind=kind, d=d, options=options: getattr(nn, f"{kind}Norm{d}d")(4, **options), x)
       for kind in ("Batch", "Instance") for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))
       for name, options in (("", {}), ("_other", {"affine": kind == "Instance", "track_running_stats": kind == "Instance"}),
                             ("_cumulative", {"momentum": None} if kind == "Batch" else {"affine": True}))},
    "GroupNorm": of(lambda: nn.GroupNorm(2, 4), IMAGE),
    "GroupNorm_plain": of(lambda: nn.GroupNorm(2, 4, affine=False), IMAGE),
    "LayerNorm": of(lambda: nn.LayerNorm([6, 6]), IMAGE),
    "LayerNorm_plain": of(lambda: nn.LayerNorm(6, elementwise_affine=False), IMAGE),
    "LocalResponseNorm": of(lambda: nn.LocalResponseNorm(2), IMAGE),
    # Pools, pads and the like.
    **{f"{kind}Pool{d}d": of(lambda kind=kind, d=d: getattr(nn, f"{kind}Pool{d}d")(3, stride=2, padding=1, ceil_mode=True), x)
       for kind in ("Avg", "Max") for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"MaxPool{d}d_indices": of(lambda d=d: getattr(nn, f"MaxPool{d}d")(2, return_indices=True), x)
       for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"Adaptive{kind}Pool{d}d": of(lambda kind=kind, d=d: getattr(nn, f"Adaptive{kind}Pool{d}d")(3), x)
       for kind in ("Avg", "Max") for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    "AdaptiveAvgPool2d_none": of(lambda: nn.AdaptiveAvgPool2d((None, 2)), IMAGE),
    "LPPool1d": of(lambda: nn.LPPool1d(2.0, 3), LINE.abs()),
    "LPPool2d": of(lambda: nn.LPPool2d(2.0, 3), IMAGE.abs()),
    **{f"MaxUnpool{d}d": (lambda d=d: getattr(nn, f"MaxUnpool{d}d")(2),
                          combinations([*getattr(nn.functional, f"max_pool{d}d")(x, 2, return_indices=True), Opt(list(x.shape))]))
       for d, x in ((1, t(2, 4, 8)), (2, IMAGE), (3, t(2, 4, 4, 4, 4)))},
    **{f"ConstantPad{d}d": of(lambda d=d: getattr(nn, f"ConstantPad{d}d")(2, 0.5), x) for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"{kind}Pad{d}d": of(lambda kind=kind, d=d: getattr(nn, f"{kind}Pad{d}d")(2), x)
       for kind in ("Reflection", "Replication") for d, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    "ZeroPad2d": of(lambda: nn.ZeroPad2d((1, 0, 2, -1)), IMAGE),
    "ChannelShuffle": of(lambda: nn.ChannelShuffle(2), IMAGE),
    "PixelShuffle": of(lambda: nn.PixelShuffle(2), IMAGE),
    "PixelUnshuffle": of(lambda: nn.PixelUnshuffle(2), IMAGE),
    "Fold": of(lambda: nn.Fold((4, 5), 2), t(2, 8, 12)),
    "Unfold": of(lambda: nn.Unfold(2), IMAGE),
    "Unflatten": of(lambda: nn.Unflatten(1, (2, 2)), IMAGE),
    **{f"Upsample_{mode}": of(lambda mode=mode: nn.Upsample(scale_factor=2.0, mode=mode), IMAGE) for mode in ("nearest", "bilinear", "bicubic")},
    "Upsample_size": of(lambda: nn.Upsample(size=(7, 5), mode="bilinear", align_corners=True), IMAGE),
    "UpsamplingBilinear2d": of(lambda: nn.UpsamplingBilinear2d(scale_factor=2), IMAGE),
    "UpsamplingNearest2d": of(lambda: nn.UpsamplingNearest2d(scale_factor=2), IMAGE),
    "CosineSimilarity": of(nn.CosineSimilarity, t(3, 4), t(3, 5)[:, :4]),
    "PairwiseDistance": of(nn.PairwiseDistance, t(3, 4), t(3, 5)[:, :4]),
    "Sequential": of(lambda: nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)), IMAGE),
    # Recurrent ones.
    **{f"{kind.__name__}{name}": recurrent(kind, **options) for kind in (nn.RNN, nn.GRU, nn.LSTM)
       for name, options in (("", {}), ("_deep", {"num_layers": 2, "bidirectional": True}), ("_no_bias", {"bias": False}))},
    "LSTM_projected": recurrent(nn.LSTM, proj_size=3),
    **{kind.__name__: cell(kind) for kind in (nn.RNNCell, nn.GRUCell, nn.LSTMCell)},
    # Attention.
    "MultiheadAttention": attention(),
    "MultiheadAttention_second": attention(batch_first=False),
    "MultiheadAttention_bias_kv": attention(add_bias_kv=True),
    "MultiheadAttention_zero_attn": attention(add_zero_attn=True),
    "MultiheadAttention_no_bias": attention(bias=False),
    "TransformerEncoderLayer": encoder(False),
    "TransformerEncoderLayer_norm_first": encoder(True, "gelu"),
    "TransformerEncoder": encoder(False, layers=2),
    "TransformerEncoder_norm_first": encoder(True, layers=2),
    "TransformerEncoder_plain": encoder(False, "gelu", layers=1, nested=False),
    "TransformerDecoderLayer": decoder(False),
    "TransformerDecoderLayer_norm_first": decoder(True),
    "TransformerDecoder": decoder(False, layers=1),
    "Transformer": transformer(),
    # Losses.
    **{f"{name}_{r}": case for name, arguments in {
        "BCEWithLogitsLoss": (t(4, 3), ints(2, 4, 3).float()), "CrossEntropyLoss": (t(4, 3), LABELS),
        "HingeEmbeddingLoss": (t(4, 3), signs(4, 3)), "HuberLoss": (t(4, 3), t(4, 4)[:, :3]),
        "KLDivLoss": (t(4, 3).log_softmax(1), t(4, 3).softmax(1)), "L1Loss": (t(4, 3), t(4, 4)[:, :3]),
        "MSELoss": (t(4, 3), t(4, 4)[:, :3]), "MarginRankingLoss": (t(4), t(5)[:4], signs(4)),
        "MultiLabelMarginLoss": (t(2, 3), torch.tensor([[0, 2, -1], [1, -1, 0]])),
        "MultiLabelSoftMarginLoss": (t(4, 3), ints(2, 4, 3).float()), "MultiMarginLoss": (t(4, 3), LABELS),
        "NLLLoss": (t(4, 3).log_softmax(1), LABELS), "PoissonNLLLoss": (t(4, 3), positive(4, 3)),
        "SmoothL1Loss": (t(4, 3), t(4, 4)[:, :3]), "SoftMarginLoss": (t(4, 3), signs(4, 3)),
        "TripletMarginLoss": (t(4, 3), t(4, 4)[:, :3], t(4, 5)[:, :3]), "BCELoss": (t(4, 3).sigmoid(), ints(2, 4, 3).float()),
        "CosineEmbeddingLoss": (t(4, 3), t(4, 4)[:, :3], signs(4)), "GaussianNLLLoss": (t(4, 3), t(4, 4)[:, :3], positive(4, 3)),
        "CTCLoss": (t(5, 2, 4).log_softmax(2), torch.tensor([[1, 2], [3, 1]]), PADDING, torch.tensor([2, 1])),
        "TripletMarginWithDistanceLoss": (t(4, 3), t(4, 4)[:, :3], t(4, 5)[:, :3]),
        "NLLLoss2d": (t(2, 3, 4, 4).log_softmax(1), ints(3, 2, 4, 4)),
    }.items() for r, case in losses(getattr(nn, name), *arguments).items()},
    "AdaptiveLogSoftmaxWithLoss": of(lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 9, [3, 6]), t(5, 6), torch.tensor([0, 4, 8, 2, 5])),
}

LEFT_OUT = {
    **{name: "has no forward of its own" for name in ("Module", "Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "RNNBase", "RNNCellBase")},
    **{name: "becomes the module without Lazy when it is first called, which PyTorch asks for before it scripts or traces"
       for name in dir(nn) if name.startswith("Lazy")},
    "DataParallel": "spreads over GPUs, neither scripted nor traced",
    "CrossMapLRN2d": "is a Python function of autograd, neither scripted nor traced",
    "SyncBatchNorm": "needs processes in a group, and CUDA",
    "FractionalMaxPool2d": "draws its regions at random",
    "FractionalMaxPool3d": "draws its regions at random",
}


def check_complete():
    names = {n for n in dir(nn) if inspect.isclass(getattr(nn, n)) and issubclass(getattr(nn, n), nn.Module)}
    there = {row.split("_")[0] for row in TABLE} | set(LEFT_OUT)
    assert names <= there, f"neither in the table nor left out: {sorted(names - there)}"
    assert not set(LEFT_OUT) & {row.split("_")[0] for row in TABLE}


class OfGiven(nn.Module):
    """A call with some fixed arguments that takes the tensors among them, for tracing."""

    def __init__(self, module, arguments):
        super().__init__()
        self.module = module
        self.arguments = arguments

    def forward(self, *given):
        left = list(given)
        result = self.module(*(left.pop(0) if isinstance(a, torch.Tensor) else a for a in self.arguments))
        return tuple(r for r in result if r is not None) if isinstance(result, tuple) else result


def made(make, is_training):
    torch.manual_seed(0)
    return make().train(is_training)


def traced(make, is_training, call):
    tensors = tuple(a for a in call if isinstance(a, torch.Tensor))
    with torch.no_grad():
        return torch.jit.trace(OfGiven(made(make, is_training), call), tensors, check_trace=False)


def scripted_calls(name, is_training, calls):
    """PyTorch's profiler fails on the undefined weights that its fast attention returns if none are requested."""
    if name == "MultiheadAttention" and not is_training:
        return [call for call in calls if call[4]]
    return calls


def add_rows():
    check_complete()
    for name, (make, calls) in TABLE.items():
        for is_training in (False, True):
            row = name + ("_training" if is_training else "")
            if name not in NOT_SCRIPTED and name.split("_")[0] not in NOT_SCRIPTED:
                section.made(row, lambda make=make, is_training=is_training: made(make, is_training),
                             *scripted_calls(name, is_training, calls), rtol=1e-3)
            for i, call in enumerate(calls):
                tensors = tuple(a for a in call if isinstance(a, torch.Tensor))
                section.made(f"{row}_traced_{i}", lambda make=make, is_training=is_training, call=call: traced(make, is_training, call),
                             tensors, rtol=1e-3)


# By row; the reason why PyTorch's compiler refuses or fails. All are traced.
NOT_SCRIPTED = {
    "AdaptiveAvgPool2d_none": "its output_size holds None",
    "MaxUnpool1d": "its kernel_size is an int where the compiler expects a list",
    "MaxUnpool2d": "its kernel_size is an int where the compiler expects a list",
    "MaxUnpool3d": "its kernel_size is an int where the compiler expects a list",
    "MultiheadAttention_no_bias": "the branch for no in_proj_weight does not compile",
    "TripletMarginWithDistanceLoss": "has a Python function among its attributes",
    "AdaptiveLogSoftmaxWithLoss": "gives back a NamedTuple that it looks up by a name in Python",
}

if version() < (2,):  # another version has other modules
    add_rows()
