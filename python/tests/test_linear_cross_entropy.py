"""LinearCrossEntropyLoss compared with its layer and loss; PyTorch 1.13 has no equivalent."""

import pytest
import torch
import torch.nn.functional as TF

from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import functional as F


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("sizes", [(), (4, 3)], ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy(reduction, sizes, bias):
    torch.manual_seed(2)
    weight = torch.rand(6)
    mine = nn.LinearCrossEntropyLoss(5, 6, out_features=sizes, bias=bias, reduction=reduction, weight=from_torch(weight), label_smoothing=0.1)
    x = torch.randn(7, 5, requires_grad=True)
    w, b = (None if p is None else torch.tensor(p.tolist(), requires_grad=True) for p in (mine.linear.weight, mine.linear.bias))
    logits = TF.linear(x, w, b).reshape(7, 6, *sizes)
    for target in (torch.randint(0, 6, (7, *sizes)), torch.randn(7, 6, *sizes).softmax(1)):
        x.grad = w.grad = None
        own = from_torch(x.detach()).requires_grad_()
        want = TF.cross_entropy(logits, target, weight, reduction=reduction, label_smoothing=0.1)
        got = mine(own, from_torch(target))
        same(got, want, rtol=1e-4, atol=1e-5)
        mine.zero_grad()
        want.sum().backward(retain_graph=True), got.sum().backward()
        same(own.grad, x.grad, rtol=1e-3, atol=1e-5)
        same(mine.linear.weight.grad, w.grad, rtol=1e-3, atol=1e-5)


def test_linear_cross_entropy_in_special():
    torch.manual_seed(3)
    x, w = torch.randn(4, 5), torch.randn(6, 5)
    target = torch.tensor([1, 3, 5, 3])
    want = TF.cross_entropy(TF.linear(x, w), target, ignore_index=3)
    same(F.linear_cross_entropy(from_torch(x), from_torch(w), from_torch(target), ignore_index=3), want, rtol=1e-4)
    same(F.linear_cross_entropy(from_torch(x[0]), from_torch(w), from_torch(target[0])), TF.cross_entropy(TF.linear(x, w)[0], target[0]), rtol=1e-4)
    assert "num_classes=6, out_features=(), bias=False" in repr(nn.LinearCrossEntropyLoss(5, 6))
    a, b = engine.ones(2, 3), engine.ones(4, 3)
    for run, match in ((lambda: F.linear_cross_entropy(a, engine.ones(4, 2), a), "do not fit"),
                       (lambda: F.linear_cross_entropy(engine.ones(1, 2, 3), b, a), "1 or 2 dimensions"),
                       (lambda: F.linear_cross_entropy(a, b, a, linear_bias=engine.ones(3)), "expected linear_bias"),
                       (lambda: F.linear_cross_entropy(a[0], engine.ones(4, 2, 3), a), "needs a batch"),
                       (lambda: F.linear_cross_entropy(a, b, engine.ones(2, 4), ignore_index=0), "probabilities"),
                       (lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2.0), "label_smoothing"),
                       (lambda: nn.LinearCrossEntropyLoss(3, 4, weight=engine.ones(3)), "expected a weight"),
                       (lambda: nn.LinearCrossEntropyLoss(3, 4, options=1), "options must be None")):
        with pytest.raises((RuntimeError, NotImplementedError), match=match):
            run()
