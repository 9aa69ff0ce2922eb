"""Starts the real daemon on free ports and calls it through stubs that protoc makes."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile

from tests.e2e.daemon_process import BINARY, ROOT, DaemonProcess  # noqa: F401

PROTOS = ("inference", "model_config", "training", "hosts", "health", "reflection_v1alpha", "reflection_v1")


STUBS = "TENSORD_TEST_STUBS"  # inherited from the parent process, if set


def make_stubs():
    """Generates the Python stubs in a folder that is deleted with this process, and adds it to sys.path."""
    if os.path.isdir(os.environ.get(STUBS, "")):
        sys.path.insert(0, os.environ[STUBS])
        return os.environ[STUBS]
    folder = os.environ[STUBS] = tempfile.mkdtemp(prefix="tensord_stubs_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
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


class Daemon(DaemonProcess):
    """A running `tensord serve` and stubs for its services; use as a context manager."""

    def __init__(self, repository, *flags, environment=None):
        super().__init__(repository, *flags, environment=environment)
        self.channel = grpc.insecure_channel(
            self.ready["grpc"], options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        self.stub = inference_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)
        self.training = training_pb2_grpc.TrainingServiceStub(self.channel)

    def __exit__(self, *failure):
        self.channel.close()
        super().__exit__(*failure)


class RpcAssertions:
    """For test cases: calls that must fail."""

    def assert_code(self, code, message, call, *args, **kwargs):
        """The call fails with this status code, and its details contain the message."""
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(message, caught.exception.details())


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
