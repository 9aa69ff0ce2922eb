"""The 8x8 handwritten digits of scikit-learn: trained through the service from a random archive, then served."""

import time
import unittest

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tests.e2e.daemon import request, training
from tests.e2e.training_daemon import COMPLETED, TrainingDaemon
from tests.e2e.training_models import save

TEST_ROWS = 360
WANTED_ACCURACY = 0.97


class DigitsNet(nn.Module):
    """Two convolutions, batch norms and dropout on 8x8 images of 0 to 16."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 16, 10))

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.features(images / 16.0))


class DigitsTest(unittest.TestCase):
    def test_over_97_percent_in_under_a_minute(self):
        digits = load_digits()
        images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)
        labels = torch.tensor(digits.target)
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        test, train = order[:TEST_ROWS], order[TEST_ROWS:]
        server = TrainingDaemon()
        try:
            torch.manual_seed(0)
            save(DigitsNet(), server.models, "digits")
            server.save_data("train.pt", images=images[train], labels=labels[train])
            server.save_data("test.pt", images=images[test], labels=labels[test])
            server.start()
            start = time.monotonic()
            job = server.run(
                model="digits", data="train.pt", label="labels", epochs=15, batch_size=64,
                optimizer=training.Optimizer(name="adamw", lr=3e-3), schedule=training.Schedule(name="one_cycle"),
                evaluation=training.Evaluation(file="test.pt", metrics=["accuracy", "loss"]),
                publish=training.PublishPolicy(when="at_end", metric="accuracy", bar=WANTED_ACCURACY))
            seconds = time.monotonic() - start
            self.assertEqual((job.state, job.message), (COMPLETED, ""))
            print(f"accuracy {job.progress.metrics['accuracy']:.4f} after {seconds:.1f} s")
            self.assertEqual(job.published_version, 2)
            self.assertLess(seconds, 60)
            response = server.daemon.stub.ModelInfer(request(
                "digits", [("images", "FP32", [TEST_ROWS, 1, 8, 8], images[test].contiguous().numpy().tobytes())]))
            self.assertEqual(response.model_version, "2")
            scores = torch.frombuffer(bytearray(response.raw_output_contents[0]), dtype=torch.float32).view(-1, 10)
            accuracy = (scores.argmax(1) == labels[test]).float().mean().item()
            self.assertAlmostEqual(accuracy, job.progress.metrics["accuracy"], places=6)
            self.assertGreater(accuracy, WANTED_ACCURACY)
            theirs = torch.jit.load(server.model_file("digits", 2))
            self.assertTrue(torch.allclose(theirs(images[test]), scores, atol=1e-4))
        finally:
            server.close()


if __name__ == "__main__":
    unittest.main()
