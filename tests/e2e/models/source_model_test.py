"""Models of TorchScript source (model.py) with a state dict or a safetensors file beside them: run, served, trained, published, saved."""

import json
import struct
import subprocess
import unittest
from pathlib import Path

import torch
from torch import nn

from tests.e2e.daemon import BINARY, pb, request
from tests.e2e.training.training_daemon import TrainingDaemon

SOURCE = '''"""Written by hand."""

def halved(x: Tensor) -> Tensor:
    return x * 0.5


class Linear(Module):
    __parameters__ = ["weight", "bias"]
    weight: Tensor
    bias: Optional[Tensor]

    def forward(self, x: Tensor) -> Tensor:
        return torch.linear(x, self.weight, self.bias)


class Net(Module):
    __buffers__ = ["mean"]
    first: Linear
    second: Linear
    mean: Tensor
    rounds: int = 2
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        x = x - self.mean
        for i in range(self.rounds):
            x = torch.relu(self.first(x))
        if x.max() > 100.0:
            x = halved(x)
        return self.second(x)

    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return ((self.forward(x) - y) ** 2).mean()
'''
CONFIG = """platform: "pytorch_libtorch"
max_batch_size: 8
input [{name: "x" data_type: TYPE_FP32 dims: [4]}]
output [{name: "y" data_type: TYPE_FP32 dims: [2]}]
"""


class Net(nn.Module):
    """The module that the source describes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2, bias=False)
        self.register_buffer("mean", torch.randn(4))

    def forward(self, x):
        x = x - self.mean
        for _ in range(2):
            x = torch.relu(self.first(x))
        return self.second(x)


class SourceModelTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.net, self.x, self.y = Net(), torch.randn(32, 4), torch.randn(32, 2)
        self.daemon = TrainingDaemon()
        self.addCleanup(self.daemon.close)
        self.model = Path(self.daemon.models) / "net"
        (self.model / "1").mkdir(parents=True)
        (self.model / "config.pbtxt").write_text(CONFIG)
        (self.model / "1" / "model.py").write_text(SOURCE)
        torch.save(self.net.state_dict(), self.model / "1" / "weights.pt")

    def run_file(self, path, x):
        folder = Path(self.daemon.folder.name)
        torch.save((x,), folder / "in.pt")
        subprocess.run([BINARY, "run", path, "--call", f"forward,{folder}/in.pt,{folder}/out.pt", "--save", folder / "saved.pt"], check=True)
        return torch.load(folder / "out.pt"), torch.jit.load(str(folder / "saved.pt"))

    def test_run_and_saved_as_an_archive(self):
        out, saved = self.run_file(self.model / "1" / "model.py", self.x)
        want = self.net(self.x)
        torch.testing.assert_close(out, want.detach())
        torch.testing.assert_close(saved(self.x), want)
        self.assertEqual([name for name, _ in saved.named_parameters()], ["first.weight", "first.bias", "second.weight"])
        self.assertEqual([name for name, _ in saved.named_buffers()], ["mean"])

    def test_trained_published_and_served(self):
        self.daemon.save_data("rows.pt", x=self.x, y=self.y)
        self.daemon.start()
        out = self.daemon.client("train", "net", "--data", "rows.pt", "--input", "x=x", "--input", "y=y", "--loss-method", "training_step",
                                 "--optimizer", "sgd", "--lr", "0.05", "--steps", "8", "--batch-size", "32", "--publish", "at_end", "--json")
        last = json.loads(out.strip().split("\n")[-1])
        self.assertIn("COMPLETED", json.dumps(last))
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
        for _ in range(8):
            optimizer.zero_grad()
            ((self.net(self.x) - self.y) ** 2).mean().backward()
            optimizer.step()
        self.assertEqual(sorted(file.name for file in (self.model / "2").iterdir() if file.suffix in (".py", ".safetensors")),
                         ["model.py", "weights.safetensors"])
        self.assertEqual((self.model / "2" / "model.py").read_text(), SOURCE)
        response = self.daemon.daemon.stub.ModelInfer(
            request("net", [("x", "FP32", [8, 4], self.x[:8].numpy().tobytes())]), timeout=120)
        self.assertEqual(response.model_version, "2")
        got = torch.tensor(struct.unpack("<16f", response.raw_output_contents[0])).view(8, 2)
        torch.testing.assert_close(got, self.net(self.x[:8]).detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(self.run_file(self.model / "2" / "model.py", self.x)[0], self.net(self.x).detach(), rtol=1e-4, atol=1e-5)

    def test_a_version_that_is_wrong_says_where(self):
        (self.model / "1" / "model.py").write_text(SOURCE.replace("torch.relu(", "torch.rely("))
        self.daemon.start()
        index = self.daemon.daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=60)
        self.assertEqual([model.state for model in index.models], ["UNAVAILABLE"])
        self.assertIn("model.py:27:", index.models[0].reason)
        self.assertIn("aten::rely", index.models[0].reason)


if __name__ == "__main__":
    unittest.main()
