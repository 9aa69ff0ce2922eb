"""Jobs publish models in the format that they were trained from: TorchScript, exported programs, ONNX, source."""

import os
import pathlib
import shutil
import subprocess
import unittest
import zipfile

import grpc
import torch

from tests.e2e.daemon import BINARY, pb, request, training
from tests.e2e.training.training_daemon import AT_REST, COMPLETED, PAUSED, TrainingDaemon

TESTS = pathlib.Path(__file__).parents[2]
ONNX_PYTHON = TESTS.parent / "build" / "onnx" / "bin" / "python"
NEWEST = TESTS.parent / "build" / "pypi_torch" / "bin" / "python"
PROGRAM = """
import sys, torch
program = torch.export.load(sys.argv[1])
print(program.module()(torch.ones(3, 3, 8, 8)).shape, len(program.example_inputs[0]), program.range_constraints)
"""
ADAM = training.Optimizer(name="adam", lr=1e-2)
AT_END = training.PublishPolicy(when="at_end")
SOURCE = """
class Net(Module):
    __parameters__ = ["weight", "bias"]
    weight: Tensor
    bias: Tensor
    training: bool

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        return {"scores": torch.linear(torch.flatten(x, 1), self.weight, self.bias)}
"""


class FormatsTest(unittest.TestCase):
    """A published version equals its base in format: file, names, dtypes, shapes and refusals."""

    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server, cls.bases = TrainingDaemon(), {}
        cls.x = torch.randn(24, 3, 8, 8)
        cls.server.save_data("images.pt", x=cls.x, input=cls.x, y=torch.arange(24) % 2)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)).eval()
        archive = os.path.join(cls.server.folder.name, "net.pt")
        torch.jit.script(net).save(archive)
        shutil.copy(archive, cls.place("script", "model.pt"))
        shutil.copy(os.path.join(TESTS, "pt2", "data", "conv.pt2"), cls.place("program", "model.pt2"))
        subprocess.run([BINARY, "convert", archive, "--to", "onnx", "--input", "2,3,8,8", "--dynamic", "input:0", "-o",
                        cls.place("onnx", "model.onnx")], check=True, capture_output=True)
        if ONNX_PYTHON.exists():
            script = "import onnx, sys; onnx.save_model(onnx.load(sys.argv[1]), sys.argv[2], save_as_external_data=True, location='all.data', size_threshold=16)"
            subprocess.run([ONNX_PYTHON, "-c", script, cls.place("onnx", "model.onnx"), cls.place("apart", "model.onnx")], check=True)
        shutil.copy(archive, cls.place("named", "weights.bin"))
        with open(os.path.join(cls.server.models, "named", "config.pbtxt"), "w") as config:
            config.write('default_model_filename: "weights.bin"')
        with open(cls.place("source", "model.py"), "w") as source:
            source.write(SOURCE)
        torch.save({"weight": torch.randn(5, 192), "bias": torch.zeros(5)}, cls.place("source", "weights.pt"))
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    @classmethod
    def place(cls, model, name, version=1):
        folder = os.path.join(cls.server.models, model, str(version))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)

    def interface(self, model, version):
        stub = self.server.daemon.stub
        metadata = stub.ModelMetadata(pb.ModelMetadataRequest(name=model, version=str(version)), timeout=300)
        return [[(one.name, one.datatype, list(one.shape)) for one in tensors] for tensors in (metadata.inputs, metadata.outputs)]

    def answers(self, model, version):
        """Names, types and shapes of the results, and the errors: 33 rows, other sizes and types."""
        answers = []
        for shape, datatype, size in (([2, 3, 8, 8], "FP32", 4), ([33, 3, 8, 8], "FP32", 4), ([2, 3, 8, 9], "FP32", 4), ([2, 3, 8, 8], "FP64", 8)):
            data = bytes(size * shape[0] * shape[1] * shape[2] * shape[3])
            name = self.interface(model, version)[0][0][0]
            try:
                found = self.server.daemon.stub.ModelInfer(request(model, [(name, datatype, shape, data)], version=str(version)), timeout=300)
                answers.append([(output.name, output.datatype, list(output.shape)) for output in found.outputs])
            except grpc.RpcError as error:
                answers.append((error.code(), error.details().replace(f"'{model}'", "'…'").replace(f"/{model}/{version}/", "/…/")))
        return answers

    @staticmethod
    def content(file):
        """The parts that two versions of a model must share."""
        if file.endswith(".onnx"):
            with open(file, "rb") as model:
                return model.read(2)[:1], os.path.getsize(file)
        if file.endswith(".py"):
            with open(file) as model:
                return model.read()
        with zipfile.ZipFile(file) as archive:
            names = [name.split("/", 1)[1] for name in archive.namelist()]
            root = archive.namelist()[0].split("/", 1)[0]
            contents = {name: archive.read(f"{root}/{name}") for name in names if name.endswith((".json", ".py", "format", "version"))}
        return sorted(names), contents

    def check(self, model, base_file, version, kept=None, of=None):
        file = self.place(of or model, kept or base_file, version)
        folder = sorted(name for name in os.listdir(os.path.dirname(file)) if name != "job.json")
        self.assertEqual(folder, [kept or base_file] + (["weights.safetensors"] if file.endswith(".py") else []))
        self.assertEqual(self.content(file), self.content(self.place(model, base_file)))
        self.assertEqual((self.interface(of or model, version), self.answers(of or model, version)), self.bases[model])

    def train(self, model, **fields):
        fields = dict(dict(model=training.ModelSource(name=model, version=1), data="images.pt", optimizer=ADAM, batch_size=8,
                           epochs=2, publish=AT_END), **fields)
        if model == "source":
            fields["loss"] = training.Loss(output="scores", builtin="cross_entropy", label="y")
        job = self.server.run(**fields)
        self.assertEqual((job.state, job.message), (COMPLETED, ""))
        return job.published_version

    @unittest.skipUnless(ONNX_PYTHON.exists(), "no package onnx in build/onnx: scripts/setup test")
    def test_weights_in_a_file_of_their_own_come_inside(self):
        base = self.interface("apart", 1), self.answers("apart", 1)
        version = self.train("apart")
        self.assertEqual(sorted(os.listdir(os.path.join(self.server.models, "apart", str(version)))), ["job.json", "model.onnx"])
        self.assertEqual((self.interface("apart", version), self.answers("apart", version)), base)

    def test_uploads_keep_their_format(self):
        for model, file in (("script", "model.pt"), ("program", "model.pt2"), ("onnx", "model.onnx")):
            with open(self.place(model, file), "rb") as data:
                upload = self.server.daemon.training.UploadModel(iter([training.UploadModelRequest(data=data.read())]), timeout=300)
            job = self.server.run(model=training.ModelSource(upload_id=upload.upload_id), data="images.pt", optimizer=ADAM, batch_size=8,
                                  epochs=2, publish=training.PublishPolicy(when="at_end", model=f"brought_{model}"))
            self.assertEqual((job.state, job.message), (COMPLETED, ""))
            version = job.published_version
            self.assertEqual(sorted(os.listdir(os.path.dirname(self.place(f"brought_{model}", file, version)))), ["job.json", file])
            self.assertEqual(self.content(self.place(f"brought_{model}", file, version)), self.content(self.place(model, file)))
            base, = (name for name in os.listdir(os.path.join(self.server.jobs, "jobs", job.id)) if name.startswith("base"))
            self.assertEqual(base, file.replace("model", "base"))

    def test_losses_name_outputs_as_the_file_does(self):
        loss = dict(builtin="cross_entropy", label="y")
        name = self.interface("onnx", "")[1][0][0]
        self.assertNotEqual(name, "OUTPUT__0")
        for output in (name, "OUTPUT__0"):
            self.assertGreater(self.train("onnx", loss=training.Loss(output=output, **loss)), 1)
        with self.assertRaises(grpc.RpcError) as caught:
            self.train("onnx", loss=training.Loss(output="another", **loss))
        self.assertIn(f"loss.output: forward gives {name}, not 'another'", caught.exception.details())

    @unittest.skipUnless(NEWEST.exists(), "no PyTorch in build/pypi_torch: scripts/setup pypi_torch")
    def test_pytorch_loads_a_published_program(self):
        files = self.place("program", "model.pt2"), self.place("program", "model.pt2", self.train("program"))
        outputs = [subprocess.run([NEWEST, "-W", "ignore", "-c", PROGRAM, file], capture_output=True, text=True, check=True).stdout for file in files]
        self.assertEqual(outputs[0], outputs[1])
        self.assertIn("[3, 2]", outputs[0])

    def has_ranks(self):
        """Whether the build has Gloo."""
        try:
            self.server.run(model="script", data="images.pt", batch_size=8, steps=1, optimizer=ADAM, distribution=training.Distribution(world_size=2))
            return True
        except grpc.RpcError as error:
            self.assertIn("need Gloo", error.details())
            return False

    def test_every_format_stays_what_it_is(self):
        best = dict(evaluation=training.Evaluation(fraction=0.25, metrics=["loss"]), publish=training.PublishPolicy(when="best", metric="loss"))
        for model, file in (("script", "model.pt"), ("program", "model.pt2"), ("onnx", "model.onnx"), ("source", "model.py"), ("named", "weights.bin")):
            with self.subTest(model):
                self.bases[model] = self.interface(model, 1), self.answers(model, 1)
                self.check(model, file, self.train(model))
                self.check(model, file, self.train(model, **best))
                if self.has_ranks():
                    self.check(model, file, self.train(model, distribution=training.Distribution(world_size=2)))
                    self.check(model, file, self.train(model, distribution=training.Distribution(world_size=2), **best))
                new = training.PublishPolicy(when="at_end", model=model + "_new")
                self.check(model, file, self.train(model, publish=new), of=model + "_new", kept="model.pt" if model == "named" else file)
                job = self.server.create(model=training.ModelSource(name=model, version=1), data="images.pt", batch_size=8, steps=10**6,
                                         checkpoints=training.CheckpointPolicy(every_steps=1), publish=AT_END, optimizer=ADAM,
                                         **({"loss": training.Loss(output="scores", builtin="cross_entropy", label="y")} if model == "source" else {}))
                self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step > 0 or now.state in AT_REST)
                self.server.stub.PauseJob(training.PauseJobRequest(id=job.id))
                self.assertEqual(self.server.watch(job.id)[0].state, PAUSED)
                rollback = self.server.stub.Rollback(training.RollbackRequest(model=model), timeout=300)
                self.check(model, file, rollback.served_version)


if __name__ == "__main__":
    unittest.main()
