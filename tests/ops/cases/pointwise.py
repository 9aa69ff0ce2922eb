"""Elementwise operators: arithmetic, comparison, mathematics, activations, selection."""

import math

import torch

from tests.ops.case import ALL, BOOL, FLOATING, FULL, INTEGRAL, NUMERIC, case, t

INTS_AND_BOOL = INTEGRAL + BOOL
SMALL = dict(low=-0.9, high=0.9)
POSITIVE = dict(low=0.1, high=3.0)
# Infinity, NaN, zeros and the ends of the range.
EDGES = t(values=[0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 88.5, -88.5, 1e4, -1e4])
EDGES_2 = t(values=[1.0, 2.0, 0.0, -0.0, math.inf, 1.0, 2.0, math.nan, 3.0, -2.5, 2.5, 1.0, -1.0])

CASES = []


def unary(name, dtypes, *, low=-3.0, high=3.0, edges=True, **options):
    spec = dict(low=low, high=high)
    CASES.append(case(f"aten::{name}", t(2, 3, 5, **spec), dtypes=dtypes, **options))
    CASES.append(case(f"aten::{name}", t(700, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(0, 3, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(**spec), dtypes=FULL, **options))
    if edges:
        CASES.append(case(f"aten::{name}", EDGES, dtypes=FULL, **options))


FLOAT_AND_INT = FLOATING + [torch.int64, torch.uint8]
# Beyond erf's range: 1 + erf(x) is 0 from there on, and gelu multiplies it by x. At 1e20 a small step changes nothing.
FAR = [-9.0, -1e4, -1e20, 9.0, 1e20, 0.0]
CASES.append(case("aten::erf", t(values=[*FAR, -3.9, -4.0, -5.9, 3.8, 0.8749, 0.8751]), rtol=2e-7, atol=0.0))
CASES.append(case("aten::gelu", t(values=[*FAR, -5.9, 5.9]), rtol=1e-6, atol=0.0, gradient="no differences"))
for name in ["exp", "exp2", "expm1", "sin", "cos", "tan", "atan", "asinh", "tanh", "erf", "erfc", "deg2rad", "rad2deg"]:
    unary(name, FULL + [torch.bfloat16, torch.int32, torch.bool], edges=name not in ("tan",))
for name in ["sinh", "cosh"]:
    unary(name, FULL + [torch.bfloat16])
for name in ["log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal"]:
    unary(name, FULL + [torch.bfloat16, torch.int64], **POSITIVE)
unary("lgamma", FULL + [torch.bfloat16], edges=False, **POSITIVE)
unary("digamma", FULL + [torch.bfloat16], edges=False, **POSITIVE)
for order in [0, 1, 2, 5]:
    CASES.append(case("aten::polygamma", order, t(3, 4, **POSITIVE), dtypes=FULL, rtol=1e-5))
CASES.append(case("aten::polygamma", 1, t(values=[-0.3, -2.6, 0.2, 30.0]), dtypes=FULL, rtol=1e-5))
for name in ["asin", "acos", "atanh", "erfinv"]:
    unary(name, FULL + [torch.bfloat16], **SMALL)
unary("acosh", FULL + [torch.bfloat16], low=1.1, high=5.0)
unary("sigmoid", FULL + [torch.bfloat16, torch.int32])
for name in ["abs", "absolute", "neg", "negative", "positive", "square"]:
    unary(name, FULL + [torch.float16, torch.bfloat16] + INTEGRAL)
for name in ["sign", "sgn"]:
    unary(name, FULL + [torch.bfloat16] + INTS_AND_BOOL, edges=False)
for name in ["floor", "ceil", "round", "trunc", "fix"]:
    unary(name, FULL + [torch.bfloat16, torch.int32])
unary("frac", FULL + [torch.bfloat16], edges=False)
for name in ["isnan", "isinf", "isfinite", "isposinf", "isneginf", "logical_not"]:
    unary(name, FLOATING + INTS_AND_BOOL)
unary("signbit", FLOATING + INTEGRAL, edges=False)
CASES.append(case("aten::bitwise_not", t(3, 4), dtypes=INTS_AND_BOOL))

# Activations, and their gradients.
for name in ["sigmoid_backward", "tanh_backward", "silu_backward", "gelu_backward"]:
    CASES.append(case(f"aten::{name}", t(2, 3, 5), t(2, 3, 5), dtypes=FULL + [torch.bfloat16]))
    CASES.append(case(f"aten::{name}", t(0, 3), t(0, 3), dtypes=FULL))
CASES.append(case("aten::gelu_backward", t(2, 3, 5), t(2, 3, 5), approximate="tanh", dtypes=FULL))
CASES.append(case("aten::threshold_backward", t(2, 3, 5), t(2, 3, 5), 0.5, dtypes=FULL + [torch.bfloat16]))
CASES.append(case("aten::threshold_backward", t(len(EDGES.values)), EDGES, 0, dtypes=FULL))
# At NaN and at 3 and -3, PyTorch 1.13's result varies; 2.15's equals ours.
BENDS = t(values=[v for v in EDGES.values if v == v] + [3.5, -3.5, 1.5, -1.0, 0.5, -0.5])
for name, numbers in [("hardswish", []), ("hardsigmoid", []), ("hardtanh", [-1.0, 1.5]), ("hardshrink", [0.5]), ("softshrink", [0.5]),
                      ("softplus", [1.5, 3.0]), ("leaky_relu", [0.1, False]), ("leaky_relu", [0.1, True])]:
    # hardsigmoid: PyTorch multiplies doubles by one sixth in single precision.
    rtol = 1e-7 if name == "hardsigmoid" else None
    CASES.append(case(f"aten::{name}_backward", t(2, 3, 5), t(2, 3, 5, low=-2, high=2), *numbers, dtypes=FULL, rtol=rtol))
    CASES.append(case(f"aten::{name}_backward", t(len(BENDS.values)), BENDS, *numbers, dtypes=FULL, gradient=False, rtol=rtol))
for is_result in (False, True):
    CASES.append(case("aten::elu_backward", t(2, 3, 5), 1.5, 1.2, 0.7, is_result, t(2, 3, 5), dtypes=FULL + [torch.bfloat16]))
    CASES.append(case("aten::elu_backward", t(len(BENDS.values)), 1.0, 1.0, 1.0, is_result, BENDS, dtypes=FULL, gradient=False))
CASES.append(case("aten::elu_backward", t(2), -1.0, 1.0, 1.0, True, t(2), error="backward calculation is triggered with a negative slope"))
CASES.append(case("aten::leaky_relu_backward", t(2), t(2), -0.1, True, error="backward calculation is triggered with a negative slope"))
unary("relu", FULL + [torch.bfloat16] + INTEGRAL)
unary("relu6", FULL + [torch.bfloat16] + INTEGRAL, edges=False)
CASES.append(case("aten::relu6", EDGES, dtypes=FULL, gradient=False))  # for NaN: 0 or 1, depending on PyTorch's loop
for name in ["selu", "silu", "hardswish", "hardsigmoid", "log_sigmoid"]:
    unary(name, FULL + [torch.bfloat16], edges=name in ("log_sigmoid", "hardsigmoid"))
unary("mish", FULL, edges=False)
for approximate in ["none", "tanh"]:
    CASES.append(case("aten::gelu", t(3, 7), approximate=approximate, dtypes=FULL))
    CASES.append(case("aten::gelu", t(3, 700), approximate=approximate, dtypes=FULL + [torch.bfloat16]))
    CASES.append(case("aten::gelu", t(values=FAR), approximate=approximate, dtypes=FULL + [torch.bfloat16], atol=0.0,
                      gradient="no differences"))
    CASES.append(case("aten::gelu", t(0), approximate=approximate, dtypes=FULL))
for name, arguments in [("leaky_relu", (0.1,)), ("elu", (1.2, 1.5, 0.7)), ("elu", ()), ("celu", (1.3,)),
                        ("hardtanh", (-1.5, 2)), ("hardshrink", (0.75,)), ("softshrink", (0.5,)), ("threshold", (0.5, -7.0)),
                        ("softplus", (1.5, 4)), ("softplus", ())]:
    CASES.append(case(f"aten::{name}", t(3, 7), *arguments, dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(4, 200), *arguments, dtypes=FULL + [torch.bfloat16]))
    CASES.append(case(f"aten::{name}", t(2, 0), *arguments, dtypes=FULL))
CASES.append(case("aten::hardtanh", t(5, 5), -2, 2, dtypes=[torch.int64, torch.int32]))
CASES.append(case("aten::prelu", t(2, 3, 4), t(3), dtypes=FULL + [torch.bfloat16]))
CASES.append(case("aten::prelu", t(2, 3, 4), t(1), dtypes=FULL))
CASES.append(case("aten::logit", t(2, 30, low=0.05, high=0.95), dtypes=FULL))
CASES.append(case("aten::logit", t(2, 30, low=-0.5, high=1.5), 1e-3, dtypes=FULL))
CASES.append(case("aten::nan_to_num", EDGES, dtypes=FLOATING))
CASES.append(case("aten::nan_to_num", EDGES, 1.0, 2.0, -2.0, dtypes=FULL))
CASES.append(case("aten::nan_to_num", t(3, 3), dtypes=FULL + INTEGRAL))


def binary(name, dtypes, overload="", *, second=None, **options):
    op = f"aten::{name}{overload}"
    second = second or {}
    for a, b in [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((3, 4), ()), ((), (5,)), ((0, 3), (1, 3))]:
        CASES.append(case(op, t(*a), t(*b, **second), dtypes=dtypes, **options))


def mixed(name, overload="", dtypes=NUMERIC, **options):
    """Promotion between dtypes, with and without dimensions."""
    for other in [torch.int32, torch.uint8, torch.float16, torch.float64, torch.bool]:
        CASES.append(case(f"aten::{name}{overload}", t(2, 3), t(3, dtype=other), dtypes=dtypes, **options))
        CASES.append(case(f"aten::{name}{overload}", t(2, 3), t(dtype=other), dtypes=dtypes, **options))
        CASES.append(case(f"aten::{name}{overload}", t(), t(2, dtype=other), dtypes=dtypes, **options))


def scalar(name, dtypes, values, **options):
    for value in values:
        CASES.append(case(f"aten::{name}.Scalar", t(2, 3, 4), value, dtypes=dtypes, **options))
        CASES.append(case(f"aten::{name}.Scalar", t(), value, dtypes=dtypes, **options))
        CASES.append(case(f"aten::{name}.Scalar", t(0, 2), value, dtypes=dtypes, **options))


for name in ["add", "mul"]:
    binary(name, ALL, ".Tensor")
    scalar(name, NUMERIC, [2, 1.5, True])
    mixed(name, ".Tensor")
for name in ["sub", "subtract", "multiply", "rsub"]:
    binary(name, FULL + [torch.int64, torch.uint8], ".Tensor")
    scalar(name, FULL + [torch.int32], [2, 1.5])
CASES.append(case("aten::add.Tensor", t(2, 3), t(3), alpha=2, dtypes=NUMERIC))
CASES.append(case("aten::add.Scalar", t(2, 3), 3, 2, dtypes=NUMERIC))
CASES.append(case("aten::sub.Tensor", t(2, 3), t(3), alpha=0.5, dtypes=FULL))
CASES.append(case("aten::sub.Scalar", t(2, 3), 3, 2, dtypes=FULL))
CASES.append(case("aten::rsub.Scalar", t(2, 3), 1, 1, dtypes=FULL))
CASES.append(case("aten::sub.Tensor", t(2, 3), t(3), dtypes=BOOL, error="bool"))
CASES.append(case("aten::add.Tensor", t(2, 3), t(4), error="must match"))
CASES.append(case("aten::add.Tensor", EDGES, EDGES_2, dtypes=FULL))
NONZERO = dict(low=1.0, high=4.0)
for name in ["div", "divide", "true_divide"]:
    binary(name, FULL + [torch.bfloat16, torch.int64], ".Tensor", second=NONZERO)
    scalar(name, FULL + [torch.int32], [2, 1.5])
mixed("div", ".Tensor", dtypes=FULL + [torch.int64])
CASES.append(case("aten::div.Tensor", EDGES, EDGES_2, dtypes=FULL))
for mode in [None, "floor", "trunc"]:
    CASES.append(case("aten::div.Tensor_mode", t(3, 4), t(4, **NONZERO), rounding_mode=mode, dtypes=FULL + INTEGRAL))
    CASES.append(case("aten::div.Scalar_mode", t(3, 4), 2, rounding_mode=mode, dtypes=FULL + INTEGRAL))
    CASES.append(case("aten::div.Scalar_mode", t(3, 4), -1.5, rounding_mode=mode, dtypes=FULL))
for name in ["remainder", "fmod"]:
    binary(name, FULL + INTEGRAL, ".Tensor", second=NONZERO)
    scalar(name, FULL + [torch.int64], [2, -2])
    scalar(name, FULL, [1.3, -1.3])
    CASES.append(case(f"aten::{name}.Tensor", t(2, 3, dtype=torch.int64), t(values=[1, 0, 1], dtype=torch.int64), strided=False, error="ZeroDivisionError"))
binary("floor_divide", FULL + INTEGRAL, second=NONZERO)
scalar("floor_divide", FULL + [torch.int64], [2, -2])
for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    binary(name, ALL, ".Tensor")
    scalar(name, NUMERIC, [1, 0.5])
    mixed(name, ".Tensor", dtypes=FULL + [torch.int64])
    CASES.append(case(f"aten::{name}.Tensor", EDGES, EDGES_2, dtypes=FULL))
for name in ["bitwise_and", "bitwise_or", "bitwise_xor", "__and__", "__or__", "__xor__"]:
    binary(name, INTS_AND_BOOL, ".Tensor")
    scalar(name, INTEGRAL, [3])
    CASES.append(case(f"aten::{name}.Tensor", t(2), t(2), error="not "))
for name in ["__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift"]:
    overload = ".Tensor_Scalar" if name.startswith("b") else ".Scalar"
    binary(name, [torch.int32, torch.int64], ".Tensor", second=dict(low=0, high=4))
    if overload == ".Tensor_Scalar":
        CASES.append(case(f"aten::{name}.Tensor_Scalar", t(3, 4), 2, dtypes=[torch.int32, torch.int64]))
    else:
        scalar(name, [torch.int32, torch.int64], [2])
for name in ["maximum", "minimum", "fmax", "fmin"]:
    binary(name, ALL)
    CASES.append(case(f"aten::{name}", EDGES, EDGES_2, dtypes=FULL))
for name in ["max", "min"]:
    binary(name, ALL, ".other")
for name in ["logical_and", "logical_or", "logical_xor"]:
    binary(name, ALL)
    CASES.append(case(f"aten::{name}", EDGES, EDGES_2, dtypes=FULL))
binary("atan2", FULL + [torch.int64])
binary("hypot", FULL)
binary("heaviside", FULL + [torch.int64])
binary("copysign", FULL + [torch.int64], ".Tensor")
scalar("copysign", FULL, [1.0, -2.0])
for overload, arguments in [("Tensor", (t(2, 4, low=-1.0), t(4, **POSITIVE))), ("Scalar_Self", (1.5, t(4, **POSITIVE))), ("Scalar_Other", (t(2, 4), 2.0))]:
    CASES.append(case(f"aten::xlogy.{overload}", *arguments, dtypes=FULL))

# Scalars with float16 and bfloat16: 0.3 becomes 0.30078, which division and floor reveal.
HALVES = [torch.float16, torch.bfloat16]
EXACT = dict(rtol=0.0, atol=0.0)
NEAR = t(values=[[3.90625, 0.3, -3.90625, 7.5], [-0.3, 1.1, 8.25, -2.125]])
for number in [0.3, -1.1]:
    for name in ["remainder", "fmod", "floor_divide", "eq", "ne", "lt", "le", "gt", "ge"]:
        CASES.append(case(f"aten::{name}.Scalar", NEAR, number, dtypes=HALVES, **EXACT))
    for name in ["add", "sub", "rsub"]:
        CASES.append(case(f"aten::{name}.Scalar", NEAR, number, 1, dtypes=HALVES, **EXACT))
        CASES.append(case(f"aten::{name}.Scalar", NEAR, number, 0.3, dtypes=[torch.bfloat16]))
        CASES.append(case(f"aten::{name}.Tensor", NEAR, t(2, 4), alpha=number, dtypes=[torch.bfloat16]))
    CASES.append(case("aten::div.Scalar_mode", t(values=[70.0, -70.0, 4.0, 100.0, 33.5]), number, rounding_mode="floor", dtypes=HALVES, **EXACT))
    for mode in ["floor", "trunc"]:
        CASES.append(case("aten::div.Scalar_mode", NEAR, number, rounding_mode=mode, dtypes=HALVES, **EXACT))
    CASES.append(case("aten::div.Tensor_mode", NEAR, t(values=[number]), rounding_mode="trunc", dtypes=HALVES, **EXACT))
    CASES.append(case("aten::remainder.Scalar_Tensor", number, NEAR, dtypes=HALVES, **EXACT))
    CASES.append(case("aten::xlogy.Scalar_Self", number, t(2, 3, low=30.0, high=60.0), dtypes=HALVES, rtol=0.008, atol=0.0))
CASES.append(case("aten::pow.Scalar", 0.3, t(values=[9.0, 8.5, -7.0, 2.0]), dtypes=HALVES, rtol=0.008, atol=0.0))
CASES.append(case("aten::pow.Tensor_Scalar", t(values=[900.0, 700.0, 0.01, 2.0]), 2.3, dtypes=HALVES, rtol=0.008, atol=0.0))
CASES.append(case("aten::hardshrink", NEAR, 0.3, dtypes=[torch.bfloat16], **EXACT))

# Where PyTorch rounds step by step, and numbers out of the dtype's range.
WIDE = t(64, low=0.1, high=9.0)
for number in [3, -2]:
    CASES.append(case("aten::pow.Tensor_Scalar", WIDE, number, dtypes=HALVES, **EXACT))
for number in [0.3, 3.0]:
    for overload, arguments in [("Scalar_Self", (number, WIDE)), ("Scalar_Other", (WIDE, number))]:
        CASES.append(case(f"aten::xlogy.{overload}", *arguments, dtypes=HALVES, **EXACT))
    CASES.append(case("aten::special_xlog1py.self_scalar", number, WIDE, dtypes=HALVES, **EXACT))
    CASES.append(case("aten::special_xlog1py.other_scalar", WIDE, number, dtypes=HALVES, **EXACT))
CASES.append(case("aten::xlogy.Tensor", WIDE, WIDE, dtypes=HALVES, **EXACT))
CASES.append(case("aten::special_xlog1py", WIDE, WIDE, dtypes=HALVES, **EXACT))
for number in [1e5, 70000.0, -1e30]:
    CASES.append(case("aten::remainder.Scalar_Tensor", number, NEAR, dtypes=HALVES, **EXACT))
CASES.append(case("aten::bitwise_and.Scalar_Tensor", 300, t(5, low=0, high=200, dtype=torch.uint8), **EXACT))

# Bounds that are NaN.
for low, high in [(float("nan"), 1.0), (-1.0, float("nan")), (float("nan"), float("nan"))]:
    for name in ["hardtanh", "clamp"]:
        CASES.append(case(f"aten::{name}", t(20), low, high, dtypes=[torch.float32, torch.float64, torch.bfloat16], gradient=False))
for name in ["clamp_min", "clamp_max"]:
    CASES.append(case(f"aten::{name}", t(20), float("nan"), dtypes=[torch.float32, torch.bfloat16], gradient=False))

# Powers.
for exponent in [2, 3, 0.5, -1, -2, -0.5, 1.7, 0, 1]:
    CASES.append(case("aten::pow.Tensor_Scalar", t(3, 5, **POSITIVE), exponent, dtypes=FULL))
CASES.append(case("aten::pow.Tensor_Scalar", t(3, 5), 3, dtypes=INTEGRAL))
CASES.append(case("aten::pow.Tensor_Scalar", t(3, 5), -1, dtypes=[torch.int64], error="negative integer powers"))
CASES.append(case("aten::pow.Tensor_Tensor", t(3, 5, **POSITIVE), t(5), dtypes=FULL))
CASES.append(case("aten::pow.Tensor_Tensor", t(3, 5), t(5, low=0, high=4), dtypes=[torch.int64, torch.int32]))
CASES.append(case("aten::pow.Scalar", 2, t(5), dtypes=FULL))
CASES.append(case("aten::pow.Scalar", 2.5, t(5), dtypes=FULL))

# Clamping.
for low, high in [(-1, 1), (-0.5, None), (None, 0.5), (2, -2)]:
    CASES.append(case("aten::clamp", t(3, 5), low, high, dtypes=FULL + [torch.int64]))
CASES.append(case("aten::clamp", EDGES, -1.0, 1.0, dtypes=FULL))
CASES.append(case("aten::clamp", t(3), None, None, error="must not be None"))
CASES.append(case("aten::clamp.Tensor", t(3, 5), t(5, low=-2.0, high=0.0), t(3, 1, low=0.0, high=2.0), dtypes=FULL))
CASES.append(case("aten::clamp.Tensor", t(3, 5), None, t(5), dtypes=FULL))
CASES.append(case("aten::clamp_min", t(3, 5), 0.5, dtypes=FULL))
CASES.append(case("aten::clamp_max", t(3, 5), 0.5, dtypes=FULL))
for name in ["clamp_min", "clamp_max"]:
    for bound in [t(5), t(), t(2, 1, 5), t(values=[1.0, -1.0, math.nan, 0.0, 2.0])]:
        CASES.append(case(f"aten::{name}.Tensor", t(3, 5), bound, dtypes=FULL))
    CASES.append(case(f"aten::{name}.Tensor", t(), t(3), dtypes=FULL))
    CASES.append(case(f"aten::{name}.Tensor", t(3, 5), t(5), dtypes=ALL))
CASES.append(case("aten::square", t(3), dtypes=BOOL))
CASES.append(case("aten::clamp", t(3, 5), -2, 1, dtypes=[torch.uint8]))

# Three operands.
for sizes in [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), (1,)), ((), (3,), (2, 1)), ((0, 3), (3,), (1,))]:
    condition = t(*sizes[0], dtype=torch.bool)
    CASES.append(case("aten::where.self", condition, t(*sizes[1]), t(*sizes[2]), dtypes=ALL))
CASES.append(case("aten::where.self", t(2, 3, dtype=torch.bool), t(2, 3), t(3, dtype=torch.float64), dtypes=FULL))
CASES.append(case("aten::where.ScalarOther", t(2, 3, dtype=torch.bool), t(2, 3), -1.5, dtypes=FULL))
CASES.append(case("aten::where.ScalarSelf", t(2, 3, dtype=torch.bool), 2.5, t(2, 3), dtypes=FULL))
CASES.append(case("aten::where.Scalar", t(2, 3, dtype=torch.bool), 2.5, 1.5, dtypes=[torch.float32]))
CASES.append(case("aten::masked_fill.Scalar", t(2, 3), t(3, dtype=torch.bool), -7, dtypes=ALL))
CASES.append(case("aten::masked_fill.Scalar", t(2, 3), t(2, 3, dtype=torch.bool), -math.inf, dtypes=FLOATING))
CASES.append(case("aten::masked_fill.Scalar", t(2, 3), t(3, dtype=torch.bool), 1.5, dtypes=ALL))
CASES.append(case("aten::masked_fill.Scalar", t(2, 3), t(3, dtype=torch.bool), 0.5, dtypes=ALL))
for dtype, value in [(torch.int64, 1e30), (torch.int64, math.nan), (torch.int32, 2**31), (torch.uint8, 300), (torch.uint8, -256),
                     (torch.float16, -1e9)]:
    CASES.append(case("aten::masked_fill.Scalar", t(2, 3, dtype=dtype), t(3, dtype=torch.bool), value, error="without overflow"))
CASES.append(case("aten::masked_fill.Tensor", t(2, 3), t(2, 1, dtype=torch.bool), t(), dtypes=FULL))
CASES.append(case("aten::lerp.Scalar", t(2, 3), t(3), 0.3, dtypes=FULL))
CASES.append(case("aten::lerp.Scalar", t(2, 3), t(3), 0.8, dtypes=FULL))
CASES.append(case("aten::lerp.Tensor", t(2, 3), t(3), t(2, 1, low=0.0, high=1.0), dtypes=FULL))
CASES.append(case("aten::addcmul", t(2, 3), t(3), t(2, 1), value=0.5, dtypes=FULL))
CASES.append(case("aten::addcmul", t(2, 3), t(3), t(2, 1), value=2, dtypes=[torch.int64]))
CASES.append(case("aten::addcdiv", t(2, 3), t(3), t(2, 1, **NONZERO), value=0.5, dtypes=FULL))
FAR = [0.5, 2.0**22, 4194305.0, -1e7, 2.0**31, -(2.0**49), 2.0**60, 1e30, 3.4e38, -1e9, 3e8, 0.0, math.inf, math.nan, 12345678.0, -1.5, 7.0]
for name in ["sin", "cos"]:
    CASES.append(case(f"aten::{name}", t(values=FAR), dtypes=FULL, gradient=False))
    CASES.append(case(f"aten::{name}", t(values=FAR[9:10]), dtypes=FULL))
for eps in [1e-3, 0.2]:
    CASES.append(case("aten::logit", t(values=[0.0, 0.2, 0.25, 0.5, 0.8, 1.0, 2.0, -1.0]), eps, dtypes=FULL + [torch.bfloat16]))
for alpha in [-1, 2, 0, True, False]:
    CASES += [case("aten::add.Tensor", t(7, dtype=torch.bool), t(7, dtype=torch.bool), alpha=alpha),
              case("aten::add_.Tensor", t(7, dtype=torch.bool), t(7, dtype=torch.bool), alpha=alpha)]
# A number wraps to the dtype of the tensor of integers.
for dtype, number, values in [(torch.uint8, -2, [0, 3, 100, 220, 254, 255]), (torch.uint8, 300, [0, 43, 44, 45, 255]), (torch.int8, 200, [-128, -57, -56, -7, 3, 127]),
                              (torch.int16, -40000, [-32768, -7, 0, 25535, 25536, 32767]), (torch.int32, 2**31 + 5, [-(2**31), -(2**31) + 5, -7, 0, 2**31 - 1])]:
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod"):
        CASES.append(case(f"aten::{name}.Scalar", t(values=values, dtype=dtype), number, **EXACT))
    CASES.append(case("aten::floor_divide.Scalar", t(values=values, dtype=dtype), number, **EXACT))
    for mode in ("trunc", "floor"):
        CASES.append(case("aten::div.Scalar_mode", t(values=values, dtype=dtype), number, rounding_mode=mode, **EXACT))
