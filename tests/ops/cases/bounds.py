"""Edge cases: indices at and beyond both ends, in every operator that takes indices, and gradients at ties, zeros and
NaN, and over more elements than one block of work."""

import math

import torch

from tests.ops.case import FULL, case, ints, t

X, BEYOND, BELOW = t(3, 4), "is out of bounds for dimension 0 with size 3", "index out of range in self"


CASES = []


def add(op, arguments, size, error, wraps=False, **named):
    """Rows for an index at every edge: `arguments` makes the arguments from the index; with `wraps` negative indices
    count from the end."""
    first = -size if wraps else 0
    for index in [size, first - 1, first - 77]:
        CASES.append(case(op, *arguments(index), error=error, **named))
    for index in {size - 1, first, 0}:
        CASES.append(case(op, *arguments(index), dtypes=FULL, **named))


ROWS = t(2, 4)
add("aten::index_add", lambda i: (X, 0, ints(0, i), ROWS), 3, BELOW, strided=False)
add("aten::index_copy", lambda i: (X, 0, ints(1, i), ROWS), 3, "out of")
add("aten::index_fill.int_Scalar", lambda i: (X, 0, ints(0, i), 1.0), 3, BEYOND, wraps=True)
add("aten::index_select", lambda i: (X, 0, ints(0, i)), 3, BELOW)
add("aten::index.Tensor", lambda i: (X, [ints(0, i)]), 3, BEYOND, wraps=True)
add("aten::index.Tensor", lambda i: (t(4, 3), [None, ints(0, i)]), 3, "is out of bounds for dimension", wraps=True)
add("aten::index_put", lambda i: (X, [ints(i)], t(4)), 3, BEYOND, wraps=True)
add("aten::index_put", lambda i: (X, [ints(0, i)], t(2, 4), True), 3, BEYOND, wraps=True)
add("aten::gather", lambda i: (X, 0, t(values=[[0, i]], dtype=torch.int64)), 3, BEYOND)
add("aten::scatter.value", lambda i: (X, 0, t(values=[[0, i]], dtype=torch.int64), 1.0), 3, BEYOND)
add("aten::scatter.src", lambda i: (X, 0, t(values=[[0, i]], dtype=torch.int64), t(1, 2)), 3, BEYOND)
add("aten::scatter_add", lambda i: (X, 0, t(values=[[0, i]], dtype=torch.int64), t(1, 2)), 3, BEYOND)
for reduce in ["sum", "prod", "mean", "amax", "amin"]:
    add("aten::scatter_reduce.two", lambda i: (X, 0, t(values=[[0, i]], dtype=torch.int64), t(1, 2), reduce), 3, BEYOND)
TAKEN = "out of range: tried to access index"
add("aten::take", lambda i: (X, ints(0, i)), 12, TAKEN, wraps=True)
add("aten::embedding", lambda i: (X, ints(0, i)), 3, BELOW)
add("aten::one_hot", lambda i: (ints(0, i), 3), 3, "Class values must be")
add("aten::nll_loss", lambda i: (t(2, 3), ints(0, i)), 3, "is out of bounds.")
add("aten::cross_entropy_loss", lambda i: (t(2, 3), ints(0, i), None, 1, -5), 3, "is out of bounds.")
add("aten::multi_margin_loss", lambda i: (t(2, 3), ints(0, i)), 3, "target out of range", strided=False)
for i in [3, -2, -3]:
    CASES.append(case("aten::multilabel_margin_loss", t(1, 3), t(values=[[0, i, -1]], dtype=torch.int64), error="out of range"))
for i in [-1, -9]:
    CASES.append(case("aten::bincount", ints(0, i), error="bincount only supports 1-d non-negative integral inputs"))
add("aten::select.int", lambda i: (X, 0, i), 3, "out of range", wraps=True)
add("aten::unbind.int", lambda i: (t(3, 2, 1), i), 3, "Dimension out of range", wraps=True)

# An empty index may have any dtype.
for dtype in [torch.float32, torch.int32, torch.bool]:
    EMPTY = t(0, 3, dtype=dtype)
    CASES.append(case("aten::gather", t(2, 3), 1, EMPTY, gradient=False))
    CASES.append(case("aten::scatter.value", t(2, 3), 1, EMPTY, 1.0, gradient=False))
    CASES.append(case("aten::scatter.src", t(2, 3), 1, EMPTY, t(2, 3), gradient=False))
    CASES.append(case("aten::scatter_add", t(2, 3), 1, EMPTY, t(2, 3), gradient=False))
    CASES.append(case("aten::take", t(2, 3), EMPTY, error="Expected a long tensor for index"))
for dims in [(3,), (2, 2, 2)]:
    CASES.append(case("aten::matrix_H", t(*dims), error="only supported on matrices"))
CASES.append(case("aten::matrix_H", t(), dtypes=FULL))

# Gradients for elements that are equal, zero or NaN. Finite differences are not defined there.
ONCE = dict(dtypes=FULL, gradient="first")
TIES = t(values=[[3.0, -3.0, 1.0, 3.0], [0.0, 0.0, 0.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 0.0, -1.0, 1.0]])
HOLES = t(values=[[3.0, math.nan, 1.0, 3.0], [math.nan, math.nan, 0.0, 1.0], [math.inf, 2.0, -math.inf, 2.0]])
for edge in [TIES, HOLES, t(values=[[0.0]]), t(values=[[2.0, 2.0, 2.0]])]:
    EDGE = dict(dtypes=FULL, gradient="first" if edge is HOLES else "no differences")
    for op in ["amax", "amin"]:
        for dims in [[], [0], [1], [0, 1]]:
            CASES.append(case(f"aten::{op}", edge, dims, **EDGE))
    for op in ["max", "min", "median", "nanmedian"]:
        CASES.append(case(f"aten::{op}", edge, **EDGE))
    for op in ["std", "var"]:
        CASES.append(case(f"aten::{op}", edge, True, **ONCE))
        CASES.append(case(f"aten::{op}.dim", edge, [1], False, **ONCE))
        CASES.append(case(f"aten::{op}.correction", edge, [1], correction=1, **ONCE))
        CASES.append(case(f"aten::{op}_mean.dim", edge, [1], True, **ONCE))
    for p in [0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf]:
        CASES.append(case("aten::norm.Scalar", edge, p, **ONCE))
        CASES.append(case("aten::norm.ScalarOpt_dim", edge, p, [1], **ONCE))
        if edge is not HOLES or p >= 1:
            CASES.append(case("aten::linalg_vector_norm", edge, p, [0], **ONCE))
    # Gradients of products differ beside NaN.
    PRODUCT = dict(dtypes=FULL, gradient=edge is not HOLES)
    CASES.append(case("aten::prod", edge, **PRODUCT))
    CASES.append(case("aten::prod.dim_int", edge, 1, **PRODUCT))
    CASES.append(case("aten::cumprod", edge, 1, **PRODUCT))
    CASES.append(case("aten::logsumexp", edge, [1], **EDGE))
    for op in ["cumsum", "logcumsumexp", "cummax", "cummin"]:
        CASES.append(case(f"aten::{op}", edge, 1, **EDGE))
    for op in ["maximum", "minimum", "fmax", "fmin"]:
        CASES.append(case(f"aten::{op}", edge, t(values=[0.0]), **EDGE))
        CASES.append(case(f"aten::{op}", t(values=[2.0]), edge, **EDGE))
    for op in ["abs", "sign", "relu", "sqrt", "rsqrt", "reciprocal", "log", "leaky_relu", "hardsigmoid", "nan_to_num"]:
        CASES.append(case(f"aten::{op}", edge, **EDGE))
    # Whether PyTorch passes the gradient of a NaN depends on its vector code for the dtype.
    for op in ["elu", "hardtanh", "relu6", "softshrink", "hardshrink"]:
        # PyTorch 1.13 turns NaN into 0, 2.15 keeps it.
        keeps = (lambda x: torch.where(torch.isnan(x), x, torch.nn.functional.softshrink(x))) if op == "softshrink" else None
        CASES.append(case(f"aten::{op}", edge, dtypes=FULL, reference=keeps, gradient=False if edge is HOLES else "first"))
    for low, high in [(0.0, 2.0), (-3.0, 3.0), (2.0, 0.0)]:
        CASES.append(case("aten::clamp", edge, low, high, **EDGE))
    CASES.append(case("aten::dist", edge, edge, **ONCE))
    CASES.append(case("aten::pairwise_distance", edge, edge, 2.0, 0.0, **ONCE))

# Sums over many elements are split into parts; the last part is smaller.
LARGE = dict(dtypes=FULL, strided=False, rtol=1e-3, atol=1e-3)
MANY = t(1103, 67)
CASES.append(case("aten::layer_norm", MANY, [67], t(67), t(67), **LARGE))
CASES.append(case("aten::layer_norm", t(3, 33001), [33001], t(33001), t(33001), **LARGE))
CASES.append(case("aten::group_norm", t(5, 6, 41, 61), 3, t(6), t(6), **LARGE))
CASES.append(case("aten::batch_norm", t(71, 5, 13, 17), t(5), t(5), t(5), t(5, low=0.5), True, 0.1, 1e-5, False, **LARGE))
CASES.append(case("aten::instance_norm", t(2, 3, 121, 103), t(3), t(3), None, None, True, 0.1, 1e-5, False, **LARGE))
for op in ["sum", "mean", "max", "min", "median"]:
    CASES.append(case(f"aten::{op}", MANY, **LARGE))
for dims in [[0], [1], [0, 1]]:
    CASES.append(case("aten::sum.dim_IntList", MANY, dims, **LARGE))
    CASES.append(case("aten::mean.dim", MANY, dims, **LARGE))
    CASES.append(case("aten::var.dim", MANY, dims, **LARGE))
    CASES.append(case("aten::std.dim", MANY, dims, **LARGE))
    CASES.append(case("aten::amax", MANY, dims, **LARGE))
    CASES.append(case("aten::logsumexp", MANY, dims, **LARGE))
    for p in [1, 2, 3, math.inf]:
        CASES.append(case("aten::linalg_vector_norm", MANY, p, dims, **LARGE))
for dim in [0, 1]:
    CASES.append(case("aten::softmax.int", MANY, dim, **LARGE))
    CASES.append(case("aten::log_softmax.int", MANY, dim, **LARGE))
    CASES.append(case("aten::cumsum", MANY, dim, **LARGE))
for reduction in [1, 2]:
    CASES.append(case("aten::mse_loss", MANY, MANY, reduction, **LARGE))
    CASES.append(case("aten::cross_entropy_loss", MANY, t(1103, dtype=torch.int64, low=0, high=66), None, reduction, **LARGE))

# A weight must not make a loss larger.
for op in ["binary_cross_entropy", "binary_cross_entropy_with_logits"]:
    UNIT = t(1, 5, low=0.1, high=0.9)
    CASES.append(case(f"aten::{op}", UNIT, UNIT, t(3, 5), error="doesn't match the broadcast shape"))
CASES.append(case("aten::binary_cross_entropy_with_logits", t(1, 5), t(1, 5), None, t(3, 5), error="doesn't match the broadcast shape"))
CASES.append(case("aten::binary_cross_entropy_with_logits", t(3, 5), t(1, 5), error="doesn't match the broadcast shape"))
CASES.append(case("aten::binary_cross_entropy_with_logits", t(1, 5), t(3, 5), t(5), t(5), dtypes=FULL, gradient=False))
