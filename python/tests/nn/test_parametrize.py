"""Weights computed from others, compared with PyTorch's."""

import copy
import pickle

import pytest
import torch
from torch.nn.utils import fusion, parametrizations as their_parametrizations, parametrize as their_parametrize

from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import _fusion, _weight_norms, parametrizations, parametrize, stateless


def seed():
    torch.manual_seed(5)
    engine.manual_seed(5)


def compare_states(mine, theirs, **tolerance):
    state = theirs.state_dict()
    assert list(mine.state_dict()) == list(state)
    for key, value in mine.state_dict().items():
        same(value, state[key], **tolerance)
    assert [name for name, _ in mine.named_parameters()] == [name for name, _ in theirs.named_parameters()]


def compare_calls(mine, theirs, shape, rtol=1e-4, atol=1e-5):
    for is_training in (True, True, False):
        theirs.train(is_training), mine.train(is_training)
        x = torch.randn(shape, requires_grad=True)
        y = from_torch(x)
        want, got = theirs(x), mine(y)
        same(got, want, rtol, atol)
        weights = torch.rand_like(want)
        (want * weights).sum().backward(), (got * from_torch(weights)).sum().backward()
        for a, b in zip([x, *theirs.parameters()], [y, *mine.parameters()]):
            same(b.grad, a.grad, rtol, atol)
    compare_states(mine, theirs, rtol=rtol, atol=atol)


NORMS = [
    ("weight_norm", "Linear", (4, 3), (2, 4), {}), ("weight_norm", "Linear", (4, 3), (2, 4), {"dim": None}),
    ("weight_norm", "Linear", (4, 3), (2, 4), {"dim": 1}),
    ("weight_norm", "Conv2d", (3, 4, 3), (1, 3, 5, 5), {}), ("weight_norm", "Linear", (4, 3), (2, 4), {"name": "bias"}),
    ("spectral_norm", "Linear", (4, 3), (2, 4), {}),
    ("spectral_norm", "Conv2d", (3, 4, 3), (1, 3, 5, 5), {"n_power_iterations": 3}), ("spectral_norm", "ConvTranspose2d", (3, 4, 3), (1, 3, 5, 5), {}),
    ("spectral_norm", "Linear", (4, 3), (2, 4), {"dim": 1, "eps": 1e-6}), ("spectral_norm", "ConvTranspose3d", (2, 3, 2), (1, 2, 3, 3, 3), {}),
]


@pytest.mark.parametrize("name,layer,arguments,shape,options", NORMS, ids=str)
def test_norms_of_weights(name, layer, arguments, shape, options):
    seed()
    theirs, mine = getattr(torch.nn, layer)(*arguments), getattr(nn, layer)(*arguments)
    assert getattr(torch.nn.utils, name)(theirs, **options) is theirs and getattr(_weight_norms, name)(mine, **options) is mine
    compare_states(mine, theirs)
    compare_calls(mine, theirs, shape)
    part = options.get("name", "weight")
    getattr(torch.nn.utils, "remove_" + name)(theirs, part), getattr(_weight_norms, "remove_" + name)(mine, part)
    compare_states(mine, theirs)
    for parameter in (*theirs.parameters(), *mine.parameters()):
        parameter.grad = None
    compare_calls(mine, theirs, shape)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_wrong_norms(name):
    layer = nn.Linear(3, 2, bias=False)
    with pytest.raises(ValueError, match="bias"):
        getattr(_weight_norms, name)(layer, "bias")
    with pytest.raises(ValueError, match="not found"):
        getattr(_weight_norms, "remove_" + name)(layer)
    getattr(_weight_norms, name)(layer)
    with pytest.raises(RuntimeError, match="two"):
        getattr(_weight_norms, name)(layer)
    with pytest.raises(ValueError, match="n_power_iterations"):
        _weight_norms.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)


READY = [
    ("spectral_norm", "Linear", (4, 3), (2, 4), {}), ("spectral_norm", "Conv2d", (3, 4, 3), (1, 3, 5, 5), {"n_power_iterations": 2}),
    ("spectral_norm", "ConvTranspose2d", (3, 4, 3), (1, 3, 5, 5), {}), ("spectral_norm", "Linear", (4, 3), (2, 4), {"name": "bias"}),
    ("orthogonal", "Linear", (4, 4), (2, 4), {}), ("orthogonal", "Linear", (5, 3), (2, 5), {}), ("orthogonal", "Linear", (3, 5), (2, 3), {}),
    ("orthogonal", "Linear", (4, 4), (2, 4), {"orthogonal_map": "cayley"}), ("orthogonal", "Linear", (5, 3), (2, 5), {"orthogonal_map": "matrix_exp"}),
    ("orthogonal", "Linear", (3, 5), (2, 3), {"orthogonal_map": "cayley"}), ("orthogonal", "Linear", (4, 4), (2, 4), {"orthogonal_map": "householder"}),
    ("orthogonal", "Linear", (5, 3), (2, 5), {"use_trivialization": False}),
    ("orthogonal", "Linear", (3, 3), (2, 3), {"use_trivialization": False, "orthogonal_map": "householder"}),
    ("orthogonal", "Linear", (4, 4), (2, 4), {"use_trivialization": False}),
]


@pytest.mark.parametrize("name,layer,arguments,shape,options", READY, ids=str)
def test_ready_parametrizations(name, layer, arguments, shape, options):
    seed()
    theirs, mine = getattr(torch.nn, layer)(*arguments), getattr(nn, layer)(*arguments)
    getattr(their_parametrizations, name)(theirs, **options), getattr(parametrizations, name)(mine, **options)
    compare_states(mine, theirs, rtol=1e-4, atol=1e-5)
    compare_calls(mine, theirs, shape)
    part = options.get("name", "weight")
    if name == "orthogonal":
        weight = mine.weight if mine.weight.shape[0] >= mine.weight.shape[1] else mine.weight.T
        same((weight.T @ weight).detach(), torch.eye(weight.shape[1]), atol=1e-5)
        assert type(mine).__name__ == type(theirs).__name__
    their_parametrize.remove_parametrizations(theirs, part), parametrize.remove_parametrizations(mine, part)
    compare_states(mine, theirs, rtol=1e-4, atol=1e-5)
    assert type(mine) is getattr(nn, layer)


def test_weight_norm_parametrization():
    seed()
    plain, mine = nn.Linear(4, 3), nn.Linear(4, 3)
    mine.load_state_dict(plain.state_dict())
    parametrizations.weight_norm(mine)
    assert list(mine.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert tuple(mine.parametrizations.weight.original0.shape) == (3, 1)
    assert engine.allclose(mine.weight, plain.weight)
    mine.weight = plain.weight * 2
    assert engine.allclose(mine.weight, plain.weight * 2)
    mine(engine.ones(1, 4)).sum().backward()
    assert mine.parametrizations.weight.original0.grad is not None
    parametrize.remove_parametrizations(mine, "weight")
    assert isinstance(mine.weight, nn.Parameter) and engine.allclose(mine.weight, plain.weight * 2)


def test_wrong_ready():
    layer = nn.Linear(3, 2)
    for call, kind, words in [(lambda: parametrizations.orthogonal(layer, "bias"), ValueError, "matrix"),
                              (lambda: parametrizations.orthogonal(layer, "none"), ValueError, "no parameter"),
                              (lambda: parametrizations.orthogonal(layer, orthogonal_map="exp"), ValueError, "orthogonal_map"),
                              (lambda: parametrizations.spectral_norm(layer, dim=2), IndexError, "range"),
                              (lambda: parametrizations.spectral_norm(layer, n_power_iterations=0), ValueError, "n_power_iterations"),
                              (lambda: parametrizations.weight_norm(layer, "none"), ValueError, "no parameter")]:
        with pytest.raises(kind, match=words):
            call()
    parametrizations.orthogonal(layer, orthogonal_map="cayley", use_trivialization=False)
    with pytest.raises(NotImplementedError, match="assign"):
        layer.weight = engine.ones(2, 3)


def of_my_own(package):
    class Symmetric(package.Module):
        calls = 0

        def forward(self, x):
            type(self).calls += 1
            return x.triu() + x.triu(1).transpose(0, 1)

        def right_inverse(self, x):
            return x.triu()

    class Doubled(package.Module):
        def forward(self, x):
            return x * 2

    return Symmetric, Doubled


def test_parametrizations_of_ones_own():
    seed()
    (their_first, their_second), (first, second) = of_my_own(torch.nn), of_my_own(nn)
    theirs, mine = torch.nn.Linear(3, 3), nn.Linear(3, 3)
    weight = mine.weight
    for package, layer, kinds in ((their_parametrize, theirs, (their_first, their_second)), (parametrize, mine, (first, second))):
        assert not package.is_parametrized(layer)
        package.register_parametrization(layer, "weight", kinds[0]())
        package.register_parametrization(layer, "weight", kinds[1]())
        package.register_parametrization(layer, "bias", kinds[1]())
        assert package.is_parametrized(layer) and package.is_parametrized(layer, "weight") and not package.is_parametrized(layer, "more")
        assert package.type_before_parametrizations(layer).__name__ == "Linear"
    assert mine.parametrizations.weight.original is weight
    compare_states(mine, theirs)
    compare_calls(mine, theirs, (2, 3))
    assert repr(mine).split("\n")[0] == repr(theirs).split("\n")[0]
    first.calls = 0
    with parametrize.cached():
        mine.weight, mine.weight, mine(engine.ones(1, 3))
        assert first.calls == 1 and mine.weight is mine.weight
    mine.weight
    assert first.calls == 2
    copied, read = copy.deepcopy(mine), nn.Linear(3, 3)
    parametrize.transfer_parametrizations_and_params(mine, read)
    x = engine.ones(1, 3)
    assert engine.equal(copied(x), mine(x)) and engine.equal(read.weight, mine.weight)
    parametrize.remove_parametrizations(copied, "weight")
    assert parametrize.is_parametrized(mine, "weight") and parametrize.is_parametrized(copied, "bias")
    for package, layer in ((their_parametrize, theirs), (parametrize, mine)):
        package.remove_parametrizations(layer, "weight", leave_parametrized=False)
        package.remove_parametrizations(layer, "bias")
    compare_states(mine, theirs)
    assert mine.weight is weight and type(mine) is nn.Linear


def test_buffers_and_pickles():
    layer = nn.BatchNorm1d(3)
    parametrizations.spectral_norm(layer)  # a vector: divided by its norm
    layer.register_buffer("table", engine.ones(2, 2))
    parametrizations.orthogonal(layer, "table")
    assert "parametrizations.table.original" in dict(layer.named_buffers())
    read = pickle.loads(pickle.dumps(layer))
    assert engine.equal(read.weight, layer.weight) and type(read) is type(layer)


def test_wrong_parametrizations():
    class Wrong(nn.Module):
        def __init__(self, result):
            super().__init__()
            self.result = result

        def forward(self, x):
            return self.result(x)

    layer = nn.Linear(3, 2)
    for result, words in [(lambda x: x[0], "shape"), (lambda x: x.double(), "dtype"), (lambda x: None, "must return a tensor")]:
        with pytest.raises(ValueError, match=words):
            parametrize.register_parametrization(layer, "weight", Wrong(result))
    assert not parametrize.is_parametrized(layer)
    with pytest.raises(ValueError, match="does not have"):
        parametrize.register_parametrization(layer, "none", Wrong(lambda x: x))
    with pytest.raises(ValueError, match="does not have"):
        parametrize.remove_parametrizations(layer, "weight")
    parametrize.register_parametrization(layer, "weight", Wrong(lambda x: x[:1]), unsafe=True)
    assert tuple(layer.weight.shape) == (1, 3)
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = engine.ones(2, 3)
    with pytest.raises(ValueError, match="one or more"):
        parametrize.ParametrizationList([], engine.ones(1))
    parametrizations.weight_norm(layer, "bias")
    with pytest.raises(ValueError, match="sequence"):
        parametrize.remove_parametrizations(layer, "bias", leave_parametrized=False)


FUSED = [("Conv1d", (3, 4, 3), "BatchNorm1d", (2, 3, 6)), ("Conv2d", (3, 4, 3, 1, 0, 1, 1, False), "BatchNorm2d", (2, 3, 5, 5)),
         ("ConvTranspose2d", (3, 4, 3), "BatchNorm2d", (2, 3, 5, 5)),
         ("Linear", (3, 4), "BatchNorm1d", (5, 3)), ("Linear", (3, 4, False), "BatchNorm1d", (5, 3))]


@pytest.mark.parametrize("layer,arguments,norm,shape", FUSED, ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_fused_norms(layer, arguments, norm, shape, affine):
    seed()
    conv, bn = getattr(nn, layer)(*arguments), getattr(nn, norm)(4, affine=affine)
    for _ in range(3):
        bn(conv(engine.randn(shape)))
    kind = "linear" if layer == "Linear" else "conv"
    more = (True,) if layer.startswith("ConvT") else ()
    with pytest.raises(ValueError, match="eval"):
        getattr(_fusion, f"fuse_{kind}_bn_eval")(conv, bn, *more)
    conv.eval(), bn.eval()
    fused = getattr(_fusion, f"fuse_{kind}_bn_eval")(conv, bn, *more)
    x = engine.randn(shape)
    assert engine.allclose(fused(x), bn(conv(x)), rtol=1e-4, atol=1e-5) and conv.weight is not fused.weight
    if affine:
        theirs, their_bn = getattr(torch.nn, layer)(*arguments), getattr(torch.nn, norm)(4)
        for own, other in ((conv, theirs), (bn, their_bn)):
            other.load_state_dict({key: torch.from_dlpack(value.detach().clone()) for key, value in own.state_dict().items()})
        theirs.eval(), their_bn.eval()
        want = getattr(fusion, f"fuse_{kind}_bn_eval")(theirs, their_bn, *more)
        compare_states(fused, want)


def test_calls_with_other_tensors():
    layer = nn.Linear(3, 2)
    x, weight = engine.ones(1, 3), engine.zeros(2, 3)
    assert engine.equal(stateless.functional_call(layer, {"weight": weight}, x), stateless.functional_call(layer, {"weight": weight}, (), {"input": x}))
    assert engine.equal(stateless.functional_call(layer, {"weight": weight}, (x,))[0], layer.bias)


def test_skipped_first_values():
    engine.manual_seed(1)
    expected = engine.rand(2)
    engine.manual_seed(1)
    layer = stateless.skip_init(nn.Linear, 3, 2, device="cpu")
    assert tuple(layer.weight.shape) == (2, 3) and layer.weight.requires_grad
    assert engine.equal(engine.rand(2), expected)  # nothing was drawn
    with pytest.raises(RuntimeError, match="Module"):
        stateless.skip_init(dict)
    with pytest.raises(TypeError):
        stateless.skip_init(nn.Linear)
    assert nn.Linear(3, 2).weight.abs().max() > 0
