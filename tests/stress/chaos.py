"""All at once, for as long as one wants: a daemon with models of every kind under load from every kind of client, while versions come and
go, files are damaged, limits are hit, clients vanish, jobs train, ranks and hosts die, disks fill and certificates change. Nothing may
crash, answer wrong, or leak; every failure is counted.

Usage: scripts/chaos [--minutes 60] [--seed N]
TENSORD_BINARY is the server. Without root there is no disk that fills.
"""

import argparse
import collections
import contextlib
import os
import re
import shutil
import sys
import tempfile
import time

import grpc
import torch

from tests.e2e import sequence_models, serve_models
from tests.e2e.authority import Authority, read
from tests.e2e.daemon import DaemonProcess, inference_pb2_grpc, pb, training, training_pb2_grpc
from tests.e2e.network_test import replace
from tests.e2e.training import disks, training_models
from tests.e2e.training.hosts import children_of
from tests.e2e.training.training_daemon import COMPLETED
from tests.stress import actors, clients, disasters, folders, run
from tests.stress.models import make_repository
from tests.stress.run import DELAYS, check_log, load_everything, wait_until

run.SETTLE_S = 300

DISK_BYTES = 256 << 20
ROUND_S = 300  # at most
MORE_RSS = 64 << 20  # more than after the first round
MORE = 12  # descriptors, threads


class Audited(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if float(x.min()) < 0:
            raise ValueError("negative")
        return x * 2


AUDITED = ('max_batch_size: 4\ninput [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]\n'
           'output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]\n')


class Node(DaemonProcess):
    """A daemon that is called over its Unix socket, whatever else it listens on."""

    def __init__(self, socket, *arguments, **options):
        super().__init__(*arguments, "--grpc-unix-socket", socket, **options)
        self.address = "unix:" + socket
        self.channel = grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.stub = inference_pb2_grpc.GRPCInferenceServiceStub(self.channel)
        self.training = training_pb2_grpc.TrainingServiceStub(self.channel)

    def __exit__(self, *failure):
        self.channel.close()
        super().__exit__(*failure)


class Host:
    """The daemon of another host, which joins for training, and can be killed."""

    def __init__(self, folder, address, root, environment):
        self.folder, self.address, self.root, self.environment = folder, address, root, environment
        os.makedirs(os.path.join(folder, "models"))
        self.node = None
        self.restart()

    @property
    def process(self):
        return self.node.process

    def restart(self):
        if self.node:
            self.node.kill()
            check_log(self.node.log_text())
            self.node.__exit__()
        path = self.folder
        self.node = Node(os.path.join(path, "socket"), os.path.join(path, "models"), "--training-dir", os.path.join(path, "jobs"),
                         "--join", self.address, "--join-root-cert", self.root, "--host-name", "other", "--training-nice", "0",
                         environment=self.environment)


class Scene:
    """The folders, the daemons and all actors."""

    def __init__(self, folder, stack, delays):
        self.folder, self.stack = folder, stack
        self.environment = {"TENSORD_DELAYS": delays} if delays else {}
        self.models, self.polled, self.disk, self.data = (self.make(name) for name in ("models", "polled", "disk", "data"))
        make_repository(self.models)
        sequence_models.make_repository(self.models, ("growing", "fixed", "whole"))
        training_models.save(training_models.BatchNormNet(), self.models, "norms")
        serve_models.save(Audited(), self.models, clients.Auditor.MODEL)
        with open(os.path.join(self.models, clients.Auditor.MODEL, "config.pbtxt"), "w") as config:
            config.write(AUDITED)
        x, y = training_models.clusters(1000, 16, 4, seed=2)
        torch.save({"x": x, "y": y}, os.path.join(self.data, "norms.pt"))
        self.no_disk = disks.missing(self.disk)
        if not self.no_disk:
            disks.mount(self.disk, DISK_BYTES)
            stack.callback(disks.unmount, self.disk)
        self.authority, self.stranger = (Authority(folder, name) for name in ("authority", "stranger"))
        self.cert, self.key = os.path.join(folder, "cert.pem"), os.path.join(folder, "cert.key")
        cert, key = self.authority.sign("server")
        replace(self.cert, cert)
        replace(self.key, key)
        self.shared = disasters.Shared()
        self.start()

    def make(self, name):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        return path

    def on_disk(self, name):
        path = os.path.join(self.disk, name)
        os.makedirs(path, exist_ok=True)
        return path

    def start(self):
        flags = ["--model-control-mode", "explicit", "--workers", "2", "--allow-client-shm", "true", "--allow-http", "true", "--http-port", "0",
                 "--client-memory-quota", "192MB", "--max-queue-size", "64", "--http-max-connections", "96", "--http-max-address-heads", "16",
                 "--grpc-max-connections", "96", "--grpc-flood-wait-secs", "0", "--grpc-use-ssl", "true", "--grpc-server-cert", self.cert,
                 "--grpc-server-key", self.key, "--grpc-ssl-reload-secs", "1", "--training-dir", self.on_disk("jobs"), "--training-data", self.data,
                 "--training-jobs", "2", "--training-nice", "0", "--host-name", "first", "--capture-dir", self.on_disk("captures"), "--capture-model",
                 "simple", "--capture-max-requests", "2000", "--trace-file", os.path.join(self.on_disk("traces"), "trace"), "--log-frequency", "50",
                 "--trace-level", "TIMESTAMPS", "--trace-rate", "200", "--trace-count", "2000"]
        self.daemon = self.stack.enter_context(Node(os.path.join(self.folder, "socket"), self.models, *flags, environment={
            **self.environment, "TMPDIR": self.on_disk("tmp")}))
        self.poller = self.stack.enter_context(Node(os.path.join(self.folder, "polled_socket"), self.polled, *folders.FLAGS,
                                                    environment=self.environment))
        self.host = Host(self.make("host"), self.daemon.ready["grpc"], self.authority.cert, self.environment)
        self.stack.callback(lambda: self.host.node.__exit__())

    def undisturbed(self):
        """The weights that jobs must reach."""
        self.load("norms")
        for world_size in (1, 2):
            job = self.daemon.training.CreateJob(training.CreateJobRequest(spec=disasters.job_spec(world_size)), timeout=60)
            for change in self.daemon.training.WatchJob(training.WatchJobRequest(id=job.id), timeout=600):
                job = change.job
            assert job.state == COMPLETED, job
            path = os.path.join(self.models, "norms", str(job.published_version))
            self.shared.weights[world_size] = dict(torch.jit.load(os.path.join(path, "model.pt")).state_dict())
            shutil.rmtree(path)
            self.daemon.training.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=60)

    def load(self, name):
        self.daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=300)

    def cast(self, seed):
        seeds = iter(range(seed * 1000, seed * 1000 + 1000))
        unix, http, tls = self.daemon.address, self.daemon.ready["http"], self.daemon.ready["grpc"]

        def make(kind, count, *more):
            return [kind(unix, next(seeds), self.models, *more) for _ in range(count)]
        kinds = [(kind, count) for kind, count in actors.CAST if kind is not actors.Operator]
        out = [one for kind, count in kinds for one in make(kind, count)]
        out += make(disasters.ChaosOperator, 1) + make(disasters.Settings, 1)
        out += make(clients.Rest, 2, http) + make(clients.Generations, 2, http) + make(clients.Hog, 1, http) + make(clients.Auditor, 1, http)
        out += make(clients.Crowd, 1, http, (tls,)) + make(clients.CommandLine, 1)
        out += make(clients.Tls, 1, tls, read(self.authority.cert))
        out += make(disasters.Trainer, 2, self.shared, True) + make(disasters.RankKiller, 1, (self.daemon, self.host))
        out += make(disasters.HostKiller, 1, self.host)
        out += make(disasters.Certificates, 1, self.authority, self.stranger, self.cert, self.key)
        if not self.no_disk:
            out.append(disasters.DiskFiller(unix, next(seeds), self.disk, self.shared))
        return out + folders.make_actors(self.poller, seed, self.polled, writers=2)


class ChaosStage(actors.Stage):
    """Actors continue after refusals for lack of resources."""

    def play(self, actor, deadline):
        def act():
            try:
                type(actor).act(actor)
            except grpc.RpcError as error:
                if error.code() not in actors.BUSY:
                    raise AssertionError(f"{error.code()}: {error.details()}") from error
                actor.count(error.code().name)
        actor.act = act
        super().play(actor, deadline)


def status(pid, field):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def census(node):
    pid = node.process.pid
    return {"RSS": status(pid, "VmRSS") << 10, "descriptors": len(os.listdir(f"/proc/{pid}/fd")), "threads": status(pid, "Threads")}


def files_below(*tops):
    return [os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top) for name in names]


def by_code(node):
    """Requests by status code, of all existing models."""
    out = collections.Counter()
    for line in node.metrics().splitlines():
        found = re.match(r'tensord_requests_total\{.*code="(\w+)"\} (\d+)', line)
        if found and found[2] != "0":
            out[found[1]] += int(found[2])
    return out


def check_books(scene, counts, cut):
    """The daemon's counts for the audited model equal its clients'."""
    for code in clients.Auditor.booked:
        ours, theirs = counts.get(code, 0), int(scene.daemon.metric("tensord_requests_total", model=clients.Auditor.MODEL, code=code))
        assert ours <= theirs <= ours + cut, f"{code}: {ours} by the clients' books, {theirs} by the daemon's"


def check_quiet(scene, memory_before, first):
    """Nothing is left over from a round; returns the daemons' memory."""
    daemon = scene.daemon
    wait_until(lambda: daemon.metric("tensord_pending_requests") == 0, "requests still wait")
    wait_until(lambda: daemon.metric("tensord_in_flight_requests") == 0, "requests are still under way")
    wait_until(lambda: not daemon.training.ListJobs(training.ListJobsRequest()).jobs, "jobs are left")
    wait_until(lambda: not children_of(daemon.process.pid) + children_of(scene.host.process.pid), "ranks are left")
    for model in daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models:
        daemon.stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name=model.name), timeout=300)
    for name in os.listdir(scene.polled):
        folders.remove(os.path.join(scene.polled, name))
    wait_until(lambda: not scene.poller.stub.RepositoryIndex(pb.RepositoryIndexRequest()).models, "models are still there")
    for node, before in ((daemon, memory_before[0]), (scene.poller, memory_before[1])):
        wait_until(lambda: node.metric("tensord_memory_bytes") <= before, "tensors are still owned by somebody")
        wait_until(lambda: not folders.files_held(node), f"copies of archives are left: {folders.files_held(node)}")
    left = [file for file in files_below(os.path.join(scene.disk, "jobs", "jobs"), os.path.join(scene.disk, "tmp"))
            if not file.endswith("/.lock")]  # the lock of the daemon's folder of uploaded files
    assert not left, f"files are left: {left}"
    versions = os.listdir(os.path.join(scene.models, "norms"))
    assert all(name.isdigit() for name in versions), f"half-written versions are left: {versions}"
    for name in set(versions) - {"1"}:  # of jobs that ended before they could be cancelled
        shutil.rmtree(os.path.join(scene.models, "norms", name))
    if not first:
        time.sleep(5)  # memory is released some seconds later
        return [census(daemon), census(scene.poller)]
    for node, then in zip((daemon, scene.poller), first):
        for what, bound in then.items():
            bound += MORE_RSS if what == "RSS" else MORE
            wait_until(lambda: census(node)[what] <= bound, f"{what}: {census(node)[what]}, {then[what]} after the first round")
    return [census(daemon), census(scene.poller)]


def play_round(scene, seconds, seed, totals):
    daemon = scene.daemon
    load_everything(daemon, scene.models)
    stage = ChaosStage(scene.cast(seed))
    counts = stage.run(seconds)
    for name, count in counts.items():
        totals[name].update(count)
    for node in (daemon, scene.poller, scene.host.node):
        check_log(node.log_text())
        assert node.process.poll() is None, f"a daemon ended with {node.process.returncode}\n{node.log_text()[-8000:]}"
    if stage.failures:
        logs = daemon.log_text()[-6000:] + scene.poller.log_text()[-3000:] + scene.host.node.log_text()[-3000:]
        raise AssertionError("\n".join(f"{name}: {error!r}" for name, error in stage.failures) + "\n" + logs)
    audited = counts["Auditor"]
    check_books(scene, audited, audited.get("cut", 0))
    totals["the daemon's books"].update(by_code(daemon))


def play(seconds, seed, delays, totals):
    """Rounds with one set of daemons."""
    rounds = max(2, round(seconds / ROUND_S))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tensord_chaos_"))
        scene = Scene(folder, stack, delays)
        memory = scene.daemon.metric("tensord_memory_bytes"), scene.poller.metric("tensord_memory_bytes")
        scene.undisturbed()
        first = None
        for number in range(rounds):
            begin = time.monotonic()
            play_round(scene, seconds / rounds, seed + number, totals)
            now = check_quiet(scene, memory, first)
            first = first or now
            print(f"round {number + 1} of {rounds}, {time.monotonic() - begin:.0f} s: " + "; ".join(
                f"{name} {one['RSS'] >> 20} MB, {one['descriptors']} descriptors, {one['threads']} threads"
                for name, one in zip(("daemon", "poller"), now)), flush=True)
        for what in ("tensord_grpc_connections_cut_total", "tensord_grpc_connections_refused_total", "tensord_certificate_changes_total"):
            totals["the daemon's books"][what] += int(scene.daemon.metric(what))
        for node in (scene.daemon, scene.poller):
            code = node.stop(timeout=120)
            check_log(node.log_text())
            assert code == 0, f"exit code {code}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"{options.minutes} minutes, seed {options.seed}", flush=True)
    clients.Generations.expected = clients.answers_of_decoders()
    totals = collections.defaultdict(collections.Counter)
    try:
        for half, delays in enumerate(("", DELAYS)):
            play(options.minutes * 30, options.seed + 10000 * half, delays, totals)
    finally:
        for name, count in totals.items():
            print(f"{name}: {dict(sorted(count.items()))}")
    quiet = [name for name, count in totals.items() if not count]
    assert not quiet or options.minutes < 10, f"nothing came of {quiet}"
    print("nothing crashed, nothing was wrong, nothing leaked")


if __name__ == "__main__":
    sys.exit(main())
