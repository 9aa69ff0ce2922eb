"""`tensord run` as a command: paths, state, values of every kind, errors."""

import dataclasses
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor, nn

BINARY = os.environ["TENSORD_BINARY"]


class Pair(NamedTuple):
    first: Tensor
    second: int


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale

    @torch.jit.export
    def echo(self, a: int, b: float, c: bool, d: str, e: Optional[int], f: List[int],
             g: Tuple[int, str], h: Dict[str, List[Tensor]]
             ) -> Tuple[int, float, bool, str, Optional[int], List[int], Tuple[int, str], Dict[str, List[Tensor]]]:
        return a, b, c, d, e, f, g, h

    @torch.jit.export
    def named(self, x: Tensor) -> Pair:
        return Pair(x, 3)

    @torch.jit.export
    def step(self, x: Tensor) -> Tuple[int, Tensor]:
        self.count += 1
        self.seen.add_(x)
        return self.count, self.seen.clone()

    @torch.jit.export
    def refuse(self, x: Tensor) -> Tensor:
        if x.size(0) > 1:
            raise ValueError(f"got {x.size(0)} rows\nand that is too many")
        return x

    @torch.jit.export
    def nothing(self) -> None:
        self.count += 0


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0]))
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight

    @torch.jit.export
    def normalized(self, x: Tensor) -> Tensor:
        return self.norm(x)

    @torch.jit.export
    def dropped(self, x: Tensor) -> Tensor:
        return self.drop(x)

    @torch.jit.export
    def gradients(self, x: Tensor) -> Tuple[bool, Tensor]:
        y = self.forward(x).sum()
        if torch.is_grad_enabled():
            y.backward()
            return x.requires_grad, x.grad
        return y.requires_grad, y


class RunCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cls.path("model.pt")
        torch.jit.script(Everything().eval()).save(cls.model)
        cls.trained = cls.path("trained.pt")
        torch.jit.script(Trained().eval()).save(cls.trained)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def run_binary(self, *arguments):
        return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=120)

    def save(self, name, arguments):
        torch.save(arguments, self.path(name))
        return self.path(name)

    def call(self, method, *arguments):
        a, r = self.save("a.pt", arguments), self.path("r.pt")
        done = self.run_binary("run", self.model, "--call", f"{method},{a},{r}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return torch.load(r)

    def assert_fails(self, message, *arguments, code=1):
        done = self.run_binary(*arguments)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)

    def test_calls_with_and_without_defaults(self):
        x = torch.arange(6.0).view(2, 3)
        self.assertTrue(torch.equal(self.call("forward", x), x * 2))
        self.assertTrue(torch.equal(self.call("forward", x, 0.5), x * 0.5))

    def test_tensors_that_carry_attributes(self):
        """Examples with attributes, as torch.export and mark_dynamic leave them: they are pickled differently."""
        x, parameter = torch.arange(6.0).view(2, 3), nn.Parameter(torch.ones(2))
        x.tag, x._dynamo_dynamic_indices = "batch", {0, 1}
        parameter.why = {"a": [1, 2.5, None, torch.float16, torch.ones(1)]}
        decorators = types.ModuleType("torch._dynamo.decorators")
        decorators._DimRange = dataclasses.make_dataclass("_DimRange", ["dim", "min", "max"], frozen=True)
        decorators._DimRange.__module__ = decorators.__name__
        with unittest.mock.patch.dict(sys.modules, {decorators.__name__: decorators}):
            x._dynamo_dynamic_range = {decorators._DimRange(0, 2, 9)}
            self.assertTrue(torch.equal(self.call("forward", x), x * 2))
        self.assertTrue(torch.equal(self.call("forward", parameter), parameter * 2))
        del x._dynamo_dynamic_range

        class Own(torch.Tensor):
            pass

        globals()["Own"] = Own
        Own.__qualname__ = "Own"
        done = self.run_binary("run", self.model, "--call", f"forward,{self.save('a.pt', (x.as_subclass(Own),))},{self.path('r.pt')}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Own' is not", done.stderr)

    def test_an_int_is_taken_for_a_float(self):
        self.assertTrue(torch.equal(self.call("forward", torch.ones(2), 3), torch.full((2,), 3.0)))

    def test_values_of_every_kind_come_back(self):
        arguments = (1 << 40, -0.5, True, "text \u00e9\n", None, [1, 2], (3, "x"), {"k": [torch.ones(2), torch.zeros(0)]})
        result = self.call("echo", *arguments)
        self.assertEqual(result[:7], arguments[:7])
        self.assertTrue(torch.equal(result[7]["k"][0], torch.ones(2)))
        self.assertEqual(result[7]["k"][1].shape, (0,))
        self.assertEqual(self.call("echo", 1, 2.0, False, "", 7, [], (0, ""), {})[4:], (7, [], (0, ""), {}))

    def test_a_named_tuple_is_written_as_a_tuple(self):
        result = self.call("named", torch.ones(1))
        self.assertIs(type(result), tuple)
        self.assertEqual(result[1], 3)

    def test_weights_only_can_read_the_result(self):
        self.call("forward", torch.ones(2, 2))
        self.assertTrue(torch.equal(torch.load(self.path("r.pt"), weights_only=True), torch.full((2, 2), 2.0)))

    def test_strided_arguments(self):
        x = torch.arange(12.0).view(3, 4).t()[1:, ::2]
        self.assertTrue(torch.equal(self.call("forward", x), x * 2))

    def test_none_is_returned(self):
        self.assertIsNone(self.call("nothing"))

    def test_calls_keep_the_modules_state(self):
        a = self.save("ones.pt", (torch.ones(2),))
        r1, r2 = self.path("r1.pt"), self.path("r2.pt")
        done = self.run_binary("run", self.model, "--call", f"step,{a},{r1}", "--call", f"step,{a},{r2}", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(torch.load(r1)[0], 1)
        count, seen = torch.load(r2)
        self.assertEqual(count, 2)
        self.assertTrue(torch.equal(seen, torch.full((2,), 2.0)))

    def test_paths_with_commas_and_spaces(self):
        a, r = self.save("a, b.pt", (torch.ones(1),)), self.path("r, s.pt")
        done = self.run_binary("run", self.model, "--call", f"forward,{a},{r}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(torch.equal(torch.load(r), torch.full((1,), 2.0)))

    def test_what_a_script_raises_is_shown_in_one_line(self):
        a = self.save("rows.pt", (torch.ones(3),))
        self.assert_fails("got 3 rows and that is too many", "run", self.model, "--call", f"refuse,{a},{self.path('x.pt')}")
        self.assertFalse(os.path.exists(self.path("x.pt")))

    def test_errors_of_operators_name_the_operator(self):
        a = self.save("bad.pt", (torch.ones(3),))
        self.assert_fails("aten::add_", "run", self.model, "--call", f"step,{a},{self.path('x.pt')}")

    def test_wrong_use(self):
        a = self.save("one.pt", (torch.ones(1),))
        r = self.path("x.pt")
        self.assert_fails("--call", "run", self.model, code=2)
        self.assert_fails("METHOD,A.pt,R.pt", "run", self.model, "--call", "forward")
        self.assert_fails("no_such", "run", self.model, "--call", f"no_such,{a},{r}")
        self.assert_fails("missing.pt", "run", self.path("missing.pt"), "--call", f"forward,{a},{r}")
        self.assert_fails("missing.pt", "run", self.model, "--call", f"forward,{self.path('missing.pt')},{r}")
        self.assert_fails("argument 'x'", "run", self.model, "--call", f"forward,{self.save('s.pt', ('x',))},{r}")
        self.assert_fails("argument 'x'", "run", self.model, "--call", f"forward,{self.save('e.pt', ())},{r}")
        self.assert_fails("arguments", "run", self.model, "--call", f"forward,{self.save('m.pt', (1, 2, 3))},{r}")
        self.assert_fails("", "run", self.model, "--nonsense", code=2)

    def test_flags_of_the_passes(self):
        a, r = self.save("flags_args.pt", (torch.ones(2),)), self.path("flags.pt")
        call = ["--call", f"forward,{a},{r}"]
        for flags in (["--jit-disable=cse,dce"], ["--jit-limit=inline:0", "--jit-limit", "dce:1"], ["--no-optimize"]):
            done = self.run_binary("run", *flags, self.model, *call)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(torch.equal(torch.load(r), torch.full((2,), 2.0)))
        self.assert_fails("nonsense", "run", self.model, "--jit-disable=nonsense", *call)
        self.assert_fails("PASS:N", "run", self.model, "--jit-limit=cse", *call)
        self.assert_fails("cuda", "run", self.model, "--device", "cuda", *call)

    def run_trained(self, method, x, *flags):
        a, r = self.save("train_args.pt", (x,)), self.path("r.pt")
        done = self.run_binary("run", self.trained, *flags, "--call", f"{method},{a},{r}")
        self.assertEqual(done.returncode, 0, done.stderr)
        return torch.load(r)

    def test_grad_mode(self):
        x = torch.tensor([3.0, 4.0], requires_grad=True)
        self.assertEqual(self.run_trained("gradients", x), (False, torch.tensor(11.0)))
        required, gradient = self.run_trained("gradients", x, "--grad")
        self.assertTrue(required)
        self.assertTrue(torch.equal(gradient, torch.tensor([1.0, 2.0])))
        self.assertFalse(self.run_trained("forward", x).requires_grad)
        self.assertTrue(self.run_trained("forward", x.detach(), "--grad").requires_grad)
        self.assertTrue(torch.equal(self.run_trained("forward", x, "--grad").detach(), torch.tensor([3.0, 8.0])))

    def test_training_mode(self):
        x = torch.tensor([[1.0, 10.0], [3.0, 14.0]])
        self.assertTrue(torch.allclose(self.run_trained("normalized", x, "--grad"), x, rtol=1e-4))
        normal = self.run_trained("normalized", x, "--train", "--save", self.path("after.pt"))
        self.assertTrue(torch.allclose(normal, torch.tensor([[-1.0, -1.0], [1.0, 1.0]]), rtol=1e-4))
        after = torch.jit.load(self.path("after.pt"))
        self.assertTrue(torch.allclose(after.norm.running_mean, torch.tensor([0.2, 1.2])))
        self.assertTrue(after.training and after.norm.training)
        kept = self.run_trained("dropped", torch.ones(10000), "--train")
        self.assertEqual(sorted(kept.unique().tolist()), [0.0, 2.0])
        self.assertLess(abs(kept.mean().item() - 1), 0.1)
        self.assertTrue(torch.equal(self.run_trained("dropped", torch.ones(9)), torch.ones(9)))

    def test_inspecting_what_is_trained(self):
        done = self.run_binary("inspect", self.trained, "--train", "--method", "normalized")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("norm.weight  float32[2]  8  (requires a gradient)", done.stdout)
        self.assertIn("norm.running_mean  float32[2]  8\n", done.stdout)
        self.assertIn('prim::GetAttr[name="training"]', done.stdout.split("==== normalized")[-1])
        self.assert_fails("--train", "inspect", self.trained, "--train", "--input", "2", code=2)

    def test_arguments_of_programs_may_be_nested(self):
        program = os.path.join(os.path.dirname(__file__), "..", "..", "pt2", "data", "nested.pt2")
        x, a, k = torch.randn(5, 4), torch.randn(5, 8), torch.randn(5)
        results = []
        for name, arguments in {"flat.pt": (x, a, k), "nested.pt": (x, {"a": a}, k)}.items():
            done = self.run_binary("run", program, "--call", f"forward,{self.save(name, arguments)},{self.path('out_' + name)}")
            self.assertEqual(done.returncode, 0, done.stderr)
            results.append(torch.load(self.path("out_" + name)))
        self.assertTrue(torch.equal(results[0][0], results[1][0]))
        for arguments, message in (((x, {"b": a}, k), "has nothing for the argument 'd.a'"), ((x, {"a": a}), "has nothing for the argument 'k'"),
                                   ((x, {"a": a}, k, k), "has 4 arguments, the program takes 3")):
            self.assert_fails(message, "run", program, "--call", f"forward,{self.save('bad.pt', arguments)},{self.path('r.pt')}")

    def test_saving_where_it_cannot_be(self):
        a = self.save("one.pt", (torch.ones(2),))
        self.assert_fails("/nonexistent/m.pt: cannot be written", "run", self.trained, "--save", "/nonexistent/m.pt", "--call",
                          f"forward,{a},{self.path('r.pt')}")

    def test_damaged_archives(self):
        with open(self.model, "rb") as file:
            content = file.read()
        a = self.save("one.pt", (torch.ones(1),))
        for name, damaged in {"cut": content[: len(content) // 2], "empty": b"", "text": b"not an archive"}.items():
            with open(self.path(name), "wb") as file:
                file.write(damaged)
            self.assert_fails(name, "run", self.path(name), "--call", f"forward,{a},{self.path('x.pt')}")

    def test_inspect_and_bench_know_the_model(self):
        done = self.run_binary("inspect", self.model, "--method", "step")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("seen", done.stdout)
        done = self.run_binary("bench", self.model, "--input", "2,3", "--iterations", "5", "--by-op")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nmul ", done.stdout)
        self.assert_fails("--input", "bench", self.model)


if __name__ == "__main__":
    unittest.main(verbosity=2)
