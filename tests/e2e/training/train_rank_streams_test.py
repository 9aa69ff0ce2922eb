"""Streamed data for jobs of several processes: the same result as with one, with killed ranks, pauses and other numbers
of ranks."""

import os
import signal
import threading
import unittest

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.hosts import Coordinator, Worker
from tests.e2e.training.training_daemon import AT_REST, CANCELLED, FAILED, PAUSED, RUNNING, JobAssertions, spec

SGD = training.Optimizer(name="sgd", lr=0.05, momentum=0.9)
AT_END = training.PublishPolicy(when="at_end")
# Of several sizes: one rank has rows of each, the second has none of the last.
SIZES = (20, 7, 33, 12, 1)
DATATYPES = {torch.float32: "FP32", torch.int64: "INT64"}


def message_of(job, number, batch):
    message = training.StreamDataRequest(job_id=job.id, batch=number)
    for name, tensor in batch.items():
        message.inputs.add(name=name, datatype=DATATYPES[tensor.dtype], shape=tensor.shape)
        message.raw_input_contents.append(tensor.numpy().tobytes())
    return message


class TrainRankStreamsTest(JobAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = Coordinator()
        models.save(models.Mlp(), cls.server.models, "mlp")
        x, y = models.clusters(4000, 64, 10, seed=1, spread=2.0)
        cls.batches, at = [], 0
        for i in range(120):
            rows = slice(at, at + SIZES[i % len(SIZES)])
            cls.batches.append({"x": x[rows].contiguous(), "y": y[rows].contiguous()})
            at = rows.stop
        cls.server.save_data("held_out.pt", x=x[at:at + 200], y=y[at:at + 200])
        cls.server.start()
        cls.worker = Worker("b", cls.server.relay.address).start()
        cls.server.wait_for_hosts("b")

    @classmethod
    def tearDownClass(cls):
        cls.worker.close()
        cls.server.close()

    def create(self, world_size, data=None, options=None, **fields):
        job = spec(model=training.ModelSource(name="mlp", version=1), data="", optimizer=SGD, publish=AT_END,
                   distribution=training.Distribution(world_size=world_size, **(options or {})), **fields)
        job.data.MergeFrom(training.Data(streamed=True, **{"stream_timeout_seconds": 300, **(data or {})}))
        return self.server.stub.CreateJob(training.CreateJobRequest(spec=job), timeout=300)

    def feed(self, job, batches=None, first=0, complete=True):
        """The number of accepted batches: those that the job already has are skipped."""
        def messages():
            for number, batch in enumerate(self.batches if batches is None else batches, first):
                yield message_of(job, number, batch)
            if complete:
                yield training.StreamDataRequest(job_id=job.id, complete=True)

        return self.server.stub.StreamData(messages(), timeout=300).batches

    def train(self, world_size, **fields):
        job = self.create(world_size, **fields)
        self.assertEqual(self.feed(job), len(self.batches))
        return self.finished(job, "mlp")

    @property
    def whole(self):
        """Trained by the daemon itself, without ranks."""
        if not hasattr(type(self), "_whole"):
            type(self)._whole = self.train(0)
        return self._whole

    def assert_near(self, one, other):
        """Rounding differences grow with the steps."""
        self.assertEqual(one[1].keys(), other[1].keys())
        for step, loss in one[1].items():
            self.assertAlmostEqual(loss, other[1][step], delta=1e-5 if step <= 10 else 2e-3, msg=f"step {step}")
        for name, weight in one[2].items():
            self.assertTrue(torch.allclose(weight, other[2][name], atol=2e-3), name)

    def test_any_number_of_ranks_gives_the_same(self):
        evaluation = training.Evaluation(file="held_out.pt", every_steps=40, metrics=["accuracy"])
        for world_size in (1, 2, 3):
            job, *_ = several = self.train(world_size, evaluation=evaluation)
            self.assert_near(self.whole, several)
            self.assertEqual((job.progress.step, job.progress.next_batch), (120, 120))
            self.assertEqual(job.progress.samples, self.whole[0].progress.samples)
            self.assertEqual(len(job.progress.ranks), world_size)
            self.assertIn("accuracy", job.progress.metrics)
        self.assert_same(several, self.train(3))

    def test_ranks_of_other_hosts_have_their_rows(self):
        one = self.train(2, resources=training.Resources(threads=2))
        several = self.train(2, options=dict(processes_per_host=1), resources=training.Resources(threads=1))
        self.assertEqual([rank.host for rank in several[0].progress.ranks], ["a", "b"])
        self.assert_same(one, several)

    def while_it_trains(self, job, beyond, restarts):
        now = self.server.wait_until(job.id, lambda now: now.state in AT_REST or (
            now.progress.restarts == restarts and len(now.progress.ranks) == 2 and
            now.progress.step > max(beyond, now.progress.checkpoint_step)))
        self.assertEqual(now.state, RUNNING, now.message)
        return now

    def test_a_killed_rank_needs_no_client(self):
        """All batches were sent, and the client has disconnected: batches after the checkpoint are kept."""
        whole = self.train(2)
        job = self.create(2, checkpoints=training.CheckpointPolicy(every_steps=25))
        # Ranks wait for the rest meanwhile.
        self.assertEqual(self.feed(job, self.batches[:40], complete=False), 40)
        for restarts, killed in enumerate((1, 0)):
            now = self.while_it_trains(job, 26, restarts)
            os.kill(now.progress.ranks[killed].pid, signal.SIGKILL)
            self.server.wait_until(job.id, lambda now: now.progress.restarts > restarts or now.state in AT_REST)
        self.while_it_trains(job, 39, 2)
        self.assertEqual(self.feed(job, self.batches[40:], first=40), 80)
        done = self.finished(job, "mlp")
        self.assertEqual(done[0].progress.restarts, 2)
        self.assert_same(whole, done)

    def test_batches_that_are_not_kept_are_asked_for_again(self):
        """The client's call ends with the reason, and sending the same data again continues the job."""
        whole = self.train(2)
        job = self.create(2, data=dict(max_buffered_bytes=2 * 33 * 64 * 4),
                          checkpoints=training.CheckpointPolicy(every_steps=25))
        go_on, failed = threading.Event(), []

        def batches():
            for i, batch in enumerate(self.batches):
                if i == 48:
                    go_on.wait()
                yield batch

        def feed():
            try:
                self.feed(job, batches())
            except grpc.RpcError as error:
                failed.append(error.details())

        client = threading.Thread(target=feed)
        client.start()
        try:
            now = self.while_it_trains(job, 40, 0)
            os.kill(now.progress.ranks[1].pid, signal.SIGKILL)
            now = self.server.wait_until(job.id, lambda now: now.progress.restarts > 0 or now.state in AT_REST)
            self.assertEqual(now.state, RUNNING, now.message)
        finally:
            go_on.set()
            client.join()
        self.assertEqual(len(failed), 1)
        self.assertRegex(failed[0], r"rank 1 \(pid \d+\) was lost: signal 9 .*; batches from 25 on are needed again")
        self.assertEqual(self.feed(job), 95)
        self.assert_same(whole, self.finished(job, "mlp"))

    def test_pauses_and_goes_on_with_another_number_of_ranks(self):
        job = self.create(2)
        self.assertEqual(self.feed(job, self.batches[:50], complete=False), 50)
        self.server.wait_until(job.id, lambda now: now.progress.step == 50 and now.message == "waiting for data" or now.state in AT_REST)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
        paused, _ = self.server.watch(job.id)
        self.assertEqual((paused.state, paused.progress.checkpoint_step, paused.progress.next_batch), (PAUSED, 50, 50), paused.message)
        with self.assertRaises(grpc.RpcError) as refused:
            self.feed(job)
        self.assertIn("is PAUSED and takes no data", refused.exception.details())
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id, world_size=3), timeout=300)
        self.assertEqual(self.feed(job), 70)
        done = self.finished(job, "mlp")
        self.assertEqual(len(done[0].progress.ranks), 3)
        self.assert_near(self.whole, done)

    def test_a_daemon_that_is_killed_goes_on(self):
        whole = self.train(2)
        job = self.create(2, checkpoints=training.CheckpointPolicy(every_steps=25))
        self.assertEqual(self.feed(job, self.batches[:60], complete=False), 60)
        self.while_it_trains(job, 55, 0)
        self.server.daemon.process.kill()
        self.server.daemon.process.wait()
        self.server.restart()
        self.assertEqual(self.feed(job), 70)
        self.assert_same(whole, self.finished(job, "mlp"))
        self.server.wait_for_hosts("b")

    def test_a_client_that_does_not_come_again(self):
        job = self.create(2, data=dict(stream_timeout_seconds=1))
        self.assertEqual(self.feed(job, self.batches[:10], complete=False), 10)
        paused, _ = self.server.watch(job.id)
        self.assertEqual((paused.state, paused.progress.step, paused.progress.checkpoint_step), (PAUSED, 10, 10))
        self.assertEqual(paused.message, "no client has streamed data for 1 seconds; the next batch is 10")

    def test_what_waits_for_data_can_be_stopped(self):
        waits = []
        for _ in range(2):
            waits.append(self.create(2, checkpoints=training.CheckpointPolicy(every_steps=10**6)))
            self.assertEqual(self.feed(waits[-1], self.batches[:5], complete=False), 5)
            self.server.wait_until(waits[-1].id, lambda now: now.progress.step == 5 or now.state in AT_REST)
        self.server.stub.CancelJob(training.CancelJobRequest(id=waits[0].id), timeout=300)
        self.assertEqual(self.server.watch(waits[0].id)[0].state, CANCELLED)
        # The daemon writes a checkpoint when it stops.
        self.assertEqual(self.server.daemon.stop(), 0)
        self.server.restart()
        now = self.server.wait_until(waits[1].id, lambda now: now.message == "waiting for data" or now.state in AT_REST)
        self.assertEqual((now.state, now.progress.next_batch), (RUNNING, 5), now.message)
        self.assertEqual(self.feed(waits[1]), 115)
        self.finished(waits[1], "mlp")
        self.server.wait_for_hosts("b")

    def test_a_batch_that_does_not_fit_the_model(self):
        job = self.create(2)
        self.feed(job, [{"x": self.batches[0]["x"], "label": self.batches[0]["y"]}])
        failed, _ = self.server.watch(job.id)
        self.assertEqual((failed.state, failed.progress.restarts), (FAILED, 0))
        self.assertRegex(failed.message, r"rank 0: .*'y'")


if __name__ == "__main__":
    unittest.main()
