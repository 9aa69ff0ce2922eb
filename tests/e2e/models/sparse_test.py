"""Sparse tensors in scripted and traced models, with `tensord run`, compared with PyTorch."""

import os
import re
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path

import torch

from tests.sparse import cases
from tests.sparse.models import difference, module_of

BINARY = os.environ["TENSORD_BINARY"]
warnings.filterwarnings("ignore")


def run(model, calls, folder, *flags):
    """Calls methods in order; returns their results."""
    command = [BINARY, "run", str(model), *flags]
    for number, (method, arguments) in enumerate(calls):
        torch.save(tuple(arguments), folder / f"{number}.in")
        command += ["--call", f"{method},{folder / f'{number}.in'},{folder / f'{number}.out'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [torch.load(folder / f"{number}.out") for number in range(len(calls))]


class Holder(torch.nn.Module):
    def __init__(self, sparse):
        super().__init__()
        self.register_buffer("sparse", sparse)

    def forward(self, x):
        return torch.mm(self.sparse, x) * 2


class SparseTest(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.addCleanup(self.place.cleanup)

    def save(self, module, name="model.pt"):
        path = self.folder / name
        torch.jit.save(module, path)
        return path

    def check_all(self, some, model, expected, *flags):
        calls = [(name, case.arguments) for name, case in some.items()]
        try:
            results = run(model, calls, self.folder, *flags)
        except RuntimeError:
            results = []
            for call in calls:  # selects the case
                try:
                    results += run(model, [call], self.folder, *flags)
                except RuntimeError as error:
                    results.append(str(error))
        wrong = []
        for name, got in zip(some, results):
            problem = difference(got, expected[name])
            if problem:
                wrong.append(f"{name}: {problem}")
        self.assertEqual(wrong, [], "\n".join(wrong))
        self.assertEqual(len(results), len(some))

    def test_operators(self):
        some = dict(cases.all_cases())
        model = module_of(self.folder, some, "operators")
        expected = {}
        for name, case in some.items():
            expected[name] = case.reference(*case.arguments) if case.reference else getattr(model, name)(*case.arguments)
        path = self.save(model)
        self.check_all(some, path, expected)
        self.check_all(some, path, expected, "--no-optimize")

    # First and second gradients, compared with PyTorch's for dense tensors.
    def test_gradients(self):
        some, expected = {}, {}
        for name, case in cases.gradients():
            leaves = [a.clone().requires_grad_() for a in case.arguments]
            names = "[x, z]" if len(leaves) > 1 else "[x]"
            body = re.sub(r"\by = ", "r = ", case.body)
            body += f"""
        w = torch.arange(1, r.numel() + 1).to(r.dtype).reshape(r.shape)
        first = torch.autograd.grad([(r * w * r).sum()], {names}, create_graph=True)
        total = torch.zeros([], dtype=torch.float64)
        for g in first:
            if g is not None:
                total = total + (g * g).sum()
        return first, torch.autograd.grad([total], {names})"""
            some[name] = case._replace(body=re.sub(r"\bz\b", "y", body), arguments=tuple(leaves))
            y = case.reference(*leaves)
            w = torch.arange(1, y.numel() + 1).to(y.dtype).reshape(y.shape)
            first = torch.autograd.grad([(y * w * y).sum()], leaves, create_graph=True)
            sparse = 2 if name.startswith("both") else 1 if name.startswith("masked") else 0
            kept = [(leaf.detach() != 0) if i < sparse else torch.ones_like(leaf) for i, leaf in enumerate(leaves)]
            first = [g * k for g, k in zip(first, kept)]
            second = torch.autograd.grad([sum((g * g).sum() for g in first)], leaves)
            expected[name] = ([g.detach() for g in first], [g * k for g, k in zip(second, kept)])
        self.check_all(some, self.save(module_of(self.folder, some, "gradients")), expected, "--grad")

    # Complex numbers: the gradient of a real number with respect to the dense tensors from which the sparse ones are
    # made.
    def test_complex_gradients(self):
        bodies = {
            "mm": ("torch.mm(a.to_sparse(), b)", lambda a, b: torch.mm(a, b)),
            "add": ("(a.to_sparse() * (2.0 + 1.0j) + a.to_sparse()).to_dense() * 1j + b.sum()", lambda a, b: a * (3 + 1j) * 1j + b.sum()),
            "csr": ("torch.mm(a.to_sparse_csr(), b)", lambda a, b: torch.mm(a, b)),
        }
        x, y = cases.complex_matrix(3, 4), cases.complex_matrix(4, 4, density=1.0, seed=3)
        some, expected = {}, {}
        for name, (body, reference) in bodies.items():
            leaves = [torch.view_as_real(a).clone().requires_grad_() for a in (x, y)]
            some[name] = cases.Case(f"a = torch.view_as_complex(x)\n        b = torch.view_as_complex(y)\n        r = torch.view_as_real({body})\n"
                                    "        return torch.autograd.grad([(r * r).sum()], [x, y])", tuple(leaves))
            r = torch.view_as_real(reference(*map(torch.view_as_complex, leaves)))
            first, second = torch.autograd.grad([(r * r).sum()], leaves)
            expected[name] = [first * (x != 0).unsqueeze(-1), second]
        self.check_all(some, self.save(module_of(self.folder, some, "complex_gradients")), expected, "--grad")

    # Attributes of archives, scripted and traced, run, saved and loaded again by PyTorch.
    def test_attributes(self):
        x, a = cases.dense(4, 2), cases.matrix(3, 4)
        for layout in ("coo", "csr"):
            sparse = a.to_sparse() if layout == "coo" else a.to_sparse_csr()
            for how in ("script", "trace"):
                with self.subTest(layout=layout, how=how):
                    module = Holder(sparse)
                    made = torch.jit.script(module) if how == "script" else torch.jit.trace(module, x)
                    path, again = self.save(made), self.folder / "again.pt"
                    expected = module(x)
                    self.assertEqual(difference(run(path, [("forward", (x,))], self.folder, "--save", again), [expected]), "")
                    loaded = torch.jit.load(again)
                    self.assertEqual(difference(loaded.sparse, sparse), "")
                    self.assertEqual(difference(loaded(x), expected), "")
                    self.assertEqual(difference(run(again, [("forward", (x,))], self.folder), [expected]), "")

    # Inconsistent parts in a file: refused with the file's name, without a crash.
    def test_damaged_attributes(self):
        i = torch.tensor([[0, 2], [1, 3]])
        bad = {
            "out of range": lambda: torch._sparse_coo_tensor_unsafe(i + 2, torch.ones(2), (3, 4)),
            "negative": lambda: torch._sparse_coo_tensor_unsafe(i - 1, torch.ones(2), (3, 4)),
            "crow": lambda: torch._sparse_csr_tensor_unsafe(torch.tensor([0, 3, 1, 2]), torch.tensor([0, 1]), torch.ones(2), (3, 4)),
            "last crow": lambda: torch._sparse_csr_tensor_unsafe(torch.tensor([0, 1, 1, 9]), torch.tensor([0, 1]), torch.ones(2), (3, 4)),
            "column": lambda: torch._sparse_csr_tensor_unsafe(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 4]), torch.ones(2), (3, 4)),
            "order": lambda: torch._sparse_csr_tensor_unsafe(torch.tensor([0, 2, 2, 2]), torch.tensor([1, 0]), torch.ones(2), (3, 4)),
        }
        for name, make in bad.items():
            with self.subTest(name):
                path = self.save(torch.jit.script(Holder(make())))
                with self.assertRaisesRegex(RuntimeError, "model.pt.*(ind|compressed)"):
                    run(path, [("forward", (torch.ones(4, 2),))], self.folder)

    # All runs share them. Folding attributes must not lose the refusal of writes.
    def test_attributes_are_not_written(self):
        sparse = cases.matrix(3, 4).to_sparse().coalesce()
        quantized = torch.quantize_per_tensor(cases.matrix(3, 4), 0.1, 10, torch.quint8)
        writes = {"zero_()": sparse, "neg_()": sparse, "mul_(2)": sparse, "relu_()": quantized}
        for call, attribute in writes.items():
            with self.subTest(call):
                model = torch.jit.script(Holder(attribute))
                name = "write_" + call[:3]  # scripted Holders are one class
                model.define(f"def {name}(self, x: Tensor):\n    self.sparse.{call}\n    return self.sparse + self.sparse\n")
                with self.assertRaisesRegex(RuntimeError, "belongs? to the module"):
                    run(self.save(model), [(name, (torch.ones(4, 2),))], self.folder)

    def test_refusals(self):
        bodies = {
            "no_form": ("return torch.cumsum(x.to_sparse(), 0)", "aten::cumsum has no kernel for SparseCOO on cpu"),
            "complex": ("return torch.relu(torch.complex(x, x).to_sparse()).to_dense()", "aten::relu has no kernel for Complex on cpu"),
            "not_sparse": ("return x.coalesce()", "aten::coalesce has no kernel for cpu; it has: SparseCOO"),
            "sparse_plus_dense": ("return x.to_sparse() + x", "Use add\\(dense, sparse\\)"),
            "bad_index": ("return torch.sparse_coo_tensor(torch.tensor([[5], [0]]), torch.ones(1), [3, 4])", "index 5"),
            "bad_crow": ("return torch.sparse_csr_tensor(torch.tensor([0, 2, 1, 1]), torch.tensor([0]), torch.ones(1), [3, 4])", "compressed index"),
            "written_indices": ("i = torch.tensor([[0], [0]])\n        s = torch.sparse_coo_tensor(i, torch.ones(1), [3, 4])\n        i.fill_(1000000)\n        s._indices().fill_(1000000)\n        return s.to_dense()", None),
            "own_operator": ("return torch.mm(torch.sparse_csr_tensor(torch.tensor([0, 1, 1, 1]), torch.tensor([0]), torch.ones(1), [3, 4]), x)", "cannot be multiplied"),
        }
        x = cases.matrix(3, 4)
        some = {name: cases.Case(body, (x,)) for name, (body, _) in bodies.items()}
        model = self.save(module_of(self.folder, some, "refusals"))
        for name, (_, message) in bodies.items():
            with self.subTest(name):
                if message is None:
                    expected = torch.zeros(3, 4)
                    expected[0, 0] = 1
                    self.assertEqual(difference(run(model, [(name, (x,))], self.folder), [expected]), "")
                    continue
                with self.assertRaisesRegex(RuntimeError, message):
                    run(model, [(name, (x,))], self.folder)

    # Sparse arguments and results of torch.save.
    def test_files(self):
        some = {"twice": cases.Case("return x, x.to_dense()", (cases.matrix(3, 4).to_sparse(),))}
        model = self.save(module_of(self.folder, some, "files"))
        for x in (cases.matrix(3, 4).to_sparse(), torch.zeros(3, 4).to_sparse()):
            self.assertEqual(difference(run(model, [("twice", (x,))], self.folder), [(x, x.to_dense())]), "")


if __name__ == "__main__":
    unittest.main()
