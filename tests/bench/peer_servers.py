"""Other projects' servers from PyPI, which serve a model repository (NAME/1/model.pt): NVIDIA's Triton,
TorchServe and MLServer, each in an environment that scripts/setup bench makes. All run the archives with Debian's PyTorch.

The models are identity, mlp (batches of up to BATCH rows) and resnet50; a server loads those that exist.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

from tests.e2e.daemon import pb

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests" / "bench"
BATCH = 32
INPUTS = {"identity": "x", "mlp": "input", "resnet50": "x"}
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 30


def free_ports(count):
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def descendants(pid):
    """The process and all of its descendants."""
    found = [pid]
    for parent in found:
        for children in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:  # it has ended
                pass
    return found


def send(signal_number, pids):
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            pass


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def stop(process):
    """Returns when all descendants have ended too."""
    if process.poll() is not None:
        return
    pids = descendants(process.pid)[::-1]
    send(signal.SIGTERM, pids)
    end = time.monotonic() + STOP_TIMEOUT_S
    while any(map(is_alive, pids)) and time.monotonic() < end:
        process.poll()
        time.sleep(0.05)
    send(signal.SIGKILL, filter(is_alive, pids))
    process.wait()


def kserve_message(model, values):
    request = pb.ModelInferRequest(model_name=model)
    request.inputs.add(name=INPUTS[model], datatype="FP32", shape=list(values.shape))
    request.raw_input_contents.append(values.tobytes())
    return request.SerializeToString()


class Peer:
    """A running server; use as a context manager. `models` is a repository, `folder` is for files of its own."""

    title = ""
    environment = ""  # below build/
    method = "/inference.GRPCInferenceService/ModelInfer"
    message = staticmethod(kserve_message)

    @classmethod
    def python(cls):
        return ROOT / "build" / cls.environment / "bin" / "python"

    @classmethod
    def is_installed(cls):
        return cls.python().exists()

    def __init__(self, models, folder):
        self.models, self.folder = pathlib.Path(models), pathlib.Path(folder) / self.environment
        self.names = sorted(path.name for path in self.models.iterdir())
        shutil.rmtree(self.folder, ignore_errors=True)  # files of other models
        self.folder.mkdir()
        self.ports = free_ports(5)
        self.grpc = f"127.0.0.1:{self.ports[0]}"
        command, environment = self.prepare()
        self.log = open(self.folder / "log.txt", "w")
        self.started = time.perf_counter()
        self.process = subprocess.Popen([str(word) for word in command], cwd=self.folder, stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env=os.environ | environment)

    def prepare(self):
        """Writes the server's files; returns the command and additional environment variables."""
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    def wait_until_ready(self):
        end = time.monotonic() + START_TIMEOUT_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{self.title} did not start:\n" + pathlib.Path(self.log.name).read_text()[-3000:])
            time.sleep(0.005)
        return self

    def file_of(self, name):
        return self.models / name / "1" / "model.pt"

    def get(self, path, port):
        """The body, or None if the request fails."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.read() if answer.status == 200 else None
        except OSError:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        stop(self.process)
        self.log.close()


class Triton(Peer):
    """Does not start without a model."""

    title, environment = "Triton, Python backend", "peer_servers"

    def prepare(self):
        return [self.python(), BENCH / "pytriton_server.py", self.models, *self.ports[:3]], {}

    def is_ready(self):
        return all(self.get(f"/v2/models/{name}/ready", self.ports[1]) is not None for name in self.names)


class TorchServe(Peer):
    """Workers, threads and JVM have their defaults. The batch delay is the minimum, since the default of 100 ms would
    dominate the latency."""

    title, environment = "TorchServe", "torchserve"
    method = "/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions"

    def prepare(self):
        store = self.folder / "store"
        store.mkdir()
        for name in self.names:
            self.archive(name, store)
        grpc, grpc_management, http, management, metrics = self.ports
        (self.folder / "config.properties").write_text(
            f"inference_address=http://127.0.0.1:{http}\nmanagement_address=http://127.0.0.1:{management}\n"
            f"metrics_address=http://127.0.0.1:{metrics}\ngrpc_inference_port={grpc}\n"
            f"grpc_management_port={grpc_management}\nmax_request_size=100000000\nmax_response_size=100000000\n")
        command = [self.python().parent / "torchserve", "--start", "--foreground", "--disable-token-auth", "--ts-config",
                   "config.properties", "--model-store", "store", *(["--models", "all"] if self.names else [])]
        # It records the running server in the folder for temporary files.
        return command, {"TMPDIR": str(self.folder), "PATH": f"{self.python().parent}:{os.environ['PATH']}"}

    def archive(self, name, store):
        config = self.folder / f"{name}.yaml"
        config.write_text(f"batchSize: {BATCH if name == 'mlp' else 1}\nmaxBatchDelay: 1\n")
        subprocess.run([self.python().parent / "torch-model-archiver", "--model-name", name, "--version", "1.0",
                        "--serialized-file", self.file_of(name), "--handler", BENCH / "torchserve_handler.py",
                        "--config-file", config, "--export-path", store, "--force"], check=True, capture_output=True)

    def is_ready(self):
        if self.get("/ping", self.ports[2]) is None:
            return False
        answers = [self.get(f"/models/{name}", self.ports[3]) for name in self.names]
        return all(answer and {worker["status"] for worker in json.loads(answer)[0]["workers"]} == {"READY"}
                   for answer in answers)

    @staticmethod
    def message(model, values):
        """PredictionsRequest: model_name = 1, input = 3 (a map of bytes)."""

        def field(number, data):
            size, length = len(data), b""
            while size > 127:
                length += bytes([size & 127 | 128])
                size >>= 7
            return bytes([number << 3 | 2]) + length + bytes([size]) + data

        entry = field(1, b"data") + field(2, values.tobytes())
        return field(1, model.encode()) + field(3, entry)


class MLServer(Peer):
    title, environment = "MLServer", "mlserver"

    def prepare(self):
        grpc, http, metrics = self.ports[:3]
        models = self.folder / "models"
        models.mkdir()
        (models / "settings.json").write_text(json.dumps(
            {"host": "127.0.0.1", "grpc_port": grpc, "http_port": http, "metrics_port": metrics,
             "grpc_max_message_length": 100000000}))
        for name in self.names:
            kind = "Identity" if name == "identity" else "TorchScript"
            settings = {"name": name, "implementation": f"tests.bench.mlserver_runtime.{kind}",
                        "parameters": {"uri": str(self.file_of(name))}}
            if name == "mlp":
                settings |= {"max_batch_size": BATCH, "max_batch_time": 0.001}
            (models / name).mkdir()
            (models / name / "model-settings.json").write_text(json.dumps(settings))
        return [self.python().parent / "mlserver", "start", models], {"PYTHONPATH": str(ROOT)}

    def is_ready(self):
        names = [f"/v2/models/{name}/ready" for name in self.names]
        return all(self.get(path, self.ports[1]) is not None for path in ["/v2/health/ready", *names])


PEERS = (Triton, TorchServe, MLServer)
