import threading

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine.autograd import Function, gradcheck, gradgradcheck, once_differentiable


def test_backward():
    x = torch.randn(3, 4, requires_grad=True)
    w = torch.randn(4, 2, requires_grad=True)
    y, v = from_torch(x), from_torch(w)
    for a, b, library in ((x, w, torch), (y, v, engine)):
        library.tanh(a @ b).pow(2).mean().backward()
    same(y.grad, x.grad)
    same(v.grad, w.grad)
    (y * 2).sum().backward()
    same(y.grad, x.grad + 2)


def test_properties():
    x = engine.ones(2, requires_grad=True)
    y = x * 2
    assert x.is_leaf and not y.is_leaf and y.requires_grad and x.grad_fn is None and x.grad is None
    assert y.grad_fn.name().startswith("MulBackward") and y.grad_fn == y.grad_fn
    assert "AccumulateGrad" in y.grad_fn.next_functions[0][0].name()
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2]
    x.grad = None
    assert x.grad is None
    assert not y.detach().requires_grad
    with pytest.raises(RuntimeError):
        y.requires_grad = False
    with pytest.raises((RuntimeError, ValueError)):
        engine.ones(2, dtype=engine.int64, requires_grad=True)
    with pytest.raises(TypeError):
        x.grad = 5


def test_errors():
    x = engine.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (x * 2).backward()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()
    with pytest.raises(RuntimeError):
        engine.ones(1).backward()
    z = x.exp()
    saved = (z * 1).sum()
    with engine.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError):
        saved.backward()


def test_grad():
    x = engine.tensor([2.0, 3.0], requires_grad=True)
    unused = engine.ones(1, requires_grad=True)
    (first,) = engine.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = engine.autograd.grad(first.sum(), [x])
    assert first.tolist() == [12, 27] and second.tolist() == [12, 18] and x.grad is None
    assert engine.autograd.grad((x * 2).sum(), [x, unused], allow_unused=True)[1] is None
    with pytest.raises(RuntimeError):
        engine.autograd.grad((x * 2).sum(), [unused])
    found = engine.autograd.grad(x * 2, x, engine.tensor([1.0, 10.0]))
    assert found[0].tolist() == [2, 20]


def test_backward_of_some_inputs():
    x, y = engine.ones(1, requires_grad=True), engine.ones(1, requires_grad=True)
    (x * y).sum().backward(inputs=[x])
    assert x.grad is not None and y.grad is None
    engine.autograd.backward([(x * 2).sum(), (y * 3).sum()], [None, engine.tensor(2.0)])
    assert y.grad.tolist() == [6]


def test_modes():
    x = engine.ones(1, requires_grad=True)
    with engine.no_grad():
        assert not (x * 2).requires_grad and not engine.is_grad_enabled()
        with engine.enable_grad():
            assert (x * 2).requires_grad
        assert not engine.is_grad_enabled()
    with engine.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert engine.is_grad_enabled()
    engine.set_grad_enabled(False)
    assert not engine.is_grad_enabled()
    engine.set_grad_enabled(True)

    @engine.no_grad()
    def silent(a):
        return a * 2

    @engine.no_grad
    def bare(a):
        return a * 2

    @engine.no_grad()
    def generator(a):
        yield a * 2
        yield engine.is_grad_enabled()

    assert not silent(x).requires_grad and not bare(x).requires_grad
    steps = generator(x)
    assert not next(steps).requires_grad and engine.is_grad_enabled() and next(steps) is False
    with engine.inference_mode():
        made = engine.ones(1)
        assert engine.is_inference_mode_enabled() and made.is_inference()
    with pytest.raises(RuntimeError):
        made.requires_grad_(True)
    with pytest.raises(ZeroDivisionError), engine.no_grad():
        1 / 0
    assert engine.is_grad_enabled()


def test_modes_are_a_threads_own():
    seen = []
    with engine.no_grad():
        thread = threading.Thread(target=lambda: seen.append(engine.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_hooks():
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    handle = y.register_hook(lambda g: g * 10)
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1]] and x.grad.tolist() == [30, 30]
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    z = x * 2
    z.grad_fn.register_hook(lambda grad_inputs, grad_outputs: tuple(None if g is None else g * 5 for g in grad_inputs))
    x.grad = None
    z.sum().backward()
    assert x.grad.tolist() == [10, 10]


def test_errors_of_hooks_come_through():
    x = engine.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.backward()
    z = x * 2
    z.register_hook(lambda g: "no tensor")
    with pytest.raises(TypeError, match="hook"):
        z.backward()


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return 3 * ctx.scale * x**2 * grad, None


def test_functions():
    x = engine.tensor([1.0, 2.0], dtype=engine.float64, requires_grad=True)
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward"
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]
    assert gradcheck(lambda t: Cube.apply(t, 2.0), (x,)) and gradgradcheck(lambda t: Cube.apply(t, 2.0), (x,))
    assert not Cube.apply(x.detach(), 1.0).requires_grad


def test_functions_with_several_results():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            sign = x.sign()
            ctx.mark_non_differentiable(sign)
            return x * 2, sign, "text"

        @staticmethod
        def backward(ctx, first, second, third=None):
            assert second is None
            return first * 2

    x = engine.tensor([1.0, -2.0], requires_grad=True)
    first, sign, note = Split.apply(x)
    assert note == "text" and not sign.requires_grad
    first.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_functions_that_write():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = engine.ones(2, requires_grad=True)
    y = x * 1
    z = Double.apply(y)
    assert z is y
    z.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_wrong_functions():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            return grad * 2

    class Raises(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("mine")

    x = engine.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="number of gradients"):
        Wrong.apply(x).backward()
    (first,) = engine.autograd.grad(Once.apply(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.backward()
    with pytest.raises(KeyError, match="mine"):
        Raises.apply(x).backward()
    y = Cube.apply(x, 1.0)
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()


def test_gradcheck_finds_mistakes():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = engine.rand(3, dtype=engine.float64, requires_grad=True)
    with pytest.raises(RuntimeError):
        gradcheck(Wrong.apply, x)
    assert gradcheck(Wrong.apply, x, raise_exception=False) is False


def test_anomaly_mode_is_known():
    assert (engine.autograd.is_anomaly_enabled(), engine.is_anomaly_check_nan_enabled()) == (False, True)
    with engine.autograd.detect_anomaly(check_nan=False):
        assert (engine.is_anomaly_enabled(), engine.autograd.is_anomaly_check_nan_enabled()) == (True, False)
        with engine.autograd.set_detect_anomaly(False):
            assert (engine.is_anomaly_enabled(), engine.is_anomaly_check_nan_enabled()) == (False, True)
    assert (engine.is_anomaly_enabled(), engine.is_anomaly_check_nan_enabled()) == (False, True)


def test_anomaly_mode():
    x = engine.zeros(1, requires_grad=True)
    with engine.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="(?i)nan"):
        y = (x.sqrt() * 0).sum()
        y.backward()


def test_no_cycles_are_left():
    import gc
    import weakref

    class Token:
        pass

    token = Token()
    gone = weakref.ref(token)
    x = engine.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g, token=token: None)
    del token, y
    gc.collect()
    assert gone() is None
