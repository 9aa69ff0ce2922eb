"""Names of inputs and outputs do not change by training and publishing, nor in ensembles of published models."""

import unittest

import torch

from tests.e2e import interfaces_test
from tests.e2e.daemon import pb, training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon

# Weights stay constant, so that values identify outputs.
SGD = training.Optimizer(name="sgd", lr=1e-30)


class TrainedInterfacesTest(interfaces_test.InterfacesTest):
    @classmethod
    def setUpClass(cls):
        cls.server = TrainingDaemon("--allow-http", "true", "--http-port", "0")
        cls.interfaces = interfaces_test.make_models(cls.server.models)
        cls.daemon = cls.server.start().daemon
        cls.host, cls.port = cls.daemon.ready["http"].rsplit(":", 1)
        for model, (inputs, outputs) in cls.interfaces.items():
            arrays = {name: torch.randn(6) for name in inputs}
            cls.server.save_data(f"{model}.pt", target=torch.randn(6), **arrays)
            job = cls.server.run(model=training.ModelSource(name=model, version=1), data=f"{model}.pt", optimizer=SGD, batch_size=3, epochs=1,
                                 loss=training.Loss(output=next(iter(outputs)), builtin="mse", label="target"),
                                 publish=training.PublishPolicy(when="at_end"))
            if (job.state, job.message, job.published_version) != (COMPLETED, "", 2):
                raise AssertionError(f"{model}: {job}")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def test_the_published_versions_answer(self):
        for model in self.interfaces:
            self.assertIn("2", self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name=model)).versions)


if __name__ == "__main__":
    unittest.main()
