"""Scripts that train themselves, with `tensord run --grad`: losses, weights and the saved archive compared with
PyTorch."""

import os
import subprocess
import tempfile
import unittest

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BINARY = os.environ["TENSORD_BINARY"]
STEPS = 6


class Mlp(nn.Module):
    """Autograd called from the script; dropout with probability 0."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.forward(x), y)


class ConvNet(nn.Module):
    """Statistics that change with every step, a residual, pooling."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.out = nn.Linear(8 * 4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        x = F.max_pool2d(x + self.second(x), 2)
        return self.out(F.adaptive_avg_pool2d(x, 2).flatten(1))

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return F.nll_loss(F.log_softmax(self.forward(x), dim=1), y)


class Encoder(nn.Module):
    """torch.nn's transformer."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, 11)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.encoder(self.embed(x)))

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(self.forward(x).transpose(1, 2), y)


class Lstm(nn.Module):
    """A recurrent layer, and a loop over the steps of a cell; the loss is a mean square."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, batch_first=True)
        self.cell = nn.GRUCell(7, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(x)
        h = torch.zeros(x.size(0), 6)
        for step in range(states.size(1)):
            h = self.cell(states[:, step], h)
        return self.out(h)

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(self.forward(x), y)


class Plain(nn.Module):
    """Views, in-place writes, lists and branches while gradients are recorded."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(6, 6) / 3)
        self.scale = nn.Parameter(torch.ones(3))
        self.frozen = nn.Parameter(torch.randn(6), requires_grad=False)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add_(x.sum(0))
        y = torch.matmul(x, self.weight) + self.frozen
        left, right = y.chunk(2, dim=1)
        parts = [left * self.scale, right.tanh()]
        z = torch.cat(parts, dim=1)
        z[:, 0:2].mul_(2.0)
        out = torch.zeros_like(x)
        out += z
        if out.size(0) > 2:
            out = out.relu()
        return out

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.forward(x) - y).pow(2).mean()


def images(count: int):
    return torch.randn(count, 1, 8, 8), torch.randint(0, 4, (count,))


BATCHES = {
    Mlp: lambda: (torch.randn(5, 8), torch.randint(0, 4, (5,))),
    ConvNet: lambda: images(6),
    Encoder: lambda: (torch.randint(0, 11, (3, 7)), torch.randint(0, 11, (3, 7))),
    Lstm: lambda: (torch.randn(4, 6, 5), torch.randn(4, 2)),
    Plain: lambda: (torch.randn(4, 6), torch.randn(4, 6)),
}

# A step of SGD with momentum written in the script: autograd.grad, then writes to the parameters under no_grad.
STEP = """
def step(self, x: Tensor, y: Tensor, lr: float) -> Tensor:
    loss = self.training_step(x, y)
    parameters = [{parameters}]
    gradients = torch.autograd.grad([loss], parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients):
            if gradient is not None:
                parameter.sub_(gradient * lr)
    return loss.detach()
"""
# The same through .grad.
BACKWARD = """
def step_backward(self, x: Tensor, y: Tensor, lr: float) -> Tensor:
    loss = self.training_step(x, y)
    loss.backward()
    with torch.no_grad():
        for parameter in [{parameters}]:
            parameter -= parameter.grad * lr
            parameter.grad.zero_()
    return loss.detach()
"""


def script(cls, seed: int = 0):
    """A scripted model with `step` and `step_backward` for its own parameters."""
    torch.manual_seed(seed)
    # A separate class, because methods can be added to a scripted class only once.
    model = type(cls.__name__, (cls,), {})().train()
    scripted = torch.jit.script(model)
    parameters = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            path, parts = "self", name.split(".")
            for part in parts:
                # Items of a Sequential or a list have numbers as names.
                path = f"getattr({path}, '{part}')" if part.isdigit() else f"{path}.{part}"
            # The bias of a convolution is declared as an Optional.
            parameters.append(f"torch.jit._unwrap_optional({path})" if parts[-1] == "bias" else path)
    for source in (STEP, BACKWARD):
        scripted.define(source.format(parameters=", ".join(parameters)))
    return scripted


class TrainScript(unittest.TestCase):
    """One test for each model; filled below."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_binary(self, *arguments):
        done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_close(self, ours, theirs, what):
        self.assertEqual(ours.shape, theirs.shape, what)
        error = (ours.double() - theirs.double()).abs().max().item() if ours.numel() else 0.0
        bound = 2e-4 * max(1.0, theirs.double().abs().max().item() if theirs.numel() else 1.0)
        self.assertLessEqual(error, bound, what)

    def check(self, cls):
        model = script(cls)
        model.save(self.path("model.pt"))
        torch.manual_seed(1)
        batches = [BATCHES[cls]() for _ in range(STEPS)]
        methods = [("step", "step_backward")[i % 2] for i in range(STEPS)]
        losses = [getattr(model, method)(*batch, 0.05) for method, batch in zip(methods, batches)]
        for i, batch in enumerate(batches):
            torch.save((*batch, 0.05), self.path(f"a{i}.pt"))
        for flags in ([], ["--no-optimize"]):
            with self.subTest(flags=flags):
                calls = [f"--call={method},{self.path(f'a{i}.pt')},{self.path(f'r{i}.pt')}" for i, method in enumerate(methods)]
                self.run_binary("run", self.path("model.pt"), "--grad", *flags, *calls, "--save", self.path("trained.pt"))
                for i, loss in enumerate(losses):
                    self.assert_close(torch.load(self.path(f"r{i}.pt")), loss, f"loss {i}")
                self.check_saved(torch.jit.load(self.path("trained.pt")), model)
        self.check_serving(torch.jit.load(self.path("trained.pt")), batches[0][0])

    def check_saved(self, trained, model):
        self.assertEqual(list(trained.state_dict()), list(model.state_dict()))
        for name, value in trained.state_dict().items():
            self.assert_close(value, model.state_dict()[name], name)
        for name, parameter in trained.named_parameters():
            self.assertEqual(parameter.requires_grad, dict(model.named_parameters())[name].requires_grad, name)
        self.assertTrue(all(module.training for module in trained.modules()))

    def check_serving(self, trained, x):
        """The saved archive gives the same results in PyTorch and, frozen and planned, here."""
        torch.save((x,), self.path("x.pt"))
        self.run_binary("run", self.path("trained.pt"), "--call", f"forward,{self.path('x.pt')},{self.path('y.pt')}")
        with torch.no_grad():
            self.assert_close(torch.load(self.path("y.pt")), trained(x), "forward")


def add_tests():
    for cls in BATCHES:
        def test(self, cls=cls):
            self.check(cls)
        setattr(TrainScript, f"test_{cls.__name__.lower()}", test)


add_tests()

if __name__ == "__main__":
    unittest.main(verbosity=2)
