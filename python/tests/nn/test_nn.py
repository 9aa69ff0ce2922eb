import pytest
import torch
from torch.nn import functional as TF

from support import from_torch, same, to_torch
from tensord import engine
from tensord.engine import nn, optim
from tensord.engine.nn import functional as F

LAYERS = [
    ("Linear", (4, 3), (5, 4)), ("Linear", (4, 3, False), (2, 5, 4)), ("Bilinear", (3, 4, 2), (5, 3), (5, 4)), ("Conv1d", (3, 4, 3), (2, 3, 8)),
    ("Conv2d", (3, 4, 3, 2, 1), (2, 3, 8, 8)), ("Conv2d", (4, 4, 3, 1, "same", 1, 2, True, "reflect"), (2, 4, 6, 6)), ("Conv3d", (2, 3, 2), (1, 2, 4, 4, 4)),
    ("ConvTranspose1d", (3, 4, 3, 2, 1, 1), (2, 3, 5)), ("ConvTranspose2d", (3, 4, 3, 2), (2, 3, 5, 5)), ("BatchNorm1d", (4,), (6, 4)), ("BatchNorm2d", (3,), (2, 3, 4, 4)),
    ("BatchNorm2d", (3, 1e-3, None), (2, 3, 4, 4)), ("InstanceNorm2d", (3,), (2, 3, 4, 4)), ("LayerNorm", ((4, 5),), (2, 4, 5)), ("LayerNorm", (5, 1e-3, False), (2, 5)),
    ("GroupNorm", (2, 4), (2, 4, 3, 3)), ("MaxPool2d", (2,), (1, 2, 6, 6)), ("MaxPool2d", (3, 2, 1), (1, 2, 6, 6)), ("AvgPool2d", (2,), (1, 2, 6, 6)),
    ("AvgPool1d", (3, 1, 1), (1, 2, 6)), ("AdaptiveAvgPool2d", ((2, None),), (1, 2, 6, 5)), ("AdaptiveMaxPool2d", (2,), (1, 2, 6, 6)), ("Flatten", (), (2, 3, 4)),
    ("Unflatten", (1, (2, 3)), (2, 6)), ("ReLU", (), (5,)), ("GELU", ("tanh",), (5,)), ("ELU", (0.5,), (5,)), ("LeakyReLU", (0.2,), (5,)), ("Hardtanh", (-0.5, 0.5), (5,)),
    ("Softmax", (1,), (2, 3)), ("LogSoftmax", (-1,), (2, 3)), ("Sigmoid", (), (5,)), ("Tanh", (), (5,)), ("Softplus", (2, 10), (5,)), ("SiLU", (), (5,)), ("Mish", (), (5,)),
    ("PReLU", (3,), (2, 3)), ("GLU", (), (2, 4)), ("Hardswish", (), (5,)), ("SELU", (), (5,)), ("LogSigmoid", (), (5,)), ("Softsign", (), (5,)), ("Threshold", (0.1, 20.0), (5,)),
]


@pytest.mark.parametrize("name,arguments,shapes", [(row[0], row[1], row[2:]) for row in LAYERS], ids=lambda v: str(v))
def test_layers(name, arguments, shapes):
    torch.manual_seed(1)
    engine.manual_seed(1)
    theirs, mine = getattr(torch.nn, name)(*arguments), getattr(nn, name)(*arguments)
    state = theirs.state_dict()
    assert list(mine.state_dict()) == list(state)
    for key, value in mine.state_dict().items():
        same(value, state[key])  # the same random numbers
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    own = [from_torch(x) for x in inputs]
    want, got = theirs(*inputs), mine(*own)
    same(got, want, rtol=1e-4, atol=1e-5)
    weights = torch.rand_like(want)
    (want * weights).sum().backward()
    (got * from_torch(weights)).sum().backward()
    for x, y in zip([*inputs, *theirs.parameters()], [*own, *mine.parameters()]):
        same(y.grad, x.grad, rtol=1e-3, atol=1e-4)
    for key, value in mine.state_dict().items():
        same(value, theirs.state_dict()[key])
    theirs.eval(), mine.eval()
    same(mine(*own), theirs(*inputs), rtol=1e-4, atol=1e-5)


LOSSES = [
    ("MSELoss", {}, "values"), ("L1Loss", {"reduction": "sum"}, "values"), ("SmoothL1Loss", {"beta": 0.5}, "values"), ("HuberLoss", {"delta": 0.5}, "values"),
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, "classes"), ("CrossEntropyLoss", {"weight": torch.rand(4), "ignore_index": 1}, "classes"),
    ("NLLLoss", {"reduction": "none"}, "classes"), ("BCEWithLogitsLoss", {"pos_weight": torch.rand(4)}, "parts"), ("BCELoss", {}, "probabilities"),
    ("KLDivLoss", {"reduction": "batchmean"}, "parts"), ("SoftMarginLoss", {}, "signs"), ("HingeEmbeddingLoss", {}, "signs"), ("PoissonNLLLoss", {}, "parts"),
    ("MultiMarginLoss", {}, "classes"),
]


@pytest.mark.parametrize("name,options,kind", LOSSES, ids=str)
def test_losses(name, options, kind):
    torch.manual_seed(2)
    x = torch.randn(5, 4)
    x = (x.sigmoid() if kind == "probabilities" else x).requires_grad_()
    target = {"values": torch.randn(5, 4), "classes": torch.tensor([0, 3, 1, 2, 0]), "parts": torch.rand(5, 4), "probabilities": torch.rand(5, 4),
              "signs": torch.randint(0, 2, (5, 4)) * 2.0 - 1}[kind]
    mine = {key: from_torch(value) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    y = from_torch(x)
    want, got = getattr(torch.nn, name)(**options)(x, target), getattr(nn, name)(**mine)(y, from_torch(target))
    same(got, want)
    want.sum().backward()
    got.sum().backward()
    same(y.grad, x.grad)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.blocks = nn.Sequential(nn.ReLU(), nn.Linear(8, 8, bias=False))
        self.scale = nn.Parameter(engine.ones(1))
        self.shared = self.first
        self.register_buffer("count", engine.tensor(0))
        self.register_buffer("hidden", engine.zeros(2), persistent=False)

    def forward(self, x):
        return self.blocks(self.first(x)) * self.scale


def test_modules():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["scale", "first.weight", "first.bias", "blocks.1.weight"]
    assert list(net.state_dict()) == ["scale", "count", "first.weight", "first.bias", "blocks.1.weight", "shared.weight", "shared.bias"]
    assert [name for name, _ in net.named_modules()] == ["", "first", "blocks", "blocks.0", "blocks.1"]
    assert net.training and not net.eval().training and not net.blocks[0].training
    net.count = engine.tensor(5)
    assert net.state_dict()["count"].item() == 5
    other = Net()
    other.load_state_dict(net.state_dict())
    x = engine.rand(2, 4)
    assert (net(x) == other(x)).all()
    with pytest.raises(RuntimeError, match="missing.*scale"):
        other.load_state_dict({})
    with pytest.raises(RuntimeError, match="expected shape"):
        other.load_state_dict({**net.state_dict(), "scale": engine.ones(7)})
    assert other.load_state_dict({"extra": x}, strict=False).unexpected_keys == ["extra"]
    with pytest.raises(TypeError, match="was a Parameter"):
        net.scale = engine.ones(1)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        net.nothing
    net.scale = None
    assert "scale" not in net.state_dict()
    assert "Linear(in_features=4, out_features=8, bias=True)" in repr(net)
    assert net.double().first.weight.dtype is engine.float64 and net.count.dtype is engine.int64


def test_hooks():
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    calls = []
    handle = net[0].register_forward_hook(lambda module, args, result: calls.append("forward") or result * 0)
    pre = net[1].register_forward_pre_hook(lambda module, args: calls.append("pre"))
    net[0].register_full_backward_hook(lambda module, grad_in, grad_out: calls.append((grad_in[0].shape, grad_out[0].shape)))
    x = engine.rand(4, 3, requires_grad=True)
    y = net(x)
    assert calls == ["forward", "pre"] and (y == net[1].bias).all()
    handle.remove(), pre.remove()
    net(x).sum().backward()
    assert calls[2:] == [((4, 3), (4, 3))]
    net[0].register_full_backward_hook(lambda module, grad_in, grad_out: (grad_in[0] * 0,))
    x.grad = None
    net(x).sum().backward()
    assert (x.grad == 0).all()


OPTIMIZERS = [("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}), ("SGD", {"lr": 0.1, "weight_decay": 0.01}), ("Adam", {"lr": 0.01, "amsgrad": True}),
              ("AdamW", {"lr": 0.01}), ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5}), ("Adagrad", {"lr": 0.1})]


@pytest.mark.parametrize("name,options", OPTIMIZERS, ids=str)
def test_training_is_pytorchs(name, options):
    """The same losses from the same weights, with a schedule, and a state from which training continues."""
    torch.manual_seed(0)
    data, labels = torch.randn(32, 6), torch.randint(0, 3, (32,))
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    mine = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
    mine.load_state_dict({key: from_torch(value) for key, value in theirs.state_dict().items()})
    first, second = getattr(torch.optim, name)(theirs.parameters(), **options), getattr(optim, name)(mine.parameters(), **options)
    schedules = torch.optim.lr_scheduler.StepLR(first, 5, 0.5), optim.lr_scheduler.StepLR(second, 5, 0.5)
    own_data, own_labels = from_torch(data), from_torch(labels)
    for step in range(12):
        first.zero_grad(), second.zero_grad()
        want, got = TF.cross_entropy(theirs(data), labels), F.cross_entropy(mine(own_data), own_labels)
        want.backward(), got.backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5), nn.utils.clip_grad_norm_(mine.parameters(), 0.5)
        first.step(), second.step()
        for schedule in schedules:
            schedule.step()
        assert got.item() == pytest.approx(want.item(), rel=1e-5)
        if step == 6:
            state, place = second.state_dict(), schedules[1].state_dict()
            second = getattr(optim, name)(mine.parameters(), **options)
            schedules = schedules[0], optim.lr_scheduler.StepLR(second, 5, 0.5)
            second.load_state_dict(state)
            schedules[1].load_state_dict(place)
    assert second.param_groups[0]["lr"] == pytest.approx(first.param_groups[0]["lr"])


def test_groups():
    a, b = nn.Parameter(engine.ones(1)), nn.Parameter(engine.ones(1))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    assert a.item() == pytest.approx(0.9) and b.item() == pytest.approx(0.5)
    for group in optimizer.param_groups:
        group["lr"] = 1.0
    optimizer.step()
    assert a.item() == pytest.approx(-0.1)
    with pytest.raises(KeyError):
        optimizer.param_groups[0]["nothing"] = 1
    with pytest.raises(ValueError):
        optim.SGD([a], lr=-1)
    with pytest.raises(ValueError, match="empty"):
        optim.SGD([])


def test_lbfgs():
    x = nn.Parameter(engine.tensor([3.0, -2.0]))
    optimizer = optim.LBFGS([x], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((x - engine.tensor([1.0, 2.0])) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    same(x.detach(), torch.tensor([1.0, 2.0]), atol=1e-4)
