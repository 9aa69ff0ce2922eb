"""An observer fused with a fake quantizer: the output, and the state that it writes."""

import torch

from tests.ops.case import case, t

CASES = []
INT = torch.int32


def state(values, dtype=torch.float32):
    return t(values=values, dtype=dtype)


# PyTorch treats the state as contiguous.
def rows(x, observes, rounds, least, greatest, scale, zero_point, *numbers, **options):
    for name in ("fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper"):
        CASES.append(case(f"aten::{name}", x, state([observes], torch.int64), state([rounds], torch.int64), state(least), state(greatest),
                          state(scale), state(zero_point, INT), *numbers, gradient="no differences", strided=False, **options))


INF = float("inf")
for observes in (0, 1):
    for rounds in (0, 1):
        for least, greatest in ((INF, -INF), (-1.0, 0.5)):
            if observes or not rounds or least < greatest:
                rows(t(3, 4), observes, rounds, [least], [greatest], [1.0], [0], 0.01, 0, 255, 0)
        rows(t(3, 4), observes, rounds, [-1.0], [0.5], [0.25], [3], 0.3, -128, 127, 0, False, True)
        rows(t(3, 4), observes, rounds, [-1.0, INF if observes else 0.0, 0.1], [2.0, -INF if observes else 1.0, 0.2], [1.0, 2.0, 0.5], [0, 0, 0], 0.5, -128, 127, 0, True, True)
        rows(t(3, 2, 2, 2), observes, rounds, [-1.0, -0.5, 0.1], [2.0, 4.0, 0.2], [1.0, 2.0, 0.5], [0, 0, 0], 0.25, 0, 15, 0, True, False)
# Ends of the range, and numbers on one side of 0.
for low, high in ((0, 254), (-127, 127), (0, 127), (-8, 7)):
    for symmetric in (False, True):
        for least, greatest in ((-1.0, 2.0), (0.5, 3.0), (-2.0, -0.5), (0.0, 0.0), (-1e-6, 2e-6), (-1e-6, 0.0), (0.0, 1e-6)):
            rows(t(5), 0, 1, [least], [greatest], [1.0], [0], 0.01, low, high, 0, False, symmetric)
rows(t(2, 3), 0, 1, [-1.0, -0.5, 0.1], [2.0, 4.0, 0.2], [1.0, 2.0, 0.5], [0, 0, 0], 0.25, 0, 15, 1, True, False)
rows(t(2, 3), 1, 1, [-1.0, -0.5, 0.1], [2.0, 4.0, 0.2], [1.0, 2.0, 0.5], [0, 0, 0], 0.25, 0, 15, 1, True, False, error="only supported on axis == 0")
rows(t(3, 4), 0, 1, [INF], [-INF], [1.0], [0], 0.01, 0, 255, 0, error="min should be less than or equal to max")
rows(t(3, 4), 1, 1, [0.0], [1.0], [1.0], [0], 0.01, 7, 7, 0, error="qmin should be less than qmax")
CASES += [
    case("aten::fused_moving_avg_obs_fake_quant", t(3, 4), state([1]), state([1]), state([0.0]), state([1.0]), state([1.0]), state([0], INT), 0.01,
         0, 255, 2, error="ch_axis must be < self.dim()"),
    case("aten::fake_quantize_per_tensor_affine_cachemask_backward", t(2, 3), t(values=[[True, False, True], [False, True, True]], dtype=torch.bool)),
    case("aten::fake_quantize_per_channel_affine_cachemask_backward", t(2, 3), t(values=[[True, False, True], [False, True, True]], dtype=torch.bool)),
    case("aten::fake_quantize_per_tensor_affine_cachemask_backward", t(2, 3), t(2, 3), error=("Bool", "expected bool")),
]
