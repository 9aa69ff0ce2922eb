"""Planned training steps: the same bits as interpreted ones, or interpreted with a reason."""

import dataclasses
import functools
import threading

import pytest
import torch
from tensord import engine
from tensord.engine import nn, optim

F = nn.functional
STEPS = 12


def images(number):
    generator = engine.Generator()
    generator.manual_seed(number)
    return engine.randn(4, 3, 8, 8, generator=generator), engine.randint(0, 5, (4,), generator=generator)


def rows(number):
    generator = engine.Generator()
    generator.manual_seed(number)
    return engine.randn(6, 8, generator=generator), engine.randint(0, 5, (6,), generator=generator)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.dropout = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Dropout(0.3)
        self.last = nn.Linear(64, 5)

    def forward(self, x):
        x = F.max_pool2d(self.norm(self.conv(x)).relu(), 2)
        return self.last(self.dropout(x.flatten(1)))


def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 5))


def train(make, batch, mode=None, make_loss=None, change=None, steps=STEPS):
    """Losses, the state dict and the step; interpreted without a mode. `change(number, model)` is called before a
    step."""
    engine.manual_seed(7)
    model = make()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = make_loss(model) if make_loss else lambda x, y: F.cross_entropy(model(x), y)
    step = engine.plan_step(loss_of, mode=mode) if mode else None
    losses = []
    for number in range(steps):
        if change:
            change(number, model)
        inputs = batch(number)
        optimizer.zero_grad()
        if step:
            loss = step(*inputs)
        else:
            loss = loss_of(*inputs)
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: tensor.clone() for name, tensor in model.state_dict().items()}, step


def equal(one, other):
    return one[0] == other[0] and all(engine.equal(tensor, other[1][name]) for name, tensor in one[1].items())


@pytest.mark.parametrize("make, batch", [(Net, images), (mlp, rows)])
def test_same_bits(make, batch):
    planned = train(make, batch, "exact")
    step = planned[2]
    assert equal(planned, train(make, batch))
    assert step.stats["planned"] == 6 and step.stats["interpreted"] == 6 and step.stats["identical"] == step.stats["checked"] == 4
    assert step.stats["calls"] > 5 and not step.stats["is_fused"] and "planned=6" in repr(step)


def test_fused():
    losses, _, step = train(Net, images, "fused")
    assert step.stats["is_fused"] and step.stats["planned"] == 6 and step.stats["error"] < 1e-4
    assert losses == pytest.approx(train(Net, images)[0], rel=1e-3)


def test_loss_is_detached_and_why_is_empty():
    model = mlp()
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y))
    assert step.why == "no step was made" and not step.is_planned
    reasons = []
    for number in range(5):
        model.zero_grad()
        loss = step(*rows(number))
        assert not loss.requires_grad and model[0].weight.grad is not None
        reasons.append(step.why)
    recorded, checked = "these shapes are recorded", "this step is checked against the interpreted one"
    assert reasons == [recorded, recorded, checked, checked, ""] and step.is_planned


def changing(at, what):
    def change(number, model):
        if number == at:
            what(model)

    return change


def freeze(model):
    model[0].weight.requires_grad = False


def renew(model):
    with engine.no_grad():
        model[0].bias = nn.Parameter(model[0].bias.detach() * 2)


@pytest.mark.parametrize("make, batch, what", [
    (Net, images, lambda model: model.eval()),
    (Net, images, lambda model: setattr(model.dropout, "p", 0.6)),
    (mlp, rows, freeze),
    (mlp, rows, renew),
    (mlp, rows, lambda model: setattr(model[0].weight, "data", model[0].weight.detach() * 2)),
    (mlp, rows, lambda model: model[0].register_forward_hook(lambda module, args, output: output * 2)),
    (mlp, rows, lambda model: model[0].weight.register_hook(lambda gradient: gradient * 2)),
    (mlp, rows, lambda model: engine.set_num_threads(1)),
])
@pytest.mark.parametrize("at", [1, 5, 7])
def test_changes_between_steps_are_seen(make, batch, what, at):
    threads = engine.get_num_threads()
    try:
        planned = train(make, batch, "exact", change=changing(at, what))
        engine.set_num_threads(threads)
        assert equal(planned, train(make, batch, change=changing(at, what)))
    finally:
        engine.set_num_threads(threads)
    assert planned[2].stats["planned"] > 0 or at < 5


SCALE = 1.0
CLASS_WEIGHTS = engine.ones(5)


@dataclasses.dataclass
class Settings:
    scale: float = 1.0


class Recipe:
    def __init__(self, model):
        self.model, self.scale = model, 1.0

    def _factor(self):
        return self.scale * SCALE

    def loss(self, x, y):
        return F.cross_entropy(self.model(x), y) * self._factor()


@pytest.mark.parametrize("at", [5, 7])
def test_numbers_that_the_function_names(at):
    def trained(mode):
        global SCALE
        SCALE = 1.0
        settings, factors, recipe = Settings(), [1.0], []
        local = 1.0

        def make_loss(model):
            recipe.append(Recipe(model))
            whole = recipe[0].loss
            inner = functools.partial(lambda more, x: x * more, 1.5)
            return lambda x, y: inner(whole(x, y)) * settings.scale * factors[0] * local

        def change(number, model):
            global SCALE
            nonlocal local
            if number == at:
                SCALE = 2.0
            if number == at + 4:
                settings.scale, factors[0], local, recipe[0].scale = 3.0, 0.5, 0.25, 1.25

        return train(mlp, rows, mode, make_loss, change, steps=24)

    planned = trained("exact")
    assert equal(planned, trained(None)) and planned[2].stats["planned"] > 4


def test_tensors_that_the_function_names():
    def trained(mode):
        CLASS_WEIGHTS.fill_(1)

        def change(number, model):
            if number == 7:
                CLASS_WEIGHTS[2] = 5.0

        return train(mlp, rows, mode, lambda model: lambda x, y: F.cross_entropy(model(x), y, weight=CLASS_WEIGHTS), change)

    planned = trained("exact")
    assert equal(planned, trained(None)) and planned[2].stats["planned"] == 6


def test_arguments():
    model = mlp()
    step = engine.plan_step(lambda batch, scale, *, weight=None: F.cross_entropy(model(batch["x"]), batch["y"], weight=weight) * scale)
    for number in range(20):
        x, y = rows(number)
        model.zero_grad()
        scale = 1.0 + (number // 8)
        loss = step({"x": x, "y": y}, scale, weight=engine.ones(5))
        assert loss.item() == (F.cross_entropy(model(x), y, weight=engine.ones(5)) * scale).item()
    assert step.stats["planned"] > 4
    with pytest.raises(TypeError, match="a batch is of tensors"):
        step(object(), 1.0)
    with pytest.raises(TypeError, match="expected a function"):
        engine.plan_step(3)
    with pytest.raises(ValueError, match="'exact' or 'fused'"):
        engine.plan_step(model, mode="fast")


class Cube(engine.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class Hidden:
    """Not reachable by any inspected name."""

    def __init__(self, value):
        self.value = value


def counted(model):
    model.count = 0

    def loss(x, y):
        model.count += 1
        return F.cross_entropy(model(x), y)

    return loss


def kept(model):
    seen = Hidden(None)

    def loss(x, y):
        seen.value = model(x)
        return F.cross_entropy(seen.value, y)

    return loss


def hidden(value):
    def make(model):
        box = Hidden(value())
        return lambda x, y: F.cross_entropy(model(x), y) * box.value

    return make


@pytest.mark.parametrize("make_loss, reason", [
    (lambda model: lambda x, y: F.cross_entropy(model(x), y) * (2.0 if x.sum() > 0 else 1.0), "Python reads elements"),
    (lambda model: lambda x, y: F.cross_entropy(model(x), y) * float(x.numpy()[0, 0]), "Python reads elements"),
    (lambda model: lambda x, y: F.cross_entropy(model(x), y) * x[0, 0].item(), "Python reads elements"),
    (lambda model: lambda x, y: F.cross_entropy(model(engine.from_dlpack(x)), y), "Python reads elements"),
    (lambda model: lambda x, y: F.cross_entropy(Cube.apply(model(x)), y), "is not an operator's gradient"),
    (counted, "changes attributes"),
    (kept, "outlives the step"),
    (hidden(lambda: engine.tensor(2.0)), "reads a tensor that is not known to the step"),
    (hidden(lambda: engine.tensor([2.0] * 6)[0]), "reads a tensor that is not known to the step"),
    (lambda model: lambda x, y: (model(x[x[:, 0] > 0]) ** 2).mean(), "depends on data"),
])
def test_what_stays_interpreted(make_loss, reason):
    planned = train(mlp, rows, "exact", make_loss)
    assert equal(planned, train(mlp, rows, None, make_loss))
    assert planned[2].stats["planned"] == 0 and reason in planned[2].why


def test_gradients_that_are_added_and_batches_with_gradients():
    model = mlp()
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y))
    for number in range(5):
        model.zero_grad()
        step(*rows(number))
    assert step.is_planned
    before = model[0].weight.grad.clone()
    step(*rows(4))
    assert not step.is_planned and "added" in step.why and engine.equal(model[0].weight.grad, before * 2)
    model.zero_grad()
    x, y = rows(6)
    x.requires_grad = True
    step(x, y)
    assert x.grad is not None and not step.is_planned and "the batch requires a gradient" in step.why
    model.zero_grad()
    with engine.no_grad(), pytest.raises(engine.Error, match="does not depend on any parameter"):
        step(*rows(7))


def test_a_model_that_is_not_named_is_refused():
    box = Hidden(mlp())
    step = engine.plan_step(lambda x, y: F.cross_entropy(box.value(x), y))
    also = engine.plan_step(lambda x, y: F.cross_entropy(box.value(x), y), box.value)
    for number in range(5):
        for one in (step, also):
            box.value.zero_grad()
            one(*rows(number))
    assert "that is not known to the step" in step.why or "gets a gradient" in step.why
    assert step.stats["planned"] == 0 and also.is_planned


def test_numbers_that_nobody_sees_are_found_by_the_checks():
    box, model = Hidden(1.0), mlp()
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y) * box.value)
    with pytest.raises(engine.InternalError, match="run the steps without plans"):
        for number in range(12):
            box.value = 1.0 if number < 6 else 2.0
            model.zero_grad()
            step(*rows(number))


def test_errors_and_forget():
    model = mlp()
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y))
    x, y = rows(0)
    for _ in range(3):
        with pytest.raises(ValueError):
            step(x, y[:3])
    with pytest.raises(TypeError, match="must give the loss"):
        engine.plan_step(lambda x: 3)(x)
    with pytest.raises(KeyError):
        engine.plan_step(lambda x: {}["a"])(x)
    for number in range(5):
        model.zero_grad()
        step(*rows(number))
    assert step.is_planned
    step.forget()
    model.zero_grad()
    step(*rows(9))
    assert not step.is_planned and "recorded" in step.why


def test_a_step_in_a_step_and_beside_it():
    model = mlp()
    step = engine.plan_step(lambda x, y: F.cross_entropy(model(x), y))
    nested = engine.plan_step(lambda x: nested(x))
    with pytest.raises(engine.FailedPreconditionError, match="is running"):
        nested(engine.ones(1))
    for number in range(5):
        model.zero_grad()
        threads = [threading.Thread(target=step, args=rows(number))]
        threads[0].start()
        threads[0].join()
    assert step.is_planned


def test_loaded_models(tmp_path):
    torch.jit.script(torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 5))).save(str(tmp_path / "m.pt"))

    def trained(mode, trainable=True):
        engine.manual_seed(1)
        model = engine.load(tmp_path / "m.pt", trainable=trainable)
        head = nn.Linear(5, 5)
        with engine.no_grad():
            head.weight.fill_(0.1)
        step = engine.plan_step(lambda x, y: F.cross_entropy(head(model(x).clone()), y), mode=mode)
        optimizer = optim.SGD([*(model.parameters() if trainable else []), head.weight], lr=0.1)
        losses = []
        for number in range(STEPS):
            optimizer.zero_grad()
            head.bias.grad = None
            if trainable and number == 9:
                model.eval()
            losses.append(step(*rows(number)).item())
            optimizer.step()
        return losses, step

    losses, step = trained("exact")
    assert step.stats["planned"] > 2
    with engine.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        interpreted, other = trained("exact")
    assert losses == interpreted and other.stats["planned"] == 0 and "hooks for saved tensors" in other.why
    assert "trainable=True" in trained("exact", trainable=False)[1].why
