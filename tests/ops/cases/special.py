"""Special functions, and elementwise operators of PyTorch that few models use."""

import math

import torch

from tests.ops.case import FLOATING, FULL, INTEGRAL, case, t

BFLOAT = [torch.bfloat16]
INTS = [torch.int32, torch.int64, torch.uint8, torch.bool]
INF, NAN = math.inf, math.nan
EDGES = t(values=[0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-30, -1e-30, 1e-5, 88.5, -88.5, 1e4, -1e4])
EDGES_2 = t(values=[1.0, 2.0, 0.0, -0.0, INF, 1.0, 2.0, NAN, 3.0, 0.5, 2.5, 1.0, -1.0, 0.25])

CASES = []


def unary(name, dtypes, *points, low=-3.0, high=3.0, edges=EDGES, **options):
    """`points` are values beside the boundaries between PyTorch's approximations."""
    spec = dict(low=low, high=high)
    CASES.append(case(f"aten::{name}", t(2, 3, 5, **spec), dtypes=dtypes, **options))
    CASES.append(case(f"aten::{name}", t(700, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(0, 3, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(**spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", edges, dtypes=FULL, **{**options, "gradient": options.get("gradient", "first")}))
    if points:
        CASES.append(case(f"aten::{name}", t(values=list(points)), dtypes=FULL, **options))


def binary(name, dtypes, *, low=0.1, high=4.0, edges=True, **options):
    spec = dict(low=low, high=high)
    CASES.append(case(f"aten::{name}", t(2, 3, 5, **spec), t(5, **spec), dtypes=dtypes, **options))
    CASES.append(case(f"aten::{name}", t(3, 1, **spec), t(1, 4, **spec), dtypes=dtypes, **options))
    CASES.append(case(f"aten::{name}", t(600, **spec), t(600, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(0, 3, **spec), t(3, **spec), dtypes=FULL, **options))
    CASES.append(case(f"aten::{name}", t(**spec), t(4, **spec), dtypes=FULL, **options))
    if edges:
        CASES.append(case(f"aten::{name}", EDGES, EDGES_2, dtypes=FULL, **{**options, "gradient": "first"}))


# Modified Bessel functions: the boundary is at 8, for K at 2.
NEAR_8 = [7.9, 8.0, 8.1, 40.0, -7.9, -8.1, -40.0, 0.01]
for name in ["i0", "special_i0e"]:
    unary(name, FULL + BFLOAT + INTS, *NEAR_8, low=-12.0, high=12.0)
for name in ["special_i1", "special_i1e"]:
    unary(name, FULL + INTS, *NEAR_8, low=-12.0, high=12.0)
for name in ["special_modified_bessel_i0", "special_modified_bessel_i1"]:
    unary(name, FULL + INTS, *NEAR_8, low=-12.0, high=12.0)
for order in [0, 1]:
    for name in [f"special_modified_bessel_k{order}", f"special_scaled_modified_bessel_k{order}"]:
        unary(name, FULL + INTS, 1.9, 2.0, 2.1, 0.01, -2.0, 80.0, low=0.0, high=12.0)
    # PyTorch's approximations are off by up to 9e-7; the results must be the same.
    for kind in "jy":
        points = [4.1, 4.9, 5.0, 5.1, 6.0, 7.0, 8.5, 9.1, 0.01, 1e-6, -6.0, 300.0]
        unary(f"special_bessel_{kind}{order}", FULL + INTS, *points, low=-30.0, high=30.0)
unary("special_spherical_bessel_j0", FULL + INTS, 0.49, 0.5, 0.51, -0.49, -0.5, -0.51, 0.01, low=-20.0, high=20.0)
unary("special_airy_ai", FULL + INTS, -3.16, -2.1, -2.09, -2.08, 2.08, 2.09, 2.1, 8.3, 8.4, 103.8, 104.0, low=-12.0, high=10.0)

# Where sin(pi x) is a rounding error of 0.
CASES.append(case("aten::polygamma", 1, t(values=[0.0, -1.0, -2.0, -3.5, 0.499, 0.501]), dtypes=FULL, rtol=1e-5, gradient=False))
CASES.append(case("aten::digamma", t(values=[-0.999, -5.001, -40.01, 0.0, -3.0, 10.0]), dtypes=FULL, gradient=False))

unary("special_ndtr", FULL + BFLOAT + INTS, -5.0, -1.5, 5.0)
unary("special_ndtri", FULL + INTS, 0.0, 1.0, -0.1, 1.1, 1e-20, 1e-14, 0.135, 0.136, 0.864, 0.865, low=0.01, high=0.99)
# At minus infinity PyTorch's gradient is NaN.
unary("special_log_ndtr", FULL + INTS, -50.0, -1.01, -0.99, 7.0, low=-6.0, high=6.0, edges=t(values=[0.0, INF, NAN, 1e-30, 88.5, -88.5]))
CASES.append(case("aten::special_log_ndtr", t(values=[-INF]), dtypes=FULL, gradient=False))
unary("special_erfcx", FULL + INTS, -26.6, -26.8, -6.2, -6.0, -1.0, 0.5, 19.9, 20.1, 49.0, 51.0, 1e3, low=-3.0, high=25.0)
unary("special_entr", FULL + BFLOAT + INTS, 0.3, 2.0, low=0.1, high=3.0)
unary("sinc", FULL + BFLOAT + INTS, 0.1, 0.5, 1.0, 2.5, -2.5, low=-3.0, high=3.0)
# Second gradients at 0 are NaN in PyTorch, and here.
CASES.append(case("aten::sinc", t(values=[0.0, 0.25]), dtypes=FULL, gradient="no differences"))

POLYNOMIALS = [f"{shifted}chebyshev_polynomial_{kind}" for shifted in ["", "shifted_"] for kind in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
# The ends of the range, and degrees on both sides of the switch to sines and cosines.
AT = t(values=[[-1.0], [1.0], [0.0], [-0.3], [0.7], [0.999], [1.5], [-1.7], [NAN]])
DEGREES = t(values=[-1.0, 0.0, 1.0, 2.0, 3.9, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 25.0, NAN, INF, -INF, 1e19])
for name in POLYNOMIALS:
    op = f"aten::special_{name}"
    CASES.append(case(op, AT, DEGREES, dtypes=FULL))
    CASES.append(case(op, t(3, 4), t(4, low=0.0, high=9.0), dtypes=FULL + INTS))
    CASES.append(case(op, t(500, low=-1.0, high=1.0), t(500, dtype=torch.int64, low=0, high=12), dtypes=FULL))
    CASES.append(case(op, t(2, 3, dtype=torch.int64), t(3, low=0.0, high=5.0), dtypes=FULL))
    CASES.append(case(op, t(0, 3), t(3), dtypes=FULL))
    for degree in [0, 1, 3, 7]:
        CASES.append(case(f"{op}.n_scalar", t(3, 4, low=-1.2, high=1.2), degree, dtypes=FULL + INTS))
    CASES.append(case(f"{op}.n_scalar", t(3, 4), 2.5, dtypes=FULL + [torch.int64]))
    for x in [0.5, 1, -1.5]:
        CASES.append(case(f"{op}.x_scalar", x, t(3, 4, low=0.0, high=9.0), dtypes=FULL + INTS))

binary("special_xlog1py", FLOATING + INTS)
CASES.append(case("aten::special_xlog1py", t(values=[0.0, 0.0, 0.0, 2.0, 1.0]), t(values=[-1.0, -2.0, 1.0, -1.0, -1.5]), dtypes=FULL, gradient="first"))
CASES.append(case("aten::special_xlog1py.self_scalar", 1.5, t(3, 4, low=0.1), dtypes=FULL + INTS))
CASES.append(case("aten::special_xlog1py.other_scalar", t(3, 4), 0.5, dtypes=FULL + INTS))
CASES.append(case("aten::special_xlog1py.other_scalar", t(3, 4), 2, dtypes=FULL + INTS))

binary("special_zeta", FULL + INTS, low=1.1, high=6.0)
ZETA_AT = [[0.5, 1.0, 2.0, 9.5, 30.0, -0.5, -3.25, -40.7, 0.0, -2.0, INF, 1e-3]]
CASES.append(case("aten::special_zeta", t(values=[[2.0], [3.0], [1.0], [0.5], [2.5], [60.0]]), t(values=ZETA_AT), dtypes=FULL))
CASES.append(case("aten::special_zeta", t(values=[2, 3, 4], dtype=torch.int64), t(2, 3, low=0.2), dtypes=FULL))
CASES.append(case("aten::special_zeta.self_scalar", 2.5, t(3, 4, low=0.2), dtypes=FULL + INTS))
CASES.append(case("aten::special_zeta.self_scalar", 3, t(3, 4, low=0.2), dtypes=FULL + INTS))
CASES.append(case("aten::special_zeta.other_scalar", t(3, 4, low=1.5), 2.5, dtypes=FULL + INTS))

# Below and above the diagonal, small arguments, and both regions of Temme's expansion.
GAMMA_A = t(values=[[0.0], [1e-3], [0.4], [1.0], [5.0], [30.0], [150.0], [200.0], [250.0], [1e4], [INF], [-1.0], [NAN]])
GAMMA_X = t(values=[0.0, 1e-4, 0.3, 0.5, 0.6, 1.05, 1.2, 4.0, 25.0, 31.0, 170.0, 199.0, 245.0, 260.0, 1e4, 1.02e4, INF, -1.0])
for name in ["igamma", "igammac"]:
    binary(name, FLOATING)
    CASES.append(case(f"aten::{name}", GAMMA_A, GAMMA_X, dtypes=FULL, gradient=False))
    # PyTorch has a gradient only for the second argument, and raises if the first requires one.
    CASES.append(case(f"aten::{name}", t(values=[1, 2, 7], dtype=torch.int64), t(2, 3, low=0.2), dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(2, 3), t(3), dtypes=[torch.int64], error=("not implemented for 'Long'", "is not defined for int64")))
for order in [1, 2, 5]:
    CASES.append(case("aten::mvlgamma", t(3, 4, low=2.6, high=9.0), order, dtypes=FULL))
CASES.append(case("aten::mvlgamma", t(3, 4, low=5, high=9), 2, dtypes=[torch.bfloat16, torch.int64, torch.uint8]))
CASES.append(case("aten::mvlgamma", t(low=2.6, high=9.0), 3, dtypes=FULL))
CASES.append(case("aten::mvlgamma", t(0, 2), 3, dtypes=FULL))
CASES.append(case("aten::mvlgamma", t(3), 0, error="p has to be greater than or equal to 1"))
CASES.append(case("aten::mvlgamma", t(3), 1, dtypes=[torch.bool], error="may not be a boolean tensor"))

for name in ["logaddexp", "logaddexp2"]:
    binary(name, FULL + BFLOAT, low=-4.0)
    CASES.append(case(f"aten::{name}", t(values=[INF, -INF, INF, 800.0, -800.0]), t(values=[INF, -INF, -INF, 799.0, -801.0]), dtypes=FULL, gradient=False))
    CASES.append(case(f"aten::{name}", t(2, 3), t(3), dtypes=[torch.int64], error=("not implemented for 'Long'", "is not defined for int64")))
binary("nextafter", FULL + BFLOAT, low=-4.0)
NEXT_FROM = [0.0, 0.0, -0.0, 1.0, 1.0, -1.0, -1.0, 5.0, INF, -INF, 1e-45, NAN, 2.0]
NEXT_TO = [1.0, -1.0, 0.0, 2.0, 0.0, 0.0, -2.0, 5.0, 0.0, 0.0, 0.0, 1.0, NAN]
CASES.append(case("aten::nextafter", t(values=NEXT_FROM), t(values=NEXT_TO), dtypes=FULL + BFLOAT, rtol=0.0, atol=0.0))
CASES.append(case("aten::nextafter", t(2, 3), t(3), dtypes=[torch.float16], error=("not implemented for 'Half'", "float16")))
for decimals in [0, 1, 3, -1, -2]:
    CASES.append(case("aten::round.decimals", t(3, 4, low=-300.0, high=300.0), decimals=decimals, dtypes=FULL))
CASES.append(case("aten::round.decimals", t(values=[0.25, 0.35, -0.25, 2.5, -2.5, INF, -INF, NAN]), decimals=1, dtypes=FULL))
CASES.append(case("aten::round.decimals", t(3, 4, low=-30.0, high=30.0), decimals=1, dtypes=BFLOAT))
CASES.append(case("aten::round.decimals", t(2, 3), decimals=1, dtypes=[torch.int64], error=("not implemented for 'Long'", "is not defined for int64")))
for name in ["gcd", "lcm"]:
    op = f"aten::{name}"
    CASES.append(case(op, t(4, 6, low=-9, high=9), t(6, low=-9, high=9), dtypes=INTEGRAL))
    CASES.append(case(op, t(values=[0, 0, 7, -12, 12, -12, 1]), t(values=[0, 5, 0, 18, -18, -18, -1]), dtypes=[torch.int32, torch.int64]))
    CASES.append(case(op, t(0, 3), t(3), dtypes=[torch.int64]))
    CASES.append(case(op, t(2, 3), t(3), dtypes=[torch.bool], error=("not implemented for 'Bool'", "is not defined for bool")))

# Aliases of operators that have more rows in other files.
SAME = ["digamma", "erf", "erfc", "exp2", "expit", "expm1", "gammaln", "i0", "log1p", "psi", "round", "sinc"]
for name in SAME:
    CASES.append(case(f"aten::special_{name}", t(3, 4, low=0.1, high=2.0), dtypes=FULL))
CASES.append(case("aten::special_erfinv", t(3, 4, low=-0.9, high=0.9), dtypes=FULL))
CASES.append(case("aten::special_gammainc", t(3, 4, low=0.1), t(3, 4, low=0.1), dtypes=FULL))
CASES.append(case("aten::special_gammaincc", t(3, 4, low=0.1), t(3, 4, low=0.1), dtypes=FULL))
CASES.append(case("aten::special_logit", t(3, 4, low=0.1, high=0.9), dtypes=FULL))
CASES.append(case("aten::special_logit", t(3, 4), 0.2, dtypes=FULL))
CASES.append(case("aten::special_logsumexp", t(3, 4), [1], True, dtypes=FULL))
CASES.append(case("aten::special_multigammaln", t(3, 4, low=1.5), 2, dtypes=FULL))
CASES.append(case("aten::special_polygamma", 2, t(3, 4, low=0.2), dtypes=FULL, rtol=1e-5))
# Where the original's overload has a name that the alias lacks in PyTorch.
CASES.append(case("aten::special_softmax.int", t(3, 4), 1, None, dtypes=FULL, reference=lambda x, dim, dtype: torch.special.softmax(x, dim)))
CASES.append(case("aten::special_log_softmax.int", t(3, 4), 1, None, dtypes=FULL, reference=lambda x, dim, dtype: torch.special.log_softmax(x, dim)))
CASES.append(case("aten::special_xlogy.Tensor", t(3, 4), t(4, low=0.1), dtypes=FULL, reference=torch.special.xlogy))
CASES.append(case("aten::special_xlogy.Scalar_Other", t(3, 4), 1.5, dtypes=FULL, reference=torch.special.xlogy))
CASES.append(case("aten::special_round.decimals", t(3, 4), 1, dtypes=FULL, reference=lambda x, decimals: torch.special.round(x, decimals=decimals)))
