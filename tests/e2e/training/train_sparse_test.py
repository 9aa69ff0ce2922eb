"""Jobs on models with sparse gradients: the same steps as with dense ones, or a clear refusal."""

import unittest

import torch
from torch import Tensor, nn

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.training_daemon import COMPLETED, FAILED, TrainingDaemon

CLASSES = 3


class Words(nn.Module):
    """A table of words, and a table of scores; with `layer` also a dense layer after them."""

    def __init__(self, sparse: bool, layer: bool = True):
        super().__init__()
        self.words = nn.EmbeddingBag(20, 8, sparse=sparse, mode="mean")
        self.scores = nn.Embedding(20, CLASSES, sparse=sparse, padding_idx=0)
        self.layer = nn.Linear(8, CLASSES) if layer else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        found = self.layer(self.words(x))
        return found[:, :3] + self.scores(x).sum(1)


class TrainSparseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon()
        first = Words(sparse=True)
        dense = Words(sparse=False)
        dense.load_state_dict(first.state_dict())
        models.save(first, cls.server.models, "sparse")
        models.save(dense, cls.server.models, "dense")
        models.save(Words(sparse=True, layer=False), cls.server.models, "tables")
        x = torch.randint(0, 20, (200, 5))
        cls.words = dict(x=x, y=x[:, 0] % CLASSES)
        cls.server.save_data("words.pt", **cls.words)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def run_job(self, model, **fields):
        return self.server.run(model=model, data="words.pt", epochs=2, publish=training.PublishPolicy(when="at_end"), **fields)

    def test_the_steps_are_those_of_dense_gradients(self):
        for fields in (dict(optimizer=training.Optimizer(name="sgd", lr=0.1)),
                       dict(optimizer=training.Optimizer(name="sgd", lr=0.1), clipping=training.Clipping(norm=0.05)),
                       dict(optimizer=training.Optimizer(name="adagrad", lr=0.1))):
            with self.subTest(str(fields)):
                weights = []
                for name in ("sparse", "dense"):
                    job = self.run_job(training.ModelSource(name=name, version=1), **fields)
                    self.assertEqual(job.state, COMPLETED, job.message)
                    weights.append(self.server.weights(name, job.published_version))
                for name, tensor in weights[0].items():
                    self.assertLess((tensor - weights[1][name]).abs().max().item(), 1e-5, name)

    def test_sparseadam_trains_tables(self):
        before = self.server.weights("tables", 1)
        job = self.run_job("tables", optimizer=training.Optimizer(name="sparseadam", lr=0.05))
        self.assertEqual(job.state, COMPLETED, job.message)
        after = self.server.weights("tables", job.published_version)
        self.assertFalse(torch.equal(before["words.weight"], after["words.weight"]))
        self.assertTrue(torch.equal(before["scores.weight"][0], after["scores.weight"][0]))

    def test_others_are_refused_by_name(self):
        for name, message in (("adamw", "AdamW does not support sparse gradients"),
                           ("adam", "Adam does not support sparse gradients, please consider SparseAdam instead"),
                           ("sparseadam", "SparseAdam does not support dense gradients, please consider Adam instead")):
            job = self.run_job("sparse", optimizer=training.Optimizer(name=name))
            self.assertEqual(job.state, FAILED)
            self.assertIn(message, job.message)

    def test_several_ranks_take_the_steps_of_one(self):
        """The last batch of an epoch has one row, on one rank."""
        self.server.save_data("odd.pt", **{name: self.words[name][:151] for name in "xy"})
        for model, options, fields in (
                ("sparse", {}, dict(optimizer=training.Optimizer(name="sgd", lr=0.1, momentum=0.9))),
                ("sparse", {}, dict(optimizer=training.Optimizer(name="adagrad", lr=0.1), clipping=training.Clipping(norm=0.05))),
                ("sparse", dict(zero=1), dict(optimizer=training.Optimizer(name="adagrad", lr=0.1))),
                ("tables", {}, dict(optimizer=training.Optimizer(name="sparseadam", lr=0.05)))):
            runs = {}
            for world_size in (1, 2, 3):
                distribution = training.Distribution(world_size=world_size, **options)
                job = self.server.create(model=training.ModelSource(name=model, version=1), data="odd.pt", epochs=4,
                                         distribution=distribution, publish=training.PublishPolicy(when="at_end"),
                                         **{"batch_size": 50, **fields})
                job, points = self.server.watch(job.id)
                self.assertEqual(job.state, COMPLETED, job.message)
                runs[world_size] = {point.step: point.loss for point in points}, self.server.weights(model, job.published_version)
            for world_size in (2, 3):
                with self.subTest(model=model, world_size=world_size, **{key: str(value) for key, value in fields.items()}):
                    self.assertEqual(runs[world_size][0].keys(), runs[1][0].keys())
                    for step, loss in runs[1][0].items():
                        self.assertAlmostEqual(runs[world_size][0][step], loss, delta=1e-4, msg=f"step {step}")
                    for name, tensor in runs[1][1].items():
                        self.assertLess((tensor - runs[world_size][1][name]).abs().max().item(), 1e-4, name)

    def test_powersgd_compresses_what_is_dense(self):
        def losses(**options):
            job = self.server.create(model=training.ModelSource(name="sparse", version=1), data="words.pt", epochs=5, batch_size=20,
                                     optimizer=training.Optimizer(name="sgd", lr=0.1),
                                     distribution=training.Distribution(world_size=2, **options))
            job, points = self.server.watch(job.id)
            self.assertEqual(job.state, COMPLETED, job.message)
            return {point.step: point.loss for point in points}

        plain, narrow = losses(), losses(compression="powersgd", compression_rank=1, compression_start_step=10)
        self.assertTrue(all(plain[step] == narrow[step] for step in range(1, 11)))
        self.assertNotEqual(plain[max(plain)], narrow[max(plain)])


if __name__ == "__main__":
    unittest.main()
