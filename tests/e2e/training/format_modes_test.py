"""Every format of model file in every mode of model control, copied or not, over both protocols: loads, ensembles, changes, uploads,
training and rollback; what metadata says and learns, what the access log has, and which names errors propose."""

import http.client
import itertools
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time
import unittest

import grpc
import torch

from tests.e2e.daemon import BINARY, pb, request, training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon

ONNX_PYTHON = pathlib.Path(__file__).parents[3] / "build" / "onnx" / "bin" / "python"
APART = ("import onnx, sys; onnx.save_model(onnx.load(sys.argv[1]), sys.argv[2], save_as_external_data=True, "
         "location='model.onnx.data', size_threshold=0)")
SOURCE = """
class Net(Module):
    __parameters__ = ["weight"]
    weight: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        return %s
"""
ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 2, 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 2, 3 ] } ]
ensemble_scheduling { step [ {
  model_name: "%s" model_version: 1
  input_map { key: "%s" value: "x" } output_map { key: "%s" value: "y" } } ] }
"""


class Scale(torch.nn.Module):
    """Says nothing of the type of x: a number of any kind may be scaled."""
    sizes = (3,)
    source = SOURCE % "torch.mul(x, self.weight)"

    def __init__(self, weight):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full(self.sizes, float(weight)))

    def forward(self, x):
        return x * self.weight


class Linear(Scale):
    """Takes float32 alone."""
    sizes = (2, 3)
    source = SOURCE % "torch.linear(x, self.weight, None)"

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight)


def make_version(folder, kind, weight, net=Scale):
    """Writes the files of a version; all at once, as a rename of its folder."""
    made = tempfile.mkdtemp(dir=os.path.dirname(os.path.dirname(folder)))
    archive = os.path.join(made, "model.pt")
    torch.jit.script(net(weight)).save(archive)
    if kind in ("pt2", "onnx", "onnx_apart"):
        file = os.path.join(made, "model.pt2" if kind == "pt2" else "model.onnx")
        subprocess.run([BINARY, "convert", archive, "--to", "pt2" if kind == "pt2" else "onnx", "--input", "2,3", "--dynamic", "x:0", "-o", file],
                       check=True, capture_output=True)
        os.remove(archive)
        if kind == "onnx_apart":
            subprocess.run([ONNX_PYTHON, "-c", APART, file, file], check=True)
    if kind == "source":
        os.remove(archive)
        pathlib.Path(made, "model.py").write_text(net.source)
        torch.save({"weight": torch.full(net.sizes, float(weight))}, os.path.join(made, "weights.pt"))
    if kind == "weights":
        torch.jit.script(net(0)).save(archive)
        count = math.prod(net.sizes)
        header = json.dumps({"weight": {"dtype": "F32", "shape": net.sizes, "data_offsets": [0, 4 * count]}}).encode()
        values = struct.pack(f"<{count}f", *[weight] * count)
        pathlib.Path(made, "weights.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + values)
    os.chmod(made, 0o755)
    os.rename(made, folder)


# The file says types and dimensions of inputs and outputs.
SAID = {"pt2", "onnx", "onnx_apart"}
KINDS = ["script", "weights", "pt2", "onnx", "source"] + (["onnx_apart"] if ONNX_PYTHON.exists() else [])


class FormatModesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for kind, weight in itertools.product(KINDS, (1, 2)):
            os.makedirs(os.path.join(cls.folder.name, "versions", kind), exist_ok=True)
            make_version(os.path.join(cls.folder.name, "versions", kind, str(weight)), kind, weight)
        for kind in KINDS:
            make_version(os.path.join(cls.folder.name, "versions", kind, "linear"), kind, 1, Linear)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def version(self, kind, weight):
        return os.path.join(self.folder.name, "versions", kind, str(weight))

    def start(self, mode, copies):
        flags = ["--model-control-mode", mode, "--copy-archives", copies, "--allow-http", "true", "--http-port", "0", "--repository-poll-secs", "1",
                 "--log-requests", "true", "--log-format", "json"]
        self.server = TrainingDaemon(*flags, *(["--load-model", "*"] if mode == "explicit" else []))
        self.addCleanup(self.server.close)
        self.server.save_data("rows.pt", x=torch.randn(16, 3), y=torch.zeros(16, 3))
        for kind in KINDS:
            os.makedirs(os.path.join(self.server.models, kind))
            shutil.copytree(self.version(kind, 1), os.path.join(self.server.models, kind, "1"))
            os.makedirs(os.path.join(self.server.models, f"{kind}_linear"))
            shutil.copytree(self.version(kind, "linear"), os.path.join(self.server.models, f"{kind}_linear", "1"))
            os.makedirs(os.path.join(self.server.models, f"{kind}_twice", "1"))
            pathlib.Path(self.server.models, f"{kind}_twice", "config.pbtxt").write_text(
                ENSEMBLE % (kind, "x", "OUTPUT__0"))
        self.server.start()

    def over_http(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.server.daemon.ready["http"], timeout=300)
        connection.request(method, path, None if body is None else json.dumps(body))
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    def metadata(self, model):
        """Of inputs and outputs name, type and shape; the same over gRPC and HTTP."""
        stub = self.server.daemon.stub
        answer = stub.ModelMetadata(pb.ModelMetadataRequest(name=model), timeout=300)
        found = [[(tensor.name, tensor.datatype, list(tensor.shape)) for tensor in tensors] for tensors in (answer.inputs, answer.outputs)]
        other = self.over_http("GET", f"/v2/models/{model}")
        self.assertEqual([[(tensor["name"], tensor["datatype"], tensor["shape"]) for tensor in other[what]] for what in ("inputs", "outputs")], found)
        config = stub.ModelConfig(pb.ModelConfigRequest(name=model), timeout=300).config
        types = [[tensor.name for tensor in tensors if tensor.data_type != 0] for tensors in (config.input, config.output)]
        self.assertEqual(types, [[name for name, datatype, _ in tensors if datatype] for tensors in found])
        return found

    def check_metadata(self, kind, is_answered):
        output = "output_0" if kind.startswith("onnx") else "OUTPUT__0"
        known = ("FP32", [-1, 3]) if kind in SAID else ("FP32", [-1, -1]) if is_answered else ("", [-1])
        self.assertEqual(self.metadata(kind), [[("x", *known)], [(output, *known)]])
        # By the graph alone, as nobody asks this one.
        inputs, outputs = self.metadata(f"{kind}_linear")
        self.assertEqual(inputs, [("x", "FP32", [-1, 3] if kind in SAID else [-1])])  # any number of dimensions
        self.assertEqual(outputs[0][:2], (output, "FP32"))
        self.assertEqual(self.metadata(f"{kind}_twice"), [[("x", "FP32", [2, 3])], [("y", "FP32", [2, 3])]])

    def check_names(self, kind):
        """What is near to a name that is not there."""
        for model in (kind, f"{kind}_twice"):
            output = "y" if model != kind else "output_0" if kind.startswith("onnx") else "OUTPUT__0"
            for asked, name, wanted, proposed in ((f"{model}s", "x", output, model), (model, "xs", output, "x"), (model, "x", f"{output}_", output)):
                message = request(asked, [("x" if name == "x" else name, "FP32", [2, 3], struct.pack("<6f", *[3.0] * 6))], outputs=[wanted])
                with self.assertRaises(grpc.RpcError) as caught:
                    self.server.daemon.stub.ModelInfer(message, timeout=300)
                self.assertIn(f"did you mean '{proposed}'?", caught.exception.details())
                body = {"inputs": [{"name": name, "datatype": "FP32", "shape": [2, 3], "data": [3.0] * 6}], "outputs": [{"name": wanted}]}
                self.assertEqual(self.over_http("POST", f"/v2/models/{asked}/infer", body)["error"], caught.exception.details())

    def logged_requests(self):
        """By model: versions, protocols and statuses of its lines in the access log."""
        found = {}
        for line in map(json.loads, self.server.daemon.log_text().splitlines()):
            if line["message"] == "request":
                self.assertGreater(line["seconds"], 0)
                found.setdefault(line["model"], set()).add((line["version"], line["protocol"], line["status"]))
        return found

    def scale(self, model, version=""):
        """The model's factor; the same over gRPC and HTTP."""
        daemon = self.server.daemon
        answer = daemon.stub.ModelInfer(request(model, [("x", "FP32", [2, 3], struct.pack("<6f", *[3.0] * 6))], version=version), timeout=300)
        values = struct.unpack("<6f", answer.raw_output_contents[0])
        path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "")
        found = self.over_http("POST", f"{path}/infer", {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": [3.0] * 6}]})
        self.assertEqual(struct.unpack("<6f", struct.pack("<6f", *found["outputs"][0]["data"])), values, model)
        return values[0] / 3

    def wait_for(self, model, version):
        deadline = time.monotonic() + 120
        while not self.server.daemon.stub.ModelReady(pb.ModelReadyRequest(name=model, version=version)).ready:
            self.assertLess(time.monotonic(), deadline, f"{model} {version}: {self.server.daemon.log_text()[-3000:]}")
            time.sleep(0.05)

    def check_mode(self, mode, copies):
        self.start(mode, copies)
        daemon = self.server.daemon
        for kind in KINDS:
            with self.subTest(mode=mode, copies=copies, kind=kind):
                self.check_metadata(kind, is_answered=False)
                self.assertEqual((self.scale(kind), self.scale(f"{kind}_twice")), (1, 1))
                self.check_metadata(kind, is_answered=True)
                logged = self.logged_requests()
                for model in (kind, f"{kind}_twice"):
                    self.assertEqual(logged[model], {("1", "grpc", "OK"), ("1", "http", "OK")})
                self.assertNotIn(f"{kind}_linear", logged)
                self.check_names(kind)
        for kind in KINDS:
            with self.subTest("another version", mode=mode, copies=copies, kind=kind):
                self.check_change(mode, kind)
        for kind in KINDS:
            with self.subTest("training", mode=mode, copies=copies, kind=kind):
                job = self.server.run(model=training.ModelSource(name=kind), data="rows.pt", builtin="mse", batch_size=8, epochs=1,
                                      optimizer=training.Optimizer(name="sgd", lr=0.1), publish=training.PublishPolicy(when="at_end"))
                self.assertEqual((job.state, job.message), (COMPLETED, ""))
                self.wait_for(kind, str(job.published_version))
                self.check_metadata(kind, is_answered=False)
                self.assertLess(self.scale(kind), 2)
                self.check_metadata(kind, is_answered=True)
                self.assertIn((str(job.published_version), "http", "OK"), self.logged_requests()[kind])
                before = self.server.stub.Rollback(training.RollbackRequest(model=kind), timeout=300).served_version
                self.assertEqual(self.scale(kind), before)
        self.assertEqual(daemon.metric("tensord_pass_failed_total"), 0)

    def check_change(self, mode, kind):
        """A new version, and in explicit mode files sent by a client."""
        stub, model = self.server.daemon.stub, os.path.join(self.server.models, kind)
        temporary = os.path.join(self.server.folder.name, "new")
        shutil.copytree(self.version(kind, 2), temporary)
        os.rename(temporary, os.path.join(model, "2"))
        if mode == "poll":
            self.wait_for(kind, "2")
            self.assertEqual(self.scale(kind), 2)
        if mode == "explicit":
            message = pb.RepositoryModelLoadRequest(model_name=kind)
            stub.RepositoryModelLoad(message, timeout=300)
            self.assertEqual(self.scale(kind), 2)
            config = {"name": f"{kind}_brought"}
            message = pb.RepositoryModelLoadRequest(model_name=f"{kind}_brought")
            message.parameters["config"].string_param = json.dumps(config)
            for name in os.listdir(self.version(kind, 2)):
                message.parameters[f"file:1/{name}"].bytes_param = pathlib.Path(self.version(kind, 2), name).read_bytes()
            stub.RepositoryModelLoad(message, timeout=300)
            self.assertEqual(self.scale(f"{kind}_brought"), 2)

    def test_mode_none(self):
        for copies in ("on", "off"):
            self.check_mode("none", copies)

    def test_mode_poll(self):
        for copies in ("auto", "off"):
            self.check_mode("poll", copies)

    def test_mode_explicit(self):
        for copies in ("auto", "off"):
            self.check_mode("explicit", copies)

    def test_what_is_written_to_a_copied_file_does_not_reach_the_model(self):
        self.start("explicit", "on")
        for kind in KINDS:
            folder = os.path.join(self.server.models, kind, "1")
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "r+b") as file:
                    size = os.path.getsize(file.name)
                    file.write(bytes(size))
            self.assertEqual(self.scale(kind), 1, kind)

    def test_errors_name_the_files_as_the_user_knows_them(self):
        self.start("explicit", "on")
        for kind, name in (("onnx_apart", "model.onnx.data"), ("weights", "weights.safetensors"), ("source", "model.py"), ("pt2", "model.pt2")):
            if kind not in KINDS:
                continue
            file = os.path.join(self.server.models, kind, "1", name)
            os.truncate(file, os.path.getsize(file) // 2)
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=kind), timeout=300)
            self.assertIn(name, caught.exception.details())
            self.assertNotIn("/proc/", caught.exception.details())


if __name__ == "__main__":
    unittest.main()
