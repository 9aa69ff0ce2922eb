"""autograd.functional compared with PyTorch's."""

import pytest
import torch
from torch.autograd import functional as torch_functional

from support import same, to_torch
from tensord import engine
from tensord.engine.autograd import functional


def two(x, y):
    return (x * y).sin().sum(0), x.exp() * 2


def one(x):
    return (x @ x.T).tanh()


def number(x, y):
    return ((x * y).sin() * x.exp()).sum()


def flat(value):
    return [item for part in value for item in flat(part)] if isinstance(value, (tuple, list)) else [value]


def compare(got, want):
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        same(a, b, rtol=1e-9, atol=1e-12)


@pytest.fixture
def pair():
    engine.manual_seed(0)
    return engine.randn(3, 4, dtype=engine.float64), engine.randn(3, 4, dtype=engine.float64)


def test_products(pair):
    theirs = tuple(map(to_torch, pair))
    v = (engine.randn(4, dtype=engine.float64), engine.randn(3, 4, dtype=engine.float64))
    compare(functional.vjp(two, pair, v), torch_functional.vjp(two, theirs, tuple(map(to_torch, v))))
    compare(functional.jvp(two, pair, pair), torch_functional.jvp(two, theirs, theirs))
    compare(functional.jvp(one, pair[0], pair[1]), torch_functional.jvp(one, theirs[0], theirs[1]))
    compare(functional.vhp(number, pair, pair), torch_functional.vhp(number, theirs, theirs))
    compare(functional.hvp(number, pair, pair), torch_functional.hvp(number, theirs, theirs))


def test_jacobians_and_hessians(pair):
    theirs = tuple(map(to_torch, pair))
    compare(functional.jacobian(two, pair), torch_functional.jacobian(two, theirs))
    compare(functional.jacobian(one, pair[0]), torch_functional.jacobian(one, theirs[0]))
    compare(functional.hessian(number, pair), torch_functional.hessian(number, theirs))
    cube = functional.hessian(lambda x: (x**3).sum(), pair[0])
    compare(cube, torch_functional.hessian(lambda x: (x**3).sum(), theirs[0]))


def test_what_does_not_depend_is_zero_or_refused(pair):
    theirs = tuple(map(to_torch, pair))
    compare(functional.jacobian(lambda x, y: x * 2, pair), torch_functional.jacobian(lambda x, y: x * 2, theirs))
    compare(functional.hessian(lambda x: x.sum(), pair[0]), torch_functional.hessian(lambda x: x.sum(), theirs[0]))
    with pytest.raises(RuntimeError, match="input 1"):
        functional.jacobian(lambda x, y: x * 2, pair, strict=True)
    with pytest.raises(RuntimeError, match="v must have the shapes"):
        functional.jvp(one, pair[0], pair[0][0])
    with pytest.raises(RuntimeError, match="one element"):
        functional.hessian(one, pair[0])


def test_results_can_be_differentiated(pair):
    ours, theirs = pair[0].clone().requires_grad_(True), to_torch(pair[0]).requires_grad_(True)
    functional.jacobian(one, ours, create_graph=True).square().sum().backward()
    torch_functional.jacobian(one, theirs, create_graph=True).square().sum().backward()
    same(ours.grad, theirs.grad, rtol=1e-9, atol=1e-12)
    assert not functional.jacobian(one, ours).requires_grad
    assert ours.grad is not None


def test_vmap(pair):
    x, y = pair
    tx, ty = map(to_torch, pair)
    compare(functional.vmap(lambda a, b: (a * b).sum())(x, y), (tx * ty).sum(1))
    columns = [two(tx[:, i], ty[:, 0]) for i in range(4)]
    want = torch.stack([first for first, _ in columns]), torch.stack([second for _, second in columns], 1)
    compare(functional.vmap(two, in_dims=(1, None), out_dims=(0, 1))(x, y[:, 0]), want)
    # A gradient for each sample.
    compare(functional.vmap(lambda a: functional.jacobian(lambda b: (b**3).sum(), a))(x), 3 * tx**2)
    with pytest.raises(ValueError, match="one size"):
        functional.vmap(lambda a, b: a + b, in_dims=(0, 1))(x, y)
