"""Commands about a model's file and about the binary itself: check, config, inspect, ops, options, and what they say of mistakes."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import torch
from torch import Tensor, nn

BINARY = os.environ["TENSORD_BINARY"]


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
        self.assertNotIn("sets no option", said("models", TENSORD_ADDRESS="127.0.0.1:1", TENSORD_TOKEN="a", TENSORD_CONFIG=""))
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
