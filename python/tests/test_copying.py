"""copy and pickle compared with PyTorch's."""

import copy
import pickle

import pytest
import torch

from tensord import engine
from tensord.engine import nn


@pytest.mark.parametrize("make", [
    lambda m: m.arange(6.0).reshape(2, 3).T, lambda m: m.ones(1).expand(3), lambda m: m.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
    lambda m: m.arange(6.0)[::2],
    lambda m: m.arange(6.0)[1:3], lambda m: m.arange(3.0).reshape(3, 1).expand(3, 4), lambda m: m.zeros(0, 3), lambda m: m.tensor(2.5),
    lambda m: m.tensor([1 + 2j]),
    lambda m: m.tensor([True, False]), lambda m: m.ones(2, dtype=m.bfloat16),
])
def test_values_and_strides(make):
    x = make(engine)
    for protocol in range(2, 6):
        made = pickle.loads(pickle.dumps(x, protocol=protocol))
        want = pickle.loads(pickle.dumps(make(torch), protocol=protocol))
        assert made.tolist() == want.tolist() and made.dtype is x.dtype and tuple(made.shape) == tuple(want.shape)
        if x.storage_offset() == 0 and x.stride() != (2,):  # PyTorch keeps the whole storage
            assert made.stride() == want.stride()
    made, want = copy.deepcopy(x), copy.deepcopy(make(torch))
    assert made.tolist() == want.tolist() and made.stride() == want.stride() and made.dtype is x.dtype


def test_deep_copies_share_what_was_shared():
    for m in (torch, engine):
        x = m.arange(6.0)
        a, b, c, d, e = copy.deepcopy([x, x[2:4], x.view(2, 3), x, m.ones(1)])
        a[2] = 100
        assert b.tolist() == [100, 3] and c.tolist() == [[0, 1, 100], [3, 4, 5]] and d is a and e.tolist() == [1] and x[2].item() == 2
        halves = x.view(m.int32) if m is torch else x.view(m.int32)
        first, second = copy.deepcopy((x, halves))
        first.zero_()
        assert second.tolist() == [0] * 6


def test_shallow_copies():
    for m in (torch, engine):
        x = m.ones(2)
        y = copy.copy(x)
        y[0] = 5
        assert x.tolist() == [5, 1] and y is not x
        p = copy.copy(m.nn.Parameter(x))
        assert type(p) is m.nn.Parameter and p.requires_grad and p.tolist() == [5, 1]
        z = copy.copy(m.ones(2, requires_grad=True))
        assert z.requires_grad and z.is_leaf


def test_gradients_and_hooks():
    x = engine.ones(2, requires_grad=True)
    seen = []
    x.register_hook(seen.append)
    (x * 2).sum().backward()
    y = copy.deepcopy(x)
    assert y.grad.tolist() == [2, 2] and y.grad.data_ptr() != x.grad.data_ptr() and y.requires_grad
    y.sum().backward()
    assert len(seen) == 1
    for action in (copy.deepcopy, pickle.dumps):
        with pytest.raises(RuntimeError, match="only leaves"):
            action(x * 2)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model[0].tied = model[0].weight
    for made in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert made[0].tied is made[0].weight is not model[0].weight and list(made.state_dict()) == list(model.state_dict())
