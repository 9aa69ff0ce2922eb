"""Activation checkpointing: gradients, random numbers and errors are those of the same code without it, with less memory."""

import gc
import subprocess
import sys

import pytest
import torch
import torch.utils.checkpoint
from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.utils.checkpoint import checkpoint, checkpoint_sequential
from test_cuda import run as run_on_emulated_cuda

F = nn.functional


class Block(nn.Module):
    def __init__(self, width: int = 6, dropout: float = 0.0):
        super().__init__()
        self.first, self.second, self.dropout = nn.Linear(width, 2 * width), nn.Linear(2 * width, width), nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.second(F.gelu(self.first(x))))


def gradients(run, module, *inputs):
    """Of the sum of all results' squares, with respect to the parameters and to inputs that require one."""
    module.zero_grad()
    inputs = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
    results = run(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum((one.float().square().sum() for one in results[1:]), results[0].float().square().sum())
    loss.backward()
    return [loss.tolist()] + [one.grad.tolist() if one.grad is not None else None for one in [*module.parameters(), *inputs]]


def test_gradients_are_the_same():
    block, x = Block(), engine.randn(3, 6, requires_grad=True)
    want = gradients(block, block, x)
    assert gradients(lambda x: checkpoint(block, x), block, x) == want
    assert gradients(lambda x: checkpoint(block, x, use_reentrant=False), block, x) == want
    assert gradients(lambda x: checkpoint(lambda: block(x)), block, x) == want


def test_gradients_are_torchs():
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 6))
    ours = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6))
    ours.load_state_dict({key: from_torch(value) for key, value in theirs.state_dict().items()})
    x = torch.randn(3, 6, requires_grad=True)
    y = from_torch(x)
    torch.utils.checkpoint.checkpoint(theirs, x, use_reentrant=False).square().sum().backward()
    checkpoint(ours, y, use_reentrant=False).square().sum().backward()
    same(y.grad, x.grad, rtol=1e-4)
    for one, other in zip(ours.parameters(), theirs.parameters()):
        same(one.grad, other.grad, rtol=1e-4)


def test_inputs_need_no_gradient():
    """As with use_reentrant=False: the parameters get theirs, and there is no warning."""
    block, x = Block(), engine.randn(3, 6)
    assert gradients(lambda x: checkpoint(block, x), block, x) == gradients(block, block, x)


def test_several_results_and_keywords():
    block, x = Block(), engine.randn(3, 6, requires_grad=True)

    def run(x, *, scale, names):
        return block(x) * scale, x.sin(), (block(x) * names["b"]).cos()

    want = gradients(lambda x: run(x, scale=2.0, names={"b": 3}), block, x)
    assert gradients(lambda x: checkpoint(run, x, scale=2.0, names={"b": 3}), block, x) == want


def test_one_result_is_not_used():
    x = engine.randn(3, 3, requires_grad=True)
    first, _ = checkpoint(lambda x: (x.exp(), x.sin()), x)
    first.sum().backward()
    assert (x.grad - x.detach().exp()).abs().max().item() < 1e-6


def test_nested():
    blocks, x = nn.Sequential(*(Block() for _ in range(4))), engine.randn(3, 6, requires_grad=True)
    want = gradients(blocks, blocks, x)

    def inner(x):
        return checkpoint(blocks[1], checkpoint(blocks[0], x))

    assert gradients(lambda x: checkpoint(lambda x: blocks[2](checkpoint(inner, x)), x), blocks[:3], x) == gradients(blocks[:3], blocks[:3], x)
    for segments in (1, 2, 3, 4):
        assert gradients(lambda x: checkpoint_sequential(blocks, segments, x), blocks, x) == want
    with pytest.raises(ValueError, match="1 to 4 segments"):
        checkpoint_sequential(blocks, 5, x)


def test_random_numbers_are_drawn_again():
    block, x = Block(dropout=0.5), engine.randn(8, 6, requires_grad=True)
    ends = []
    for run in (block, lambda x: checkpoint(block, x)):
        engine.manual_seed(5)
        ends.append((gradients(run, block, x), engine.rand(3).tolist()))  # the backward pass draws nothing from outside
    assert ends[0] == ends[1]
    engine.manual_seed(5)
    masks = []

    def drop(x):
        out = F.dropout(x, 0.5, True)
        masks.append(out.tolist())
        return out.sin()

    checkpoint(drop, x, preserve_rng_state=False).sum().backward()
    assert masks[0] != masks[1]


def test_autocast_is_that_of_the_call():
    block, x = Block(), engine.randn(3, 6, requires_grad=True)

    def cast(run):
        def inner(x):
            with engine.autocast("cpu"):
                return run(x)

        return inner

    want = gradients(cast(block), block, x)
    assert gradients(cast(lambda x: checkpoint(block, x)), block, x) == want
    assert want != gradients(block, block, x)


def test_second_derivatives_and_two_passes():
    x = engine.randn(3, 3, requires_grad=True)
    y = checkpoint(lambda x: x.exp().sin().exp(), x)
    plain = x.exp().sin().exp()
    for one in (y, plain):
        (first,) = engine.autograd.grad(one.sum(), x, create_graph=True)
        (second,) = engine.autograd.grad(first.square().sum(), x, retain_graph=True)
        if one is y:
            seen = first.tolist(), second.tolist()
    assert seen[0] == first.tolist()
    assert (engine.tensor(seen[1]) - second).abs().max().item() < 1e-4 * second.abs().max().item()
    z = checkpoint(lambda x: x.exp().sin(), x)
    z.sum().backward(retain_graph=True)
    once = x.grad.clone()
    z.sum().backward()
    assert (x.grad - 2 * once).abs().max().item() < 1e-6


def test_without_grad_mode_nothing_runs_twice():
    calls = []

    def run(x):
        calls.append(1)
        return x.exp()

    x = engine.randn(3, requires_grad=True)
    with engine.no_grad():
        checkpoint(run, x)
    assert len(calls) == 1
    checkpoint(run, x)
    assert len(calls) == 2
    checkpoint(run, x).sum().backward()
    assert len(calls) == 4


def test_errors():
    x = engine.randn(3, requires_grad=True)
    with pytest.raises(ValueError, match="use_reentrant=False"):
        checkpoint(engine.exp, x, use_reentrant=True)
    calls = []

    def other_each_time(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    with pytest.raises(RuntimeError, match="the same each time"):
        checkpoint(other_each_time, x).sum().backward()

    def fails_later(x):
        calls.append(1)
        if len(calls) % 2:
            raise ZeroDivisionError("second time")
        return x.exp().sin()

    calls = [1]
    with pytest.raises(ZeroDivisionError, match="second time"):
        checkpoint(fails_later, x).sum().backward()
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x)
    assert checkpoint(engine.exp, x).sum().backward() is None  # the scope of the error ended
    w = engine.randn(3, requires_grad=True)
    y = checkpoint(lambda x: (x * w).sin(), x)
    with engine.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_what_the_function_writes():
    """Statistics change twice, as in PyTorch; a saved tensor that the function writes later is an error, as without checkpoints."""
    norm, x = nn.BatchNorm1d(4), engine.randn(6, 4, requires_grad=True)
    want = gradients(norm, norm, x)
    assert gradients(lambda x: checkpoint(norm, x), norm, x) == want
    assert norm.num_batches_tracked.item() == 3

    def writes(x):
        y = x.exp()
        y.add_(1)
        return y.sin()

    for run in (writes, lambda x: checkpoint(writes, x)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(x).sum().backward()


def test_two_threads_go_back_through_one_checkpoint():
    """One computes the function again, which needs the GIL; the other waits for it in a function of Python. In a process of its own, which would hang."""
    program = """if True:
        import threading, time
        from tensord import engine
        from tensord.engine.utils.checkpoint import checkpoint
        runs_again, calls = threading.Event(), []

        class Twice(engine.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                runs_again.wait(30)
                return grad * 2 + 0 * ctx.saved_tensors[0]

        def run(x, y):
            calls.append(1)
            if len(calls) == 2:
                runs_again.set()
                time.sleep(0.2)
            return Twice.apply(x), y.exp()

        x, y = engine.randn(3, requires_grad=True), engine.zeros(3, requires_grad=True)
        threads = [threading.Thread(target=one.sum().backward) for one in checkpoint(run, x, y)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (x.grad.tolist(), y.grad.tolist(), len(calls)) == ([2.0] * 3, [1.0] * 3, 2)
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_nothing_is_kept():
    """The function and its arguments go with the graph."""
    gc.collect()

    class Tracked:
        alive = 0

        def __init__(self):
            Tracked.alive += 1

        def __call__(self, x):
            return x.exp().sin()

        def __del__(self):
            Tracked.alive -= 1

    x = engine.randn(3, requires_grad=True)
    for backward in (True, False):
        y = checkpoint(Tracked(), x)
        if backward:
            y.sum().backward()
        del y
        gc.collect()
        assert Tracked.alive == 0


def test_peak_memory_on_cuda():
    """Eight layers of many activations: with checkpoints those of one are there at a time. By the allocator's statistics."""
    run_on_emulated_cuda("""
        from tensord.engine.utils.checkpoint import checkpoint
        def layer(x):
            for _ in range(6):
                x = x.sin().exp().cos()
            return x
        x = engine.randn(1 << 16, device="cuda").requires_grad_()
        before = cuda.memory_allocated()
        def peak(run):
            y = x
            for _ in range(8):
                y = run(y)
            y.sum().backward()
            grad, x.grad = x.grad.tolist(), None
            return cuda.max_memory_allocated() - before, grad
        checkpointed, grad = peak(lambda y: checkpoint(layer, y))  # first: the peak is that of the process
        plain, expected = peak(layer)
        assert grad == expected
        assert checkpointed < plain / 3, (checkpointed, plain)
        net = engine.nn.Sequential(engine.nn.Linear(4, 8), engine.nn.Dropout(0.5), engine.nn.Linear(8, 2)).cuda()
        inputs, ends = engine.randn(16, 4, device="cuda"), []
        for run in (net, lambda x: checkpoint(net, x)):
            cuda.manual_seed(3)
            net.zero_grad()
            run(inputs).square().sum().backward()
            ends.append([parameter.grad.tolist() for parameter in net.parameters()])
        assert ends[0] == ends[1]
    """)
