"""`tensord convert` over dynamic sizes: coincidences of the example sizes do not get into the file.

Programs are converted with a few sizes, then run with many others. They must give TorchScript's results, or be refused
by the conversion. TENSORD_SIZE_PROGRAMS=FIRST:COUNT runs more random ones.
"""

import collections
import importlib.util
import os
import pathlib
import subprocess
import tempfile
import unittest

import torch

from tests.e2e.models.convert_test import leaves
from tests.e2e.daemon_process import BINARY
from tests.e2e.models.size_programs import HEADER, random_program

NEWEST = pathlib.Path(__file__).parents[3] / "build" / "pypi_torch" / "bin" / "python"
# (rows, columns of x), (rows, columns of y)
SIZES = [((2, 2), (2, 2)), ((5, 3), (4, 6)), ((3, 5), (3, 5)), ((4, 6), (4, 4)), ((7, 14), (2, 9)), ((6, 3), (12, 3)), ((2, 64), (3, 65)),
         ((33, 5), (2, 10)), ((3, 1), (1, 3)), ((1, 4), (1, 1)), ((9, 41), (3, 120)), ((1, 2), (2, 4))]
FLAGS = ["--input", "4,6", "--input", "4,6", "--dynamic", "x:0,1", "--dynamic", "y:0,1"]

# Runs a program for all arguments; None if PyTorch refuses them.
PYTORCH = """
import sys, torch
from torch.utils._pytree import tree_leaves
module = torch.export.load(sys.argv[1]).module()
results = []
for inputs in torch.load(sys.argv[2]):
    try:
        results.append(tree_leaves(module(*inputs)))
    except Exception as error:
        results.append(str(error)[:200])
torch.save(results, sys.argv[3])
"""
ONNX = """
import sys, numpy, onnxruntime, torch
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
names = [one.name for one in session.get_inputs()]
order = {"x": 0, "y": 1}
results = []
for inputs in torch.load(sys.argv[2]):
    try:
        found = session.run(None, {name: inputs[order[name]].numpy() for name in names})
        results.append([torch.from_numpy(numpy.array(one)) for one in found])
    except Exception as error:
        results.append(str(error)[:200])
torch.save(results, sys.argv[3])
"""


def arguments_for(sizes):
    generator = torch.Generator().manual_seed(sum(sizes[0]) * 31 + sum(sizes[1]))
    return tuple(torch.randn(*size, generator=generator) for size in sizes)


def is_close(got, expected):
    if len(got) != len(expected):
        return False
    try:
        for one, other in zip(got, expected):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)
    except AssertionError:
        return False
    return True


class Sizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compile(self, source):
        """The program as `self.folder`/model.pt, and as a module."""
        self.count = getattr(self, "count", 0) + 1
        path = self.folder / f"program_{self.count}.py"
        body = "".join(f"    {line}\n" for line in source.splitlines())
        path.write_text(f"import torch\nfrom torch import Tensor\nfrom typing import List\n\n\nclass Program(torch.nn.Module):\n{body}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        scope = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scope)
        module = torch.jit.script(scope.Program())
        module.save(str(self.folder / "model.pt"))
        return module

    def convert(self, kind, flags=FLAGS):
        """Returns the error; "" if the file was written."""
        done = subprocess.run([BINARY, "convert", str(self.folder / "model.pt"), "--to", kind, "-o", str(self.folder / f"out.{kind}"), *flags],
                              capture_output=True, text=True, timeout=120)
        self.assertGreaterEqual(done.returncode, 0, f"ended by a signal\n{done.stderr}")
        return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

    def by_tensord(self, path, calls):
        """A result or an error for each call."""
        results = []
        flags = []
        for number, inputs in enumerate(calls):
            torch.save(inputs, self.folder / f"{number}.args")
            flags.append(["--call", f"forward,{self.folder}/{number}.args,{self.folder}/{number}.out"])
        done = subprocess.run([BINARY, "run", str(path), *[flag for pair in flags for flag in pair]], capture_output=True, text=True)
        if done.returncode == 0:
            return [leaves(torch.load(self.folder / f"{number}.out")) for number in range(len(calls))]
        for number, pair in enumerate(flags):
            done = subprocess.run([BINARY, "run", str(path), *pair], capture_output=True, text=True)
            self.assertGreaterEqual(done.returncode, 0, done.stderr)
            results.append(leaves(torch.load(self.folder / f"{number}.out")) if done.returncode == 0 else done.stderr.strip()[-200:])
        return results

    def by_other(self, kind, calls):
        if not NEWEST.exists():
            return None
        torch.save(calls, self.folder / "calls")
        script = PYTORCH if kind == "pt2" else ONNX
        done = subprocess.run([str(NEWEST), "-W", "ignore", "-c", script, str(self.folder / f"out.{kind}"), str(self.folder / "calls"),
                               str(self.folder / "other")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return torch.load(self.folder / "other")

    def differences(self, module, kind, with_others=True):
        """The sizes for which the written file and the program differ, where the program has a result."""
        sizes = [one for one in SIZES if self.run_script(module, one) is not None]
        expected = [self.run_script(module, one) for one in sizes]
        calls = [arguments_for(one) for one in sizes]
        wrong = []
        if not calls:
            return wrong
        runs = {"tensord": self.by_tensord(self.folder / f"out.{kind}", calls)}
        if with_others and (other := self.by_other(kind, calls)) is not None:
            runs["other"] = other
        for who, results in runs.items():
            for size, got, one in zip(sizes, results, expected):
                if isinstance(got, str):
                    wrong.append((who, size, "refused: " + got))
                elif not is_close(got, one):
                    wrong.append((who, size, "wrong"))
        return wrong

    @staticmethod
    def run_script(module, sizes):
        try:
            return leaves(module(*arguments_for(sizes)))
        except Exception:
            return None


class ConvertSizesTest(Sizes):
    # What goes into the file for each: "" written; or a part of what is said against it.
    PROGRAMS = (
        ("a size that ends at a number", ["t = x[:, :4]", "n = t.size(1)"], "[t, torch.zeros(n, 2), torch.tensor(n)]", "", ""),
        ("a part of a size is none", ["n = x.size(0) // 5"], "[torch.ones(n, 3), torch.tensor(n)]", "", ""),
        ("both are equal by chance", ["n = x.size(0) - y.size(0)", "t = torch.ones(n * n + 1)"], "[t, torch.tensor(t.size(0) * 2)]", "", ""),
        ("a sum, and twice one", ["n = x.size(0) + y.size(0)", "m = 2 * x.size(0)"],
         "[torch.ones(n), torch.ones(m), torch.cat([x[:, 0], y[:, 0]]), torch.tensor([n, m])]", "", ""),
        ("a product", ["t = x[:, :1] * y[:1]", "n = t.numel()"], "[t.reshape(-1), torch.arange(n)]", "", ""),
        ("the larger and the smaller", ["n = max(x.size(1), 30)", "m = min(x.size(1), 30)"], "[torch.ones(n), torch.ones(m), x[:, :m]]", "", ""),
        ("the rest of a reshape", ["t = x.reshape(-1, x.size(0))", "u = x.reshape(x.size(1), -1)"], "[t + u, torch.tensor(t.size(0))]", "", ""),
        ("a list that ends at a number", ["t = x.split(30, 1)"], "[t[0]]", "a list's length depends on a dynamic size", "a list's length"),
        ("a dimension that is left out", ["t = x.squeeze()"], "[t + 1]", "the number of dimensions", "the number of dimensions"),
        ("a choice between equal sizes", ["n = 1", "if x.size(1) == y.size(1):", "    n = 2"], "[x * n]", "dynamic size", "dynamic size"),
        ("a limit above all examples", ["t = x[:, :2000]", "n = 1", "if t.size(1) == x.size(1):", "    n = 2"], "[x * n]", "dynamic size",
         "dynamic size"),
        ("a stride that is not a size of its own", ["t = torch.ones(x.size(0), 1).reshape(-1, x.size(0))"], "[t.unfold(1, 2, 1)[:, :, 0]]", "", "unfold"),
        ("a count of elements", ["t = x[x > 0]", "n = t.size(0)"], "[x * n, torch.tensor(n)]", "", ""),
    )

    def test_coincidences(self):
        for name, lines, result, *expected in self.PROGRAMS:
            body = "\n".join(f"    {line}" for line in lines)
            module = self.compile(f"{HEADER}\n{body}\n    return {result}\n")
            for kind, message in zip(("pt2", "onnx"), expected):
                with self.subTest(name, to=kind):
                    said = self.convert(kind)
                    self.assertEqual(bool(said), bool(message), said)
                    self.assertIn(message, said)
                    if not said:
                        self.assertEqual(self.differences(module, kind), [])

    def test_counts_without_open_sizes(self):
        module = self.compile(f"{HEADER}\n    t = x[x > 0]\n    n = t.size(0)\n    return [x * n, torch.tensor(n)]\n")
        for kind in ("pt2", "onnx"):
            self.assertEqual(self.convert(kind, ["--input", "5,3", "--input", "4,6"]), "")
            for x in (torch.ones(5, 3), -torch.ones(5, 3)):
                y = torch.ones(4, 6)
                got = self.by_tensord(self.folder / f"out.{kind}", [(x, y)])[0]
                self.assertTrue(is_close(got, leaves(module(x, y))), kind)

    def test_random_programs(self):
        first, count = map(int, os.environ.get("TENSORD_SIZE_PROGRAMS", "1:8").split(":"))
        said = collections.Counter()
        failures = []
        for seed in range(first, first + count):
            source = random_program(seed)
            try:
                module = self.compile(source)
            except Exception as error:
                said["no TorchScript: " + str(error).strip().splitlines()[0][:60]] += 1
                continue
            if sum(self.run_script(module, one) is not None for one in SIZES) < 4:
                said["runs for few sizes"] += 1
                continue
            for kind in ("pt2", "onnx"):
                why = self.convert(kind)
                said[f"{kind} " + (why.split("(")[0][:100] if why else "written")] += 1
                if why:
                    continue
                wrong = self.differences(module, kind, with_others=count > 100 or seed % 7 == 0)
                if wrong:
                    failures.append(f"seed {seed}, {kind}: {wrong}\n{source}")
        if count > 30:
            print("\n".join(f"{number:6} {outcome}" for outcome, number in said.most_common()))
        self.assertEqual(failures, [], "\n\n".join(failures))
        self.assertGreater(said["pt2 written"], count // 8, said)
        self.assertGreater(said["onnx written"], count // 8, said)


if __name__ == "__main__":
    unittest.main()
