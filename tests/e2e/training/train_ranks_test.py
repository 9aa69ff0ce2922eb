"""Training jobs of several processes: the same result as with one process, and as PyTorch's DDP; killed and frozen
ranks."""

import os
import signal
import tempfile
import threading
import unittest

import grpc
import torch
import torch.distributed as dist

from tests.e2e.training import training_models as models
from tests.e2e.daemon import request, training
from tests.e2e.processes import is_running, wait_until
from tests.e2e.training.training_daemon import AT_REST, CANCELLED, COMPLETED, FAILED, PAUSED, RUNNING, TrainingDaemon, spec

SGD = training.Optimizer(name="sgd", lr=0.05, momentum=0.9)
AT_END = training.PublishPolicy(when="at_end")
FIRST = training.ModelSource(name="mlp", version=1)
ENDLESS = dict(steps=10**7, model=FIRST, optimizer=SGD)


def ranks(world_size, **fields):
    return training.Distribution(world_size=world_size, **fields)


def by_ddp(rank, store, archive, x, y, seed, batch_size, epochs):
    """PyTorch's losses and weights of the same job; two processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model = models.Mlp()
    model.load_state_dict(torch.jit.load(archive).state_dict())
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed + epoch))
        for batch in order.split(batch_size):
            own = batch[rank::2]
            loss = torch.nn.functional.cross_entropy(ddp(x[own]), y[own])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            losses.append(mean.item() / 2)
    if rank == 0:
        torch.save((losses, model.state_dict()), f"{store}.out")
    dist.barrier()
    dist.destroy_process_group()


class Norms(torch.nn.Module):
    """Batch norms without dropout: with statistics of all ranks the result does not depend on their number."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class TrainRanksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--training-jobs", "2")
        models.save(models.Mlp(), cls.server.models, "mlp")
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        models.save(Norms(), cls.server.models, "plain_norms")
        models.save(models.Mlp(hidden=32768), cls.server.models, "wide")
        cls.x, cls.y = models.clusters(1000, 64, 10, seed=1, spread=2.0)
        cls.server.save_data("clusters.pt", x=cls.x, y=cls.y)
        broken = cls.x.clone()
        broken[500] = float("nan")
        cls.server.save_data("broken.pt", x=broken, y=cls.y)
        ignored = cls.y.clone()
        ignored[500] = -100
        cls.server.save_data("ignored.pt", x=cls.x, y=ignored)
        x, y = models.clusters(1000, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def train(self, world_size, options=None, **fields):
        """The job, its losses by step, and its weights."""
        job, points = self.server.watch(self.server.create(
            distribution=ranks(world_size, **(options or {})), publish=AT_END, **{"model": FIRST, "optimizer": SGD, **fields}).id)
        self.assertEqual(job.state, COMPLETED, job.message)
        weights = self.server.weights(job.spec.publish.model, job.published_version)
        return job, {point.step: point.loss for point in points}, weights

    def assert_near(self, one, other, tolerance=2e-4):
        self.assertEqual(one[1].keys(), other[1].keys())
        for step, loss in one[1].items():
            self.assertAlmostEqual(loss, other[1][step], delta=tolerance, msg=f"step {step}")
        for name, weight in one[2].items():
            self.assertTrue(torch.allclose(weight, other[2][name], atol=tolerance), name)

    def test_any_number_of_ranks_gives_the_same(self):
        # The last batch of an epoch has one row, on one rank; momentum continues on all.
        fields = dict(batch_size=37, epochs=2, evaluation=training.Evaluation(fraction=0.001, metrics=["loss"]))
        one = self.train(1, **fields)
        for world_size in (2, 3):
            job, *rest = several = self.train(world_size, **fields)
            self.assert_near(one, several)
            self.assertAlmostEqual(job.progress.metrics["loss"], one[0].progress.metrics["loss"], places=3)
            self.assertEqual([rank.rank for rank in job.progress.ranks], list(range(world_size)))
            self.assertEqual(len({rank.pid for rank in job.progress.ranks}), world_size)
            self.assertEqual(job.progress.samples, one[0].progress.samples)
        again = self.train(3, **fields)
        self.assertEqual(again[1], several[1])
        for name, weight in several[2].items():
            self.assertTrue(torch.equal(weight, again[2][name]), name)

    def test_every_evaluation_is_in_the_curve(self):
        """A report of a step during its evaluation lacks the metrics, so it is sent again. Evaluations take most of the
        time here."""
        x, y = models.clusters(40000, 64, 10, seed=3)
        self.server.save_data("held_out.pt", x=x, y=y)
        job = self.server.create(
            distribution=ranks(2), model=FIRST, optimizer=SGD, steps=15, batch_size=20,
            evaluation=training.Evaluation(file="held_out.pt", every_steps=1, batch_size=50, metrics=["loss", "accuracy"]))
        job = self.server.wait_until(job.id, lambda now: now.state in AT_REST)
        self.assertEqual(job.state, COMPLETED, job.message)
        _, points = self.server.watch(job.id)
        self.assertEqual({point.step: sorted(point.metrics) for point in points},
                         {step: ["accuracy", "loss"] for step in range(1, 16)})
        self.assertEqual(dict(max(points, key=lambda point: point.step).metrics), dict(job.progress.metrics))

    def test_equals_pytorchs_ddp(self):
        job, losses, weights = self.train(2, batch_size=50, epochs=2)
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            torch.multiprocessing.spawn(
                by_ddp, (store, self.server.model_file("mlp", 1), self.x, self.y, job.spec.seed, 50, 2), 2)
            theirs, their_weights = torch.load(store + ".out")
        self.assertEqual(len(losses), len(theirs))
        for step, loss in losses.items():
            self.assertAlmostEqual(loss, theirs[step - 1], delta=1e-4, msg=f"step {step}")
        for name, weight in weights.items():
            self.assertTrue(torch.allclose(weight, their_weights[name], atol=1e-4), name)

    def test_a_killed_rank_changes_nothing(self):
        fields = dict(model=training.ModelSource(name="norms", version=1), data="norms.pt", epochs=40, batch_size=32,
                      checkpoints=training.CheckpointPolicy(every_steps=150))
        _, losses, weights = self.train(2, **fields)
        failures, is_over = [], threading.Event()

        def ask():
            call = request("mlp", [("x", "FP32", [8, 64], self.x[:8].numpy().tobytes())])
            while not is_over.is_set():
                try:
                    self.server.daemon.stub.ModelInfer(call, timeout=300)
                except grpc.RpcError as error:
                    failures.append(error.details())

        client = threading.Thread(target=ask)
        client.start()
        try:
            job = self.server.create(distribution=ranks(2), publish=AT_END, optimizer=SGD, **fields)
            for killed in (1, 0):
                before = self.server.get(job.id).progress.restarts
                now = self.server.wait_until(
                    job.id, lambda now: now.state in AT_REST or (
                        now.progress.restarts == before and len(now.progress.ranks) == 2 and
                        now.progress.step > now.progress.checkpoint_step))
                self.assertEqual(now.state, RUNNING, now.message)
                os.kill(now.progress.ranks[killed].pid, signal.SIGKILL)
                self.server.wait_until(job.id, lambda now: now.progress.restarts > before or now.state in AT_REST)
            job, points = self.server.watch(job.id)
        finally:
            is_over.set()
            client.join()
        self.assertEqual((job.state, job.progress.restarts), (COMPLETED, 2), job.message)
        self.assertEqual({point.step: point.loss for point in points}, losses)
        killed = self.server.weights("norms", job.published_version)
        for name, weight in weights.items():
            self.assertTrue(torch.equal(weight, killed[name]), name)
        self.assertEqual(failures, [])

    def test_batch_norm_over_all_ranks(self):
        # The last batch of an epoch has six rows. No rank may have a single row, which the script itself refuses.
        model = training.ModelSource(name="plain_norms", version=1)
        self.server.save_data("few_norms.pt", **dict(zip("xy", models.clusters(338, 16, 4, seed=2))))
        fields = dict(model=model, data="few_norms.pt", batch_size=83, epochs=3)
        one = self.train(1, **fields)
        for world_size in (2, 3):
            several = self.train(world_size, dict(sync_batch_norm=True), **fields)
            self.assert_near(one, several)
        again = self.train(3, dict(sync_batch_norm=True), **fields)
        self.assertEqual(again[1], several[1])
        alone = self.train(2, **fields)
        self.assertGreater(max(abs(loss - one[1][step]) for step, loss in alone[1].items()), 1e-2)

    def test_which_result_is_the_same_is_said_at_the_start(self):
        for model, data, options, message in (
                ("plain_norms", "norms.pt", dict(sync_batch_norm=True), "any number of ranks has the same result within rounding"),
                ("plain_norms", "norms.pt", {}, "another number of ranks has another result: batch_norm is each rank's own"),
                ("norms", "norms.pt", dict(sync_batch_norm=True), "another number of ranks has another result: dropout"),
                ("mlp", "clusters.pt", dict(compression="bf16"), "any number of ranks has the same result within the rounding of bf16"),
                ("mlp", "clusters.pt", dict(compression="powersgd"), "powersgd keeps each rank's own errors")):
            job = self.server.create(distribution=ranks(2, **options), model=training.ModelSource(name=model, version=1), data=data,
                                     optimizer=SGD, steps=10**7)
            now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or "result" in now.message)
            self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=300)
            self.assertEqual(now.state, RUNNING, now.message)
            self.assertIn(message, now.message)
            self.server.watch(job.id)

    def test_zero_gives_the_same_bits(self):
        fields = dict(batch_size=20, epochs=3, optimizer=training.Optimizer(name="adamw", lr=0.01))
        for world_size in (1, 3):
            whole, shared = self.train(world_size, **fields), self.train(world_size, dict(zero=1), **fields)
            self.assertEqual(whole[1], shared[1])
            for name, weight in whole[2].items():
                self.assertTrue(torch.equal(weight, shared[2][name]), name)

    def test_zero_goes_on_with_another_number_of_ranks(self):
        fields = dict(batch_size=20, epochs=30, optimizer=training.Optimizer(name="adamw", lr=0.001))
        whole = self.train(1, **fields)
        job = self.server.create(distribution=ranks(2, zero=1), publish=AT_END, model=FIRST, **fields)
        for world_size in (3, 1):
            before = self.server.get(job.id).progress.step
            self.server.wait_until(job.id, lambda now: now.progress.step > before + 60 or now.state in AT_REST)
            self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
            paused, _ = self.server.watch(job.id)
            self.assertEqual((paused.state, paused.progress.checkpoint_step), (PAUSED, paused.progress.step), paused.message)
            self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id, world_size=world_size), timeout=300)
        done, points = self.server.watch(job.id)
        self.assertEqual(done.state, COMPLETED, done.message)
        self.assert_near(whole, (done, {point.step: point.loss for point in points},
                                 self.server.weights("mlp", done.published_version)), tolerance=2e-3)

    def test_zero_keeps_a_share_of_the_state(self):
        def memory(zero):
            job = self.server.create(distribution=ranks(2, zero=zero), model=training.ModelSource(name="wide", version=1),
                                     optimizer=training.Optimizer(name="adam"), steps=10**7)
            now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or (
                len(now.progress.ranks) == 2 and min(rank.step for rank in now.progress.ranks) > 3))
            self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=300)
            self.server.watch(job.id)
            return [rank.memory_bytes for rank in now.progress.ranks]

        parameters = 4 * 32768 * (64 + 1 + 10)
        # Adam keeps two values for each parameter: without sharding 2, with it about 1 for each rank.
        whole, shared = memory(0), memory(1)
        for before, after in zip(whole, shared):
            self.assertLess(after, before)
        self.assertAlmostEqual(sum(whole) - sum(shared), 2 * parameters, delta=0.1 * parameters)

    def test_compressed_gradients(self):
        fields = dict(batch_size=50, epochs=4)
        plain = self.train(2, **fields)
        for compression, tolerance in (("fp16", 5e-3), ("bf16", 5e-2)):
            near = self.train(2, dict(compression=compression), **fields)
            self.assert_near(plain, near, tolerance)
            self.assertNotEqual(plain[1], near[1])
        _, losses, _ = self.train(2, dict(compression="powersgd", compression_rank=2, compression_start_step=10), **fields)
        for step in range(1, 11):
            self.assertEqual(losses[step], plain[1][step])
        self.assertNotEqual(losses[max(losses)], plain[1][max(losses)])
        self.assertLess(losses[max(losses)], 0.5 * losses[1])
        # A killed rank: the error feedback of all ranks is in the checkpoint.
        options = dict(compression="powersgd", compression_rank=2, compression_start_step=10)
        fields.update(epochs=60, checkpoints=training.CheckpointPolicy(every_steps=150))
        whole = self.train(2, options, **fields)
        job = self.server.create(distribution=ranks(2, **options), publish=AT_END, model=FIRST, optimizer=SGD, **fields)
        now = self.server.wait_until(
            job.id, lambda now: now.state in AT_REST or (len(now.progress.ranks) == 2 and now.progress.checkpoint_step > 0))
        self.assertEqual(now.state, RUNNING, now.message)
        os.kill(now.progress.ranks[1].pid, signal.SIGKILL)
        done, points = self.server.watch(job.id)
        self.assertEqual((done.state, done.progress.restarts), (COMPLETED, 1), done.message)
        self.assertEqual({point.step: point.loss for point in points}, whole[1])

    def test_a_frozen_rank_is_noticed(self):
        job = self.server.create(distribution=ranks(2, timeout_seconds=3, max_restarts=0), **ENDLESS)
        running = self.server.wait_until(job.id, lambda now: len(now.progress.ranks) == 2 and now.progress.step > 0)
        os.kill(running.progress.ranks[1].pid, signal.SIGSTOP)
        failed, _ = self.server.watch(job.id)
        self.assertEqual(failed.state, FAILED)
        self.assertIn("has said nothing for 3 seconds", failed.message)
        for rank in running.progress.ranks:
            self.assertFalse(is_running(rank.pid))

    def test_pauses_and_goes_on_with_another_number_of_ranks(self):
        fields = dict(batch_size=20, epochs=30)
        whole = self.train(1, **fields)
        job = self.server.create(distribution=ranks(2), publish=AT_END, model=FIRST, optimizer=SGD, **fields)
        self.server.wait_until(job.id, lambda now: now.progress.step > 60 or now.state in AT_REST)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
        paused, _ = self.server.watch(job.id)
        self.assertEqual((paused.state, paused.progress.checkpoint_step), (PAUSED, paused.progress.step))
        as_it_was = self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id), timeout=300)
        self.assertEqual(as_it_was.spec.distribution.world_size, 2)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.watch(job.id)[0].state, PAUSED)
        resumed = self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id, world_size=3), timeout=300)
        self.assertEqual(resumed.spec.distribution.world_size, 3)
        done, points = self.server.watch(job.id)
        self.assertEqual((done.state, len(done.progress.ranks)), (COMPLETED, 3), done.message)
        self.assert_near(whole, (done, {point.step: point.loss for point in points},
                                 self.server.weights("mlp", done.published_version)), tolerance=2e-3)

    def test_ranks_die_with_the_daemon_and_the_job_goes_on(self):
        fields = dict(batch_size=20, epochs=60, checkpoints=training.CheckpointPolicy(every_steps=100))
        job = self.server.create(distribution=ranks(2), publish=AT_END, model=FIRST, optimizer=SGD, **fields)
        now = self.server.wait_until(job.id, lambda now: len(now.progress.ranks) == 2 and now.progress.checkpoint_step > 0)
        pids = [rank.pid for rank in now.progress.ranks]
        self.server.daemon.process.kill()
        self.server.daemon.process.wait()
        for pid in pids:
            wait_until(lambda pid=pid: not is_running(pid))
        self.server.restart()
        done, _ = self.server.watch(job.id)
        self.assertEqual((done.state, done.progress.step), (COMPLETED, 3000), done.message)

    def test_an_error_of_one_rank_is_the_jobs(self):
        job = self.server.run(distribution=ranks(2), data="broken.pt", epochs=1, model=FIRST, optimizer=SGD)
        self.assertEqual((job.state, job.progress.restarts), (FAILED, 0))
        self.assertRegex(job.message, r"rank \d: step \d+, batch \d+ \(epoch 1\): the loss is not a number: 'x' of the data")

    def test_places_that_do_not_count_are_refused(self):
        fields = dict(data="ignored.pt", epochs=1, model=FIRST, optimizer=SGD)
        several, one = (self.server.run(distribution=ranks(size), **fields) for size in (2, 1))
        self.assertEqual(several.state, FAILED)
        self.assertRegex(several.message, r"loss.label: 'y' has -100, a place that does not count")
        self.assertEqual(one.state, COMPLETED, one.message)

    def test_is_seen_from_outside(self):
        job = self.server.create(distribution=ranks(2), **ENDLESS)
        self.server.wait_until(job.id, lambda now: len(now.progress.ranks) == 2 and now.progress.step > 0)
        metrics = self.server.daemon.metrics()
        for rank in range(2):
            self.assertRegex(metrics, rf'tensord_training_rank_step\{{job_id="{job.id}",model="mlp",rank="{rank}",host="[^"]+"\}} \d')
            self.assertRegex(metrics, rf'tensord_training_rank_communication_seconds_total\{{job_id="{job.id}",model="mlp",'
                                      rf'rank="{rank}",host="[^"]+"\}} \d')
        shown = self.server.client("jobs", "show", job.id)
        self.assertRegex(shown, r"rank 0 +\S+, pid \d+, step \d+")
        self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.watch(job.id)[0].state, CANCELLED)

    def test_by_the_command_line(self):
        out = self.server.client("train", "mlp", "--data", "clusters.pt", "--label", "y", "--loss", "cross_entropy", "--epochs", "2",
                          "--world-size", "2", "--max-restarts", "1", "--sync-batch-norm", "--zero", "1",
                          "--compression", "powersgd", "--compression-rank", "3", "--compression-start-step", "5")
        self.assertIn("COMPLETED", out)
        job = max(self.server.stub.ListJobs(training.ListJobsRequest(), timeout=300).jobs, key=lambda job: job.created_at_ms)
        self.assertEqual(job.spec.distribution, ranks(
            2, processes_per_host=2, max_restarts=1, timeout_seconds=60, sync_batch_norm=True, zero=1, compression="powersgd",
            compression_rank=3, compression_start_step=5, backend="gloo"))

    def test_what_is_refused(self):
        for message, job in (
                ("distribution.backend: mpi wants ranks that mpirun has started", spec(epochs=1, distribution=ranks(2, backend="mpi"))),
                ("distribution.backend: nccl moves tensors of CUDA devices", spec(epochs=1, distribution=ranks(2, backend="nccl"))),
                ("distribution.backend: 'ucc' is not gloo", spec(epochs=1, distribution=ranks(2, backend="ucc"))),
                ("distribution.world_size: needed", spec(epochs=1, distribution=ranks(0, backend="gloo"))),
                ("lbfgs trains in one process",
                 spec(epochs=1, optimizer=training.Optimizer(name="lbfgs"), distribution=ranks(2))),
                ("2 ranks have no row each of 1 in a batch", spec(epochs=1, batch_size=1, distribution=ranks(2))),
                ("loss.ignore_index", spec(epochs=1, loss=training.Loss(ignore_index=3), distribution=ranks(2))),
                ("distribution.processes_per_host", spec(epochs=1, distribution=ranks(2, processes_per_host=3))),
                ("distribution.world_size: needed", spec(epochs=1, distribution=ranks(0, max_restarts=3))),
                ("distribution.world_size: needed", spec(epochs=1, distribution=ranks(0, sync_batch_norm=True))),
                ("distribution.zero: must be between 0 and 1", spec(epochs=1, distribution=ranks(2, zero=2))),
                ("distribution.compression: 'int8' is not one of", spec(epochs=1, distribution=ranks(2, compression="int8"))),
                ("distribution.compression_rank: is for powersgd alone",
                 spec(epochs=1, distribution=ranks(2, compression="fp16", compression_rank=2))),
                ("distribution.compression_start_step: must be between 2",
                 spec(epochs=1, distribution=ranks(2, compression="powersgd", compression_start_step=1))),
                ("distribution.world_size: this server starts at most", spec(epochs=1, batch_size=1000, distribution=ranks(999))),
                ("distribution.world_size: must be between", spec(epochs=1, distribution=ranks(-1)))):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.stub.CreateJob(training.CreateJobRequest(spec=job), timeout=300)
            self.assertIn(message, caught.exception.details())


if __name__ == "__main__":
    unittest.main()
