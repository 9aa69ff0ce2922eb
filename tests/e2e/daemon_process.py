"""Starts the real daemon on free ports; needs only Python."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.environ.get("TENSORD_BINARY", os.path.join(ROOT, "build", "tensord"))
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 120
STOPPED = (" stopped\n", '"stopped"}\n')  # the last line of the log, as text and as JSON


class DaemonProcess:
    """A running `tensord serve`; use as a context manager. `repository` is a folder or a list of them."""

    def __init__(self, repository, *flags, environment=None):
        self.folder = tempfile.TemporaryDirectory()
        self.ready_file = os.path.join(self.folder.name, "ready.json")
        self.log_path = os.path.join(self.folder.name, "log.txt")
        self.log = open(self.log_path, "w")
        self.was_stopped = False
        repositories = repository if isinstance(repository, (list, tuple)) else [repository]
        folders = [argument for folder in repositories for argument in ("--model-repository", str(folder))]
        self.process = subprocess.Popen(
            [BINARY, "serve", *folders, "--grpc-port", "0", "--metrics-port", "0", "--ready-file", self.ready_file,
             *flags], stderr=self.log, env={**os.environ, **(environment or {})})
        deadline = time.monotonic() + START_TIMEOUT_S
        while not os.path.exists(self.ready_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise RuntimeError("the daemon did not start:\n" + self.log_text())
            time.sleep(0.01)
        with open(self.ready_file) as ready:
            self.ready = json.load(ready)

    def log_text(self):
        with open(self.log_path) as log:
            return log.read()

    def metrics(self):
        with urllib.request.urlopen(f"http://{self.ready['metrics']}/metrics", timeout=300) as response:
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

    def stop(self, timeout=300):
        """Sends SIGTERM; returns the exit code."""
        self.was_stopped = True
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        self.log.close()
        return code

    def kill(self):
        """Kills it, like a machine failure."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, failure=None, *_):
        """Stops it in order, and checks that it did; kills it if it does not stop. A daemon that the test itself has
        killed is fine, one that crashed is not."""
        wrong = self._end()
        self.log.close()
        if wrong and failure is None:
            raise AssertionError(f"the daemon {wrong}:\n{self.log_text()[-3000:]}")

    def _end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                return "did not stop"
            if not any(form in self.log_text() for form in STOPPED):
                return f"ended with {self.process.returncode} instead of stopping"
        elif self.process.returncode not in (0, -signal.SIGKILL) and not self.was_stopped:
            return f"died with {self.process.returncode}"
        return None
