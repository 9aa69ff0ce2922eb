"""Softmax, normalizations and dropout."""

import torch

from tests.ops.case import FLOATING, FULL, case, t

CASES = []
WITH_BFLOAT = FULL + [torch.bfloat16]
POSITIVE = dict(low=0.2, high=2.0)

for name in ["softmax", "log_softmax"]:
    for dim in [0, 1, -1]:
        CASES.append(case(f"aten::{name}.int", t(3, 40, 5), dim, dtypes=WITH_BFLOAT))
        CASES.append(case(f"aten::_{name}", t(3, 40), min(dim, 1), False, dtypes=FULL))
    CASES.append(case(f"aten::{name}.int", t(2, 1000, low=-90.0, high=90.0), 1, dtypes=FULL))
    CASES.append(case(f"aten::{name}.int", t(), 0, dtypes=FULL))
    CASES.append(case(f"aten::{name}.int", t(0, 3), 1, dtypes=FULL))
    CASES.append(case(f"aten::{name}.int", t(2, 3), 1, torch.float64, dtypes=[torch.float32, torch.int64]))
    CASES.append(case(f"aten::{name}.int", t(2, 3), 2, error="out of range"))
CASES.append(case("aten::softmax.int", t(values=[[float("-inf")] * 3, [1.0, float("-inf"), 2.0]]), 1, dtypes=FULL))

for shape in [[40], [5, 40]]:
    CASES.append(case("aten::layer_norm", t(3, 5, 40), shape, t(*shape), t(*shape), 1e-5, dtypes=WITH_BFLOAT, rtol=None))
    CASES.append(case("aten::layer_norm", t(3, 5, 40), shape, dtypes=FULL))
    CASES.append(case("aten::native_layer_norm", t(3, 5, 40), shape, t(*shape), t(*shape), 1e-5, dtypes=FULL))
CASES.append(case("aten::layer_norm", t(3, 40), [40], t(40), dtypes=FULL))
CASES.append(case("aten::native_layer_norm", t(3, 8), [8], t(8), t(8), 1e-5, dtypes=FULL))
CASES.append(case("aten::layer_norm", t(0, 40), [40], dtypes=FULL))
CASES.append(case("aten::layer_norm", t(3, 40), [39], error="normalized_shape"))

for groups in [1, 2, 6]:
    CASES.append(case("aten::group_norm", t(2, 6, 5, 3), groups, t(6), t(6), 1e-5, dtypes=FULL))
CASES.append(case("aten::group_norm", t(2, 6, 5), 3, dtypes=FULL))
CASES.append(case("aten::group_norm", t(2, 6, 5), 4, error="divisible"))

for sizes in [(4, 3), (4, 3, 5), (2, 3, 5, 6), (2, 3, 2, 3, 4)]:
    for training in [False, True]:
        CASES.append(case("aten::batch_norm", t(*sizes), t(3), t(3), t(3), t(3, **POSITIVE), training, 0.1, 1e-5, False, dtypes=FULL))
CASES.append(case("aten::batch_norm", t(2, 3, 4, 4), None, None, t(3), t(3, **POSITIVE), False, 0.1, 1e-5, True, dtypes=FULL))
CASES.append(case("aten::batch_norm", t(2, 3, 4, 4), None, t(3), None, None, True, 0.1, 1e-5, True, dtypes=FULL))
CASES.append(case("aten::batch_norm", t(2, 3, 4, 4), t(4), None, t(3), t(3), False, 0.1, 1e-5, True, error="elements"))
CASES.append(case("aten::native_batch_norm", t(2, 3, 4, 4), t(3), t(3), t(3), t(3, **POSITIVE), True, 0.1, 1e-5, dtypes=FULL))
CASES.append(case("aten::native_batch_norm", t(2, 3, 4, 4), t(3), t(3), t(3), t(3, **POSITIVE), False, 0.1, 1e-5, dtypes=FULL))
CASES.append(case("aten::instance_norm", t(2, 3, 4, 5), t(3), t(3), None, None, True, 0.1, 1e-5, False, dtypes=FULL))
CASES.append(case("aten::instance_norm", t(2, 3, 7), None, None, t(3), t(3, **POSITIVE), False, 0.1, 1e-5, False, dtypes=FULL))

ALL_THREE = [True, True, True]
GROUP_MOMENTS = (t(2, 3), t(2, 3, **POSITIVE))
CASES.append(case("aten::native_group_norm", t(2, 6, 5), t(6), t(6), 2, 6, 5, 3, 1e-5, dtypes=FULL, strided=False))
CASES.append(case("aten::native_group_norm", t(2, 6, 5), None, None, 2, 6, 5, 2, 1e-5, dtypes=FULL, strided=False))
CASES.append(case("aten::native_group_norm_backward", t(2, 6, 5), t(2, 6, 5), *GROUP_MOMENTS, t(6), 2, 6, 5, 3, ALL_THREE,
                  dtypes=FULL, strided=False, gradient=False))
CASES.append(case("aten::native_layer_norm_backward", t(3, 5, 40), t(3, 5, 40), [40], t(3, 5, 1), t(3, 5, 1, **POSITIVE), t(40), t(40),
                  ALL_THREE, dtypes=FULL, strided=False, gradient=False))
for mask in [[True, False, False], [False, True, False], [True, False, True], [False, False, False]]:
    CASES.append(case("aten::native_group_norm_backward", t(2, 6, 5), t(2, 6, 5), *GROUP_MOMENTS, t(6), 2, 6, 5, 3, mask,
                      strided=False, gradient=False))
    CASES.append(case("aten::native_layer_norm_backward", t(3, 5, 40), t(3, 5, 40), [40], t(3, 5, 1), t(3, 5, 1, **POSITIVE), t(40),
                      t(40), mask, strided=False, gradient=False))
    CASES.append(case("aten::native_batch_norm_backward", t(4, 3, 5), t(4, 3, 5), t(3), t(3), t(3, **POSITIVE), t(3),
                      t(3, **POSITIVE), True, 1e-5, mask, strided=False, gradient=False))
SAVED = (t(3), t(3, **POSITIVE))
for sizes in [(4, 3), (4, 3, 5), (2, 3, 5, 6)]:
    for training in [False, True]:
        CASES.append(case("aten::native_batch_norm_backward", t(*sizes), t(*sizes), t(3), t(3), t(3, **POSITIVE), *SAVED, training,
                          1e-5, ALL_THREE, dtypes=FULL, gradient=False))


def _batch_norm_training(x, weight, bias, mean, variance, momentum, eps):
    """Works on copies, whose updated statistics are among the results."""
    mean, variance = (None if one is None else one.clone() for one in (mean, variance))
    out = torch.nn.functional.batch_norm(x, mean, variance, weight, bias, True, momentum, eps)
    return out, torch.empty(0) if mean is None else mean, torch.empty(0) if variance is None else variance


for sizes in [(4, 3), (2, 3, 5, 6)]:
    CASES.append(case("tensord::batch_norm_training", t(*sizes), t(3), t(3), t(3), t(3, **POSITIVE), 0.1, 1e-5, gradient=False,
                      reference=_batch_norm_training))
    CASES.append(case("tensord::batch_norm_training", t(*sizes), None, None, None, None, 0.1, 1e-5, gradient=False,
                      reference=_batch_norm_training))

for name in ["_softmax_backward_data", "_log_softmax_backward_data"]:
    CASES.append(case(f"aten::{name}", t(3, 5), t(3, 5), 1, torch.float64, dtypes=[torch.float64], strided=False))
    for dim in [0, 1, -1]:
        CASES.append(case(f"aten::{name}", t(3, 40, 5), t(3, 40, 5), dim, torch.float32, strided=False))
        CASES.append(case(f"aten::{name}", t(3, 40, 5), t(3, 40, 5), dim, torch.float64, dtypes=[torch.float64], strided=False))
CASES.append(case("aten::native_dropout", t(2, 3, 4), 0.3, True, dtypes=FULL, check="shape"))
CASES.append(case("aten::native_dropout", t(2, 3, 4), 0.3, False, dtypes=FULL))
CASES.append(case("aten::native_dropout_backward", t(2, 3), t(2, 3, dtype=torch.bool), 2.5, dtypes=FULL))

for name in ["dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"]:
    for suffix in ["", "_"]:
        CASES.append(case(f"aten::{name}{suffix}", t(2, 3, 4), 0.3, False, dtypes=FLOATING))
        CASES.append(case(f"aten::{name}{suffix}", t(2, 3, 4), 0.3, True, dtypes=FULL, check="shape"))
