"""Models added and removed in the real daemon: calls of clients, polled folders, loading on demand, and the
commands."""

import concurrent.futures
import io
import json
import os
import shutil
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import grpc
import torch
from torch import nn

from tests.e2e.daemon import BINARY, Daemon, RpcAssertions, pb, request
from tests.e2e.processes import wait_until

CODE = grpc.StatusCode
LOAD_TIMEOUT_S = 60


class Scale(nn.Module):
    """Returns its input times a number; `size` makes the archive larger."""

    def __init__(self, factor, size=1):
        super().__init__()
        self.factor = nn.Parameter(torch.full((1,), float(factor)))
        self.register_buffer("ballast", torch.zeros(size))

    def forward(self, x):
        return x * self.factor + self.ballast[0]


def archive(factor, size=1):
    data = io.BytesIO()
    torch.jit.save(torch.jit.script(Scale(factor, size)), data)
    return data.getvalue()


def save(root, name, version, factor, size=1):
    """Creates the version atomically."""
    folder = os.path.join(root, name, str(version))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".new"), "wb") as file:
        file.write(archive(factor, size))
    os.rename(os.path.join(folder, ".new"), os.path.join(folder, "model.pt"))


def configure(root, name, config):
    os.makedirs(os.path.join(root, name), exist_ok=True)
    with open(os.path.join(root, name, "config.pbtxt"), "w") as file:
        file.write(config)


def parameter(value):
    if isinstance(value, bool):
        return pb.ModelRepositoryParameter(bool_param=value)
    if isinstance(value, bytes):
        return pb.ModelRepositoryParameter(bytes_param=value)
    return pb.ModelRepositoryParameter(string_param=value)


class RepositoryTest(RpcAssertions, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def start(self, *flags):
        daemon = Daemon(self.root, *flags)
        self.addCleanup(daemon.__exit__)
        self.daemon = daemon
        return daemon

    def load(self, name, **parameters):
        message = pb.RepositoryModelLoadRequest(model_name=name)
        for key, value in parameters.items():
            message.parameters[key].CopyFrom(parameter(value))
        self.daemon.stub.RepositoryModelLoad(message, timeout=LOAD_TIMEOUT_S)

    def load_files(self, name, files, config=None):
        message = pb.RepositoryModelLoadRequest(model_name=name)
        for path, data in files.items():
            message.parameters["file:" + path].bytes_param = data
        if config is not None:
            message.parameters["config"].string_param = config
        self.daemon.stub.RepositoryModelLoad(message, timeout=LOAD_TIMEOUT_S)

    def unload(self, name, dependents=False):
        message = pb.RepositoryModelUnloadRequest(model_name=name)
        if dependents:
            message.parameters["unload_dependents"].bool_param = True
        self.daemon.stub.RepositoryModelUnload(message, timeout=LOAD_TIMEOUT_S)

    def states(self, ready=False):
        index = self.daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=ready), timeout=300)
        return sorted((model.name, model.version, model.state, model.reason) for model in index.models)

    def ask(self, name, version="", timeout=300):
        response = self.daemon.stub.ModelInfer(
            request(name, [("x", "FP32", [1], struct.pack("<f", 1))], version=version), timeout=timeout)
        return struct.unpack("<f", response.raw_output_contents[0])[0]

    def test_explicit(self):
        save(self.root, "a", 1, 2)
        save(self.root, "b", 1, 3)
        os.makedirs(os.path.join(self.root, "broken", "1"))
        with open(os.path.join(self.root, "broken", "1", "model.pt"), "wb") as file:
            file.write(archive(1)[:500])
        self.start("--model-control-mode", "explicit", "--load-model", "b")
        self.assertEqual(self.states(), [("a", "", "", ""), ("b", "1", "READY", ""), ("broken", "", "", "")])
        self.assertEqual(self.states(ready=True), [("b", "1", "READY", "")])
        self.assert_code(CODE.NOT_FOUND, "Request for unknown model: 'a' is not found", self.ask, "a")
        self.load("a")
        self.assertEqual(self.ask("a"), 2)
        self.load("a")
        self.unload("a")
        self.assertIn(("a", "1", "UNAVAILABLE", "unloaded"), self.states())
        self.assert_code(CODE.NOT_FOUND, "has no available versions", self.ask, "a")
        self.assertTrue(self.daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)
        self.assert_code(CODE.INVALID_ARGUMENT, "load failed for model 'broken': version 1 is at UNAVAILABLE state",
                         self.load, "broken")
        self.assert_code(CODE.NOT_FOUND, "failed to load 'missing', failed to poll from model repository", self.load,
                         "missing")
        self.assert_code(CODE.INVALID_ARGUMENT, "must not contain path traversal", self.load, "../b")
        self.assert_code(CODE.INVALID_ARGUMENT, "Model name cannot be empty", self.load, "")
        self.assert_code(CODE.INVALID_ARGUMENT, "unrecognized load parameter 'confg'", self.load, "b", confg="{}")
        self.assert_code(CODE.INVALID_ARGUMENT, "expected string_param", self.load, "b", config=True)
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(repository_name="r", model_name="b"))
        self.assertEqual(caught.exception.code(), CODE.UNIMPLEMENTED)
        for call, message in ((self.daemon.stub.RepositoryIndex, pb.RepositoryIndexRequest(repository_name="r")),
                              (self.daemon.stub.RepositoryModelUnload,
                               pb.RepositoryModelUnloadRequest(repository_name="r", model_name="b"))):
            self.assert_code(CODE.UNIMPLEMENTED, "'repository_name' specification is not supported", call, message)
        self.assertTrue(self.daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)
        self.assertEqual(self.daemon.stop(), 0)

    def test_a_repository_that_vanishes(self):
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.join(folder, "models")
            os.makedirs(os.path.join(folder, "modems"))
            save(root, "m", 1, 2)
            with Daemon(root, "--model-control-mode", "explicit") as daemon:
                os.rename(root, os.path.join(folder, "gone"))
                with self.assertRaises(grpc.RpcError) as caught:
                    daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="m"), timeout=LOAD_TIMEOUT_S)
                self.assertEqual(caught.exception.details(), f"model repository {root} is not a folder that can be read")
            # The operator is told what is like it.
            done = subprocess.run([BINARY, "serve", "--model-repository", root], capture_output=True, text=True, timeout=60)
            self.assertIn("did you mean", done.stderr)
            # Of a path that cannot even be looked for, too.
            done = subprocess.run([BINARY, "serve", "--model-repository", "x" * 300], capture_output=True, text=True, timeout=60)
            self.assertIn("is not a folder that can be read", done.stderr)

    def test_mode_none(self):
        save(self.root, "a", 1, 2)
        self.start()
        message = "explicit model load / unload is not allowed"
        self.assert_code(CODE.UNAVAILABLE, message, self.load, "a")
        self.assert_code(CODE.UNAVAILABLE, message, self.unload, "a")
        self.assertEqual(self.states(), [("a", "1", "READY", "")])

    def test_overrides(self):
        save(self.root, "m", 1, 2)
        save(self.root, "m", 2, 3)
        self.start("--model-control-mode", "explicit", "--load-model", "*", "--model-override-limit", "1MB")
        self.load("m", config=json.dumps({"version_policy": {"all": {}}, "max_batch_size": 0}))
        self.assertEqual([state[1] for state in self.states()], ["1", "2"])
        self.load_files("m", {"7/model.pt": archive(7)}, "{}")
        self.assertEqual(self.states(), [("m", "7", "READY", "")])
        self.assertEqual(self.ask("m"), 7)
        self.assert_code(CODE.INVALID_ARGUMENT, "'config' must be specified", self.load_files, "m",
                         {"8/model.pt": archive(8)})
        self.assert_code(CODE.INVALID_ARGUMENT, "must stay within the model directory", self.load_files, "m",
                         {"../../8/model.pt": archive(8)}, "{}")
        self.assert_code(CODE.RESOURCE_EXHAUSTED, "--model-override-limit", self.load_files, "m",
                         {"8/model.pt": bytes(2 << 20)}, "{}")
        self.assert_code(CODE.INVALID_ARGUMENT, "load failed", self.load_files, "m", {"8/model.pt": b"rubbish"}, "{}")
        self.assertEqual(self.ask("m"), 7)
        self.load("m")  # the uploaded model stays until it is unloaded
        self.assertEqual(self.states(ready=True), [("m", "7", "READY", "")])
        self.unload("m")
        self.load("m")
        self.assertEqual(self.states(), [("m", "2", "READY", "")])

    def test_weights_alone(self):
        save(self.root, "m", 1, 2)
        self.start("--model-control-mode", "explicit", "--load-model", "m")
        data = io.BytesIO()
        torch.save({"factor": torch.tensor([5.0])}, data)
        self.load_files("m", {"1/weights.pt": data.getvalue()})
        self.assertEqual(self.ask("m"), 5)
        header = json.dumps({"factor": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}).encode()
        safetensors = struct.pack("<Q", len(header)) + header + struct.pack("<d", 6)
        self.load_files("m", {"2/weights.safetensors": safetensors})
        self.assertEqual(self.states(), [("m", "2", "READY", "")])
        self.assertEqual(self.ask("m"), 6)
        for weights, message in (({"other": torch.zeros(1)}, "no parameter or buffer of this name"),
                              ({"factor": torch.zeros(2)}, "has shape [2], the model's has [1]"),
                              ({"factor": torch.zeros(1, dtype=torch.int64)}, "is of type int64")):
            data = io.BytesIO()
            torch.save(weights, data)
            self.assert_code(CODE.INVALID_ARGUMENT, message, self.load_files, "m", {"3/weights.pt": data.getvalue()})
        self.assert_code(CODE.DATA_LOSS, "", self.load_files, "m", {"3/weights.pt": b"rubbish"})
        self.assertEqual(self.ask("m"), 6)

    def test_ensembles(self):
        save(self.root, "a", 1, 2)
        save(self.root, "b", 1, 3)
        steps = "".join('{ model_name: "%s" model_version: -1 input_map { key: "x" value: "%s" } '
                        'output_map { key: "OUTPUT__0" value: "%s" } }' % step
                        for step in (("a", "x", "middle"), ("b", "middle", "y")))
        one = '{ name: "%s" data_type: TYPE_FP32 dims: [ 1 ] }'
        configure(self.root, "both", f'platform: "ensemble" input {one % "x"} output {one % "y"} '
                  'ensemble_scheduling { %s }' % steps.replace("{ model_name", "step { model_name"))
        os.makedirs(os.path.join(self.root, "both", "1"))
        self.start("--model-control-mode", "explicit")
        self.load("both")
        self.assertEqual([state[2] for state in self.states()], ["READY"] * 3)
        self.assertEqual(self.ask("both"), 6)
        self.unload("a")
        self.assert_code(CODE.NOT_FOUND, "has no available versions", self.ask, "both")
        self.assertIn(("both", "1", "UNAVAILABLE", "unloaded with model 'a', which it runs"), self.states())
        self.load("a")
        self.assertEqual(self.ask("both"), 6)
        self.unload("both", dependents=True)
        # A model that was loaded explicitly stays.
        self.assertEqual([state[2] for state in self.states()], ["READY", "UNAVAILABLE", "UNAVAILABLE"])
        self.load("both")
        self.unload("b", dependents=True)
        self.assertEqual([state[2] for state in self.states()], ["READY", "UNAVAILABLE", "UNAVAILABLE"])

    def test_labels(self):
        for version in (1, 2, 3):
            save(self.root, "m", version, version)
        configure(self.root, "m", 'version_policy: { all {} } parameters { key: "version_labels" value: '
                  '{ string_value: "stable=1" } }')
        self.start()
        self.assertEqual(self.ask("m", "stable"), 1)
        self.load("m", version_labels="stable=2,canary=3")  # in every mode: it loads nothing
        self.assertEqual(self.ask("m", "stable"), 2)
        self.assertEqual(self.ask("m", "canary"), 3)
        self.assert_code(CODE.NOT_FOUND, "does not serve version 9", self.load, "m", version_labels="stable=9")
        self.assert_code(CODE.INVALID_ARGUMENT, "got nothing", self.load, "m", version_labels="")
        self.assert_code(CODE.INVALID_ARGUMENT, "failed to get model version from specified version string", self.ask,
                         "m", "beta")

    def test_unload_gives_memory_back(self):
        save(self.root, "large", 1, 2, size=16 << 20)
        self.start("--model-control-mode", "explicit")
        before = self.resident_bytes()
        for _ in range(3):
            self.load("large")
            self.assertEqual(self.ask("large"), 2)
            self.unload("large")
            self.assertEqual(self.daemon.metric("tensord_memory_bytes", owner="large/1"), 0)
        self.assertLess(self.resident_bytes() - before, 24 << 20)

    def resident_bytes(self):
        with open(f"/proc/{self.daemon.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def test_poll(self):
        save(self.root, "m", 1, 2)
        self.start("--model-control-mode", "poll", "--repository-poll-secs", "1")
        self.assertEqual(self.ask("m"), 2)
        save(self.root, "m", 2, 3)
        save(self.root, "n", 1, 4)
        wait_until(lambda: ("m", "2", "READY", "") in self.states() and ("n", "1", "READY", "") in self.states(),
                      "new versions and models are loaded")
        # Truncates the file in place: the served model must not be affected.
        path = os.path.join(self.root, "m", "2", "model.pt")
        with open(path, "r+b") as file:
            file.truncate(100)
        shutil.rmtree(os.path.join(self.root, "n"))
        wait_until(lambda: ("n", "1", "READY", "") not in self.states(), "what is gone is unloaded")
        time.sleep(1.5)
        self.assertEqual(self.ask("m"), 3)
        self.assertTrue(self.daemon.stub.ServerReady(pb.ServerReadyRequest()).ready)
        save(self.root, "m", 2, 5)
        wait_until(lambda: self.ask("m") == 5, "a file that is whole again is loaded")
        self.assert_code(CODE.UNAVAILABLE, "polling is enabled", self.load, "m")
        self.assertEqual(self.daemon.stop(), 0)

    def test_demand(self):
        for name in "abc":
            save(self.root, name, 1, 2, size=1 << 20)
        self.start("--model-control-mode", "explicit", "--load-on-demand", "true", "--model-memory-limit", "10MB")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(set(pool.map(self.ask, ["a"] * 8)), {2})
        for name in "abcab":
            self.assertEqual(self.ask(name), 2)
            self.assertLessEqual(len(self.states(ready=True)), 2)
        # Readiness can be queried without a token, so it must not load or unload models.
        stub = self.daemon.stub
        before = self.states(ready=True)
        self.assertEqual([stub.ModelReady(pb.ModelReadyRequest(name=name)).ready for name in "abc"], [True, True, False])
        self.assertEqual(self.states(ready=True), before)
        # Calls that clients make before a request load the model too.
        for name in "abcab":
            self.assertEqual(stub.ModelMetadata(pb.ModelMetadataRequest(name=name)).name, name)
        for name in "abcab":
            self.assertEqual(stub.ModelConfig(pb.ModelConfigRequest(name=name)).config.name, name)
        # Streams wait for it as well, request by request.
        questions = [request(name, [("x", "FP32", [1], struct.pack("<f", 1))], request_id=str(i))
                     for i, name in enumerate(["a", "b", "missing", "c", "a"])]
        answers = list(stub.ModelStreamInfer(iter(questions), timeout=300))
        self.assertEqual([answer.infer_response.id for answer in answers], list("01234"))
        self.assertEqual([bool(answer.error_message) for answer in answers], [False, False, True, False, False])
        self.assertFalse(stub.ModelReady(pb.ModelReadyRequest(name="missing")).ready)
        self.assertGreater(self.daemon.metric("tensord_model_evictions_total"), 5)
        self.assert_code(CODE.NOT_FOUND, "Request for unknown model", self.ask, "missing")
        self.unload("a")
        self.assert_code(CODE.NOT_FOUND, "has no available versions", self.ask, "a")

    def test_no_request_fails_or_waits_while_versions_change(self):
        save(self.root, "m", 1, 1)
        self.start("--model-control-mode", "explicit", "--load-model", "m")
        is_over = threading.Event()
        answers, errors = [], []

        def client():
            while not is_over.is_set():
                try:
                    answers.append(self.ask("m"))
                except grpc.RpcError as error:
                    errors.append(error)
        threads = [threading.Thread(target=client) for _ in range(3)]
        for thread in threads:
            thread.start()
        for version in range(2, 8):
            save(self.root, "m", version, version)
            self.load("m")
            self.assertEqual(self.ask("m"), version)
        is_over.set()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertLessEqual(set(answers), set(range(1, 8)))

    def command(self, *args):
        result = subprocess.run([BINARY, *args, "--address", self.daemon.ready["grpc"]], capture_output=True, text=True,
                                timeout=300)
        return result.returncode, result.stdout, result.stderr

    def test_commands(self):
        save(self.root, "m", 1, 2)
        self.start("--model-control-mode", "explicit")
        self.assertEqual(self.command("models"), (0, "MODEL  VERSION  STATE       REASON\nm               not loaded\n", ""))
        self.assertEqual(self.command("load", "m"), (0, "m: loaded\n", ""))
        self.assertEqual(self.command("models", "--ready"), (0, "MODEL  VERSION  STATE  REASON\nm            1  READY\n", ""))
        weights = os.path.join(self.root, "weights.pt")
        torch.save({"factor": torch.tensor([4.0])}, weights)
        self.assertEqual(self.command("load", "m", "--weights", weights, "--version", "3", "--label", "stable=3")[0], 0)
        self.assertEqual(self.ask("m", "stable"), 4)
        self.assertEqual(self.command("models", "label", "m", "canary=3")[0], 0)
        self.assertEqual(self.ask("m", "canary"), 4)
        self.assertEqual(self.command("unload", "m"), (0, "m: unloaded\n", ""))
        code, out, error = self.command("models", "--json")
        self.assertEqual((code, error), (0, ""))
        self.assertEqual(json.loads(out), {"name": "m", "version": "3", "state": "UNAVAILABLE", "reason": "unloaded"})
        code, _, error = self.command("load", "missing")
        self.assertEqual(code, 1)
        self.assertIn("failed to load 'missing'", error)


if __name__ == "__main__":
    unittest.main()
