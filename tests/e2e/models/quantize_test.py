"""`tensord quantize`: archives with linear layers of 8 bits, whose numbers are those of PyTorch's quantize_dynamic and which PyTorch runs."""

import os
import subprocess
import tempfile
import unittest

import numpy
import torch
from torch import Tensor, nn
from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic

from tests.e2e.daemon import BINARY

torch.backends.quantized.engine = "onednn"  # what Debian's PyTorch has


class Net(nn.Module):
    """Layers with and without a bias, one that is called twice, one whose weight something else reads, and a convolution."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 3, padding=1)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 24, bias=False)) for _ in range(3)])
        self.shared, self.head = nn.Linear(24, 24), nn.Linear(24, 5)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x.unsqueeze(1)).squeeze(1)
        for block in self.blocks:
            x = x + self.dropout(block(x))
        x = self.shared(torch.tanh(self.shared(x)))
        return self.head(x) + self.shared.weight.sum()


class QuantizeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.folder = tempfile.TemporaryDirectory(prefix="tensord_quantize_")
        cls.net = Net().eval()
        torch.jit.script(cls.net).save(cls.path("net.pt"))
        cls.x = torch.randn(200, 24)
        numpy.savez(cls.path("rows.npz"), x=cls.x.numpy())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def quantize(self, *flags, model="net.pt", out="out.pt", data="rows.npz", code=0):
        done = subprocess.run([BINARY, "quantize", self.path(model), "-o", self.path(out), "--data", self.path(data), "--overwrite", *flags],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def run_model(self, file, x):
        torch.save((x,), self.path("arguments.pt"))
        subprocess.run([BINARY, "run", self.path(file), "--call", f"forward,{self.path('arguments.pt')},{self.path('result.pt')}"],
                       check=True, capture_output=True, timeout=120)
        return torch.load(self.path("result.pt"))

    def test_pytorch_and_tensord_give_the_numbers_of_quantize_dynamic(self):
        report = self.quantize()
        self.assertIn("9 of 9 linear layers have 8 bits", report)
        expected_net = quantize_dynamic(self.net, {nn.Linear: per_channel_dynamic_qconfig})
        written = torch.jit.load(self.path("out.pt"))
        state = written.state_dict()
        # The weight that something else reads is there in float32 too; the others are not.
        self.assertEqual({name for name in state if "weight" in name}, {"conv.weight", "shared.weight"})
        x = self.x[:16]

        def expected(x):
            x = expected_net.conv(x.unsqueeze(1)).squeeze(1)
            for block in expected_net.blocks:
                x = x + block(x)
            x = expected_net.shared(torch.tanh(expected_net.shared(x)))
            return expected_net.head(x) + self.net.shared.weight.sum()

        want = expected(x)
        torch.testing.assert_close(written(x), want, rtol=1e-5, atol=1e-5)
        # A rounding of the layers before may move an input of a layer across a step of its 7 bits.
        torch.testing.assert_close(self.run_model("out.pt", x), want, rtol=0, atol=0.02)
        self.assertGreater((want - self.net(x)).abs().max().item(), 1e-3)
        self.assertLess((want - self.net(x)).abs().max().item(), 0.2)

    def test_weights_have_the_bits_of_pytorchs(self):
        net = nn.Sequential(nn.Linear(40, 30)).eval()
        with torch.no_grad():
            net[0].weight[3] = 0
            net[0].weight[4] *= 1000
        torch.jit.script(net).save(self.path("one.pt"))
        numpy.savez(self.path("input.npz"), input=torch.randn(30, 40).numpy())
        self.quantize(model="one.pt", out="one_out.pt", data="input.npz")
        written = torch.jit.load(self.path("one_out.pt"))
        weight, bias = torch.ops.quantized.linear_unpack(written._packed_0)
        theirs, _ = quantize_dynamic(net, {nn.Linear: per_channel_dynamic_qconfig})[0]._packed_params._weight_bias()
        self.assertTrue(torch.equal(weight.int_repr(), theirs.int_repr()))
        self.assertTrue(torch.equal(weight.q_per_channel_scales(), theirs.q_per_channel_scales()))
        self.assertTrue(torch.equal(bias, net[0].bias))
        x = torch.randn(7, 40)
        self.assertTrue(torch.equal(written(x), quantize_dynamic(net, {nn.Linear: per_channel_dynamic_qconfig})(x)))
        # The sums are the same integers; oneDNN scales them with other roundings than fbgemm, whose numbers tensord has.
        torch.testing.assert_close(self.run_model("one_out.pt", x), written(x), rtol=1e-5, atol=1e-5)

    def test_the_report_is_true(self):
        report = self.quantize("--rows", "64", "--batch-size", "64").splitlines()
        written = torch.jit.load(self.path("out.pt"))
        difference = (written(self.x[:64]) - self.net(self.x[:64])).abs()
        words = report[-1].replace(",", "").split()
        self.assertEqual(words[0], "OUTPUT__0:")
        self.assertAlmostEqual(float(words[3]), difference.max().item(), delta=0.02)
        self.assertAlmostEqual(float(words[5]), difference.mean().item(), delta=0.1 * difference.mean().item())
        self.assertAlmostEqual(float(words[10]), self.net(self.x[:64]).abs().max().item(), delta=1e-2)
        self.assertIn("on 64 rows", report[-1])
        self.assertLess(os.path.getsize(self.path("out.pt")), os.path.getsize(self.path("net.pt")))

    def test_static_scales_are_those_of_the_data(self):
        report = self.quantize("--static", out="static.pt")
        self.assertIn("9 of 9 linear layers have 8 bits", report)
        written, x = torch.jit.load(self.path("static.pt")), self.x[:16]
        got, want = self.run_model("static.pt", x), self.net(x)
        # A sum at the border of two steps of an output may be rounded to either.
        torch.testing.assert_close(written(x), got, rtol=0, atol=0.1)
        self.assertLess((written(x) - got).abs().mean().item(), 0.01)
        self.assertGreater((got - want).abs().max().item(), 1e-3)
        self.assertLess((got - want).abs().max().item(), 0.3)
        # A row's result does not depend on the others, unlike in dynamic layers.
        self.assertTrue(torch.equal(self.run_model("static.pt", torch.cat([x[:1], 1000 * x[1:2]]))[0], got[0]))
        self.quantize()
        self.assertFalse(torch.equal(self.run_model("out.pt", torch.cat([x[:1], 1000 * x[1:2]]))[0], self.run_model("out.pt", x)[0]))

    def test_static_numbers(self):
        """Inputs have 7 bits and outputs 8 bits of their ranges, which include 0."""
        net = nn.Sequential(nn.Linear(3, 2, bias=False)).eval()
        with torch.no_grad():
            net[0].weight.copy_(torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]))
        torch.jit.script(net).save(self.path("plain.pt"))
        numpy.savez(self.path("plain.npz"), input=numpy.array([[1.0, 5.0, 0.0], [-1.27, 2.0, 3.0]], dtype=numpy.float32))
        self.quantize("--static", model="plain.pt", out="plain_out.pt", data="plain.npz")
        code = torch.jit.load(self.path("plain_out.pt")).code
        scale, zero, out_scale, out_zero = 6.27 / 127, round(1.27 / (6.27 / 127)), 11.27 / 255, round(1.27 / (11.27 / 255))
        given, made = code.split("quantize_per_tensor(")[1].split(")")[0].split(", "), code.split("quantized.linear(")[1].split(")")[0].split(", ")
        self.assertAlmostEqual(float(given[1]), scale, places=6)
        self.assertAlmostEqual(float(made[2]), out_scale, places=6)
        self.assertEqual((int(given[2]), int(given[3]), int(made[3])), (zero, 13, out_zero))

    def test_ranges_with_a_nan_are_not_used(self):
        """Also where other numbers follow it."""
        torch.jit.script(nn.Sequential(nn.Linear(3, 2)).eval()).save(self.path("nan.pt"))
        numpy.savez(self.path("nan.npz"), input=numpy.array([[1, 2, 3], [1, float("nan"), 3], [4, 5, 6]], dtype=numpy.float32))
        self.assertIn("its values are not finite", self.quantize("--static", model="nan.pt", out="no_nan.pt", data="nan.npz", code=1))

    def test_layers_that_the_data_does_not_reach_stay(self):
        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.small, self.large = nn.Linear(24, 4), nn.Linear(24, 4)

            def forward(self, x: Tensor) -> Tensor:
                return self.large(x) if bool(x.abs().max() > 1e6) else self.small(x)

        torch.jit.script(Branches().eval()).save(self.path("branches.pt"))
        report = self.quantize("--static", model="branches.pt", out="branches_out.pt")
        self.assertIn("1 of 2 linear layers have 8 bits", report)
        self.assertIn("stays in float32: large.weight: the data does not reach it", report)

    def test_layers_whose_weights_forward_writes_stay(self):
        class Writes(nn.Module):
            def __init__(self):
                super().__init__()
                self.fixed, self.written, self.bias_written = nn.Linear(24, 4), nn.Linear(24, 4), nn.Linear(24, 4)

            def forward(self, x: Tensor) -> Tensor:
                self.written.weight[0].mul_(2)
                self.bias_written.bias.add_(1)
                return self.written(x) + self.bias_written(x) + self.fixed(x)

        torch.jit.script(Writes().eval().requires_grad_(False)).save(self.path("writes.pt"))
        for flags in ((), ("--static",)):
            report = self.quantize(*flags, model="writes.pt", out="writes_out.pt")
            self.assertIn("1 of 3 linear layers have 8 bits", report)
            for name in ("written", "bias_written"):
                self.assertIn(f"stays in float32: {name}.weight: forward writes its weight or its bias", report)
            x = self.x[:16]
            difference = self.run_model("writes_out.pt", x) - torch.jit.load(self.path("writes.pt"))(x)
            self.assertLess(difference.abs().max().item(), 0.1)

    def test_models_that_were_saved_in_training_mode(self):
        """They are compared, measured and written as after eval()."""
        torch.jit.script(Net().train()).save(self.path("train.pt"))
        torch.jit.load(self.path("train.pt")).eval().save(self.path("eval.pt"))
        for flags in ((), ("--static",)):
            expected, report = (self.quantize(*flags, model=model, out=f"{model}.out").splitlines() for model in ("eval.pt", "train.pt"))
            self.assertIn("train.pt: was saved in training mode", report.pop(0))
            self.assertEqual(report[-1], expected[-1])  # the same differences
            self.assertLess(float(report[-1].replace(",", "").split()[3]), 0.3)
            written = torch.jit.load(self.path("train.pt.out"))
            self.assertFalse(any(module.training for module in written.modules()))
            self.assertTrue(torch.equal(self.run_model("train.pt.out", self.x[:16]), self.run_model("eval.pt.out", self.x[:16])))

    def test_a_file_that_is_there_stays(self):
        with open(self.path("there.pt"), "w") as file:
            file.write("mine")
        done = subprocess.run([BINARY, "quantize", self.path("net.pt"), "-o", self.path("there.pt"), "--data", self.path("rows.npz")], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there.pt: is there already; --overwrite replaces it", done.stderr)
        with open(self.path("there.pt")) as file:
            self.assertEqual(file.read(), "mine")
        self.quantize(out="there.pt")

    def test_of_several_at_once_one_makes_the_file(self):
        command = [BINARY, "quantize", self.path("net.pt"), "-o", self.path("one.pt"), "--data", self.path("rows.npz")]
        runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        errors = [run.communicate(timeout=120)[1] for run in runs]
        self.assertEqual(sorted(run.returncode for run in runs), [0, 1, 1], errors)
        self.assertEqual(sum("one.pt: is there already" in error for error in errors), 2, errors)

    def test_what_it_reads_and_folders_are_no_output(self):
        for out, text in (("net.pt", "is the model itself"), ("rows.npz", "is the data"), ("", "expected the path of a file"), (".", "expected the path of a file")):
            done = subprocess.run([BINARY, "quantize", self.path("net.pt"), "-o", out and self.path(out), "--data", self.path("rows.npz"), "--overwrite"],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 1, out)
            self.assertIn(f"--output: {text}", done.stderr)

    def test_measuring_changes_nothing_in_the_file(self):
        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(24, 4)
                self.register_buffer("calls", torch.zeros(1))

            def forward(self, x: Tensor) -> Tensor:
                self.calls += 1
                return self.linear(x) + self.calls

        torch.jit.script(Counts().eval()).save(self.path("counts.pt"))
        self.quantize("--static", "--max-error", "0.1", model="counts.pt", out="counts_out.pt")
        self.assertEqual(torch.jit.load(self.path("counts_out.pt")).calls.item(), 0)

    def test_layers_that_see_nan_stay(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.one, self.two = nn.Linear(24, 4), nn.Linear(24, 4)

            def forward(self, x: Tensor, y: Tensor) -> Tensor:
                return self.one(x) + self.two(y)

        torch.jit.script(Two().eval()).save(self.path("two.pt"))
        with_nan = self.x.clone()
        with_nan[-2, -2] = torch.nan
        numpy.savez(self.path("nan.npz"), x=with_nan.numpy(), y=self.x.numpy())
        report = self.quantize("--static", model="two.pt", out="two_out.pt", data="nan.npz")
        self.assertIn("1 of 2 linear layers have 8 bits", report)
        self.assertIn("stays in float32: one.weight: its values are not finite", report)

    def test_layers_may_stay(self):
        report = self.quantize("--skip", "head", "--skip", "blocks.1.*")
        self.assertIn("6 of 9 linear layers have 8 bits", report)
        for name in ("head.weight", "blocks.1.0.weight", "blocks.1.2.weight"):
            self.assertIn(f"stays in float32: {name}: it is skipped", report)
        self.assertIn("head.weight", torch.jit.load(self.path("out.pt")).state_dict())

    def test_what_is_refused(self):
        class Computed(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(4, 24))

            def forward(self, x: Tensor) -> Tensor:
                return nn.functional.linear(x, self.weight * 2)

        half, infinite = nn.Sequential(nn.Linear(24, 4)).double().eval(), nn.Sequential(nn.Linear(24, 4)).eval()
        with torch.no_grad():
            infinite[0].weight[0, 0] = float("inf")
        numpy.savez(self.path("input.npz"), input=self.x.numpy())
        for name, module, data, text in (("computed", Computed(), "rows.npz", "its weight is computed"), ("none", nn.Conv1d(24, 1, 1), "input.npz", "calls no aten::linear"),
                                         ("double", half, "input.npz", "its weight is float64[4, 24]"), ("infinite", infinite, "input.npz", "its weight is not finite")):
            with self.subTest(name):
                torch.jit.script(module.eval()).save(self.path(name + ".pt"))
                error = self.quantize(model=name + ".pt", out="no.pt", data=data, code=1)
                self.assertIn(text, error)
        self.assertIn("more than --max-error 0, so nothing was written", self.quantize("--max-error", "0", out="no.pt", code=1))
        self.assertIn("more than --max-error 1e-06, so nothing was written", self.quantize("--max-error", "1e-6", out="no.pt", code=1))
        self.assertIn("'x'", self.quantize(data="input.npz", out="no.pt", code=1))
        self.assertIn("no argument 'y'", self.quantize("--input", "y=x", out="no.pt", code=1))
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.startswith("no.pt")], [])
        self.quantize("--max-error", "0.2")

    def test_nothing_is_left_to_quantize(self):
        self.quantize(out="first.pt")
        error = self.quantize(model="first.pt", out="no.pt", code=1)
        self.assertIn("calls no aten::linear", error)


if __name__ == "__main__":
    unittest.main()
