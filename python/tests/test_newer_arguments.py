"""Arguments added after PyTorch 1.13, compared with equivalent calls of its operators."""

import pytest
import torch

from support import from_torch, same
from tensord import engine


@pytest.mark.parametrize("heads", [1, 2, 4])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}, {"mask": True}], ids=str)
def test_grouped_queries(heads, options):
    q, k, v = (engine.randn(2, count, length, 8, requires_grad=True) for count, length in ((4, 5), (heads, 6), (heads, 6)))
    options = dict(options)
    if options.pop("mask", False):
        options["attn_mask"] = engine.rand(5, 6) < 0.7
    attention = engine.nn.functional.scaled_dot_product_attention
    want = attention(q, k.repeat_interleave(4 // heads, 1), v.repeat_interleave(4 // heads, 1), **options)
    got = attention(q, k, v, enable_gqa=True, **options)
    assert (got == want).all()
    weights = engine.rand(*got.shape)
    for ours, theirs in zip(engine.autograd.grad((got * weights).sum(), (q, k, v)), engine.autograd.grad((want * weights).sum(), (q, k, v))):
        assert (ours - theirs).abs().max() < 1e-5
    with pytest.raises(ValueError, match="must divide"):
        attention(engine.rand(1, 4, 2, 8), engine.rand(1, 3, 2, 8), engine.rand(1, 3, 2, 8), enable_gqa=True)


@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_padded_on_the_left(batch_first):
    rows = [torch.randn(length, 2) for length in (3, 5, 1)]
    want = torch.nn.utils.rnn.pad_sequence([row.flip(0) for row in rows], batch_first, 0.5).flip(1 if batch_first else 0)
    same(engine.pad_sequence([from_torch(row) for row in rows], batch_first, 0.5, "left"), want)
    with pytest.raises(ValueError, match="left or right"):
        engine.pad_sequence([from_torch(row) for row in rows], batch_first, 0.5, "top")


@pytest.mark.parametrize("correction", [0, 0.5, 1, 2.25, None])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_corrections(name, correction):
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    y = from_torch(x)
    squares = ((x - x.mean(1, keepdim=True)) ** 2).sum(1) / (6 - (1 if correction is None else correction))
    want = squares.sqrt() if name.startswith("std") else squares
    got = getattr(engine, name)(y, [1], correction=correction)
    got = got[0] if name.endswith("mean") else got
    same(got, want)
    want.square().sum().backward(), got.square().sum().backward()
    same(y.grad, x.grad)


def test_corrections_beyond_the_count():
    assert engine.var(engine.rand(3), correction=5).item() == float("inf") and engine.var(engine.rand(1, 1), [1], correction=1.5).isnan().all()
