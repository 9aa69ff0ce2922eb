"""Faults of the chaos test (chaos.py): training jobs whose ranks and hosts die, disks that fill, certificates that
change."""

import os
import shutil
import signal
import threading
import time

import grpc
import torch

from tests.e2e.daemon import pb, training, training_pb2_grpc
from tests.e2e.network_test import replace
from tests.e2e.training import disks
from tests.e2e.training.hosts import children_of
from tests.e2e.training.training_daemon import AT_REST, COMPLETED, FAILED, PAUSED, spec
from tests.stress.actors import BUSY, CODE, WAIT_S, Actor, Operator

NO_SPACE = "No space left on device"
STEPS = 120
JOB_WAIT_S = 900


class ChaosOperator(Operator):
    """The stress test's operator, with full disks and exhausted quotas."""

    def may_refuse(self, error):
        return error.code() in BUSY or NO_SPACE in error.details()


class Shared:
    """State shared by actors."""

    def __init__(self):
        self.versions_lock = threading.Lock()  # for removing versions
        self.disk_is_full = False
        self.disk_was_full_at = 0.0
        self.weights = {}  # by world size: of an undisturbed job

    def disk_was_full(self, since):
        return self.disk_is_full or self.disk_was_full_at >= since


def job_spec(world_size, hosts=1):
    fields = {}
    if world_size > 1:
        fields["distribution"] = training.Distribution(world_size=world_size, max_restarts=1000, timeout_seconds=20)
        if hosts > 1:
            fields["distribution"].processes_per_host = world_size // hosts
    return spec(model=training.ModelSource(name="norms", version=1), data="norms.pt", steps=STEPS, batch_size=32,
                optimizer=training.Optimizer(name="sgd", lr=0.01, momentum=0.9), publish=training.PublishPolicy(when="at_end"),
                checkpoints=training.CheckpointPolicy(every_steps=20), resources=training.Resources(threads=1), **fields)


class Trainer(Actor):
    """One job after the other, of one process, several, or several hosts; some are paused, some cancelled. Whatever happens to one, what comes
    out are the weights of an undisturbed job, bit by bit."""

    def __init__(self, address, seed, folder, shared, has_host):
        super().__init__(address, seed, folder)
        self.jobs = training_pb2_grpc.TrainingServiceStub(self.channel)
        self.shared, self.has_host = shared, has_host

    def get(self, job_id):
        return self.jobs.GetJob(training.GetJobRequest(id=job_id), timeout=WAIT_S)

    def act(self):
        world_size, hosts = self.random.choice(((1, 1), (2, 1), (2, 2)) if self.has_host else ((1, 1), (2, 1)))
        self.begin = time.monotonic()
        try:
            job_id = self.jobs.CreateJob(training.CreateJobRequest(spec=job_spec(world_size, hosts)), timeout=WAIT_S).id
        except grpc.RpcError as error:
            assert error.code() in BUSY or self.shared.disk_was_full(self.begin), f"{error.code()}: {error.details()}"
            self.rest(1)
            return self.count("not created: " + error.code().name)
        fate = self.random.choice(("run", "run", "run", "pause", "cancel", "delete"))
        try:
            job = self.follow(job_id, fate)
            if fate == "run" or fate == "pause":
                self.check(job, world_size)
            self.count(f"{fate} {world_size} on {hosts}")
            self.counts["restarts"] = self.counts.get("restarts", 0) + job.progress.restarts
        finally:
            self.jobs.DeleteJob(training.DeleteJobRequest(id=job_id), timeout=WAIT_S)

    def follow(self, job_id, fate):
        """The job once it has ended; until then its planned fault happens. One that a disk error ended is resumed."""
        strike_at = self.random.randrange(STEPS)
        deadline = time.monotonic() + JOB_WAIT_S
        while True:
            job = self.get(job_id)
            if job.state == FAILED and self.shared.disk_was_full(self.begin) and NO_SPACE in job.message:
                self.count("failed: disk")
                self.change("ResumeJob", training.ResumeJobRequest, job_id)
            elif job.state in AT_REST and job.state != PAUSED:
                return job
            elif fate == "pause" and job.progress.step >= strike_at:
                self.change("PauseJob", training.PauseJobRequest, job_id)
                self.change("ResumeJob", training.ResumeJobRequest, job_id)
                fate = ""
            elif fate in ("cancel", "delete") and job.progress.step >= strike_at:
                if fate == "cancel":
                    self.change("CancelJob", training.CancelJobRequest, job_id)
                return job
            elif job.state == PAUSED:
                self.change("ResumeJob", training.ResumeJobRequest, job_id)
            assert time.monotonic() < deadline, f"a job does not end:\n{job}"
            time.sleep(0.2)

    def change(self, call, message, job_id):
        """It may have ended in the meantime, or have no disk space to record the change."""
        begin = time.monotonic()
        try:
            getattr(self.jobs, call)(message(id=job_id), timeout=WAIT_S)
        except grpc.RpcError as error:
            allowed = BUSY | {CODE.FAILED_PRECONDITION}
            assert error.code() in allowed or self.shared.disk_was_full(begin - 60), f"{call}: {error.code()}: {error.details()}"
            self.count(f"{call}: {error.code().name}")
            self.rest(1)

    def check(self, job, world_size):
        assert job.state == COMPLETED, f"{job.state}: {job.message}"
        if not job.published_version:  # it could not be served, for example without room for a copy of it
            assert self.shared.disk_was_full(self.begin), job
            return self.count("not published")
        folder = os.path.join(self.folder, "norms", str(job.published_version))
        weights = dict(torch.jit.load(os.path.join(folder, "model.pt")).state_dict())
        wrong = [name for name, weight in self.shared.weights[world_size].items() if not torch.equal(weight, weights[name])]
        assert not wrong, f"a job of {world_size} has other weights: {wrong}"
        with self.shared.versions_lock:
            shutil.rmtree(folder)
            self.load_again()

    def load_again(self):
        """Reloads the model, so that the removed version is no longer served."""
        try:
            self.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="norms"), timeout=WAIT_S)
        except grpc.RpcError as error:
            assert error.code() in BUSY or NO_SPACE in error.details(), f"{error.code()}: {error.details()}"
            self.count("not loaded: " + error.code().name)


class RankKiller(Actor):
    """Kills or freezes ranks of both daemons."""

    def __init__(self, address, seed, folder, daemons):
        super().__init__(address, seed, folder)
        self.daemons = daemons

    def act(self):
        self.rest(5, 25)
        pids = [pid for daemon in self.daemons for pid in children_of(daemon.process.pid)]
        if pids:
            number = self.random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV))
            try:
                os.kill(self.random.choice(pids), number)
                self.count(number.name)
            except ProcessLookupError:
                self.count("too late")


class HostKiller(Actor):
    """Kills the joined daemon, and its ranks with it, and restarts it."""

    def __init__(self, address, seed, folder, host):
        super().__init__(address, seed, folder)
        self.host = host

    def act(self):
        self.rest(20, 60)
        self.host.restart()
        self.count("killed")


class DiskFiller(Actor):
    """Fills the disk of jobs, captures, traces and temporary copies for some seconds."""

    def __init__(self, address, seed, folder, shared):
        super().__init__(address, seed, folder)
        self.shared = shared

    def act(self):
        self.rest(10, 30)
        self.shared.disk_is_full = True
        disks.fill(self.folder)
        self.rest(0.5, 6)
        disks.empty(self.folder)
        self.shared.disk_was_full_at = time.monotonic()
        self.shared.disk_is_full = False
        self.count("filled")


class Certificates(Actor):
    """New certificates of the same authority, and files that are truncated, random, of another authority, or missing.
    In the end valid ones are in place."""

    def __init__(self, address, seed, folder, authority, stranger, cert, key):
        super().__init__(address, seed, folder)
        self.authority, self.stranger, self.cert, self.key = authority, stranger, cert, key

    def act(self):
        kind = self.random.choice(("new", "new", "cut off", "noise", "mixed", "gone"))
        cert, key = self.authority.sign(f"server{self.random.randrange(4)}")
        if kind == "new":
            replace(self.key, key)
            replace(self.cert, cert)
        elif kind == "cut off":
            replace(self.cert, cert[:self.random.randrange(len(cert))])
        elif kind == "noise":
            replace(self.random.choice((self.cert, self.key)), self.random.randbytes(1000))
        elif kind == "mixed":
            replace(self.key, self.stranger.sign("mixed")[1])
        else:
            path = self.random.choice((self.cert, self.key))
            if os.path.exists(path):
                os.unlink(path)
        self.rest(0.5, 4)
        cert, key = self.authority.sign("server")
        replace(self.key, key)
        replace(self.cert, cert)
        self.rest(1, 3)
        self.count(kind)


class Settings(Actor):
    """Changes log and trace settings while everything runs."""

    def act(self):
        log = pb.LogSettingsRequest()
        log.settings["log_verbose_level"].uint32_param = self.random.randrange(2)
        self.stub.LogSettings(log, timeout=WAIT_S)
        trace = pb.TraceSettingRequest()
        trace.settings["trace_level"].value.append(self.random.choice(("OFF", "TIMESTAMPS", "TENSORS")))
        trace.settings["trace_rate"].value.append(str(self.random.randrange(50, 1000)))
        self.stub.TraceSetting(trace, timeout=WAIT_S)
        self.count("OK")
        self.rest(1, 4)
