"""The C++ client library with real daemons: starts them, and runs tests/client with their addresses."""

import os
import subprocess
import tempfile
import unittest

import numpy as np

from tests.e2e.authority import Authority
from tests.e2e.training import training_models
from tests.e2e.daemon_process import ROOT, DaemonProcess

CHECKS = os.environ["TENSORD_CLIENT_CHECKS"]
MODELS = [os.path.join(ROOT, "examples", "triton", name) for name in ("model_repository", "more_models")]


class CppClientTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for name in ("models", "data", "jobs"):
            os.mkdir(self.path(name))
        training_models.save(training_models.Mlp(), self.path("models"), "mlp")
        x, y = training_models.clusters(400, 64, 10, seed=1)
        np.savez(self.path("data/clusters.npz"), x=x.numpy(), y=y.numpy())

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def test_all_checks(self):
        authority = Authority(self.folder.name, "authority")
        cert, key = authority.sign("server")
        tokens = self.write("tokens", b"all sesame\nmetadata only-metadata\n")
        secured = ["--grpc-use-ssl", "true", "--grpc-server-cert", self.write("cert.pem", cert), "--grpc-server-key",
                   self.write("key.pem", key), "--access-tokens", tokens]
        training = ["--training-dir", self.path("jobs"), "--training-data", self.path("data"), "--training-nice", "0"]
        with DaemonProcess(MODELS + [self.path("models")], "--model-control-mode", "explicit", "--load-model", "*",
                           "--allow-client-shm", "true", *training) as daemon, \
                DaemonProcess(MODELS[0], *secured) as tls:
            # Freed memory must not keep working by luck.
            checks = subprocess.run([CHECKS, "--gtest_brief=1"], text=True, capture_output=True, timeout=240, env={
                **os.environ, "TENSORD_ADDRESS": daemon.ready["grpc"], "TENSORD_TLS_ADDRESS": tls.ready["grpc"],
                "TENSORD_ROOT": authority.cert, "MALLOC_PERTURB_": "170", "TENSORD_ARCHIVE": self.path("models/mlp/1/model.pt")})
            print(checks.stdout[-10000:], checks.stderr[-3000:])
            self.assertEqual(checks.returncode, 0)
            self.assertIn("PASSED", checks.stdout)
            self.assertEqual(daemon.stop(), 0)
            self.assertEqual(tls.stop(), 0)


if __name__ == "__main__":
    unittest.main()
