"""engine.jit.trace and engine.jit.script; PyTorch reads the files."""

import math
import warnings

import pytest
import torch

from support import same, to_torch
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import functional as F

SCALE = 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8))
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])
        self.times = 2

    def twice(self, x):
        return x + x

    def forward(self, x, flag: bool = False):
        """Branches, loops, methods and functions."""
        x = self.body(x)
        for layer in self.layers:
            x = F.relu(layer(x))
        x = self.layers[0](x)
        if x.sum() > 0 and not flag:
            x = self.twice(x)
        else:
            x = -x
        if flag:
            x = x / math.sqrt(2.0)
        return repeated(x, self.times) + SCALE + engine.ones(x.shape[0], 8, dtype=engine.float32)


def repeated(x, times: int):
    for i in range(times):
        x = x * 2 + i
    return x


class Straight(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.tied = self.conv

    def forward(self, x, y):
        first, second = self.norm(x).split(2, 1)
        mixed = self.tied(x[None, None])
        mixed[0, 0] += 1
        return first * 2 + y[:, None], {"second": second, "mixed": mixed}


def test_trace_of_a_module_is_an_archive_for_pytorch(tmp_path):
    net = Straight().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = engine.jit.trace(net, (engine.randn(3, 4), engine.randn(3)))
    traced.save(tmp_path / "m.pt")
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    x, y = engine.randn(5, 4), engine.randn(5)
    want = net(x, y)
    for got in (traced(x, y), loaded(to_torch(x), to_torch(y))):
        pairs = [(got[0], want[0]), (got[1]["second"], want[1]["second"]), (got[1]["mixed"], want[1]["mixed"])]
        for one, other in pairs:
            same(other.detach(), one if isinstance(one, torch.Tensor) else to_torch(one), rtol=1e-4, atol=1e-5)
    assert [name for name, _ in loaded.named_parameters()] == ["norm.weight", "norm.bias", "conv.weight", "conv.bias"]
    assert all(tensor.requires_grad for tensor in loaded.parameters())
    assert "norm.running_mean" in dict(loaded.named_buffers())


def test_traced_training_mode_keeps_the_buffers_as_they_were():
    net = Straight().train()
    before = {name: tensor.clone() for name, tensor in net.named_buffers()}
    traced = engine.jit.trace(net, (engine.randn(3, 4), engine.randn(3)))
    for name, tensor in [*net.named_buffers(), *traced.named_buffers()]:
        assert engine.equal(tensor, before[name]), name
    traced(engine.randn(3, 4), engine.randn(3))
    assert dict(traced.named_buffers())["norm.num_batches_tracked"].item() == 1


def test_sizes_read_as_numbers_hold_for_the_traced_shapes_alone():
    flat = engine.jit.trace(lambda x: x.reshape(x.shape[0] * x.shape[1]) / x.shape[0], engine.ones(2, 3))
    assert flat(engine.ones(2, 3)).tolist() == [0.5] * 6
    with pytest.raises(engine.Error, match=r"input 'x' must have the shape \[2, 3\]"):
        flat(engine.ones(3, 2))
    loops = engine.jit.trace(lambda x: sum(row.sum() for row in x), engine.ones(2, 3))
    with pytest.raises(engine.Error, match="Expected 2 elements"):
        loops(engine.ones(4, 3))
    free = engine.jit.trace(lambda x: x.flatten() * 2, engine.ones(2, 3))
    assert free(engine.ones(5, 5)).shape == (25,)


def refuses(traced, *inputs, match):
    with pytest.raises(engine.Error, match=match):
        traced(*inputs)


def test_ranks_and_dtypes_that_were_read_are_checked(tmp_path):
    by_rank = engine.jit.trace(lambda x: x * 2 if x.ndim == 2 else x * 3, engine.ones(2, 3))
    assert by_rank(engine.ones(4, 1)).tolist() == [[2]] * 4
    refuses(by_rank, engine.ones(3), match="input 'x' must have 2 dimensions")
    by_dtype = engine.jit.trace(lambda x: x / 2 if x.dtype is engine.float32 else x, engine.ones(2))
    assert by_dtype(engine.ones(5)).tolist() == [0.5] * 5
    refuses(by_dtype, engine.ones(2, dtype=engine.float64), match="input 'x' must be of float32")
    floating = engine.jit.trace(lambda x: x + 1 if x.is_floating_point() else x, engine.ones(2))
    refuses(floating, engine.ones(2, dtype=engine.int64), match="is_floating_point must give what it gave")
    dense = engine.jit.trace(lambda x: x + 1 if x.is_contiguous() else x, engine.ones(2, 3))
    refuses(dense, engine.ones(3, 2).T, match="is_contiguous must give what it gave")
    by_rank.save(tmp_path / "m.pt")
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    assert loaded(torch.ones(1, 2)).tolist() == [[2, 2]]
    with pytest.raises(Exception, match="must have 2 dimensions"):
        loaded(torch.ones(3))


def test_sizes_that_depend_on_data_are_checked_where_they_were_read():
    mean = engine.jit.trace(lambda x: x[x > 0].sum() / x[x > 0].shape[0], engine.tensor([1.0, -1.0, 2.0]))
    assert mean(engine.tensor([3.0, 5.0, -1.0])).item() == 4
    refuses(mean, engine.tensor([1.0, 2.0, 3.0]), match=r"must have the shape \[2\]")


def written(x):
    y = x.contiguous()
    y.add_(1)
    return y, x * 1


def converted(x):
    y = x.to(engine.float32)
    y.mul_(3)
    return y + x, x.data * 2


def dropped(x):
    y = F.dropout(x, 0.5, False)
    z = y.reshape(2, 3)
    z[0] = 7
    return x + 0, y + 0


@pytest.mark.parametrize("function", [written, converted, dropped])
def test_operators_that_give_back_their_argument(tmp_path, function):
    traced = engine.jit.trace(function, engine.randn(2, 3))
    traced.save(tmp_path / "m.pt")
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    plain = engine.randn(2, 3)
    # Inputs that it was not traced with: another layout, another dtype, other values.
    for make in (plain.clone, lambda: plain.T.contiguous().T, plain.double):
        ours, theirs, eager = make(), make(), make()
        want = function(eager)
        for one, other, again in zip(traced(ours), want, loaded(to_torch(theirs))):
            same(one, to_torch(other))
            torch.testing.assert_close(again, to_torch(other))
        same(ours, to_torch(eager))


def test_lost_control_flow_and_random_numbers_warn():
    with pytest.warns(engine.jit.TracerWarning, match="keeps what they were"):
        traced = engine.jit.trace(lambda x: x if x.sum() > 0 else -x, engine.ones(2))
    assert traced(-engine.ones(2)).tolist() == [-1, -1]
    with pytest.warns(engine.jit.TracerWarning, match="keeps what they were"):
        engine.jit.trace(lambda x: x if engine.equal(x, x) else -x, engine.ones(2))
    with pytest.warns(engine.jit.TracerWarning, match="keeps what they were"):
        engine.jit.trace(lambda x: engine.full((2,), x.sum()), engine.ones(2))
    with pytest.warns(engine.jit.TracerWarning, match="differs"):
        engine.jit.trace(lambda x: x + engine.rand(2), engine.ones(2))


def test_what_cannot_be_traced_is_refused():
    outside = engine.zeros(2)
    with pytest.raises(engine.UnimplementedError, match="outside of it"):
        engine.jit.trace(lambda x: outside.add_(x), engine.ones(2))
    with pytest.raises(engine.UnimplementedError, match="outside of it"):
        engine.jit.trace(lambda x: outside[0].add_(x[0]), engine.ones(2))
    with pytest.raises(TypeError, match="int"):
        engine.jit.trace(lambda x: 3, engine.ones(2))
    assert (engine.ones(2) + 1).tolist() == [2, 2]  # nothing is traced any more
    engine.jit.trace(lambda x: x + 1, engine.ones(2))


def test_traced_models_train():
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    traced = engine.jit.trace(net, engine.ones(2, 3))
    x = engine.randn(6, 3)
    net(x).square().mean().backward()
    traced(x).square().mean().backward()
    for one, other in zip(net.parameters(), traced.parameters()):
        same(one.grad, to_torch(other.grad))


@pytest.mark.parametrize("flag", [False, True])
def test_script_of_a_module(tmp_path, flag):
    net = Net().eval()
    scripted = engine.jit.script(net)
    scripted.save(tmp_path / "m.pt")
    loaded = torch.jit.load(str(tmp_path / "m.pt"))
    for x in (engine.randn(3, 4), -engine.randn(7, 4) * 5):
        want = to_torch(net(x, flag).detach())
        same(scripted(x, flag).detach(), want)
        torch.testing.assert_close(loaded(to_torch(x), flag).detach(), want)
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in net.named_parameters()]
    assert scripted.train().training and loaded.training is False


def test_script_of_a_function_with_types():
    def pick(x, index: list[int], bias: engine.Tensor | None = None):
        out = x[index[0]]
        if bias is not None:
            out = out + bias
        while out.sum() < 10:
            out *= 2
        return out

    scripted = engine.jit.script(pick)
    x = engine.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert scripted(x, [0]).tolist() == pick(x, [0]).tolist()
    x = engine.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert scripted(x, [1], engine.ones(2)).tolist() == [8, 10]


def test_errors_of_scripts_point_at_the_users_line():
    def wrong(x):
        y = x + 1
        return y.no_such_method(2)  # here

    def unknown(x):
        return open(x)  # here too

    with open(__file__, encoding="utf-8") as file:
        lines = file.read().split("\n")
    for function, mark in ((wrong, "# here"), (unknown, "# here too")):
        number = next(i for i, line in enumerate(lines, 1) if line.endswith(mark))
        with pytest.raises(engine.Error) as caught:
            engine.jit.script(function)
        assert f"{__file__}:{number}" in str(caught.value)
    with pytest.raises(engine.Error, match="args"):
        engine.jit.script(_any)
    with pytest.raises(TypeError, match="expected a function or a Module"):
        engine.jit.script(3)


def _any(*args):
    return args[0]
