"""Operators in the output of torch.export and decompositions; the newest by reference functions, since PyTorch 1.13 lacks them."""

import math

import torch

from tests.ops.case import ALL, FULL, case, t

LONG = torch.int64
INF = math.inf


def longs(*values):
    return t(values=list(values), dtype=LONG)


def safe_softmax(x, dim, dtype=None):
    is_empty = (x == -INF).all(dim, keepdim=True)
    return torch.softmax(x.masked_fill(is_empty, 0), dim, dtype=dtype).masked_fill(is_empty, 0)


def nonzero_static(x, size, fill_value=-1):
    found = x.nonzero()[:size]
    return torch.cat([found, torch.full((size - len(found), x.dim()), fill_value)])


def within(x, indices):
    return [None if index is None else index.clamp(-x.size(i), x.size(i) - 1) for i, index in enumerate(indices)]


def masked_index(x, mask, indices, fill):
    found = torch.ops.aten.index(x, within(x, indices))
    return found.masked_fill(~mask, fill)


def masked_put(x, mask, indices, values):
    return torch.ops.aten.index_put(x, within(x, indices), values.masked_fill(~mask, 0), True)


def number(end):
    assert not isinstance(end, torch.Tensor) or end.dim() == 0, "one number"
    return float(end)


def ends(function):
    """Tensor bounds as numbers."""
    return lambda start, end, *rest, **named: function(number(start), number(end), *rest, **named)


def refusing(*_):
    raise RuntimeError("PyTorch 1.13 goes on")


def of_bools(function):
    def run(x):
        assert x.dtype == torch.bool, "bool"
        return function(x)

    return run


ROWS, COLUMNS = t(values=[[0, 7], [-9, 2]], dtype=LONG), t(values=[[3, 1], [0, -1]], dtype=LONG)
MASK = t(values=[[True, False], [False, True]], dtype=torch.bool)
BAG = dict(dtypes=FULL, strided=False)
CASES = [
    case("aten::_safe_softmax", t(3, 4), -1, reference=safe_softmax, dtypes=FULL),
    case("aten::_safe_softmax", t(3, 4), 0, torch.float64, reference=safe_softmax),
    case("aten::_safe_softmax", t(values=[[1.0, -INF, 2.0], [-INF, -INF, -INF]]), 1, reference=safe_softmax),
    case("aten::_embedding_bag", t(6, 3), longs(1, 2, 4, 5), longs(0, 2), **BAG),
    case("aten::_embedding_bag", t(6, 3), longs(1, 2, 4, 5), longs(0, 2), False, 1, False, None, False, 2, **BAG),
    case("aten::_embedding_bag", t(6, 3), longs(1, 2, 4, 5), longs(0, 2), False, 0, False, t(4), **BAG),
    case("aten::_cdist_forward", t(3, 4), t(5, 4), 1.5, None, dtypes=FULL, gradient=False),
    case("aten::_pdist_forward", t(5, 4), dtypes=FULL, strided=False, gradient=False),
    case("aten::_is_all_true", MASK, reference=of_bools(torch.all)),
    case("aten::_is_any_true", MASK, reference=of_bools(torch.any)),
    case("aten::_is_any_true", t(3), reference=of_bools(torch.any), error=("bool", "expected bool")),
    case("aten::_int_mm", t(3, 4, low=-120, high=120), t(4, 2, low=-120, high=120), dtypes=[torch.int8],
         reference=lambda a, b: (a.long() @ b.long()).int()),
    case("aten::_int_mm", t(2, 3), t(3), reference=torch.mm, error=("", "Expected mat2 to be of dimension 2 but got 1")),
    case("aten::nonzero_static", t(3, 4, low=-0.6, high=0.6), size=5, dtypes=[torch.int64, torch.float32], reference=nonzero_static),
    case("aten::nonzero_static", t(values=[[0, 1], [0, 2]]), size=4, fill_value=7, dtypes=ALL, reference=nonzero_static),
    case("aten::nonzero_static", t(values=[0, 1]), size=-1, reference=nonzero_static, error=("", "must be an non-negative integer")),
    case("aten::_unsafe_masked_index", t(4, 5), MASK, [ROWS, COLUMNS], 1.5, reference=masked_index, dtypes=FULL),
    case("aten::_unsafe_masked_index", t(4), MASK, [ROWS, COLUMNS], 0, reference=masked_index, error=("", "too many indices")),
    case("aten::_unsafe_masked_index_put_accumulate", t(4, 5), MASK, [ROWS, COLUMNS], t(2, 2), reference=masked_put, dtypes=FULL),
    case("aten::narrow.Tensor", t(4, 5), 1, longs(2), 2, error="start must be an 0-dim integral Tensor"),
    case("aten::narrow.Tensor", t(4, 5), 1, t(values=2, dtype=LONG), 2, dtypes=FULL),
    case("aten::linalg_diagonal", t(2, 3, 4), dtypes=FULL),
    case("aten::linalg_diagonal", t(2, 3, 4), offset=1, dim1=0, dim2=2, dtypes=FULL),
    case("aten::adjoint", t(2, 3, 4), dtypes=FULL),
    case("aten::_stack", [t(2, 3), t(2, 3)], 1, dtypes=FULL),
    case("aten::linalg_matmul", t(2, 3), t(3, 4), dtypes=FULL),
    case("aten::native_channel_shuffle", t(2, 6, 3, 3), 3),
    case("aten::unique_dim_consecutive", t(values=[[1, 1], [1, 1], [0, 2], [1, 1]]), 0, True, True, dtypes=[torch.int64, torch.float32]),
    case("aten::fill.Tensor", t(2, 3), t(values=2.5), dtypes=FULL),
    case("aten::ldexp_", t(3, 4), t(4), dtypes=FULL),
    case("aten::polygamma_", t(3, 4, low=0.5, high=3), 1, dtypes=FULL),
    case("aten::float_power_.Scalar", t(3, 4, low=0.5, high=3), 2.5, dtypes=[torch.float64]),
    case("aten::float_power_.Tensor", t(3, 4, low=0.5, high=3), t(4), dtypes=[torch.float64]),
    case("aten::float_power_.Scalar", t(3), 2.0, error="the operation's result requires dtype"),
    case("aten::poisson", t(3, 4, low=0, high=40), check="shape", dtypes=FULL),
    case("aten::binomial", t(values=[0.0, 3.0, 50.0]), t(2, 3, low=0, high=1), check="shape", dtypes=FULL),
    case("aten::binomial", t(values=[3.0]), t(values=[1.5]), error=("goes on", "a chance between 0 and 1"), reference=refusing),
    case("aten::binomial", t(values=[3.0]), t(values=[0.5], dtype=torch.float64), error="expected"),
    *[case(f"aten::{name}", t(2, 3), *numbers, check="shape", dtypes=FULL)
      for name, *numbers in (("uniform", -1.0, 2.0), ("cauchy",), ("log_normal",), ("exponential", 2.0), ("geometric", 0.3), ("random",),
                             ("random.from", 1, 5), ("random.to", 5), ("normal_functional", 1.0, 2.0))],
    case("aten::poisson", t(values=[-1.0]), error="invalid Poisson rate, expected rate to be non-negative"),
]
for name in ("linspace", "logspace"):
    function, low, high = ends(getattr(torch, name)), t(values=-1.5), t(values=2.5)
    base = [10.0] if name == "logspace" else []
    CASES += [
        case(f"aten::{name}.Tensor_Tensor", low, high, 5, reference=function, gradient=False),
        case(f"aten::{name}.Tensor_Scalar", low, 2.5, 5, reference=function, gradient=False),
        case(f"aten::{name}.Scalar_Tensor", -1.5, high, 5, *base, dtype=torch.float64, reference=function, gradient=False),
        case(f"aten::{name}.Tensor_Tensor", t(1), high, 5, reference=function, error=("one number", "only supports 0-dimensional start and end tensors")),
    ]
