"""Operators that reshape a tensor in place ("x.unsqueeze_(0)"), with `tensord run` and `bench`, compared with
PyTorch."""

import os
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

BINARY = os.environ["TENSORD_BINARY"]
warnings.filterwarnings("ignore")
WAYS = ([], ["--no-plan"], ["--no-optimize"])


class Held(nn.Module):
    """All references to a tensor see its new shape, and earlier results are unchanged."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.arange(6.0).reshape(2, 3))

    def helper(self, x: Tensor):
        x.squeeze_(1)

    def forward(self, x: Tensor):
        y = x + 1
        held = [y]
        before = (y.size(0), y.dim(), y.numel())
        y.unsqueeze_(1)
        z = held[0] * 2
        between = (y.size(0), y.dim(), y.numel())
        self.helper(y)
        for i in range(3):
            y.transpose_(0, 1)
        return before, between, z, y, held[0].size(0), y.t_() @ self.weight.t()

    @torch.jit.export
    def turn(self):
        return self.weight.t_().size(0)

    @torch.jit.export
    def look(self):
        return self.weight * 1, self.weight.size(0)


class Traced(nn.Module):
    def forward(self, x):
        y = x * 2
        y.unsqueeze_(0)
        wide = y + 1
        y.squeeze_(0)
        return wide, y.swapaxes_(0, 1) @ x


class Input(nn.Module):
    def forward(self, x: Tensor):
        return x.unsqueeze_(0) * 2


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Leaf(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.t_()


class Caller(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([Leaf(), Leaf()])

    def forward(self, x: Tensor, which: int):
        step: Step = self.steps[which]
        y = x + 1
        before = y.size(0)
        step.forward(y)
        return before, y.size(0)


class ReshapeInPlaceTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.folder = Path(place.name)
        self.addCleanup(place.cleanup)
        self.model = self.folder / "model.pt"
        self.x = torch.randn(5, 3)

    def run_tensord(self, calls, *flags):
        command = [BINARY, "run", str(self.model), *flags]
        for number, (method, arguments) in enumerate(calls):
            torch.save(tuple(arguments), self.folder / f"{number}.in")
            command += ["--call", f"{method},{self.folder / f'{number}.in'},{self.folder / f'{number}.out'}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def check(self, calls):
        loaded = torch.jit.load(str(self.model))
        want = [getattr(loaded, method)(*(argument.clone() for argument in arguments)) for method, arguments in calls]
        for flags in WAYS:
            done = self.run_tensord(calls, *flags)
            self.assertEqual(done.returncode, 0, f"{flags}: {done.stderr}")
            for number, expected in enumerate(want):
                self.assert_same(torch.load(self.folder / f"{number}.out"), expected, f"{flags}, call {number}")

    def assert_same(self, got, want, where):
        if isinstance(want, (tuple, list)):
            self.assertEqual(len(got), len(want), where)
            for one, other in zip(got, want):
                self.assert_same(one, other, where)
        elif isinstance(want, Tensor):
            self.assertEqual(got.shape, want.shape, where)
            self.assertTrue(torch.allclose(got, want, atol=1e-5), where)
        else:
            self.assertEqual(got, want, where)

    def test_every_holder_sees_the_new_shape(self):
        torch.jit.script(Held()).save(str(self.model))
        self.check([("forward", [self.x])] * 3)

    def test_a_buffer_keeps_its_new_shape(self):
        torch.jit.script(Held()).save(str(self.model))
        self.check([("look", []), ("turn", []), ("look", []), ("turn", []), ("look", [])])

    def test_traces(self):
        torch.jit.trace(Traced(), (self.x.clone(),)).save(str(self.model))
        self.check([("forward", [self.x])] * 3)

    def test_bench_gives_each_run_the_shape_that_was_asked_for(self):
        torch.jit.script(Input()).save(str(self.model))
        done = subprocess.run([BINARY, "bench", str(self.model), "--input", "2,3", "--iterations", "3", "--warmup", "2", "--latency-only",
                               "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_passes_cannot_see_is_refused(self):
        torch.jit.script(Caller()).save(str(self.model))
        done = self.run_tensord([("forward", [self.x, 1])])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("aten::t_: not supported in a function that is called through an interface", done.stderr)
        self.assertEqual(self.run_tensord([("forward", [self.x, 1])], "--no-optimize").returncode, 0)
        self.assertEqual(torch.load(self.folder / "0.out"), (5, 3))

    def test_autograd_refuses_by_name(self):
        torch.jit.script(Held()).save(str(self.model))
        done = self.run_tensord([("forward", [self.x.requires_grad_()])], "--grad")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unsqueeze_: not supported on a tensor that autograd follows", done.stderr)


if __name__ == "__main__":
    unittest.main()
