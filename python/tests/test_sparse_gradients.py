"""Sparse gradients of tables, as in PyTorch."""

import pytest
import torch
from support import from_torch, same
from tensord import engine
from tensord.engine import nn


def pair(seed=0):
    """The same table in both libraries."""
    torch.manual_seed(seed)
    theirs = torch.nn.Embedding(6, 3, padding_idx=1, sparse=True)
    ours = nn.Embedding(6, 3, padding_idx=1, sparse=True)
    with engine.no_grad():
        ours.weight.copy_(from_torch(theirs.weight.detach()))
    return theirs, ours


INDICES = [[1, 2, 5], [2, 0, 5]]


def backward(theirs, ours):
    (theirs(torch.tensor(INDICES)) ** 2).sum().backward()
    (ours(engine.tensor(INDICES)) ** 2).sum().backward()


def test_gradient():
    theirs, ours = pair()
    backward(theirs, ours)
    expected, gradient = theirs.weight.grad, ours.weight.grad
    assert gradient.is_sparse and gradient.layout is engine.sparse_coo and not gradient.is_meta
    assert tuple(gradient.shape) == (6, 3) and gradient.dtype is engine.float32
    assert not gradient.is_coalesced() and gradient._nnz() == expected._nnz() == 5
    same(gradient._indices(), expected._indices())
    same(gradient._values(), expected._values())
    same(gradient.to_dense(), expected.to_dense())
    together = gradient.coalesce()
    same(together.indices(), expected.coalesce().indices())
    same(together.values(), expected.coalesce().values())
    same((gradient * 2 + gradient).to_dense(), expected.to_dense() * 3)
    assert repr(together) == repr(expected.coalesce()).replace("torch.", "engine.")


def test_dense_and_sparse_sums():
    theirs, ours = pair()
    for _ in range(2):
        backward(theirs, ours)
    assert ours.weight.grad.is_sparse
    same(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense())
    theirs.weight.sum().backward()
    ours.weight.sum().backward()
    assert not ours.weight.grad.is_sparse
    backward(theirs, ours)
    same(ours.weight.grad, theirs.weight.grad.to_dense() if theirs.weight.grad.is_sparse else theirs.weight.grad)


def test_hooks_and_grad():
    theirs, ours = pair()
    seen = []
    ours.weight.register_hook(lambda gradient: seen.append(gradient.is_sparse) or gradient * 2)
    theirs.weight.register_hook(lambda gradient: gradient * 2)
    backward(theirs, ours)
    assert seen == [True]
    same(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense())
    (found,) = engine.autograd.grad(ours(engine.tensor(INDICES)).sum(), [ours.weight])
    assert found.is_sparse


@pytest.mark.parametrize("name, options", [
    ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adagrad", {"lr": 0.1}), ("SparseAdam", {"lr": 0.05})])
def test_optimizers(name, options):
    theirs, ours = pair()
    their_optimizer = getattr(torch.optim, name)(theirs.parameters(), **options)
    our_optimizer = getattr(engine.optim, name)(ours.parameters(), **options)
    for step in range(6):
        for each in (their_optimizer, our_optimizer):
            each.zero_grad(set_to_none=True)
        backward(theirs, ours)
        their_optimizer.step()
        our_optimizer.step()
        same(ours.weight, theirs.weight.detach(), 1e-6)
        if step == 2:  # from here on with a new one
            state = our_optimizer.state_dict()
            our_optimizer = getattr(engine.optim, name)(ours.parameters(), **options)
            our_optimizer.load_state_dict(state)


def test_refusals():
    _, ours = pair()
    ours(engine.tensor(INDICES)).sum().backward()
    with pytest.raises(engine.UnimplementedError, match="Adam does not support sparse gradients, please consider SparseAdam"):
        engine.optim.Adam(ours.parameters()).step()
    with pytest.raises(engine.UnimplementedError, match="no elements to read; take to_dense"):
        ours.weight.grad.tolist()
    with pytest.raises(engine.UnimplementedError, match="sigmoid has no kernel for SparseCOO on cpu"):
        ours.weight.grad.sigmoid()
