"""autograd.Function compared with PyTorch's: cases beyond test_autograd."""

import pytest
import torch

from support import same
from tensord import engine


class Scale(engine.autograd.Function):
    """As in newer PyTorch: forward without ctx."""

    @staticmethod
    def forward(x, factor, power=2):
        return (x * factor) ** power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, factor, power = inputs
        ctx.save_for_backward(x)
        ctx.factor, ctx.power, ctx.seen = factor, power, tuple(output.shape)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.seen == tuple(grad.shape) and ctx.needs_input_grad == (True, False, False)
        return grad * ctx.power * (x * ctx.factor) ** (ctx.power - 1) * ctx.factor, None, None


def test_setup_context():
    x = engine.rand(3, dtype=engine.float64, requires_grad=True)
    for call in (lambda v: Scale.apply(v, 3.0), lambda v: Scale.apply(v, factor=3.0, power=3), lambda v: Scale.apply(v, 2.0, 1)):
        assert engine.autograd.gradcheck(call, x) and engine.autograd.gradgradcheck(call, x)
    assert Scale.apply(x, 1.0).grad_fn.name() == "ScaleBackward"
    with pytest.raises(TypeError):
        Scale.apply(x)


class Add(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x, *, amount=1):
        ctx.amount = amount
        return x + amount

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.amount


def test_keyword_arguments():
    x = engine.ones(2, requires_grad=True)
    Add.apply(x, amount=5).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_complex_gradcheck():
    for run in (lambda z: z * (2 + 1j), lambda z: z.abs(), lambda z: z.conj() * z, lambda z: (z * z).sum()):
        z = engine.tensor([1 + 2j, -0.5 + 1j], dtype=engine.complex128, requires_grad=True)
        assert engine.autograd.gradcheck(run, z) and engine.autograd.gradgradcheck(run, z)

    class Wrong(engine.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return z * 2j

        @staticmethod
        def backward(ctx, grad):
            return grad * 2j  # the conjugate would be correct

    z = engine.tensor([1 + 2j], dtype=engine.complex128, requires_grad=True)
    assert not engine.autograd.gradcheck(Wrong.apply, z, raise_exception=False)
    want = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    (z.detach() * z).abs().sum().backward(), (want.detach() * want).abs().sum().backward()
    same(z.grad, want.grad)


COMPLEX = ["c.masked_select(c)", "c.gather(0, c)", "c.index_select(0, c[0])", "c.take(c)", "c[c]", "c.index_put((c,), c)", "c.scatter(0, c, c)",
    "r[c]", "r.gather(0, c)",
           "c.index_add(0, c[0], c)", "c.index_copy(0, c[0], c)", "c.index_fill(0, c[0], 1)", "r.repeat_interleave(c[0])", "c.scatter_add(0, c, c)",
           "r.take(c)"]


@pytest.mark.parametrize("source", COMPLEX)
def test_complex_numbers_are_no_positions(source):
    """They were an endless recursion."""
    c, r = engine.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]), engine.ones(2, 2)
    assert c.is_contiguous() and r.shape == c.shape
    with pytest.raises((ValueError, IndexError, TypeError, NotImplementedError)):
        eval(source)
