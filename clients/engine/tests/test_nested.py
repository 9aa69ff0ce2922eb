"""Nested tensors beside what PyTorch 2.15 gives for them (1.13 has fewer of these), and transformers over them."""

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
    (lambda n: engine.exp(n), TypeError, "NestedTensor"), (lambda n: engine.cat([n]), TypeError, "cat"), (lambda n: n.sum(-1), RuntimeError, "keepdim"),
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
    """PyTorch's inference by nested tensors has zeros at padded steps before the norm."""
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
