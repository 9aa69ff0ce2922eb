"""`tensord convert --to onnx`: unsupported cases are refused with the operator's name, neighboring ones are converted."""

import itertools
import pathlib
import subprocess
import tempfile
import unittest

import torch
from torch import nn

from tests.e2e.daemon import BINARY

# A body of forward(x), the input's shape, and what is said; nothing where the file is written.
# Each refusal stands beside the nearest call that has a form.
BODIES = [
    ("torch.scatter(x, 0, torch.zeros(2, 4, dtype=torch.int64), x[:, :4])", "4,4", "a source larger than the index"),
    ("torch.scatter(x, 0, torch.zeros(4, 4, dtype=torch.int64), x)", "4,4", ""),
    ("torch.scatter(x, 0, torch.zeros(4, 4, dtype=torch.int64), x, reduce='add')", "4,4", "with a reduction"),
    ("x[torch.zeros(2, dtype=torch.int64), :, torch.zeros(2, dtype=torch.int64)]", "4,4,4", "that do not stand side by side"),
    ("x[:, torch.zeros(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)]", "4,4,4", ""),
    ("x[x > 0]", "4,4", ""),
    ("x[:, x[0] > 0]", "4,4", "a mask beside other indices"),
    ("torch.index_put(x, [x > 0], torch.ones(1))", "4,4", ""),
    ("torch.index_put(x, [x > 0], torch.ones(1), accumulate=True)", "4,4", "several values by a mask"),
    ("torch.nn.functional.one_hot(x.to(torch.int64), -1)", "4", "a number of classes that depends on data"),
    ("torch.nn.functional.one_hot(x.to(torch.int64), 3)", "4", ""),
    ("torch.nn.functional.avg_pool2d(x, 2, divisor_override=3)", "1,1,4,4", "a divisor"),
    ("torch.nn.functional.avg_pool2d(x, 2, ceil_mode=True)", "1,1,4,4", "ceil_mode"),
    ("torch.nn.functional.avg_pool2d(x, 2)", "1,1,4,4", ""),
    ("torch.nn.functional.max_pool2d(x, 2, stride=3, padding=1, ceil_mode=True)", "1,1,5,5",
     "ceil_mode with a window beyond the input"),
    ("torch.nn.functional.max_pool2d(x, 2, ceil_mode=True)", "1,1,5,5", ""),
    ("torch.nn.functional.adaptive_avg_pool2d(x, [2, 2])", "1,1,5,4", "windows of several sizes"),
    ("torch.nn.functional.adaptive_avg_pool2d(x, [2, 2])", "1,1,4,4", ""),
    ("torch.nn.functional.adaptive_avg_pool2d(x, [5, 1])", "1,1,5,4", ""),
    ("torch.nn.functional.batch_norm(x, None, None, training=True)", "2,3", "with the statistics of the batch"),
    ("torch.nn.functional.instance_norm(x, torch.zeros(3), torch.ones(3), use_input_stats=False)", "2,3,4", "running statistics"),
    ("torch.nn.functional.instance_norm(x)", "2,3,4", ""),
    ("torch.rsub(x, x, alpha=2)", "4", ""),
    ("torch.rsub(x, x)", "4", ""),
    ("torch.erfinv(x)", "4", "aten::erfinv"),
    ("torch.round(x, decimals=1)", "4", "decimals"),
    ("torch.round(x, decimals=0)", "4", ""),
    ("torch.nn.functional.dropout(x, 0.5, True)", "4", "drops elements"),
    ("torch.nn.functional.dropout(x, 0.5, False)", "4", ""),
    ("torch.norm(x, 3)", "4", "norms of order 3"),
    ("torch.norm(x, 1)", "4", ""),
    ("torch.repeat_interleave(x, 2)", "4", "this overload"),
    ("torch.repeat_interleave(x, 2, 0)", "4", ""),
    ("torch.roll(x, 1)", "4,4", "without dims"),
    ("torch.roll(x, [1, -1], [0, 1])", "4,4", ""),
    ("torch.nn.functional.pixel_shuffle(x[0], 2)", "1,4,2,2", "only 4 dimensions"),
    ("torch.nn.functional.pixel_shuffle(x, 2)", "1,4,2,2", ""),
    ("torch.rand(4) + x", "4", "draws random numbers"),
    ("torch.slice_scatter(x, x[::2], 0, 0, 4, 2)", "4", "a step"),
    ("torch.slice_scatter(x, x[1:3], 0, 1, 3)", "4", ""),
    ("3", "4", "the result holds a"),
]
# With an open first dimension.
OPEN = [
    ("torch.nn.functional.max_pool1d(x, 2, ceil_mode=True)", "3,4", "x:1", "ceil_mode over a dynamic size"),
    ("torch.nn.functional.max_pool1d(x, 2, ceil_mode=True)", "3,4", "x:0", ""),
    ("torch.nn.functional.adaptive_avg_pool1d(x, 2)", "3,4", "x:1", "windows of several sizes"),
    ("torch.nn.functional.adaptive_avg_pool1d(x, 1)", "3,4", "x:1", ""),
    ("torch.roll(x, 1, 0)", "4,4", "x:0", "a dynamic size"),
    ("torch.narrow(x, 0, 0, x.size(0) - 1)", "4,4", "x:0", "a dynamic start or length"),
    ("torch.narrow(x, 0, -2, 1)", "4,4", "x:0", "a start from the end of a dynamic size"),
    ("torch.narrow(x, 1, -2, 1)", "4,4", "x:0", ""),
    ("torch.tensor([x.size(0), 2]) + x[0, 0]", "4,4", "x:0", ""),
    ("torch.tensor([float(x.size(0)), 2.5]) + x[0, 0]", "4,4", "x:0", "such a list"),
    ("torch.cat([i for i in torch.split(x, 2)])", "4,4", "x:0", "depends on a dynamic size"),
]
LAYERS = [
    (nn.LSTM(4, 6, proj_size=2), "2,3,4", "projections"),
    (nn.LSTM(4, 6), "2,3,4", ""),
    (nn.LSTM(4, 6), "3,4", ""),
    (nn.LSTM(4, 6, 2, dropout=0.5), "2,3,4", ""),
    (nn.LSTM(4, 6, 2, dropout=0.5).train(), "2,3,4", "drops elements"),
    (nn.GRU(4, 6, bias=False), "2,3,4", ""),
]
NUMBERS = itertools.count()


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class ConvertRefusalsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def expect(self, message, *flags):
        out = self.folder / "out.onnx"
        out.unlink(missing_ok=True)
        done = subprocess.run([BINARY, "convert", self.folder / "model.pt", "--to", "onnx", "-o", out, *flags],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, not message, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(out.exists(), not message)

    def save(self, body):
        module = type(f"Of{next(NUMBERS)}", (torch.jit.ScriptModule,), {})()  # a class has one forward
        module.define(f"def forward(self, x):\n  return {body}\n")
        module.eval().save(str(self.folder / "model.pt"))

    def test_calls(self):
        for body, shape, message in BODIES:
            with self.subTest(body=body, shape=shape):
                self.save(body)
                self.expect(message, "--input", shape)

    def test_open_sizes(self):
        for body, shape, dynamic, message in OPEN:
            with self.subTest(body=body, dynamic=dynamic):
                self.save(body)
                self.expect(message, "--input", shape, "--dynamic", dynamic)

    def test_layers(self):
        for layer, shape, message in LAYERS:
            with self.subTest(layer=layer, shape=shape):
                is_training = "drops" in message
                torch.jit.script(Recurrent(layer).train(is_training)).save(str(self.folder / "model.pt"))
                self.expect(message, "--input", shape)


if __name__ == "__main__":
    unittest.main()
