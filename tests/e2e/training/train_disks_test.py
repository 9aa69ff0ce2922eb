"""A training job of several daemons, one of which has a full disk (needs root: each worker's folder is a small
tmpfs)."""

import os
import signal
import tempfile
import unittest

import torch

from tests.e2e.training import disks
from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.hosts import Coordinator, Worker
from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import AT_REST, FAILED, RUNNING, JobAssertions

DISK_BYTES = 16 << 20
JOB = dict(model=training.ModelSource(name="norms", version=1), data="norms.pt", batch_size=32,
           optimizer=training.Optimizer(name="sgd", lr=0.01, momentum=0.9), publish=training.PublishPolicy(when="at_end"),
           resources=training.Resources(threads=1))


class TrainDisksTest(JobAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            if why := disks.missing(folder):
                raise unittest.SkipTest(why)
        torch.manual_seed(0)
        cls.server = Coordinator()
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        x, y = models.clusters(1000, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.workers = {}
        for name in ("b", "c"):
            worker = self.workers[name] = Worker(name, self.server.relay.address)
            self.addCleanup(worker.close)
            os.makedirs(worker.jobs)
            self.assertEqual(disks.mount(worker.jobs, DISK_BYTES), "")
            self.addCleanup(disks.unmount, worker.jobs)
            self.addCleanup(worker.kill)
            worker.start()
        self.server.wait_for_hosts("b", "c")
        wait_until(lambda: not any(host.is_busy for host in self.server.hosts().values()))

    def create(self, hosts, max_restarts=5, **fields):
        wanted = dict(world_size=len(hosts) + 1, processes_per_host=1, timeout_seconds=10, max_restarts=max_restarts)
        distribution = training.Distribution(hosts=hosts, **{**wanted, **fields.pop("distribution", {})})
        return self.server.create(distribution=distribution, **{**JOB, "epochs": 1, **fields})

    def full(self, name):
        folder = self.workers[name].jobs
        disks.fill(folder)
        return folder

    def until_it_waits(self, job, folder):
        """The job once it backs off from the host whose disk failed; checks the reported reason."""
        now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or "waiting for hosts: 0 of 1 have joined; host b" in now.message)
        self.assertEqual(now.state, RUNNING, now.message)
        self.assertRegex(now.message, f"host b: {folder}/.*: No space left on device; '.*' has \\d+ bytes")
        return now

    def test_a_job_starts_once_there_is_room(self):
        whole = self.finished(self.create(["b"]), "norms")
        self.workers["b"].kill()
        disks.unmount(self.workers["b"].jobs)  # nothing is cached any more
        self.assertEqual(disks.mount(self.workers["b"].jobs, DISK_BYTES), "")
        self.workers["b"].start()
        self.server.wait_for_hosts("b")
        folder = self.full("b")
        job = self.create(["b"])
        self.until_it_waits(job, folder)
        disks.empty(folder)
        done = self.finished(job, "norms")
        self.assert_same(whole, done)
        # Waiting for room takes few restarts.
        self.assertIn(done[0].progress.restarts, (1, 2, 3))

    def test_a_job_goes_on_from_its_checkpoint(self):
        fields = dict(epochs=20, checkpoints=training.CheckpointPolicy(every_steps=50))
        whole = self.finished(self.create(["b"], **fields), "norms")
        job = self.create(["b"], **fields)
        now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or (
            now.progress.step > now.progress.checkpoint_step > 0 and len(now.progress.ranks) == 2))
        self.assertEqual(now.state, RUNNING, now.message)
        folder = self.full("b")
        os.kill(now.progress.ranks[1].pid, signal.SIGKILL)  # its next start needs the checkpoint
        waiting = self.until_it_waits(job, folder)
        self.assertGreater(waiting.progress.checkpoint_step, 0)
        self.assertEqual(os.listdir(os.path.join(folder, "hosted")) if os.path.isdir(os.path.join(folder, "hosted")) else [], [])
        disks.empty(folder)
        self.assert_same(whole, self.finished(job, "norms"))

    def test_a_disk_that_stays_full_ends_the_job(self):
        folder = self.full("b")
        failed, _ = self.server.watch(self.create(["b"], max_restarts=1).id)
        self.assertEqual((failed.state, failed.progress.restarts), (FAILED, 1))
        self.assertRegex(failed.message, f"host b: {folder}/.*: No space left on device; '.*' has \\d+ bytes; "
                                         "all ranks were started again 1 times")
        # Once there is room it is resumed manually.
        disks.empty(folder)
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=failed.id), timeout=60)
        self.finished(failed, "norms")

    def test_another_host_takes_its_place(self):
        self.full("b")
        job, _, _ = self.finished(self.create([], max_restarts=1, distribution=dict(world_size=2)), "norms")
        self.assertEqual(([rank.host for rank in job.progress.ranks], job.progress.restarts), (["a", "c"], 1))

    def test_goes_on_with_fewer_where_that_is_allowed(self):
        self.full("b")
        job, _, _ = self.finished(self.create(["b", "c"], max_restarts=1, distribution=dict(min_world_size=2, join_timeout_seconds=1)), "norms")
        self.assertEqual(([rank.host for rank in job.progress.ranks], job.progress.restarts), (["a", "c"], 1))


if __name__ == "__main__":
    unittest.main()
