"""Daemons that join over TLS: certificates of both sides, wrong ones, and a job over TLS."""

import os
import tempfile
import unittest

import grpc
import torch

from tests.e2e.authority import Authority, read
from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.hosts import Worker
from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon, spec

import training_pb2_grpc


class TrainHostsTlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.folder = tempfile.TemporaryDirectory()
        cls.authority, cls.stranger = (Authority(cls.folder.name, name) for name in ("authority", "stranger"))
        cls.authority.sign("server")
        cls.authority.sign("worker")
        cls.stranger.sign("other")
        # Both sides present certificates: without one of the authority a peer is refused.
        cls.server = TrainingDaemon(
            "--host-name", "a", "--grpc-use-ssl", "true", "--grpc-use-ssl-mutual", "true", "--grpc-server-cert", cls.path("server.pem"),
            "--grpc-server-key", cls.path("server.key"), "--grpc-root-cert", cls.authority.cert)
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        x, y = models.clusters(300, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()
        credentials = grpc.ssl_channel_credentials(read(cls.authority.cert), read(cls.path("worker.key")), read(cls.path("worker.pem")))
        cls.channel = grpc.secure_channel(cls.server.daemon.ready["grpc"], credentials)
        cls.stub = training_pb2_grpc.TrainingServiceStub(cls.channel)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.server.close()
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def worker(self, name, *flags):
        worker = Worker(name, self.server.daemon.ready["grpc"], *flags)
        self.addCleanup(worker.close)
        return worker.start()

    def hosts(self):
        return [host.name for host in self.stub.ListHosts(training.ListHostsRequest(), timeout=300).hosts]

    def test_a_job_runs_over_mutual_tls(self):
        self.worker("b", "--join-root-cert", self.authority.cert, "--join-cert", self.path("worker.pem"), "--join-key",
                    self.path("worker.key"))
        wait_until(lambda: self.hosts() == ["b"])
        job = self.stub.CreateJob(training.CreateJobRequest(spec=spec(
            model="norms", data="norms.pt", epochs=3, optimizer=training.Optimizer(name="sgd", lr=0.01),
            distribution=training.Distribution(world_size=2, processes_per_host=1))), timeout=300)
        for change in self.stub.WatchJob(training.WatchJobRequest(id=job.id), timeout=300):
            job = change.job
        self.assertEqual(job.state, COMPLETED, job.message)
        self.assertEqual([rank.host for rank in job.progress.ranks], ["a", "b"])

    def test_who_has_not_the_right_certificates_does_not_join(self):
        mine = ("--join-cert", self.path("worker.pem"), "--join-key", self.path("worker.key"))
        for name, flags in {
                "plain": (),
                "without_certificate": ("--join-root-cert", self.authority.cert),
                "of_a_stranger": ("--join-root-cert", self.authority.cert, "--join-cert", self.path("other.pem"), "--join-key",
                                  self.path("other.key")),
                # The joined daemon is not trusted by this one, so it must not get its files either.
                "trusts_a_stranger": ("--join-root-cert", self.stranger.cert, *mine),
                "other_name": ("--join-root-cert", self.authority.cert, "--join-server-name", "elsewhere", *mine)}.items():
            with self.subTest(name):
                worker = self.worker(name, *flags)
                wait_until(lambda worker=worker: "cannot join" in worker.daemon.log_text())
                self.assertNotIn(name, self.hosts())


if __name__ == "__main__":
    unittest.main()
