"""Daemons in network namespaces (root, iproute2, iptables), and faults of their network and disks."""

import json
import os
import shutil
import subprocess
import sys
import time

import grpc

from tests.e2e.training import disks
from tests.e2e.daemon import BINARY, training_pb2_grpc

BRIDGE = "tnbr0"
NEEDED = ("ip", "iptables", "tc", "mount", "unshare")
DISK_BYTES = 64 << 20


def missing():
    """Why hosts cannot be created here; empty if they can."""
    lacking = [program for program in NEEDED if not shutil.which(program)]
    if lacking:
        return f"missing: {', '.join(lacking)}"
    found = subprocess.run(["unshare", "--net", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True, check=False)
    return f"no namespaces: {found.stderr.strip()}" if found.returncode else ""


def run(*arguments, check=True):
    return subprocess.run(arguments, check=check, capture_output=True, text=True).stdout


class Network:
    """Namespaces tn1, tn2 …, each with eth0 10.78.0.11, .12 … on one bridge."""

    def __init__(self, count):
        self.names = [f"tn{i + 1}" for i in range(count)]
        self.wires = {}  # by host: the delaying process

    def __enter__(self):
        self.down()
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", "10.78.0.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        self.let_through("-I")
        for i, name in enumerate(self.names):
            run("ip", "netns", "add", name)
            run("ip", "link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"v{name}", "master", BRIDGE, "up")
            run("ip", "-n", name, "addr", "add", f"10.78.0.1{i + 1}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "netns", "exec", name, sys.executable, "-m", "tests.e2e.training.delaying_wire", "--checksums", "eth0")
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        for wire in self.wires.values():
            wire.kill()
        self.let_through("-D")
        for name in self.names:
            run("ip", "link", "del", f"w{name}", check=False)
            run("ip", "link", "del", f"v{name}", check=False)
            run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", BRIDGE, check=False)

    @staticmethod
    def let_through(action):
        """With a Docker daemon, the kernel drops bridged packets."""
        if shutil.which("iptables"):
            run("iptables", action, "FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT", check=False)

    def plug(self, name, is_in):
        run("ip", "link", "set", f"v{name}", "up" if is_in else "down")

    def slow(self, name, rate):
        run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "64kb",
            "latency", "50ms")

    def fast(self, name):
        run("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", "eth0", "root")

    def lose(self, name, probability, action="-A"):
        """Drops incoming packets with this probability."""
        run("ip", "netns", "exec", name, "iptables", action, "INPUT", "-i", "eth0", "-m", "statistic", "--mode", "random", "--probability",
            str(probability), "-j", "DROP")

    def delay(self, name, seconds):
        """Adds this latency each way: a delaying link between the host and the bridge."""
        run("ip", "link", "add", f"w{name}", "type", "veth", "peer", "name", f"b{name}")
        run("ip", "link", "set", f"w{name}", "up")
        run("ip", "link", "set", f"b{name}", "master", BRIDGE, "up")
        wire = subprocess.Popen([sys.executable, "-m", "tests.e2e.training.delaying_wire", f"v{name}", f"w{name}", str(seconds)],
                                stdout=subprocess.PIPE)
        self.wires[name] = wire
        assert wire.stdout.readline(), "the cable does not work"
        run("ip", "link", "set", f"v{name}", "nomaster")

    def hasten(self, name):
        wire = self.wires.pop(name)
        wire.kill()
        wire.wait()
        wire.stdout.close()
        run("ip", "link", "del", f"w{name}")
        run("ip", "link", "set", f"v{name}", "master", BRIDGE)


class Host:
    """A daemon in a namespace; the first one is the coordinator."""

    def __init__(self, network, index, folder, silent_after):
        self.silent_after = silent_after  # seconds
        self.network, self.name, self.address = network, network.names[index], f"10.78.0.1{index + 1}:8001"
        self.is_first = index == 0
        self.folder = os.path.join(folder, self.name)
        self.models, self.data, self.jobs = (os.path.join(self.folder, part) for part in ("models", "data", "jobs"))
        for part in (self.models, self.data, self.jobs):
            os.makedirs(part)
        if why := disks.mount(self.jobs, DISK_BYTES):
            raise RuntimeError(why)
        self.process, self.channel = None, None

    def start(self):
        ready = os.path.join(self.folder, "ready.json")
        if os.path.exists(ready):
            os.remove(ready)
        flags = ["--allow-metrics", "false", "--host-name", self.name, "--distributed-interface", "eth0", "--training-nice", "0"]
        flags += [] if self.is_first else ["--join", "10.78.0.11:8001"]
        with open(os.path.join(self.folder, "log.txt"), "a") as log:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.name, BINARY, "serve", "--model-repository", self.models, "--grpc-address",
                 self.address.split(":")[0], "--grpc-port", "8001", "--training-dir", self.jobs, "--training-data", self.data,
                 "--ready-file", ready, *flags], stderr=log)
        deadline = time.monotonic() + 300
        while not os.path.exists(ready):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.02)
        with open(ready) as file:
            assert json.load(file)["pid"] == self.process.pid
        return self

    @property
    def stub(self):
        if self.channel is None:
            self.channel = grpc.insecure_channel(self.address)
        return training_pb2_grpc.TrainingServiceStub(self.channel)

    def log(self):
        with open(os.path.join(self.folder, "log.txt")) as log:
            return log.read()[-3000:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def fill_disk(self):
        """Fills the disk with the daemon's jobs and files, until empty_disk()."""
        disks.fill(self.jobs)

    def empty_disk(self):
        disks.empty(self.jobs)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        disks.unmount(self.jobs)
