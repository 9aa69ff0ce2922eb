"""`tensord convert --to pt2`: torch.export.load opens the programs, they work for sizes that no example had, and they
can be trained."""

import pathlib
import re
import subprocess
import tempfile
import unittest
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.e2e.models.convert_test import Attention, Branch, Layers, Recurrent, Script, WritesInBranch, leaves
from tests.e2e.daemon import BINARY

ROOT = pathlib.Path(__file__).parents[3]
NEWEST = ROOT / "build" / "pypi_torch" / "bin" / "python"

# Runs a program as it is, decomposed and saved again, and prints which weights get a gradient.
PYTORCH = """
import sys, torch
from torch.utils._pytree import tree_leaves
file, given, out, decomposes = sys.argv[1:]
inputs = torch.load(given)
program = torch.export.load(file)
results = [tree_leaves(program.module()(*inputs))]
torch.export.save(program, out + ".pt2")
results.append(tree_leaves(torch.export.load(out + ".pt2").module()(*inputs)))
if decomposes == "True":
    results.append(tree_leaves(program.run_decompositions().module()(*inputs)))
module = torch.export.load(file).module()
loss = sum(one.float().sum() for one in tree_leaves(module(*inputs)) if torch.is_tensor(one) and one.is_floating_point())
names = []
if loss.requires_grad:
    loss.backward()
    names = [name for name, parameter in module.named_parameters() if parameter.grad is not None]
torch.save((results, names), out)
"""


class Pair(NamedTuple):
    scores: Tensor
    best: Tensor


class InPlace(nn.Module):
    """Writes into its own results, through views; lists, a dict, a NamedTuple; a constant and a computed weight."""

    def __init__(self):
        super().__init__()
        self.g, self.v = nn.Parameter(torch.rand(4)), nn.Parameter(torch.randn(4, 3))
        self.register_buffer("scale", torch.tensor([0.5, 2.0, 1.0, 3.0]))

    def forward(self, x: Tensor, flag: bool = True) -> Tuple[Pair, Dict[str, Tensor], List[Tensor]]:
        weight = self.v * (self.g / self.v.pow(2).sum(1).sqrt())[:, None]
        y = nn.functional.linear(x, weight) * self.scale
        out = torch.zeros(x.size(0), 6, dtype=x.dtype)
        out[:, :4] = y
        both = torch.tensor([1.0, -1.0])
        both += 2.0
        out[:, 4:] += both
        out[0].mul_(2)
        parts: List[Tensor] = []
        for part in torch.split(out, 2, 1):
            parts.append(part.clamp(min=0.0).to(torch.float64))
        if flag:
            parts.append(torch.full((x.size(0) // 2 + 1,), float("inf")))
        named: Dict[str, Tensor] = {"first": out, "last": out}
        named["first"] = parts[0]
        named["last"] = parts[-1]
        named["sum"] = out.sum(0)
        return Pair(out, out.argmax(1)), named, parts


class State(nn.Module):
    """Buffers that a call writes, also through a view, and that it replaces."""

    def __init__(self):
        super().__init__()
        for name, sizes in (("count", (1,)), ("cache", (2, 3)), ("last", (3,)), ("before", (3,))):
            self.register_buffer(name, torch.zeros(sizes))
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        self.count.add_(1)
        self.cache[1] = self.linear(x).sum(0)
        old = self.last + self.before
        self.before = self.last * 2
        self.last = x.sum(0)
        self.count += 1
        return x + self.count, self.cache * self.count, old + self.last


class WritesParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        self.weight.add_(1)
        return x + self.weight


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return x + self.count


class GivesOld(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        old = self.last
        self.last = x.sum(0)
        return old


class SetsTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("first", torch.zeros(4))
        self.register_buffer("second", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.first.add_(1)
        self.first = x.sum(0)
        self.second = self.first
        return self.second + x


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen: List[Tensor] = [torch.zeros(4)]

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.sum(0))
        return x


class Grows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("all", torch.zeros(0, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.all = torch.cat([self.all, x])
        return self.all.sum(0)


class Fixed(nn.Module):
    """Takes non-tensor arguments, and makes tensors from tensors and numbers."""

    def forward(self, x: Tensor, times: int, flag: bool, bias: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
        y = x * times if flag else x
        if bias is not None:
            y = y + bias
        return y, torch.as_tensor(y, dtype=torch.float64), torch.as_tensor(times) + torch.as_tensor(x.size(0))


class SizesInTensors(nn.Module):
    """Its ONNX file computes sizes in tensors: shapes, their parts, products, and choices among them."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, other):
        b, t, c = x.shape
        y = self.linear(x).view(b, t, 2, c // 2).transpose(1, 2)
        z = y.reshape(b, 2 * t, 4)[:, : t - 1]
        positions = torch.arange(t).unsqueeze(0).expand(b, t) + 1
        mask = torch.ones(t, t).tril().expand(b, 1, t, t)
        rest = torch.cat([x.flatten(0, 1), other.expand(b * t, c)], 1).view(-1, t, 2 * c)
        return z, positions, mask, rest.flatten(1), torch.zeros(b, (t + 3) // 4, 2), x.mean(1, keepdim=True).expand_as(x)


class Branches(nn.Module):
    """Nested branches on data, with weights, a buffer and a dynamic size; results of a branch are written within it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x: Tensor, flag: Tensor) -> Tuple[Tensor, Tensor]:
        y = x * 2
        kept = y
        if bool(y.sum() > 0):
            z = self.first(y).relu_() + self.shift
            if not bool(flag):
                z = z + torch.arange(y.size(0), device=x.device).unsqueeze(1)
                kept = z * 3
        else:
            z = self.second(y)
        return z - 1, kept


class OtherSizes(nn.Module):
    def forward(self, x):
        return x[1:] if bool(x.sum() > 0) else x


class Rounds(nn.Module):
    def forward(self, x):
        while bool(x.sum() < 10):
            x = x + 1
        return x


class KeepsInBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        if bool(x.sum() > 0):
            self.last = x.sum(0)
        return x + self.last


class UsesSize(nn.Module):
    def forward(self, x):
        n = x.size(0) + 1
        return x + n if bool(x.sum() > 0) else x


class ConvertPt2Test(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)

    def convert(self, model, *flags, ok=True):
        command = [BINARY, "convert", model, "--to", "pt2", "-o", self.folder / "out.pt2", *flags]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, ok, done.stdout + done.stderr)
        return done.stderr

    def check(self, module, inputs, flags, trained, is_traced=False, example=None, decomposes=True):
        """`inputs` have other sizes than any example; `trained`: the weights that must get a gradient in PyTorch."""
        module = module.eval()
        program = torch.jit.trace(module, example) if is_traced else torch.jit.script(module)
        program.save(self.folder / "model.pt")
        self.convert(self.folder / "model.pt", *flags)
        expected = leaves(program(*inputs))
        torch.save(tuple(inputs), self.folder / "args.pt")
        subprocess.run([BINARY, "run", self.folder / "out.pt2", "--call",
                        f"forward,{self.folder}/args.pt,{self.folder}/result.pt"], check=True)
        runs = [leaves(torch.load(self.folder / "result.pt"))]
        if NEWEST.exists():
            done = subprocess.run([NEWEST, "-W", "ignore", "-c", PYTORCH, self.folder / "out.pt2", self.folder / "args.pt",
                                   self.folder / "newest.pt", str(decomposes)], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-3000:])
            results, names = torch.load(self.folder / "newest.pt")
            runs += results
            self.assertEqual(sorted(names), sorted(trained))
        for got in runs:
            self.assertEqual(len(got), len(expected))
            for one, other in zip(got, expected):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

    def names_of(self, module):
        return [name for name, _ in module.named_parameters()]

    def test_scripted(self):
        self.check(Layers(), [torch.randn(5, 3, 16, 16)], ["--input", "2,3,16,16", "--dynamic", "x:0"], self.names_of(Layers()))
        # PyTorch decomposes a GRU into a loop over its steps, whose number is open here.
        self.check(Recurrent(), [torch.randn(3, 7, 4)], ["--input", "2,7,4", "--dynamic", "x:0"], self.names_of(Recurrent()),
                   decomposes=False)
        self.check(Script(), [torch.randn(7, 4)], ["--input", "2,4", "--dynamic", "x:0"], self.names_of(Script()))

    def test_two_open_sizes(self):
        mask = torch.ones(3, 11, dtype=torch.int64)
        mask[0, 4:] = 0
        self.check(Attention(), [torch.randint(0, 20, (3, 11)), mask],
                   ["--input", "2,7:int64", "--input", "2,7:int64", "--dynamic", "ids:0,1", "--dynamic", "mask:0,1"],
                   self.names_of(Attention()))

    def test_traced(self):
        """A trace computes sizes with tensors of one element."""
        class Sizes(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(12, 3)

            def forward(self, x):
                y = x.view(x.shape[0] * 2, x.shape[1] // 2)
                z = self.linear(y).reshape(x.shape[0], -1) + torch.zeros(x.shape[0], 1)
                return z.expand(2, *z.shape), torch.arange(x.shape[0] - 1)

        self.check(Sizes(), [torch.randn(7, 24)], ["--input", "2,24", "--dynamic", "x:0"], ["linear.weight", "linear.bias"],
                   is_traced=True, example=torch.randn(4, 24))

    def test_memory_is_shared_as_in_the_program(self):
        self.check(InPlace(), [torch.randn(5, 3)], ["--input", "2,3", "--dynamic", "x:0"], ["g", "v"])
        said = subprocess.run([BINARY, "inspect", self.folder / "out.pt2"], capture_output=True, text=True, check=True)
        for name in ("scale", "g", "v"):
            self.assertIn(name, said.stdout)

    def test_programs_and_onnx_models(self):
        data = ROOT / "tests" / "pt2" / "data"
        calls = torch.load(data / "calls.pt")
        for name in ("conv", "conv_core", "nested", "tied_core", "recurrent"):
            arguments, expected = calls[name][0]
            with self.subTest(name=name):
                torch.save(tuple(arguments), self.folder / "example.pt")
                self.convert(data / f"{name}.pt2", "--args", self.folder / "example.pt")
                subprocess.run([BINARY, "run", self.folder / "out.pt2", "--call",
                                f"forward,{self.folder}/example.pt,{self.folder}/result.pt"], check=True)
                for one, other in zip(leaves(torch.load(self.folder / "result.pt")), leaves(expected)):
                    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)

    def test_sizes_that_onnx_computes_in_tensors(self):
        module = SizesInTensors().eval()
        example = (torch.randn(2, 5, 8), torch.randn(1, 8))
        inputs = [(torch.randn(b, t, 8), torch.randn(1, 8)) for b, t in ((1, 4), (3, 9), (4, 2))]
        for opset in (14, 16):
            with self.subTest(opset=opset):
                torch.onnx.export(module, example, str(self.folder / "model.onnx"), opset_version=opset,
                                  input_names=["x", "other"], output_names=list("abcdef"),
                                  dynamic_axes={"x": {0: "batch", 1: "time"}})
                self.convert(self.folder / "model.onnx")
                for one in inputs:
                    torch.save(one, self.folder / "args.pt")
                    subprocess.run([BINARY, "run", self.folder / "out.pt2", "--call",
                                    f"forward,{self.folder}/args.pt,{self.folder}/result.pt"], check=True)
                    runs = [leaves(torch.load(self.folder / "result.pt"))]
                    if NEWEST.exists():
                        done = subprocess.run([NEWEST, "-W", "ignore", "-c", PYTORCH, self.folder / "out.pt2",
                                               self.folder / "args.pt", self.folder / "newest.pt", "True"],
                                              capture_output=True, text=True)
                        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
                        runs += torch.load(self.folder / "newest.pt")[0]
                    for got in runs:
                        for result, expected in zip(got, module(*one), strict=True):
                            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)

    def test_a_size_that_hangs_on_data_is_refused(self):
        class Data(nn.Module):
            def forward(self, x):
                return x.repeat(1, 2)[:, : x[0, 0].long() + 2]

        torch.onnx.export(torch.jit.script(Data()), (torch.ones(2, 5),), str(self.folder / "model.onnx"), opset_version=15,
                          input_names=["x"], dynamic_axes={"x": {0: "batch"}})
        self.assertIn("depends on a dynamic size or on data", self.convert(self.folder / "model.onnx", ok=False))

    def test_branches_on_data(self):
        for scale in (1.0, -1.0):
            for flag in (True, False):
                self.check(Branches(), [torch.rand(7, 4) * scale, torch.tensor(flag)],
                           ["--input", "2,4", "--input", ":bool", "--dynamic", "x:0"], self.names_of(Branches()))
        self.check(Branch(), [torch.randn(5, 4)], ["--input", "2,4", "--dynamic", "x:0"], [])

    def test_state(self):
        """Buffers written by a call are visible to the next one: here, in PyTorch, and after decomposition."""
        module = torch.jit.script(State().eval())
        module.save(self.folder / "model.pt")
        said = self.convert(self.folder / "model.pt", "--input", "2,3", "--dynamic", "x:0")
        self.assertEqual(said, "")
        inputs = [torch.randn(rows, 3) for rows in (2, 5, 3)]
        calls = []
        for number, x in enumerate(inputs):
            torch.save((x,), self.folder / f"{number}.args")
            calls += ["--call", f"forward,{self.folder}/{number}.args,{self.folder}/{number}.result"]
        subprocess.run([BINARY, "run", self.folder / "out.pt2", *calls], check=True)
        runs = [[torch.load(self.folder / f"{number}.result") for number in range(len(inputs))]]
        if NEWEST.exists():
            script = """
import sys, torch
program, inputs = torch.export.load(sys.argv[1]), [torch.load(f"{sys.argv[2]}/{number}.args")[0] for number in range(3)]
runs = []
for one in (program, torch.export.load(sys.argv[1]).run_decompositions()):
    module = one.module()
    runs.append([[leaf.clone() for leaf in module(x)] for x in inputs])
torch.save(runs, sys.argv[2] + "/newest.pt")
"""
            subprocess.run([NEWEST, "-W", "ignore", "-c", script, self.folder / "out.pt2", self.folder], check=True)
            runs += torch.load(self.folder / "newest.pt")
        expected = [[leaf.clone() for leaf in module(x)] for x in inputs]
        for got in runs:
            for one, other in zip(got, expected):
                for leaf, other_leaf in zip(one, other):
                    torch.testing.assert_close(leaf, other_leaf, rtol=1e-4, atol=1e-5)

    def test_arguments_that_are_fixed(self):
        program = torch.jit.script(Fixed())
        program.save(self.folder / "model.pt")
        x = torch.randn(5, 3)
        for flag in (True, False):
            torch.save((torch.randn(2, 3), 3, flag, None), self.folder / "example.pt")
            for kind in ("pt2", "onnx"):
                command = [BINARY, "convert", self.folder / "model.pt", "--to", kind, "-o", self.folder / f"out.{kind}", "--args",
                           self.folder / "example.pt", "--dynamic", "x:0"]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                self.assertIn(f"written for times = 3, flag = {flag}, bias = None, and equal", said)
                torch.save((x,), self.folder / "args.pt")
                subprocess.run([BINARY, "run", self.folder / f"out.{kind}", "--call",
                                f"forward,{self.folder}/args.pt,{self.folder}/result.pt"], check=True)
                for one, other in zip(leaves(torch.load(self.folder / "result.pt")), leaves(program(x, 3, flag, None))):
                    torch.testing.assert_close(one, other)

    def test_refused(self):
        for module, message in ((OtherSizes(), "the branches of a condition on data return tensors of different sizes"),
                                (Rounds(), "the number of iterations of a loop depends on"), (KeepsInBranch(), "in a branch that depends on data"),
                                (WritesInBranch(), "writes, in a branch that depends on data, to memory that was there before"),
                                (UsesSize(), "a branch that depends on data uses a size that was computed before it"),
                                (WritesParameter(), "writes to the model's own tensor 'weight', which is a parameter"),
                                (Counts(), "sets the attribute 'count', which is a int"),
                                (GivesOld(), "the attribute 'last' is set, and its memory is also that of a result"),
                                (SetsTwo(), "the attribute 'second' is set, and its memory is also that of"),
                                (Lists(), "changes the model's own 'seen'"),
                                (Grows(), "sets the attribute 'all'")):
            torch.jit.script(module).save(self.folder / "model.pt")
            self.assertIn(message, self.convert(self.folder / "model.pt", "--input", "2,4", "--dynamic", "x:0", ok=False))
            self.assertEqual(list(self.folder.glob("out.pt2*")), [])

    @unittest.skipUnless(NEWEST.exists(), "needs the newest PyTorch: scripts/setup pypi_torch")
    def test_operators_that_pytorch_has_not(self):
        """Operators with the attribute NotInPyTorch, compared with PyTorch's operators."""
        sources = "".join(path.read_text() for path in (ROOT / "kernels").glob("*/*.cpp"))
        listed = re.findall(r'OP\("(aten::[\w.]+)"\)\s*\.set<ops::NotInPyTorch>', sources)
        said = subprocess.run([BINARY, "ops"], capture_output=True, text=True, check=True).stdout
        script = """
import re, sys, torch
for line in sys.stdin:
    name = line.split("(")[0]
    arguments, _, result = line.rpartition(" -> ")
    if not name.startswith("aten::") or not result.lstrip("(").startswith("Tensor") or re.search(r"\\(.!\\) out\\b", arguments):
        continue
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = getattr(torch.ops.aten, base, None)
    if not hasattr(packet, overload or "default"):
        print(name)
"""
        missing = subprocess.run([NEWEST, "-c", script], input=said, capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(missing), sorted(listed))


if __name__ == "__main__":
    unittest.main()
