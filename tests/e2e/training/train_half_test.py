"""Jobs on models with 16-bit parameters train float32 master weights."""

import unittest

import grpc
import torch
from torch import Tensor, nn

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon

STEPS = 200
LR = 5e-5
STEPS_OF_TWO_RUNS = 6000  # enough that the daemon stops between the first and the last


class Small(nn.Module):
    """The gradient of each weight is about 2^-26."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return (1 + x.sign() / 2).to(self.weight.dtype) * 2**-6 * self.weight

    @torch.jit.export
    def training_step(self, x: Tensor) -> Tensor:
        return self.forward(x).sum(1).mean() * 2**-20


class TrainHalfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon()
        cls.nets = {}
        for name, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32)):
            torch.manual_seed(0)
            cls.nets[name] = models.Mlp(features=8, hidden=8, classes=3).to(torch.bfloat16).to(dtype)
            models.save(cls.nets[name], cls.server.models, name)
        for name, dtype in (("small", torch.float16), ("wide", torch.float32)):
            models.save(Small(dtype), cls.server.models, name)
        x = torch.randn(4 * STEPS, 8).to(torch.bfloat16).float()
        cls.server.save_data("data.pt", x=x, y=x[:, :3].argmax(1))
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def train(self, model, **fields):
        options = {"lr": LR, **fields.pop("options", {})}
        return self.server.run(model=training.ModelSource(name=model, version=1), data="data.pt", epochs=1, batch_size=4,
                               optimizer=training.Optimizer(name=fields.pop("optimizer", "adamw"), **options),
                               publish=training.PublishPolicy(when="at_end"), **fields)

    def test_small_steps_add_up(self):
        """Each step of Adam is about the learning rate, far below the smallest change that a bfloat16 weight can
        hold."""
        for clipping in (training.Clipping(), training.Clipping(norm=0.5)):
            with self.subTest(str(clipping)):
                changes = {}
                for name in ("bf16", "f32"):
                    job = self.train(name, clipping=clipping)
                    self.assertEqual(job.state, COMPLETED, job.message)
                    before, after = self.server.weights(name, 1), self.server.weights(name, job.published_version)
                    self.assertEqual({tensor.dtype for tensor in after.values()}, {self.nets[name].scores.weight.dtype})
                    changes[name] = {key: after[key].float() - before[key].float() for key in after}
                # The weights move by several steps of bfloat16, and end within its rounding and that of the gradients.
                self.assertGreater(max(change.abs().max().item() for change in changes["f32"].values()), 6e-3)
                for key, change in changes["f32"].items():
                    self.assertLess((changes["bf16"][key] - change).abs().max().item(), 3e-3, key)

    def scaled_job(self, model, **fields):
        given = dict(model=training.ModelSource(name=model, version=1), data="data.pt", builtin="", label="", loss=training.Loss(method="training_step"),
                     steps=50, batch_size=4, optimizer=training.Optimizer(name="sgd", lr=2.0**16),
                     publish=training.PublishPolicy(when="at_end"))
        return {**given, **fields}

    def train_scaled(self, model, **fields):
        return self.server.run(**self.scaled_job(model, **fields))

    def test_a_loss_scale_keeps_small_gradients(self):
        """Gradients below 2^-24 are 0 in float16."""
        job = self.train_scaled("small")
        self.assertEqual((job.state, job.progress.skipped_steps), (COMPLETED, 0), job.message)
        before, after = self.server.weights("small", 1), self.server.weights("small", job.published_version)
        self.assertTrue(torch.equal(before["weight"], after["weight"]))
        job = self.train_scaled("small", loss_scale=2.0**14)
        self.assertEqual((job.state, job.progress.loss_scale), (COMPLETED, 2.0**14), job.message)
        after = self.server.weights("small", job.published_version)
        # As in float32, where nothing vanishes.
        job = self.train_scaled("wide")
        self.assertEqual(job.state, COMPLETED, job.message)
        expected = self.server.weights("wide", job.published_version)["weight"] - self.server.weights("wide", 1)["weight"]
        self.assertGreater(expected.abs().min().item(), 1e-3)
        torch.testing.assert_close(after["weight"].float() - before["weight"].float(), expected, atol=2e-3, rtol=0)

    def test_steps_whose_gradients_overflow_are_skipped(self):
        """And a job that is stopped between them ends with the bits of one that is not."""
        fields = dict(steps=3000, loss_scale=2.0**40, ema_decay=0.5, checkpoints=training.CheckpointPolicy(every_steps=50))
        whole = self.train_scaled("small", **fields)
        self.assertEqual(whole.state, COMPLETED, whole.message)
        self.assertGreater(whole.progress.skipped_steps, 20)
        self.assertLess(whole.progress.loss_scale, 2.0**20)
        created = self.server.create(**self.scaled_job("small", **fields))
        self.server.wait_until(created.id, lambda now: now.progress.checkpoint_step > 0)
        self.server.stub.PauseJob(training.PauseJobRequest(id=created.id))
        job, _ = self.server.watch(created.id)
        self.assertLess(job.progress.step, 3000)
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=created.id))
        job, _ = self.server.watch(created.id)
        self.assertEqual((job.state, job.progress.skipped_steps, job.progress.loss_scale),
                         (COMPLETED, whole.progress.skipped_steps, whole.progress.loss_scale), job.message)
        for one, other in zip(self.server.weights("small", whole.published_version).values(),
                              self.server.weights("small", job.published_version).values()):
            self.assertTrue(torch.equal(one, other))

    def test_ranks_skip_the_same_steps(self):
        fields = dict(steps=200, loss_scale=2.0**40)
        alone = self.train_scaled("small", **fields)
        for distribution in (dict(), dict(zero=1), dict(compression="fp16")):
            with self.subTest(str(distribution)):
                job = self.train_scaled("small", **fields, distribution=training.Distribution(world_size=2, **distribution))
                self.assertEqual((job.state, job.progress.step), (COMPLETED, 200), job.message)
                self.assertGreater(job.progress.skipped_steps, 20)
                self.assertLess(abs(job.progress.skipped_steps - alone.progress.skipped_steps), 4)
                for one, other in zip(self.server.weights("small", alone.published_version).values(),
                                      self.server.weights("small", job.published_version).values()):
                    torch.testing.assert_close(one, other, atol=5e-3, rtol=0)

    def test_loss_scales_that_cannot_be_are_refused(self):
        for fields, text in (({"loss_scale": -1.0}, "loss_scale: must be at least 0"),
                             ({"loss_scale": 2.0, "distribution": training.Distribution(world_size=2, compression="powersgd")}, "loss_scale: not with powersgd"),
                             ({"loss_scale": 2.0, "optimizer": training.Optimizer(name="lbfgs")}, "loss_scale: not with lbfgs")):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.create(**self.scaled_job("small", **fields))
            self.assertIn(text, caught.exception.details())

    def test_goes_on_from_its_float32_copies(self):
        """A stopped and resumed job ends with the bits of an uninterrupted one."""
        self.check_that_a_stopped_job_goes_on(STEPS_OF_TWO_RUNS)

    def check_that_a_stopped_job_goes_on(self, steps, **fields):
        ends = []
        for is_stopped in (False, True):
            job = self.server.create(model=training.ModelSource(name="bf16", version=1), data="data.pt", steps=steps, batch_size=4,
                                     optimizer=training.Optimizer(name="adamw", lr=LR), publish=training.PublishPolicy(when="at_end"),
                                     checkpoints=training.CheckpointPolicy(every_steps=50), **fields)
            if is_stopped:
                self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step > 0)
                self.server.restart()
            done, _ = self.server.watch(job.id)
            self.assertEqual((done.state, done.progress.step), (COMPLETED, steps), done.message)
            ends.append(self.server.weights("bf16", done.published_version))
        self.assertEqual(ends[0].keys(), ends[1].keys())
        for key, weight in ends[0].items():
            self.assertTrue(torch.equal(weight, ends[1][key]), key)

    def test_several_processes(self):
        """All ranks have the same master weights: small steps add up, and a resumed job ends with the bits of an
        uninterrupted one."""
        start, ends = self.server.weights("bf16", 1), {}
        for name in ("bf16", "f32"):
            job = self.train(name, distribution=training.Distribution(world_size=2))
            self.assertEqual((job.state, len(job.progress.ranks)), (COMPLETED, 2), job.message)
            ends[name] = self.server.weights(name, job.published_version)
        self.assertEqual({tensor.dtype for tensor in ends["bf16"].values()}, {torch.bfloat16})
        self.assertGreater(max((ends["f32"][key] - start[key].float()).abs().max().item() for key in start), 6e-3)
        for key in start:
            self.assertLess((ends["bf16"][key].float() - ends["f32"][key]).abs().max().item(), 3e-3, key)
        for options in ({"zero": 1}, {"compression": "fp16"}, {"compression": "powersgd", "compression_start_step": 10}):
            with self.subTest(options):
                job = self.train("bf16", distribution=training.Distribution(world_size=2, **options))
                self.assertEqual(job.state, COMPLETED, job.message)
                weights = self.server.weights("bf16", job.published_version)
                for key in start:
                    if "zero" in options:
                        self.assertTrue(torch.equal(weights[key], ends["bf16"][key]), key)
                    if "powersgd" not in options.values():
                        self.assertLess((weights[key].float() - ends["f32"][key]).abs().max().item(), 3e-3, key)

    def test_several_processes_go_on_from_their_float32_copies(self):
        for zero in (0, 1):
            with self.subTest(f"{zero=}"):
                self.check_that_a_stopped_job_goes_on(500, distribution=training.Distribution(world_size=2, zero=zero))

    def test_what_is_refused(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.train("bf16", optimizer="lbfgs")
        self.assertIn("LBFGS has no master weights", raised.exception.details())


if __name__ == "__main__":
    unittest.main()
