"""`tensord run` as a command: paths, state, values of every kind, errors."""

import dataclasses
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile
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


class Teller(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.layer(x) + y


class Factors(nn.Module):
    def forward(self, x: Tensor):
        return torch.linalg.eigvals(x + 1)


class CommandsTest(unittest.TestCase):
    """The output of the commands about a model's file and about the binary itself."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        torch.jit.script(Teller().eval()).save(cls.path("model.pt"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def run_binary(self, *args, code=0, env=None):
        done = subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=300, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_what_cuda_has_by_copies(self):
        torch.jit.script(Factors()).save(self.path("factors.pt"))
        self.assertIn("operators that CUDA has by a copy to the host and back (forward)\n"
                      "  aten::linalg_eigvals: cuSOLVER is not called for it yet\n", self.run_binary("inspect", self.path("factors.pt")))
        self.assertNotIn("by a copy to the host", self.run_binary("inspect", self.path("model.pt")))

    def test_operators_one_a_line(self):
        lines = self.run_binary("ops").splitlines()
        self.assertEqual([line for line in lines if "::" not in line.split("(")[0]], [])
        by_copies = self.run_binary("ops", "--table", "aten::linalg_eigvals")
        self.assertRegex(by_copies, "Dense  +CUDA.*# the CPU's, by a copy to the host and back: cuSOLVER is not called for it yet")
        self.assertIn("cuda by a copy to the host: cuSOLVER is not called for it yet", self.run_binary("ops", "aten::linalg_eigvals"))
        table = self.run_binary("ops", "--table", "aten::add.Tensor")
        self.assertRegex(table, r"(?m)^aten::add.Tensor$")
        for cell in (r"Autograd +all +core/autograd/recorder.cpp:\d+", r"Dense +CPU[^\n]* +kernels/pointwise/\S+:\d+",
                     r"Complex +CPU[^\n]* +kernels/complex/arithmetic.cpp:\d+", r"SparseCOO +all +kernels/sparse/arithmetic.cpp:\d+"):
            self.assertRegex(table, cell)
        self.assertIn("no operator's name starts with 'nosuch'", self.run_binary("ops", "nosuch", code=1))
        self.assertIn("did you mean aten::conv2d?", self.run_binary("ops", "aten::convv2d", code=1))

    def test_near_names(self):
        for args, near in ((("serv",), "did you mean serve?"), (("run", self.path("model.pt"), "--cal", "x"), "did you mean --call?"),
                           (("serve", "--model-repositry", "/x"), "did you mean --model-repository?")):
            self.assertIn(near, self.run_binary(*args, code=2))
        self.assertIn("did you mean 'forward'?", self.run_binary("run", self.path("model.pt"), "--method", "forwrd", "--input", "1,4",
                                                                 code=1))

    def test_inspect_is_one_page(self):
        self.assertLess(self.run_binary("inspect", self.path("model.pt")).count("\n"), 40)
        self.assertNotIn("==== forward", self.run_binary("inspect", self.path("model.pt")))
        self.assertIn("==== forward, before the passes", self.run_binary("inspect", self.path("model.pt"), "--all"))

    def test_one_grammar_of_inputs(self):
        x = torch.tensor([[1.0, 2, 3, 4]])
        import numpy as np
        np.save(self.path("x.npy"), x.numpy())
        np.savez(self.path("both.npz"), x=x.numpy(), y=np.float32([0.5]))
        model = torch.jit.load(self.path("model.pt"))
        wanted = model(x, torch.tensor([0.5]))
        for inputs in (["x=" + self.path("x.npy"), "y=[0.5]"], [self.path("both.npz")], ["[[1.0, 2, 3, 4]]", "y=[0.5]"]):
            flags = [flag for argument in inputs for flag in ("--input", argument)]
            self.run_binary("run", self.path("model.pt"), *flags, "--output", self.path("out.pt"))
            torch.testing.assert_close(torch.load(self.path("out.pt")), wanted)
            self.run_binary("bench", self.path("model.pt"), *flags, "--iterations", "1", "--latency-only")
        said = self.run_binary("run", self.path("model.pt"), "--input", "2,4", "--input", "y=random:1:float32")
        self.assertTrue(said.startswith("float32[2, 2]\n[["), said)
        for argument, message in (("z=1,4", "did you mean"), ("x=1,4:f33", "no type is called 'f33'"), ("x=1,,4", "bad shape"),
                              ("x=text:a", "a tensor is made of numbers"), ("x=[[1], [1, 2]]", "not all of the same length")):
            self.assertIn(message if argument[0] == "x" else "has no argument 'z'",
                          self.run_binary("run", self.path("model.pt"), "--input", argument, code=1))

    def test_check_says_all_that_is_in_the_way(self):
        self.assertIn("it runs: forward(Tensor x, Tensor y) -> Tensor",
                      self.run_binary("check", self.path("model.pt"), "--input", "1,4", "--input", "1,2"))
        self.assertIn("with these inputs: ", self.run_binary("check", self.path("model.pt"), "--input", "1,5", "--input", "1", code=1))
        for version in ("3", "12"):
            os.makedirs(self.path(f"net/{version}"))
            shutil.copy(self.path("model.pt"), self.path(f"net/{version}/model.pt"))
        for folder in ("net", "net/12"):
            self.assertIn(f"{folder}: is a folder; its model is the file {self.path('net/12/model.pt')}",
                          self.run_binary("check", self.path(folder), code=1))
        os.makedirs(self.path("bad/code"), exist_ok=True)
        with zipfile.ZipFile(self.path("model.pt")) as good, zipfile.ZipFile(self.path("bad.pt"), "w") as bad:
            for name in good.namelist():
                content = good.read(name)
                bad.writestr(name, content.replace(b"    layer = self.layer\n",
                                                   b"    layer = self.layer\n    p = ops.mine.first(x)\n    q = torch.nosuch(y)\n"
                                                   b"    r = torch.add(p, q)\n"))
        said = self.run_binary("check", self.path("bad.pt"), code=1)
        self.assertIn("operator mine::first is not supported", said)
        self.assertIn("operator aten::nosuch is not supported", said)
        self.assertEqual(said.count("refused  "), 2, said)

    def test_check_of_the_other_formats(self):
        """Each refusal at once, those behind a node that is refused itself, too."""
        class Chain(nn.Module):
            def forward(self, x):
                return torch.sigmoid(torch.relu(nn.functional.pad(x, [1, 1], "reflect")))

        archive, files = self.path("chain.pt"), {end: self.path(f"chain.{end}") for end in ("onnx", "pt2")}
        torch.jit.script(Chain()).save(archive)
        for end, file in files.items():
            self.run_binary("convert", archive, "--to", end, "--input", "1,2,4", "-o", file)
            self.assertEqual(self.run_binary("check", file), "it runs: forward(Tensor x) -> Tensor\n")
            self.run_binary("check", file, "--input", "1,2,4")
            self.assertIn("refused  with these inputs: ", self.run_binary("check", file, "--input", "5", code=1))
        bad = self.path("bad.onnx")
        with open(files["onnx"], "rb") as good, open(bad, "wb") as out:
            out.write(good.read().replace(b"reflect", b"reflexx").replace(b"Relu", b"Rxlu").replace(b"Sigmoid", b"Sigmxid"))
        said = self.run_binary("check", bad, code=1).splitlines()
        for line, texts in zip(said, (("(Pad): attribute 'mode' is reflexx; values that are taken: constant, reflect",),
                                      ("(Rxlu): operator Rxlu of domain ai.onnx", "is not supported"), ("operator Sigmxid",))):
            for text in ("refused  ", "bad.onnx: node '", *texts):
                self.assertIn(text, line)
        self.assertEqual(len(said), 3, said)
        bad = self.path("bad.pt2")
        with zipfile.ZipFile(files["pt2"]) as good, zipfile.ZipFile(bad, "w") as out:
            for name in good.namelist():
                out.writestr(name, good.read(name).replace(b"aten.relu.default", b"aten.rxlu.default")
                             .replace(b"aten.sigmoid.default", b"mine.sigmoid.default"))
        said = self.run_binary("check", bad, code=1)
        for name in ("aten::rxlu", "mine::sigmoid"):
            self.assertIn(f"operator {name} is not supported", said)
        self.assertEqual(said.count("refused  "), 2, said)

    def test_a_first_configuration(self):
        said = self.run_binary("config", self.path("model.pt"), "--example", "x=2,4:f32", "--example", "y=2,2", "--name", "teller")
        for line in ('name: "teller"', 'platform: "pytorch_libtorch"', "max_batch_size: 8", "dims: [ 4 ]", "dims: [ 2 ]",
                     "data_type: TYPE_FP32"):
            self.assertIn(line, said)
        said = self.run_binary("config", self.path("model.pt"), "--example", "x=2,4:f32", "--example", "y=1", "-o", self.path("c.pbtxt"))
        with open(self.path("c.pbtxt")) as file:
            self.assertIn("max_batch_size: 0", file.read())
        self.assertIn("is there already", self.run_binary("config", self.path("model.pt"), "--example", "x=2,4", "--example", "y=1",
                                                          "-o", self.path("c.pbtxt"), code=1))
        self.assertIn("--example x=", self.run_binary("config", self.path("model.pt"), code=1))

    def test_the_type_of_made_up_inputs_is_the_models(self):
        path = self.path("embedding.pt")
        torch.jit.script(nn.Embedding(16, 4).eval()).save(path)
        self.assertIn("--example input=1,16 or a file", self.run_binary("config", path, code=1))
        self.assertIn("data_type: TYPE_INT64", self.run_binary("config", path, "--example", "3"))
        self.run_binary("check", path, "--input", "2,3")
        self.run_binary("bench", path, "--input", "2,3", "--seconds", "0.1", "--latency-only")
        self.assertIn("Expected tensor for argument #1 'indices'", self.run_binary("check", path, "--input", "2,3:f32", code=1))
        torch.jit.script(nn.Embedding(2, 4).eval()).save(path)
        self.assertIn("made up, 0 to 15: give real ones, such as --example input='[1, 2]'",
                      self.run_binary("config", path, "--example", "30", code=1))
        self.run_binary("config", path, "--example", "[0, 1]")

    def test_a_check_of_a_repository_reads_first_bytes(self):
        repository = self.path("repository_of_bytes")
        contents = {"text": b"hello, this is no model", "short": b"hello", "empty": b"", "zeros": b"\0" * 100}
        with open(self.path("model.pt"), "rb") as model:
            contents["cut"] = model.read()[:-40]
        for name, data in contents.items():
            os.makedirs(os.path.join(repository, name, "1"), exist_ok=True)
            with open(os.path.join(repository, name, "1", "model.pt"), "wb") as file:
                file.write(data)
        for name, file in (("good", "model.pt"), ("zip_as_onnx", "model.onnx")):
            os.makedirs(os.path.join(repository, name, "1"), exist_ok=True)
            shutil.copy(self.path("model.pt"), os.path.join(repository, name, "1", file))
        said = self.run_binary("serve", "--check", "--model-repository", repository, code=1)
        for name, what in (("text", "is a text file that begins with 'hello, this is no model'"), ("short", "is not a zip archive"),
                           ("empty", "is empty"), ("zeros", "is not a zip archive"), ("cut", "is not a zip archive, or is truncated"),
                           ("zip_as_onnx", "is a zip archive, as torch.jit.save"), ("good", "good/1: ok")):
            self.assertRegex(said, f"(?m)^{name}/1: .*{what}" if name != "good" else "(?m)^good/1: ok$")
    def test_options_from_the_environment_and_a_file(self):
        repository = self.path("repository")
        os.makedirs(os.path.join(repository, "good", "1"), exist_ok=True)
        os.makedirs(os.path.join(repository, "bad"), exist_ok=True)
        with open(os.path.join(repository, "bad", "config.pbtxt"), "w") as file:
            file.write("input [ {{ ]")
        with open(self.path("model.pt"), "rb") as model, open(os.path.join(repository, "good", "1", "model.pt"), "wb") as file:
            file.write(model.read())
        said = self.run_binary("serve", "--model-repository", repository, "--check", code=1)
        self.assertIn("good/1: ok\n", said)
        self.assertIn("bad: ", said)
        os.remove(os.path.join(repository, "bad", "config.pbtxt"))
        os.rmdir(os.path.join(repository, "bad"))
        self.run_binary("serve", "--check", env={"TENSORD_SERVE_MODEL_REPOSITORY": repository})
        with open(self.path("options.toml"), "w") as file:
            file.write(f'[serve]\nmodel-repository = ["{repository}"]\nworkers = 2\n')
        self.run_binary("--config", self.path("options.toml"), "serve", "--check")
        self.run_binary("serve", "--check", env={"TENSORD_CONFIG": self.path("options.toml")})
        self.assertIn("workers", self.run_binary("serve", "--check", "--workers", "0", code=2,
                                                 env={"TENSORD_CONFIG": self.path("options.toml")}))
        self.assertIn("--workers", self.run_binary("serve", "--check", "--model-repository", repository, code=2,
                                                   env={"TENSORD_SERVE_WORKERS": "many"}))

    def test_mistakes_in_a_file_of_options(self):
        repository = self.path("repository_of_options")
        os.makedirs(repository, exist_ok=True)
        path = self.path("wrong.toml")

        def check(text, code=2):
            with open(path, "w") as file:
                file.write(text)
            return self.run_binary("--config", path, "serve", "--check", "--model-repository", repository, code=code)

        for text, line, said in (
                ("[serve]\nmodel-repozitory = 1\n", 2, "there is no option 'model-repozitory' of [serve]; did you mean 'model-repository'?"),
                ("[serv]\nhttp-port = 1\n", 1, "[serv] is the name of no command; did you mean 'serve'? There are "),
                ("\n[jobs.lst]\n", 2, "[lst] is the name of no command; did you mean 'list'?"),
                ("[jobs.list]\njsn = true\n", 2, "there is no option 'jsn' of [jobs.list]; did you mean 'json' of [jobs]?"),
                ("http-port = 1\n", 1, "there is no option 'http-port' before the first section; it is an option of [serve]"),
                ("[serve]\nqqqqqqqq = 1\n", 2, "`tensord serve --help` lists what there is"),
                ("serve.http-prt = 1\n", 1, "did you mean 'http-port'?"),
                ("[serve\n", 1, "expected a section such as [serve], alone on its line, got '[serve'"),
                ("[serve]\nhttp-port: 1\n", 2, "expected NAME = VALUE or [COMMAND], got 'http-port: 1'"),
                ("[serve]\nhttp-port =\n", 2, "'http-port' has no value"),
                ('[serve]\nload-model = ["a",\nworkers = 2\n', 2, "the list has no ]"),
                ('[serve]\nload-model = ["a",\n[train]\n', 2, "the list has no ]"),
                ('[serve]\nload-model = ["a"', 2, "the list has no ]"),
                ('[serve]\nid = "a#b"\n', 2, "cannot have a #"),
                ('[serve]\nid = "a\n', 2, "the string does not end")):
            with self.subTest(text):
                error = check(text)
                self.assertIn(f"{path}:{line}: ", error)
                self.assertIn(said, error)
        check('# all\n[serve] # one\nmodel-control-mode = "poll" # comment\nlog-frequency = [ # list\n  "7", # one\n  "8"\n]\n; old\n'
              'trace-config = ["mode=triton", "rate=7"]\nworkers = 2\n', code=0)
        self.assertIn("--trace-config must be [MODE,]KEY=VALUE, got 'x'", check('[serve]\ntrace-config = [\n  "mode=triton",\n  "x"\n]\n'))
        self.assertIn("--config stands before the command: tensord --config … serve",
                      self.run_binary("serve", "--config", path, "--check", code=2))

    def test_files_that_are_not_there(self):
        for command in (("run", self.path("modle.pt"), "--input", "[1]"), ("inspect", self.path("modle.pt")), ("check", self.path("modle.pt")),
                        ("config", self.path("modle.pt"), "--example", "1")):
            self.assertIn(f"did you mean '{self.path('model.pt')}'?", self.run_binary(*command, code=1))
        os.makedirs(self.path("repository_of_names"), exist_ok=True)
        said = self.run_binary("serve", "--model-repository", self.path("repository_of_nmaes"), "--check", code=1)
        self.assertIn(f"did you mean '{self.path('repository_of_names')}'?", said)
        self.assertIn("no/tokens", self.run_binary("serve", "--model-repository", self.path("repository_of_names"), "--check",
                                                   "--access-tokens", "no/tokens", code=1))

    def test_variables_that_set_nothing(self):
        repository = self.path("repository_of_variables")
        os.makedirs(os.path.join(repository, "lin"), exist_ok=True)
        serve = ("serve", "--model-repository", repository, "--check")

        def said(*command, **env):
            return subprocess.run([BINARY, *command], env={**os.environ, **env}, capture_output=True, text=True, timeout=120).stderr

        self.assertIn("TENSORD_SERVE_HTTP_PRT sets no option of tensord serve; did you mean TENSORD_SERVE_HTTP_PORT?",
                      said(*serve, TENSORD_SERVE_HTTP_PRT="1"))
        self.assertIn("did you mean TENSORD_SERVE_HTTP_PORT?", said(*serve, TENSORD_HTTP_PORT="1"))
        for ignored in ({"TENSORD_SERVE_HTTP_PORT": "1"}, {"TENSORD_CUDA": "off"}, {"TENSORD_JOBS_JSN": "1"}, {"TENSORD_ADDRESS": "a:1"}):
            self.assertNotIn("sets no option", said(*serve, **ignored))
        self.assertIn("did you mean TENSORD_JOBS_JSON?", said("jobs", "list", TENSORD_JOBS_JSN="1"))
        wrong = said(*serve[:-1], "--load-model", "lni", TENSORD_SERVE_HTTP_PRT="1")
        self.assertIn("warning environment warning=\"the variable TENSORD_SERVE_HTTP_PRT", wrong)
        self.assertIn("--load-model lni: model not found in any model repository; did you mean 'lin'?", wrong)
        self.assertNotIn("listening", wrong)
        self.assertIn("did you mean 'lin'?", said(*serve, "--load-model", "lni"))

    def test_what_a_file_is(self):
        module = nn.Linear(3, 2)
        files = {"state.pt": lambda path: torch.save(module.state_dict(), path), "module.pt": lambda path: torch.save(module, path),
                 "old.pt": lambda path: torch.save(module.state_dict(), path, _use_new_zipfile_serialization=False),
                 "checkpoint.pt": lambda path: torch.save({"epoch": 1, "model": module.state_dict()}, path)}
        contents = {"lfs.onnx": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                 "lfs.pt": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
                 "page.pt": "<!DOCTYPE html><html>not found</html>", "code.pt": "import torch\nclass M(torch.nn.Module):\n    pass\n"}
        for name, write in files.items():
            write(self.path(name))
        for name, content in contents.items():
            with open(self.path(name), "w") as file:
                file.write(content)
        for name, said in (("state.pt", "it is a state dict"), ("module.pt", "it is a pickled module"),
                           ("old.pt", "torch.save before PyTorch 1.6"), ("checkpoint.pt", "a checkpoint perhaps"),
                           ("lfs.onnx", "git lfs pull"), ("lfs.pt", "git lfs pull"), ("page.pt", "get the file again"),
                           ("code.pt", "model.py")):
            self.assertIn(said, self.run_binary("inspect", self.path(name), code=1))

    def test_errors_are_at_the_line_of_the_author(self):
        code = "import torch\n\n\nclass M(torch.nn.Module):\n    def forward(self, x):\n        y = x * 2\n        z = torch.mm(y,\n" \
               "                     y)\n        return z\n\n\ntorch.jit.script(M()).save('{0}')\n"
        with open(self.path("author.py"), "w") as file:
            file.write(code.format(self.path("author.pt")))
        subprocess.run([sys.executable, self.path("author.py")], check=True)
        said = self.run_binary("run", self.path("author.pt"), "--input", "2,3", code=1)
        self.assertIn("author.py:7", said)
        self.assertNotIn(self.folder.name, said.replace(self.path("author.pt"), ""))
        self.assertNotIn("__torch__.py", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
