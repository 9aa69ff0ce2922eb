"""Lazy layers and uninitialized parameters, compared with PyTorch's."""

import copy
import pickle

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nn, optim
from tensord.engine.nn.parameter import is_lazy

pytestmark = pytest.mark.filterwarnings("ignore:Lazy modules")

LAYERS = [
    ("LazyLinear", (3,), (2, 5)), ("LazyLinear", (3, False), (2, 4, 5)), ("LazyConv1d", (4, 3), (2, 3, 6)), ("LazyConv2d", (4, 3, 2, 1, 1, 2), (2, 6, 5, 5)),
    ("LazyConv2d", (4, 3), (6, 5, 5)), ("LazyConv3d", (2, 2, 1, 0, 1, 1, False), (1, 3, 3, 3, 3)), ("LazyConvTranspose1d", (4, 3, 2, 1, 1), (2, 3, 5)),
    ("LazyConvTranspose2d", (4, 3, 2, 0, 0, 2, False, 2), (2, 2, 4, 4)), ("LazyConvTranspose3d", (2, 2), (1, 3, 2, 2, 2)), ("LazyBatchNorm1d", (), (4, 3)),
    ("LazyBatchNorm1d", (1e-3, None), (4, 3, 5)), ("LazyBatchNorm2d", (1e-5, 0.1, False), (2, 3, 4, 4)),
    ("LazyBatchNorm3d", (1e-5, 0.1, True, False), (2, 3, 2, 2, 2)),
    ("LazyInstanceNorm1d", (1e-5, 0.1, True, True), (2, 3, 4)), ("LazyInstanceNorm2d", (1e-5, 0.1, True), (2, 3, 4, 4)), ("LazyInstanceNorm3d", (),
    (2, 3, 2, 2, 2)),
]


@pytest.mark.parametrize("name,arguments,shape", LAYERS, ids=str)
def test_first_calls(name, arguments, shape):
    theirs, mine = getattr(torch.nn, name)(*arguments), getattr(nn, name)(*arguments)
    assert repr(mine) == repr(theirs) and mine.has_uninitialized_params() == theirs.has_uninitialized_params()
    assert [(key, is_lazy(value)) for key, value in mine.state_dict().items()] == [
        (key, torch.nn.parameter.is_lazy(value)) for key, value in theirs.state_dict().items()]
    held = dict(mine.named_parameters())
    x = torch.randn(shape)
    torch.manual_seed(5), engine.manual_seed(5)
    want, got = theirs(x), mine(from_torch(x))
    same(got, want, rtol=1e-4, atol=1e-5)
    if mine.__dict__.get("num_features") == 0 or "Norm" not in name or held:
        assert repr(mine) == repr(theirs)
    assert type(mine) is getattr(nn, name.removeprefix("Lazy")) and list(mine.state_dict()) == list(theirs.state_dict())
    for key, value in mine.state_dict().items():
        same(value, theirs.state_dict()[key])
    for key, parameter in held.items():  # the same object before and after
        assert parameter is getattr(mine, key) and type(parameter) is nn.Parameter and parameter.requires_grad and parameter.is_leaf
    same(mine(from_torch(x)), theirs(x), rtol=1e-4, atol=1e-5)
    assert not hasattr(mine, "cls_to_become") and not hasattr(mine, "has_uninitialized_params")


def test_a_model_learns():
    net = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(1))
    x = engine.randn(32, 5)
    net(x)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = (net(x) - x[:, :1]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2 and [type(layer).__name__ for layer in net] == ["Linear", "BatchNorm1d", "ReLU", "Linear"]
    unbatched = nn.LazyInstanceNorm2d(affine=True)
    assert unbatched(engine.rand(3, 4, 5)).shape == (3, 4, 5) and unbatched.num_features == 3


def test_states():
    full = nn.Linear(5, 3)
    lazy = nn.LazyLinear(3)
    assert not lazy.load_state_dict(full.state_dict()).missing_keys
    assert type(lazy) is nn.LazyLinear and tuple(lazy.weight.shape) == (3, 5) and not lazy.has_uninitialized_params()
    x = engine.rand(2, 5)
    assert engine.equal(lazy(x), full(x)) and type(lazy) is nn.Linear and lazy.in_features == 5
    lazy = nn.LazyLinear(3, dtype=engine.float64)
    lazy.load_state_dict(nn.LazyLinear(3).state_dict())
    assert lazy.has_uninitialized_params()
    lazy.load_state_dict(full.state_dict())
    assert lazy.weight.dtype is engine.float64
    with pytest.raises(RuntimeError, match="weight: an uninitialized one cannot be loaded"):
        full.load_state_dict(nn.LazyLinear(3).state_dict())
    lazy = nn.LazyBatchNorm1d()
    with pytest.raises(RuntimeError, match="missing"):
        lazy.load_state_dict({})
    assert lazy.load_state_dict({}, strict=False).missing_keys == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert lazy.has_uninitialized_params()
    lazy.load_state_dict(nn.BatchNorm1d(4).state_dict())
    assert lazy(engine.rand(2, 4)).shape == (2, 4) and lazy.num_features == 4 and lazy.running_mean is not None


def test_copies():
    lazy = nn.LazyConv2d(4, 3, dtype=engine.float64)
    lazy.weight.requires_grad = False
    for made in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy)), copy.deepcopy(nn.Sequential(lazy))[0]):
        assert type(made) is nn.LazyConv2d and made.weight is not lazy.weight and not made.weight.requires_grad and made.bias.requires_grad
        assert made.weight.dtype is engine.float64 and made(engine.rand(1, 2, 4, 4, dtype=engine.float64)).shape == (1, 4, 2, 2)
        assert type(made) is nn.Conv2d and not made.weight.requires_grad
    assert lazy.has_uninitialized_params()
    shared = nn.LazyLinear(2)
    shared.bias = shared.weight
    assert copy.deepcopy(shared).bias is not shared.bias and (made := copy.deepcopy(shared)).bias is made.weight
    assert is_lazy(copy.copy(lazy.weight)) and is_lazy(copy.deepcopy(nn.UninitializedBuffer()))


def test_conversions():
    lazy = nn.LazyBatchNorm1d()
    weight = lazy.weight
    assert lazy.double().weight is weight and weight.dtype is engine.float64 and lazy.running_mean.dtype is engine.float64
    assert lazy.half().to(engine.float32).to("cpu").float().weight.dtype is engine.float32 and lazy.to_empty(device="cpu").weight is weight
    lazy.bfloat16()(engine.rand(4, 3, dtype=engine.bfloat16))
    assert lazy.weight is weight and lazy.weight.dtype is engine.bfloat16 and lazy.num_batches_tracked.dtype is engine.int64
    nn.LazyLinear(2).zero_grad()
    with pytest.raises(RuntimeError, match="share memory"):
        nn.LazyLinear(2).share_memory()
    with pytest.raises(RuntimeError, match="DataParallel"):
        nn.parallel.replicate(nn.LazyLinear(2), ["cpu", "cpu"])
    with pytest.raises(RuntimeError, match="DistributedDataParallel"):
        nn.parallel.DistributedDataParallel(nn.Sequential(nn.LazyLinear(2)))


USES = [
    "p + 1", "1 - p", "p == 1", "p[0]", "len(p)", "bool(p)", "list(p)", "-p", "p.numel()", "p.size()", "p.detach()", "p.clone()", "p.zero_()",
    "p.tolist()", "p.T",
    "p.requires_grad_(False)", "p.backward()", "p.register_hook(print)", "p.numpy()", "engine.add(x, p)", "x + p", "x @ p", "engine.stack([p])",
    "nn.functional.linear(x, p)",
    "optim.SGD([p], lr=0.1)", "x.copy_(p)", "x[p]", "engine.tensor(p)", "engine.from_dlpack(p)", "engine.equal(p, p)",
]


@pytest.mark.parametrize("use", USES)
def test_uses_are_refused(use):
    p, x = nn.UninitializedParameter(), engine.ones(3)
    with pytest.raises(ValueError):
        eval(use)


def test_parameters():
    p = nn.UninitializedParameter(requires_grad=False, dtype=engine.float64)
    assert repr(p) == f"{p}" == "<UninitializedParameter>" and isinstance(p, nn.Parameter) and p.is_leaf and p.grad is None and hash(p) == hash(p)
    with pytest.raises(RuntimeError, match="shape"):
        p.shape
    p.materialize((2, 3), dtype=engine.float32)
    assert type(p) is nn.Parameter and p.dtype is engine.float32 and not p.requires_grad and not hasattr(p, "materialize")
    buffer = nn.UninitializedBuffer()
    buffer.materialize([2])
    assert type(buffer) is nn.Buffer and buffer.persistent and (buffer.zero_() + 1).tolist() == [1, 1]


class Scale(nn.lazy.LazyModuleMixin, nn.Module):
    """A custom lazy module, which keeps its class."""

    def __init__(self):
        super().__init__()
        self.factor = nn.UninitializedParameter()

    def initialize_parameters(self, x, *, start=1.0):
        self.factor.materialize(x.shape[1:])
        nn.init.constant_(self.factor, start)

    def forward(self, x, *, start=1.0):
        return x * self.factor


def test_modules_of_ones_own():
    made = Scale()
    assert made(engine.ones(2, 3), start=4.0).sum().item() == 24 and made(engine.ones(1, 3)).sum().item() == 12 and type(made) is Scale
    seen = []
    made = Scale()
    made.register_forward_pre_hook(lambda module, args: seen.append(module.has_uninitialized_params()))
    made(engine.ones(2, 3))
    assert seen == [False]

    class Forgets(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Forgets()(engine.ones(1))


@pytest.mark.parametrize("make,shape,match", [
    (lambda: nn.LazyConv2d(4, 3), (4, 4), "Expected 3D"), (lambda: nn.LazyConv1d(4, 3, groups=2), (1, 3, 4), "divisible"),
    (lambda: nn.LazyBatchNorm2d(), (2, 3), "dimensions"),
    (lambda: nn.LazyInstanceNorm1d(affine=True), (2,), "dimensions"),
])
def test_wrong_inputs(make, shape, match):
    made = make()
    with pytest.raises((ValueError, RuntimeError), match=match):
        made(engine.ones(*shape))
    assert type(made).__name__.startswith("Lazy")
