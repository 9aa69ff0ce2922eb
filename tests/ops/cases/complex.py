"""Operators on complex tensors."""

import cmath
import math

import torch

from tests.ops.case import COMPLEX, FULL, case, t

CASES = []
C64 = [torch.complex64]
LONG = torch.int64


def rows(op, *args, dtypes=COMPLEX, **options):
    CASES.append(case(op, *args, dtypes=dtypes, **options))


# Unary functions.
for name in ["neg", "square", "reciprocal", "exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
             "asin", "acos", "atan", "asinh", "acosh", "atanh", "sigmoid", "sgn", "abs", "angle", "sinc", "silu", "positive", "conj",
             "conj_physical", "real", "imag", "isnan", "isinf", "isfinite", "isreal", "logical_not", "view_as_real", "resolve_conj"]:
    rows(f"aten::{name}", t(3, 4), rtol=1e-4 if name in ("tan", "atanh") else None)
    rows(f"aten::{name}", t(0, 2))
    rows(f"aten::{name}", t())
rows("aten::abs", t(values=[0j, 3 + 4j, -1j]), gradient="first")
rows("aten::sgn", t(values=[0j, 3 + 4j, -1j]), gradient="first")
rows("aten::floor", t(3), dtypes=C64, error=("", "has no kernel for Complex"))
rows("aten::relu", t(3), dtypes=C64, error=("", "has no kernel for Complex"))

# Binary functions, with broadcasting and mixed dtypes.
for name in ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "eq.Tensor", "ne.Tensor", "logical_and", "logical_or", "logical_xor",
             "pow.Tensor_Tensor"]:
    rows(f"aten::{name}", t(3, 4), t(4))
    rows(f"aten::{name}", t(3, 1), t(1, 2, dtype=torch.float32), dtypes=C64)
    rows(f"aten::{name}", t(2, dtype=torch.float64, low=0.1), t(2), dtypes=C64)
    rows(f"aten::{name}", t(2, dtype=LONG, low=1), t(2))
    rows(f"aten::{name}", t(3), t(dtype=torch.complex128), dtypes=C64)
for name in ["add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar", "eq.Scalar", "ne.Scalar", "rsub.Scalar", "pow.Tensor_Scalar"]:
    for number in [2, 0.5, -1.5]:
        rows(f"aten::{name}", t(3, 4), number)
rows("aten::add.Tensor", t(3), t(3), alpha=2.5)
rows("aten::sub.Tensor", t(3), t(3), alpha=-2)
rows("aten::rsub.Tensor", t(3), t(3), alpha=2)
rows("aten::pow.Scalar", 2, t(3))
rows("aten::pow.Tensor_Scalar", t(values=[0j, 1 + 1j]), 0)
rows("aten::div.Tensor_mode", t(3), t(3), rounding_mode=None)
rows("aten::div.Tensor_mode", t(3), t(3), rounding_mode="floor", error=("", "not defined for complex"))
rows("aten::addcmul", t(3), t(2, 3), t(3), value=0.5)
rows("aten::addcdiv", t(3), t(2, 3), t(3), value=2)
rows("aten::lerp.Scalar", t(3), t(3), 0.3)
rows("aten::lerp.Tensor", t(3), t(3), t(3))
rows("aten::where.self", t(3, 4, dtype=torch.bool), t(3, 4), t(4))
rows("aten::masked_fill.Scalar", t(3, 4), t(4, dtype=torch.bool), 2.5)
rows("aten::masked_fill.Tensor", t(3, 4), t(4, dtype=torch.bool), t())
rows("aten::isclose", t(values=[1 + 1j, 2j, math.nan]), t(values=[1 + 1j, 2.1j, math.nan]), equal_nan=True)
rows("aten::allclose", t(3), t(3))
rows("aten::equal", t(3), t(3))
rows("aten::complex", t(3, 1), t(2), dtypes=FULL)
rows("aten::complex", t(2), t(2), dtypes=[torch.int64], error=("", "Expected both inputs to be"))
rows("aten::polar", t(3, low=0.1), t(3), dtypes=FULL)
rows("aten::view_as_complex", t(3, 2), dtypes=FULL, strided=False)
rows("aten::view_as_complex", t(3, 3), dtypes=FULL, strided=False, error="last dimension of size 2")
rows("aten::imag", t(3), dtypes=FULL, error="imag is not implemented for tensors with non-complex dtypes")

# Sums and products.
for name, args in {"sum": (), "sum.dim_IntList": ([1],), "mean": (), "mean.dim": ([0, 1], True), "prod": (), "prod.dim_int": (1,),
                   "cumsum": (1,), "cumprod": (1,), "any": (), "all": (), "any.dim": (1,), "count_nonzero": (),
                   "var.correction": ([1],), "std.correction": ([1],), "var_mean.correction": ([1],), "std_mean.correction": ([1],),
                   "norm.Scalar": (2,), "norm.ScalarOpt_dim": (1, [1]), "linalg_vector_norm": (3.0,)}.items():
    options = {"correction": 1} if "correction" in name else {}
    rows(f"aten::{name}", t(3, 4), *args, **options)
    rows(f"aten::{name}", t(5, 3), *args, **options)
rows("aten::prod.dim_int", t(values=[[0j, 1 + 1j, 2j], [0j, 0j, 1j]]), 1)
rows("aten::cumprod", t(values=[[0j, 1 + 1j, 2j], [1j, 0j, 1j]]), 1)
rows("aten::nonzero", t(values=[0j, 1j, 2]))
rows("aten::max", t(3), dtypes=C64, error=("", "has no kernel for Complex"))

# Moved elements.
INDEX = t(values=[2, 0], dtype=LONG)
rows("aten::cat", [t(2, 3), t(1, 3)], 0)
rows("aten::cat", [t(2, 3), t(1, 3, dtype=torch.float64)], 0, dtypes=C64)
rows("aten::stack", [t(2, 3), t(2, 3)], 1)
rows("aten::index_select", t(3, 4), 1, INDEX)
rows("aten::gather", t(3, 4), 1, t(values=[[0, 3], [1, 1], [2, 0]], dtype=LONG))
rows("aten::scatter.src", t(3, 4), 1, t(values=[[0, 3]], dtype=LONG), t(1, 2))
rows("aten::scatter_add", t(3, 4), 1, t(values=[[0, 0]], dtype=LONG), t(1, 2))
rows("aten::index.Tensor", t(3, 4), [INDEX])
rows("aten::index_put", t(3, 4), [INDEX], t(2, 4), True)
rows("aten::index_put_", t(3, 4), [INDEX], t(2, 4))
rows("aten::index_add", t(3, 4), 0, INDEX, t(2, 4), alpha=2)
rows("aten::index_copy", t(3, 4), 0, INDEX, t(2, 4))
rows("aten::index_fill.int_Scalar", t(3, 4), 0, INDEX, 2.5)
rows("aten::take", t(3, 4), INDEX)
rows("aten::masked_select", t(3, 4), t(3, 4, dtype=torch.bool), strided=False)
rows("aten::masked_scatter", t(3, 4), t(4, dtype=torch.bool), t(12))
rows("aten::flip", t(3, 4), [0, 1])
rows("aten::roll", t(3, 4), [1], [1])
rows("aten::rot90", t(3, 4))
rows("aten::repeat", t(2, 3), [2, 2])
rows("aten::tril", t(3, 4))
rows("aten::triu", t(3, 4), 1)
rows("aten::diag_embed", t(2, 3))
rows("aten::diag", t(3))
rows("aten::trace", t(3, 3))
rows("aten::block_diag", [t(2, 3), t(1, 1)])
rows("aten::constant_pad_nd", t(2, 3), [1, 2], 2.5)
rows("aten::pad", t(1, 2, 4), [1, 2], "reflect")
rows("aten::unfold", t(2, 6), 1, 3, 2)
rows("aten::select.int", t(3, 4), 0, 1)
rows("aten::slice.Tensor", t(3, 6), 1, 1, 6, 2)
rows("aten::transpose.int", t(3, 4), 0, 1)
rows("aten::mH", t(2, 3, 4))
rows("aten::matrix_H", t(3, 4))
rows("aten::diff", t(3, 4))
rows("aten::clone", t(3, 4))
rows("aten::to.dtype", t(3, 4), torch.complex128)
rows("aten::to.dtype", t(3, 4), torch.complex64, dtypes=FULL + [LONG, torch.bool])
rows("aten::copy_", t(3, 4), t(4))
rows("aten::copy_", t(3, 4), t(4, dtype=torch.float32))
rows("aten::fill_.Scalar", t(3, 4), 2.5)
rows("aten::zero_", t(3, 4))
rows("aten::zeros_like", t(3, 4))
rows("aten::ones_like", t(3, 4))
rows("aten::full_like", t(3, 4), 2)

# Products of matrices.
rows("aten::mm", t(3, 4), t(4, 5))
rows("aten::mm", t(3, 4), t(5, 2), error="cannot be multiplied")
rows("aten::bmm", t(2, 3, 4), t(2, 4, 5))
rows("aten::mv", t(3, 4), t(4))
# Debian's PyTorch returns 0.
rows("aten::dot", t(4), t(4), reference=lambda a, b: (a * b).sum())
rows("aten::vdot", t(4), t(4), reference=lambda a, b: (a.conj() * b).sum())
rows("aten::outer", t(3), t(4))
rows("aten::matmul", t(2, 3, 4), t(4, 5))
rows("aten::matmul", t(2, 3, 4), t(4))
rows("aten::addmm", t(5), t(3, 4), t(4, 5), beta=0.5, alpha=2)
rows("aten::baddbmm", t(2, 3, 5), t(2, 3, 4), t(2, 4, 5), beta=2, alpha=0.5)
rows("aten::addmv", t(3), t(3, 4), t(4))
rows("aten::addr", t(3, 4), t(3), t(4))
rows("aten::linear", t(2, 3, 4), t(5, 4), t(5))
rows("aten::kron", t(2, 3), t(2, 2))
rows("aten::tensordot", t(2, 3), t(3, 2), [1], [0])
rows("aten::linalg_vecdot", t(2, 3), t(2, 3))
rows("aten::conv1d", t(2, 3, 8), t(4, 3, 3), t(4), atol=1e-4)
rows("aten::conv2d", t(1, 2, 5, 6), t(3, 2, 3, 3), atol=1e-4)
rows("aten::conv_transpose1d", t(2, 3, 5), t(3, 2, 3), atol=1e-4)

# Complex numbers of scripts.
for name, result in {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "eq": lambda a, b: a == b,
                     "ne": lambda a, b: a != b}.items():
    for overload, a, b in [("complex", 1 + 2j, 3 - 1j), ("complex_int", 1 + 2j, 3), ("int_complex", 3, 3 + 0j),
                           ("complex_float", 1 + 2j, 0.5), ("float_complex", 0.5, 1j)]:
        rows(f"aten::{name}.{overload}", a, b, dtypes=C64, reference=result, strided=False)
rows("aten::div.complex", 1 + 2j, 3 - 1j, dtypes=C64, reference=lambda a, b: a / b, strided=False)
rows("aten::neg.complex", 1 + 2j, dtypes=C64, reference=lambda a: -a, strided=False)
rows("prim::abs.complex", 3 + 4j, dtypes=C64, reference=abs, strided=False)
for name in ("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"):
    rows(f"aten::{name}.complex", 1 + 2j, dtypes=C64, reference=getattr(cmath, name), strided=False, rtol=1e-12)
rows("aten::angle.complex", -1 + 2j, dtypes=C64, reference=cmath.phase, strided=False, rtol=1e-12)
for number in (3, -3, 0):
    rows("aten::angle.int", number, dtypes=C64, reference=lambda a: cmath.phase(a), strided=False, rtol=1e-12)
for number in (2.5, -2.5, math.nan):
    rows("aten::angle.float", number, dtypes=C64, reference=lambda a: cmath.phase(a), strided=False, rtol=1e-12)
for name in ("isnan", "isinf", "isfinite"):
    for number in (1 + 2j, complex(math.nan, 1), complex(0, math.inf)):
        rows(f"aten::{name}.complex", number, dtypes=C64, reference=getattr(cmath, name), strided=False)
for overload, a, b in [("complex", 1 + 2j, 0.5 - 1j), ("complex_float", 1 + 2j, 2.5), ("float_complex", 2.5, 1 - 1j)]:
    rows(f"aten::pow.{overload}", a, b, dtypes=C64, reference=pow, strided=False, rtol=1e-12)
rows("aten::sum.complex", [1 + 2j, 3 - 1j, 1j], dtypes=C64, reference=sum, strided=False)
rows("aten::tensor.complex", 1 + 2j, dtypes=C64, reference=lambda a: torch.tensor(a), strided=False)
for overload, a, b in [("int_int", 1, 2), ("int_float", 1, 0.5), ("float_int", 0.5, 2), ("float_float", 0.5, 1.5), ("bool_bool", True, False),
                       ("bool_int", True, 2), ("bool_float", True, 0.5), ("int_bool", 3, True), ("float_bool", 0.5, True)]:
    rows(f"aten::Complex.{overload}", a, b, dtypes=C64, reference=complex, strided=False)
rows("aten::Complex.Scalar", 2, dtypes=C64, reference=complex, strided=False)
