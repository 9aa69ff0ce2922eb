"""Jobs on models with sparse gradients: the steps of the same model with dense ones, or a refusal by name."""

import unittest

import torch
from torch import Tensor, nn

from tests.e2e import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training_daemon import COMPLETED, FAILED, TrainingDaemon

CLASSES = 3


class Words(nn.Module):
    """A table of words, and a table of scores; with `layer` something dense after them."""

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
        cls.server.save_data("words.pt", x=x, y=x[:, 0] % CLASSES)
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
        for name, text in (("adamw", "AdamW does not support sparse gradients"),
                           ("adam", "Adam does not support sparse gradients, please consider SparseAdam instead"),
                           ("sparseadam", "SparseAdam does not support dense gradients, please consider Adam instead")):
            job = self.run_job("sparse", optimizer=training.Optimizer(name=name))
            self.assertEqual(job.state, FAILED)
            self.assertIn(text, job.message)
        job = self.run_job("sparse", optimizer=training.Optimizer(name="sgd"), distribution=training.Distribution(world_size=2))
        self.assertEqual(job.state, FAILED)
        self.assertIn("DistributedDataParallel does not take a sparse gradient", job.message)


if __name__ == "__main__":
    unittest.main()
