"""device= and dtype= of layers compared with PyTorch's: every tensor of a layer, with the same random numbers."""

import inspect
import warnings

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nn
from tensord.engine.nn import utils

LAYERS = [
    ("Linear", (4, 3)), ("Linear", (4, 3, False)), ("Bilinear", (2, 3, 4)), ("Conv1d", (3, 4, 3)), ("Conv2d", (4, 4, 3, 2, 1, 1, 2)), ("Conv3d", (1, 2, 2)),
    ("ConvTranspose1d", (3, 4, 3)), ("ConvTranspose2d", (4, 2, 3, 2, 1, 1, 2, False, 2)), ("ConvTranspose3d", (1, 2, 2)),
    ("BatchNorm1d", (4,)), ("BatchNorm2d", (3, 1e-3, None)), ("BatchNorm3d", (2, 1e-5, 0.1, False)), ("SyncBatchNorm", (3,)),
    ("InstanceNorm1d", (3, 1e-5, 0.1, True, True)), ("InstanceNorm2d", (3,)), ("InstanceNorm3d", (2, 1e-5, 0.2, True)), ("LayerNorm", ((4, 5),)),
    ("GroupNorm", (2, 4)), ("Embedding", (5, 3)), ("Embedding", (5, 3, -2)), ("EmbeddingBag", (5, 3)), ("PReLU", (3,)), ("RNN", (3, 4, 2)),
    ("RNN", (3, 4, 1, "relu")), ("LSTM", (3, 4, 1, True, False, 0.0, True, 2)), ("GRU", (3, 4, 2, False)), ("RNNCell", (3, 4)), ("LSTMCell", (3, 4)),
    ("GRUCell", (3, 4, False)), ("MultiheadAttention", (4, 2)), ("MultiheadAttention", (4, 2, 0.0, True, True, False, 3, 5)),
    ("TransformerEncoderLayer", (4, 2, 8)), ("TransformerDecoderLayer", (4, 2, 8)), ("Transformer", (4, 2, 1, 1, 8)),
    ("AdaptiveLogSoftmaxWithLoss", (8, 10, [3, 6])),
]


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name,arguments", LAYERS, ids=str)
def test_dtypes(name, arguments, dtype):
    torch.manual_seed(3), engine.manual_seed(3)
    options = [{"device": "cpu", "dtype": getattr(module, dtype)} for module in (torch, engine)]
    if name in ("RNN", "LSTM", "GRU") and dtype == "float16" or name == "RNN" and "relu" in arguments:  # 1.13 only accepts them as keywords
        arguments, more = arguments[:3] if name == "RNN" else arguments, {"nonlinearity": "relu"} if "relu" in arguments else {}
        options = [{**given, **more} for given in options]
    try:
        theirs = getattr(torch.nn, name)(*arguments, **options[0])
    except RuntimeError as error:
        pytest.skip(f"PyTorch: {error}")
    mine = getattr(nn, name)(*arguments, **options[1])
    want, got = theirs.state_dict(), mine.state_dict()
    assert list(got) == list(want)
    for key, value in got.items():
        # 16-bit values equal those of 1.13 up to rounding.
        same(value, want[key], **{"float64": {"rtol": 1e-14, "atol": 1e-15}, "float16": {"rtol": 4e-3, "atol": 3e-3}, "bfloat16": {"rtol": 3e-2,
            "atol": 3e-2}}[dtype])
    assert [p.requires_grad for p in mine.parameters()] == [p.requires_grad for p in theirs.parameters()]
    assert nn._placement._place.dtype is None and nn._placement._place.device is None
    assert {p.dtype for p in getattr(nn, name)(*arguments).parameters()} <= {engine.float32}


def test_every_layer_that_takes_them_in_pytorch():
    def takes(kind):
        names = list(inspect.signature(kind.__init__).parameters)
        return "dtype" in names and "device" in names

    layers = [name for name in dir(torch.nn) if isinstance(getattr(torch.nn, name), type) and issubclass(getattr(torch.nn, name), torch.nn.Module)]
    wanted = [name for name in layers if takes(getattr(torch.nn, name)) and name not in ("Module",)]
    assert len(wanted) > 40 and [name for name in wanted if not takes(getattr(nn, name))] == []
    for name in wanted:  # at the same positions, unless newer versions have one more before them
        own, theirs = ([p for p in inspect.signature(getattr(module, name).__init__).parameters if p not in ("bias", "_freeze")] for module in (nn, torch.nn))
        assert own == theirs, name


def test_by_position_and_inside():
    assert nn.Linear(2, 3, True, None, engine.float64).bias.dtype is engine.float64
    assert nn.Linear(2, 3, True, "cpu").bias.dtype is engine.float32

    class Net(nn.Linear):
        def __init__(self):
            super().__init__(2, 3, dtype=engine.float64)
            self.other = nn.Linear(3, 2)

    assert [p.dtype for p in Net().parameters()] == [engine.float64] * 2 + [engine.float32] * 2
    layer = nn.LayerNorm(3, bias=False)
    assert list(layer.state_dict()) == ["weight"] and repr(layer) == "LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=False)"
    assert [name for name in nn.TransformerEncoderLayer(4, 2, 8, bias=False).state_dict() if "bias" in name] == []
    with pytest.raises(RuntimeError, match="(?i)floating"):
        nn.Linear(2, 3, dtype=engine.int64)
    with pytest.raises(ValueError, match="in1_features"):
        nn.Bilinear(0, 1, 1)
    with pytest.raises((ValueError, RuntimeError), match="nothing"):
        nn.Linear(2, 3, device="nothing")
    assert nn.Linear(2, 3).weight.dtype is engine.float32  # also after errors
    torch.manual_seed(1), engine.manual_seed(1)
    same(nn.Linear(2, 3, dtype=engine.complex64).weight, torch.nn.Linear(2, 3, dtype=torch.complex64).weight)


def test_skipped_first_values():
    made = utils.skip_init(nn.Linear, 3, 2, dtype=engine.float64)
    assert made.weight.dtype is engine.float64 and tuple(made.weight.shape) == (2, 3) and made.weight.requires_grad
    with pytest.raises(RuntimeError, match="device"):
        utils.skip_init(nn.ReLU)


SOURCES = [
    "Conv1d(2, 2, 3, padding='same', padding_mode='circular', groups=2, dilation=2, bias=False)", "ConvTranspose2d(2, 2, 3, 2, 1, 1)", "Bilinear(1, 2, 3)",
    "Embedding(3, 4, 1, 2.0, 3, True, True)", "MaxPool1d(2)", "MaxPool2d((2, 3), None, (1, 1))", "AvgPool2d(2)", "AdaptiveAvgPool2d((2, None))",
    "Flatten()", "Unflatten(1, (2, 3))", "BatchNorm1d(3)", "GroupNorm(1, 2, affine=False)", "InstanceNorm1d(3)", "CrossMapLRN2d(3)", "EmbeddingBag(2, 2)",
    "Conv2d(1, 1, 1, padding='valid')", "Conv2d(1, 1, 1, padding=(0, 0), padding_mode='reflect')", "PReLU()",
]


@pytest.mark.parametrize("source", SOURCES)
def test_sources(source):
    assert repr(eval("nn." + source)) == repr(eval("torch.nn." + source))


ERRORS = ["Conv2d(3, 4, 3, groups=2)", "Conv2d(2, 3, 3, groups=2)", "Conv2d(2, 2, 3, groups=0)", "Conv2d(1, 1, 3, padding='most')",
    "ConvTranspose1d(1, 1, 3, padding_mode='reflect')",
          "Conv2d(1, 1, 3, 2, 'same')", "Conv1d(1, 1, 3, padding_mode='some')", "GroupNorm(2, 3)", "Embedding.from_pretrained(ones(3))"]


@pytest.mark.parametrize("source", ERRORS)
def test_refused(source):
    with pytest.raises((ValueError, AssertionError, RuntimeError)):
        eval("torch.nn." + source.replace("ones", "torch.ones"))
    with pytest.raises(ValueError):
        eval("nn." + source.replace("ones", "engine.ones"))


@pytest.mark.parametrize("older", [{"size_average": False}, {"reduce": False}, {"size_average": True}, {"size_average": False, "reduce": True}], ids=str)
def test_older_reductions(older):
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "BCEWithLogitsLoss", "SoftMarginLoss", "KLDivLoss"):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            want = getattr(torch.nn, name)(**older)
            own = getattr(nn, name)(**older)
        assert str(seen[0].message).split(" will")[0] == str(seen[-1].message).split(" will")[0] and seen[-1].filename == __file__
        same(own(from_torch(x), from_torch(y)), want(x, y))
    weight = torch.rand(3)
    with pytest.warns(UserWarning):
        loss = nn.CrossEntropyLoss(from_torch(weight), False, 1)
    assert loss.ignore_index == 1 and loss.reduction == "sum"


@pytest.mark.parametrize("arguments", [(3,), (5, 0.3, 0.6, 2.0), (1, 0.5)], ids=str)
def test_cross_map(arguments):
    x = torch.randn(2, 6, 3, 4)
    y = from_torch(x)
    same(nn.CrossMapLRN2d(*arguments)(y), torch.nn.CrossMapLRN2d(*arguments)(x))
    assert engine.autograd.gradcheck(nn.CrossMapLRN2d(*arguments), engine.randn(1, 4, 1, 2, dtype=engine.float64, requires_grad=True))  # PyTorch's is not differentiable twice
    same(nn.CrossMapLRN2d(4, 0.4)(y), torch.nn.CrossMapLRN2d(4, 0.4)(x))
    with pytest.raises(ValueError, match="4D"):
        nn.CrossMapLRN2d(3)(engine.ones(2, 3))


def test_newer_layers():
    x = engine.randn(2, 3, 4, dtype=engine.float64)
    layer = nn.RMSNorm((3, 4), dtype=engine.float64)
    want = x / (x.square().mean((1, 2), True) + engine.finfo(engine.float64).eps).sqrt()
    assert engine.allclose(layer(x), want) and repr(layer) == "RMSNorm((3, 4), eps=None, elementwise_affine=True)" and list(layer.state_dict()) == ["weight"]
    y = engine.rand(1, 2, 4, 4, 4)
    assert engine.allclose(nn.LPPool3d(1, 2)(y), nn.AvgPool3d(2)(y) * 8)
    table = engine.rand(4, 3)
    found = nn.Embedding.from_pretrained(table)
    assert not found.weight.requires_grad and found.weight.data_ptr() == table.data_ptr() and nn.Embedding.from_pretrained(table, False).weight.requires_grad
