"""The context of an attack: daemons of its own, and their state as seen from outside."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time

from tests.attacks.registry import Figure
from tests.e2e.daemon import Daemon

MB = 1 << 20


class AttackedDaemon(Daemon):
    """A `tensord serve` on free loopback ports (tests/e2e/daemon.py), with measurements of its resources."""

    @property
    def pid(self):
        return self.process.pid

    @property
    def grpc_port(self):
        return int(self.ready["grpc"].rsplit(":", 1)[1])

    @property
    def metrics_port(self):
        return int(self.ready["metrics"].rsplit(":", 1)[1])

    def _status(self, field):
        with open(f"/proc/{self.pid}/status") as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1])
        raise RuntimeError(f"no {field} of process {self.pid}")

    def rss_mb(self):
        return self._status("VmRSS") / 1024

    def threads(self):
        return self._status("Threads")

    def peak_mb(self):
        """The peak since the daemon started, or since reset_peak()."""
        return self._status("VmHWM") / 1024

    def reset_peak(self):
        with open(f"/proc/{self.pid}/clear_refs", "w") as clear:
            clear.write("5")

    def is_alive(self):
        return self.process.poll() is None


class LiveProbe:
    """Calls ServerLive ten times a second from a process of its own, on one connection or each time on a new one. After
    the `with` block, `worst_s` is the longest response time; a call without a response counts as `limit_s`."""

    def __init__(self, daemon, metadata=(), fresh_connections=False, limit_s=5, credentials=None):
        self.arguments = [daemon.ready["grpc"], str(limit_s), "fresh" if fresh_connections else "kept",
                          credentials or "", *[f"{key}={value}" for key, value in metadata]]
        self.worst_s, self.calls, self.failed = 0.0, 0, 0

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-m", "tests.attacks.live_probe", *self.arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            raise RuntimeError("the probe had no first answer")
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate("")
        worst, calls, failed = out.split()
        self.worst_s, self.calls, self.failed = float(worst), int(calls), int(failed)

    def figure(self, bound_s=1.0):
        return Figure("ServerLive", self.worst_s, bound_s, "s")


class Context:
    """`repository` is a folder of small models (models.py) that all attacks share, so do not write to it; `folder` is
    the attack's own."""

    def __init__(self, repository, folder):
        self.repository, self.folder = repository, folder

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def daemon(self, *flags, repository=None, environment=None):
        """A context manager: AttackedDaemon with these flags of `tensord serve`."""
        return AttackedDaemon(repository or self.repository, *flags, environment=environment)

    def probe(self, daemon, **options):
        return LiveProbe(daemon, **options)

    @contextlib.contextmanager
    def watched(self, daemon, memory_mb=300, live_s=1.0, **probe_options):
        """Probes the daemon and watches its memory while the block runs. Yields a list that has the figures
        afterwards."""
        figures = []
        with self.probe(daemon, **probe_options) as probe:
            daemon.reset_peak()
            yield figures
            if not daemon.is_alive():
                raise RuntimeError("the daemon has died: " + daemon.log_text()[-2000:])
            figures.append(Figure("peak", daemon.peak_mb(), memory_mb, "MB"))
        figures.append(probe.figure(live_s))


def in_threads(count, function, seconds=None):
    """Runs function(index, is_over) in threads; is_over() becomes true after `seconds`. Waits for all of them."""
    end = time.monotonic() + (seconds or 1e9)
    threads = [threading.Thread(target=function, args=(index, lambda: time.monotonic() > end), daemon=True)
               for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="tensord_attack_")
