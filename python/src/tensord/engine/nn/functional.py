"""torch.nn.functional over registered operators. A name that is not defined here is the operator itself."""

from __future__ import annotations

import builtins
import functools

from tensord.engine import _engine
from tensord.engine._operators import aten
from tensord.engine.nested import NestedTensor
from tensord.engine.nn._attention_functional import multi_head_attention_forward  # noqa: F401
from tensord.engine.nn._embedding_functional import embedding_bag  # noqa: F401
from tensord.engine.nn._loss_functional import (  # noqa: F401
    gaussian_nll_loss, linear_cross_entropy, multilabel_soft_margin_loss, triplet_margin_with_distance_loss,
)
from tensord.engine.nn._pooling_functional import (  # noqa: F401
    fractional_max_pool2d, fractional_max_pool2d_with_indices, fractional_max_pool3d, fractional_max_pool3d_with_indices, local_response_norm, lp_pool1d,
    lp_pool2d, lp_pool3d, max_unpool1d, max_unpool2d, max_unpool3d,
)
from tensord.engine.nn._random_functional import (  # noqa: F401
    alpha_dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, gumbel_softmax,
)
from tensord.engine.nn._resampling_functional import (  # noqa: F401
    affine_grid, grid_sample, interpolate, upsample, upsample_bilinear, upsample_nearest,
)

_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        found = aten(name)
    except AttributeError:
        raise AttributeError(f"module 'tensord.engine.nn.functional' has no attribute '{name}'") from None
    if not hasattr(builtins, name):  # aten::list would hide list() in this file
        globals()[name] = found
    return found


def _reduction(name: str) -> int:
    if name not in _REDUCTIONS:
        raise ValueError(f"{name!r} is not a reduction; there are none, mean and sum")
    return _REDUCTIONS[name]


def _samples_too(function):
    """Adds support for nested tensors, sample by sample."""

    @functools.wraps(function)
    def call(input, *args, **kwargs):
        if isinstance(input, NestedTensor):
            return input._each(lambda sample: function(sample, *args, **kwargs))
        return function(input, *args, **kwargs)

    return call


# Activations with an inplace argument.


def _activation(name: str, *parameters: str, **defaults):
    def call(input, *args, inplace: bool = False, **kwargs):
        args = list(args)
        for parameter in parameters[len(args):]:
            args.append(kwargs.pop(parameter, defaults[parameter]))
        if len(args) > len(parameters) and len(args) == len(parameters) + 1:
            inplace = args.pop()
        if kwargs:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        found = aten(name)(input, *args)
        return input.copy_(found) if inplace else found

    call.__name__ = call.__qualname__ = name
    return _samples_too(call)


relu = _activation("relu")
relu6 = _activation("relu6")
silu = _activation("silu")
mish = _activation("mish")
selu = _activation("selu")
hardswish = _activation("hardswish")
hardsigmoid = _activation("hardsigmoid")
elu = _activation("elu", "alpha", alpha=1.0)
celu = _activation("celu", "alpha", alpha=1.0)
leaky_relu = _activation("leaky_relu", "negative_slope", negative_slope=0.01)
hardtanh = _activation("hardtanh", "min_val", "max_val", min_val=-1.0, max_val=1.0)
threshold = _activation("threshold", "threshold", "value")


def rrelu(input, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False):
    found = aten("rrelu")(input, lower, upper, training)
    return input.copy_(found) if inplace else found


def logsigmoid(input):
    return aten("log_sigmoid")(input)


@_samples_too
def gelu(input, approximate: str = "none"):
    return aten("gelu")(input, approximate=approximate)


def softmax(input, dim: int, dtype=None):
    if isinstance(input, NestedTensor):
        return input.softmax(dim, dtype)
    return aten("softmax")(input, dim, dtype)


def log_softmax(input, dim: int, dtype=None):
    return aten("log_softmax")(input, dim, dtype)


def softmin(input, dim: int, dtype=None):
    return aten("softmax")(-input, dim, dtype)


def softsign(input):
    return input / (input.abs() + 1)


def tanhshrink(input):
    return input - input.tanh()


def normalize(input, p: float = 2.0, dim: int = 1, eps: float = 1e-12):
    return input / input.norm(p, dim, True).clamp_min(eps)


@_samples_too
def dropout(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    found = aten("dropout")(input, p, training)
    return input.copy_(found) if inplace else found


@_samples_too
def linear(input, weight, bias=None):
    return aten("linear")(input, weight, bias)


# Lookups and norms.


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
              sparse: bool = False):
    if padding_idx is None:
        padding_idx = -1
    elif padding_idx < 0:
        padding_idx += weight.shape[0]
    if max_norm is not None:
        before = _engine._set_grad_enabled(False)
        try:
            aten("embedding_renorm_")(weight.detach(), input, max_norm, norm_type)
        finally:
            _engine._restore_grad_mode(before)
    return aten("embedding")(weight, input, padding_idx, scale_grad_by_freq, sparse)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training: bool = False, momentum: float = 0.1,
               eps: float = 1e-5):
    return aten("batch_norm")(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5):
    return aten("instance_norm")(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@_samples_too
def layer_norm(input, normalized_shape, weight=None, bias=None, eps: float = 1e-5):
    return aten("layer_norm")(input, list(normalized_shape), weight, bias, eps)


def group_norm(input, num_groups: int, weight=None, bias=None, eps: float = 1e-5):
    return aten("group_norm")(input, num_groups, weight, bias, eps)


# Pooling.


def _max_pool(dims: int):
    def call(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False, return_indices: bool = False):
        op = aten(f"max_pool{dims}d_with_indices" if return_indices else f"max_pool{dims}d")
        return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)

    call.__name__ = f"max_pool{dims}d"
    return call


max_pool1d, max_pool2d, max_pool3d = _max_pool(1), _max_pool(2), _max_pool(3)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True):
    return aten("avg_pool1d")(input, kernel_size, [] if stride is None else stride, padding, ceil_mode, count_include_pad)


def _avg_pool(dims: int):
    def call(input, kernel_size, stride=None, padding=0, ceil_mode: bool = False, count_include_pad: bool = True,
             divisor_override=None):
        return aten(f"avg_pool{dims}d")(input, kernel_size, [] if stride is None else stride, padding, ceil_mode, count_include_pad,
                                        divisor_override)

    call.__name__ = f"avg_pool{dims}d"
    return call


avg_pool2d, avg_pool3d = _avg_pool(2), _avg_pool(3)


def _with_indices(pool, name: str):
    def call(*args, **kwargs):
        return pool(*args, **{**kwargs, "return_indices": True})

    call.__name__ = call.__qualname__ = name + "_with_indices"
    return call


def _adaptive(name: str, dims: int):
    def sizes(input, output_size):
        given = [output_size] * dims if output_size is None or isinstance(output_size, int) else list(output_size)
        return [have if want is None else want for want, have in zip(given, input.shape[-dims:])]

    def average(input, output_size):
        return aten(f"adaptive_avg_pool{dims}d")(input, sizes(input, output_size))

    def largest(input, output_size, return_indices: bool = False):
        found = aten(f"adaptive_max_pool{dims}d")(input, sizes(input, output_size))
        return found if return_indices else found[0]

    return average if name == "avg" else largest


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("avg", n) for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive("max", n) for n in (1, 2, 3))
adaptive_max_pool1d_with_indices = _with_indices(adaptive_max_pool1d, "adaptive_max_pool1d")
adaptive_max_pool2d_with_indices = _with_indices(adaptive_max_pool2d, "adaptive_max_pool2d")
adaptive_max_pool3d_with_indices = _with_indices(adaptive_max_pool3d, "adaptive_max_pool3d")
max_pool1d_with_indices = _with_indices(max_pool1d, "max_pool1d")
max_pool2d_with_indices = _with_indices(max_pool2d, "max_pool2d")
max_pool3d_with_indices = _with_indices(max_pool3d, "max_pool3d")


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    return aten("im2col")(input, *(_pair(value) for value in (kernel_size, dilation, padding, stride)))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    return aten("col2im")(input, *(_pair(value) for value in (output_size, kernel_size, dilation, padding, stride)))


def _pair(value):
    return [value, value] if isinstance(value, int) else list(value)


def pad(input, pad, mode: str = "constant", value=None):
    return aten("pad")(input, list(pad), mode, value)


# Losses.


def cross_entropy(input, target, weight=None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0):
    return aten("cross_entropy_loss")(input, target, weight, _reduction(reduction), ignore_index, label_smoothing)


def nll_loss(input, target, weight=None, ignore_index: int = -100, reduction: str = "mean"):
    return aten("nll_loss_nd")(input, target, weight, _reduction(reduction), ignore_index)


def _loss(op_name: str):
    def call(input, target, reduction: str = "mean"):
        return aten(op_name)(input, target, _reduction(reduction))

    call.__name__ = call.__qualname__ = op_name
    return call


mse_loss, l1_loss, soft_margin_loss = _loss("mse_loss"), _loss("l1_loss"), _loss("soft_margin_loss")
multilabel_margin_loss = _loss("multilabel_margin_loss")


def smooth_l1_loss(input, target, reduction: str = "mean", beta: float = 1.0):
    return aten("smooth_l1_loss")(input, target, _reduction(reduction), beta)


def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0):
    return aten("huber_loss")(input, target, _reduction(reduction), delta)


def binary_cross_entropy(input, target, weight=None, reduction: str = "mean"):
    return aten("binary_cross_entropy")(input, target, weight, _reduction(reduction))


def binary_cross_entropy_with_logits(input, target, weight=None, reduction: str = "mean", pos_weight=None):
    return aten("binary_cross_entropy_with_logits")(input, target, weight, pos_weight, _reduction(reduction))


def kl_div(input, target, reduction: str = "mean", log_target: bool = False):
    if reduction == "batchmean":
        return aten("kl_div")(input, target, 2, log_target=log_target) / input.shape[0]
    return aten("kl_div")(input, target, _reduction(reduction), log_target=log_target)


def cosine_embedding_loss(input1, input2, target, margin: float = 0.0, reduction: str = "mean"):
    return aten("cosine_embedding_loss")(input1, input2, target, margin, _reduction(reduction))


def margin_ranking_loss(input1, input2, target, margin: float = 0.0, reduction: str = "mean"):
    return aten("margin_ranking_loss")(input1, input2, target, margin, _reduction(reduction))


def hinge_embedding_loss(input, target, margin: float = 1.0, reduction: str = "mean"):
    return aten("hinge_embedding_loss")(input, target, margin, _reduction(reduction))


def triplet_margin_loss(anchor, positive, negative, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
                        reduction: str = "mean"):
    return aten("triplet_margin_loss")(anchor, positive, negative, margin, p, eps, swap, _reduction(reduction))


def multi_margin_loss(input, target, p: int = 1, margin: float = 1.0, weight=None, reduction: str = "mean"):
    return aten("multi_margin_loss")(input, target, p, margin, weight, _reduction(reduction))


def poisson_nll_loss(input, target, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"):
    return aten("poisson_nll_loss")(input, target, log_input, full, eps, _reduction(reduction))


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False):
    return aten("ctc_loss")(log_probs, targets, input_lengths, target_lengths, blank, _reduction(reduction), zero_infinity)
