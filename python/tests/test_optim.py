"""Optimizers and schedules written in Python, compared with PyTorch's."""

import pytest
import torch

from support import from_torch, same
from tensord import engine
from tensord.engine import nn, optim

OPTIMIZERS = [
    ("Adadelta", {}), ("Adadelta", {"lr": 0.5, "rho": 0.8, "weight_decay": 0.1}), ("Adadelta", {"maximize": True}),
    ("Adamax", {}), ("Adamax", {"lr": 0.1, "betas": (0.5, 0.7), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}), ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "momentum_decay": 0.1}), ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.99), "weight_decay": 0.1}),
    ("Rprop", {}), ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.3)}), ("Rprop", {"maximize": True}),
    ("ASGD", {}), ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 5, "weight_decay": 0.1}), ("ASGD", {"t0": 3, "maximize": True}),
]


def theirs_of(name: str, params, **options):
    """The two implementations of PyTorch 1.13's NAdam differ in the second momentum factor; newer versions use that of
    the one for lists."""
    return getattr(torch.optim, name)(params, **options, **({"foreach": True} if name == "NAdam" else {}))


def numbers(state: dict) -> dict:
    return {name: float(value) if not hasattr(value, "shape") or tuple(value.shape) == () else value for name, value in state.items()}


@pytest.mark.parametrize("name,options", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_twenty_steps(name, options, dtype):
    torch.manual_seed(3)
    theirs = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((3, 4), (5,), ())]
    mine = [from_torch(x) for x in theirs]
    first, second = theirs_of(name, theirs, **options), getattr(optim, name)(mine, **options)
    for step in range(20):
        for i, (x, y) in enumerate(zip(theirs, mine)):
            # The second starts later, the third pauses for a while.
            if (i == 1 and step < 3) or (i == 2 and 5 < step < 9):
                x.grad = y.grad = None
            else:
                x.grad = torch.randn_like(x)
                y.grad = from_torch(x.grad)
        first.step(), second.step()
        if step == 11:
            state = second.state_dict()
            second = getattr(optim, name)(mine, lr=123.0)
            second.load_state_dict(state)
            assert second.param_groups[0]["lr"] == first.param_groups[0]["lr"]
        for x, y in zip(theirs, mine):
            same(y, x, rtol=1e-5, atol=1e-6)
    want, got = first.state_dict()["state"], second.state_dict()["state"]
    assert list(got) == list(want) or sorted(got) == sorted(want)
    for key, kept in want.items():
        own = numbers(got[key])
        assert sorted(own) == sorted(kept)
        for part, value in numbers(kept).items():
            if isinstance(value, float):
                assert own[part] == pytest.approx(value, rel=1e-5)
            else:
                same(own[part], value)


@pytest.mark.parametrize("name", ["NAdam", "RAdam"])
def test_newer_options(name):
    """Decoupled weight decay shrinks the parameter first; maximizing is minimizing the negated loss."""
    start = torch.randn(6)
    decoupled, plain, negated = (nn.Parameter(from_torch(start)) for _ in range(3))
    kind = getattr(optim, name)
    makes = [(decoupled, {"weight_decay": 0.1, "decoupled_weight_decay": True}), (plain, {}), (negated, {"maximize": True})]
    steppers = [kind([param], lr=0.5, **options) for param, options in makes]
    for _ in range(8):
        grad = engine.randn(6)
        decoupled.grad, plain.grad, negated.grad = grad, grad, -grad
        with engine.no_grad():
            expected = decoupled * (1 - 0.5 * 0.1)
            plain_before = plain.detach().clone()
        for stepper in steppers:
            stepper.step()
        assert engine.allclose(decoupled.detach(), expected + (plain - plain_before), atol=1e-6)
        assert engine.allclose(negated, plain)


WRONG = [("Adadelta", {"rho": 2}, "rho"), ("Adamax", {"betas": (0.5, 1.0)}, "betas"), ("NAdam", {"momentum_decay": -1}, "momentum_decay"),
         ("RAdam", {"eps": -1}, "eps"),
         ("Rprop", {"etas": (1.5, 2)}, "etas"), ("ASGD", {"weight_decay": -1}, "weight_decay"), ("Adadelta", {"lr": -1}, "lr")]


@pytest.mark.parametrize("name,options,words", WRONG, ids=str)
def test_wrong_options(name, options, words):
    with pytest.raises(ValueError):
        getattr(torch.optim, name)([torch.ones(1, requires_grad=True)], **options)
    with pytest.raises(ValueError, match=words):
        getattr(optim, name)([engine.ones(1, requires_grad=True)], **options)


def test_wrong_uses():
    with pytest.raises(ValueError, match="empty"):
        optim.Adamax([])
    x = engine.ones(2, 2, requires_grad=True)
    optimizer = optim.Adamax([x])
    with pytest.raises(ValueError, match="groups"):
        optimizer.load_state_dict(optim.Adamax([x.detach().clone().requires_grad_(), engine.ones(1, requires_grad=True)]).state_dict())
    with pytest.raises(NotImplementedError, match="master"):
        optimizer.use_master_weights()
    with pytest.raises(ValueError):
        optimizer.add_param_group({"params": [x]})
    assert len(optimizer.param_groups) == 1
    table = nn.Parameter(engine.randn(4, 2))
    optimizer = optim.RAdam([table])
    nn.functional.embedding(engine.tensor([1]), table, sparse=True).sum().backward()
    with pytest.raises(NotImplementedError, match="sparse"):
        optimizer.step()
    with pytest.raises(TypeError, match="not an Optimizer"):
        optim.lr_scheduler.StepLR(table, 2)


def test_groups_and_closure():
    a, b = engine.ones(2, requires_grad=True), engine.ones(2, requires_grad=True)
    optimizer = optim.Adadelta([{"params": [a], "lr": 0.5}], lr=1.0)
    optimizer.add_param_group({"params": b, "rho": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1.0]
    assert [group["rho"] for group in optimizer.param_groups] == [0.9, 0.5]

    def closure():
        optimizer.zero_grad()
        loss = (a * b).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2
    assert (a < 1).all() and (b < 1).all()
    native = optim.SGD([a], lr=0.3, momentum=0.5)
    native.add_param_group({"params": [b], "momentum": 0.1})
    assert [(group["lr"], group["momentum"]) for group in native.param_groups] == [(0.3, 0.5), (0.3, 0.1)]
    optimizer.param_groups[1]["rho"] = 0.7
    assert optimizer.param_groups[1]["rho"] == 0.7 and "rho" in repr(optimizer)


class OfMyOwn(optim.Optimizer):
    def __init__(self, params, lr=0.1, momentum=0.5):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    def step(self, closure=None):
        with engine.no_grad():
            for group in self.param_groups:
                for param in group["params"]:
                    velocity = self.state[param].setdefault("velocity", engine.zeros_like(param))
                    velocity.mul_(group["momentum"]).add_(param.grad)
                    param.add_(velocity, alpha=-group["lr"])


def test_an_optimizer_of_ones_own():
    x, y = torch.ones(3, requires_grad=True), engine.ones(3, requires_grad=True)
    first, second = torch.optim.SGD([x], lr=0.1, momentum=0.5), OfMyOwn([y])
    one = torch.optim.lr_scheduler.CyclicLR(first, 0.1, 1.0, 3), torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
    two = optim.lr_scheduler.CyclicLR(second, 0.1, 1.0, 3), optim.lr_scheduler.ExponentialLR(second, 0.9)
    for _ in range(10):
        (x**2).sum().backward(), (y**2).sum().backward()
        first.step(), second.step()
        first.zero_grad(), second.zero_grad()
        for schedule in (*one, *two):
            schedule.step()
    same(y, x)


def schedules(package):
    """By name, each over an SGD with two groups."""
    s = package.lr_scheduler
    return {
        "multiplicative": lambda o: s.MultiplicativeLR(o, lambda epoch: 0.9),
        "multiplicative lists": lambda o: s.MultiplicativeLR(o, [lambda epoch: 0.9, lambda epoch: 1 / epoch]),
        "lambdas": lambda o: s.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (1 + epoch)]),
        "cyclic": lambda o: s.CyclicLR(o, 0.1, 0.5, 4),
        "cyclic 2": lambda o: s.CyclicLR(o, [0.1, 0.2], [0.5, 1.0], 3, 2, "triangular2", base_momentum=[0.5, 0.6]),
        "cyclic range": lambda o: s.CyclicLR(o, 0.1, 0.5, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
        "cyclic own": lambda o: s.CyclicLR(o, 0.1, 0.5, 4, scale_fn=lambda x: 1 / (1 + x), scale_mode="iterations"),
        "chained": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
        "chained mixed": lambda o: s.ChainedScheduler([s.MultiplicativeLR(o, lambda epoch: 0.5), s.StepLR(o, 2, 0.9)]),
        "sequential": lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]),
        "sequential three": lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 4), s.CosineAnnealingLR(o, 5), s.StepLR(o, 2, 0.5)], [4, 9]),
        "sequential restarts": lambda o: s.SequentialLR(o, [s.LambdaLR(o, lambda e: 1 / (1 + e)), s.CosineAnnealingWarmRestarts(o, 3, 2)], [5]),
        "sequential mixed": lambda o: s.SequentialLR(o, [s.PolynomialLR(o, 4), s.MultiplicativeLR(o, lambda epoch: 0.5), s.MultiStepLR(o, [2])], [3, 8]),
    }


@pytest.mark.parametrize("name", list(schedules(optim)))
def test_schedules(name):
    def setup(package, make):
        a, b = (make(1, requires_grad=True) for _ in range(2))
        optimizer = package.SGD([{"params": [a]}, {"params": [b], "lr": 0.25}], lr=1.0, momentum=0.9)
        return optimizer, schedules(package)[name](optimizer)

    (first, one), (second, two) = setup(torch.optim, torch.ones), setup(optim, engine.ones)
    for step in range(18):
        if step == 7:
            rates = [dict(group) for group in second.param_groups]
            state, before = two.state_dict(), second.state_dict()
            second, two = setup(optim, engine.ones)
            second.load_state_dict(before)
            two.load_state_dict(state)
            assert [group["lr"] for group in second.param_groups] == [group["lr"] for group in rates]
        for x, y in zip(first.param_groups, second.param_groups):
            assert y["lr"] == pytest.approx(x["lr"]) and y["momentum"] == pytest.approx(x["momentum"]), step
        assert two.get_last_lr() == pytest.approx(one.get_last_lr()) and two.last_epoch == one.last_epoch if hasattr(one, "last_epoch") else True
        first.step(), one.step(), two.step()


def test_schedules_over_the_written():
    """The core's schedules set rates, and OneCycleLR betas, of optimizers in Python."""
    x, y = torch.ones(2, requires_grad=True), engine.ones(2, requires_grad=True)
    first, second = theirs_of("NAdam", [x]), optim.NAdam([y])
    one, two = torch.optim.lr_scheduler.OneCycleLR(first, 0.5, 10), optim.lr_scheduler.OneCycleLR(second, 0.5, 10)
    for _ in range(9):
        (x**3).sum().backward(), (y**3).sum().backward()
        first.step(), second.step(), one.step(), two.step()
        assert second.param_groups[0]["betas"] == pytest.approx(first.param_groups[0]["betas"])
        same(y, x)
    plateau = optim.lr_scheduler.ReduceLROnPlateau(second, patience=0, factor=0.5)
    rate = second.param_groups[0]["lr"]
    for _ in range(2):
        plateau.step(engine.tensor(1.0))
    assert second.param_groups[0]["lr"] == pytest.approx(rate / 2) and plateau.get_last_lr() == [second.param_groups[0]["lr"]]


def test_wrong_schedules():
    optimizer = optim.SGD([engine.ones(1, requires_grad=True)], lr=0.1)
    other = optim.SGD([engine.ones(1, requires_grad=True)], lr=0.1)
    s = optim.lr_scheduler
    with pytest.raises(ValueError, match="same optimizer"):
        s.SequentialLR(optimizer, [s.StepLR(other, 2)], [])
    with pytest.raises(ValueError, match="milestone"):
        s.SequentialLR(optimizer, [s.StepLR(optimizer, 2)], [3])
    with pytest.raises(ValueError, match="same optimizer"):
        s.ChainedScheduler([s.StepLR(other, 2), s.StepLR(optimizer, 2)])
    with pytest.raises(ValueError, match="momentum"):
        s.CyclicLR(optim.Adadelta([engine.ones(1, requires_grad=True)]), 0.1, 1.0)
    with pytest.raises(ValueError, match="max_lr"):
        s.CyclicLR(optimizer, 0.1, [1.0, 2.0])
    with pytest.raises(ValueError, match="mode"):
        s.CyclicLR(optimizer, 0.1, 1.0, mode="square")
    with pytest.raises(ValueError, match="lr_lambdas"):
        s.MultiplicativeLR(optimizer, [abs, abs])
    with pytest.raises(KeyError, match="initial_lr"):
        s.StepLR(optim.SGD([engine.ones(1, requires_grad=True)], lr=0.1), 2, last_epoch=3)
    with pytest.raises(NotImplementedError, match="get_lr"):
        s.LRScheduler(optimizer)


RESUMED = [("StepLR", (2, 0.5)), ("MultiStepLR", ([5, 7], 0.5)), ("ExponentialLR", (0.9,)), ("LinearLR", (0.5, 1.0, 8)), ("PolynomialLR", (9, 2.0)),
           ("CosineAnnealingLR", (6, 0.1)),
           ("ConstantLR", (0.5, 6)), ("LambdaLR", (lambda epoch: 1 / (1 + epoch),)), ("MultiplicativeLR", (lambda epoch: 0.9,)),
           ("CosineAnnealingWarmRestarts", (6,)),
           ("CyclicLR", (0.1, 0.5, 3))]


@pytest.mark.parametrize("name,arguments", RESUMED, ids=str)
def test_resumed_schedules(name, arguments):
    """Recreated at an epoch with groups that know their initial rates."""
    rates = []
    for package, make in ((torch.optim, torch.ones), (optim, engine.ones)):
        kind = getattr(package.lr_scheduler, name)
        optimizer = package.SGD([make(1, requires_grad=True)], lr=1.0, momentum=0.9)
        schedule = kind(optimizer, *arguments)
        for _ in range(4):
            optimizer.step(), schedule.step()
        schedule = kind(optimizer, *arguments, last_epoch=schedule.last_epoch)
        found = [optimizer.param_groups[0]["lr"]]
        for _ in range(5):
            optimizer.step(), schedule.step()
            found += [optimizer.param_groups[0]["lr"], *schedule.get_last_lr()]
        rates.append(found)
    assert rates[1] == pytest.approx(rates[0])


def test_functions_with_a_state():
    class Falling:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, epoch):
            return self.factor**epoch

    make = lambda factor: optim.lr_scheduler.LambdaLR(optim.SGD([engine.ones(1, requires_grad=True)], lr=1.0), Falling(factor))  # noqa: E731
    first, second = make(0.5), make(0.1)
    first.step()
    second.load_state_dict(first.state_dict())
    first.step(), second.step()
    assert second.get_last_lr() == first.get_last_lr() == [0.25]
