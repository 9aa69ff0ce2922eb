"""`tensord convert`: other runtimes load the files and compute the same values; unsupported operators are named."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Tuple

import torch
from torch import nn

from tests.e2e.daemon import BINARY

TESTS = pathlib.Path(__file__).parents[2]
ONNX_PYTHON = TESTS.parent / "build" / "onnx" / "bin" / "python"

# Checks a file with the standard's own checker and runs it with its reference implementation.
REFERENCE = """
import sys, numpy, onnx
from onnx.reference import ReferenceEvaluator
model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
given = numpy.load(sys.argv[2])
names = [one.name for one in model.graph.input]
results = ReferenceEvaluator(model).run(None, dict(zip(names, [given[str(i)] for i in range(len(names))])))
numpy.savez(sys.argv[3], **{str(i): numpy.asarray(result) for i, result in enumerate(results)})
"""


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.up = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.group = nn.GroupNorm(2, 4)
        self.linear = nn.Linear(4, 5)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 1.5)

    def forward(self, x):
        y = torch.relu_(self.norm(self.conv(x)))
        y = nn.functional.max_pool2d(y, 2)
        y = self.group(self.up(y))
        y = nn.functional.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        y = nn.functional.adaptive_avg_pool2d(y, 1).flatten(1)
        return torch.softmax(self.linear(nn.functional.gelu(y)), dim=-1), y.argmax(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8, bias=False)
        self.norm = nn.LayerNorm(8)
        self.register_buffer("positions", torch.randn(30, 8))

    def heads(self, x):
        return x.view(x.size(0), x.size(1), 2, 4).transpose(1, 2)

    def forward(self, ids, mask):
        x = self.embed(ids) + self.positions[:ids.size(1)]
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        scores = q @ k.transpose(-2, -1) / 4 ** 0.5
        scores = scores.masked_fill((mask == 0)[:, None, None, :], -1e4)
        out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(ids.size(0), -1, 8)
        x = self.norm(x + out)
        return {"hidden": x, "pooled": x.sum(1) / mask.sum(1, keepdim=True)}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(10, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, _ = self.gru(y)
        return z, h + c


class Script(nn.Module):
    """Loops over layers and lists, branches on ranks, numbers computed from sizes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        if x.dim() != 2:
            raise ValueError("expected a matrix")
        outs = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            outs.append(x[:, ::2])
        rows = torch.arange(x.size(0) * 2, dtype=torch.float32) // 2
        both = torch.cat(outs, 1).repeat(2, 1) + rows[:, None]
        return both.view(-1, x.size(0) // 1, 6).mean(0), torch.stack(outs)[:, :, 0].t()


class Branch(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            return x
        return -x


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class OddSizes(nn.Module):
    def forward(self, x):
        return x * 2 if x.size(0) > 3 else x


class Branches(nn.Module):
    """Nested branches; outer values read and written inside; weights; other sizes in each branch."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        if bool(y.sum() > 0):
            z = self.first(y)
            if not bool(y.max() > 3):
                z = z.clone().relu_() + y.mean()
            rows = y[:1]
        elif x.size(0) > 4:
            z, rows = self.second(x), y
        else:
            z, rows = y[:, :3], x[1:]
        if float(z.mean()) >= 0.25:
            z = z - 1
        return z + rows.size(0), torch.cat([rows, y])


class WritesInBranch(nn.Module):
    def forward(self, x):
        y = x + 1
        if bool(x.sum() > 0):
            y.mul_(2)
        return y


class WritesResult(nn.Module):
    def forward(self, x):
        y = x + 1
        z = y if bool(x.sum() > 0) else -y
        z.mul_(2)
        return y + z


class ListInBranch(nn.Module):
    def forward(self, x):
        parts = [x]
        if bool(x.sum() > 0):
            parts.append(x + 1)
        return torch.cat(parts)


class TwoKinds(nn.Module):
    def forward(self, x):
        y = x
        if bool(x.sum() > 0):
            y = x.sum(0)
        return y


class ChoosesNumber(nn.Module):
    def forward(self, x):
        n = 2 if x.size(0) > 3 else 1
        return x * n


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)):
        return []
    return [leaf for item in value for leaf in leaves(item)]


class ConvertTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)

    def convert(self, *arguments, ok=True):
        done = subprocess.run([BINARY, "convert", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, ok, done.stdout + done.stderr)
        return done.stderr

    def reference(self, path, inputs):
        import numpy
        numpy.savez(self.folder / "in.npz", **{str(i): tensor.numpy() for i, tensor in enumerate(inputs)})
        subprocess.run([ONNX_PYTHON, "-c", REFERENCE, path, self.folder / "in.npz", self.folder / "out.npz"], check=True)
        given = numpy.load(self.folder / "out.npz")
        return [torch.from_numpy(given[str(i)]) for i in range(len(given.files))]

    def by_tensord(self, path, inputs):
        torch.save(tuple(inputs), self.folder / "args.pt")
        subprocess.run([BINARY, "run", path, "--call", f"forward,{self.folder}/args.pt,{self.folder}/out.pt"], check=True)
        return leaves(torch.load(self.folder / "out.pt"))

    def check_onnx(self, module, inputs, flags):
        """`inputs` have other sizes than any example that the file was written with."""
        module = module.eval()
        torch.jit.script(module).save(self.folder / "model.pt")
        out = self.folder / "out.onnx"
        self.convert(self.folder / "model.pt", "--to", "onnx", "-o", out, *flags)
        expected = leaves(module(*inputs))
        runs = [self.by_tensord(out, inputs)]
        if ONNX_PYTHON.exists():
            runs.append(self.reference(out, inputs))
        for got in runs:
            self.assertEqual(len(got), len(expected))
            for one, other in zip(got, expected):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

    def test_layers(self):
        self.check_onnx(Layers(), [torch.randn(5, 3, 16, 16)], ["--input", "2,3,16,16", "--dynamic", "x:0"])

    def test_attention(self):
        mask = torch.ones(3, 11, dtype=torch.int64)
        mask[0, 4:] = 0
        self.check_onnx(Attention(), [torch.randint(0, 20, (3, 11)), mask],
                        ["--input", "2,7:int64", "--input", "2,7:int64", "--dynamic", "ids:0,1", "--dynamic", "mask:0,1"])

    def test_recurrent(self):
        self.check_onnx(Recurrent(), [torch.randn(3, 7, 4)], ["--input", "2,7,4", "--dynamic", "x:0"])

    def test_script(self):
        self.check_onnx(Script(), [torch.randn(7, 4)], ["--input", "2,4", "--dynamic", "x:0"])

    def test_branches(self):
        """On data and on dynamic sizes: If, whichever branch the examples take."""
        flags = ["--input", "2,4", "--dynamic", "x:0"]
        for rows in (3, 8):
            for scale in (1.0, -1.0, 30.0, -30.0):
                with self.subTest(rows=rows, scale=scale):
                    self.check_onnx(Branches(), [torch.rand(rows, 4) * scale], flags)
            self.check_onnx(OddSizes(), [torch.randn(rows, 4)], flags)
            self.check_onnx(Branch(), [torch.randn(rows, 4)], flags)

    def test_names_and_open_sizes(self):
        torch.jit.script(Attention().eval()).save(self.folder / "model.pt")
        self.convert(self.folder / "model.pt", "--to", "onnx", "-o", self.folder / "out.onnx", "--input", "2,7:int64",
                     "--input", "2,7:int64", "--dynamic", "ids:0,1", "--dynamic", "mask:0,1")
        said = subprocess.run([BINARY, "inspect", self.folder / "out.onnx"], capture_output=True, text=True, check=True)
        for name in ("ids", "mask", "embed.weight", "positions", "norm.bias"):
            self.assertIn(name, said.stdout)

    def test_refused(self):
        for module, flags, message in (
                (WritesInBranch(), [], "writes, in a branch that depends on data, to memory that was there before"),
                (WritesResult(), [], "writes to the result of a branch that depends on data"),
                (ListInBranch(), [], "changes a list in a branch that depends on data"),
                (TwoKinds(), [], "a branch that depends on data returns"),
                (Noise(), [], "aten::rand_like"),
                (ChoosesNumber(), ["--dynamic", "x:0"], "depends on a dynamic size"),
                (nn.Dropout(0.5).train(), [], "")):
            torch.jit.script(module).save(self.folder / "model.pt")
            said = self.convert(self.folder / "model.pt", "--to", "onnx", "-o", self.folder / "out.onnx", "--input", "2,4", *flags,
                                ok=False)
            self.assertIn(message, said)
            self.assertEqual(list(self.folder.glob("out.onnx*")), [], said)
        self.assertIn("a bool where PyTorch wants a number",
                      self.convert(TESTS / "pt2" / "data" / "numbers.pt2", "--to", "torchscript", "-o", self.folder / "o", ok=False))
        self.assertIn("give an example", self.convert(self.folder / "model.pt", "--to", "onnx", "-o", self.folder / "o", ok=False))
        self.assertIn("no such input", self.convert(self.folder / "model.pt", "--to", "onnx", "-o", self.folder / "o", "--input", "2",
                                                    "--dynamic", "y:0", ok=False))

    def test_exported_programs(self):
        """To TorchScript, which Debian's PyTorch opens, and to ONNX."""
        data = TESTS / "pt2" / "data"
        calls = torch.load(data / "calls.pt")
        for name in ("conv", "conv_core", "nested", "tied_core", "recurrent", "sizes_core"):
            arguments, expected = calls[name][0]
            torch.save(tuple(arguments), self.folder / "example.pt")
            with self.subTest(name=name, to="torchscript"):
                self.convert(data / f"{name}.pt2", "--to", "torchscript", "-o", self.folder / "out.pt", "--args", self.folder / "example.pt")
                got = leaves(torch.jit.load(str(self.folder / "out.pt"))(*arguments))
                for one, other in zip(got, leaves(expected)):
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
        for name in ("conv", "conv_core", "attention", "tied_core"):
            arguments, expected = calls[name][0]
            with self.subTest(name=name, to="onnx"):
                torch.save(tuple(arguments), self.folder / "example.pt")
                flags = ["--args", self.folder / "example.pt"] if name == "tied_core" else []  # indices of a small table
                self.convert(data / f"{name}.pt2", "--to", "onnx", "-o", self.folder / "out.onnx", *flags)
                for one, other in zip(self.by_tensord(self.folder / "out.onnx", arguments), leaves(expected)):
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
