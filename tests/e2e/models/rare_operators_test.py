"""Operators that few scripts call, through `tensord run`: random numbers are PyTorch's own, observers write their state."""

import os
import subprocess
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch.ao.quantization import FusedMovingAvgObsFakeQuantize, MovingAveragePerChannelMinMaxObserver

BINARY = os.environ["TENSORD_BINARY"]
warnings.filterwarnings("ignore")


class Random(nn.Module):
    def forward(self, x):
        torch.manual_seed(7)
        noise = torch.zeros_like(x)
        counts = torch.poisson(x)
        chosen = torch.binomial(x.ceil(), x / 60) + torch.binomial(x.ceil(), x / 600)
        return chosen, counts, torch._C._nn.rrelu_with_noise(x - 20, noise, 0.1, 0.3, True), noise


class Observed(nn.Module):
    """A layer that is trained for quantization; its state has been begun in PyTorch."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.activations = FusedMovingAvgObsFakeQuantize(quant_min=0, quant_max=127, reduce_range=False)
        self.weights = FusedMovingAvgObsFakeQuantize(observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
                                                     dtype=torch.qint8, qscheme=torch.per_channel_symmetric)

    def forward(self, x):
        return nn.functional.linear(self.activations(x), self.weights(self.linear.weight), self.linear.bias)


class RareOperatorsTest(unittest.TestCase):
    def run_model(self, model, calls):
        with tempfile.TemporaryDirectory() as folder:
            torch.jit.save(model, f"{folder}/model.pt")
            command = [BINARY, "run", f"{folder}/model.pt"]
            for i, arguments in enumerate(calls):
                torch.save(arguments, f"{folder}/{i}.pt")
                command += ["--call", f"forward,{folder}/{i}.pt,{folder}/result{i}.pt"]
            subprocess.run([*command, "--train", "--save", f"{folder}/after.pt"], check=True, timeout=120)
            return [torch.load(f"{folder}/result{i}.pt") for i in range(len(calls))], torch.jit.load(f"{folder}/after.pt")

    def test_random_numbers_are_those_of_pytorch(self):
        torch.manual_seed(0)
        for dtype in (torch.float32, torch.float64):
            x = torch.rand(60, dtype=dtype) * 60
            x[::3] /= 10
            x[5] = 0
            model = torch.jit.script(Random())
            (ours,), _ = self.run_model(model, [(x,)])
            for one, other in zip(ours, model(x)):
                self.assertTrue(torch.equal(one, other), dtype)

    def test_an_observer_writes_its_state(self):
        torch.manual_seed(0)
        model = Observed().train()
        model(torch.randn(4, 5))
        calls = [(torch.randn(4, 5) * scale,) for scale in (1.0, 3.0, 0.1)]
        # A copy: the calls of each write its state.
        script = torch.jit.script(model)
        results, after = self.run_model(script, calls)
        for ours, (x,) in zip(results, calls):
            torch.testing.assert_close(ours, model(x))
        theirs = model.state_dict()
        self.assertIn("weights.activation_post_process.min_val", theirs)
        for name, value in after.state_dict().items():
            torch.testing.assert_close(value, theirs[name], msg=name)


if __name__ == "__main__":
    unittest.main()
