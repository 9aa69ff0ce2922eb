"""weights.safetensors beside a model, written by the package safetensors, in `tensord run` and the daemon."""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import torch
from torch import nn

from tests.e2e.daemon import BINARY, Daemon, request

TESTS = pathlib.Path(__file__).parents[2]
# The environment that `scripts/setup test` makes has the package.
PACKAGE_PYTHON = TESTS.parent / "build" / "onnx" / "bin" / "python"


class Tied(nn.Module):
    """Two layers that share a weight, which is also in a list."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(self.second(torch.relu(self.first(x))))


def header_and_data(tensors):
    """A file in the package's format, written without the package."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        kind = {torch.float32: "F32", torch.int64: "I64", torch.float64: "F64"}[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + data


def save_by_package(path, tensors):
    """With the newest safetensors, which Debian's Python does not have."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "arrays.npz")
        import numpy
        numpy.savez(source, **{name: tensor.numpy() for name, tensor in tensors.items()})
        script = ("import sys, numpy, safetensors.numpy as s; "
                  "s.save_file(dict(numpy.load(sys.argv[1])), sys.argv[2], metadata={'format': 'pt'})")
        subprocess.run([PACKAGE_PYTHON, "-c", script, source, path], check=True)


class WeightsFileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        torch.manual_seed(1)
        self.x = torch.randn(4, 3)

    def run_model(self, model, x):
        torch.save((x,), self.folder / "args.pt")
        done = subprocess.run([BINARY, "run", model, "--call", f"forward,{self.folder}/args.pt,{self.folder}/out.pt"],
                              capture_output=True, text=True)
        return torch.load(self.folder / "out.pt") if done.returncode == 0 else done.stderr

    def state(self, module):
        # The package refuses to save one memory under two names.
        return {name: tensor.clone() for name, tensor in module.state_dict().items() if name != "second.weight"}

    @unittest.skipUnless(PACKAGE_PYTHON.exists(), "missing: build/onnx (scripts/setup test)")
    def test_torchscript(self):
        old, new = Tied().eval(), Tied().eval()
        with torch.no_grad():
            new.norm.running_mean += 1
            new.norm.bias += 2
        torch.jit.script(old).save(self.folder / "model.pt")
        torch.testing.assert_close(self.run_model(self.folder / "model.pt", self.x), old(self.x))
        save_by_package(self.folder / "weights.safetensors", self.state(new))
        torch.testing.assert_close(self.run_model(self.folder / "model.pt", self.x), new(self.x))
        # Only some of the weights; the others are the model's.
        save_by_package(self.folder / "weights.safetensors", {"norm.bias": new.norm.bias.detach()})
        mixed = Tied().eval()
        mixed.load_state_dict(old.state_dict())
        mixed.norm.bias = new.norm.bias
        torch.testing.assert_close(self.run_model(self.folder / "model.pt", self.x), mixed(self.x))

    @unittest.skipUnless(PACKAGE_PYTHON.exists(), "missing: build/onnx (scripts/setup test)")
    def test_exported_program(self):
        data = TESTS / "pt2" / "data"
        (arguments, results) = torch.load(data / "calls.pt")["conv"][0]
        os.symlink(data / "conv.pt2", self.folder / "model.pt2")
        inspected = subprocess.run([BINARY, "inspect", self.folder / "model.pt2"], capture_output=True, text=True, check=True)
        line = next(line for line in inspected.stdout.split("\n") if ".bias  float32[" in line or " bias  float32[" in line)
        name, size = line.split()[0], int(line.split("[")[1].split("]")[0])
        before = self.run_model(self.folder / "model.pt2", arguments[0])
        torch.testing.assert_close(before, results[0])
        save_by_package(self.folder / "weights.safetensors", {name: torch.full((size,), 3.0)})
        after = self.run_model(self.folder / "model.pt2", arguments[0])
        self.assertFalse(torch.allclose(before, after))

    def test_onnx_and_saving(self):
        """A file of other weights beside an ONNX model, and the model with the weights inside."""
        old, new = Tied().eval(), Tied().eval()
        torch.jit.script(old).save(self.folder / "model.pt")
        subprocess.run([BINARY, "convert", self.folder / "model.pt", "--to", "onnx", "-o", self.folder / "model.onnx", "--input",
                        "2,3", "--dynamic", "x:0"], check=True, capture_output=True)
        torch.testing.assert_close(self.run_model(self.folder / "model.onnx", self.x), old(self.x))
        (self.folder / "model.pt").unlink()
        state = {name: tensor for name, tensor in self.state(new).items() if name != "norm.num_batches_tracked"}
        (self.folder / "weights.safetensors").write_bytes(header_and_data(state))
        torch.testing.assert_close(self.run_model(self.folder / "model.onnx", self.x), new(self.x))
        (self.folder / "saved").mkdir()
        subprocess.run([BINARY, "run", self.folder / "model.onnx", "--call", f"forward,{self.folder}/args.pt,{self.folder}/out.pt",
                        "--save", self.folder / "saved" / "model.onnx"], check=True)
        torch.testing.assert_close(self.run_model(self.folder / "saved" / "model.onnx", self.x), new(self.x))

    def test_refused(self):
        torch.jit.script(Tied().eval()).save(self.folder / "model.pt")
        good = {"norm.bias": torch.zeros(3)}
        encoded = json.dumps({"norm.bias": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})
        twice = encoded[:-1] + ", " + encoded[1:]

        def raw(header, data=bytes(12)):
            return struct.pack("<Q", len(header)) + header.encode() + data

        for content, message in (
                (header_and_data({"other": torch.zeros(3)}), "'other': the model has no parameter or buffer of this name"),
                (header_and_data({"norm.bias": torch.zeros(4)}), "'norm.bias': has shape [4], the model's has [3]"),
                (header_and_data({"norm.bias": torch.zeros(3, dtype=torch.float64)}), "is of type float64, the model's of float32"),
                (header_and_data({"first.weight": torch.ones(3, 3), "second.weight": torch.zeros(3, 3)}), "has other values"),
                (header_and_data(good)[:-1], "reaches past the end"),
                (header_and_data(good) + b"x", "belong to no tensor"),
                (raw(twice), "'norm.bias' appears twice in the header"),
                (raw('{"a":' * 9 + "1" + "}" * 9), "nested"),
                (raw('{"norm.bias": {"dtype": "F8_E4M3", "shape": [3], "data_offsets": [0, 12]}}'), "dtype F8_E4M3"),
                (struct.pack("<Q", 1 << 60), "is not a safetensors file, or is truncated"),
                (b"", "is empty")):
            (self.folder / "weights.safetensors").write_bytes(content)
            said = self.run_model(self.folder / "model.pt", self.x)
            self.assertIsInstance(said, str, message)
            self.assertIn(message, said)
            self.assertIn("weights.safetensors", said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_served(self):
        for kind in ("pt", "onnx"):
            with self.subTest(kind=kind):
                self.serve(kind)

    def serve(self, kind):
        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.factor = nn.Parameter(torch.full((2,), 2.0))

            def forward(self, x):
                return x * self.factor

        version = self.folder / kind / "m" / "1"
        version.mkdir(parents=True)
        torch.jit.script(Scale()).save(self.folder / "model.pt")
        if kind == "pt":
            (self.folder / "model.pt").rename(version / "model.pt")
        else:
            subprocess.run([BINARY, "convert", self.folder / "model.pt", "--to", kind, "-o", version / f"model.{kind}", "--input",
                            "3,2", "--dynamic", "x:0"], check=True, capture_output=True)

        def put(value):
            (version / ".new").write_bytes(header_and_data({"factor": torch.full((2,), value)}))
            (version / ".new").rename(version / "weights.safetensors")

        put(3.0)
        daemon = Daemon(str(self.folder / kind), "--model-control-mode", "poll", "--repository-poll-secs", "1")
        self.addCleanup(daemon.__exit__)

        def ask():
            response = daemon.stub.ModelInfer(request("m", [("x", "FP32", [1, 2], struct.pack("<ff", 1, 1))]), timeout=300)
            values = struct.unpack("<ff", response.raw_output_contents[0])
            self.assertEqual(values[0], values[1])
            return values[0]

        def wait_for(value):
            deadline = time.monotonic() + 300
            while ask() != value:
                self.assertLess(time.monotonic(), deadline, f"the answer becomes {value}")
                time.sleep(0.05)

        self.assertEqual(ask(), 3)
        put(4.0)
        wait_for(4)
        (version / "weights.safetensors").unlink()
        wait_for(2)
        # A failed load leaves the served version unchanged.
        (version / "weights.safetensors").write_bytes(header_and_data({"other": torch.zeros(1)}))
        time.sleep(2.5)
        self.assertEqual(ask(), 2)
        put(5.0)
        wait_for(5)


if __name__ == "__main__":
    unittest.main()
