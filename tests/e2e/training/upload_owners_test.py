"""Uploads with access tokens: they belong to the token that sent them."""

import os
import tempfile
import unittest

import grpc
import numpy as np
import torch

from tests.e2e.daemon import RpcAssertions, training
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon, spec

CODE = grpc.StatusCode
ONE, OTHER, ADMIN, USER = "token-of-one", "token-of-another", "token-of-the-operator", "token-of-a-user"


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


class UploadOwnersTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        tokens = os.path.join(cls.folder.name, "tokens")
        with open(tokens, "w") as file:
            file.write(f"training {ONE}\ntraining {OTHER}\nall {ADMIN}\ninference,metadata {USER}\n")
        cls.server = TrainingDaemon("--access-tokens", tokens, "--training-max-upload", str(1 << 20))
        models.save(models.Mlp(), cls.server.models, "mlp")
        x, y = models.clusters(50, 64, 10, seed=1)
        path = os.path.join(cls.folder.name, "mine.npz")
        np.savez(path, x=x.numpy(), y=y.numpy())
        with open(path, "rb") as file:
            cls.data = file.read()
        with open(os.path.join(cls.server.models, "mlp", "1", "model.pt"), "rb") as file:
            cls.archive = file.read()
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def upload(self, token, data=None, name="mine.npz"):
        messages = [training.UploadDataRequest(data=self.data if data is None else data, file_name=name)]
        return self.server.stub.UploadData(iter(messages), timeout=60, metadata=bearer(token)).file

    def upload_model(self, token):
        messages = [training.UploadModelRequest(data=self.archive)]
        return self.server.stub.UploadModel(iter(messages), timeout=60, metadata=bearer(token)).upload_id

    def create(self, token, **fields):
        request = training.CreateJobRequest(spec=spec(**{**dict(epochs=1, batch_size=25), **fields}))
        return self.server.stub.CreateJob(request, timeout=60, metadata=bearer(token))

    def finished(self, token, job):
        for change in self.server.stub.WatchJob(training.WatchJobRequest(id=job.id), timeout=120, metadata=bearer(token)):
            job = change.job
        self.assertEqual(job.state, COMPLETED, job.message)

    def test_jobs_of_other_tokens_have_no_such_upload(self):
        data, model = self.upload(ONE), self.upload_model(ONE)
        for token in (OTHER, ADMIN):
            for fields, text in ((dict(data=data), "data.file: there is no upload"),
                                 (dict(data=self.upload(token), evaluation=training.Evaluation(file=data)), "evaluation.file: there is no upload"),
                                 (dict(data=self.upload(token), model=training.ModelSource(upload_id=model, name="new")), "model.upload_id: there is no upload")):
                with self.subTest(token=token, text=text):
                    self.assert_code(CODE.NOT_FOUND, text, self.create, token, **fields)
        self.assert_code(CODE.PERMISSION_DENIED, "the token is not for calls of 'training'", self.upload, USER)
        self.assert_code(CODE.PERMISSION_DENIED, "the token is not for calls of 'training'", self.create, USER, data=data)
        self.finished(ONE, self.create(ONE, data=data, evaluation=training.Evaluation(file=data), model=training.ModelSource(upload_id=model, name="new")))

    def test_names_lead_to_no_other_folder(self):
        data = self.upload(ONE)
        owners = os.listdir(os.path.join(self.server.jobs, "uploads"))
        for owner in owners:
            for name in (f"@{owner}/{data[1:]}", f"@upload-../{owner}/{data[1:]}", f"@{owner}"):
                with self.subTest(name), self.assertRaises(grpc.RpcError) as caught:
                    self.create(OTHER, data=name)
                self.assertIn(caught.exception.code(), (CODE.INVALID_ARGUMENT, CODE.NOT_FOUND))
            for upload_id in (owner, f"{owner}/{data[1:]}", ".."):
                with self.subTest(upload_id), self.assertRaises(grpc.RpcError) as caught:
                    self.create(OTHER, data=self.upload(OTHER), model=training.ModelSource(upload_id=upload_id, name="new"))
                self.assertIn(caught.exception.code(), (CODE.INVALID_ARGUMENT, CODE.NOT_FOUND))
        self.assertFalse(any(secret in owner for owner in owners for secret in (ONE, OTHER, ADMIN)))

    def test_many_uploads_of_one_token_remove_none_of_another(self):
        data = self.upload(ONE)
        for _ in range(40):
            self.upload(OTHER, b"bytes")
        self.finished(ONE, self.create(ONE, data=data))

    def test_uploads_keep_their_owner_over_a_restart(self):
        data = self.upload(ONE)
        self.server.restart()
        self.assert_code(CODE.NOT_FOUND, "data.file: there is no upload", self.create, OTHER, data=data)
        self.finished(ONE, self.create(ONE, data=data))


if __name__ == "__main__":
    torch.manual_seed(0)
    unittest.main()
