"""scikit-learn's 8x8 handwritten digits: trained through the service from a random archive, then served."""

import os
import time
import unittest

import numpy as np
import torch

from examples import digits
from tests.e2e.daemon import request, training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon

WANTED_ACCURACY = 0.97


class DigitsTest(unittest.TestCase):
    def test_over_97_percent_in_under_a_minute(self):
        server = TrainingDaemon()
        try:
            digits.write(server.models, server.data)
            server.start()
            start = time.monotonic()
            job = server.run(
                model="digits", data="digits-train.npz", label="labels", epochs=15, batch_size=64,
                optimizer=training.Optimizer(name="adamw", lr=3e-3), schedule=training.Schedule(name="one_cycle"),
                evaluation=training.Evaluation(file="digits-test.npz", metrics=["accuracy", "loss"]),
                publish=training.PublishPolicy(when="at_end", metric="accuracy", bar=WANTED_ACCURACY))
            seconds = time.monotonic() - start
            self.assertEqual((job.state, job.message), (COMPLETED, ""))
            print(f"accuracy {job.progress.metrics['accuracy']:.4f} after {seconds:.1f} s")
            self.assertEqual(job.published_version, 2)
            self.check_what_is_served(server, job)
        finally:
            server.close()

    def check_what_is_served(self, server, job):
        with np.load(os.path.join(server.data, "digits-test.npz")) as test:
            images, labels = test["images"], torch.tensor(test["labels"])
        response = server.daemon.stub.ModelInfer(
            request("digits", [("images", "FP32", images.shape, images.tobytes())]))
        self.assertEqual(response.model_version, "2")
        scores = torch.frombuffer(bytearray(response.raw_output_contents[0]), dtype=torch.float32).view(-1, 10)
        accuracy = (scores.argmax(1) == labels).float().mean().item()
        self.assertAlmostEqual(accuracy, job.progress.metrics["accuracy"], places=6)
        self.assertGreater(accuracy, WANTED_ACCURACY)
        theirs = torch.jit.load(server.model_file("digits", 2))
        self.assertTrue(torch.allclose(theirs(torch.from_numpy(images)), scores, atol=1e-4))


if __name__ == "__main__":
    unittest.main()
