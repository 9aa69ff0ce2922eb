"""The operators that support nested tensors, and their implementation. _nested_tensor.py has the class."""

from __future__ import annotations

import functools
import operator as python

from tensord.engine import _engine
from tensord.engine._engine import Tensor
from tensord.engine._nested_tensor import NestedTensor, refusal
from tensord.engine._operators import aten

# Element-wise operators, which run per sample and pair up the samples if several arguments are nested. Names that end
# in _ are in place.
ELEMENTWISE = frozenset(name for names in (
    "abs absolute acos acosh asin asinh atan atanh ceil conj conj_physical cos cosh deg2rad erf erfc erfinv exp exp2 expm1 floor frac lgamma log "
    "log10 log1p log2 log_sigmoid logical_not logit nan_to_num neg negative positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin "
    "sinc sinh sqrt square tan tanh trunc bitwise_not isfinite isinf isnan isneginf isposinf isreal resolve_conj resolve_neg",
    "celu dropout elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu mish native_dropout relu relu6 selu silu softplus softshrink threshold",
    "add addcdiv addcmul atan2 clamp clamp_max clamp_min clip copysign div divide eq floor_divide fmod fmax fmin ge greater greater_equal gt hypot isclose "
    "le lerp less less_equal logaddexp logical_and logical_or logical_xor lt masked_fill maximum minimum mul multiply ne not_equal pow remainder rsub sub "
    "subtract true_divide where xlogy bitwise_and bitwise_or bitwise_xor",
    "clone contiguous detach empty_like fill full_like ones_like rand_like randn_like zero zeros_like",
) for name in names.split())

# Operators along one dimension, with the names of the method's arguments. Dimension 0, the samples, is refused.
ALONG = {"cumprod": ("dtype",), "cumsum": ("dtype",), "log_softmax": ("dtype",), "softmax": ("dtype",)}
REDUCTIONS = frozenset("all amax amin any argmax argmin mean prod sum".split())

# Aliases of argument names.
_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "self": "input"}


def by_sample(name: str, function, args, kwargs):
    """A nested tensor of function(*args, **kwargs) for each sample; what is not nested goes to each as it is."""
    nested = [item for item in (*args, *kwargs.values()) if isinstance(item, NestedTensor)]
    if any(not item.is_same_size(nested[0]) for item in nested):
        raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
    if any(isinstance(item, Tensor) and type(item) is not NestedTensor and item.ndim > 0 for item in (*args, *kwargs.values())):
        raise RuntimeError(f"{name}: Expected both self and other to be nested, but got a nested self and non-nested other")

    def of(value, i):
        return value._samples[i] if isinstance(value, NestedTensor) else value

    made = [function(*(of(item, i) for item in args), **{key: of(item, i) for key, item in kwargs.items()}) for i in range(len(nested[0]._samples))]
    if name.endswith("_"):
        return args[0]
    if made and isinstance(made[0], tuple):
        return tuple(NestedTensor(parts) for parts in zip(*made))
    return NestedTensor(made)


def is_elementwise(name: str) -> bool:
    return name in ELEMENTWISE or (name.endswith("_") and name[:-1] in ELEMENTWISE)


def call(operator, args, kwargs):
    """Runs an operator that was called with a nested tensor among its arguments."""
    name = operator.__name__.split(".")[0]
    kwargs = {_KEYWORDS.get(key, key): value for key, value in kwargs.items()}
    if "input" in kwargs:
        args = (kwargs.pop("input"), *args)
    if is_elementwise(name):
        return by_sample(name, operator, args, kwargs)
    if name in ("cat", "concat", "concatenate") and len(args) + len(kwargs) <= 2:
        return _joined(name, *args, **kwargs)
    if args and isinstance(args[0], NestedTensor):
        method = getattr(NestedTensor, name, None)
        if callable(method):
            return method(*args, **kwargs)
    if name == "embedding" and len(args) > 1 and not isinstance(args[0], NestedTensor):
        return args[1]._each(lambda sample: operator(args[0], sample, *args[2:], **kwargs))
    if name in ("layer_norm", "linear") and isinstance(args[0], NestedTensor):
        return args[0]._each(lambda sample: operator(sample, *args[1:], **kwargs))
    raise refusal(name)


def _joined(name: str, tensors, dim: int = 0):
    if dim != 0 or not all(isinstance(item, NestedTensor) for item in tensors):
        raise RuntimeError(f"{name}: nested tensors are joined with nested ones, along dimension 0")
    return NestedTensor(sample for item in tensors for sample in item._samples)


def _method(name: str, function):
    def method(*args, **kwargs):
        return by_sample(name, function, args, kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def _along(name: str):
    def method(self, dim: int, dtype=None):
        at = self._inner(name, dim)
        return self._each(lambda sample: aten(name)(sample, at, dtype=dtype))

    return method


def _reduction(name: str):
    def method(self, dim=None, keepdim: bool = False):
        if dim is None:
            raise refusal(name)
        if not keepdim:
            raise RuntimeError(f"{name}: a nested tensor keeps its dimensions, so keepdim=True is needed")
        at = self._inner(name, dim)
        return self._each(lambda sample: aten(name)(sample, at, True))

    return method


def _tensor_method(name: str):
    def method(self, *args, **kwargs):
        return self._each(lambda sample: getattr(sample, name)(*args, **kwargs))

    return method


def _binary_operator(name: str, function):
    """The method of a Python operator for two operands."""
    def method(self, other):
        return by_sample(name, function, (self, other), {}) if isinstance(other, (Tensor, int, float, complex)) else NotImplemented

    return method


def _reflected(function):
    return lambda a, b: function(b, a)


def install() -> None:
    """Gives NestedTensor its operators as methods."""
    # The binding calls this for an operator that does not take one of its arguments.
    NestedTensor._engine_call = lambda self, operator, args, kwargs: call(operator, args, kwargs)
    known = set(_engine._operator_names())
    names = (name for base in ELEMENTWISE for name in (base, base + "_") if "aten::" + name in known)
    for name in names:
        if name not in vars(NestedTensor):
            setattr(NestedTensor, name, _method(name, functools.partial(_call_operator, name)))
    for name in ALONG:
        setattr(NestedTensor, name, _along(name))
    for name in REDUCTIONS:
        setattr(NestedTensor, name, _reduction(name))
    for name in ("bfloat16", "bool", "cpu", "cuda", "double", "float", "half", "int", "long"):
        setattr(NestedTensor, name, _tensor_method(name))
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
        function = getattr(python, "and_" if name == "and" else "or_" if name == "or" else name)
        operator_name = {"truediv": "div", "floordiv": "floor_divide", "mod": "remainder"}.get(name, name)
        setattr(NestedTensor, f"__{name}__", _binary_operator(operator_name, function))
        setattr(NestedTensor, f"__r{name}__", _binary_operator(operator_name, _reflected(function)))
    for name in ("ge", "gt", "le", "lt", "eq", "ne"):
        setattr(NestedTensor, f"__{name}__", _binary_operator(name, getattr(python, name)))
    for name in ("neg", "abs", "invert"):
        setattr(NestedTensor, f"__{name}__", _method(name, getattr(python, name)))


def _call_operator(name: str, *args, **kwargs):
    return aten(name)(*args, **kwargs)
