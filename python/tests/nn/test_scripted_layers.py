"""engine.jit.script of layers: each gives what the layer itself gives, in training and after it, here and where PyTorch reads its archive."""

import pytest
import torch

import test_nn
import test_nn_layers
from support import from_torch, same, to_torch
from tensord import engine
from tensord.engine import nn
from tensord.engine._scripted_layers import _LAYERS

# Beside those that are compared with PyTorch's.
ROWS = [
    ("Identity", (), (3,)), ("Embedding", (5, 3, 1), torch.tensor([[0, 1], [4, 1]])), ("ReLU6", (), (5,)), ("CELU", (0.7,), (5,)), ("Hardsigmoid", (), (5,)),
    ("RMSNorm", (4,), (2, 4)), ("RMSNorm", (4, 1e-3, False), (2, 4)), ("InstanceNorm1d", (3, 1e-3, 0.2, True, True), (3, 5)), ("BatchNorm1d", (4, 1e-3, 0.1, False, False), (6, 4)),
    ("BatchNorm3d", (2,), (2, 2, 3, 3, 3)), ("MaxPool1d", (2, None, 0, 1, False, True), (2, 3, 7)), ("MaxPool3d", (2,), (1, 2, 4, 4, 4)),
    ("AvgPool2d", ((2, 3), (1, 2), (1, 0), True, False, 5), (1, 2, 6, 6)), ("AvgPool3d", (2,), (1, 2, 4, 4, 4)), ("AdaptiveAvgPool1d", (2,), (2, 3, 7)),
    ("AdaptiveAvgPool2d", (1,), (2, 3, 7, 5)), ("AdaptiveAvgPool2d", ((None, None),), (3, 7, 5)), ("AdaptiveAvgPool3d", ((1, None, 2),), (2, 3, 4, 5, 6)),
    ("AdaptiveMaxPool1d", (2,), (2, 3, 7)), ("Upsample", (None, 2), (1, 2, 3, 3)), ("Upsample", (None, 2), (1, 2, 3, 3, 2)), ("ZeroPad1d", (1,), (2, 3, 4)),
    ("ZeroPad3d", (1,), (1, 2, 3, 3, 3)), ("CircularPad1d", (1,), (2, 3, 4)), ("CircularPad2d", ((1, 0, 2, 1),), (2, 3, 4, 4)), ("CircularPad3d", (1,), (1, 2, 3, 3, 3)),
    ("LPPool3d", (2, 2), (1, 2, 4, 4, 4)), ("Conv2d", (2, 4, 3, 1, 2, 1, 1, False, "circular"), (1, 2, 5, 5)), ("Dropout", (0.4,), (6, 5)), ("Dropout1d", (0.4,), (5, 4)),
    *((kind, arguments, (4, 5)) for kind, arguments in (
        ("ReLU", (True,)), ("ReLU6", (True,)), ("SiLU", (True,)), ("Mish", (True,)), ("SELU", (True,)), ("Hardswish", (True,)), ("Hardsigmoid", (True,)), ("ELU", (0.5, True)),
        ("CELU", (0.5, True)), ("LeakyReLU", (0.2, True)), ("Hardtanh", (-0.5, 0.5, True)), ("Threshold", (0.1, 20.0, True)), ("RReLU", (0.2, 0.5, True)), ("Dropout", (0.3, True)),
        ("AlphaDropout", (0.3, True)))),
]
ALL = [*test_nn.LAYERS, *test_nn_layers.LAYERS, *test_nn_layers.RANDOM, *ROWS]
NEWER = {"RMSNorm", "ZeroPad1d", "ZeroPad3d"}  # than the PyTorch beside this


def tensors(shapes) -> list:
    return [shape if isinstance(shape, torch.Tensor) else torch.randn(shape) for shape in shapes]


@pytest.mark.parametrize("name,arguments,shapes", [(row[0], row[1], row[2:]) for row in ALL], ids=lambda v: str(v))
def test_layers(name, arguments, shapes, tmp_path):
    torch.manual_seed(0)
    layer, inputs = getattr(nn, name)(*arguments), tensors(shapes)
    scripted = engine.jit.script(layer)
    scripted.train()
    for is_training in (True, False):
        layer.train(is_training), scripted.train(is_training)
        own, others = [from_torch(x) for x in inputs], [from_torch(x) for x in inputs]
        engine.manual_seed(3)
        want = layer(*own)
        engine.manual_seed(3)
        same(scripted(*others).detach(), to_torch(want.detach()))
        for mine, theirs in zip(own, others):  # in-place layers write their input
            same(theirs, to_torch(mine))
    for key, value in layer.state_dict().items():
        same(scripted.state_dict()[key], to_torch(value))
    scripted.save(tmp_path / "layer.pt")
    if name not in NEWER:
        found = torch.jit.load(str(tmp_path / "layer.pt"))(*[x.clone() for x in inputs])
        torch.testing.assert_close(found.detach(), to_torch(want.detach()), rtol=1e-4, atol=1e-5)


def test_every_layer_has_a_row():
    containers = {"Sequential", "ModuleList", "ModuleDict"}  # test_tracing.py
    assert set(_LAYERS) - {row[0] for row in ALL} - containers == set()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((2, None)), nn.Dropout2d(0.1))
        self.heads = nn.ModuleDict({"main": nn.Linear(8, 4), "rest": nn.Linear(8, 2)})

    def forward(self, x):
        pooled = self.features(x).flatten(2).mean(2)
        return self.heads["main"](pooled), self.heads["rest"](pooled)


def test_a_classifier(tmp_path):
    net, x = Classifier().eval(), engine.randn(2, 3, 9, 12)
    scripted = engine.jit.script(net)
    scripted.save(tmp_path / "net.pt")
    for mine, got, theirs in zip(net(x), scripted(x), torch.jit.load(str(tmp_path / "net.pt"))(to_torch(x))):
        same(got.detach(), to_torch(mine.detach()))
        torch.testing.assert_close(theirs.detach(), to_torch(mine.detach()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name,arguments,shape,message", [
    ("Softmax2d", (), (2, 3), "Softmax2d: expected a tensor of 3 or 4"), ("InstanceNorm1d", (3,), (2,), "InstanceNorm1d: expected a tensor of 2 or 3"),
    ("Dropout1d", (0.5,), (2,), "Dropout1d: expected"), ("LocalResponseNorm", (3,), (2, 2), "LocalResponseNorm: expected"),
    ("Upsample", (None, 2, "bilinear"), (2, 2, 2), "Upsample: expected a tensor of 4"),
], ids=str)
def test_ranks_are_checked(name, arguments, shape, message):
    scripted = engine.jit.script(getattr(nn, name)(*arguments))
    with pytest.raises(engine.Error, match=message):
        scripted(engine.randn(*shape))


@pytest.mark.parametrize("layer", [
    nn.MaxPool2d(2, return_indices=True), nn.AdaptiveMaxPool2d(2, return_indices=True), nn.Upsample(None, 2, recompute_scale_factor=True), nn.Upsample(None, 2, "area"),
    nn.Hardtanh(0.0, float("inf")), nn.Dropout1d(0.5, True), nn.LSTM(2, 3), nn.Embedding(3, 2, max_norm=1.0),
], ids=lambda layer: type(layer).__name__)
def test_others_are_refused_by_name(layer):
    with pytest.raises(engine.Error, match=f"{type(layer).__name__} has no TorchScript here"):
        engine.jit.script(layer)
