"""Compares modules with PyTorch's: initial values, results and gradients."""

from __future__ import annotations

import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nn


def make(name, *arguments, **options):
    """PyTorch's module and ours, with the same random numbers."""
    torch.manual_seed(1)
    engine.manual_seed(1)
    theirs, mine = getattr(torch.nn, name)(*arguments, **options), getattr(nn, name)(*arguments, **options)
    want, got = theirs.state_dict(), mine.state_dict()
    assert list(got) == list(want)
    for key, value in got.items():
        same(value, want[key])
    assert repr(mine) == repr(theirs)
    return theirs, mine


def flat(value):
    """The tensors in tuples, at any depth."""
    return [tensor for item in value for tensor in flat(item)] if isinstance(value, (tuple, list)) else [] if value is None else [value]


def own(value):
    """Our tensors from PyTorch's, with new leaves for those that require gradients."""
    return tuple(own(item) for item in value) if isinstance(value, tuple) else from_torch(value)


def compare(theirs, mine, inputs, run=lambda module, *inputs: module(*inputs)):
    """Compares results, gradients, and results in evaluation mode."""
    mirrored = [own(x) for x in inputs]
    torch.manual_seed(5)
    engine.manual_seed(5)
    want, got = flat(run(theirs, *inputs)), flat(run(mine, *mirrored))
    assert len(got) == len(want)
    for y, x in zip(got, want):
        same(y, x, rtol=1e-4, atol=1e-5)
    scales = [torch.randn(x.shape) for x in want]
    differentiable = [i for i, x in enumerate(want) if x.requires_grad]
    sum((want[i] * scales[i]).sum() for i in differentiable).backward()
    total = 0.0
    for i in differentiable:
        total = (got[i] * from_torch(scales[i])).sum() + total
    total.backward()
    leaves = [pair for pair in zip(flat(inputs), flat(mirrored)) if pair[0].requires_grad]
    for x, y in [*leaves, *zip(theirs.parameters(), mine.parameters())]:
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            same(y.grad, x.grad, rtol=1e-3, atol=1e-4)
    theirs.eval(), mine.eval()
    for y, x in zip(flat(run(mine, *mirrored)), flat(run(theirs, *inputs))):
        same(y, x, rtol=1e-4, atol=1e-5)
