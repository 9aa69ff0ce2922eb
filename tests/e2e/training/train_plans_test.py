"""Jobs with planned steps, compared with the same jobs interpreted: a net with batch norm, dropout and a smaller last
batch."""

import re
import unittest

import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon

ROWS, EPOCHS = 530, 12


class TrainPlansTest(unittest.TestCase):
    def train(self, plans, **fields):
        """The weights of the published version, and the number of planned steps."""
        server = TrainingDaemon("--training-plans", plans)
        self.addCleanup(server.close)
        torch.manual_seed(3)
        models.save(models.BatchNormNet(), server.models, "net")
        x, y = models.clusters(ROWS, 16, 4, seed=5)
        server.save_data("data.pt", x=x, y=y)
        server.start()
        job = server.run(model="net", data="data.pt", epochs=EPOCHS, optimizer=training.Optimizer(name="adam", lr=0.01),
                         publish=training.PublishPolicy(when="at_end"), **fields)
        self.assertEqual(job.state, COMPLETED, job.message)
        planned = re.search(r"^tensord_training_planned_steps_total.* (\d+)", server.daemon.metrics(), re.M)
        return server.weights("net", job.published_version), int(planned[1])

    def test_planned_steps_are_the_interpreted_ones(self):
        self.check_planned_steps()

    def test_planned_steps_contain_the_casts_of_mixed_precision(self):
        self.check_planned_steps(precision="bf16-mixed")

    def check_planned_steps(self, **fields):
        expected, planned = self.train("off", **fields)
        self.assertEqual(planned, 0)
        exact, planned = self.train("exact", **fields)
        self.assertGreater(planned, EPOCHS * ROWS // 50 // 2)
        for key, weight in expected.items():
            self.assertTrue(torch.equal(exact[key], weight), key)
        fused, planned = self.train("fused", **fields)
        self.assertGreater(planned, EPOCHS * ROWS // 50 // 2)
        for key, weight in expected.items():
            torch.testing.assert_close(fused[key], weight, rtol=1e-3, atol=1e-3, msg=key)


if __name__ == "__main__":
    unittest.main()
