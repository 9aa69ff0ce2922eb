"""The protocol between daemons that train together, with a fake of one of them: authentication, and wrong files."""

import hashlib
import os
import queue
import tempfile
import threading
import unittest
from concurrent import futures

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import Daemon, training
from tests.e2e.training.hosts import Coordinator, Worker
from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import FAILED

import hosts_pb2 as pb
import hosts_pb2_grpc

INSTANCE = "0123456789abcdef"
START = "00112233445566778899aabbccddeeff"


class Host:
    """A fake of a daemon that joins."""

    def __init__(self, address, **hello):
        self.channel = grpc.insecure_channel(address)
        self.stub = hosts_pb2_grpc.HostServiceStub(self.channel)
        self.reports = queue.Queue()
        self.say(hello=pb.Hello(**{"name": "fake", "instance": INSTANCE, "processes": 4, **hello}))
        self.orders = self.stub.Join(iter(self.reports.get, None), timeout=300)

    def say(self, **report):
        self.reports.put(pb.HostReport(**report))

    def next(self, kind):
        for order in self.orders:
            self.say()
            if order.WhichOneof("order") == kind:
                return getattr(order, kind) if kind else order
        raise AssertionError("the stream has ended")

    def refused(self):
        with unittest.TestCase().assertRaises(grpc.RpcError) as caught:
            for _ in self.orders:
                pass
        return caught.exception

    def close(self):
        self.reports.put(None)
        self.channel.close()


class Fake(hosts_pb2_grpc.HostServiceServicer):
    """A fake coordinator that answers every request with `served`."""

    def __init__(self):
        self.served, self.orders, self.reports = b"", None, queue.Queue()  # orders: the queue of the open stream
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        hosts_pb2_grpc.add_HostServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def Join(self, reports, context):
        orders = self.orders = queue.Queue()
        orders.put(pb.HostOrder(welcome=pb.Welcome()))
        threading.Thread(target=self.read, args=(reports,), daemon=True).start()
        while context.is_active():
            try:
                yield orders.get(timeout=0.2)
            except queue.Empty:
                yield pb.HostOrder()

    def read(self, reports):
        try:
            for report in reports:
                if report.WhichOneof("report"):
                    self.reports.put(report)
        except grpc.RpcError:
            pass
        self.orders = None
        self.reports.put(None)

    def FetchFile(self, request, context):
        return pb.FetchFileResponse(data=self.served[request.offset:request.offset + (1 << 20)])

    def prepare(self, path="base.pt", sha256=hashlib.sha256(b"wanted").hexdigest(), size_bytes=6):
        wait_until(lambda: self.orders is not None)
        self.orders.put(pb.HostOrder(prepare=pb.Prepare(start=START, timeout_seconds=30, files=[
            pb.File(path=path, size_bytes=size_bytes, sha256=sha256)])))
        return self.next()

    def next(self):
        """The next report that is not a greeting; None: the host has ended the stream."""
        while True:
            report = self.reports.get(timeout=300)
            if report is None or report.WhichOneof("report") != "hello":
                return report


class CoordinatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = Coordinator()
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        x, y = models.clusters(200, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()
        cls.address = cls.server.daemon.ready["grpc"]
        # A daemon's refusal of another version names its own.
        refusal = Host(cls.address, version="0").refused()
        cls.other_version = refusal
        cls.version = refusal.details().split("this daemon ")[1].split(":")[0]

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_who_is_let_in(self):
        self.assertEqual(self.other_version.code(), grpc.StatusCode.FAILED_PRECONDITION)
        host = Host(self.address, version=self.version)
        host.next("welcome")
        for code, message, hello in (
                (grpc.StatusCode.ALREADY_EXISTS, "has joined already", dict(instance="f" * 32)),
                (grpc.StatusCode.INVALID_ARGUMENT, "name: a host's name", dict(name="../x")),
                (grpc.StatusCode.INVALID_ARGUMENT, "instance: must have", dict(instance="x")),
                (grpc.StatusCode.INVALID_ARGUMENT, "processes: must be above 0", dict(processes=0))):
            refusal = Host(self.address, version=self.version, **hello).refused()
            self.assertEqual(refusal.code(), code)
            self.assertIn(message, refusal.details())
        # The same daemon that comes again takes its place.
        again = Host(self.address, version=self.version)
        again.next("welcome")
        self.assertEqual(host.refused().code(), grpc.StatusCode.CANCELLED)
        again.say(hello=pb.Hello(name="fake"))
        self.assertIn("hello: was said before", again.refused().details())
        silent = grpc.insecure_channel(self.address)
        first = hosts_pb2_grpc.HostServiceStub(silent).Join(iter([pb.HostReport()]), timeout=300)
        with self.assertRaises(grpc.RpcError) as caught:
            list(first)
        self.assertIn("hello: must be the first", caught.exception.details())
        wait_until(lambda: "fake" not in self.server.hosts())

    def test_files_of_no_job_are_not_given(self):
        with grpc.insecure_channel(self.address) as channel, self.assertRaises(grpc.RpcError) as caught:
            hosts_pb2_grpc.HostServiceStub(channel).FetchFile(pb.FetchFileRequest(sha256="0" * 64), timeout=300)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_a_daemon_that_does_not_train_lets_nobody_in(self):
        with Daemon(self.server.models) as daemon:
            host = Host(daemon.ready["grpc"], version=self.version)
            self.assertEqual(host.refused().code(), grpc.StatusCode.UNIMPLEMENTED)
            with self.assertRaises(grpc.RpcError) as caught:
                host.stub.FetchFile(pb.FetchFileRequest(sha256="0" * 64), timeout=300)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            self.assertIn("--training-dir", caught.exception.details())
            host.close()

    def job_with(self, host, **fields):
        distribution = training.Distribution(world_size=2, processes_per_host=1, timeout_seconds=3, max_restarts=0,
                                             hosts=[host], join_timeout_seconds=20, **fields)
        return self.server.create(model=training.ModelSource(name="norms", version=1), data="norms.pt", epochs=1,
                                  batch_size=20, distribution=distribution)

    def test_what_a_past_start_says_means_nothing(self):
        host = Host(self.address, version=self.version, name="past")
        host.next("welcome")
        job = self.job_with("past")
        prepare = host.next("prepare")
        file = prepare.files[0]
        data = host.stub.FetchFile(pb.FetchFileRequest(sha256=file.sha256), timeout=300).data
        self.assertEqual(hashlib.sha256(data).hexdigest(), file.sha256)
        host.say(prepared=pb.Prepared(start=START))
        host.say(failed=pb.Failed(start=START, code=0, message="of the past"))
        # It lives, but the files of this start are missing: no rank is started.
        for _ in range(3):
            host.next(None)
        self.assertEqual(self.server.get(job.id).message, "giving 1 host the job's files")
        host.say(failed=pb.Failed(start=prepare.start, code=0, message="no room"))
        failed, _ = self.server.watch(job.id)
        self.assertEqual(failed.state, FAILED)
        self.assertIn("host past: no room", failed.message)
        self.assertEqual(host.next("stop").start, prepare.start)
        host.close()

    def test_a_host_that_falls_silent_is_lost(self):
        host = Host(self.address, version=self.version, name="silent")
        host.next("welcome")
        job = self.job_with("silent")
        host.next("prepare")
        failed, _ = self.server.watch(job.id)
        self.assertEqual(failed.state, FAILED)
        self.assertRegex(failed.message, "host silent has said nothing for 4 seconds; all ranks were started again 0 times")
        host.close()


class WorkerTest(unittest.TestCase):
    def setUp(self):
        self.fake = Fake()
        self.worker = Worker("w", f"127.0.0.1:{self.fake.port}", "--join-cache", "1MB").start()

    def tearDown(self):
        self.fake.server.stop(None)
        self.worker.close()

    def failure(self, **file):
        report = self.fake.prepare(**file)
        self.assertEqual(report.WhichOneof("report"), "failed", report)
        self.assertEqual(self.worker.cached(), [])
        return report.failed.message

    def test_files_are_what_was_announced(self):
        for served in (b"wrongs", b"wante", b"wanted and more"):
            self.fake.served = served
            self.assertRegex(self.failure(), "'base.pt' (came with|has more than)")
        self.assertIn("more than --join-cache allows", self.failure(size_bytes=1 << 30))
        self.assertIn("is not a SHA-256", self.failure(sha256="../../x"))
        self.fake.served = b"wanted"
        self.assertEqual(self.fake.prepare().WhichOneof("report"), "prepared")
        self.assertEqual(len(self.worker.cached()), 1)

    def test_files_stay_in_their_folder(self):
        for path in ("../x", "/tmp/x", "a/../../x", ""):
            self.assertIsNone(self.fake.prepare(path=path))  # the host ends the stream, and joins again

    def test_a_task_that_is_none(self):
        self.fake.served = b"wanted"
        self.assertEqual(self.fake.prepare().WhichOneof("report"), "prepared")
        self.fake.orders.put(pb.HostOrder(start=pb.Start(start=START, ranks=[1], task=b"{}")))
        report = self.fake.next()
        self.assertIn("the task of a rank", report.failed.message)


class AccessTest(unittest.TestCase):
    def test_by_token(self):
        with tempfile.TemporaryDirectory() as folder:
            def token_file(name, content):
                path = os.path.join(folder, name)
                with open(path, "w") as file:
                    file.write(content + "\n")
                return path

            server = Coordinator("--access-tokens", token_file("tokens", "training-hosts right-token\ntraining user-token"))
            server.start()
            workers = []
            try:
                for name, token, refusal in (("x", "wrong-token", "UNAUTHENTICATED|oken"), ("y", "user-token", "training-hosts"),
                                             ("z", "right-token", "")):
                    workers.append(Worker(name, server.daemon.ready["grpc"], "--join-token-file", token_file(name, token)))
                    log = workers[-1].start().daemon.log_text
                    if refusal:
                        wait_until(lambda: "cannot join" in log())
                        self.assertRegex(log(), refusal)
                        self.assertNotIn("joined host=", log())
                    else:
                        wait_until(lambda: "host joined" in server.daemon.log_text())
                listed = server.stub.ListHosts(training.ListHostsRequest(), timeout=300,
                                               metadata=[("authorization", "Bearer user-token")])
                self.assertEqual([host.name for host in listed.hosts], ["z"])
                with self.assertRaises(grpc.RpcError) as caught:
                    server.stub.ListHosts(training.ListHostsRequest(), timeout=300,
                                          metadata=[("authorization", "Bearer right-token")])
                self.assertEqual(caught.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
                server.close()
                wait_until(lambda: "the joined daemon was lost" in workers[-1].daemon.log_text())
                self.assertNotIn("the joined daemon was lost", workers[0].daemon.log_text())
            finally:
                for worker in workers:
                    worker.close()
                server.close()


if __name__ == "__main__":
    unittest.main()
