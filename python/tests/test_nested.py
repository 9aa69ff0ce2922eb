"""Nested tensors compared with the results of PyTorch 2.15 (1.13 has fewer functions), and transformers that use
them."""

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nested, nn
from tensord.engine.nn import functional as F


def samples():
    return [engine.arange(6.0).reshape(2, 3), engine.ones(4, 3)]


def both(*, requires_grad=False):
    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    return torch.nested.nested_tensor(parts), nested.nested_tensor([from_torch(part) for part in parts], requires_grad=requires_grad)


def same_nested(got, want):
    assert isinstance(got, nested.NestedTensor) and want.is_nested
    for a, b in zip(got.unbind(), want.unbind(), strict=True):
        same(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("run", [
    lambda n: n + n, lambda n: n * n, lambda n: n * 2.0, lambda n: n.relu(), lambda n: n.clone(), lambda n: n.detach(), lambda n: n.softmax(-1),
    lambda n: n.transpose(1, 2), lambda n: n.matmul(n.transpose(1, 2)), lambda n: n.reshape(2, -1, 3, 1), lambda n: n.contiguous(),
])
def test_operators(run):
    theirs, mine = both()
    same_nested(run(mine), run(theirs))


def test_layers():
    theirs, mine = both()
    for name, arguments in (("Linear", (3, 2)), ("LayerNorm", (3,)), ("ReLU", ()), ("GELU", ()), ("Dropout", (0.0,))):
        torch.manual_seed(1), engine.manual_seed(1)
        layer, own = getattr(torch.nn, name)(*arguments), getattr(nn, name)(*arguments)
        for got, sample in zip(own(mine).unbind(), theirs.unbind()):
            same(got, layer(sample), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [None, (2, 5, 4)], ids=str)
def test_padding(size):
    theirs, mine = both()
    same(nested.to_padded_tensor(mine, -1.5, size), theirs.to_padded_tensor(-1.5, size))
    for wrong, match in (((2, 3, 3), "less than"), ((2, 5), "Length"), ((3, 5, 4), "less than")):
        with pytest.raises(RuntimeError, match=match):
            mine.to_padded_tensor(0.0, wrong)


def test_what_they_are_like():
    made = nested.nested_tensor(samples())
    assert made.is_nested and not engine.ones(1).is_nested and made.dim() == made.ndim == 3 and made.numel() == 18
    assert [made.size(dim) for dim in (0, 2, -1)] == [2, 3, 3] and made.dtype is engine.float32 and not made.requires_grad
    assert made[0].tolist() == samples()[0].tolist() and made[-1, 1].tolist() == [1, 1, 1] and made.select(0, 1).shape == (4, 3)
    assert repr(made).startswith("nested_tensor([\n  tensor([[0., 1., 2.],\n          [3., 4., 5.]]),\n  tensor([[1.") and repr(made).endswith("])\n])")
    assert repr(nested.nested_tensor([])) == "nested_tensor([\n\n])"
    assert [x.tolist() for x in nested.nested_tensor([[1, 2], [3]]).unbind()] == [[1, 2], [3]]
    assert nested.nested_tensor([samples()[0], samples()[1].double()]).dtype is engine.float32
    assert nested.as_nested_tensor(engine.ones(2, 3)).size(0) == 2 and nested.as_nested_tensor(made) is made
    assert made.double().dtype is engine.float64 and (made > 2).dtype is engine.bool and [part.size(-1) for part in made.chunk(3, -1)] == [1, 1, 1]
    assert (1 - made)[0].tolist() == [[1, 0, -1], [-2, -3, -4]] and made.sum(-1, True)[1].tolist() == [[3]] * 4
    made[0][0, 0] = 9
    assert made[0][0, 0].item() == 9 and made.zero_()[0].sum().item() == 0


def test_gradients():
    parts = [x.requires_grad_() for x in samples()]
    weight = engine.ones(2, 3, requires_grad=True)
    F.linear(nested.as_nested_tensor(parts), weight).to_padded_tensor(0.0).sum().backward()
    assert parts[0].grad.tolist() == [[2, 2, 2]] * 2 and weight.grad.tolist() == [[7, 9, 11]] * 2
    leaf = nested.nested_tensor(samples(), requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad is None
    (leaf * 3).to_padded_tensor(0.0).sum().backward()
    assert leaf.grad[1].tolist() == [[3, 3, 3]] * 4


@pytest.mark.parametrize("run,error,match", [
    (lambda n: n.size(1), RuntimeError, "irregular"), (lambda n: n.size(), RuntimeError, "no sizes"), (lambda n: n.size(3), IndexError, "out of range"),
    (lambda n: n.shape, RuntimeError, "no sizes"), (lambda n: len(n), RuntimeError, "no sizes"), (lambda n: n.unbind(1), RuntimeError, "dimension 0"),
    (lambda n: n + engine.ones(3), RuntimeError, "add: Expected both"), (lambda n: n @ engine.ones(3, 2), RuntimeError, "Expected both"),
    (lambda n: n + nested.nested_tensor([engine.ones(2, 3)] * 2), RuntimeError, "broadcasting"), (lambda n: n.mean(), NotImplementedError, "mean has no form"),
    (lambda n: n.numpy(), NotImplementedError, "numpy"), (lambda n: n.nothing, AttributeError, "nothing"), (lambda n: bool(n), RuntimeError, "ambiguous"),
    (lambda n: engine.sum(n), NotImplementedError, "sum has no form"), (lambda n: n.sum(-1), RuntimeError, "keepdim"),
    (lambda n: n.softmax(0), RuntimeError, "dimension 0"), (lambda n: n[:1], NotImplementedError, "number of a sample"),
    (lambda n: nested.nested_tensor(engine.ones(2)), TypeError, "Only lists"), (lambda n: nested.as_nested_tensor([1]), TypeError, "tensors"),
    (lambda n: nested.nested_tensor([engine.ones(2), engine.ones(2, 3)]), RuntimeError, "Found dimension 2 for Tensor at index 1"),
    (lambda n: nested.to_padded_tensor(engine.ones(2), 0.0), NotImplementedError, "expected a nested tensor"),
    (lambda n: nested.nested_tensor([engine.ones(1)], layout=engine.sparse_coo), NotImplementedError, "layout"),
])
def test_refused(run, error, match):
    with pytest.raises(error, match=match):
        run(nested.nested_tensor(samples()))


def encoders(**options):
    made = []
    for module, seed in ((torch.nn, torch.manual_seed), (nn, engine.manual_seed)):
        seed(3)
        layer = module.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        made.append(module.TransformerEncoder(layer, 2, module.LayerNorm(8), **options).eval())
    return made


def test_transformers_with_hidden_steps():
    """PyTorch's inference with nested tensors has zeros at padded steps before the norm."""
    theirs, mine = encoders()
    x = torch.randn(3, 5, 8)
    hidden = torch.tensor([[False] * 5, [False, False, False, True, True], [False, True, True, True, True]])
    with torch.no_grad(), engine.no_grad():
        same(mine(from_torch(x), src_key_padding_mask=from_torch(hidden)), theirs(x, src_key_padding_mask=hidden), rtol=1e-4, atol=1e-5)
        gaps = torch.tensor([[False, True, False, False, False]] * 3)  # not at the end: the usual path
        same(mine(from_torch(x), src_key_padding_mask=from_torch(gaps)), theirs(x, src_key_padding_mask=gaps), rtol=1e-4, atol=1e-5)
    with_gradients = mine(from_torch(x), src_key_padding_mask=from_torch(hidden))
    assert with_gradients.requires_grad and not engine.equal(with_gradients[2, 3], with_gradients[2, 4])
    with engine.no_grad():
        plain = encoders(enable_nested_tensor=False)[1](from_torch(x), src_key_padding_mask=from_torch(hidden))
        assert engine.allclose(plain, with_gradients, atol=1e-5) and not engine.equal(plain[2, 3], mine.norm(engine.zeros(8)))


def test_transformers_of_nested_tensors():
    _, mine = encoders()
    parts = [engine.randn(length, 8) for length in (5, 3, 1)]
    with engine.no_grad():
        found = mine(nested.nested_tensor(parts))
        for sample, result in zip(parts, found.unbind()):
            assert engine.allclose(mine(sample.unsqueeze(0))[0], result, atol=1e-5)
        attention = nn.MultiheadAttention(8, 2, batch_first=True)
        made = nested.nested_tensor(parts)
        assert attention(made, made, made, need_weights=False)[0].size(0) == 3
        with pytest.raises(RuntimeError, match="need_weights"):
            attention(made, made, made)


@pytest.mark.parametrize("name", ["abs", "clone", "cos", "detach", "exp", "isnan", "log1p", "logical_not", "neg", "ones_like", "relu", "sgn", "sigmoid",
                                  "sin", "sqrt", "square", "tanh", "zeros_like", "positive", "floor", "isfinite", "erf"])
def test_functions(name):
    theirs, mine = both()
    got = getattr(engine, name)(mine)
    for method in (got, getattr(mine, name)()):
        for a, sample in zip(method.unbind(), theirs.unbind(), strict=True):
            same(a, getattr(torch, name)(sample), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gelu", "silu", "relu", "logsigmoid", "softplus", "mish", "hardtanh", "tanh", "sigmoid"])
def test_functional(name):
    theirs, mine = both()
    for got, sample in zip(getattr(F, name)(mine).unbind(), theirs.unbind(), strict=True):
        same(got, getattr(torch.nn.functional, name)(sample), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("run", [
    lambda of, x, y: of.add(x, y), lambda of, x, y: of.add(x, y, alpha=2), lambda of, x, y: of.mul(x, 2.0), lambda of, x, y: of.div(x, y),
    lambda of, x, y: of.sub(x, 1), lambda of, x, y: of.mul(of.tensor(2.0), x), lambda of, x, y: of.gt(x, 0.0), lambda of, x, y: of.softmax(x, -1),
    lambda of, x, y: of.transpose(x, -1, -2), lambda of, x, y: of.matmul(x, of.transpose(y, -1, -2)), lambda of, x, y: of.swapaxes(x, -1, -2),
    lambda of, x, y: of.sum(x, -1, keepdim=True), lambda of, x, y: of.chunk(x, 3, -1)[1], lambda of, x, y: x + y, lambda of, x, y: x - y,
    lambda of, x, y: x / y, lambda of, x, y: x * of.tensor(3.0), lambda of, x, y: x.transpose(-2, -1), lambda of, x, y: of.unsqueeze(x, -1),
    lambda of, x, y: of.squeeze(x.unsqueeze(-1), -1), lambda of, x, y: of.clamp(input=x, min=-0.5), lambda of, x, y: of.where(x > 0, x, y),
])
def test_functions_of_several(run):
    """Dimensions are counted from the last, so each sample's result is its part of the nested result."""
    (theirs, mine), (others, own) = both(), both()
    for got, a, b in zip(run(engine, mine, own).unbind(), theirs.unbind(), others.unbind(), strict=True):
        same(got, run(torch, a, b), rtol=1e-4, atol=1e-5)


def test_functions_of_all_samples():
    _, mine = both()
    assert [x.shape for x in engine.cat([mine, mine]).unbind()] == [(2, 3), (4, 3)] * 2 and engine.select(mine, 0, 1).shape == (4, 3)
    assert [x.shape for x in engine.bmm(mine, mine.transpose(1, 2)).unbind()] == [(2, 2), (4, 4)]
    assert [x.shape for x in engine.unbind(mine)] == [(2, 3), (4, 3)] and engine.numel(mine) == 18


def test_calls_beyond_pytorch():
    """Functions that PyTorch 1.13 lacks for nested tensors: compared sample by sample."""
    theirs, mine = both()
    for run in (lambda n: 1 - n, lambda n: 1 / n, lambda n: n ** 2, lambda n: 2 ** n, lambda n: n == n, lambda n: n.clamp(-1, 1),
                lambda n: n.unsqueeze(-1).squeeze(-1), lambda n: n.mean(-1, True), lambda n: n.cumsum(-1), lambda n: n.log_softmax(-1),
                lambda n: n.masked_fill(n > 0, 1.0)):
        for got, sample in zip(run(mine).unbind(), theirs.unbind(), strict=True):
            same(got, run(sample), rtol=1e-4, atol=1e-5)
    assert mine.unsqueeze(1)[0].shape == (1, 2, 3) and engine.where(mine > 0, mine, 0.0)[1].min().item() >= 0
    index = nested.nested_tensor([engine.tensor([1, 2]), engine.tensor([0])])
    assert [x.shape for x in F.embedding(index, engine.ones(3, 4)).unbind()] == [(2, 4), (1, 4)]
    assert mine.add_(1) is mine and engine.relu_(mine) is mine and mine[0].min().item() >= 0


def test_they_pass_for_tensors():
    import copy
    import pickle

    made = nested.nested_tensor(samples())
    assert isinstance(made, engine.Tensor) and type(made) is nested.NestedTensor and engine.is_tensor(made)
    for other in (copy.deepcopy(made), copy.copy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is nested.NestedTensor and other[0].tolist() == made[0].tolist()
    assert (made == None) is False and (made != "a") is True  # noqa: E711
    other = nested.nested_tensor([engine.ones(2, 3), engine.ones(3, 3)])
    for run, match in ((lambda: engine.add(made, engine.ones(3)), "Expected both self and other"), (lambda: engine.ones(2, 3) + made, "Expected both"),
                       (lambda: engine.mul(made, other), "mul does not support broadcasting"), (lambda: engine.inverse(made), "inverse has no form for nested"),
                       (lambda: engine.unsqueeze(made, 0), "dimension 0"), (lambda: engine.stack([made, made]), "stack has no form"),
                       (lambda: engine.cat([made, engine.ones(1)]), "joined with nested"), (lambda: engine.sum(made, -1), "keepdim=True"),
                       (lambda: engine.unsqueeze(made, 5), "out of range")):
        with pytest.raises((RuntimeError, IndexError), match=match):
            run()
    with pytest.raises(TypeError):
        made + "a"
    with pytest.raises(TypeError):
        engine.exp("a")
