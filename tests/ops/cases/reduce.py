"""Reductions, positions of extremes, cumulative sums."""

import math

import torch

from tests.ops.case import ALL, BOOL, FLOATING, FULL, INTEGRAL, NUMERIC, case, t

CASES = []
NAN = t(values=[[1.0, math.nan, 2.0], [3.0, -1.0, -math.inf]])
SUMS = FULL + [torch.bfloat16, torch.int32, torch.uint8, torch.bool]

for name, by_dim, dtypes in [("sum", "sum.dim_IntList", SUMS), ("mean", "mean.dim", FULL + [torch.bfloat16])]:
    CASES.append(case(f"aten::{name}", t(3, 4, 5), dtypes=dtypes))
    CASES.append(case(f"aten::{name}", t(100, 777), dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(), dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(0, 3), dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(2, 3), dtype=torch.float64, dtypes=FULL + [torch.int32]))
    for dims in [[0], [1], [2], [-1, 0], [0, 1], [1, 2], None, []]:
        for keepdim in [False, True]:
            # PyTorch rounds some bfloat16 partial sums.
            CASES.append(case(f"aten::{by_dim}", t(3, 4, 5), dims, keepdim, dtypes=FULL))
            if keepdim and name == "sum":
                CASES.append(case(f"aten::{by_dim}", t(3, 4, 5), dims, keepdim, dtypes=[torch.int32, torch.uint8, torch.bool]))
    CASES.append(case(f"aten::{by_dim}", t(2, 600, 3, 2), [2, 3], dtypes=FULL))
    CASES.append(case(f"aten::{by_dim}", t(3, 0, 2), [1], dtypes=FULL))
    CASES.append(case(f"aten::{by_dim}", t(0, 3), [1], dtypes=FULL))
    CASES.append(case(f"aten::{by_dim}", t(2, 3), [2], error="out of range"))
    CASES.append(case(f"aten::{by_dim}", t(2, 3), [0, 0], error="multiple times"))
CASES.append(case("aten::mean", t(3), dtypes=[torch.int64], error="could not infer output dtype"))
CASES.append(case("aten::sum.dim_IntList", t(2, 3), [0], dtype=torch.int64, dtypes=FULL))
# Elements are converted to bool before they are added: -1 + 1 is True, and so is 0.4.
CANCELS = t(values=[[1.0, -1.0, 0.0], [0.4, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float32)
for op in ("sum", "prod"):
    CASES.append(case(f"aten::{op}", CANCELS, dtype=torch.bool, gradient=False))
    for dim in (0, 1):
        CASES.append(case("aten::sum.dim_IntList" if op == "sum" else "aten::prod.dim_int", CANCELS, [dim] if op == "sum" else dim,
                          dtype=torch.bool, gradient=False))

CASES.append(case("aten::prod", t(2, 3), dtypes=FULL + [torch.int32, torch.bool]))
for dim in [0, -1]:
    CASES.append(case("aten::prod.dim_int", t(3, 4), dim, dim == 0, dtypes=FULL + [torch.int64]))
for name in ["max", "min"]:
    CASES.append(case(f"aten::{name}", t(3, 4), dtypes=ALL))
    CASES.append(case(f"aten::{name}", NAN, dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(0), error="numel() == 0"))
    for dim in [0, 1, -1]:
        CASES.append(case(f"aten::{name}.dim", t(3, 70, 2), dim, dim == 1, dtypes=FULL + [torch.int64]))
    CASES.append(case(f"aten::{name}.dim", NAN, 1, dtypes=FULL))
    CASES.append(case(f"aten::{name}.dim", t(), 0, dtypes=FULL))
    CASES.append(case(f"aten::{name}.dim", t(2, 0), 1, error="non-zero size"))
    for dims in [[], [0], [0, 2]]:
        CASES.append(case(f"aten::a{name}", t(3, 4, 2), dims, True, dtypes=FULL + INTEGRAL))
        CASES.append(case(f"aten::a{name}", t(3, 4, 2), dims, dtypes=FULL))
    CASES.append(case(f"aten::arg{name}", t(3, 50), dtypes=FULL))
    CASES.append(case(f"aten::arg{name}", t(3, 50), 1, dtypes=FULL))
    CASES.append(case(f"aten::arg{name}", t(3, 50), 0, True, dtypes=FULL))
    CASES.append(case(f"aten::arg{name}", NAN, 1, dtypes=FULL))
for name in ["any", "all"]:
    CASES.append(case(f"aten::{name}", t(3, 4), dtypes=ALL))
    CASES.append(case(f"aten::{name}", t(0), dtypes=ALL))
    for dim in [0, -1]:
        CASES.append(case(f"aten::{name}.dim", t(3, 2, low=-1.0, high=1.0), dim, dim == 0, dtypes=BOOL + INTEGRAL + FULL))
CASES.append(case("aten::count_nonzero", t(3, 4), dtypes=ALL))
CASES.append(case("aten::count_nonzero", t(3, 4), 1, dtypes=ALL))
CASES.append(case("aten::count_nonzero.dim_IntList", t(3, 4, 2), [0, 2], dtypes=ALL))

for name in ["var", "std"]:
    for unbiased in [True, False]:
        CASES.append(case(f"aten::{name}", t(3, 40), unbiased, dtypes=FULL + [torch.bfloat16]))
        for dims in [[0], [1], [0, 1]]:
            CASES.append(case(f"aten::{name}.dim", t(3, 40, 2), dims, unbiased, True, dtypes=FULL))
            CASES.append(case(f"aten::{name}.dim", t(3, 40, 2), dims, unbiased, dtypes=FULL))
    CASES.append(case(f"aten::{name}.correction", t(3, 40), [1], correction=2, keepdim=True, dtypes=FULL))
    CASES.append(case(f"aten::{name}.correction", t(3, 40), None, correction=0, dtypes=FULL))
    CASES.append(case(f"aten::{name}_mean", t(3, 40), dtypes=FULL))
    CASES.append(case(f"aten::{name}_mean.dim", t(3, 40), [0], False, True, dtypes=FULL))
    CASES.append(case(f"aten::{name}_mean.correction", t(3, 40), [1], correction=2, keepdim=True, dtypes=FULL))
for p in [2, 1, 0, 3.5, math.inf, -math.inf]:
    CASES.append(case("aten::norm.Scalar", t(3, 40), p, dtypes=FULL))
    CASES.append(case("aten::norm.ScalarOpt_dim", t(3, 40), p, [1], True, dtypes=FULL))
    CASES.append(case("aten::linalg_vector_norm", t(3, 4, 5), p, [0, 2], dtypes=FULL))
CASES.append(case("aten::norm.ScalarOpt_dtype", t(3, 4), 2, dtype=torch.float64))
CASES.append(case("aten::norm.ScalarOpt_dim_dtype", t(3, 4), 2, [0], False, dtype=torch.float64))
CASES.append(case("aten::linalg_vector_norm", t(3, 4), dtypes=FULL))
CASES.append(case("aten::logsumexp", t(3, 40), [1], dtypes=FULL))
CASES.append(case("aten::logsumexp", t(values=[[math.inf, 1.0], [-math.inf, -math.inf]]), [1], True, dtypes=FULL))
for dim in [0, 1, -1]:
    CASES.append(case("aten::cumsum", t(3, 4, 5), dim, dtypes=FULL + [torch.int32, torch.bool]))
    CASES.append(case("aten::cumprod", t(3, 4, 5), dim, dtypes=FULL + [torch.int32]))
    CASES.append(case("aten::logcumsumexp", t(3, 4, 5), dim, dtypes=FULL))
    CASES.append(case("aten::cummax", t(3, 4, 5), dim, dtypes=FULL + [torch.int32]))
    CASES.append(case("aten::cummin", t(3, 4, 5), dim, dtypes=FULL + [torch.int32]))
CASES.append(case("aten::cumsum", t(3, 4), 1, dtype=torch.float64, dtypes=[torch.float32, torch.int64]))
CASES.append(case("aten::cummax", NAN, 1, dtypes=FULL))
HOLES = t(values=[[1.0, math.nan, -2.0, 5.0], [math.nan, math.nan, 0.5, -1.0], [3.0, 2.0, 7.0, 1.5]])
for name in ["median", "nanmedian"]:
    CASES.append(case(f"aten::{name}", t(3, 5), dtypes=FULL + [torch.bfloat16]))
    CASES.append(case(f"aten::{name}", HOLES, dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(values=[4, 1, 3, 2], dtype=torch.int64)))
    for keepdim in [False, True]:
        CASES.append(case(f"aten::{name}.dim", t(3, 6, 2), 1, keepdim, dtypes=FULL))
    CASES.append(case(f"aten::{name}.dim", t(values=[[4, 1, 3, 2], [9, 8, 7, 6]], dtype=torch.int64), -1))
CASES.append(case("aten::nanmedian.dim", t(values=[[1.0, math.nan, -2.0, 5.0], [math.nan, 4.0, 0.5, -1.0]]), 1, dtypes=FULL))
for name in ["nansum", "nanmean"]:
    CASES.append(case(f"aten::{name}", HOLES, dtypes=FULL))
    CASES.append(case(f"aten::{name}", t(3, 4), [0], dtypes=FULL))
    CASES.append(case(f"aten::{name}", HOLES, [1], True, dtypes=FULL))
    CASES.append(case(f"aten::{name}", HOLES, [0], dtype=torch.float64, gradient=False))
CASES.append(case("aten::aminmax", t(3, 5), dtypes=FULL))
for dim in [0, -1, None]:
    for keepdim in [False, True]:
        CASES.append(case("aten::aminmax", t(), dim=dim, keepdim=keepdim, dtypes=FULL))
CASES.append(case("aten::aminmax", t(3, 5), dim=1, keepdim=True, dtypes=FULL))
CASES.append(case("aten::_aminmax", t(3, 5), gradient=False))
