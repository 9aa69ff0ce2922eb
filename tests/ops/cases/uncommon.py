"""Operators that few models use: histograms, gradients by differences, segments, fractional pooling, splits by a
tensor."""

import math

import torch

from tests.ops.case import FULL, INTEGRAL, case, t

CASES = []
LONG = torch.int64


def rows(op, *args, dtypes=FULL, **options):
    CASES.append(case(op, *args, dtypes=dtypes, **options))


# Histograms: the last edge belongs to the last bin, NaN to none.
EDGES = t(values=[-2.0, -1.0, 0.0, 0.5, 3.0])
for density in [False, True]:
    rows("aten::histogram.bins_tensor", t(4, 5), EDGES, density=density)
    rows("aten::histogram.bins_tensor", t(4, 5), EDGES, weight=t(4, 5), density=density)
    rows("aten::histogram.bin_ct", t(4, 5), 7, density=density)
    rows("aten::histogram.bin_ct", t(4, 5), 3, range=[-1.0, 2.0], weight=t(4, 5), density=density)
    rows("aten::_histogramdd_from_bin_cts", t(3, 6, 2), [3, 4], density=density)
    rows("aten::_histogramdd_from_bin_cts", t(3, 6, 2), [3, 4], range=[-2.0, 1.0, -1.0, 3.0], weight=t(3, 6), density=density)
    rows("aten::_histogramdd_from_bin_tensors", t(8, 2), [EDGES, t(values=[-3.0, 0.0, 3.0])], density=density)
rows("aten::histogram.bins_tensor", t(values=[-2.0, 3.0, 3.1, -2.1, 0.5, math.inf]), EDGES)
rows("aten::histogram.bin_ct", t(values=[2.0, 2.0, 2.0]), 4)
rows("aten::histogram.bin_ct", t(0), 4)
rows("aten::histogram.bin_ct", t(3), 0, error="bins must be > 0")
rows("aten::histogram.bin_ct", t(values=[1.0, math.inf]), 3, error="is not finite")
rows("aten::histogram.bins_tensor", t(3), t(4), dtypes=[torch.int64], error=("not implemented", "not implemented"))
rows("aten::_histogramdd_bin_edges", t(6, 2), [3, 4])
rows("aten::_histogramdd_bin_edges", t(6, 2), [3, 4], range=[-2.0, 1.0, -1.0, 3.0])
rows("aten::histogramdd", t(6, 2), [3, 4])
rows("aten::histogramdd.int_bins", t(6, 2), 3, None, None, True)
rows("aten::histogramdd.TensorList_bins", t(6, 2), [EDGES, EDGES])

# torch.gradient
for order in [1, 2]:
    rows("aten::gradient.scalarint", t(4, 5), edge_order=order)
    rows("aten::gradient.scalarint", t(4, 5), spacing=0.5, dim=1, edge_order=order)
    rows("aten::gradient.scalararray", t(4, 5), spacing=2, dim=[1, 0], edge_order=order)
    rows("aten::gradient.array", t(4, 5), dim=[0], edge_order=order)
    rows("aten::gradient.scalarrayint", t(4, 5), spacing=[0.5, 2.0], edge_order=order)
    rows("aten::gradient.scalarrayarray", t(4, 5), spacing=[0.5, 2.0], dim=[1, 0], edge_order=order)
    points = [t(values=[0.0, 1.0, 1.5, 4.0]), t(values=[-1.0, 0.0, 0.5, 2.0, 3.0])]
    rows("aten::gradient.tensorarrayint", t(4, 5), spacing=points, edge_order=order)
    rows("aten::gradient.tensorarray", t(4, 5), spacing=points[::-1], dim=[1, 0], edge_order=order)
rows("aten::gradient.scalarint", t(4, 5), dtypes=[LONG])
rows("aten::gradient.scalarint", t(4, 5), edge_order=3, error="only supports edge_order=1 and edge_order=2")
rows("aten::gradient.scalarint", t(1, 5), error="at least edge_order+1")
rows("aten::gradient.scalarint", t(3), dtypes=[torch.uint8], error="does not support uint8")

# Segments.
LENGTHS, OFFSETS = t(values=[2, 0, 3, 1], dtype=LONG), t(values=[0, 2, 2, 5, 6], dtype=LONG)
for reduction in ["sum", "mean", "max", "min", "prod"]:
    rows("aten::segment_reduce", t(6), reduction, lengths=LENGTHS, gradient="first")
    rows("aten::segment_reduce", t(6, 2), reduction, offsets=OFFSETS, gradient="first")
    rows("aten::segment_reduce", t(6, 2), reduction, lengths=LENGTHS, initial=1.0, gradient="first")
    rows("aten::segment_reduce", t(2, 3, 2), reduction, lengths=t(values=[[1, 2], [3, 0]], dtype=LONG), axis=1, gradient="first")
rows("aten::segment_reduce", t(values=[0.0, 2.0, 3.0, 1.0, 1.0, 0.0]), "prod", lengths=LENGTHS, gradient="first")
rows("aten::segment_reduce", t(values=[1.0, 1.0, 3.0, 4.0, 4.0, 0.0]), "max", lengths=LENGTHS, gradient=False)  # PyTorch divides only positive gradients among ties
rows("aten::segment_reduce", t(5), "sum", lengths=LENGTHS, error="Expected all rows of lengths along axis to sum to")
rows("aten::_segment_reduce_backward", t(4, 2), t(4, 2), t(6, 2), "mean", lengths=LENGTHS, gradient=False)

# Fractional pooling.
SAMPLES = {2: t(2, 3, 2, low=0.0, high=1.0), 3: t(2, 3, 3, low=0.0, high=1.0)}
rows("aten::fractional_max_pool2d", t(2, 3, 7, 9), [2, 3], [4, 5], SAMPLES[2], strided=False)
rows("aten::fractional_max_pool2d", t(2, 3, 6, 6), [2, 2], [1, 5], SAMPLES[2], strided=False)
rows("aten::fractional_max_pool2d", t(2, 3, 4, 4), [3, 3], [3, 3], SAMPLES[2], error="too large relative to input")
rows("aten::fractional_max_pool3d", t(2, 3, 5, 6, 7), [2, 3, 2], [3, 3, 4], SAMPLES[3], strided=False)
PLACES = t(values=[[[[0, 4], [7, 4]]]], dtype=LONG)
rows("aten::fractional_max_pool2d_backward", t(1, 1, 2, 2), t(1, 1, 3, 3), [2, 2], [2, 2], PLACES, gradient=False, strided=False)
rows("aten::fractional_max_pool3d_backward", t(1, 1, 1, 2, 2), t(1, 1, 1, 3, 3), [1, 2, 2], [1, 2, 2],
     t(values=[[[[[0, 4], [7, 4]]]]], dtype=LONG), gradient=False, strided=False)

rows("aten::rrelu", t(3, 40), 0.1, 0.3, False)
rows("aten::rrelu", t(3, 40), 0.1, 0.3, True, check="shape")
rows("aten::rrelu_with_noise", t(3, 40), t(3, 40), 0.1, 0.3, False)
rows("aten::rrelu_with_noise", t(3, 40), t(3, 40), 0.1, 0.3, True, check="shape")
rows("aten::rrelu_with_noise_", t(3, 40), t(3, 40), 0.1, 0.3, False)
rows("aten::rrelu_with_noise_", t(3, 40), t(3, 40), 0.1, 0.3, True, check="shape")
rows("aten::rrelu_with_noise", t(3, low=-3, high=-1), t(3), 0.3, 0.1, True, error=("Expected from <= to", "Lower bound should be less than or equal to"))
rows("aten::rrelu", t(3), 0.3, 0.1, True, error="Lower bound should be less than or equal to the upper bound")
rows("aten::tensor_split.tensor_indices_or_sections", t(7, 3), t(values=3, dtype=LONG))
rows("aten::tensor_split.tensor_indices_or_sections", t(7, 3), t(values=[1, 4], dtype=LONG), 0)
rows("aten::tensor_split.tensor_indices_or_sections", t(7), t(values=[1], dtype=torch.int32), error="dtype of long")
rows("aten::new_empty_strided", t(2), [2, 3], [1, 2], check="shape", dtypes=FULL + INTEGRAL)

# Variants that few programs use.
for fn in ["cumsum_", "cumprod_"]:
    rows(f"aten::{fn}", t(3, 4), 1)
# PyTorch passes the gradient through what it overwrites.
rows("aten::logical_not_", t(3, 4), gradient=False)
rows("aten::bernoulli_.Tensor", t(2, 3), t(values=[0.0, 1.0, 1.0]), gradient="no differences")
rows("aten::masked_scatter_", t(3, 4), t(3, 4, dtype=torch.bool), t(12), strided=False)  # PyTorch 1.13 is wrong for others
for fn in ["and", "or", "xor"]:
    rows(f"aten::bitwise_{fn}.Scalar_Tensor", 5, t(3, 4), dtypes=INTEGRAL)
for fn in ["left", "right"]:
    rows(f"aten::bitwise_{fn}_shift.Scalar_Tensor", 5, t(values=[0, 1, 3]), dtypes=INTEGRAL)
rows("aten::remainder.Scalar_Tensor", 7.5, t(3, 4))
rows("aten::remainder.Scalar_Tensor", 7, t(values=[2, -3, 5]), dtypes=INTEGRAL)
INDEX = t(values=[[0, 2, 0], [1, 0, 1]], dtype=LONG)
for reduce in ["add", "multiply"]:
    rows("aten::scatter.value_reduce", t(4, 3), 0, INDEX, 1.5, reduce=reduce)
    rows("aten::scatter_.value_reduce", t(4, 3), 0, INDEX, 2, reduce=reduce)
rows("aten::conv_tbc", t(6, 2, 3), t(3, 3, 4), t(4), 1, strided=False)
rows("aten::conv_tbc", t(6, 2, 3), t(2, 3, 4), t(4), strided=False)
rows("aten::conv_tbc", t(6, 2), t(2, 3, 4), t(4), error="must have 3 dims")
rows("aten::range", 1, 4)
rows("aten::range.step", 0, 1, 0.25)
rows("aten::range.step", 5, -1.5, -2, dtype=torch.float64)
rows("aten::range.step", 1, 9, 3, dtype=LONG)
rows("aten::range.step", 1, 2, -1, error="inconsistent with step sign")
for periodic in [True, False]:
    rows("aten::kaiser_window.periodic", 11, periodic, rtol=1e-6)
    rows("aten::kaiser_window.beta", 8, periodic, 3.5, dtype=torch.float64)
rows("aten::kaiser_window", 7, rtol=1e-6)  # PyTorch differs by 8e-7 from the exact values, tensord by half an ulp
