"""Failures of training jobs: each has a clear error, and no data is lost."""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import threading
import time
import unittest
import unittest.mock

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import BINARY, RpcAssertions, training
from tests.e2e.training.training_daemon import COMPLETED, FAILED, PAUSED, RUNNING, TrainingDaemon, spec

CODE = grpc.StatusCode
ADAM = training.Optimizer(name="adam", lr=1e-2)
STREAMED = dict(data="", label="y", optimizer=ADAM)


def batch(job_id, number, x, y, complete=False):
    message = training.StreamDataRequest(job_id=job_id, batch=number, complete=complete)
    for name, tensor, datatype in (("x", x, "FP32"), ("y", y, "INT64")):
        message.inputs.add(name=name, datatype=datatype, shape=tensor.shape)
        message.raw_input_contents.append(tensor.contiguous().numpy().tobytes())
    return message


class TrainErrorsTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--training-jobs", "2")
        models.save(models.Mlp(), cls.server.models, "mlp")
        models.save(models.Mlp(), cls.server.models, "gone")
        models.save(models.Chances(), cls.server.models, "chances")
        cls.x, cls.y = models.clusters(1000, 64, 10, seed=1, spread=2.0)
        cls.server.save_data("clusters.pt", x=cls.x, y=cls.y)
        labels = cls.y.clone()
        labels[700] = 12
        cls.server.save_data("labels.pt", x=cls.x, y=labels)
        cls.server.save_data("narrow.pt", x=cls.x[:, :60].clone(), y=cls.y)
        x = cls.x.clone()
        x[901, 3] = float("nan")
        cls.server.save_data("nan.pt", x=x, y=cls.y)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def assert_fails(self, *expected, **fields):
        job = self.server.run(**fields)
        self.assertEqual(job.state, FAILED)
        for part in expected:
            self.assertIn(part, job.message)
        self.assertEqual(job.published_version, 0)
        return job

    def test_ranks_without_gloo(self):
        server = TrainingDaemon()
        self.addCleanup(server.close)
        models.save(models.Mlp(), server.models, "mlp")
        server.save_data("clusters.pt", x=self.x, y=self.y)
        with unittest.mock.patch.dict(os.environ, TENSORD_GLOO="/nowhere/libtensord_gloo.so"):
            server.start()
        self.assert_code(CODE.UNIMPLEMENTED, "set TENSORD_GLOO to the path of libtensord_gloo.so", server.create, epochs=1,
                         model="mlp", data="clusters.pt", label="y", optimizer=ADAM, distribution=training.Distribution(world_size=2))

    def test_jobs_that_cannot_work_are_refused(self):
        groups = training.ParameterGroup
        cases = [
            (CODE.NOT_FOUND, "unknown model: 'none'", dict(model="none", epochs=1)),
            (CODE.NOT_FOUND, "version 9", dict(model=training.ModelSource(name="mlp", version=9), epochs=1)),
            (CODE.NOT_FOUND, "data.file: 'none.pt'", dict(data="none.pt", epochs=1)),
            (CODE.INVALID_ARGUMENT, "data.file: '../jobs/lock' must be a path inside of",
             dict(data="../jobs/lock", epochs=1)),
            (CODE.INVALID_ARGUMENT, "data.file: '/etc/hostname' must be a path inside of",
             dict(data="/etc/hostname", epochs=1)),
            (CODE.INVALID_ARGUMENT, "data.file: 'link' leads out of the data folder", dict(data="link", epochs=1)),
            (CODE.INVALID_ARGUMENT, "evaluation.file: '../jobs/lock' must be a path inside of",
             dict(epochs=1, evaluation=training.Evaluation(file="../jobs/lock"))),
            (CODE.INVALID_ARGUMENT, "evaluation.file: 'link' leads out of the data folder",
             dict(epochs=1, evaluation=training.Evaluation(file="link"))),
            (CODE.INVALID_ARGUMENT, "epochs: ", dict()),
            (CODE.INVALID_ARGUMENT, "batch_size: ", dict(epochs=1, batch_size=-1)),
            (CODE.INVALID_ARGUMENT, "loss.builtin: 'hinge'", dict(epochs=1, builtin="hinge")),
            (CODE.INVALID_ARGUMENT, "loss.method: the model has no method 'nothing'",
             dict(epochs=1, builtin="", loss=training.Loss(method="nothing"))),
            (CODE.INVALID_ARGUMENT, "data.inputs: ",
             dict(epochs=1, inputs={"z": "w"})),
            (CODE.INVALID_ARGUMENT, "optimizer.groups.pattern: 'layer9.*'",
             dict(epochs=1, optimizer=training.Optimizer(groups=[groups(pattern="layer9.*")]))),
            (CODE.FAILED_PRECONDITION, "no parameter of the model requires a gradient",
             dict(epochs=1, optimizer=training.Optimizer(groups=[groups(pattern="*", freeze=True)]))),
        ]
        os.symlink(os.path.join(self.server.jobs, "lock"), os.path.join(self.server.data, "link"))
        before = len(self.server.stub.ListJobs(training.ListJobsRequest()).jobs)
        for code, details, fields in cases:
            with self.subTest(details):
                inputs = fields.pop("inputs", None)
                message = spec(**fields)
                if inputs:
                    message.data.inputs.update(inputs)
                self.assert_code(code, details, self.server.stub.CreateJob, training.CreateJobRequest(spec=message))
        self.assertEqual(len(self.server.stub.ListJobs(training.ListJobsRequest()).jobs), before)

    def test_the_loss_is_no_number(self):
        self.assert_fails("step 1", "single number, but has shape [50]", epochs=1, builtin="",
                          loss=training.Loss(method="vector_loss"))

    def test_the_loss_hangs_on_no_parameter(self):
        self.assert_fails("step 1", "does not depend on any parameter", epochs=1, builtin="",
                          loss=training.Loss(method="detached_loss"))

    def test_a_label_out_of_range(self):
        message = spec(data="labels.pt", epochs=1, batch_size=10)
        message.data.shuffle = False
        message.checkpoints.every_steps = 30
        job = self.server.stub.CreateJob(training.CreateJobRequest(spec=message))
        job, _ = self.server.watch(job.id)
        self.assertEqual(job.state, FAILED)
        self.assertIn("step 71, batch 70 (epoch 1): loss.label: 'y' has 12 at place 0, but the output has 10 classes",
                      job.message)
        self.assertIn("the last checkpoint is of step 60", job.message)

    def test_outputs_that_the_loss_is_not_made_for(self):
        job = self.server.run(model="chances", epochs=1)
        self.assertEqual(job.state, COMPLETED)
        self.assertIn("warning: loss.builtin: cross_entropy takes scores", job.message)
        self.assertEqual(self.server.run(epochs=1).message, "")
        self.assert_fails("loss.builtin: nll takes logarithms of probabilities", model="chances", builtin="nll", epochs=1)

    def test_rows_that_the_model_does_not_take(self):
        self.assert_fails("step 1", data="narrow.pt", epochs=1)

    def test_a_loss_that_is_not_finite(self):
        job = self.assert_fails("the loss is not a number: parameter '", "step ", "the last checkpoint is of step",
                                epochs=50,
                                optimizer=training.Optimizer(name="sgd", lr=1e30),
                                checkpoints=training.CheckpointPolicy(every_steps=1))
        folder = os.path.join(self.server.jobs, "jobs", job.id, f"checkpoint-{job.progress.checkpoint_step}")
        state = torch.jit.load(os.path.join(folder, "model.pt")).state_dict()
        self.assertTrue(all(torch.isfinite(tensor).all() for tensor in state.values()))
        # Non-finite data is distinguished from non-finite weights.
        self.assert_fails("'x' of the data is not finite in this batch", data="nan.pt", epochs=1)

    def test_memory_has_a_limit(self):
        self.assert_fails("memory limit of 'job/", epochs=1, resources=training.Resources(memory_bytes=100_000))

    def test_two_jobs_publish_the_same_model(self):
        jobs = [self.server.create(epochs=20, optimizer=ADAM, publish=training.PublishPolicy(when="at_end"))
                for _ in range(4)]
        ended = [self.server.watch(job.id)[0] for job in jobs]
        self.assertEqual([job.state for job in ended], [COMPLETED] * 4)
        versions = [job.published_version for job in ended]
        self.assertEqual(len(set(versions)), 4, versions)
        for version in versions:
            self.assertTrue(os.path.exists(self.server.model_file("mlp", version)))

    def test_the_model_goes_while_the_job_runs(self):
        job = self.server.create(model="gone", epochs=400, publish=training.PublishPolicy(when="at_end"))
        self.server.wait_until(job.id, lambda now: now.progress.step > 0)
        os.rename(os.path.join(self.server.models, "gone"), os.path.join(self.server.folder.name, "away"))
        ended, _ = self.server.watch(job.id)
        # The job was complete, and the trained version exists.
        self.assertEqual((ended.state, ended.published_version), (COMPLETED, 2), ended.message)
        self.assertTrue(os.path.exists(self.server.model_file("gone", 2)))

    def test_a_full_disk_costs_no_checkpoint_that_is_there(self):
        job = self.server.create(steps=10**7, optimizer=ADAM, checkpoints=training.CheckpointPolicy(every_steps=20))
        pid = self.server.daemon.process.pid
        limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step >= 40)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            now = self.server.wait_until(job.id, lambda now: "no checkpoint could be written" in now.message)
            self.assertEqual(now.state, RUNNING)
            good = now.progress.checkpoint_step
            folder = os.path.join(self.server.jobs, "jobs", job.id, f"checkpoint-{good}")
            torch.jit.load(os.path.join(folder, "model.pt"))
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        now = self.server.wait_until(job.id, lambda now: now.progress.checkpoint_step > good)
        self.assertEqual(now.message, "")
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)

    # Streams.

    def stream(self, job_id, numbers, complete=False, width=64):
        def messages():
            for number in numbers:
                rows = slice(number % 20 * 50, number % 20 * 50 + 50)
                yield batch(job_id, number, self.x[rows, :width], self.y[rows])
            if complete:
                yield training.StreamDataRequest(job_id=job_id, complete=True)
        return self.server.stub.StreamData(messages(), timeout=120)

    def create_streamed(self, **data):
        message = spec(**STREAMED)
        message.data.streamed = True
        for name, value in data.items():
            setattr(message.data, name, value)
        message.publish.when = "at_end"
        message.model.version = 1
        return self.server.stub.CreateJob(training.CreateJobRequest(spec=message))

    def test_streamed_data_trains_as_a_file_does(self):
        job = self.create_streamed(max_buffered_bytes=20000)  # one and a half batches
        response = self.stream(job.id, range(40), complete=True)
        self.assertEqual((response.batches, response.next_batch), (40, 40))
        streamed, _ = self.server.watch(job.id)
        self.assertEqual((streamed.state, streamed.progress.step, streamed.progress.next_batch), (COMPLETED, 40, 40),
                         streamed.message)
        message = spec(epochs=2, optimizer=ADAM, publish=training.PublishPolicy(when="at_end"))
        message.model.version = 1
        message.data.shuffle = False
        job = self.server.stub.CreateJob(training.CreateJobRequest(spec=message))
        from_file, _ = self.server.watch(job.id)
        ours, wanted = (self.server.weights("mlp", job.published_version) for job in (streamed, from_file))
        for name in ours:
            self.assertTrue(torch.equal(ours[name], wanted[name]), name)

    def test_a_batch_of_another_shape(self):
        job = self.create_streamed()
        self.stream(job.id, range(5))
        self.assert_code(CODE.INVALID_ARGUMENT, "batch 5: 'x' has shape [50, 60], in the batches before it [50, 64]",
                         self.stream, job.id, range(5, 6), width=60)
        self.assert_code(CODE.OUT_OF_RANGE, "needs batch 5 first", self.stream, job.id, range(7, 8))
        # Nothing was lost: resent batches that it already has are skipped.
        response = self.stream(job.id, range(8), complete=True)
        self.assertEqual((response.batches, response.next_batch), (3, 8))
        ended, _ = self.server.watch(job.id)
        self.assertEqual((ended.state, ended.progress.step), (COMPLETED, 8), ended.message)

    def test_the_client_goes_in_mid_stream(self):
        job = self.create_streamed(stream_timeout_seconds=1)
        sent = threading.Event()

        def messages():
            for number in range(6):
                yield batch(job.id, number, self.x[:50], self.y[:50])
            sent.set()
            time.sleep(60)

        call = self.server.stub.StreamData.future(messages())
        sent.wait(60)
        self.server.wait_until(job.id, lambda now: now.progress.step == 6 or now.message == "waiting for data")
        self.assert_code(CODE.FAILED_PRECONDITION, "another client", self.stream, job.id, range(6, 7))
        call.cancel()
        paused, _ = self.server.watch(job.id)
        self.assertEqual((paused.state, paused.progress.next_batch), (PAUSED, 6))
        self.assertIn("no client has streamed data for 1 seconds", paused.message)
        self.assert_code(CODE.FAILED_PRECONDITION, "takes no data", self.stream, job.id, range(6, 7))
        # It continues where it was, also after a crash.
        self.server.restart()
        self.assertEqual(self.server.get(job.id).state, PAUSED)
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id))
        self.stream(job.id, range(4, 10), complete=True)
        ended, _ = self.server.watch(job.id)
        self.assertEqual((ended.state, ended.progress.step), (COMPLETED, 10), ended.message)

    def test_streams_that_no_job_takes(self):
        self.assert_code(CODE.NOT_FOUND, "there is no training job 'none'", self.stream, "none", range(1))
        job = self.server.create(steps=10**7)
        self.assert_code(CODE.FAILED_PRECONDITION, "is not streamed", self.stream, job.id, range(1))
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)
        job = self.create_streamed()
        message = batch(job.id, 0, self.x[:50], self.y[:50])
        message.raw_input_contents[0] = message.raw_input_contents[0][:-4]
        self.assert_code(CODE.INVALID_ARGUMENT, "byte size mismatch", self.server.stub.StreamData, iter([message]))
        both = [batch(job.id, 0, self.x[:50], self.y[:50]), batch("other", 1, self.x[:50], self.y[:50])]
        self.assert_code(CODE.INVALID_ARGUMENT, f"a stream is for one job, '{job.id}'", self.server.stub.StreamData,
                         iter(both))
        self.assert_code(CODE.INVALID_ARGUMENT, "the upload is empty", self.server.stub.UploadModel, iter([]))
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)


class FoldersOfOtherVersionsTest(unittest.TestCase):
    """The training folder `format_1/training` was written by the first format, with a job that was paused after 10 of 20 steps."""

    def setUp(self):
        written = pathlib.Path(__file__).parent / "format_1"
        self.server = TrainingDaemon()
        self.addCleanup(self.server.close)
        shutil.copytree(written / "training", self.server.jobs)
        shutil.copytree(written / "data", self.server.data, dirs_exist_ok=True)
        self.job = "net-1da0fd"

    def files(self):
        root = pathlib.Path(self.server.jobs)
        return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}

    def test_the_first_format_is_read_and_its_jobs_go_on(self):
        self.server.start()
        job = self.server.get(self.job)
        self.assertEqual((job.state, job.progress.step, job.progress.checkpoint_step), (PAUSED, 10, 10))
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=self.job), timeout=300)
        job, points = self.server.watch(self.job)
        self.assertEqual((job.state, job.progress.step, job.message), (COMPLETED, 20, ""))
        self.assertEqual([point.step for point in points], list(range(1, 21)))
        ended = pathlib.Path(self.server.jobs, "jobs", self.job, "checkpoint-20", "model.pt")
        torch.testing.assert_close(torch.jit.load(ended).state_dict()["weight"], torch.tensor([1.7924, 0.1466, 0.3861]), atol=1e-3, rtol=0)
        self.assertEqual(json.loads(pathlib.Path(self.server.jobs, "format.json").read_text()), {"format": 1})

    def test_a_newer_format_is_refused_and_nothing_changes(self):
        pathlib.Path(self.server.jobs, "format.json").write_text('{"format": 2}')
        before = self.files()
        done = subprocess.run([BINARY, "serve", "--model-repository", self.server.models, "--grpc-port", "0", "--metrics-port", "0",
                               *self.server.flags], capture_output=True, text=True, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{self.server.jobs}: a newer tensord wrote this training folder (format 2; this version reads up to 1)", done.stderr)
        self.assertEqual(self.files(), before)

    def test_a_newer_checkpoint_ends_the_job_and_stays(self):
        manifest = pathlib.Path(self.server.jobs, "jobs", self.job, "checkpoint-10", "manifest.json")
        manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
        before = manifest.read_bytes()
        self.server.start()
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=self.job), timeout=300)
        job = self.server.watch(self.job)[0]
        self.assertEqual(job.state, FAILED)
        self.assertIn("checkpoint-10: of a newer tensord (format 2; this one reads 1)", job.message)
        self.assertEqual((manifest.read_bytes(), len(list(manifest.parent.iterdir()))), (before, 4))


if __name__ == "__main__":
    unittest.main()
