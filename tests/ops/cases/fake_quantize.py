"""Rounding to a quantized grid and back."""

import math

import torch

from tests.ops.case import case, t

EDGES = t(values=[0.0, -0.05, 0.05, 2.55, -3.2, 40.0, -40.0, math.inf, -math.inf, math.nan])
SCALES, ZEROS = t(values=[0.1, 0.05, 0.2], dtype=torch.float32), t(values=[0, 5, -3], dtype=torch.int32)

WIDE = [torch.float32, torch.float64, torch.float16]

CASES = [
    case("aten::fake_quantize_per_tensor_affine", t(3, 4), 0.1, 2, 0, 255, dtypes=[torch.float32, torch.float16], gradient="no differences"),
    case("aten::fake_quantize_per_tensor_affine", t(3, 4), 0.01, 0, -128, 127, gradient="no differences"),
    case("aten::fake_quantize_per_tensor_affine", EDGES, 0.1, 2, 0, 255, gradient=False),
    case("aten::fake_quantize_per_tensor_affine", t(0, 3), 0.1, 2, 0, 255, gradient=False),
    case("aten::fake_quantize_per_tensor_affine", t(3), 0.1, -1, 0, 255, error="`zero_point` must be between `quant_min` and `quant_max`."),
    case("aten::fake_quantize_per_tensor_affine", t(3), 0.1, 3, 5, 4, error="`quant_min` should be less than or", strided=False),
    case("aten::fake_quantize_per_tensor_affine.tensor_qparams", t(3, 4), t(values=[0.1], dtype=torch.float32), t(values=[2], dtype=torch.int32),
         0, 255, gradient="no differences"),
    case("aten::fake_quantize_per_tensor_affine_cachemask", t(3, 4), 0.01, 2, 0, 255, gradient="no differences"),
    case("aten::fake_quantize_per_channel_affine", t(2, 3, 4), SCALES, ZEROS, 1, -128, 127, dtypes=WIDE, gradient="no differences"),
    case("aten::fake_quantize_per_channel_affine", t(2, 3), SCALES, ZEROS, 0, -128, 127, error="are not consistent with input tensor"),
    case("aten::fake_quantize_per_channel_affine", t(2, 3), SCALES, ZEROS, 2, -128, 127, strided=False, error=("Dimension out of range", "`axis` must be between 0 and number of dimensions")),
    case("aten::fake_quantize_per_channel_affine", t(2, 3), SCALES, ZEROS, 1, -2, 127, error="`zero_point` must be between"),
    case("aten::fake_quantize_per_channel_affine_cachemask", t(2, 3, 4), SCALES, ZEROS, 1, -8, 7, dtypes=WIDE, gradient="no differences"),
]
