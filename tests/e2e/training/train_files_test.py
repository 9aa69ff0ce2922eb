"""Files between clients and jobs: data that clients upload, and models that they bring home."""

import fcntl
import hashlib
import os
import subprocess
import tempfile
import threading
import time
import unittest

import grpc
import numpy as np
import torch

from tests.e2e.daemon import BINARY, RpcAssertions, training
from tests.e2e.processes import wait_until
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import COMPLETED, PAUSED, JobAssertions, TrainingDaemon

CODE = grpc.StatusCode
SGD = training.Optimizer(name="sgd", lr=0.05)
AT_END = training.PublishPolicy(when="at_end")
MLP = training.ModelSource(name="mlp", version=1)
LIMIT = 1 << 20
ONNX_BEGIN = b"\x08\x08\x12\x07pytorch:"  # a file that looks like a model until it is read


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class TrainFilesTest(JobAssertions, RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--training-max-upload", str(LIMIT))
        cls.folder = tempfile.TemporaryDirectory()
        models.save(models.Mlp(), cls.server.models, "mlp")
        # Larger than what a connection holds of a message that nobody reads.
        wide = torch.nn.Sequential(torch.nn.Linear(64, 160_000), torch.nn.Linear(160_000, 10))
        models.save(wide, cls.server.models, "wide")
        cls.x, cls.y = models.clusters(400, 64, 10, seed=1, spread=8.0)
        cls.server.save_data("clusters.pt", x=cls.x, y=cls.y)
        cls.local = os.path.join(cls.folder.name, "mine.npz")
        np.savez(cls.local, x=cls.x.numpy(), y=cls.y.numpy())
        with open(cls.local, "rb") as file:
            cls.data = file.read()
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.folder.cleanup()

    def upload(self, data, name="mine.npz", size=None, piece=100_000):
        messages = [training.UploadDataRequest(data=data[at:at + piece], file_name=name if at == 0 else "",
                                               size_bytes=(len(data) if size is None else size) if at == 0 else 0)
                    for at in range(0, max(len(data), 1), piece)]
        return self.server.stub.UploadData(iter(messages), timeout=300)

    def uploads(self):
        return os.listdir(os.path.join(self.server.jobs, "uploads"))

    def download(self, job_id):
        """The files, each checked against what the server says of it."""
        files, name, size, step = {}, None, {}, None
        for message in self.server.stub.DownloadModel(training.DownloadModelRequest(id=job_id), timeout=300):
            if message.file_name:
                name, size[message.file_name] = message.file_name, message.size_bytes
                files[name] = b""
                step = step or message.step
            files[name] += message.data
            if message.sha256:
                self.assertEqual(message.sha256, sha256(files[name]))
        self.assertEqual({name: len(data) for name, data in files.items()}, size)
        wait_until(lambda: not os.listdir(os.path.join(self.server.jobs, "downloads")))
        return files, step

    def loaded(self, data):
        path = os.path.join(self.folder.name, "downloaded.pt")
        with open(path, "wb") as file:
            file.write(data)
        return torch.jit.load(path)

    def command(self, *arguments, code=0):
        done = subprocess.run([BINARY, *arguments, "--address", self.server.daemon.ready["grpc"]], capture_output=True, text=True, timeout=300,
                              cwd=self.folder.name)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_uploaded_data_trains_as_a_file_of_the_server_does(self):
        uploaded = self.upload(self.data)
        self.assertEqual((uploaded.size_bytes, uploaded.sha256), (len(self.data), sha256(self.data)))
        fields = dict(model=MLP, optimizer=SGD, epochs=2, publish=AT_END, evaluation=training.Evaluation(fraction=0.25))
        jobs = [self.server.create(data=file, **fields) for file in (uploaded.file, "clusters.pt")]
        one, other = (self.finished(job, "mlp") for job in jobs)
        self.assert_same(one, other)
        self.assertEqual(one[0].spec.data.file, uploaded.file)

        # The job has its own copy, which goes with it.
        kept = os.path.join(self.server.jobs, "jobs", jobs[0].id, "data", uploaded.file)
        with open(kept, "rb") as file:
            self.assertEqual(file.read(), self.data)
        os.remove(os.path.join(self.server.jobs, "uploads", uploaded.file[1:]))
        self.assert_code(CODE.NOT_FOUND, "data.file: there is no upload", self.server.create, data=uploaded.file, epochs=1)
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=jobs[0].id), timeout=60)
        self.assertFalse(os.path.exists(kept))

    def test_uploaded_evaluation_data_and_several_processes(self):
        csv = "".join(",".join(f"{v!r}" for v in [*row, int(label)]) + "\n" for row, label in zip(self.x[:40].tolist(), self.y[:40]))
        head = ",".join([*(f"c{i}" for i in range(64)), "y"]) + "\n"
        rows = self.upload((head + csv).encode(), "Rows of mine.CSV")
        self.assertTrue(rows.file.endswith(".csv"))
        data = training.Data(file=rows.file, inputs={"x": ",".join(f"c{i}" for i in range(64))})
        for size in (0, 2):
            job = self.server.run(model=MLP, data=data, optimizer=SGD, epochs=1, batch_size=20, evaluation=training.Evaluation(file=rows.file),
                                  distribution=training.Distribution(world_size=size))
            self.assertEqual(job.state, COMPLETED, job.message)
            self.assertIn("loss", job.progress.metrics)
        self.assert_code(CODE.INVALID_ARGUMENT, "evaluation.file: must be uploaded if data.file is", self.server.create, data=rows.file, epochs=1,
                         evaluation=training.Evaluation(file="clusters.pt"))
        self.assert_code(CODE.INVALID_ARGUMENT, "data.file: ", self.server.create, model=MLP, data=rows.file, epochs=1)  # has no x

    def test_uploads_that_are_refused_leave_nothing(self):
        before = set(self.uploads())
        for code, text, call in (
                (CODE.INVALID_ARGUMENT, "file_name: 'mine.exe' is of no kind", lambda: self.upload(self.data, "mine.exe")),
                (CODE.INVALID_ARGUMENT, "file_name: 'npz' is of no kind", lambda: self.upload(self.data, "npz")),
                (CODE.INVALID_ARGUMENT, "file_name: needed", lambda: self.upload(self.data, "")),
                (CODE.INVALID_ARGUMENT, "that were announced", lambda: self.upload(self.data, size=5)),
                (CODE.INVALID_ARGUMENT, "that were announced", lambda: self.upload(self.data, size=len(self.data) + 1)),
                (CODE.INVALID_ARGUMENT, "the upload is empty", lambda: self.server.stub.UploadData(iter([]), timeout=60)),
                (CODE.RESOURCE_EXHAUSTED, "at most 1048576 bytes", lambda: self.upload(b"", size=LIMIT + 1)),
                (CODE.RESOURCE_EXHAUSTED, "at most 1048576 bytes", lambda: self.upload(bytes(LIMIT + 1), size=0))):
            with self.subTest(text):
                self.assert_code(code, text, call)
        self.assertLessEqual(set(self.uploads()), before)  # one may have made room
        for file in ("@upload-none.npz", "@../../data/clusters.pt", "@upload-../../x", "@", "@upload-" + "1" * 300):
            with self.subTest(file), self.assertRaises(grpc.RpcError) as caught:
                self.server.create(data=file, epochs=1)
            self.assertIn(caught.exception.code(), (CODE.NOT_FOUND, CODE.INVALID_ARGUMENT))

    def test_the_quota_of_uploads(self):
        """Four of the largest size; the oldest makes room."""
        names = [self.upload(bytes([i]) * LIMIT).file for i in range(6)]
        kept = set(self.uploads())
        self.assertIn(names[-1][1:], kept)
        self.assertNotIn(names[0][1:], kept)
        self.assertLessEqual(sum(os.path.getsize(os.path.join(self.server.jobs, "uploads", name)) for name in kept), 4 * LIMIT)

    def test_an_upload_that_made_room_fails(self):
        """A slow upload is the oldest one when many come after it."""
        others_are_done = threading.Event()

        def slow():
            yield training.UploadDataRequest(data=b"x,y\n", file_name="slow.csv")
            others_are_done.wait(60)

        call = self.server.stub.UploadData.future(slow(), timeout=60)
        while not any(name.endswith(".csv") for name in self.uploads()):
            time.sleep(0.01)
        for _ in range(33):
            self.upload(b"bytes")
        others_are_done.set()
        self.assert_code(CODE.RESOURCE_EXHAUSTED, "removed to make room", call.result)

    def test_a_published_model_comes_home(self):
        job = self.server.run(model=MLP, optimizer=SGD, epochs=1, publish=AT_END)
        files, step = self.download(job.id)
        self.assertEqual((sorted(files), step), (["job.json", "model.pt"], 8))
        with open(self.server.model_file("mlp", job.published_version), "rb") as file:
            self.assertEqual(files["model.pt"], file.read())

    def test_weights_that_were_not_published(self):
        evaluation = training.Evaluation(fraction=0.25, metrics=["accuracy"])
        best = training.PublishPolicy(when="best", metric="accuracy", bar=2.0, model="mlp")
        last = self.server.run(model=MLP, optimizer=SGD, epochs=2)
        unpublished = self.server.run(model=MLP, optimizer=SGD, epochs=3, evaluation=evaluation, publish=best)
        published = self.server.run(model=MLP, optimizer=SGD, epochs=2, publish=AT_END)
        self.assertEqual((last.published_version, unpublished.published_version), (0, 0))
        files, step = self.download(last.id)
        self.assertEqual((list(files), step), (["model.pt"], 16))
        module = self.loaded(files["model.pt"])
        self.assertFalse(module.training)
        for name, weight in self.server.weights("mlp", published.published_version).items():
            self.assertTrue(torch.equal(weight, module.state_dict()[name]), name)
        files, step = self.download(unpublished.id)
        self.assertEqual(step, unpublished.progress.best_step)
        rows = self.loaded(files["model.pt"])(self.x)
        self.assertGreater((rows.argmax(1) == self.y).float().mean().item(), 0.5)

        self.assert_code(CODE.NOT_FOUND, "there is no training job", lambda: self.download("none"))
        streamed = self.server.create(model=MLP, data=training.Data(streamed=True), steps=3)
        self.assert_code(CODE.FAILED_PRECONDITION, "has no checkpoint yet", lambda: self.download(streamed.id))
        self.server.stub.CancelJob(training.CancelJobRequest(id=streamed.id), timeout=60)
        averaged = self.server.run(model=MLP, optimizer=SGD, epochs=1, ema_decay=0.9)
        self.assert_code(CODE.FAILED_PRECONDITION, "ema_decay", lambda: self.download(averaged.id))

    def test_downloads_while_the_job_replaces_its_files(self):
        """Which goes on until it is cancelled, however fast it is."""
        wide = training.ModelSource(name="wide", version=1)
        data = training.Data(file="clusters.pt", inputs={"input": "x"})
        checkpoints = training.CheckpointPolicy(every_steps=1, keep=1)
        last = self.server.create(model=wide, data=data, optimizer=SGD, steps=10**7, batch_size=8, checkpoints=checkpoints)
        evaluation = training.Evaluation(fraction=0.02, metrics=["loss"], every_steps=1)
        best = training.PublishPolicy(when="best", metric="loss", model="wide")
        for job in (last, None):
            job = job or self.server.create(model=wide, data=data, optimizer=training.Optimizer(name="sgd", lr=1e-4), steps=10**7, batch_size=8,
                                            checkpoints=checkpoints, evaluation=evaluation, publish=best)
            self.server.wait_until(job.id, lambda it: it.progress.step > 1 and it.progress.checkpoint_step > 0)
            steps = []
            for _ in range(6):
                files, step = self.download(job.id)
                self.assertFalse(self.loaded(files["model.pt"]).training)
                steps.append(step)
            self.assertEqual(self.server.get(job.id).state, training.JobState.JOB_STATE_RUNNING)
            self.assertEqual(steps, sorted(steps))
            self.server.stub.CancelJob(training.CancelJobRequest(id=job.id), timeout=60)
            self.server.watch(job.id)

    def test_errors_name_no_folder_of_the_server(self):
        table = self.upload(b"no zip", name="rows.npz").file
        archive = self.server.stub.UploadModel(iter([training.UploadModelRequest(data=ONNX_BEGIN)]), timeout=300).upload_id
        for code, text, call in ((CODE.DATA_LOSS, f"data.file: {table[1:]}: ", lambda: self.server.create(model=MLP, data=table, steps=1)),
                                 (CODE.NOT_FOUND, "data.file: 'none.csv' is not in the data folder", lambda: self.server.create(model=MLP, data="none.csv", steps=1)),
                                 (CODE.DATA_LOSS, "upload-", lambda: self.server.stub.UploadModel(iter([training.UploadModelRequest(data=b"no model")]), timeout=300)),
                                 (CODE.DATA_LOSS, "upload-", lambda: self.server.create(model=training.ModelSource(upload_id=archive, name="new"), steps=1))):
            with self.subTest(text), self.assertRaises(grpc.RpcError) as caught:
                call()
            self.assertEqual(caught.exception.code(), code, caught.exception.details())
            self.assertIn(text, caught.exception.details())
            self.assertNotIn(self.server.folder.name, caught.exception.details())

    def test_a_client_that_leaves(self):
        job = self.server.run(model=MLP, optimizer=SGD, epochs=1)
        call = self.server.stub.DownloadModel(training.DownloadModelRequest(id=job.id), timeout=60)
        next(iter(call))
        call.cancel()
        deadline = time.monotonic() + 60
        while os.listdir(os.path.join(self.server.jobs, "downloads")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.download(job.id)

    def test_many_clients_that_do_not_read(self):
        job = self.server.run(model=training.ModelSource(name="wide", version=1), optimizer=SGD, steps=1, batch_size=8,
                              data=training.Data(file="clusters.pt", inputs={"input": "x"}))
        request = training.DownloadModelRequest(id=job.id)
        calls = [self.server.stub.DownloadModel(request, timeout=120) for _ in range(4)]
        for call in calls:
            next(iter(call))
        self.assert_code(CODE.RESOURCE_EXHAUSTED, "there are 4 downloads of models already", lambda: next(iter(self.server.stub.DownloadModel(request, timeout=60))))
        for call in calls:
            call.cancel()
        deadline = time.monotonic() + 60
        while os.listdir(os.path.join(self.server.jobs, "downloads")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertGreater(len(self.download(job.id)[0]["model.pt"]), 40_000_000)

    def test_the_commands(self):
        out = self.command("train", "mlp", "--upload-data", self.local, "--upload-eval-data", self.local, "--label", "y", "--loss", "cross_entropy",
                           "--epochs", "1", "--name", "from-here", "--batch-size", "50")
        self.assertIn("job from-here-", out)
        self.assertIn("job from-here-", self.command("train", "mlp", "--upload-data", self.local, "--upload-eval-data", self.local, "--label", "y",
                                                     "--loss", "cross_entropy", "--epochs", "1", "--name", "from-here", "--batch-size", "50", "--attach"))
        self.assertIn("model.pt", self.command("jobs", "download", "from-here"))
        self.assertEqual(os.listdir(os.path.join(self.folder.name, "from-here")), ["model.pt"])
        torch.jit.load(os.path.join(self.folder.name, "from-here", "model.pt"))
        self.assertIn("is there already", self.command("jobs", "download", "from-here", code=1))
        self.command("jobs", "download", "none", "-o", "nowhere", code=1)
        self.assertFalse(any("nowhere" in name for name in os.listdir(self.folder.name)))
        self.assertIn("mine.none", self.command("train", "mlp", "--upload-data", "mine.none", "--label", "y", "--loss", "mse", "--epochs", "1", code=1))

    def test_one_download_to_a_folder_at_a_time(self):
        job = self.server.run(model=MLP, optimizer=SGD, epochs=1)
        folder = os.path.join(self.folder.name, ".twice.download")
        os.mkdir(folder)
        with open(os.path.join(folder, "left"), "w"):
            pass
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.assertIn("another download to this folder is under way", self.command("jobs", "download", job.id, "-o", "twice", code=1))
        os.close(held)
        self.command("jobs", "download", job.id, "-o", "twice")
        self.assertEqual(os.listdir(os.path.join(self.folder.name, "twice")), ["model.pt"])
        self.assertFalse(os.path.exists(folder))

    def test_jobs_with_uploads_survive_a_restart(self):
        uploaded = self.upload(self.data)
        job = self.server.create(model=MLP, data=uploaded.file, optimizer=SGD, epochs=200, checkpoints=training.CheckpointPolicy(every_steps=5))
        self.server.wait_until(job.id, lambda it: it.progress.checkpoint_step > 0)
        os.remove(os.path.join(self.server.jobs, "uploads", uploaded.file[1:]))
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=60)
        self.assertEqual(self.server.watch(job.id)[0].state, PAUSED)
        self.server.restart()
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id), timeout=60)
        self.server.stub.FinishJob(training.FinishJobRequest(id=job.id), timeout=60)
        self.assertEqual(self.server.watch(job.id)[0].state, COMPLETED)


class IdleTransfersTest(RpcAssertions, unittest.TestCase):
    """Clients that hold a transfer open and do nothing."""

    def setUp(self):
        self.server = TrainingDaemon("--training-transfer-timeout-secs", "3")
        self.addCleanup(self.server.close)
        wide = torch.nn.Sequential(torch.nn.Linear(4, 1_000_000), torch.nn.Linear(1_000_000, 2))
        models.save(wide, self.server.models, "wide")
        self.server.save_data("rows.pt", x=torch.ones(8, 4), y=torch.zeros(8, dtype=torch.int64))
        self.server.start()

    def await_none(self, folder):
        deadline = time.monotonic() + 60
        while os.listdir(os.path.join(self.server.jobs, folder)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_an_upload_that_stops(self):
        goes_on = threading.Event()

        def slow():
            yield training.UploadDataRequest(data=b"x,y\n", file_name="slow.csv")
            for _ in range(16):  # longer than the limit, but never so long without a message
                time.sleep(0.25)
                yield training.UploadDataRequest(data=b"1,2\n")
            goes_on.wait(60)

        call = self.server.stub.UploadData.future(slow(), timeout=60)
        time.sleep(3.5)
        self.assertFalse(call.done())
        self.assert_code(CODE.CANCELLED, "", call.result)
        self.await_none("uploads")
        goes_on.set()

    def test_a_download_that_is_not_read(self):
        job = self.server.run(model=training.ModelSource(name="wide", version=1), optimizer=SGD, steps=1, batch_size=8,
                              data=training.Data(file="rows.pt", inputs={"input": "x"}))
        call = self.server.stub.DownloadModel(training.DownloadModelRequest(id=job.id), timeout=60)
        next(iter(call))
        self.await_none("downloads")
        with self.assertRaises(grpc.RpcError):
            list(call)


if __name__ == "__main__":
    unittest.main()
