"""Training jobs of several daemons: the same bits as on one host; daemons that are killed, late, or cut off."""

import os
import shutil
import signal
import unittest

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.hosts import Coordinator, Worker, children_of
from tests.e2e.processes import is_running, wait_until
from tests.e2e.training.train_images_test import PARAMETERS, Net, archive_of, save_pictures
from tests.e2e.training.training_daemon import AT_REST, CANCELLED, COMPLETED, FAILED, PAUSED, RUNNING, JobAssertions, spec

SGD = training.Optimizer(name="sgd", lr=0.01, momentum=0.9)
AT_END = training.PublishPolicy(when="at_end")
NORMS = training.ModelSource(name="norms", version=1)
JOB = dict(model=NORMS, data="norms.pt", batch_size=32, optimizer=SGD)
ENDLESS = dict(steps=10**7, **JOB)


def over_hosts(world_size, processes_per_host, **fields):
    return training.Distribution(world_size=world_size, processes_per_host=processes_per_host, **fields)


class TrainHostsTest(JobAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = Coordinator()
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        models.save(Net(), cls.server.models, "net")
        x, y = models.clusters(1000, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()
        cls.workers = {name: Worker(name, cls.server.relay.address).start() for name in ("b", "c")}
        cls.server.wait_for_hosts("b", "c")

    @classmethod
    def tearDownClass(cls):
        for worker in cls.workers.values():
            worker.close()
        cls.server.close()

    def setUp(self):
        self.server.wait_for_hosts("b", "c")
        wait_until(lambda: not any(host.is_busy for host in self.server.hosts().values()))

    def create(self, world_size, processes_per_host, **fields):
        distribution = over_hosts(world_size, processes_per_host, timeout_seconds=5, max_restarts=10,
                                  **fields.pop("distribution", {}))
        # One thread each, on one host and on several.
        return self.server.create(distribution=distribution, publish=AT_END,
                                  resources=training.Resources(threads=processes_per_host), **{**JOB, **fields})

    def train(self, world_size, processes_per_host, **fields):
        return self.finished(self.create(world_size, processes_per_host, **fields), "norms")

    def while_it_trains(self, job, hosts=("b",)):
        """The job, between two checkpoints, with its ranks on those hosts."""
        before = self.server.get(job.id).progress.restarts
        now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or (
            now.progress.restarts == before and now.progress.step > now.progress.checkpoint_step > 0 and
            set(hosts) <= {rank.host for rank in now.progress.ranks}))
        self.assertEqual(now.state, RUNNING, now.message)
        return now

    def test_same_bits_as_on_one_host(self):
        for world_size, processes_per_host, hosts in ((2, 1, ["a", "b"]), (3, 1, ["a", "b", "c"]),
                                                      (4, 2, ["a", "a", "b", "b"]), (3, 2, ["a", "a", "b"])):
            with self.subTest(world_size=world_size, processes_per_host=processes_per_host):
                one = self.train(world_size, world_size, epochs=2)
                several = self.train(world_size, processes_per_host, epochs=2)
                self.assert_same(one, several)
                self.assertEqual([rank.host for rank in several[0].progress.ranks], hosts)
                self.assertEqual(several[0].progress.restarts, 0)

    def test_hosts_are_named_in_the_job(self):
        job, _, _ = self.train(2, 1, epochs=1, distribution=dict(hosts=["c"]))
        self.assertEqual([rank.host for rank in job.progress.ranks], ["a", "c"])

    def test_files_that_are_there_are_not_fetched(self):
        one = self.train(2, 2, epochs=1)
        worker = self.workers["b"]
        shutil.rmtree(os.path.join(worker.jobs, "host-cache"))
        os.makedirs(os.path.join(worker.jobs, "host-cache"))
        own = os.path.join(worker.data, "norms.pt")
        shutil.copy(os.path.join(self.server.data, "norms.pt"), own)
        try:
            self.assert_same(one, self.train(2, 1, epochs=1))
            self.assertEqual(len(worker.cached()), 1)  # the archive
            # Another file of that name is not the job's.
            torch.save({"x": torch.zeros(1000, 16), "y": torch.zeros(1000, dtype=torch.int64)}, own)
            self.assert_same(one, self.train(2, 1, epochs=1))
            self.assertEqual(len(worker.cached()), 2)
            # A cached file whose bytes have changed is fetched again.
            for name in worker.cached():
                with open(os.path.join(worker.jobs, "host-cache", name), "r+b") as file:
                    file.seek(-100, os.SEEK_END)
                    file.write(b"?" * 10)
            self.assert_same(one, self.train(2, 1, epochs=1))
        finally:
            os.remove(own)

    def test_folders_of_images(self):
        """An archive is fetched. Of a folder each host reads its own copy, which must be the same."""
        folder = os.path.join(self.server.data, "pets")
        save_pictures(folder)
        archive_of(folder, os.path.join(self.server.data, "pets.zip"))
        image = dict(model=training.ModelSource(name="net", version=1), label="labels", epochs=2, batch_size=4)

        def data(file):
            return training.Data(file=file, image_parameters=PARAMETERS, random_horizontal_flip=0.5)

        def job(processes_per_host, file, **fields):
            return self.create(2, processes_per_host, data=data(file), **image, **fields)

        one = self.finished(job(2, "pets"), "net")
        self.assert_same(one, self.finished(job(1, "pets.zip"), "net"))
        for missing, text in ((True, "host b: files: 'pets' is not in the data folder"), (False, "host b: the folder of images 'pets' is not the same as the coordinator's")):
            with self.subTest(text):
                if not missing:
                    shutil.copytree(folder, os.path.join(self.workers["b"].data, "pets"))
                    save_pictures(os.path.join(self.workers["b"].data, "pets", "more"))
                failed, _ = self.server.watch(job(1, "pets", distribution=dict(hosts=["b"])).id)
                self.assertEqual(failed.state, FAILED)
                self.assertIn(text, failed.message)
        own = os.path.join(self.workers["b"].data, "pets")
        with open(os.path.join(own, "dog", "3.webp"), "w"):
            pass
        failed, _ = self.server.watch(job(1, "pets", distribution=dict(hosts=["b"])).id)
        self.assertIn("host b: pets/dog/3.webp: images of this kind are not read", failed.message)  # no path of host b
        shutil.rmtree(own)
        shutil.copytree(folder, own)
        same = self.finished(job(1, "pets", distribution=dict(hosts=["b"])), "net")
        self.assert_same(one, same)
        # Beside data that is fetched.
        mixed = self.finished(job(1, "pets", distribution=dict(hosts=["b"]), evaluation=training.Evaluation(file="pets.zip")), "net")
        self.assert_same(one, mixed)

    def test_a_worker_that_is_killed_changes_nothing(self):
        fields = dict(epochs=20, checkpoints=training.CheckpointPolicy(every_steps=50))
        whole = self.train(3, 3, **fields)
        job = self.create(3, 1, **fields)
        # First a rank of another host, then the daemon.
        now = self.while_it_trains(job, ("b", "c"))
        os.kill(now.progress.ranks[2].pid, signal.SIGKILL)
        self.server.wait_until(job.id, lambda now: now.progress.restarts > 0)
        now = self.while_it_trains(job, ("b", "c"))
        worker = self.workers["b"]
        worker.daemon.process.kill()
        worker.daemon.process.wait()
        for rank in now.progress.ranks[1:2]:
            wait_until(lambda rank=rank: not is_running(rank.pid))
        waiting = self.server.wait_until(job.id, lambda now: "waiting for hosts: 1 of 2" in now.message)
        self.assertEqual(waiting.state, RUNNING)
        worker.restart()
        done = self.finished(job, "norms")
        self.assert_same(whole, done)
        self.assertEqual(done[0].progress.restarts, 2)

    def test_a_worker_that_is_cut_off_comes_again(self):
        fields = dict(epochs=20, checkpoints=training.CheckpointPolicy(every_steps=50))
        whole = self.train(2, 2, **fields)
        job = self.create(2, 1, **fields)
        self.while_it_trains(job)
        pids = self.workers["b"].rank_pids()
        self.assertEqual(len(pids), 1)
        self.server.relay.freeze()
        try:
            lost = self.server.wait_until(job.id, lambda now: now.progress.restarts > 0 or now.state in AT_REST)
            self.assertEqual(lost.state, RUNNING, lost.message)
            # On the other side of the cut no order to stop reaches the ranks.
            wait_until(lambda: not is_running(pids[0]))
        finally:
            self.server.relay.freeze(False)
        done = self.finished(job, "norms")
        self.assert_same(whole, done)
        # While it is silent nothing is started on it.
        self.assertLess(done[0].progress.restarts, 5)

    def test_a_coordinator_that_is_killed_leaves_nothing_and_goes_on(self):
        fields = dict(epochs=20, checkpoints=training.CheckpointPolicy(every_steps=50))
        whole = self.train(2, 2, **fields)
        job = self.create(2, 1, **fields)
        now = self.while_it_trains(job)
        self.server.daemon.process.kill()
        self.server.daemon.process.wait()
        for rank in now.progress.ranks:
            wait_until(lambda rank=rank: not is_running(rank.pid))
        hosted = os.path.join(self.workers["b"].jobs, "hosted")
        wait_until(lambda: not os.path.isdir(hosted) or not os.listdir(hosted))
        self.server.restart()
        self.assert_same(whole, self.finished(job, "norms"))

    def test_stopping_the_coordinator_writes_a_checkpoint(self):
        job = self.create(2, 1, steps=10**7, checkpoints=training.CheckpointPolicy(every_steps=10**6))
        self.server.wait_until(job.id, lambda now: now.progress.step > 20)
        self.assertEqual(self.server.daemon.stop(), 0)
        self.server.restart()
        now = self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step > 20 and now.progress.ranks)
        self.assertEqual(now.state, RUNNING, now.message)
        self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.watch(job.id)[0].state, CANCELLED)

    def test_pauses_and_goes_on_with_other_hosts(self):
        job = self.create(2, 1, epochs=60)
        self.server.wait_until(job.id, lambda now: now.progress.step > 60 or now.state in AT_REST)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
        paused, _ = self.server.watch(job.id)
        self.assertEqual((paused.state, paused.progress.checkpoint_step), (PAUSED, paused.progress.step))
        wait_until(lambda: not self.workers["b"].rank_pids())
        resumed = self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id, world_size=3), timeout=300)
        self.assertEqual((resumed.spec.distribution.world_size, resumed.spec.distribution.processes_per_host), (3, 1))
        done, _, _ = self.finished(job, "norms")
        self.assertEqual([rank.host for rank in done.progress.ranks], ["a", "b", "c"])

    def test_hosts_that_do_not_come(self):
        job = self.server.create(distribution=over_hosts(4, 1, join_timeout_seconds=1), **ENDLESS)
        failed, _ = self.server.watch(job.id)
        self.assertEqual(failed.state, FAILED)
        self.assertIn("3 other hosts are needed, with 1 processes each; within 1 seconds 2 had joined", failed.message)

    def test_fewer_hosts_where_that_is_allowed(self):
        """The result is that of this number of ranks from the start."""
        for hosts, world_size, fewer, names in (([], 4, 3, ["a", "b", "c"]), (["c", "d"], 3, 2, ["a", "c"]), (["d", "e"], 3, 1, ["a"])):
            job = self.create(world_size, 1, epochs=1, distribution=dict(hosts=hosts, min_world_size=fewer, join_timeout_seconds=1))
            done = self.finished(job, "norms")
            self.assertEqual([rank.host for rank in done[0].progress.ranks], names)
            self.assert_same(self.train(fewer, 1, epochs=1, distribution=dict(hosts=names[1:])), done)
        job = self.create(4, 1, epochs=1, distribution=dict(hosts=["b", "d", "e"], min_world_size=3, join_timeout_seconds=1))
        failed, _ = self.server.watch(job.id)
        self.assertEqual(failed.state, FAILED)
        self.assertIn("3 other hosts are needed, with 1 processes each; within 1 seconds 1 had joined", failed.message)

    def test_goes_on_with_fewer_hosts(self):
        job = self.create(3, 1, epochs=20, distribution=dict(min_world_size=2, join_timeout_seconds=1),
                          checkpoints=training.CheckpointPolicy(every_steps=50))
        self.while_it_trains(job, ("b", "c"))
        worker = self.workers["c"]
        worker.kill()
        try:
            done, _, _ = self.finished(job, "norms")
        finally:
            worker.start()
        self.server.wait_for_hosts("c")
        self.assertEqual([rank.host for rank in done.progress.ranks], ["a", "b"])
        self.assertGreaterEqual(done.progress.restarts, 1)
        self.assertEqual(done.spec.distribution.world_size, 3)

    def test_a_late_host_is_waited_for(self):
        job = self.create(4, 1, epochs=1)
        self.server.wait_until(job.id, lambda now: "2 of 3 have joined" in now.message)
        late = Worker("d", self.server.relay.address).start()
        try:
            done, _, _ = self.finished(job, "norms")
            self.assertEqual([rank.host for rank in done.progress.ranks], ["a", "b", "c", "d"])
        finally:
            late.close()
        wait_until(lambda: "d" not in self.server.hosts())

    def test_cancelled_while_it_waits_and_while_it_runs(self):
        waiting = self.server.create(distribution=over_hosts(4, 1), **ENDLESS)
        self.server.wait_until(waiting.id, lambda now: "waiting for hosts" in now.message)
        self.server.stub.CancelJob(training.CancelJobRequest(id=waiting.id), timeout=300)
        self.assertEqual(self.server.watch(waiting.id)[0].state, CANCELLED)
        running = self.server.create(distribution=over_hosts(2, 1), **ENDLESS)
        self.server.wait_until(running.id, lambda now: now.progress.step > 0)
        self.server.stub.CancelJob(training.CancelJobRequest(id=running.id), timeout=300)
        self.assertEqual(self.server.watch(running.id)[0].state, CANCELLED)
        wait_until(lambda: not self.workers["b"].rank_pids())

    def test_an_error_of_a_rank_elsewhere_is_the_jobs(self):
        x, y = models.clusters(1000, 16, 4, seed=2)
        x[:] = float("nan")
        self.server.save_data("broken.pt", x=x, y=y)
        job = self.server.run(distribution=over_hosts(2, 1), **{**ENDLESS, "data": "broken.pt"})
        self.assertEqual((job.state, job.progress.restarts), (FAILED, 0))
        self.assertRegex(job.message, r"rank \d of host [ab]: step 1, batch 0 \(epoch 1\): the loss is not a number")

    def test_is_seen_from_outside(self):
        job = self.server.create(distribution=over_hosts(3, 1), **ENDLESS)
        self.server.wait_until(job.id, lambda now: len(now.progress.ranks) == 3 and now.progress.step > 0)
        metrics = self.server.daemon.metrics()
        for rank, host in enumerate("abc"):
            for name in ("step", "communication_seconds_total"):
                self.assertRegex(metrics, rf'tensord_training_rank_{name}\{{job_id="{job.id}",model="norms",'
                                          rf'rank="{rank}",host="{host}"\}} \d')
        self.assertTrue(self.server.hosts()["b"].is_busy)
        shown = self.server.client("jobs", "show", job.id)
        self.assertRegex(shown, r"rank 2 +c, pid \d+, step \d+")
        self.assertRegex(self.server.client("jobs", "hosts"), r"b +127\.0\.0\.1 +\d+ +busy")
        self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.watch(job.id)[0].state, CANCELLED)

    def test_by_the_command_line(self):
        out = self.server.client("train", "norms", "--data", "norms.pt", "--label", "y", "--loss", "cross_entropy", "--epochs", "1",
                          "--world-size", "2", "--procs-per-host", "1", "--hosts", "b,c")
        self.assertIn("COMPLETED", out)

    def test_strangers_get_nothing(self):
        one = self.train(2, 2, epochs=1)
        job = self.create(2, 1, epochs=1)
        strangers = []
        # Strangers connect to whatever the job's ranks listen on until they have connected. One that comes first costs
        # a start, of which the job has ten.
        def is_meeting(progress):
            return progress.step == 0 and progress.restarts < 5

        while is_meeting(self.server.get(job.id).progress) and self.server.get(job.id).state not in AT_REST:
            for pid in [self.server.daemon.process.pid, *children_of(self.server.daemon.process.pid),
                        *self.workers["b"].rank_pids()]:
                strangers += connect_to_all_of(pid, but=self.server.daemon.ready.values())
        done = self.finished(job, "norms")
        for stranger in strangers:
            stranger.close()
        self.assertGreater(len(strangers), 0)
        self.assert_same(one, done)

    def test_what_is_refused(self):
        for message, distribution in (
                ("distribution.processes_per_host: more than the 2 ranks", over_hosts(2, 3)),
                ("distribution.hosts: 2 other hosts are needed, got 1", over_hosts(3, 1, hosts=["b"])),
                ("distribution.hosts: 'b' is empty or there twice", over_hosts(3, 1, hosts=["b", "b"])),
                ("distribution.hosts: '../b' is not a plain name", over_hosts(2, 1, hosts=["../b"])),
                ("distribution.hosts: all ranks run on this host", over_hosts(2, 2, hosts=["b"])),
                ("distribution.min_world_size: all ranks run on this host", over_hosts(2, 2, min_world_size=1)),
                ("distribution.min_world_size: must be between 1 and 2", over_hosts(2, 1, min_world_size=3)),
                ("distribution.join_timeout_seconds: all ranks run on this host", over_hosts(2, 2, join_timeout_seconds=9)),
                ("distribution.processes_per_host: this server starts at most", over_hosts(1000, 900))):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.stub.CreateJob(
                    training.CreateJobRequest(spec=spec(epochs=1, **{**JOB, "batch_size": 2000}, distribution=distribution)),
                    timeout=300)
            self.assertIn(message, caught.exception.details())


def connect_to_all_of(pid, but):
    """Connections to the ports of a process that send what no rank would."""
    import socket
    known = {int(address.rsplit(":", 1)[1]) for address in but if isinstance(address, str) and ":" in address}
    try:
        inodes = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        with open(f"/proc/{pid}/net/tcp") as table:
            rows = [line.split() for line in table.readlines()[1:]]
    except OSError:
        return []
    out = []
    for row in rows:
        port = int(row[1].split(":")[1], 16)
        if row[3] != "0A" or f"socket:[{row[9]}]" not in inodes or port in known:
            continue
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=1)
            stranger.sendall(b"\0" * 64)
            out.append(stranger)
        except OSError:
            pass
    return out


if __name__ == "__main__":
    unittest.main()
