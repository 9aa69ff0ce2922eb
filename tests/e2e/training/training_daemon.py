"""A daemon with training enabled, in folders of its own, and helpers of its tests."""

import os
import subprocess
import tempfile
import time

import torch

from tests.e2e.daemon import BINARY, Daemon, training

STATE = training.JobState
RUNNING, PAUSED, COMPLETED = STATE.JOB_STATE_RUNNING, STATE.JOB_STATE_PAUSED, STATE.JOB_STATE_COMPLETED
FAILED, CANCELLED, QUEUED = STATE.JOB_STATE_FAILED, STATE.JOB_STATE_CANCELLED, STATE.JOB_STATE_QUEUED
AT_REST = (PAUSED, COMPLETED, FAILED, CANCELLED)


class JobAssertions:
    """For test cases with a TrainingDaemon as `server`."""

    def finished(self, job, model):
        """The job at its end, its losses by step, and the weights that it published."""
        job, points = self.server.watch(job.id)
        self.assertEqual(job.state, COMPLETED, job.message + self.server.daemon.log_text()[-3000:])
        return job, {point.step: point.loss for point in points}, self.server.weights(model, job.published_version)

    def assert_same(self, one, other):
        """Equal losses and weights, bit by bit, of two finished jobs."""
        self.assertEqual(one[1], other[1])
        for name, weight in one[2].items():
            self.assertTrue(torch.equal(weight, other[2][name]), name)


class TrainingDaemon:
    # Tests run concurrently, and a job that yields to all others would take forever: its threads have normal priority.
    def __init__(self, *flags, nice="0"):
        self.folder = tempfile.TemporaryDirectory(prefix="tensord_training_")
        folders = (os.path.join(self.folder.name, name) for name in ("models", "data", "jobs"))
        self.models, self.data, self.jobs = folders
        os.makedirs(self.models)
        os.makedirs(self.data)
        self.flags = ("--training-dir", self.jobs, "--training-data", self.data, "--training-nice", nice, *flags)
        self.daemon = None

    def start(self):
        self.daemon = Daemon(self.models, *self.flags)
        return self

    def kill(self):
        self.daemon.kill()
        self.daemon.__exit__()

    def restart(self):
        self.kill()
        return self.start()

    def close(self):
        if self.daemon:
            self.daemon.__exit__()
        self.folder.cleanup()

    @property
    def stub(self):
        return self.daemon.training

    def save_data(self, name, **arrays):
        torch.save(arrays, os.path.join(self.data, name))

    def client(self, command, *arguments):
        """The output of a client command."""
        return subprocess.run([BINARY, command, "--address", self.daemon.ready["grpc"], *arguments], capture_output=True, text=True,
                              check=True, timeout=120).stdout

    def create(self, **fields):
        return self.stub.CreateJob(training.CreateJobRequest(spec=spec(**fields)), timeout=300)

    def get(self, job_id):
        return self.stub.GetJob(training.GetJobRequest(id=job_id), timeout=300)

    def watch(self, job_id, timeout=300):
        """The job when it has ended or is paused, and all points of its curves."""
        points, job = {}, None
        for change in self.stub.WatchJob(training.WatchJobRequest(id=job_id), timeout=timeout):
            job = change.job
            points.update((point.step, point) for point in change.points)
        return job, list(points.values())

    def run(self, **fields):
        return self.watch(self.create(**fields).id)[0]

    def wait_until(self, job_id, condition, timeout=120):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            job = self.get(job_id)
            if condition(job):
                return job
            time.sleep(0.01)
        raise AssertionError(f"waited in vain; the job is\n{job}\n{self.daemon.log_text()[-3000:]}")

    def model_file(self, model, version):
        return os.path.join(self.models, model, str(version), "model.pt")

    def weights(self, model, version):
        return dict(torch.jit.load(self.model_file(model, version)).state_dict())


def spec(model="mlp", data="clusters.pt", builtin="cross_entropy", label="y", **fields):
    """A job on the clusters; fields replace those of the message."""
    message = training.JobSpec(batch_size=50, seed=7)
    if isinstance(model, str):
        message.model.name = model
    else:
        message.model.CopyFrom(model)
    if isinstance(data, training.Data):
        message.data.CopyFrom(data)
    elif data:
        message.data.file = data
    if builtin:
        message.loss.builtin = builtin
    if label:
        message.loss.label = label
    for name, value in fields.items():
        field = getattr(message, name)
        if isinstance(value, dict):
            field.update(value)
        elif hasattr(field, "MergeFrom") and not isinstance(value, (int, float, str)):
            field.MergeFrom(value)
        else:
            setattr(message, name, value)
    return message
