"""Daemons that train together, on one machine: a coordinator, workers that join it, and a relay between them."""

import os
import selectors
import socket
import threading

from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import TrainingDaemon, training


class Relay:
    """A port whose connections are forwarded to `target`, which may change; it can be frozen and cut."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.target = None
        self.selector = selectors.DefaultSelector()
        self.peers, self.is_frozen, self.is_closed = {}, False, False
        self.lock = threading.Lock()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        while not self.is_closed:
            for key, _ in self.selector.select(timeout=0.05):
                with self.lock:
                    if not self.is_frozen:
                        self.move(key.fileobj)

    def move(self, ready):
        if ready is self.listener:
            near, _ = self.listener.accept()
            try:
                host, port = self.target.rsplit(":", 1)
                far = socket.create_connection((host, int(port)), timeout=5)
            except (OSError, AttributeError):
                near.close()
                return
            for one, other in ((near, far), (far, near)):
                self.peers[one] = other
                self.selector.register(one, selectors.EVENT_READ)
        elif ready in self.peers:
            try:
                data = ready.recv(1 << 16)
                if data:
                    self.peers[ready].sendall(data)
                    return
            except OSError:
                pass
            self.drop(ready)

    def drop(self, one):
        for end in (one, self.peers.pop(one)):
            self.peers.pop(end, None)
            self.selector.unregister(end)
            end.close()

    def freeze(self, is_frozen=True):
        """Stops forwarding silently, like an unplugged cable."""
        with self.lock:
            self.is_frozen = is_frozen

    def cut(self):
        with self.lock:
            for one in list(self.peers):
                if one in self.peers:
                    self.drop(one)

    def close(self):
        self.is_closed = True
        self.thread.join()
        self.cut()
        self.listener.close()


class Coordinator(TrainingDaemon):
    def __init__(self, *flags):
        super().__init__("--host-name", "a", "--training-jobs", "2", *flags)
        self.relay = Relay()

    def start(self):
        super().start()
        self.relay.target = self.daemon.ready["grpc"]
        return self

    def close(self):
        super().close()
        self.relay.close()

    def hosts(self):
        return {host.name: host for host in self.stub.ListHosts(training.ListHostsRequest(), timeout=300).hosts}

    def wait_for_hosts(self, *names):
        wait_until(lambda: set(names) <= self.hosts().keys())


class Worker(TrainingDaemon):
    def __init__(self, name, address, *flags):
        super().__init__("--join", address, "--host-name", name, *flags)
        self.name = name

    def cached(self):
        folder = os.path.join(self.jobs, "host-cache")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def rank_pids(self):
        return children_of(self.daemon.process.pid)


def children_of(pid):
    """The ranks started by this process."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            with open(f"/proc/{entry}/cmdline") as line:
                is_rank = "training-rank" in line.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_rank and int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(entry))
    return found
