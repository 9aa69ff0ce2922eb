"""Hooks on saved tensors, hooks after gradient accumulation, and torch.func's transforms, compared with PyTorch's."""

import pytest
import torch
from support import same, to_torch
from tensord import engine
from tensord.engine import func, nn, optim
from tensord.engine.autograd import graph


def test_pack_and_unpack(tmp_path):
    files = []

    def pack(tensor):
        path = str(tmp_path / f"{len(files)}.pt")
        files.append(path)
        engine.save(tensor, path)
        return path

    x = engine.randn(4, requires_grad=True)
    with graph.saved_tensors_hooks(pack, engine.load):
        y = x * x.exp()
    assert len(files) == 3  # both factors, and exp's result
    y.sum().backward()
    theirs = to_torch(x.detach()).clone().requires_grad_()
    (theirs * theirs.exp()).sum().backward()
    same(x.grad, theirs.grad)
    (x * x).sum().backward()
    assert len(files) == 3


def test_nested_and_wrong_hooks():
    x = engine.ones(2, requires_grad=True)
    outer, inner = [], []
    with graph.saved_tensors_hooks(lambda t: outer.append(1) or t, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: inner.append(1) or t, lambda t: t * 2):
            y = x * x
        assert (outer, len(inner)) == ([], 2)
        x * x
    assert len(outer) == 2
    y.sum().backward()
    assert x.grad.tolist() == [4, 4]
    with graph.saved_tensors_hooks(lambda t: 3, lambda t: t):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with pytest.raises(ZeroDivisionError):
        with graph.saved_tensors_hooks(lambda t: 1 // 0, lambda t: t):
            x * x
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
        y = x * x
    with pytest.raises(ValueError, match="unpack gave"):
        y.sum().backward()


def test_save_on_cpu():
    x = engine.randn(3, requires_grad=True)
    with graph.save_on_cpu():
        y = x.exp() * x
    y.sum().backward()
    same(x.grad, to_torch(x.detach()).exp() * (1 + to_torch(x.detach())))
    with pytest.raises(NotImplementedError, match="pin_memory"):
        graph.save_on_cpu(pin_memory=True)


def test_steps_inside_of_the_backward_pass():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    start = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    x = engine.randn(5, 3)
    optimizers = {p: optim.SGD([p], lr=0.1) for p in net.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(step) for p in net.parameters()]
    net(x).sum().backward()
    assert all(p.grad is None for p in net.parameters())
    after = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    for handle in handles:
        handle.remove()
    net.load_state_dict(start)
    plain = optim.SGD(net.parameters(), lr=0.1)
    net(x).sum().backward()
    plain.step()
    for name, tensor in net.state_dict().items():
        same(after[name], to_torch(tensor))
    with pytest.raises(ValueError, match="leaves"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_func_transforms():
    theirs = pytest.importorskip("functorch")  # torch.func before PyTorch 2

    x, y = engine.randn(3), engine.randn(3)
    tx, ty = to_torch(x), to_torch(y)
    f = lambda a, b: (a.sin() * b).sum()  # noqa: E731
    same(func.grad(f)(x, y), theirs.grad(f)(tx, ty))
    for mine, their in zip(func.grad(f, argnums=(0, 1))(x, y), theirs.grad(f, argnums=(0, 1))(tx, ty)):
        same(mine, their)
    gradients, value = func.grad_and_value(f)(x, y)
    same(value, f(tx, ty))
    same(func.grad(lambda a: func.grad(lambda b: b.sin().sum())(a).sum())(x), -tx.sin())
    assert not gradients.requires_grad and not value.requires_grad
    gradients, aux = func.grad(lambda a: (a.sum(), a * 2), has_aux=True)(x)
    same(aux, tx * 2)
    out, pull = func.vjp(lambda a, b: a * b, x, y)
    for mine, their in zip(pull(engine.ones(3)), theirs.vjp(lambda a, b: a * b, tx, ty)[1](torch.ones(3))):
        same(mine, their)
    out, tangent = func.jvp(lambda a, b: a * b.exp(), (x, y), (y, x))
    for mine, their in zip((out, tangent), theirs.jvp(lambda a, b: a * b.exp(), (tx, ty), (ty, tx))):
        same(mine, their)
    same(func.jacrev(lambda a: a.cumsum(0))(x), theirs.jacrev(lambda a: a.cumsum(0))(tx))
    same(func.jacfwd(lambda a: a * a)(x), theirs.jacfwd(lambda a: a * a)(tx))
    same(func.hessian(lambda a: (a**3).sum())(x), theirs.hessian(lambda a: (a**3).sum())(tx))
    parameters = {"w": engine.ones(3), "b": engine.zeros(1)}
    found = func.grad(lambda p: (p["w"] * x).sum() + p["b"].sum())(parameters)
    same(found["w"], tx)
    with pytest.raises(RuntimeError, match="one tensor without dimensions"):
        func.grad(lambda a: a)(x)


def test_functional_call():
    net = nn.Linear(3, 2)
    before = net.weight
    weights = {"weight": engine.ones(2, 3), "bias": engine.zeros(2)}
    x = engine.randn(4, 3)
    same(func.functional_call(net, weights, (x,)), to_torch(x) @ torch.ones(3, 2))
    assert net.weight is before
    found = func.grad(lambda p: func.functional_call(net, p, (x,)).sum())(weights)
    same(found["bias"], torch.full((2,), 4.0))
    with pytest.raises(RuntimeError, match="unexpected"):
        func.functional_call(net, {"other": x}, (x,))
