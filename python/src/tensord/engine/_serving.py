"""engine.serve: serves a model over gRPC by a daemon that it starts."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import weakref

from tensord.engine import _engine

_FILES = {"pytorch_libtorch": "model.pt", "onnxruntime_onnx": "model.onnx"}


def daemon_program() -> str:
    """The daemon's path: $TENSORD_BINARY, the one in the tensord-server wheel, or the one in PATH."""
    found = os.environ.get("TENSORD_BINARY") or _installed_daemon() or shutil.which("tensord")
    if not found:
        raise _engine.NotFoundError("serve: there is no program tensord: install the wheel tensord-server, or set TENSORD_BINARY")
    return found


def _installed_daemon() -> str | None:
    """The wheel's binary, wherever pip installed it: next to Python, in the user's folder or in that of --target."""
    try:
        files = importlib.metadata.distribution("tensord-server").files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    places = (str(file.locate()) for file in files if file.parts[-2:] == ("bin", "tensord"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


class Server:
    """A running daemon: `address` is for clients, `stop()` ends it. A context manager too. It ends with this
    process."""

    def __init__(self, folder: str, name: str, flags: list):
        self.name = name
        self._folder = folder
        self._ready = os.path.join(folder, "ready.json")
        self._log = os.path.join(folder, "log")
        command = [daemon_program(), "serve", "--model-repository", os.path.join(folder, "models"), "--ready-file", self._ready, *flags]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        weakref.finalize(self, _end, self._process, folder)
        self.address = self._wait()

    def _wait(self) -> str:
        deadline = time.monotonic() + 120
        while not os.path.exists(self._ready):
            if self._process.poll() is not None:
                raise _engine.InternalError("serve: the daemon ended at its start:\n" + pathlib.Path(self._log).read_text(errors="replace")[-2000:])
            if time.monotonic() > deadline:
                self.stop()
                raise _engine.DeadlineExceededError("serve: the daemon was not ready in two minutes")
            time.sleep(0.01)
        return json.loads(pathlib.Path(self._ready).read_text())["grpc"]

    def stop(self) -> None:
        """Ends the daemon after it has answered its open requests."""
        _end(self._process, self._folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def __repr__(self):
        state = "running" if self._process.poll() is None else "stopped"
        return f"Server({self.name!r} at {self.address}, {state})"


def _end(process, folder: str) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def serve(model, *, name: str = "model", address: str = "127.0.0.1", port: int = 0, flags=()) -> Server:
    """Serves a loaded, traced or scripted model, a Module (which is scripted) or a file under `name`, with the current
    values of its tensors. `port` 0 selects a free port; `flags` are further flags of `tensord serve`."""
    from tensord.engine import jit, nn

    if isinstance(model, nn.Module):
        model = jit.script(model)
    folder = tempfile.mkdtemp(prefix="tensord-serve-")
    try:
        version = os.path.join(folder, "models", name, "1")
        os.makedirs(version)
        if isinstance(model, jit.ScriptModule):
            if model.format not in _FILES:
                raise _engine.UnimplementedError(f"serve: a model of the format {model.format} cannot be written; give its file")
            model.save(os.path.join(version, _FILES[model.format]))
        else:
            path = pathlib.Path(model)
            shutil.copy(path, os.path.join(version, {".pt2": "model.pt2", ".onnx": "model.onnx"}.get(path.suffix, "model.pt")))
        return Server(folder, name, ["--grpc-address", address, "--grpc-port", str(port), "--metrics-port", "0", *map(str, flags)])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
