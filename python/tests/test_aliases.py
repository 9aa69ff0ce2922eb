"""PyTorch's aliases, and methods written in Python."""

import pytest
import torch

from support import from_torch, same, to_torch
from tensord import engine
from tensord.engine import _aliases

WITH_OTHER = ("arctan2", "divide", "greater", "greater_equal", "less", "less_equal", "multiply", "not_equal", "subtract", "true_divide")
METHODS = [name for name in _aliases.methods() if name != "clip" and name != "clip_"]


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    torch.manual_seed(1)
    x = torch.rand(3, 3) + (1 if "cosh" in name else 0)
    others = (torch.rand(3, 3),) if name.rstrip("_") in WITH_OTHER else ()
    y, mine = from_torch(x), [from_torch(other) for other in others]
    want = getattr(x.clone(), name)(*others)
    got = getattr(y, name)(*mine)
    same(got, want)
    assert (got is y or got.data_ptr() == y.data_ptr()) == (name.endswith("_") or name == "adjoint")
    if hasattr(torch, name):
        same(getattr(engine, name)(from_torch(x), *mine), getattr(torch, name)(x.clone(), *others))


def test_all_aliases_are_there():
    for name in _aliases.NAMES:
        assert callable(getattr(engine, name)) and name in dir(engine)
    # No alias of PyTorch is missing.
    names = {*dir(torch), *dir(torch.Tensor), *(f"special_{name}" for name in dir(torch.special)), *(f"linalg_{name}" for name in dir(torch.linalg))}
    listed = {name.removeprefix("aten::") for name in engine._engine._operator_names()}
    for name in names - listed - set(_aliases.NAMES):
        if not name.startswith("_"):
            with pytest.raises(AttributeError):
                engine._engine._operator("aten::" + name)


def test_operators_named_as_builtins_do_not_hide_them():
    for module in (engine, engine.nn.functional):
        for name in ("sorted", "list", "len", "sum", "min", "max", "range", "abs", "any", "all", "round", "dict", "int", "float", "bool", "str", "zip"):
            if hasattr(module, name):
                getattr(module, name)
    assert "sorted" in dir(engine)
    x = torch.randn(2, 3)
    same(engine.nn.functional.layer_norm(from_torch(x), (3,)), torch.nn.functional.layer_norm(x, (3,)))
    same(engine.nn.functional.adaptive_avg_pool1d(from_torch(x), 2), torch.nn.functional.adaptive_avg_pool1d(x, 2))


def test_clip():
    x = torch.randn(5)
    y = from_torch(x)
    same(y.clip(-0.5, 0.5), x.clip(-0.5, 0.5))
    same(y.clip(min=0.1), x.clip(min=0.1))
    same(y.clip_(max=0.1), x.clip_(max=0.1))
    same(y, x)


def test_gradients():
    x = torch.rand(4, requires_grad=True)
    y = from_torch(x)
    (x.arcsin() * x.where(x > 0.5, x.multiply(2))).sum().backward()
    (y.arcsin() * y.where(y > 0.5, y.multiply(2))).sum().backward()
    same(y.grad, x.grad)
    values = torch.randn(2, 3, dtype=torch.complex64, requires_grad=True)
    mine = from_torch(values)
    (values.H.real * values.T.imag).sum().backward()
    (mine.H.real * mine.T.imag).sum().backward()
    same(mine.grad, values.grad)


RESULTS = {
    "where": lambda p, x: x.where(x > 0, x * 2), "polygamma": lambda p, x: (x.abs() + 1).polygamma(1), "H": lambda p, x: x.H,
    "mH": lambda p, x: x.mH, "real": lambda p, x: x.real,
    "H of a number": lambda p, x: p.tensor(2.0).H, "complex real": lambda p, x: p.complex(x, x * 2).real,
    "complex imag": lambda p, x: p.complex(x, x * 2).imag,
    "complex H": lambda p, x: p.complex(x, x * 2).H, "as_strided_": lambda p, x: x.clone().as_strided_((2, 2), (1, 2), 1),
    "resize_as_": lambda p, x: x.clone().resize_as_(p.ones(2, 3)),
    "as_strided_ of torch": lambda p, x: p.as_strided_(x.clone(), (2,), (3,)), "resize_as_ of torch": lambda p, x: p.resize_as_(x.clone(), p.ones(1, 2)),
    "apply_": lambda p, x: x.clone().apply_(lambda value: value + 1), "apply_ ints": lambda p, x: (x * 10).long().apply_(lambda value: value // 2),
    "apply_ strided": lambda p, x: x.clone().t().apply_(lambda value: -value), "map_": lambda p, x: x.clone().map_(x.t().contiguous(), lambda a, b: a - b),
    "map_ broadcast": lambda p, x: x.clone().map_(x[0], lambda a, b: a * b), "map2_": lambda p, x: x.clone().map2_(x, x[:1], lambda a, b, c: a + b * c),
    "new list": lambda p, x: x.new([1, 2]), "new of a tensor": lambda p, x: x.new(x), "to_sparse_coo": lambda p, x: x.to_sparse_coo().to_dense(),
    "conj_physical_": lambda p, x: p.complex(x, x).conj_physical_(), "conj_physical_ of torch": lambda p, x: p.conj_physical_(x.clone()),
}


@pytest.mark.parametrize("name", list(RESULTS))
def test_results(name):
    torch.manual_seed(2)
    x = torch.randn(3, 3)
    want, got = RESULTS[name](torch, x), RESULTS[name](engine, from_torch(x))
    if want.is_complex():
        assert got.is_complex() and tuple(got.shape) == tuple(want.shape)
        same(engine.view_as_real(got.resolve_conj()), torch.view_as_real(want.resolve_conj()))
    else:
        same(got, want)


FACTS = [
    lambda p, x: x.new(2, 3).shape, lambda p, x: x.new().shape, lambda p, x: x.new(x.shape).shape, lambda p, x: x.new(5).shape,
    lambda p, x: x.long().new(3).dtype is p.int64,
    lambda p, x: x.is_cpu, lambda p, x: x.is_sparse_csr, lambda p, x: x.is_quantized, lambda p, x: x.is_nested,
    lambda p, x: x.is_distributed(), lambda p, x: x.is_set_to(x),
    lambda p, x: x.is_set_to(x.clone()), lambda p, x: x.is_set_to(x.view(3, 3)), lambda p, x: x.is_set_to(x.t()),
    lambda p, x: x[1:].storage().tolist(), lambda p, x: len(x[0].storage()),
    lambda p, x: x.storage()[2], lambda p, x: x.storage().data_ptr() == x.data_ptr(), lambda p, x: x.storage().nbytes(),
    lambda p, x: x.storage().element_size(), lambda p, x: x.storage().dtype is p.float32, lambda p, x: list(x.storage()),
    lambda p, x: p.is_storage(x.storage()), lambda p, x: p.is_storage(x),
    lambda p, x: (p.pi, p.inf, p.e), lambda p, x: p.nan != p.nan,
]


@pytest.mark.parametrize("number", range(len(FACTS)))
def test_facts(number):
    x = torch.arange(9.0).reshape(3, 3)
    want, got = FACTS[number](torch, x), FACTS[number](engine, from_torch(x))
    assert got == want or tuple(got) == tuple(want)


WRONG = [
    (lambda p, x: x.requires_grad_().apply_(float), RuntimeError), (lambda p, x: x.apply_(3), TypeError),
    (lambda p, x: x.apply_(str), TypeError), (lambda p, x: x.map_(x.long(), max), TypeError),
    (lambda p, x: x.map_(p.ones(2), max), RuntimeError), (lambda p, x: p.ones(2, 2, 2).H, RuntimeError),
    (lambda p, x: p.ones(2).H, RuntimeError), (lambda p, x: x.imag, RuntimeError),
    (lambda p, x: x.new(2.5), TypeError), (lambda p, x: p.finfo(p.int32), TypeError), (lambda p, x: p.iinfo(p.float32), TypeError),
    (lambda p, x: x.storage()[100], IndexError),
    (lambda p, x: x.storage()[1:], RuntimeError),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_uses(number):
    call, error = WRONG[number]
    with pytest.raises(error):
        call(torch, torch.ones(3, 3))
    # The engine's own error types derive from several of Python's.
    with pytest.raises((error, engine.Error)):
        call(engine, engine.ones(3, 3))


def test_writes():
    values = engine.complex(engine.ones(2), engine.zeros(2))
    values.real = 3
    values.imag = engine.tensor([1.0, 2.0])
    assert values.tolist() == [3 + 1j, 3 + 2j]
    x = engine.arange(6.0).reshape(2, 3)
    x.storage()[1] = 7
    assert x[0, 1].item() == 7
    x.storage().fill_(2)
    assert (x == 2).all() and "size 6" in repr(x.storage()) and engine.is_storage(x.storage().untyped())
    with pytest.raises(AttributeError):
        x.is_cpu = False


def test_subclasses():
    class Mine(engine.Tensor):
        pass

    x = engine.ones(3, requires_grad=True)
    y = (x * 2).as_subclass(Mine)
    assert type(y) is Mine and y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_finfo(name):
    want, got = torch.finfo(getattr(torch, name)), engine.finfo(getattr(engine, name))
    for part in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "dtype"):
        assert getattr(got, part) == getattr(want, part), part
    if name != "bfloat16":
        assert got.resolution == pytest.approx(want.resolution)
    assert got == engine.finfo(getattr(engine, name)) and engine.finfo() == engine.finfo(engine.float32)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_iinfo(name):
    want, got = torch.iinfo(getattr(torch, name)), engine.iinfo(getattr(engine, name))
    for part in ("bits", "max", "min", "dtype"):
        assert getattr(got, part) == getattr(want, part), part
    assert got == engine.iinfo(getattr(engine, name)) and got.dtype in repr(got)


@pytest.mark.parametrize("module", ["linalg", "fft", "special"])
def test_modules_of_operators(module):
    theirs, mine = getattr(torch, module), getattr(engine, module)
    wanted = {name for name in dir(theirs) if not name.startswith("_") and name[0].islower()
              and type(getattr(theirs, name)).__name__ == "builtin_function_or_method"}
    assert wanted <= set(dir(mine))
    with pytest.raises(AttributeError, match="nothing"):
        mine.nothing


def test_functions_of_modules():
    x = torch.randn(3, 3)
    y = from_torch(x)
    same(engine.linalg.inv(y), torch.linalg.inv(x), rtol=1e-3, atol=1e-4)
    same(engine.linalg.norm(y, 1), torch.linalg.norm(x, 1))
    same(engine.linalg.matmul(y, y), torch.linalg.matmul(x, x))
    same(engine.fft.irfft(engine.fft.rfft(y)), torch.fft.irfft(torch.fft.rfft(x)))
    same(engine.fft.fftfreq(5), torch.fft.fftfreq(5))
    same(engine.special.expit(y), torch.special.expit(x))
    same(engine.special.softmax(y, 0), torch.special.softmax(x, 0))
    assert to_torch(engine.special.erfcx(y)).shape == x.shape


@pytest.mark.parametrize("shape,q", [((8, 5), 3), ((5, 8), 4), ((2, 7, 5), 5), ((6, 3), 3)])
def test_few_singular_values(shape, q):
    torch.manual_seed(6)
    x = torch.randn(shape)
    y = from_torch(x)
    for name, options in (("svd_lowrank", {}), ("svd_lowrank", {"M": True}), ("pca_lowrank", {}), ("pca_lowrank", {"center": False, "niter": 1})):
        given, mine = ({name: tensor.mean(-1, True).expand(shape) if name == "M" else value for name, value in options.items()} for tensor in (x, y))
        torch.manual_seed(7), engine.manual_seed(7)
        u, s, v = getattr(torch, name)(x, q, **given)
        a, b, c = getattr(engine, name)(y, q, **mine)
        same(b, s, rtol=1e-4, atol=1e-5)
        same((a * b.unsqueeze(-2)) @ c.mT, (u * s.unsqueeze(-2)) @ v.mT, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="q"):
        engine.pca_lowrank(y, 100)
    with pytest.raises(ValueError, match="niter"):
        engine.pca_lowrank(y, 2, niter=-1)
    with pytest.raises(NotImplementedError, match="sparse"):
        engine.svd_lowrank(engine.eye(3).to_sparse())
