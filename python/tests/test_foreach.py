"""Operators on lists of tensors: in scripts, with gradients, and clipping of 16-bit gradients."""

import pytest
import torch
from support import same, to_torch
from tensord import engine
from tensord.engine import nn, optim


class Step(torch.nn.Module):
    def forward(self, x, y):
        a, b = x * 1, y * 1
        before = a + 0
        views = [a.view(-1), b]
        torch._foreach_add_(views, 1.0)
        others = [b * 2, a * 2]
        torch._foreach_mul_(views, others)
        out = torch._foreach_addcdiv([a, b], views, [b, a], 0.5)
        return before, a, b, out[0], out[1], torch._foreach_norm([a, b])[1]


def test_scripts_see_what_lists_write(tmp_path):
    scripted = torch.jit.script(Step())
    scripted.save(str(tmp_path / "step.pt"))
    assert "_foreach_mul_" in scripted.code
    x, y = engine.rand(5) + 1, engine.rand(5) + 1
    want = Step()(to_torch(x), to_torch(y))
    for optimize in (True, False):
        model = engine.load(tmp_path / "step.pt", optimize=optimize)
        for _ in range(3):  # the general program, then a plan
            for mine, their in zip(model(x, y), want):
                same(mine, their)


SOURCE = """
class Net(Module):
    def forward(self, x: Tensor) -> Tensor:
        a = x * 1.0
        torch._foreach_add_([a], 1.0)
        b = a * 2.0
        torch._foreach_mul_([a, b], 3.0)
        return a + b
"""


def test_lists_that_only_the_call_has(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)  # PyTorch drops such calls when it scripts
    model = engine.load(tmp_path / "model.py")
    for _ in range(3):
        assert model(engine.ones(2)).tolist() == [18, 18]


def test_gradients_of_what_is_written():
    aten = engine.ops.aten
    x = engine.rand(3, requires_grad=True)
    y = x * 1
    aten._foreach_mul_([y], 3.0)
    aten._foreach_add_([y], [y.detach() * 2])
    y.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    with pytest.raises(engine.Error, match="leaf"):
        aten._foreach_zero_([x])
    (norm,) = aten._foreach_norm([engine.ones(4)], 2, engine.float64)
    assert norm.dtype == engine.float64 and norm.item() == 2


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_clipping_of_16_bits(name):
    dtype, theirs = getattr(engine, name), getattr(torch, name)
    start = [engine.randn(1000).to(dtype), engine.randn(7, 5).t().to(dtype)]
    for norm_type in (1.0, 2.0, float("inf")):
        params = [engine.zeros(*grad.shape, dtype=dtype, requires_grad=True) for grad in start]
        for param, grad in zip(params, start):
            param.grad = grad.clone()
        found = nn.utils.clip_grad_norm_(params, 0.5, norm_type)
        # Like PyTorch, but computed in float32 and rounded once.
        exact = [torch.nn.Parameter(torch.zeros(tuple(grad.shape))) for grad in start]
        for param, grad in zip(exact, start):
            param.grad = to_torch(grad.float())
        want = torch.nn.utils.clip_grad_norm_(exact, 0.5, norm_type)
        assert abs(float(found) - float(want)) < 1e-5 * float(want)
        for param, other in zip(params, exact):
            assert param.grad.dtype == dtype
            same(param.grad.float(), other.grad.to(theirs).float(), rtol=2e-3 if name == "float16" else 1e-2, atol=1e-7)
    nn.utils.clip_grad_value_(params, 1e-3)
    assert max(float(param.grad.float().abs().max()) for param in params) <= 1.001e-3


def test_master_weights():
    param = engine.ones(4, dtype=engine.bfloat16, requires_grad=True)
    optimizer = optim.SGD([param], lr=1.0)
    optimizer.use_master_weights()
    for _ in range(8):  # each step is too small for bfloat16
        param.grad = engine.full((4,), 2.0**-10, dtype=engine.bfloat16)
        optimizer.step()
    assert param.tolist() == [1 - 2.0**-7] * 4
    assert optimizer.state_dict()["state"][0]["master_param"].dtype == engine.float32
    with pytest.raises(engine.FailedPreconditionError, match="before the first step"):
        optimizer.use_master_weights()
