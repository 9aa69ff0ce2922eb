"""Daemons in network namespaces (root, iproute2): a job of several hosts under faults at random, and over a slow link.

Usage: TENSORD_BINARY=build/dev/server/tensord /usr/bin/python3 -m tests.e2e.host_faults [--faults 20] [--hosts 3] [--seed 0]

Each fault is one of: a rank is killed or frozen, a host's daemon or the coordinator is killed and starts again, a host's cable is pulled for
some seconds. What comes out must be that of an undisturbed job on one host, bit by bit; nothing may be left running.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import grpc
import torch

from tests.e2e import training_models as models
from tests.e2e.daemon import BINARY, training, training_pb2_grpc
from tests.e2e.hosts import children_of
from tests.e2e.processes import is_running
from tests.e2e.training_daemon import AT_REST, COMPLETED, spec

SILENT_AFTER = 3  # seconds
BRIDGE = "tnbr0"


def run(*arguments, check=True):
    return subprocess.run(arguments, check=check, capture_output=True, text=True).stdout


class Network:
    """Namespaces tn1, tn2 …, each with eth0 10.78.0.11, .12 … on one bridge."""

    def __init__(self, count):
        self.names = [f"tn{i + 1}" for i in range(count)]

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
        return self

    def __exit__(self, *_):
        self.down()

    def down(self):
        self.let_through("-D")
        for name in self.names:
            run("ip", "link", "del", f"v{name}", check=False)
            run("ip", "netns", "del", name, check=False)
        run("ip", "link", "del", BRIDGE, check=False)

    @staticmethod
    def let_through(action):
        """A Docker daemon has the kernel drop what bridges pass on."""
        if shutil.which("iptables"):
            run("iptables", action, "FORWARD", "-i", BRIDGE, "-o", BRIDGE, "-j", "ACCEPT", check=False)

    def plug(self, name, is_in):
        run("ip", "link", "set", f"v{name}", "up" if is_in else "down")

    def slow(self, name, rate):
        run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "64kb",
            "latency", "50ms")

    def fast(self, name):
        run("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", "eth0", "root")


class Host:
    """A daemon in a namespace; the first one is the coordinator."""

    def __init__(self, network, index, folder):
        self.network, self.name, self.address = network, network.names[index], f"10.78.0.1{index + 1}:8001"
        self.is_first = index == 0
        self.folder = os.path.join(folder, self.name)
        self.models, self.data, self.jobs = (os.path.join(self.folder, part) for part in ("models", "data", "jobs"))
        os.makedirs(self.models)
        os.makedirs(self.data)
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

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


def get(host, job_id):
    """The job, also where the coordinator's connection is new."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return host.stub.GetJob(training.GetJobRequest(id=job_id), timeout=10)
        except grpc.RpcError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def wait(host, job_id, condition, timeout=600):
    deadline = time.monotonic() + timeout
    while True:
        job = get(host, job_id)
        if condition(job):
            return job
        assert time.monotonic() < deadline, f"waited in vain:\n{job}\n{host.log()}"
        time.sleep(0.02)


def strike(network, hosts, job_id, chance):
    """One fault between two checkpoints; False once the job is at rest."""
    first = hosts[0]
    job = wait(first, job_id, lambda job: job.state in AT_REST or (
        len(job.progress.ranks) == len(hosts) and job.progress.step > job.progress.checkpoint_step))
    if job.state in AT_REST:
        return False
    time.sleep(chance.uniform(0, 0.5))
    fault = chance.choice(("kill rank", "kill rank", "freeze rank", "kill host", "pull cable", "kill coordinator"))
    victim = chance.choice(hosts[1:])
    if fault in ("kill rank", "freeze rank"):
        victim = chance.choice(hosts)
        pids = children_of(victim.process.pid)
        for pid in pids[:1]:
            os.kill(pid, signal.SIGKILL if fault == "kill rank" else signal.SIGSTOP)
    elif fault == "pull cable":
        network.plug(victim.name, False)
        time.sleep(chance.uniform(0.5, 2.5 * SILENT_AFTER))
        network.plug(victim.name, True)
    else:
        victim = first if fault == "kill coordinator" else victim
        pids = [pid for host in (hosts if victim is first else [victim]) for pid in children_of(host.process.pid)]
        victim.kill()
        deadline = time.monotonic() + 2 * SILENT_AFTER + 5
        while any(is_running(pid) for pid in pids):
            assert time.monotonic() < deadline, f"ranks {pids} outlived their daemon"
            time.sleep(0.05)
        victim.start()
    print(f"{fault} of {victim.name} near step {job.progress.step}", flush=True)
    return True


def job_of(options, processes_per_host, world_size):
    distribution = training.Distribution(world_size=world_size, processes_per_host=processes_per_host)
    distribution.max_restarts = 1000
    distribution.timeout_seconds = SILENT_AFTER
    return spec(model="norms", data="norms.pt", steps=options.steps, batch_size=32, distribution=distribution,
                optimizer=training.Optimizer(name="sgd", lr=0.01, momentum=0.9), publish=training.PublishPolicy(when="at_end"),
                checkpoints=training.CheckpointPolicy(every_steps=20), resources=training.Resources(threads=processes_per_host))


def result_of(host, job_id):
    done = wait(host, job_id, lambda job: job.state in AT_REST, timeout=3600)
    assert done.state == COMPLETED, done.message + host.log()
    file = os.path.join(host.models, "norms", str(done.published_version), "model.pt")
    return done, dict(torch.jit.load(file).state_dict())


def create(host, message):
    # From the first version, whatever was published meanwhile.
    message.model.version = 1
    return host.stub.CreateJob(training.CreateJobRequest(spec=message), timeout=300).id


def differing(ours, theirs):
    return [name for name, weight in ours.items() if not torch.equal(weight, theirs[name])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=20)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.steps = 200 + 60 * options.faults
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, Network(options.hosts) as network:
        hosts = [Host(network, i, folder) for i in range(options.hosts)]
        first = hosts[0]
        models.save(models.BatchNormNet(), first.models, "norms")
        x, y = models.clusters(1000, 16, 4, seed=2)
        torch.save({"x": x, "y": y}, os.path.join(first.data, "norms.pt"))
        try:
            for host in hosts:
                host.start()
            _, whole = result_of(first, create(first, job_of(options, options.hosts, options.hosts)))
            for host in hosts:
                network.slow(host.name, "20mbit")
            slow, weights = result_of(first, create(first, job_of(options, 1, options.hosts)))
            wrong = differing(weights, whole)
            waited = sum(rank.communication_seconds for rank in slow.progress.ranks)
            print(f"slow link: {slow.progress.restarts} restarts, {waited:.1f} s waited; different: {wrong}", flush=True)
            for host in hosts:
                network.fast(host.name)
            chance, struck = random.Random(options.seed), 0
            job_id = create(first, job_of(options, 1, options.hosts))
            while struck < options.faults and strike(network, hosts, job_id, chance):
                struck += 1
            done, weights = result_of(first, job_id)
            wrong += differing(weights, whole)
            left = [pid for host in hosts for pid in children_of(host.process.pid)]
            print(f"{struck} faults, {done.progress.restarts} restarts since the coordinator's last start, {done.progress.step} "
                  f"steps; different: {wrong}; left running: {left}")
            return bool(wrong or left)
        finally:
            for host in hosts:
                host.stop()


if __name__ == "__main__":
    sys.exit(main())
