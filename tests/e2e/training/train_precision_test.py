"""Mixed precision (`precision`) and activation checkpointing: the loss follows float32, restarts keep the bits, memory is saved."""

import unittest
from typing import List

import grpc
import torch
from torch import Tensor, nn

from tests.e2e.daemon import training
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import COMPLETED, FAILED, JobAssertions, TrainingDaemon

STEPS_OF_TWO_RUNS = 1500  # enough that the daemon stops between the first and the last


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.norm, self.dropout = nn.BatchNorm1d(width), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(self.norm(self.inner(x)))


class Deep(nn.Module):
    """Blocks whose activations are most of a step's memory, with random numbers and statistics."""

    def __init__(self):
        super().__init__()
        self.first, self.blocks, self.norm, self.scores = nn.Linear(16, 32), nn.ModuleList([Block(32) for _ in range(8)]), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.scores(self.norm(x))

    @torch.jit.export
    def training_step(self, x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.forward(x), y)


class Counting(nn.Module):
    """Its activations depend on how often it ran."""

    def __init__(self):
        super().__init__()
        self.layer, self.count = nn.Linear(16, 16), 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        return self.layer(x) * self.count


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen = nn.Linear(16, 16), torch.jit.annotate(List[int], [0])

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.shape[0])
        return self.layer(x)


class Lasting(nn.Module):
    def __init__(self):
        super().__init__()
        self.count, self.remember, self.scores = Counting(), Remembering(), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.remember(self.count(x)))


class TrainPrecisionTest(unittest.TestCase, JobAssertions):
    @classmethod
    def setUpClass(cls):
        cls.server = TrainingDaemon()
        torch.manual_seed(0)
        models.save(Deep(), cls.server.models, "deep")
        models.save(Lasting(), cls.server.models, "lasting")
        line = nn.Linear(4, 1)
        nn.init.ones_(line.weight)
        models.save(line, cls.server.models, "sum")
        x, y = models.clusters(4096, 16, 4, seed=3)
        cls.server.save_data("clusters.pt", x=x, y=y)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def fields(self, **fields):
        given = dict(model=training.ModelSource(name="deep", version=1), steps=60, batch_size=64, optimizer=training.Optimizer(name="adamw", lr=3e-3),
                     evaluation=training.Evaluation(fraction=0.1, metrics=["loss", "accuracy"]), publish=training.PublishPolicy(when="at_end"))
        return {**given, **fields}

    def train(self, **fields):
        return self.finished(self.server.create(**self.fields(**fields)), "deep")

    def assert_follows(self, one, other):
        """Loss curves beside each other, and weights of the same types."""
        for losses in (one, other):
            first, last = sum(losses[1][step] for step in range(1, 6)), sum(losses[1][step] for step in range(56, 61))
            self.assertLess(last, first / 2)
        for step in one[1]:
            self.assertAlmostEqual(one[1][step], other[1][step], delta=0.1)
        self.assertNotEqual(one[1], other[1])
        self.assertAlmostEqual(one[0].progress.metrics["accuracy"], other[0].progress.metrics["accuracy"], delta=0.05)
        for name, weight in one[2].items():
            self.assertEqual(weight.dtype, other[2][name].dtype)

    def test_the_loss_follows_float32(self):
        whole = self.train()
        self.assert_same(whole, self.train(precision="32"))
        for fields in ({"precision": "bf16-mixed"}, {"precision": "16-mixed"},
                       {"precision": "bf16-mixed", "builtin": "", "label": "", "loss": training.Loss(method="training_step"), "evaluation": training.Evaluation()},):
            with self.subTest(fields):
                job, losses, weights = self.train(**fields)
                if "loss" in fields:
                    self.assertEqual({weight.dtype for name, weight in weights.items() if "tracked" not in name}, {torch.float32})
                    self.assertLess(losses[60], losses[1] / 2)
                    continue
                self.assert_follows(whole, (job, losses, weights))
                self.assertEqual(job.progress.loss_scale, 65536 if fields["precision"] == "16-mixed" else 0)
        # As PyTorch's autocast: the first loss is that of the same weights and rows.
        self.assertEqual(job.spec.precision, "bf16-mixed")

    def test_a_killed_job_ends_with_the_same_bits(self):
        for fields in ({"precision": "bf16-mixed"}, {"precision": "16-mixed", "ema_decay": 0.9}, {"precision": "bf16-mixed", "activation_checkpointing": ["auto"]}):
            with self.subTest(fields):
                ends = []
                for is_stopped in (False, True):
                    job = self.server.create(**self.fields(steps=STEPS_OF_TWO_RUNS, batch_size=16, evaluation=training.Evaluation(),
                                                           checkpoints=training.CheckpointPolicy(every_steps=50), **fields))
                    if is_stopped:
                        self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step > 0)
                        self.server.restart()
                        self.assertLess(self.server.get(job.id).progress.step, STEPS_OF_TWO_RUNS)
                    done, _ = self.server.watch(job.id)
                    self.assertEqual((done.state, done.progress.step), (COMPLETED, STEPS_OF_TWO_RUNS), done.message)
                    ends.append(self.server.weights("deep", done.published_version))
                for name, weight in ends[0].items():
                    self.assertTrue(torch.equal(weight, ends[1][name]), name)

    def test_several_processes(self):
        whole = self.train(distribution=training.Distribution(world_size=2))
        for precision in ("bf16-mixed", "16-mixed"):
            self.assert_follows(whole, self.train(precision=precision, distribution=training.Distribution(world_size=2)))
        again = self.train(precision="bf16-mixed", activation_checkpointing=["blocks.*"], distribution=training.Distribution(world_size=2))
        self.assert_follows(whole, again)

    def test_activations_are_computed_again(self):
        """The same losses and weights, bit by bit, with dropout and statistics, from less memory."""
        fields = dict(steps=12, batch_size=2048, evaluation=training.Evaluation())
        whole = self.train(**fields)
        for patterns in (["auto"], ["blocks.*"], ["blocks.?", "blocks.0"], ["blocks.*", "scores"]):
            with self.subTest(patterns):
                again = self.train(activation_checkpointing=patterns, **fields)
                self.assert_same(whole, again)
                self.assertLess(again[0].progress.peak_memory_bytes, 0.5 * whole[0].progress.peak_memory_bytes)

    def test_steps_whose_loss_overflows_are_skipped(self):
        """As by PyTorch's GradScaler. Two of four batches have outputs above 65504; the weights are those of a job without them."""
        x = torch.linspace(-1, 1, 16 * 4).reshape(16, 4)
        wide = torch.full((4, 4), 60000.0)
        self.server.save_data("good.pt", x=x[:8], y=x[:8, :1])
        self.server.save_data("some.pt", x=torch.cat([x[:4], wide, x[4:8], wide]), y=torch.cat([x[:4, :1], wide[:, :1], x[4:8, :1], wide[:, :1]]))
        self.server.save_data("wide.pt", x=wide, y=wide[:, :1])
        self.server.save_data("nan.pt", x=torch.full((4, 4), float("nan")), y=wide[:, :1])

        def job(file, **fields):
            data = training.Data(file=file, shuffle=False, inputs={"input": "x"})
            return self.server.create(**{**dict(model=training.ModelSource(name="sum", version=1), data=data, builtin="mse", precision="16-mixed", loss_scale=1.0,
                                                batch_size=4, epochs=3, optimizer=training.Optimizer(name="sgd", lr=0.1), publish=training.PublishPolicy(when="at_end")), **fields})

        expected, got = (self.finished(job(file), "sum") for file in ("good.pt", "some.pt"))
        self.assertEqual((expected[0].progress.skipped_steps, got[0].progress.skipped_steps, got[0].progress.loss_scale), (0, 6, 2.0**-6))
        for name, weight in expected[2].items():
            self.assertTrue(torch.equal(weight, got[2][name]), name)
        self.assertTrue(all(loss < 100 for loss in got[1].values()), got[1])
        for file, step, text in (("wide.pt", 25, "the loss is infinite, step after step, whatever it is multiplied by"), ("nan.pt", 1, "'x' of the data is not finite in this batch")):
            failed, _ = self.server.watch(job(file, epochs=50).id)
            self.assertEqual(failed.state, FAILED)
            self.assertIn(text, failed.message)
            self.assertIn(f"step {step},", failed.message)

    def test_what_a_second_run_would_change(self):
        for pattern, text in (("count", "count: its activations cannot be computed again: the code sets the attribute 'count'"),
                              ("remember", "remember: its activations cannot be computed again: the code may change the attribute 'seen'")):
            with self.subTest(text), self.assertRaises(grpc.RpcError) as caught:
                self.server.create(**{**self.fields(activation_checkpointing=[pattern]), "model": training.ModelSource(name="lasting"),
                                      "publish": training.PublishPolicy(when="at_end", model="lasting")})
            self.assertIn(text, caught.exception.details())

    def test_what_is_refused(self):
        two = training.Distribution(world_size=2)
        for fields, text in (({"precision": "bf16"}, "precision: 'bf16' is not one of 32, bf16-mixed, 16-mixed"),
                             ({"precision": "16-mixed", "distribution": training.Distribution(world_size=2, compression="powersgd")}, "loss_scale: not with powersgd (16-mixed has one)"),
                             ({"precision": "16-mixed", "optimizer": training.Optimizer(name="lbfgs")}, "loss_scale: not with lbfgs"),
                             ({"activation_checkpointing": ["layers.*"]}, "no module of the model with a forward matches 'layers.*'"),
                             ({"activation_checkpointing": [""]}, "activation_checkpointing: a pattern is empty"),
                             ({"activation_checkpointing": ["auto"], "distribution": training.Distribution(world_size=2, sync_batch_norm=True)},
                              "activation_checkpointing: not with distribution.sync_batch_norm")):
            with self.subTest(text), self.assertRaises(grpc.RpcError) as caught:
                self.server.create(**self.fields(**fields))
            self.assertIn(text, caught.exception.details())


if __name__ == "__main__":
    unittest.main()
