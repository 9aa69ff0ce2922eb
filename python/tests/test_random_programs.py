"""Random programs compared with PyTorch 1.13: indices, promotion, printing. Intended differences are listed here and in
docs/engine.md."""

import itertools
import math
import random

import pytest
import torch

from support import from_torch
from tensord import engine

# Indices.


def position(rng, size):
    return rng.randint(-size, size - 1) if size else 0


def one_index(rng, shape, dim):
    size = shape[dim] if dim < len(shape) else 3
    kind = rng.randint(0, 9)
    if kind <= 2:
        return position(rng, size)
    if kind <= 4:
        start, stop = (rng.choice([None, position(rng, size), size]) for _ in range(2))
        return slice(start, stop, rng.choice([None, None, 1, 2, 3]))
    if kind == 5:
        return rng.choice([None, True])
    if kind == 6:
        return [position(rng, size) for _ in range(rng.randint(0, 3))]
    if kind == 7:
        inner = rng.choice([(), (2,), (3,), (1,), (2, 1), (2, 2), (0,)])
        return torch.tensor([position(rng, size) for _ in range(math.prod(inner))], dtype=torch.int64).reshape(inner)
    return torch.rand(tuple(shape[dim:dim + rng.choice([1, 1, 2])])) < 0.5 if dim < len(shape) else ...


def drawn_index(rng, shape):
    items, dim = [], 0
    for _ in range(rng.randint(1, max(1, len(shape)))):
        item = one_index(rng, shape, dim)
        items.append(item)
        if isinstance(item, torch.Tensor) and item.dtype is torch.bool:
            dim += item.ndim
        elif item is not None and not isinstance(item, bool) and item is not ...:
            dim += 1
    if any(isinstance(item, torch.Tensor) and item.dtype is torch.bool and item.ndim > 1 for item in items) and len(items) > 1:
        return drawn_index(rng, shape)  # NumPy's rule here, see test_indexing
    if sum(item is ... for item in items) > 1:
        return drawn_index(rng, shape)  # an error here
    return tuple(items) if len(items) > 1 or rng.random() < 0.3 else items[0]


def own(item):
    if isinstance(item, tuple):
        return tuple(own(part) for part in item)
    return from_torch(item) if isinstance(item, torch.Tensor) else item


def outcome(function):
    try:
        return function(), None
    except Exception as error:
        return None, error


def agree(got, want, *about):
    assert (got[1] is None) == (want[1] is None), (*about, got, want)
    if want[1] is not None:
        assert isinstance(got[1], (IndexError, ValueError, TypeError)), about
        return
    assert got[0].tolist() == want[0].tolist() and tuple(got[0].shape) == tuple(want[0].shape), (*about, got[0], want[0])
    assert str(got[0].dtype)[7:] == str(want[0].dtype)[6:], about


def value_for(rng, shape, dtype):
    kind = rng.randint(0, 5)
    count = math.prod(shape)
    if kind == 0:
        return rng.choice([7, 2.5, True])
    if kind == 1:
        return torch.tensor(-3).to(dtype)
    if kind == 2:
        return torch.arange(math.prod(shape[-1:])).to(dtype) - 50
    if kind == 3:
        return torch.rand((*shape, 2)).to(dtype)
    if kind == 4 and count == 1:
        return torch.tensor(9, dtype=torch.int32).reshape(shape)
    return (torch.arange(count).reshape(shape) + 100).to(dtype)


@pytest.mark.parametrize("seed", range(8))
def test_indices(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(250):
        shape = tuple(rng.choice([1, 2, 3, 4, 0] if rng.random() < 0.1 else [1, 2, 3, 4]) for _ in range(rng.randint(1, 4)))
        x = torch.arange(math.prod(shape)).reshape(shape).to(rng.choice([torch.float32, torch.int64, torch.float64]))
        x = x.transpose(0, 1) if rng.random() < 0.2 and x.ndim > 1 else x
        index = drawn_index(rng, tuple(x.shape))
        want = outcome(lambda: x[index])
        agree(outcome(lambda: from_torch(x)[own(index)]), want, tuple(x.shape), index)
        value = value_for(rng, tuple(want[0].shape) if want[1] is None else (2,), x.dtype)
        a, b = x.clone(), from_torch(x)
        agree(outcome(lambda: (b.__setitem__(own(index), own(value)), b)[1]), outcome(lambda: (a.__setitem__(index, value), a)[1]), tuple(x.shape),
            index, value)


# Promotion.

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool", "complex64", "complex128"]
OPERATORS = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b, "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "pow": lambda a, b: a ** b,
    "eq": lambda a, b: a == b, "and": lambda a, b: a & b, "sub": lambda a, b: a - b, "imul": lambda a, b: a.__imul__(b), "itruediv": lambda a,
    b: a.__itruediv__(b),
}


def has_half_complex(*dtypes):
    """PyTorch returns complex32 for these, which is not supported here."""
    return "float16" in dtypes and any(dtype.startswith("complex") for dtype in dtypes)


@pytest.mark.parametrize("name", OPERATORS)
def test_promotion(name):
    """PyTorch's dtype wherever it has a result; it refuses some that are computed here (bool, float16 on the CPU)."""
    run = OPERATORS[name]
    for a, b, first, second in itertools.product(DTYPES, DTYPES, ((2, 2), ()), ((2, 2), ())):
        if has_half_complex(a, b):
            continue
        want = outcome(lambda: run(torch.ones(first, dtype=getattr(torch, a)), torch.ones(second, dtype=getattr(torch, b))))
        if want[1] is None:
            got = run(engine.ones(first, dtype=getattr(engine, a)), engine.ones(second, dtype=getattr(engine, b)))
            assert str(got.dtype)[7:] == str(want[0].dtype)[6:], (a, first, b, second)
    for dtype, number, shape in itertools.product(DTYPES, (True, 2, 2.5, 1 + 2j), ((2, 2), ())):
        want = outcome(lambda: run(torch.ones(shape, dtype=getattr(torch, dtype)), number))
        if want[1] is None and str(want[0].dtype) != "torch.complex32":
            assert str(run(engine.ones(shape, dtype=getattr(engine, dtype)), number).dtype)[7:] == str(want[0].dtype)[6:], (dtype, number, shape)


def test_result_types():
    for a, b, first, second in itertools.product(DTYPES, DTYPES, ((2,), ()), ((2,), ())):
        if has_half_complex(a, b):
            continue
        want = torch.result_type(torch.ones(first, dtype=getattr(torch, a)), torch.ones(second, dtype=getattr(torch, b)))
        got = engine.result_type(engine.ones(first, dtype=getattr(engine, a)), engine.ones(second, dtype=getattr(engine, b)))
        assert str(got)[7:] == str(want)[6:], (a, first, b, second)
        assert engine.can_cast(getattr(engine, a), getattr(engine, b)) == torch.can_cast(getattr(torch, a), getattr(torch, b))
        assert str(engine.promote_types(getattr(engine, a), getattr(engine, b)))[7:] == str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:]


# Printing.


def drawn_values(rng, dtype):
    shape = tuple(rng.choice([0, 1, 5, 20, 70] if rng.random() < 0.1 else [1, 2, 3, 4, 7]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))
    x = torch.randn(shape, dtype=torch.float64) * rng.choice([1, 1, 10, 1e3, 1e5, 1e8, 1e-3, 1e-5, 1e-8, 1e12, 1e30])
    x = x.round() if rng.random() < 0.35 else x
    if rng.random() < 0.2:
        x = torch.where(torch.rand(shape) < 0.3, torch.tensor(rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0]), dtype=torch.float64), x)
    if dtype.is_complex:
        return torch.complex(x, torch.randn(shape, dtype=torch.float64) * rng.choice([1, 1e3, 1e-4, 0])).to(dtype)
    if dtype.is_floating_point or dtype is torch.bool:
        return x.to(dtype)
    limits = torch.iinfo(dtype)
    return x.nan_to_num(0, limits.max, limits.min).clamp(max(limits.min, -2**62), min(limits.max, 2**62)).to(dtype)


def drawn_options(rng):
    options = {}
    for name, choices in (("precision", [0, 1, 2, 3, 6, 8]), ("threshold", [0, 5, 20, 1000]), ("edgeitems", [1, 2, 3, 5]), ("linewidth", [20, 40, 60,
        120, 200]),
                          ("sci_mode", [True, False, None]), ("profile", ["default", "short", "full"])):
        if rng.random() < 0.25:
            options[name] = rng.choice(choices)
    return options


def without_breaks(printed):
    """Where the dtype's name is longer than PyTorch's, a line may break before it."""
    return printed if "dtype" not in printed else "".join(printed.split())


@pytest.mark.parametrize("seed", range(5))
def test_printing(seed):
    rng = random.Random(seed)
    torch.manual_seed(seed)
    try:
        for _ in range(200):
            x = drawn_values(rng, getattr(torch, rng.choice(DTYPES)))
            y = from_torch(x)
            if rng.random() < 0.15 and (x.is_floating_point() or x.is_complex()):
                x, y = x.clone().requires_grad_(), y.requires_grad_()
            options = drawn_options(rng)
            for module in (torch, engine):
                module.set_printoptions(profile="default")
                module.set_printoptions(**options)
            assert without_breaks(repr(y).replace("engine.", "torch.")) == without_breaks(repr(x)), options
    finally:
        for module in (torch, engine):
            module.set_printoptions(profile="default")
