"""Losses as modules."""

from __future__ import annotations

import math
import warnings

from tensord.engine.nn import functional as F
from tensord.engine.nn.layers import Linear
from tensord.engine.nn.module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "HuberLoss",
    "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


_LEGACY = {"size_average": None, "reduce": None}


def _legacy_reduction(size_average, reduce) -> str:
    """The reduction that these legacy arguments mean together; None means True."""
    found = "none" if reduce is not None and not reduce else "sum" if size_average is not None and not size_average else "mean"
    warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.", stacklevel=3)
    return found


def _loss(name: str, function, tensors=(), /, **defaults):
    """Makes a module class that calls function(*inputs, **options). `tensors`: options that are buffers."""
    kept = [option for option in defaults if option not in _LEGACY]

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        if len(args) > len(defaults):
            raise TypeError(f"{name}() takes {len(defaults)} arguments, got {len(args)}")
        options = dict(zip(defaults, args))
        options.update(kwargs)
        for option in options:
            if option not in defaults:
                raise TypeError(f"{name}() got an unexpected argument '{option}'")
        older = [options.pop(option, None) for option in _LEGACY]
        if older != [None, None]:
            options["reduction"] = _legacy_reduction(*older)
        for option in kept:
            value = options.get(option, defaults[option])
            if option in tensors:
                self.register_buffer(option, value)
            else:
                setattr(self, option, value)

    def forward(self, *inputs):
        return function(*inputs, **{option: getattr(self, option) for option in kept})

    return type(name, (Module,), {"__init__": __init__, "forward": forward, "__module__": __name__})


CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy, ("weight",), weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                         label_smoothing=0.0)
NLLLoss = _loss("NLLLoss", F.nll_loss, ("weight",), weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean")
BCELoss = _loss("BCELoss", F.binary_cross_entropy, ("weight",), weight=None, size_average=None, reduce=None, reduction="mean")
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, ("weight", "pos_weight"), weight=None,
                          size_average=None, reduce=None, reduction="mean", pos_weight=None)
MSELoss = _loss("MSELoss", F.mse_loss, size_average=None, reduce=None, reduction="mean")
L1Loss = _loss("L1Loss", F.l1_loss, size_average=None, reduce=None, reduction="mean")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, size_average=None, reduce=None, reduction="mean", beta=1.0)
HuberLoss = _loss("HuberLoss", F.huber_loss, reduction="mean", delta=1.0)
KLDivLoss = _loss("KLDivLoss", F.kl_div, size_average=None, reduce=None, reduction="mean", log_target=False)
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, size_average=None, reduce=None, reduction="mean")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None,
                         reduction="mean")
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, margin=0.0, size_average=None, reduce=None, reduction="mean")
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, margin=0.0, size_average=None, reduce=None, reduction="mean")
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, margin=1.0, size_average=None, reduce=None, reduction="mean")
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean")
MultiMarginLoss = _loss("MultiMarginLoss", F.multi_margin_loss, ("weight",), p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean")
CTCLoss = _loss("CTCLoss", F.ctc_loss, blank=0, reduction="mean", zero_infinity=False)
NLLLoss2d = NLLLoss
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, full=False, eps=1e-6, reduction="mean")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss, size_average=None, reduce=None, reduction="mean")
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, ("weight",), weight=None,
                                size_average=None, reduce=None, reduction="mean")
TripletMarginWithDistanceLoss = _loss("TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, distance_function=None, margin=1.0,
                                      swap=False, reduction="mean")


class LinearCrossEntropyLoss(Module):
    """CrossEntropyLoss over its own Linear layer, self.linear; logits are [N, num_classes, *out_features]."""

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple = (), bias: bool = False, device=None, dtype=None,
                 reduction: str = "mean", weight=None, ignore_index: int | None = None, label_smoothing: float = 0.0, options=None):
        super().__init__()
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"LinearCrossEntropyLoss: expected a weight of {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"LinearCrossEntropyLoss: expected a label_smoothing from 0 to 1, got {label_smoothing}")
        if options is not None:
            raise NotImplementedError("LinearCrossEntropyLoss: options must be None; logits are made whole")
        self.register_buffer("weight", weight)
        self.num_classes, self.out_features, self.reduction = num_classes, out_features, reduction
        self.ignore_index, self.label_smoothing, self.options = ignore_index, label_smoothing, options
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias=bias, device=device, dtype=dtype)

    def forward(self, input, target):
        sizes = [self.num_classes, *self.out_features]
        bias = None if self.linear.bias is None else self.linear.bias.reshape(sizes)
        return F.linear_cross_entropy(input, self.linear.weight.reshape([*sizes, self.linear.in_features]), target, linear_bias=bias, weight=self.weight,
                                      reduction=self.reduction, ignore_index=self.ignore_index, label_smoothing=self.label_smoothing)

    def extra_repr(self):
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")
