"""Layers and functions of torch.nn compared with PyTorch's own: padding, resampling, less common pools, dropouts,
distances, losses."""

import pytest
import torch
from torch.nn import functional as TF

from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import functional as F
from test_nn import test_layers as compare

LAYERS = [
    ("ConstantPad1d", ((1, 2), 3.5), (2, 3, 4)), ("ConstantPad2d", (1, -2.0), (2, 3, 4, 4)), ("ConstantPad3d", (1, 0.5), (1, 2, 3, 3, 3)),
    ("ZeroPad2d", ((1, 0, 2, 1),), (2, 3, 4, 4)), ("ReflectionPad1d", (2,), (2, 3, 5)), ("ReflectionPad2d", ((1, 2, 0, 1),), (2, 3, 5, 4)),
    ("ReflectionPad3d", (1,), (1, 2, 3, 3, 3)), ("ReplicationPad1d", ((3, 1),), (2, 3, 4)), ("ReplicationPad2d", (2,), (1, 2, 3, 3)),
    ("ReplicationPad3d", (1,), (1, 2, 3, 2, 3)), ("Upsample", (None, 2), (1, 2, 3)), ("Upsample", ((5, 7),), (1, 2, 3, 4)),
    ("Upsample", (None, 1.5, "bilinear", False), (2, 2, 4, 5)), ("Upsample", (None, (2, 0.5), "bicubic", True), (1, 2, 4, 6)),
    ("Upsample", (7, None, "linear", True), (1, 2, 4)), ("Upsample", (None, 2, "trilinear"), (1, 2, 2, 3, 2)), ("Upsample", (None, 2.5, "nearest-exact"), (1, 1, 3, 3)),
    ("UpsamplingNearest2d", (None, 2), (1, 2, 3, 3)), ("UpsamplingBilinear2d", (5,), (1, 2, 3, 3)), ("PixelShuffle", (2,), (2, 8, 3, 3)),
    ("PixelUnshuffle", (2,), (2, 2, 4, 6)), ("Unfold", ((2, 3), 1, 1, 2), (2, 3, 5, 6)), ("Fold", ((4, 5), (2, 2)), (2, 8, 12)),
    ("LPPool1d", (2, 3), (2, 3, 7)), ("LPPool2d", (2, (2, 3), 1, True), (2, 3, 5, 6)), ("LocalResponseNorm", (3,), (2, 5, 4, 4)),
    ("LocalResponseNorm", (2, 0.5, 0.6, 2.0), (2, 5, 6)), ("CosineSimilarity", (1,), (4, 6), (4, 6)),
    ("CosineSimilarity", (0, 1e-3), (4, 6), (4, 6)), ("PairwiseDistance", (3.0, 1e-4, True), (4, 6), (4, 6)), ("Hardshrink", (0.3,), (9,)), ("Softshrink", (0.3,), (9,)),
    ("Tanhshrink", (), (9,)), ("Softmin", (1,), (3, 4)), ("Softmax2d", (), (2, 3, 4, 4)), ("ConvTranspose3d", (2, 3, 2, 2), (1, 2, 3, 3, 2)),
    ("InstanceNorm1d", (3, 1e-3, 0.2, True, True), (4, 3, 5)), ("InstanceNorm3d", (2, 1e-5, 0.1, True), (2, 2, 3, 3, 3)), ("InstanceNorm2d", (3,), (3, 4, 4)),
    ("AdaptiveMaxPool3d", ((2, None, 1),), (1, 2, 4, 3, 3)), ("ChannelShuffle", (2,), (2, 4, 3, 3)),
]


@pytest.mark.parametrize("name,arguments,shapes", [(row[0], row[1], row[2:]) for row in LAYERS], ids=lambda v: str(v))
def test_layers(name, arguments, shapes):
    if name == "ChannelShuffle":  # PyTorch 1.13's has no gradient
        x = torch.rand(shapes[0])
        same(nn.ChannelShuffle(*arguments)(from_torch(x)), torch.nn.ChannelShuffle(*arguments)(x))
        return
    compare(name, arguments, shapes)
    ours, theirs = repr(getattr(nn, name)(*arguments)), repr(getattr(torch.nn, name)(*arguments))
    if name.startswith(("Pixel", "Reflection", "Replication", "Constant", "RReLU", "Fold", "Unfold", "LPPool", "LocalResponse", "InstanceNorm")):
        assert ours == theirs


RANDOM = [
    ("RReLU", (0.2, 0.5), (40,)), ("Dropout1d", (0.4,), (6, 5, 4)), ("Dropout2d", (0.4,), (6, 5, 2, 2)), ("Dropout2d", (0.4,), (6, 5, 2)), ("Dropout3d", (0.4,), (6, 5, 2, 1, 2)), ("Dropout3d", (0.4,), (5, 2, 1, 2)),
    ("AlphaDropout", (0.3,), (6, 5)), ("FeatureAlphaDropout", (0.3,), (6, 5, 2, 2)),
]


@pytest.mark.parametrize("name,arguments,shape", RANDOM, ids=lambda v: str(v))
def test_random_layers(name, arguments, shape):
    theirs, mine = getattr(torch.nn, name)(*arguments), getattr(nn, name)(*arguments)
    x = torch.randn(shape, requires_grad=True)
    y = from_torch(x)
    torch.manual_seed(7), engine.manual_seed(7)
    want, got = theirs(x), mine(y)
    same(got, want, rtol=1e-4, atol=1e-5)
    want.square().sum().backward(), got.square().sum().backward()
    same(y.grad, x.grad, rtol=1e-3, atol=1e-4)
    same(mine.eval()(y), theirs.eval()(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("options", [{"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}], ids=str)
def test_unpooling(dims, options):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *[8, 6, 4][:dims])
    pooled, indices = getattr(TF, f"max_pool{dims}d")(x, return_indices=True, **options)
    layer = getattr(torch.nn, f"MaxUnpool{dims}d")(**options)
    mine = getattr(nn, f"MaxUnpool{dims}d")(**options)
    assert repr(mine) == repr(layer)
    a, b = from_torch(pooled).requires_grad_(), pooled.clone().requires_grad_()
    # Without a size, elements that the pool omitted at the edge are lost, and indices may be out of range.
    for size in ([None] if options == {"kernel_size": 2} else []) + [x.shape, x.shape[2:]]:
        want, got = layer(b, indices, size), mine(a, from_torch(indices), size)
        same(got, want)
    want.square().sum().backward()
    got.square().sum().backward()
    same(a.grad, b.grad)
    with pytest.raises(ValueError, match="further than the stride"):
        mine(a, from_torch(indices), [50] * dims)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("options", [{"output_size": 3}, {"output_ratio": 0.6}], ids=str)
def test_fractional_pools(dims, options):
    x, samples = torch.randn(2, 3, *[8, 7, 9][:dims]), torch.rand(2, 3, dims)
    layer = getattr(torch.nn, f"FractionalMaxPool{dims}d")(2, return_indices=True, _random_samples=samples, **options)
    mine = getattr(nn, f"FractionalMaxPool{dims}d")(2, return_indices=True, _random_samples=from_torch(samples), **options)
    for got, want in zip(mine(from_torch(x)), layer(x)):
        same(got, want)
    torch.manual_seed(3), engine.manual_seed(3)
    same(getattr(F, f"fractional_max_pool{dims}d")(from_torch(x), 2, **options), getattr(TF, f"fractional_max_pool{dims}d")(x, 2, **options))


INTERPOLATIONS = [
    ((2, 3, 5), {"size": 8}), ((2, 3, 5), {"scale_factor": 1.7, "mode": "linear"}), ((2, 3, 5), {"scale_factor": 0.6, "mode": "area"}),
    ((2, 3, 5, 6), {"scale_factor": (1.3, 2.1), "mode": "bilinear", "recompute_scale_factor": True}), ((2, 3, 5, 6), {"scale_factor": 1.3, "mode": "bilinear"}),
    ((2, 3, 5, 6), {"size": (3, 9), "mode": "bicubic", "align_corners": True}), ((2, 3, 9, 8), {"size": 4, "mode": "bilinear", "antialias": True}),
    ((2, 3, 9, 8), {"scale_factor": 0.4, "mode": "bicubic", "antialias": True}), ((2, 3, 5, 6), {"size": (2, 3), "mode": "area"}),
    ((1, 2, 3, 4, 5), {"size": (4, 4, 4), "mode": "trilinear"}), ((1, 2, 3, 4, 5), {"scale_factor": 2, "mode": "nearest-exact"}), ((1, 2, 4, 4, 4), {"size": 2, "mode": "area"}),
]


@pytest.mark.parametrize("shape,options", INTERPOLATIONS, ids=str)
def test_interpolate(shape, options):
    x = torch.randn(shape, requires_grad=True)
    y = from_torch(x)
    want, got = TF.interpolate(x, **options), F.interpolate(y, **options)
    same(got, want, rtol=1e-4, atol=1e-5)
    want.square().sum().backward()
    got.square().sum().backward()
    same(y.grad, x.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options,match", [
    ({}, "exactly one"), ({"size": 2, "scale_factor": 2}, "exactly one"), ({"size": (2, 2, 2)}, "has 3 numbers"), ({"size": 2, "mode": "cubic"}, "'cubic' is not one of"),
    ({"size": 2, "align_corners": True}, "no meaning"), ({"size": 2, "mode": "linear"}, "is not there for inputs of 4"), ({"size": 2, "antialias": True}, "antialias"),
    ({"size": 2, "recompute_scale_factor": True}, "no meaning with size"),
], ids=str)
def test_interpolate_refuses(options, match):
    with pytest.raises((ValueError, NotImplementedError), match=match):
        F.interpolate(engine.rand(1, 2, 3, 3), **options)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids(mode, padding, align):
    theta = torch.randn(2, 2, 3) * 0.7
    x = torch.randn(2, 3, 5, 6, requires_grad=True)
    y = from_torch(x)
    grid, own = TF.affine_grid(theta, (2, 3, 4, 5), align_corners=align), F.affine_grid(from_torch(theta), (2, 3, 4, 5), align_corners=align)
    same(own, grid)
    want, got = TF.grid_sample(x, grid, mode, padding, align), F.grid_sample(y, from_torch(grid), mode, padding, align)
    same(got, want, rtol=1e-4, atol=1e-5)
    want.sum().backward(), got.sum().backward()
    same(y.grad, x.grad, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="'cubic' is not one of"):
        F.grid_sample(y, own, "cubic")


def test_gumbel_softmax():
    logits = torch.randn(4, 6)
    torch.manual_seed(5), engine.manual_seed(5)
    x, y = logits.clone().requires_grad_(), from_torch(logits).requires_grad_()
    for hard in (False, True):
        want, got = TF.gumbel_softmax(x, 0.7, hard, dim=1), F.gumbel_softmax(y, 0.7, hard, dim=1)
        same(got, want, rtol=1e-4, atol=1e-5)
        (want * logits).sum().backward(), (got * from_torch(logits)).sum().backward()
    same(y.grad, x.grad, rtol=1e-3, atol=1e-5)


def both_losses(name, options, inputs):
    want = getattr(torch.nn, name)(**options)(*inputs)
    mine = {key: from_torch(value) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    own = [from_torch(x) for x in inputs]
    got = getattr(nn, name)(**mine)(*own)
    same(got, want, rtol=1e-4)
    want.sum().backward(), got.sum().backward()
    for x, y in zip(inputs, own):
        if x.requires_grad:
            same(y.grad, x.grad, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses(reduction):
    torch.manual_seed(1)

    def values(*shape):
        return torch.randn(shape, requires_grad=True)

    for full in (False, True):
        for var in (torch.rand(5, 4), torch.rand(5, 1), torch.rand(5)):
            both_losses("GaussianNLLLoss", {"full": full, "reduction": reduction, "eps": 0.1}, [values(5, 4), values(5, 4), var.requires_grad_()])
    both_losses("MultiLabelSoftMarginLoss", {"weight": torch.rand(4), "reduction": reduction}, [values(5, 4), torch.randint(0, 2, (5, 4)).float()])
    both_losses("MultiLabelMarginLoss", {"reduction": reduction}, [values(3, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 2], [-1, 0, 0, 0]])])
    for swap in (False, True):
        both_losses("TripletMarginWithDistanceLoss", {"margin": 0.7, "swap": swap, "reduction": reduction}, [values(5, 4), values(5, 4), values(5, 4)])
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(engine.ones(3), engine.ones(3), -engine.ones(3))
    with pytest.raises(ValueError, match="not of the input's size"):
        F.gaussian_nll_loss(engine.ones(3, 2), engine.ones(3, 2), engine.ones(2))
    with pytest.raises(ValueError, match="'most' is not a reduction"):
        F.multilabel_soft_margin_loss(engine.ones(3), engine.ones(3), reduction="most")


def test_sizes_of_transposed_convolutions():
    torch.manual_seed(0), engine.manual_seed(0)
    theirs, mine = torch.nn.ConvTranspose2d(2, 3, 3, 2, 1), nn.ConvTranspose2d(2, 3, 3, 2, 1)
    x = torch.randn(1, 2, 4, 5)
    for size in ((7, 9), (8, 10), (1, 3, 8, 9)):
        same(mine(from_torch(x), size), theirs(x, size), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="output_size"):
        mine(from_torch(x), (9, 9))


def test_parameter_dicts():
    held = nn.ParameterDict({"a": nn.Parameter(engine.ones(2)), "b": engine.zeros(1)})
    held["text"] = "kept"
    assert [name for name, _ in held.named_parameters()] == ["a", "b"] and list(held) == ["a", "b", "text"]
    assert held.pop("text") == "kept" and "text" not in held and held.get("text", 5) == 5
    assert list(held.state_dict()) == ["a", "b"] and len(held) == 2 and isinstance(held["b"], nn.Parameter)
    held.update([("c", engine.ones(3))])
    assert held.setdefault("c") is held["c"] and [value.shape[0] for value in held.values()] == [2, 1, 3]
    held.clear()
    assert not list(held.parameters()) and not held.items()
    with pytest.raises(KeyError):
        held["a"]


def test_pools_with_indices():
    x = torch.randn(2, 3, 6, 6)
    for name, argument in (("max_pool2d_with_indices", 2), ("adaptive_max_pool2d_with_indices", 3)):
        for got, want in zip(getattr(F, name)(from_torch(x), argument), getattr(TF, name)(x, argument)):
            same(got, want)


def test_rows_of_modules():
    def names(row):
        return [(name, type(module).__name__) for name, module in row.named_children()]

    for kind in (nn.Sequential, nn.ModuleList):
        theirs = getattr(torch.nn, kind.__name__)
        a, b = ((x(m.ReLU(), m.Tanh()) if x in (nn.Sequential, torch.nn.Sequential) else x([m.ReLU(), m.Tanh()])) for x, m in ((kind, nn), (theirs, torch.nn)))
        for row, m in ((a, nn), (b, torch.nn)):
            row.append(m.GELU())
            row.insert(1, m.Sigmoid())
            del row[0]
            row[-1] = m.ELU()
            row.extend([m.SiLU()])
        assert names(a) == names(b) and names(a[1:]) == [(name if kind is nn.Sequential else str(i), type_) for i, (name, type_) in enumerate(names(a)[1:])]
        assert type(a.pop(0)).__name__ == "Sigmoid" and len(a) == 3 and type(a[-1]).__name__ == "SiLU"
        del a[:2]
        assert [type(module).__name__ for module in a] == ["SiLU"]
        with pytest.raises(IndexError):
            a[5]
    assert len(nn.ModuleList([nn.ReLU()]) + [nn.Tanh()]) == 2
    held = nn.ModuleDict([("a", nn.ReLU())])
    held.update({"b": nn.Tanh()})
    assert list(held) == ["a", "b"] and isinstance(held.pop("a"), nn.ReLU)
    del held["b"]
    assert len(held) == 0
    numbers = nn.ParameterList([nn.Parameter(engine.ones(1))]).extend([engine.zeros(2), nn.Parameter(engine.ones(3))])
    numbers[-1] = engine.ones(4)
    assert [p.shape[0] for p in numbers] == [1, 2, 4] and list(numbers.state_dict()) == ["0", "1", "2"] and len(numbers[1:]) == 2


class _Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_parts_and_extra_state():
    net = nn.Sequential(nn.BatchNorm1d(2), _Counting())
    assert net.get_parameter("0.weight") is net[0].weight and net.get_buffer("0.running_mean") is net[0].running_mean
    for ask in (lambda: net.get_parameter("0.other"), lambda: net.get_buffer("2.x"), lambda: net.get_submodule("0.deep")):
        with pytest.raises(AttributeError, match="has no"):
            ask()
    net[1].calls = 7
    state = net.state_dict()
    assert state["1._extra_state"] == {"calls": 7}
    other = nn.Sequential(nn.BatchNorm1d(2), _Counting())
    other.load_state_dict(state)
    assert other[1].calls == 7
    with pytest.raises(RuntimeError, match="missing.*_extra_state"):
        other.load_state_dict({name: value for name, value in state.items() if "extra" not in name})
    assert net.type(engine.float64)[0].num_batches_tracked.dtype is engine.float64 and net.cpu() is net
    assert net.to_empty(device="cpu")[0].weight.shape == (2,)


def test_what_modules_share_stays_shared():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    net.register_buffer("a", engine.zeros(2))
    net.register_buffer("b", net.a)
    net.double()
    assert net[1].weight is net[0].weight and net[0].weight.dtype is engine.float64 and len(list(net.parameters())) == 3
    net.a.add_(1)
    assert (net.b == 1).all()


# Layers whose sizes the first call determines, classes that are not parameters before it, and what PyTorch itself
# deprecates.
LEFT_OUT = {
    "nn": {"Container"},
    "functional": {"assert_int_or_pair", "boolean_dispatch", "handle_torch_function", "has_torch_function", "has_torch_function_unary",
                   "has_torch_function_variadic"},
}


def test_every_layer_and_function_is_here():
    layers = {name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type)}
    assert {name for name in layers if not hasattr(nn, name)} == LEFT_OUT["nn"]
    functions = {name for name in dir(TF) if name.islower() and not name.startswith("_") and callable(getattr(TF, name))}
    assert {name for name in functions if not hasattr(F, name)} == LEFT_OUT["functional"]
