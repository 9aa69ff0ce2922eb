"""Mistakes of new users, with real models: each is refused, warned of or honored, and no model is READY that
cannot answer."""

import json
import os
import re
import subprocess
import tempfile
import unittest
import urllib.request
from typing import Dict, List, Tuple

import grpc
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.daemon import BINARY, Daemon, pb, request

# An operator of an extension, which a server without the extension does not have.
LIBRARY = torch.library.Library("extension", "DEF")
LIBRARY.define("twice(Tensor x) -> Tensor")
MISSING = "extension::twice"
X = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'


class Later(nn.Module):
    """Reaches the missing operator only with rows of 4."""

    def forward(self, x: Tensor) -> Tensor:
        if x.size(-1) == 4:
            return torch.ops.extension.twice(x)
        return x * 2


class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Later()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.layer(x))


class Layers(nn.Module):
    """Its errors come from operators in PyTorch's modules."""

    def __init__(self):
        super().__init__()
        self.layers, self.norm = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), nn.LayerNorm(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.layers(x))


class LooksUp(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return {1: x}[x.size(0)]


class Refuses(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.size(0) != 2, "no twos"
        if x.size(0) == 3:
            raise ValueError("no threes")
        if x.size(0) == 5:
            raise ValueError
        return x


class AsksForMode(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return x * 2
        return x


class Three(nn.Module):
    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return x, x + 1, x + 2


class Keys(nn.Module):
    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"a": x, "b": x + 1, "c": x + 2}


class Sum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(x.size(0), -1).sum(1)


class Upper(nn.Module):
    def forward(self, words: List[str]) -> List[str]:
        out: List[str] = []
        for word in words:
            out.append(word.upper())
        return out


@torch.jit.script
class Box:
    def __init__(self, x: Tensor):
        self.x = x


# What no request can carry, by the type of the argument; PyTorch calls a class by where it is.
class TakesPairs(nn.Module):
    def forward(self, x: Tensor, more: List[Tuple[Tensor, Tensor]]) -> Tensor:
        return x


class TakesTuple(nn.Module):
    def forward(self, x: Tensor, more: Tuple[Tensor, int]) -> Tensor:
        return x


class TakesNumbersByName(nn.Module):
    def forward(self, x: Tensor, more: Dict[str, int]) -> Tensor:
        return x


class TakesListsOfTensors(nn.Module):
    def forward(self, x: Tensor, more: List[List[Tensor]]) -> Tensor:
        return x


class TakesBox(nn.Module):
    def forward(self, x: Tensor, more: Box) -> Tensor:
        return x + more.x


class TakesDevice(nn.Module):
    def forward(self, x: Tensor, more: torch.device) -> Tensor:
        return x.to(more)


class Times(nn.Module):
    def forward(self, x: Tensor, times: int) -> Tensor:
        return x * times


def words(dims, batch=0, more=""):
    return (f"max_batch_size: {batch}\n" if batch else "") + \
        f'input [ {{ name: "words" data_type: TYPE_STRING dims: [ {dims} ] {more} }} ]\n'


def times(tensor):
    return X + f'input [ {{ name: "times" {tensor} }} ]\n'


# Name: module, config.pbtxt.
MODELS = {
    "late": (Late, ""),
    "late_met": (Late, X),
    "late_not_met": (Late, X.replace("4", "3")),
    "looks_up": (LooksUp, ""),
    "layers": (Layers, ""),
    "refuses": (Refuses, ""),
    "keys": (Keys, ""),
    "subset": (Three, X + 'output [ { name: "OUTPUT__2" }, { name: "OUTPUT__0" } ]\n'),
    "some_keys": (Keys, X + 'output [ { name: "c" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "a" } ]\n'),
    "no_key": (Keys, X + 'output [ { name: "d" data_type: TYPE_FP32 dims: [ 4 ] } ]\n'),
    "other_type": (serve_models.Identity, X + 'output [ { name: "y" data_type: TYPE_INT64 dims: [ 4 ] } ]\n'),
    "other_dims": (serve_models.Identity, X + 'output [ { name: "y" data_type: TYPE_FP32 dims: [ 5 ] } ]\n'),
    "wrong_dims": (serve_models.Linear, X.replace("4", "7")),
    "reshaped": (Sum, 'max_batch_size: 8\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] '
                 'reshape { shape: [ 2, 2 ] } } ]\noutput [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] '
                 'reshape { shape: [ ] } } ]\n'),
    "bad_reshape": (serve_models.Identity, 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] '
                    'reshape { shape: [ 3 ] } } ]\n'),
    "words": (Upper, words("-1")),
    "one_word": (Upper, words("1")),
    "batch_of_words": (Upper, words("1", 8, "reshape { shape: [ ] }")),
    "words_in_batches": (Upper, words("1", 8)),
    "times": (Times, times("data_type: TYPE_INT64 dims: [ 1 ]")),
    "times_two": (Times, times("data_type: TYPE_INT64 dims: [ 2 ]")),
    "times_float": (Times, times("data_type: TYPE_FP32 dims: [ 1 ]")),
    "typo": (serve_models.Identity, "max_batchsize: 4\n"),
    "no_field": (serve_models.Identity, 'input [ { name: "x" data_type: FP32 dims: [ 4 ] } ]\n'),
}


# Whether torch.export can take them apart.
NOT_CARRIED = {TakesPairs: True, TakesTuple: True, TakesNumbersByName: True, TakesListsOfTensors: True, TakesBox: False,
               TakesDevice: False}


def save(module, root, name, config=""):
    folder = os.path.join(root, name, "1")
    os.makedirs(folder)
    module.save(os.path.join(folder, "model.pt"))
    if config:
        with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
            file.write(config)


class MistakesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tensord_mistakes_")
        cls.models = cls.folder.name
        torch.manual_seed(0)
        for name, (module, config) in MODELS.items():
            save(torch.jit.script(module().eval()), cls.models, name, config)
        save(torch.jit.freeze(torch.jit.script(Late().eval())), cls.models, "late_frozen", X)
        save(torch.jit.script(Dropped()), cls.models, "dropout")
        save(torch.jit.trace(Dropped(), torch.rand(1, 4), check_trace=False).eval(), cls.models, "traced_dropout")
        save(torch.jit.script(Dropped().eval()), cls.models, "no_dropout")
        save(torch.jit.script(AsksForMode()), cls.models, "asks_for_mode")
        save(torch.jit.script(serve_models.Linear()), cls.models, "no_matter")
        for module in NOT_CARRIED:
            save(torch.jit.script(module()), cls.models, module.__name__)
        cls.daemon = Daemon(cls.models)
        index = cls.daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=300)
        cls.index = {model.name: (model.state, model.reason) for model in index.models}

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def infer(self, model, *inputs):
        """Shape and values of each output name; inputs are tensors by name or lists of strings."""
        message = pb.ModelInferRequest(model_name=model)
        for name, value in inputs:
            if isinstance(value, Tensor):
                datatype = {torch.float32: "FP32", torch.int64: "INT64"}[value.dtype]
                message.inputs.add(name=name, datatype=datatype, shape=value.shape)
                message.raw_input_contents.append(value.numpy().tobytes())
            else:
                strings, shape = value
                message.inputs.add(name=name, datatype="BYTES", shape=shape)
                message.raw_input_contents.append(
                    b"".join(len(string).to_bytes(4, "little") + string.encode() for string in strings))
        response = self.daemon.stub.ModelInfer(message, timeout=300)
        return [(output.name, list(output.shape), raw) for output, raw in
                zip(response.outputs, response.raw_output_contents)]

    def assert_fails(self, code, message, *args):
        with self.assertRaises(grpc.RpcError) as caught:
            self.infer(*args)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(message, caught.exception.details())

    def assert_state(self, model, state, message=""):
        self.assertEqual(self.index[model][0], state, self.index[model][1])
        if message:
            self.assertIn(message, self.index[model][1])
        else:
            self.assertEqual(self.index[model][1], "")

    def test_operators_that_are_missing(self):
        for model in ("late_met", "late_frozen"):
            self.assert_state(model, "UNAVAILABLE", f"operator {MISSING} is not supported")
            self.assertIn("met by the warm-up with zeros", self.index[model][1])
        for model, width in (("late", 4), ("late_not_met", 3)):
            self.assert_state(model, "READY")
            self.assertEqual(self.infer(model, ("x", torch.ones(3)))[0][1], [3])
        before = self.daemon.metric("tensord_requests_total", model="late", code="UNIMPLEMENTED")
        self.assert_fails(grpc.StatusCode.UNIMPLEMENTED, f"operator {MISSING} is not supported (mistakes_test.py:",
                          "late", ("x", torch.ones(4)))
        self.assertEqual(self.daemon.metric("tensord_requests_total", model="late", code="UNIMPLEMENTED"), before + 1)

    def test_inspect_lists_operators_that_are_put_off(self):
        def inspect(model):
            done = subprocess.run([BINARY, "inspect", os.path.join(self.models, model, "1", "model.pt"), "--summary"],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        for model in ("late", "late_frozen"):
            self.assertRegex(inspect(model), "operators that are missing .*UNIMPLEMENTED\\)\n"
                             f"  operator {MISSING} is not supported  \\(mistakes_test.py:[0-9]+\\)\n")
        self.assertNotIn("operators that are missing", inspect("keys"))

    def test_an_archive_in_training_mode(self):
        for model in ("dropout", "traced_dropout"):
            self.assert_state(model, "READY", "warning: saved in training mode (aten::dropout acts so)")
        self.assert_state("asks_for_mode", "READY", "warning: saved in training mode: ")
        for model in ("no_dropout", "no_matter"):
            self.assert_state(model, "READY")
        self.assertRegex(self.daemon.log_text(), "warn.*model served with a warning model=dropout .*call eval\\(\\)")
        table = subprocess.run([BINARY, "models", "--address", self.daemon.ready["grpc"]], capture_output=True, text=True,
                               timeout=300).stdout
        self.assertRegex(table, "(?m)^dropout +1 +READY +warning: saved in training mode")
        with urllib.request.urlopen(f"http://{self.daemon.ready['metrics']}/status.json", timeout=300) as page:
            shown = {model["name"]: model["reason"] for model in json.load(page)["models"]}
        self.assertIn("saved in training mode", shown["dropout"])

    def test_the_list_of_outputs(self):
        x = torch.arange(4.0)

        def outputs(model):
            return [(name, torch.frombuffer(bytearray(raw), dtype=torch.float32)[0].item())
                    for name, _, raw in self.infer(model, ("x", x))]

        self.assertEqual(outputs("keys"), [("a", 0), ("b", 1), ("c", 2)])
        self.assertEqual(outputs("subset"), [("OUTPUT__2", 2), ("OUTPUT__0", 0)])
        self.assertEqual(outputs("some_keys"), [("c", 2), ("a", 0)])
        self.assert_state("no_key", "UNAVAILABLE", "config.pbtxt lists output 'd', but the model returned 'a', 'b', 'c'")
        self.assert_state("other_type", "UNAVAILABLE", "output 'y' is of type FP32, but config.pbtxt says INT64")
        self.assert_state("other_dims", "READY", "warning: output 'y' has shape [4], but config.pbtxt says [5]")
        metadata = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="subset"), timeout=300)
        self.assertEqual([output.name for output in metadata.outputs], ["OUTPUT__2", "OUTPUT__0"])
        message = request("subset", [("x", "FP32", [4], x.numpy().tobytes())], outputs=["OUTPUT__1"])
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(message, timeout=300)
        self.assertIn("unexpected inference output 'OUTPUT__1'", caught.exception.details())

    def test_dims(self):
        self.assert_state("wrong_dims", "READY", "warning: zeros of the configured shapes (batch 1) fail: ")

    def test_reshape(self):
        name, shape, raw = self.infer("reshaped", ("x", torch.ones(3, 4)))[0]
        self.assertEqual((name, shape), ("y", [3, 1]))
        self.assertEqual(torch.frombuffer(bytearray(raw), dtype=torch.float32).tolist(), [4, 4, 4])
        self.assert_state("reshaped", "READY")
        self.assert_state("bad_reshape", "UNAVAILABLE", "dims and reshape of 'x' must have the same number of elements")

    def test_lists_of_strings(self):
        self.assert_state("words", "READY")
        self.assertEqual(self.infer("words", ("words", (["a", "b"], [2])))[0][1], [2])
        self.assert_state("one_word", "READY", "takes exactly 1; `dims: [ -1 ]` takes any")
        self.assert_state("batch_of_words", "READY")
        self.assertEqual(self.infer("batch_of_words", ("words", (["a", "b"], [2, 1])))[0][1], [2])
        self.assert_state("words_in_batches", "UNAVAILABLE", "Add `reshape { shape: [ ] }`")

    def test_numbers(self):
        self.assert_state("times", "READY")
        self.assertEqual(self.infer("times", ("x", torch.ones(4)), ("times", torch.tensor([3])))[0][1], [4])
        self.assert_state("times_two", "UNAVAILABLE", "input 'times' is int in the script, one element, but its dims have 2")
        self.assert_state("times_float", "UNAVAILABLE", "input 'times' is int in the script, which FP32 cannot feed")

    def test_misspelled_configurations(self):
        self.assert_state("typo", "READY", "warning: config.pbtxt:1: ")
        self.assertIn("max_batchsize", self.index["typo"][1])
        self.assert_state("no_field", "UNAVAILABLE", "FP32")

    def test_what_would_be_right(self):
        self.assert_fails(grpc.StatusCode.NOT_FOUND, "did you mean 'dropout'?", "droput", ("x", torch.ones(4)))
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, "did you mean 'words'?", "words", ("wrods", (["a"], [1])))
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, "; inputs: x FP32[2, 9]", "no_matter", ("x", torch.ones(2, 9)))

    def test_arguments_that_no_request_can_carry(self):
        for module, can_be_exported in NOT_CARRIED.items():
            name = module.__name__
            with self.subTest(name):
                self.assert_state(name, "UNAVAILABLE", "argument 'more'")
                self.assertIn("; give the model a wrapper, a module whose forward takes tensors, numbers", self.index[name][1])
                self.assertEqual("export it by torch.export.save (model.pt2)" in self.index[name][1], can_be_exported)
                self.assert_fails(grpc.StatusCode.UNAVAILABLE, "give the model a wrapper", name, ("x", torch.ones(1)))
                done = subprocess.run([BINARY, "check", os.path.join(self.models, name, "1", "model.pt")], capture_output=True,
                                      text=True, timeout=300)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stdout, "^refused  to be served: .*argument 'more'.*give the model a wrapper")

    def test_a_key_that_a_script_does_not_find_is_no_missing_model(self):
        self.assertEqual(self.infer("looks_up", ("x", torch.ones(1)))[0][1], [1])
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, "KeyError: 2 (mistakes_test.py:", "looks_up", ("x", torch.ones(2)))
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, "; inputs: x FP32[2]", "looks_up", ("x", torch.ones(2)))

    def test_what_a_script_raises_names_the_authors_line(self):
        self.assertEqual(self.infer("refuses", ("x", torch.ones(1)))[0][1], [1])
        with open(__file__) as file:
            lines = [line.strip() for line in file]
        for size, message, line in ((2, "AssertionError: no twos", 'assert x.size(0) != 2, "no twos"'),
                                    (3, "no threes", 'raise ValueError("no threes")'), (5, "the script raised an error", "raise ValueError")):
            place = f"(mistakes_test.py:{lines.index(line) + 1})"
            self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, f"{message} {place}; inputs: x FP32[{size}]", "refuses",
                              ("x", torch.ones(size)))

    def test_an_error_in_a_module_of_pytorch_names_the_authors_line(self):
        self.assert_fails(grpc.StatusCode.INVALID_ARGUMENT, "(mistakes_test.py:", "layers", ("x", torch.ones(2, 5)))

    def test_other_protocols_are_told_which_one_this_is(self):
        with grpc.insecure_channel(self.daemon.ready["grpc"]) as channel:
            for method, said in (("/tensorflow.serving.PredictionService/Predict", "TensorFlow Serving's protocol; this server speaks KServe's v2"),
                                 ("/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping", "TorchServe's"),
                                 ("/inference.GRPCInferenceService/ModelInferr", "did you mean ModelInfer?"),
                                 ("/grpc.health.v1.Health/Chek", "there is no method Chek in grpc.health.v1.Health; did you mean Check?"),
                                 ("/mine.Own/Ask", "there is no service mine.Own; this server")):
                for _ in range(3):
                    with self.assertRaises(grpc.RpcError) as caught:
                        channel.unary_unary(method)(b"", timeout=60)
                    self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
                    self.assertIn(said, caught.exception.details())

    def test_cannot_listen_says_why(self):
        done = subprocess.run([BINARY, "serve", "--model-repository", self.models, "--grpc-port",
                               self.daemon.ready["grpc"].rsplit(":", 1)[1]], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("Address already in use: another process listens there", done.stderr)

    def test_health_over_tls_of_a_plain_server(self):
        for port in ("grpc", "metrics"):
            done = subprocess.run([BINARY, "health", "--tls", "--address", self.daemon.ready[port]], capture_output=True,
                                  text=True, timeout=300)
            self.assertEqual(done.returncode, 1)
            self.assertIn("the server does not speak TLS", done.stderr)

    def test_addresses_of_another_protocol(self):
        def said(*command):
            done = subprocess.run([BINARY, *command], capture_output=True, text=True, timeout=300)
            return done.returncode, done.stdout + done.stderr

        code, error = said("models", "--address", "http://" + self.daemon.ready["grpc"])
        self.assertEqual(code, 2)
        self.assertIn("the protocol is gRPC, not HTTP: HOST:PORT, got 'http://", error)
        self.assertIn("an HTTP port is there", said("models", "--address", self.daemon.ready["metrics"])[1])
        for port in ("grpc", "metrics"):
            self.assertEqual(said("health", "--live", "--address", f"http://{self.daemon.ready[port]}/")[0], 0)
        self.assertIn("expected HOST:PORT", said("health", "--address", f"https://{self.daemon.ready['metrics']}")[1])
        self.assertNotIn("expected HOST:PORT", said("health", "--address", f"dns:///{self.daemon.ready['grpc']}")[1])

    def test_readiness_says_where_to_look(self):
        done = subprocess.run([BINARY, "health", "--address", self.daemon.ready["metrics"]], capture_output=True,
                              text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("`tensord models` says", done.stderr)
        for model, code in (("words", 0), ("no_field", 1)):
            done = subprocess.run([BINARY, "health", "--address", self.daemon.ready["metrics"], "--model", model],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)


class LayoutMistakesTest(unittest.TestCase):
    """Mistakes with folders, as their user sees them; tests/server/repository/repository_hints_test.cpp has the
    others."""

    def serve(self, repository):
        with Daemon(repository) as daemon:
            table = subprocess.run([BINARY, "models", "--address", daemon.ready["grpc"]], capture_output=True, text=True,
                                   timeout=300).stdout
            health = subprocess.run([BINARY, "health", "--address", daemon.ready["metrics"]], capture_output=True,
                                    text=True, timeout=300)
            return table, daemon.log_text(), health.returncode

    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            save(torch.jit.script(serve_models.Identity()), os.path.join(folder, "above", "models"), "identity")
            table, log, health = self.serve(os.path.join(folder, "above"))
            self.assertRegex(table, "(?m)^models +UNAVAILABLE +no version is there: 'models/identity' has versions")
            self.assertEqual(health, 1)
            self.assertIn("--model-repository takes its path", log)
            models = os.path.join(folder, "above", "models")
            os.rename(os.path.join(models, "identity", "1", "model.pt"), os.path.join(models, "loose.pt"))
            os.rmdir(os.path.join(models, "identity", "1"))
            os.rmdir(os.path.join(models, "identity"))
            table, log, health = self.serve(models)
            self.assertIn("the model repository has no models: expected NAME/1/model.pt", log)
            self.assertRegex(re.sub(r"\\", "", log), "'loose.pt' is not served: expected 'loose/1/model.pt'")

    def test_an_option_that_is_not_given_is_explained(self):
        for given, said in (((), "MODEL is required (see --help)"),
                            (("m.pt",), "--output is required; -o,--output: The TorchScript archive to write (see --help)")):
            run = subprocess.run([BINARY, "quantize", *given], capture_output=True, text=True, timeout=60)
            self.assertEqual((run.returncode, run.stderr), (2, f"tensord: {said}\n"))


if __name__ == "__main__":
    unittest.main()
