"""Indexing, scattering, padding, sorting and random numbers."""

import torch

from tests.ops.case import ALL, FLOATING, FULL, NUMERIC, case, t

I64 = torch.int64
F64 = torch.float64


def ints(*values):
    return t(values=list(values), dtype=I64)


def grid(values):
    return t(values=values, dtype=I64)


MASK = t(values=[True, False, True], dtype=torch.bool)
MASK2 = t(values=[[True, False], [False, True], [True, True]], dtype=torch.bool)

ALL_OF_IT = t(values=True, dtype=torch.bool)
NONE_OF_IT = t(values=False, dtype=torch.bool)


def _subscript(indices):
    return tuple(slice(None) if index is None else index for index in indices)


def _read(x, indices):
    """As in a program: a 0-dimensional mask adds a dimension."""
    return x[_subscript(indices)]


def _written(x, indices, values, accumulate=False):
    out = x.clone()
    out[_subscript(indices)] = out[_subscript(indices)] + values if accumulate else values
    return out


def _write(x, indices, values):
    x[_subscript(indices)] = values
    return x


OF_FLAGS = [
    case("aten::index.Tensor", t(*sizes), indices, reference=_read)
    for flag in [ALL_OF_IT, NONE_OF_IT]
    for sizes, indices in [((2, 3), [flag]), ((2, 3), [None, flag]), ((2, 3), [None, None, flag]), ((2, 3), [flag, flag]),
                           ((2, 3), [ints(1), flag]), ((3, 4), [flag, None, ints(1)]), ((), [flag])]
] + [
    case("aten::index_put", t(2, 3), [flag], values, accumulate, reference=_written)
    for flag in [ALL_OF_IT, NONE_OF_IT] for accumulate in [False, True] for values in [t(3), t(2, 3), t(1, 2, 3), t()]
] + [case("aten::index_put_", t(2, 3), [None, ALL_OF_IT], t(2, 1, 1), reference=_write)]

CASES = [
    case("aten::index.Tensor", t(5, 3), [ints(4, 0, -1)], dtypes=ALL),
    case("aten::index.Tensor", t(3, 4, 5), [None, ints(1, 2)]),
    case("aten::index.Tensor", t(3, 4, 5), [ints(1, 2), None, ints(0, 3)]),
    case("aten::index.Tensor", t(3, 4, 5), [None, ints(1, 2), ints(0, 3)]),
    case("aten::index.Tensor", t(3, 4, 5), [grid([[0], [2]]), ints(0, 3)]),
    case("aten::index.Tensor", t(3, 4), [MASK]),
    case("aten::index.Tensor", t(3, 2, 4), [MASK2]),
    case("aten::index.Tensor", t(4, 3), [None, MASK]),
    case("aten::index.Tensor", t(4, 3), [t(0, dtype=I64)]),
    case("aten::index.Tensor", t(3), [ints(3)], error="index 3 is out of bounds for dimension 0 with size 3"),
    case("aten::index.Tensor", t(3, 4), [ints(0, 1), ints(0, 1, 2)], error="shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]"),
    case("aten::index.Tensor", t(4), [MASK], error="The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [4] at index 0"),
    case("aten::index_put_", t(5, 3), [ints(4, 0)], t(2, 3), dtypes=ALL),
    case("aten::index_put_", t(5, 3), [ints(1, 1)], t(2, 3), True),
    case("aten::index_put_", t(5, 3), [None, ints(0, 2)], t()),
    case("aten::index_put_", t(3, 4), [MASK], t(4)),
    case("aten::index_put_", t(3, 2), [MASK2], t(values=1.5)),
    case("aten::index_put", t(5, 3), [ints(4, 0)], t(3)),
    case("aten::index_put", t(5, 3), [ints(4, 0)], t(2), error="shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [2, 3]"),
    case("aten::nonzero", t(3, 4, low=-1, high=1), dtypes=ALL),
    case("aten::nonzero", t()),
    case("aten::nonzero_numpy", t(3, 4, low=-1, high=1, dtype=I64)),
    case("aten::argwhere", t(3, 4, low=-1, high=1, dtype=I64)),
    case("aten::where", MASK2),
    case("aten::masked_select", t(3, 4), t(4, dtype=torch.bool), dtypes=ALL, strided=False),
    # PyTorch 1.13 gives wrong gradients for strided tensors here: it fills zeros in memory order.
    case("aten::masked_select", t(3, 4), t(4, dtype=torch.bool), gradient=False),
    case("aten::masked_scatter", t(3), MASK, t(4)),
    case("aten::index_select", t(5, 3), 0, ints(4, 0, 4), dtypes=ALL),
    case("aten::index_select", t(5, 3), -1, ints(2)),
    case("aten::index_select", t(5, 3), 0, t(0, dtype=I64)),
    case("aten::index_select", t(5, 3), 0, ints(5), error="index out of range in self"),
    case("aten::embedding", t(5, 3), grid([[1, 4], [0, 0]]), dtypes=FLOATING),
    case("aten::embedding", t(5, 3), ints(5), error="index out of range in self"),
    case("aten::index_add", t(5, 3), 0, ints(4, 0, 4), t(3, 3), dtypes=NUMERIC),
    case("aten::index_add", t(5, 3), 1, ints(2, 0), t(5, 2), alpha=2),
    case("aten::index_copy", t(5, 3), 0, ints(4, 0), t(2, 3)),
    case("aten::index_fill.int_Scalar", t(5, 3), 0, ints(4, 0), 2.5),
    case("aten::index_fill.int_Tensor", t(5, 3), 1, ints(-1), t(values=2.5)),
    case("aten::take", t(3, 4), grid([[0, -1], [5, 11]]), dtypes=ALL),
    case("aten::gather", t(3, 4), 1, grid([[0, 1], [3, 3], [2, 0]]), dtypes=ALL),
    case("aten::gather", t(3, 4), 0, grid([[0, 1, 2]])),
    case("aten::gather", t(3, 4), 1, grid([[4]]), error="index 4 is out of bounds for dimension 1 with size 4"),
    case("aten::scatter.src", t(3, 4), 1, grid([[0, 1], [3, 2], [2, 0]]), t(3, 2), dtypes=ALL),
    case("aten::scatter.value", t(3, 4), 0, grid([[0, 1, 2, 0]]), 2.5),
    case("aten::scatter.reduce", t(3, 4), 1, grid([[0, 1], [3, 2], [2, 0]]), t(3, 2), reduce="add"),
    case("aten::scatter.reduce", t(3, 4), 1, grid([[0, 1], [3, 2], [2, 0]]), t(3, 2), reduce="multiply"),
    case("aten::scatter_add", t(3, 4), 1, grid([[0, 0], [3, 2], [2, 0]]), t(3, 2), dtypes=NUMERIC),
    *[case("aten::scatter_reduce.two", t(3, 4), 1, grid([[0, 0], [3, 2], [2, 0]]), t(3, 2), reduce, include_self=keep)
      for reduce in ["sum", "prod", "mean", "amax", "amin"] for keep in [True, False]],
    case("aten::constant_pad_nd", t(2, 3), [1, 2], 1.5, dtypes=NUMERIC),
    case("aten::constant_pad_nd", t(2, 3, 4), [1, -1, 0, 2]),
    case("aten::pad", t(2, 3), [1, 2]),
    case("aten::pad", t(2, 3), [1, 2], "constant", 2.0),
    case("aten::pad", t(2, 3, 4), [1, 2], "reflect"),
    case("aten::pad", t(2, 3, 4, 5), [1, 2, 0, 1], "replicate"),
    case("aten::pad", t(2, 3, 4, 5), [1, 2, 0, 1], "circular"),
    case("aten::reflection_pad1d", t(2, 3, 4), [3, 2], dtypes=FULL),
    case("aten::reflection_pad2d", t(2, 3, 4), [3, 2, 1, 0], dtypes=FULL),
    case("aten::reflection_pad3d", t(2, 3, 4, 3), [2, 1, 1, 0, 1, 1]),
    case("aten::replication_pad1d", t(2, 3, 4), [3, 6]),
    case("aten::replication_pad2d", t(2, 3, 4), [3, 2, 1, 0]),
    case("aten::replication_pad3d", t(2, 3, 4, 3), [2, 1, 1, 0, 1, 1]),
    case("aten::_pad_circular", t(2, 3, 4), [3, 2]),
    case("aten::_pad_circular", t(1, 3, 4, 5), [-1, 1, -2, 1]),  # around what is left
    case("aten::_pad_circular", t(1, 2, 6), [2, -3]),
    case("aten::pad", t(2, 3, 5), [1, -1], "circular"),
    case("aten::reflection_pad1d_backward", t(2, 3, 9), t(2, 3, 4), [3, 2], dtypes=FULL),
    case("aten::reflection_pad2d_backward", t(2, 4, 9), t(2, 3, 4), [3, 2, 1, 0], dtypes=FULL),
    case("aten::reflection_pad3d_backward", t(2, 4, 5, 6), t(2, 3, 4, 3), [2, 1, 1, 0, 1, 0]),
    case("aten::replication_pad1d_backward", t(2, 3, 13), t(2, 3, 4), [3, 6], dtypes=FULL),
    case("aten::replication_pad2d_backward", t(2, 4, 9), t(2, 3, 4), [3, 2, 1, 0]),
    case("aten::replication_pad3d_backward", t(2, 5, 5, 6), t(2, 3, 4, 3), [2, 1, 1, 0, 1, 1]),
    case("aten::sort", t(3, 5), dtypes=NUMERIC),
    case("aten::sort", t(3, 5, high=0), 0, True),
    case("aten::sort", t(), 0),
    case("aten::sort", t(values=[1.0, float("nan"), -1.0])),
    case("aten::sort.stable", t(3, 9, low=0, high=2, dtype=I64), stable=True),
    case("aten::msort", t(5, 3)),
    case("aten::argsort", t(3, 5)),
    case("aten::argsort.stable", t(3, 9, low=0, high=2, dtype=I64), stable=True, descending=True),
    case("aten::topk", t(3, 8), 3, dtypes=FULL),
    case("aten::topk", t(), 0),
    case("aten::topk", t(), 1),
    case("aten::topk", t(3, 8), 3, 0, False),
    case("aten::topk", t(3, 8, low=0, high=2, dtype=I64), 5),
    case("aten::topk", t(2, 300, low=0, high=2, dtype=I64), 4),
    case("aten::topk", t(3), 4, error="selected index k out of range"),
    case("aten::kthvalue", t(3, 7), 2),
    case("aten::kthvalue", t(3, 7), 4, 0, True, error="out of range for dimension 0"),
    case("aten::_unique2", t(9, low=0, high=3), True, True, True, dtypes=FULL),
    case("aten::_unique2", t(3, 4, low=0, high=3, dtype=I64), True, True, True),
    case("aten::_unique", t(9, low=0, high=3, dtype=I64), True, True),
    case("aten::unique_dim", t(6, 2, low=0, high=1, dtype=I64), 0, True, True, True),
    case("aten::unique_dim", t(values=[[1.0, 0.0], [float("nan"), 0.0], [float("nan"), 0.0]]), 0, True, True, True),
    case("aten::unique_consecutive", t(9, low=0, high=1, dtype=I64), True, True),
    case("aten::unique_consecutive", t(2, 6, low=0, high=1, dtype=I64), True, True, 1),
    case("aten::bincount", t(9, low=0, high=5, dtype=I64)),
    case("aten::bincount", t(4, low=0, high=5, dtype=I64), t(4, dtype=F64), 9),
    case("aten::one_hot", t(2, 3, low=0, high=4, dtype=I64), 6),
    case("aten::one_hot", ints(0, 2)),
    case("aten::one_hot", ints(7), 6, error="Class values must be smaller than num_classes."),
    case("aten::uniform_", t(2, 3), 1.0, 2.0, check="shape"),
    case("aten::normal_", t(2, 3), check="shape"),
    case("aten::bernoulli_.float", t(2, 3), 0.5, check="shape"),
    case("aten::bernoulli", t(2, 3, low=0, high=1), check="shape"),
    case("aten::bernoulli.p", t(2, 3), 0.5, check="shape"),
    case("aten::random_.from", t(2, 3), 1, 5, check="shape"),
    case("aten::random_.to", t(2, 3), 5, check="shape"),
    case("aten::rand", [2, 3], check="shape"),
    case("aten::randn", [2, 3], check="shape"),
    case("aten::rand_like", t(2, 3), check="shape"),
    case("aten::randn_like", t(2, 3), check="shape"),
    case("aten::randint", 5, [2, 3], check="shape"),
    case("aten::randint.low", 2, 5, [2, 3], check="shape"),
    case("aten::randint_like", t(2, 3), 5, check="shape"),
    case("aten::randint_like.low_dtype", t(2, 3), 2, 5, check="shape"),
    case("aten::randperm", 6, check="shape"),
    case("aten::multinomial", t(2, 5, low=0.1, high=1), 3, check="shape"),
    case("aten::multinomial", t(5, low=0.1, high=1), 9, True, check="shape"),
]

# At the end, because random numbers depend on the row's position.
CASES += OF_FLAGS + [
    # For column-major tensors 1.13 fills columns.
    case("aten::masked_scatter_", t(2, 3), MASK, t(5), dtypes=ALL, strided=False),
    case("aten::masked_scatter_", t(3, 2), MASK2, t(2, 3), strided=False),
    case("aten::masked_scatter_", t(3, 2), MASK2, t(3), error=("source", "expected more elements in source")),
]
