"""Daemons in network namespaces (root, iproute2, iptables): a job of several hosts under faults at random.

Usage: TENSORD_BINARY=build/dev/server/tensord /usr/bin/python3 -m tests.e2e.training.host_faults [--faults 100] [--hosts 3] [--seed 0] [--silent-after 3]

Each fault is one of: a rank is killed or frozen, a host's daemon or the coordinator is killed and starts again, and for some seconds a host's
cable is pulled, loses packets, delays them or carries few of them, or the coordinator's disk is full, or that of a host whose rank is killed.
Before them the job runs over slow links, and meets a host whose disk is full. What comes out must be that of an undisturbed job on one host, bit by bit; nothing may be left running.
"""

import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import time

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.hosts import children_of
from tests.e2e.namespaces import Host, Network
from tests.e2e.processes import is_running
from tests.e2e.training.training_daemon import AT_REST, COMPLETED, FAILED, spec


def get(host, job_id):
    """The job, with retries while the coordinator restarts."""
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


def disturb_network(network, victim, fault, chance):
    """For some seconds, which may exceed the ranks' silence timeout."""
    begin, end = {
        "pull cable": (lambda: network.plug(victim.name, False), lambda: network.plug(victim.name, True)),
        "lossy link": (lambda: network.lose(victim.name, 0.1), lambda: network.lose(victim.name, 0.1, "-D")),
        "slow link": (lambda: network.slow(victim.name, "1mbit"), lambda: network.fast(victim.name)),
        "delaying link": (lambda: network.delay(victim.name, 0.05), lambda: network.hasten(victim.name)),
    }[fault]
    begin()
    time.sleep(chance.uniform(0.2, 2.5) * victim.silent_after)
    end()


def kill_daemon(hosts, victim):
    pids = [pid for host in (hosts if victim is hosts[0] else [victim]) for pid in children_of(host.process.pid)]
    victim.kill()
    deadline = time.monotonic() + 2 * victim.silent_after + 60
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline, f"ranks {pids} outlived their daemon"
        time.sleep(0.05)
    victim.start()


def fill_coordinators_disk(first, job_id):
    """Checkpoints cannot be written, which costs a checkpoint; if the last one fails, the job stops, and is then
    resumed."""
    first.fill_disk()
    job = wait(first, job_id, lambda job: job.state in AT_REST or job.message.startswith("no checkpoint could be written"))
    first.empty_disk()
    if job.state in AT_REST and job.state != COMPLETED:
        assert job.state == FAILED and "No space left" in job.message, job
        first.stub.ResumeJob(training.ResumeJobRequest(id=job_id), timeout=60)


def fill_hosts_disk(victim, chance):
    """Its rank is killed, and its successor has no room for the checkpoint; the job waits, and continues once there is
    room."""
    victim.fill_disk()
    for pid in children_of(victim.process.pid)[:1]:
        os.kill(pid, signal.SIGKILL)
    time.sleep(chance.uniform(0, 8))
    victim.empty_disk()


FAULTS = ("kill rank", "kill rank", "freeze rank", "kill host", "kill coordinator", "pull cable", "lossy link", "slow link", "delaying link",
          "full disk", "full disk of a host")


def strike(network, hosts, job_id, chance):
    """One fault between two checkpoints; its name, or nothing once the job has ended or is paused."""
    first = hosts[0]
    job = wait(first, job_id, lambda job: job.state in AT_REST or (
        len(job.progress.ranks) == len(hosts) and job.progress.step > job.progress.checkpoint_step))
    if job.state in AT_REST:
        return ""
    time.sleep(chance.uniform(0, 0.5))
    fault, victim = chance.choice(FAULTS), chance.choice(hosts[1:])
    if fault in ("kill rank", "freeze rank"):
        victim = chance.choice(hosts)
        for pid in children_of(victim.process.pid)[:1]:
            os.kill(pid, signal.SIGKILL if fault == "kill rank" else signal.SIGSTOP)
    elif fault.startswith("kill"):
        victim = first if fault == "kill coordinator" else victim
        kill_daemon(hosts, victim)
    elif fault == "full disk":
        victim = first
        fill_coordinators_disk(first, job_id)
    elif fault == "full disk of a host":
        fill_hosts_disk(victim, chance)
    else:
        disturb_network(network, victim, fault, chance)
    print(f"{fault} of {victim.name} near step {job.progress.step}", flush=True)
    return fault


def job_of(options, processes_per_host, world_size):
    distribution = training.Distribution(world_size=world_size, processes_per_host=processes_per_host)
    distribution.max_restarts = 1000
    distribution.timeout_seconds = options.silent_after
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


def over_slow_links(network, hosts, options, whole):
    for host in hosts:
        network.slow(host.name, "20mbit")
    done, weights = result_of(hosts[0], create(hosts[0], job_of(options, 1, options.hosts)))
    for host in hosts:
        network.fast(host.name)
    wrong = differing(weights, whole)
    waited = sum(rank.communication_seconds for rank in done.progress.ranks)
    print(f"slow links: {done.progress.restarts} restarts, {waited:.1f} s waited; different: {wrong}", flush=True)
    return wrong


def with_a_full_disk_elsewhere(hosts, options, whole):
    """The job waits and reports the reason; once there is room it continues."""
    first, full = hosts[:2]
    versions = sorted(os.listdir(os.path.join(first.models, "norms")))
    full.fill_disk()
    job_id = create(first, job_of(options, 1, options.hosts))
    waiting = wait(first, job_id, lambda job: job.state in AT_REST or job.message.startswith("waiting for hosts"))
    print(f"full disk of {full.name}: {waiting.message}", flush=True)
    assert waiting.state not in AT_REST and f"host {full.name}: {full.jobs}" in waiting.message, waiting
    assert "No space left" in waiting.message, waiting
    assert sorted(os.listdir(os.path.join(first.models, "norms"))) == versions
    full.empty_disk()
    done, weights = result_of(first, job_id)
    assert done.progress.restarts > 0, done
    return differing(weights, whole)


def under_faults(network, hosts, options, whole):
    """Runs jobs one after the other, until enough faults have occurred."""
    chance, wrong, struck = random.Random(options.seed), [], collections.Counter()
    while struck.total() < options.faults:
        job_id = create(hosts[0], job_of(options, 1, options.hosts))
        while struck.total() < options.faults and (fault := strike(network, hosts, job_id, chance)):
            struck[fault] += 1
        done, weights = result_of(hosts[0], job_id)
        wrong += differing(weights, whole)
        print(f"{struck.total()} faults so far, {done.progress.restarts} restarts since the coordinator's last start", flush=True)
    print(", ".join(f"{fault}: {count}" for fault, count in sorted(struck.items())), flush=True)
    return wrong


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2000, help="of each job")
    parser.add_argument("--silent-after", type=int, default=3, help="seconds after which a rank or host counts as lost")
    return parser.parse_args()


def main():
    options = parse()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, Network(options.hosts) as network:
        hosts = [Host(network, i, folder, options.silent_after) for i in range(options.hosts)]
        first = hosts[0]
        models.save(models.BatchNormNet(), first.models, "norms")
        x, y = models.clusters(1000, 16, 4, seed=2)
        torch.save({"x": x, "y": y}, os.path.join(first.data, "norms.pt"))
        try:
            for host in hosts:
                host.start()
            _, whole = result_of(first, create(first, job_of(options, options.hosts, options.hosts)))
            wrong = with_a_full_disk_elsewhere(hosts, options, whole)
            wrong += over_slow_links(network, hosts, options, whole)
            wrong += under_faults(network, hosts, options, whole)
            deadline = time.monotonic() + 60
            while left := [pid for host in hosts for pid in children_of(host.process.pid)]:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            print(f"different: {wrong}; left running: {left}")
            return bool(wrong or left)
        finally:
            for host in hosts:
                host.stop()


if __name__ == "__main__":
    sys.exit(main())
