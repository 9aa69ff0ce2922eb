"""Rows of tables: their sums, means, maxima and norms; positions in sorted sequences. `embedding` itself is in
index.py."""

import torch

from tests.ops.case import FULL, case, t

F64, I32, I64 = torch.float64, torch.int32, torch.int64
HALF = [torch.float32, torch.float64, torch.float16]


def ints(*values, dtype=I64):
    return t(values=list(values), dtype=dtype)


INDICES, OFFSETS = ints(1, 2, 4, 5, 4, 3), ints(0, 2, 2, 5)

CASES = []
for mode in range(3):
    for width in [1, 3, 16, 33, 64, 200]:
        CASES.append(case("aten::embedding_bag", t(6, width), INDICES, OFFSETS, False, mode, dtypes=FULL))
    CASES += [
        case("aten::embedding_bag", t(6, 20), INDICES, OFFSETS, False, mode, dtypes=[torch.float16], atol=4e-3),
        case("aten::embedding_bag", t(6, 20), INDICES, ints(0, 2, 2, 6), False, mode, False, None, True, dtypes=FULL),
        case("aten::embedding_bag", t(6, 5), ints(1, 2, 4, dtype=I32), ints(0, 2, dtype=I32), False, mode, dtypes=FULL),
        case("aten::embedding_bag", t(6, 5), ints(1, 2, 4, dtype=I32), ints(0, 2), False, mode),
        case("aten::embedding_bag", t(6, 5), ints(), ints(0, 0), False, mode, dtypes=FULL),
        case("aten::embedding_bag", t(6, 5), ints(1), ints(0), False, mode),
        case("aten::embedding_bag", t(500, 64), t(3000, dtype=I64, low=0, high=499), ints(*range(0, 3000, 30)), False, mode),
        case("aten::embedding_bag.padding_idx", t(6, 18), INDICES, OFFSETS, False, mode, False, None, False, 4, dtypes=FULL),
        case("aten::embedding_bag.padding_idx", t(6, 18), INDICES, OFFSETS, False, mode, False, None, False, -2, dtypes=FULL),
        case("aten::embedding_bag.padding_idx", t(6, 18), INDICES, ints(0, 2, 2, 6), False, mode, False, None, True, None),
    ]
CASES += [
    case("aten::embedding_bag", t(6, 20), INDICES, OFFSETS, False, 0, False, t(6), dtypes=FULL),
    case("aten::embedding_bag.padding_idx", t(6, 20), INDICES, OFFSETS, False, 0, False, t(6), False, 4, dtypes=FULL),
    case("aten::embedding_bag", t(6, 3), INDICES, OFFSETS, False, 1, False, t(6), error="per_sample_weights only supported"),
    case("aten::embedding_bag", t(6, 3, dtype=F64), ints(1, 7), ints(0), error="but found idx to be 7"),
    case("aten::embedding_bag", t(6, 3), ints(1, -1), ints(0), False, 2, error="but found idx to be -1"),
    case("aten::embedding_bag", t(6, 3), INDICES, ints(1, 2), error="offsets[0] has to be 0"),
    case("aten::embedding_bag", t(6, 3), INDICES, ints(0, 9), error="offsets[-1] can not be greater"),
    case("aten::embedding_bag", t(6, 3), t(6), OFFSETS, error="Long, Int"),
    case("aten::embedding_bag", t(6, 3), INDICES, ints(), False, 0, False, None, True, error="number of offset should be at least 1"),
    case("aten::embedding_bag.padding_idx", t(6, 3), INDICES, OFFSETS, False, 0, False, None, False, 6,
         error="padding_idx must be within the number of embeddings, -6 through 5, but got 6"),
    case("aten::embedding_renorm_", t(6, 3), ints(1, 1, 3), 1.0, 2.0, dtypes=FULL),
    case("aten::embedding_renorm_", t(6, 3), ints(1, 4), 2.0, 1.0),
    case("aten::embedding_renorm_", t(6, 3), ints(1, 4), 100.0, 2.0),
]

# The bag of each index, and the rows by bag; for maxima also their origin.
BAGS = (INDICES, OFFSETS, ints(0, 0, 2, 2, 2, 3), ints(2, 0, 3, 1))
MAXIMA = t(values=[[1, 2, 1], [0, 0, 0], [5, 4, 4], [3, 3, 3]], dtype=I64)
NONE = ints(0, 0, 0, 0)
CASES += [
    case("aten::embedding_dense_backward", t(2, 3, 5), t(values=[[1, 0, 4], [4, 2, 4]], dtype=I64), 6, -1, False, dtypes=HALF),
    case("aten::embedding_dense_backward", t(6, 5), INDICES, 6, 4, False, dtypes=FULL),
    case("aten::embedding_dense_backward", t(6, 5), ints(1, 2, 4, 5, 4, 3, dtype=I32), 6, -1, True, dtypes=FULL, gradient=False),
    case("aten::embedding_dense_backward", t(0, 5), ints(), 6, -1, False),
    case("aten::_embedding_bag_backward", t(4, 3), *BAGS, NONE, 6, False, 0, False, None, dtypes=FULL, strided=False),
    case("aten::_embedding_bag_backward", t(4, 3), *BAGS, NONE, 6, False, 0, False, t(6), 4, dtypes=FULL, strided=False),
    case("aten::_embedding_bag_backward", t(4, 3), *BAGS, NONE, 6, False, 1, False, None, dtypes=FULL, strided=False),
    case("aten::_embedding_bag_backward", t(4, 3), *BAGS, MAXIMA, 6, False, 2, False, None, dtypes=FULL, strided=False),
    case("aten::_embedding_bag_per_sample_weights_backward", t(4, 3), t(6, 3), *BAGS[:3], 0, dtypes=FULL, strided=False),
    case("aten::_embedding_bag_per_sample_weights_backward", t(4, 3), t(6, 3), *BAGS[:3], 0, 4, dtypes=FULL, strided=False),
]

SORTED, VALUES = t(values=[1.0, 3.0, 5.0, 5.0, 7.0]), t(values=[[5.0, 0.0, 8.0], [3.0, float("nan"), 6.0]])
ROWS = t(values=[[1, 3, 5], [2, 2, 9]])
CASES += [
    case("aten::searchsorted.Tensor", SORTED, VALUES, dtypes=FULL),
    case("aten::searchsorted.Tensor", SORTED, VALUES, right=True, out_int32=True),
    case("aten::searchsorted.Tensor", ROWS, t(2, 7, low=0, high=9), dtypes=[torch.float32, torch.float64, I32, I64, torch.uint8]),
    case("aten::searchsorted.Tensor", ROWS, t(2, 7, low=0, high=9), side="right", dtypes=[torch.float32, I64]),
    case("aten::searchsorted.Tensor", t(values=[5.0, 1.0, 3.0]), t(9), sorter=ints(1, 2, 0)),
    case("aten::searchsorted.Tensor", t(0), VALUES),
    case("aten::searchsorted.Tensor", SORTED, t(0, 3)),
    case("aten::searchsorted.Tensor", SORTED, t(values=4.0)),
    case("aten::searchsorted.Tensor", ROWS, t(1, 3), error="should be 1 dimension or the first N-1 dimensions"),
    case("aten::searchsorted.Tensor", ROWS, t(2, 3), side="up", error="side can only be 'left' or 'right' but got up"),
    case("aten::searchsorted.Tensor", ROWS, t(2, 3), side="left", right=True, error="can't be set to opposites"),
    case("aten::searchsorted.Tensor", SORTED, VALUES, sorter=ints(1, 2), error="must have the same size"),
    case("aten::searchsorted.Scalar", SORTED, 4, dtypes=FULL),
    case("aten::searchsorted.Scalar", SORTED, 5.0, right=True),
    case("aten::searchsorted.Scalar", ROWS, 4, error="input value can be a scalar only when boundaries tensor dimension is 1"),
    case("aten::bucketize.Tensor", VALUES, SORTED, dtypes=FULL),
    case("aten::bucketize.Tensor", t(9, dtype=I64, low=0, high=9), ints(1, 4, 4, 6), right=True),
    case("aten::bucketize.Tensor", t(3000), t(values=[-1.0, 0.5, 2.0]), out_int32=True),
    case("aten::bucketize.Tensor", VALUES, ROWS, error="boundaries tensor must be 1 dimension, but got dim(2)"),
    case("aten::bucketize.Scalar", 5, SORTED),
    case("aten::bucketize.Scalar", 2.5, SORTED, right=True, dtypes=FULL),
]
