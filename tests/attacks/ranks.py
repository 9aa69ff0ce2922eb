"""Unauthenticated, slow and lying peers at the ports of a training job's ranks, of its store, and of joining nodes."""

import contextlib
import os
import random
import signal
import socket
import struct
import threading
import time

import torch

from tests.attacks.registry import Figure, attack
from tests.attacks.robust import create, job, training_flags
from tests.e2e.daemon import training
from tests.e2e.processes import wait_until
from tests.e2e.training import training_models
from tests.e2e.training.hosts import children_of
from tests.e2e.training.training_daemon import AT_REST, COMPLETED

LISTENING = "0A"


def listening_ports(pid):
    """The TCP ports that the process listens on, with an address that reaches each."""
    inodes = set()
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    except OSError:
        return []  # it has ended
    found = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                address, port = fields[1].split(":")
                if fields[3] == LISTENING and fields[9] in inodes:
                    host = "127.0.0.1" if table == "tcp6" else socket.inet_ntoa(struct.pack("<I", int(address, 16)))
                    found.append(("127.0.0.1" if host == "0.0.0.0" else host, int(port, 16)))
    return found


def noises(chance):
    """The first bytes that a stranger may send."""
    return (b"", b"\x00", chance.randbytes(8), chance.randbytes(5000), bytes(8), struct.pack("<q", 1), struct.pack("<q", -1),
            struct.pack("<I", 0xffffffff) + bytes(100), struct.pack("<I", 40) + b"\x00" + struct.pack("<I", 32) + bytes(32),
            struct.pack("<I", 80 << 20) + bytes(1000), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))


class Strangers:
    """Connect to all ports of some processes, repeatedly, and send something, nothing, or what others sent."""

    def __init__(self, pids_of, skipped=()):
        self.pids_of, self.skipped = pids_of, set(skipped)
        self.open_ones, self.connections, self.ports = [], 0, set()
        self.chance = random.Random(5)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.work)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()
        for one in self.open_ones:
            one.close()

    def work(self):
        while not self.is_over.is_set():
            places = {place for pid in self.pids_of() for place in listening_ports(pid) if place[1] not in self.skipped}
            for place in places:
                self.ports.add(place[1])
                for noise in noises(self.chance):
                    try:
                        one = socket.create_connection(place, timeout=1)
                        one.sendall(noise)
                    except OSError:
                        continue
                    self.connections += 1
                    if self.chance.random() < 0.5:
                        self.open_ones.append(one)
                    else:
                        one.close()
            while len(self.open_ones) > 300:
                self.open_ones.pop(0).close()
            time.sleep(0.01)


def norms_job(daemon, steps, **distribution):
    return create(daemon, model=training.ModelSource(name="norms", version=1), data="norms.pt", steps=steps, batch_size=32,
                  optimizer=training.Optimizer(name="sgd", lr=0.01, momentum=0.9), publish=training.PublishPolicy(when="at_end"),
                  distribution=training.Distribution(world_size=2, timeout_seconds=20, max_restarts=20, **distribution))


def write_norms(context):
    torch.manual_seed(0)
    training_models.save(training_models.BatchNormNet(), context.path("models"), "norms")
    torch.save(dict(zip("xy", training_models.clusters(1000, 16, 4, seed=2))), context.path("data", "norms.pt"))


def result_of(context, daemon, job_id, seconds=120):
    done = wait_until(lambda: [now for now in [job(daemon, job_id)] if now.state in AT_REST], timeout=seconds)[0]
    if done.state != COMPLETED:
        raise RuntimeError(f"the job has failed: {done.message}\n{daemon.log_text()[-3000:]}")
    file = context.path("models", "norms", str(done.published_version), "model.pt")
    return done, dict(torch.jit.load(file).state_dict())


@attack("strangers_at_ports_of_ranks", short=True)
def strangers_at_ports_of_ranks(context):
    """Two ranks train while strangers connect to every port that they, or the daemon for them, listen on: the weights
    are those of an undisturbed job, and no process crashes. A stranger that is first at a Gloo port can make the ranks
    connect again."""
    flags = training_flags(context)
    write_norms(context)
    with context.daemon(*flags, repository=context.path("models")) as daemon:
        _, whole = result_of(context, daemon, norms_job(daemon, 400))
        disturbed = norms_job(daemon, 400)
        own = [daemon.grpc_port, daemon.metrics_port]
        with Strangers(lambda: [daemon.pid, *children_of(daemon.pid)], own) as strangers:
            # Gloo's ports are open until the ranks have met, which is late when one that does not listen is held up.
            ranks = wait_until(lambda: strangers.ports and len(found := children_of(daemon.pid)) == 2 and found, timeout=60)
            late = min(ranks, key=lambda pid: len(listening_ports(pid)))
            os.kill(late, signal.SIGSTOP)
            wait_until(lambda: strangers.connections >= 50, timeout=60)
            with contextlib.suppress(ProcessLookupError):  # the ranks may have been started anew
                os.kill(late, signal.SIGCONT)
            done, weights = result_of(context, daemon, disturbed)
        different = [name for name, weight in whole.items() if not torch.equal(weight, weights[name])]
        log = daemon.log_text()
        for sign in ("signal", "Sanitizer", "terminate"):
            if sign in log:
                raise RuntimeError("a rank has died: " + log[max(0, log.index(sign) - 500):][:1500])
        return [Figure("different weights", len(different), 0), Figure("restarts", done.progress.restarts, 3),
                Figure("connections of strangers", strangers.connections, 50, at_least=True),
                Figure("ports", len(strangers.ports), 1, at_least=True)]
