"""The examples of `--help`, as docs/commands.md has them, and the commands of docs/runbooks: each runs as it is written, with the models and
files that it names."""

import json
import os
import re
import shlex
import subprocess
import tempfile
import unittest
from typing import List

import numpy as np
import torch
from torch import Tensor, nn

from tests.docs.pages import ROOT, blocks
from tests.e2e.daemon_process import BINARY, DaemonProcess

PICTURE = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]\noutput [ { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] } ]\n'
CONFIGS = {
    "resnet50": "max_batch_size: 8\nversion_policy { all { } }\n" + PICTURE,
    "scale": 'input [ { name: "numbers" data_type: TYPE_FP32 dims: [ -1 ] } ]\noutput [ { name: "scaled" data_type: TYPE_FP32 dims: [ -1 ] } ]\n',
    "add": "",
    "bert": 'max_batch_size: 4\ninput [ { name: "ids" data_type: TYPE_INT64 dims: [ -1 ] } ]\noutput [ { name: "states" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]\n',
    "chat": 'input [ { name: "prompt" data_type: TYPE_STRING dims: [ -1 ] } ]\noutput [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
            "model_transaction_policy { decoupled: true }\n",
    "digits": "",
}


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.mean(dim=[2, 3]))


class Scale(nn.Module):
    def forward(self, numbers: Tensor) -> Tensor:
        return numbers * 2


class Add(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a + b


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids % 16)


class Chat(nn.Module):
    """Says each word of the prompt."""

    def forward(self, prompt: List[str]) -> List[List[str]]:
        said: List[List[str]] = []
        for word in prompt[0].split(" "):
            said.append([word])
        return said


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, images: Tensor) -> Tensor:
        return self.layer(images)


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)

    @torch.jit.export
    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.forward(x) - y).square().mean()


MODELS = {"resnet50": Pictures, "scale": Scale, "add": Add, "bert": Bert, "chat": Chat, "digits": Digits}


def examples():
    """Each example without what is said beside it."""
    for block in blocks(ROOT / "docs" / "commands.md"):
        for line in block.code.splitlines():
            if line.startswith("tensord "):
                yield re.split(r"\s{3,}", line)[0]


class HelpExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.make_models()
        cls.make_files()
        cls.daemon = DaemonProcess(cls.path("models"), "--model-control-mode", "explicit", "--load-model", "*", "--training-dir", cls.path("jobs"),
                                   "--training-data", cls.path("data"), "--training-nice", "0")
        cls.addClassCleanup(cls.daemon.__exit__)
        cls.address = cls.daemon.ready["grpc"]

    @classmethod
    def path(cls, *names):
        return os.path.join(cls.folder, *names)

    @classmethod
    def make_models(cls):
        torch.manual_seed(0)
        for name, module in MODELS.items():
            archive = torch.jit.script(module().eval())
            for version in ("1", "2") if name == "resnet50" else ("1",):
                os.makedirs(cls.path("models", name, version))
                archive.save(cls.path("models", name, version, "model.pt"))
            with open(cls.path("models", name, "config.pbtxt"), "w") as config:
                config.write(CONFIGS[name])
            archive.save(cls.path(f"{name}.pt"))

    @classmethod
    def make_files(cls):
        os.makedirs(cls.path("data"))
        os.makedirs(cls.path("bin"))
        os.symlink(BINARY, cls.path("bin", "tensord"))
        os.makedirs(cls.path("repository", "bert", "1"))
        os.makedirs(cls.path("repository", "resnet50"))
        cls.tensord("convert", "bert.pt", "--to", "onnx", "-o", "repository/bert/1/model.onnx", "--input", "1,8:i64", "--dynamic", "ids:0,1")
        images = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
        np.savez(cls.path("data", "digits.npz"), images=images, labels=(images[:, 0] > 0).astype(np.int64))
        np.savez(cls.path("data", "line.npz"), x=images[:, :1], y=3 * images[:, :1] - 1)
        np.save(cls.path("image.npy"), np.zeros((1, 3, 224, 224), np.float32))
        np.save(cls.path("a.npy"), np.ones((1, 1), np.float32))
        np.savez(cls.path("in.npz"), ids=np.arange(8)[None])
        torch.save((torch.zeros(1, 3, 224, 224),), cls.path("a.pt"))
        torch.jit.script(Scale()).save(cls.path("m.pt"))
        with open(cls.path("c.json"), "w") as config:
            json.dump({"input": [{"name": "numbers", "data_type": "TYPE_FP32", "dims": [-1]}],
                       "output": [{"name": "scaled", "data_type": "TYPE_FP32", "dims": [-1]}]}, config)
        with open(cls.path("job.json"), "w") as job:
            json.dump({"data": {"file": "digits.npz"}, "loss": {"builtin": "cross_entropy", "label": "labels"}, "epochs": 2,
                       "evaluation": {"fraction": 0.25, "metrics": ["accuracy"]}}, job)
        with open(cls.path("train_line"), "w") as program:
            program.write('#!/bin/sh\necho "rank $RANK of $WORLD_SIZE"\n')
        os.chmod(cls.path("train_line"), 0o755)

    @classmethod
    def tensord(cls, *arguments):
        environment = {**os.environ, "TENSORD_ADDRESS": cls.address} if hasattr(cls, "address") else None
        done = subprocess.run([BINARY, *arguments], cwd=cls.folder, env=environment, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode != 0:
            raise AssertionError(f"tensord {shlex.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_commands_of_the_runbooks(self):
        job = self.tensord("train", "digits", "--data", "digits.npz", "--label", "labels", "--loss", "cross_entropy", "--epochs", "1", "--detach").split()[-1]
        values = {"HOST:8001": self.address, "HOST:8002": self.daemon.ready["metrics"], "JOB": job}
        found = [line for page in sorted((ROOT / "docs" / "runbooks").glob("*.md")) for block in blocks(page) if block.run_by
                 for line in block.code.splitlines()]
        self.assertGreater(len(found), 5)
        for command in found:
            if command.startswith(("systemctl", "#")):
                continue
            with self.subTest(command):
                for name, value in values.items():
                    command = command.replace(name, value)
                done = subprocess.run(["bash", "-c", f'PATH="{self.path("bin")}:$PATH"; {command}'], capture_output=True, text=True, timeout=120,
                                      env={**os.environ, "TENSORD_ADDRESS": self.address}, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout)

    def prepare(self, words):
        """What an example's files have to be, where two examples use one name for different things; returns its words."""
        for i, word in enumerate(words):
            if re.fullmatch(r"digits-[0-9a-f]{6}", word):
                words[i] = json.loads(self.tensord("jobs", "list", "--model", "digits", "--json").splitlines()[0])["id"]
        if words[:2] == ["jobs", "rollback"]:
            self.tensord("train", "digits", "--data", "digits.npz", "--label", "labels", "--loss", "cross_entropy", "--epochs", "1", "--publish", "at_end")
        if "--upload" in words:
            torch.jit.script(Line()).save(self.path("new.pt"))
        if "--weights" in words:
            torch.save(Pictures().state_dict(), self.path("new.pt"))
        return [self.address if word == "127.0.0.1:8001" else word for word in words]

    def test_each_runs_as_it_is_written(self):
        found = list(examples())
        self.assertGreater(len(found), 25)
        for example in found:
            with self.subTest(example):
                words = self.prepare(shlex.split(example)[1:])
                printed = self.tensord(*words)
                written = next((words[i + 1] for i, word in enumerate(words) if word in ("-o", "--save", "--tensorboard")), None)
                if written:
                    self.assertTrue(os.listdir(self.path(written)) if os.path.isdir(self.path(written)) else os.path.getsize(self.path(written)))
                elif words[0] != "unload":
                    self.assertTrue(printed, "nothing was printed")

    def test_commands_without_examples_are_known(self):
        """A new command shows how it is called, or says here why it need not."""
        shown = {example.split()[1] for example in examples()}
        with_help = {line.split()[2] for line in (ROOT / "docs" / "commands.md").read_text().splitlines() if line.startswith("### tensord ")}
        self.assertEqual(with_help - shown, {"check", "run", "inspect", "convert", "ops", "devices", "health", "fetch"})


if __name__ == "__main__":
    unittest.main()
