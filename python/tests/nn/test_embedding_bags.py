"""Embedding bags and the adaptive softmax, compared with torch.nn's."""

import pytest
import torch
from torch.nn import functional as TF

from module_comparison import make
from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import functional as F

FLAT, OFFSETS = [1, 2, 4, 5, 4, 3, 2, 9, 0, 0, 3], [0, 4, 4, 7]
ROWS = [[1, 2, 4], [5, 3, 3], [0, 9, 3]]

BAGS = [
    ((10, 3), {}, FLAT, OFFSETS), ((10, 3), {"mode": "sum"}, FLAT, OFFSETS), ((10, 3), {"mode": "max"}, FLAT, OFFSETS), ((10, 3), {}, ROWS, None),
    ((10, 3), {"mode": "max"}, ROWS, None), ((10, 3), {"padding_idx": 3}, FLAT, OFFSETS), ((10, 3), {"padding_idx": -7, "mode": "sum"}, ROWS, None),
    ((10, 3), {"padding_idx": 0, "mode": "max"}, FLAT, OFFSETS), ((10, 3), {"include_last_offset": True}, FLAT, [*OFFSETS, len(FLAT)]),
    ((10, 3, 1.0), {"mode": "sum"}, FLAT, OFFSETS), ((10, 3, 0.5, 1.0), {}, ROWS, None),
    ((10, 3), {"sparse": True}, FLAT, OFFSETS), ((10, 3), {"sparse": True, "mode": "sum"}, ROWS, None),
]


def dense(gradient):
    return gradient.to_dense() if str(gradient.layout).endswith("sparse_coo") else gradient


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("arguments,options,indices,offsets", BAGS, ids=str)
def test_bags(arguments, options, indices, offsets, dtype):
    theirs, mine = make("EmbeddingBag", *arguments, **options)
    indices = torch.tensor(indices, dtype=getattr(torch, dtype))
    offsets = offsets and torch.tensor(offsets, dtype=getattr(torch, dtype))
    for _ in range(2):  # the second time rows already have the maximum norm
        want, got = theirs(indices, offsets), mine(from_torch(indices), None if offsets is None else from_torch(offsets))
        same(got, want)
        scales = torch.randn(want.shape)
        (want * scales).sum().backward(), (got * from_torch(scales)).sum().backward()
        same(mine.weight, theirs.weight)
    assert str(mine.weight.grad.layout).split(".")[-1] == str(theirs.weight.grad.layout).split(".")[-1]
    same(dense(mine.weight.grad), dense(theirs.weight.grad))


@pytest.mark.parametrize("indices,offsets", [(FLAT, OFFSETS), (ROWS, None)], ids=str)
@pytest.mark.parametrize("padding_idx", [None, 3])
def test_weights_of_samples(indices, offsets, padding_idx):
    theirs, mine = make("EmbeddingBag", 10, 3, mode="sum", padding_idx=padding_idx)
    indices, offsets = torch.tensor(indices), offsets and torch.tensor(offsets)
    weights = torch.randn(indices.shape, requires_grad=True)
    own_weights = from_torch(weights)
    want = theirs(indices, offsets, weights)
    got = mine(from_torch(indices), None if offsets is None else from_torch(offsets), per_sample_weights=own_weights)
    same(got, want)
    (want ** 2).sum().backward(), (got ** 2).sum().backward()
    same(mine.weight.grad, theirs.weight.grad), same(own_weights.grad, weights.grad)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_scale_grad_by_freq(mode):
    """Gradients of rows are divided by their frequency. (PyTorch 1.13 divides some by another row's count.)"""
    indices, scales = engine.tensor(ROWS), engine.randn(3, 3)
    plain, scaled = (nn.EmbeddingBag(10, 3, mode=mode, scale_grad_by_freq=scale) for scale in (False, True))
    for bag in (plain, scaled):
        (bag(indices) * scales).sum().backward()
    counts = [max(sum(row.count(i) for row in ROWS), 1) for i in range(10)]
    same(scaled.weight.grad, torch.from_dlpack(plain.weight.grad) / torch.tensor(counts)[:, None])


def test_the_function():
    table, indices, offsets = torch.randn(10, 4), torch.tensor(FLAT), torch.tensor(OFFSETS)
    for mode in ("sum", "mean", "max"):
        same(F.embedding_bag(from_torch(indices), from_torch(table), from_torch(offsets), mode=mode), TF.embedding_bag(indices, table, offsets, mode=mode))
    got = F.embedding_bag(from_torch(indices), from_torch(table), from_torch(offsets), padding_idx=-1)
    same(got, TF.embedding_bag(indices, table, offsets, padding_idx=-1))
    # All rows of a table are bags, also with include_last_offset, as documented.
    rows = from_torch(torch.tensor(ROWS))
    assert (F.embedding_bag(rows, from_torch(table), include_last_offset=True) == F.embedding_bag(rows, from_torch(table))).all()
    table = engine.randn(4, 2)
    bag = nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert not bag.weight.requires_grad and (bag(engine.tensor([[1, 2]]))[0] == table[1] + table[2]).all()
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False).weight.requires_grad


def test_a_sparse_step():
    """Only the rows in the bags change."""
    bag = nn.EmbeddingBag(6, 2, sparse=True)
    before = bag.weight.detach().clone()
    bag(engine.tensor([[1, 4]])).sum().backward()
    engine.optim.SGD(bag.parameters(), lr=1.0).step()
    assert (bag.weight != before).any(1).tolist() == [False, True, False, False, True, False]


ADAPTIVE = [((16, 12, [3, 7]), {}), ((8, 20, [2, 5, 11], 2.0), {"head_bias": True}), ((16, 9, [8]), {"div_value": 3.0})]


@pytest.mark.parametrize("arguments,options", ADAPTIVE, ids=str)
def test_adaptive_softmax(arguments, options):
    theirs, mine = make("AdaptiveLogSoftmaxWithLoss", *arguments, **options)
    assert all(part.numel() for part in theirs.parameters())
    x = torch.randn(30, arguments[0], requires_grad=True)
    target = torch.randint(0, arguments[1], (30,))
    own = from_torch(x)
    want, got = theirs(x, target), mine(own, from_torch(target))
    same(got.output, want.output), same(got.loss, want.loss)
    (want.loss + (want.output ** 2).sum()).backward(), (got.loss + (got.output ** 2).sum()).backward()
    for a, b in zip([x, *theirs.parameters()], [own, *mine.parameters()]):
        same(b.grad, a.grad, rtol=1e-4, atol=1e-5)
    same(mine.log_prob(own), theirs.log_prob(x), rtol=1e-4)
    same(mine.predict(own * 5), theirs.predict(x * 5))
    same(mine(own[0], from_torch(target[0])).output, theirs(x[0], target[0]).output)
    only_head = target % arguments[2][0]
    same(mine(own, from_torch(only_head)).loss, theirs(x, only_head).loss)
    mine.reset_parameters()
    assert not mine(own, from_torch(target)).loss.item() == got.loss.item()


def test_clusters_without_features():
    with pytest.warns(UserWarning):
        theirs, mine = make("AdaptiveLogSoftmaxWithLoss", 3, 9, [2, 5])
    x, target = torch.randn(9, 3), torch.arange(9)
    same(mine(from_torch(x), from_torch(target)).output, theirs(x, target).output)


bag, indices, adaptive = nn.EmbeddingBag(10, 3), engine.tensor(ROWS), nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 5])
flat, offsets = engine.tensor(FLAT), engine.tensor(OFFSETS)
WRONG = [
    (lambda: nn.EmbeddingBag(3, 2, padding_idx=3), ValueError, "padding_idx must be within"),
    (lambda: nn.EmbeddingBag(3, 2, mode="min"), ValueError, "one of sum, mean or max"),
    (lambda: nn.EmbeddingBag(3, 2, _weight=engine.ones(2, 3)), ValueError, "does not match"),
    (lambda: bag(indices, offsets), ValueError, "offsets has to be None"),
    (lambda: bag(flat), ValueError, "offsets has to be a 1D Tensor but got None"), (lambda: bag(flat, offsets[None]), ValueError, "got 2 dimensions"),
    (lambda: bag(indices[None]), ValueError, "but got Tensor of dimension 3"),
    (lambda: bag(indices, None, engine.ones(3, 3)), NotImplementedError, "only supported for mode='sum'"),
    (lambda: nn.EmbeddingBag(10, 3, mode="sum")(indices, None, engine.ones(9)), ValueError, "should have the shape of input"),
    (lambda: nn.EmbeddingBag(10, 3, mode="max", sparse=True)(indices), ValueError, "sparse"),
    (lambda: nn.EmbeddingBag(10, 3, mode="max", scale_grad_by_freq=True)(indices), ValueError, "frequency"),
    (lambda: bag(flat, offsets + 1), RuntimeError, "offsets"), (lambda: bag(indices + 8), (RuntimeError, IndexError), ""),
    (lambda: nn.EmbeddingBag.from_pretrained(engine.ones(3)), ValueError, "2-dimensional"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 2]), ValueError, "cutoffs should be"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2, 10]), ValueError, "cutoffs should be"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [0, 3]), ValueError, "cutoffs should be"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, []), ValueError, "cutoffs should be"),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [2.5]), ValueError, "cutoffs should be"),
    (lambda: adaptive(engine.ones(2, 4), engine.tensor([1, 10])), RuntimeError, r"in \[0, 9\].*\[1, 10\]"),
    (lambda: adaptive(engine.ones(2, 4), engine.tensor([1])), RuntimeError, "same size in the batch"),
    (lambda: adaptive(engine.ones(4), engine.tensor([1])), RuntimeError, "1D target"),
    (lambda: adaptive(engine.ones(1, 4), engine.tensor(1)), RuntimeError, "0D target"),
    (lambda: adaptive(engine.ones(1, 4), engine.tensor([[1]])), RuntimeError, "multi-target"),
]


@pytest.mark.parametrize("call,kind,message", WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
