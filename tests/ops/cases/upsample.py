"""Upsampling in every mode, by size and by factors."""

import torch

from tests.ops.case import FULL, case, t

LOOSE = {"rtol": 1e-4, "atol": 1e-5}


def _nearest(op, dims):
    x = t(2, 3, *(5, 4, 3)[:dims])
    up, down, odd = [9, 8, 7][:dims], [2, 3, 2][:dims], [5, 7, 4][:dims]
    rows = [case(op, x, size, dtypes=FULL) for size in (up, down, odd)]
    rows.append(case(op, x, [2 * n for n in (5, 4, 3)[:dims]], *[2.0] * dims, dtypes=FULL))
    rows.append(case(op + ".vec", x, up, None, dtypes=FULL))
    rows.append(case(op + ".vec", x, None, [2.5] * dims, dtypes=FULL))
    rows.append(case(op + ".vec", x, None, [0.7] * dims, dtypes=FULL))
    rows += [case(op + "_backward", t(2, 3, *size), size, [2, 3, *(5, 4, 3)[:dims]], dtypes=FULL) for size in (up, down)]
    rows.append(case(op, x, [0] * dims, error="should be greater than 0"))
    rows.append(case(op + ".vec", x, None, None, error="Must specify exactly one"))
    return rows


def _aligned(op, dims):
    x = t(2, 3, *(5, 4, 3)[:dims])
    up, down, odd = [9, 8, 7][:dims], [2, 3, 2][:dims], [5, 7, 1][:dims]
    rows = [case(op, x, size, align, dtypes=FULL, **LOOSE) for size in (up, down, odd) for align in (False, True)]
    rows.append(case(op, x, [2 * n for n in (5, 4, 3)[:dims]], False, *[2.0] * dims, dtypes=FULL, **LOOSE))
    rows.append(case(op + ".vec", x, up, False, None, dtypes=FULL, **LOOSE))
    rows.append(case(op + ".vec", x, None, False, [2.5] * dims, dtypes=FULL, **LOOSE))
    rows.append(case(op + ".vec", x, None, True, [0.7] * dims, dtypes=FULL, **LOOSE))
    rows += [case(op + "_backward", t(2, 3, *size), size, [2, 3, *(5, 4, 3)[:dims]], align, dtypes=FULL, **LOOSE)
             for size in (up, down) for align in (False, True)]
    rows.append(case(op, x, [0] * dims, False, error="should be greater than 0"))
    return rows


CASES = [case("aten::upsample_nearest2d", t(2, 3, 5, 4), [7, 9], dtypes=[torch.uint8])]
for dims in (1, 2, 3):
    CASES += _nearest(f"aten::upsample_nearest{dims}d", dims)
    CASES += _nearest(f"aten::_upsample_nearest_exact{dims}d", dims)
CASES += _aligned("aten::upsample_linear1d", 1)
CASES += _aligned("aten::upsample_bilinear2d", 2)
CASES += _aligned("aten::upsample_trilinear3d", 3)
CASES += _aligned("aten::upsample_bicubic2d", 2)
for name in ["aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa"]:
    CASES += _aligned(name, 2)
    # Much smaller, one pixel, one size only, factors that contradict the sizes, channels_last by strides.
    for size in [[3, 4], [1, 1], [17, 5], [40, 41]]:
        CASES.append(case(name, t(2, 3, 17, 23), size, False, dtypes=FULL, **LOOSE))
    CASES.append(case(name, t(1, 2, 5, 6), [3, 3], False, 0.5, 5.0, dtypes=FULL, **LOOSE))
    CASES.append(case(name, t(0, 2, 5, 6), [3, 3], False, dtypes=FULL))
    CASES.append(case(name + ".vec", t(1, 2, 9, 11), None, False, [0.3, 0.45], dtypes=FULL, **LOOSE))
    CASES.append(case(name + "_backward", t(1, 2, 3, 3), [3, 3], [1, 2, 9, 11], False, 0.3, None, dtypes=FULL, **LOOSE))
