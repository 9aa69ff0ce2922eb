"""Starts the real daemon on free ports and calls it through stubs that protoc makes."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("TENSORD_BINARY", os.path.join(ROOT, "build", "tensord"))
PROTOS = ("inference", "model_config", "training", "health", "reflection_v1alpha", "reflection_v1")
START_TIMEOUT_S = 60


def make_stubs():
    """Generates the Python stubs into a temporary folder and puts it on sys.path."""
    folder = tempfile.mkdtemp(prefix="tensord_stubs_")
    plugin = subprocess.run(["which", "grpc_python_plugin"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run(
        ["protoc", "-I", os.path.join(ROOT, "protos"), "--python_out", folder, "--grpc_python_out", folder,
         f"--plugin=protoc-gen-grpc_python={plugin}"] + [f"{name}.proto" for name in PROTOS], check=True)
    sys.path.insert(0, folder)
    return folder


make_stubs()

import grpc  # noqa: E402
import health_pb2  # noqa: E402
import health_pb2_grpc  # noqa: E402
import inference_pb2 as pb  # noqa: E402
import inference_pb2_grpc  # noqa: E402
import training_pb2 as training  # noqa: E402,F401
import training_pb2_grpc  # noqa: E402


class Daemon:
    """A running `tensord serve`; use as a context manager."""

    def __init__(self, repository, *flags):
        self.folder = tempfile.TemporaryDirectory()
        self.ready_file = os.path.join(self.folder.name, "ready.json")
        self.log_path = os.path.join(self.folder.name, "log.txt")
        self.log = open(self.log_path, "w")
        self.process = subprocess.Popen(
            [BINARY, "serve", "--model-repository", str(repository), "--grpc-port", "0", "--metrics-port", "0",
             "--ready-file", self.ready_file, *flags], stderr=self.log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not os.path.exists(self.ready_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the daemon did not start:\n" + self.log_text())
            time.sleep(0.01)
        with open(self.ready_file) as ready:
            self.ready = json.load(ready)
        self.channel = grpc.insecure_channel(
            self.ready["grpc"], options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        self.stub = inference_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.training = training_pb2_grpc.TrainingServiceStub(self.channel)

    def log_text(self):
        with open(self.log_path) as log:
            return log.read()

    def metrics(self):
        import urllib.request
        with urllib.request.urlopen(f"http://{self.ready['metrics']}/metrics", timeout=10) as response:
            return response.read().decode()

    def metric(self, name, **labels):
        """Sum of the samples of this name whose labels include the given ones."""
        total = 0.0
        for line in self.metrics().splitlines():
            if not line.startswith((name + "{", name + " ")):
                continue
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def stop(self, timeout=40):
        """Sends SIGTERM; gives back the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        self.log.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()


def request(model, inputs, outputs=(), version="", request_id="", parameters=None):
    """inputs: (name, datatype, shape, raw bytes or InferTensorContents or None)."""
    message = pb.ModelInferRequest(model_name=model, model_version=version, id=request_id)
    for name, datatype, shape, data in inputs:
        tensor = message.inputs.add(name=name, datatype=datatype, shape=shape)
        if isinstance(data, bytes):
            message.raw_input_contents.append(data)
        elif data is not None:
            tensor.contents.CopyFrom(data)
    for name in outputs:
        message.outputs.add(name=name)
    for key, value in (parameters or {}).items():
        message.parameters[key].CopyFrom(value)
    return message
