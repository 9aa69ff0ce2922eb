"""What users of training frameworks expect of jobs: early stops, averages of weights, columns, tags. PyTorch and scikit-learn are the reference."""

import os
import pathlib
import struct
import unittest

import grpc
import numpy as np
import sklearn.metrics
import torch

from tests.e2e.daemon import RpcAssertions, training
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import CANCELLED, COMPLETED, PAUSED, RUNNING, JobAssertions, TrainingDaemon

CODE = grpc.StatusCode
SGD = training.Optimizer(name="sgd", lr=0.05)
ADAM = training.Optimizer(name="adam", lr=1e-2)
AT_END = training.PublishPolicy(when="at_end")
MLP = training.ModelSource(name="mlp", version=1)
WEIGHTS = [0.5, 2.0, 0.0, 1.0, 3.0, 0.25, 1.0, 1.0, 4.0, 0.1]


class Scored(torch.nn.Module):
    """The classifier of the other tests, with metrics of its own."""

    def __init__(self):
        super().__init__()
        self.mlp = models.Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mlp(x)

    @torch.jit.export
    def metric_hits(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs.argmax(1) == targets).float().mean()

    @torch.jit.export
    def metric_miss_error(self, outputs: torch.Tensor, targets: torch.Tensor) -> float:
        return 1.0 - float((outputs.argmax(1) == targets).float().mean())

    @torch.jit.export
    def metric_rows(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs.argmax(1) == targets).float()

    @torch.jit.export
    def metric_odd(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.mean()


class HabitsTest(JobAssertions, RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon()
        for name in ("mlp", "binary"):
            models.save(models.Mlp(classes=10 if name == "mlp" else 1), cls.server.models, name)
        models.save(models.Mlp(features=2, classes=2), cls.server.models, "people")
        models.save(Scored(), cls.server.models, "scored")
        cls.x, cls.y = models.clusters(400, 64, 10, seed=1, spread=8.0)
        cls.server.save_data("clusters.pt", x=cls.x, y=cls.y)
        cls.server.save_data("binary.pt", x=cls.x, y=(cls.y % 2).float())
        cls.start = torch.jit.load(cls.server.model_file("mlp", 1))
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def reference(self):
        """The model that jobs start from, for training with PyTorch."""
        return torch.jit.load(self.server.model_file("mlp", 1)).train()

    def assert_close(self, job, wanted):
        for name, weight in self.server.weights("mlp", job.published_version).items():
            torch.testing.assert_close(weight, wanted[name], rtol=1e-4, atol=1e-5)

    def test_class_weights_are_those_of_pytorch(self):
        job = self.server.run(model=MLP, data=training.Data(file="clusters.pt", shuffle=False), optimizer=SGD, epochs=2,
                              publish=AT_END, loss=training.Loss(class_weights=WEIGHTS))
        self.assertEqual(job.state, COMPLETED, job.message)
        model = self.reference()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loss = torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS))
        for _ in range(2):
            for rows in torch.arange(400).split(50):
                optimizer.zero_grad()
                loss(model(self.x[rows]), self.y[rows]).backward()
                optimizer.step()
        self.assert_close(job, dict(model.state_dict()))
        self.assert_code(CODE.INVALID_ARGUMENT, "loss.class_weights: is not for mse", self.server.create, builtin="mse", epochs=1,
                         loss=training.Loss(class_weights=[1.0]))
        failed = self.server.run(model=MLP, epochs=1, loss=training.Loss(class_weights=[1.0, 2.0]))
        self.assertIn("loss.class_weights: 2 weights, but the output has 10 classes", failed.message)

    def test_metrics_of_the_script(self):
        job = self.server.run(model=training.ModelSource(name="scored"), optimizer=ADAM, epochs=4, batch_size=50,
                              evaluation=training.Evaluation(fraction=0.25, batch_size=30, metrics=["accuracy", "metric_hits", "metric_miss_error"]),
                              publish=training.PublishPolicy(when="best", metric="metric_hits", bar=0.5))
        self.assertEqual((job.state, job.published_version), (COMPLETED, 2), job.message)
        metrics = job.progress.metrics
        self.assertAlmostEqual(metrics["metric_hits"], metrics["accuracy"], places=6)  # the mean over rows, not over batches
        self.assertAlmostEqual(metrics["metric_miss_error"], 1 - metrics["accuracy"], places=6)
        self.assertEqual(job.progress.best_metric, max(metrics["metric_hits"], job.progress.best_metric))
        worse = self.server.run(model=training.ModelSource(name="scored", version=1), optimizer=SGD, epochs=2, publish=training.PublishPolicy(
            when="at_end", metric="metric_miss_error", bar=-1.0), evaluation=training.Evaluation(fraction=0.25, metrics=["metric_miss_error"]))
        self.assertIn("above the bar of -1", worse.message)
        ranks = self.server.run(model=training.ModelSource(name="scored", version=1), optimizer=SGD, epochs=1, batch_size=40,
                                evaluation=training.Evaluation(fraction=0.25, metrics=["metric_hits"]), distribution=training.Distribution(world_size=2))
        self.assertEqual(ranks.state, COMPLETED, ranks.message)
        self.assertIn("metric_hits", ranks.progress.metrics)
        for metric, text in (("metric_none", "the model has no method 'metric_none'"), ("metric_odd", "'metric_odd' must take two tensors"),
                             ("metric_", "'metric_' is not one of"), ("metric_a b", "is not one of")):
            self.assert_code(CODE.INVALID_ARGUMENT, "evaluation.metrics: " + text if "two" in text or "no method" in text else text, self.server.create,
                             model=training.ModelSource(name="scored"), epochs=1, evaluation=training.Evaluation(fraction=0.25, metrics=[metric]))
        many = self.server.run(model=training.ModelSource(name="scored"), epochs=1, evaluation=training.Evaluation(fraction=0.25, metrics=["metric_rows"]))
        self.assertIn("'metric_rows' must return one number", many.message)

    def test_accumulated_batches_are_one_large_batch(self):
        jobs = [self.server.run(model=MLP, optimizer=SGD, epochs=3, publish=AT_END, batch_size=size, accumulation=count)
                for size, count in ((90, 1), (30, 3))]
        for job in jobs:
            self.assertEqual((job.state, job.progress.step, job.progress.total_steps), (COMPLETED, 15, 15), job.message)
        self.assert_close(jobs[0], self.server.weights("mlp", jobs[1].published_version))
        self.assert_code(CODE.INVALID_ARGUMENT, "accumulation: not with streamed data", self.server.create, accumulation=2, epochs=1,
                         distribution=training.Distribution(world_size=2))

    def test_an_average_of_the_weights_is_evaluated_and_published(self):
        fields = dict(model=MLP, optimizer=SGD, epochs=2, evaluation=training.Evaluation(fraction=0.25, metrics=["loss", "accuracy"]))
        plain, averaged = (self.server.run(publish=AT_END, ema_decay=decay, **fields) for decay in (0.0, 0.9))
        zero_steps = self.server.run(publish=AT_END, ema_decay=0.9, **{**fields, "epochs": 0, "steps": 1})
        self.assertEqual({plain.state, averaged.state, zero_steps.state}, {COMPLETED})
        # After one step the average is the weights themselves.
        one = self.server.run(publish=AT_END, **{**fields, "epochs": 0, "steps": 1})
        for name, weight in self.server.weights("mlp", one.published_version).items():
            self.assertTrue(torch.equal(weight, self.server.weights("mlp", zero_steps.published_version)[name]))
        self.assertNotEqual(plain.progress.metrics["loss"], averaged.progress.metrics["loss"])
        two = self.server.run(publish=AT_END, **{**fields, "epochs": 0, "steps": 2})
        average = self.server.run(publish=AT_END, ema_decay=0.9, **{**fields, "epochs": 0, "steps": 2})
        first, second = (self.server.weights("mlp", job.published_version) for job in (one, two))
        wanted = {name: first[name] * 0.9 + second[name] * 0.1 for name in first}
        self.assert_close(average, wanted)
        self.assert_code(CODE.INVALID_ARGUMENT, "ema_decay: must be at least 0 and below 1", self.server.create, ema_decay=1.0, epochs=1)

    def test_a_killed_job_with_all_of_it_ends_with_the_same_bits(self):
        fields = dict(model=MLP, optimizer=ADAM, epochs=40, publish=AT_END, accumulation=3, ema_decay=0.95, batch_size=32,
                      loss=training.Loss(class_weights=WEIGHTS), checkpoints=training.CheckpointPolicy(every_steps=7),
                      evaluation=training.Evaluation(fraction=0.2, metrics=["loss", "f1"], patience=1000))
        whole = self.finished(self.server.create(**fields), "mlp")
        job = self.server.create(**fields)
        self.server.wait_until(job.id, lambda now: now.progress.step >= whole[0].progress.total_steps // 3)
        self.server.restart()
        self.assert_same(whole, self.finished(job, "mlp"))

    def test_patience_ends_a_job_that_gets_no_better(self):
        # The rate is too small to change anything.
        job = self.server.run(model=MLP, optimizer=training.Optimizer(name="sgd", lr=1e-30), epochs=1000, publish=AT_END,
                              evaluation=training.Evaluation(fraction=0.2, metrics=["accuracy"], patience=3))
        self.assertEqual((job.state, job.message), (COMPLETED, "ended early: accuracy was not better in 3 evaluations"))
        # Of equal evaluations the last one is the best.
        self.assertEqual((job.progress.step, job.progress.best_step), (7 * 4, 7 * 4))
        self.assertGreater(job.published_version, 0)
        self.assert_code(CODE.INVALID_ARGUMENT, "evaluation.patience: needs a fraction or a file", self.server.create, epochs=1,
                         evaluation=training.Evaluation(patience=3))

    def test_a_time_limit_and_a_client_end_a_job_with_its_result(self):
        endless = dict(model=MLP, steps=10**9, optimizer=SGD, publish=AT_END, evaluation=training.Evaluation(fraction=0.2))
        limited = self.server.run(max_seconds=1, **endless)
        self.assertEqual((limited.state, limited.message), (COMPLETED, "ended early: after max_seconds, 1"))
        self.assertGreater(limited.published_version, 0)
        self.assertIn("loss", limited.progress.metrics)
        job = self.server.create(name="endless", tags={"team": "a", "kind": "test"}, **endless)
        self.server.wait_until(job.id, lambda now: now.progress.step > 0)
        # The name serves in place of the id while only one job has it.
        self.assertEqual(self.server.get("endless").id, job.id)
        self.server.stub.FinishJob(training.FinishJobRequest(id="endless"), timeout=300)
        done, _ = self.server.watch(job.id)
        self.assertEqual((done.state, done.message), (COMPLETED, "ended early: a client finished it"))
        self.assertGreater(done.published_version, limited.published_version)

    def test_a_paused_job_can_be_finished(self):
        endless = dict(model=MLP, steps=10**9, optimizer=SGD, publish=AT_END)
        job = self.server.create(**endless)
        self.server.wait_until(job.id, lambda now: now.progress.step > 0)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id), timeout=300)
        paused, _ = self.server.watch(job.id)
        self.assertEqual(paused.state, PAUSED)
        self.server.restart()
        self.server.stub.FinishJob(training.FinishJobRequest(id=job.id), timeout=300)
        done = self.server.wait_until(job.id, lambda now: now.state == COMPLETED)
        self.assertEqual(done.progress.step, paused.progress.step)
        self.assertGreater(done.published_version, 0)
        waiting = [self.server.create(**endless) for _ in range(2)]
        self.server.wait_until(waiting[0].id, lambda now: now.state == RUNNING)
        self.assert_code(CODE.FAILED_PRECONDITION, "is QUEUED and has no checkpoint to finish with", self.server.stub.FinishJob,
                         training.FinishJobRequest(id=waiting[1].id))
        for each in reversed(waiting):
            self.server.stub.CancelJob(training.CancelJobRequest(id=each.id), timeout=300)
        self.server.wait_until(waiting[0].id, lambda now: now.state == CANCELLED)

    def test_tags_and_names_find_jobs(self):
        jobs = [self.server.run(model=MLP, steps=1, name="twin", tags={"team": team, "size": "small"}) for team in ("b", "c")]

        def found(**tags):
            return [job.id for job in self.server.stub.ListJobs(training.ListJobsRequest(tags=tags), timeout=60).jobs]

        self.assertEqual(found(size="small"), [job.id for job in jobs])
        self.assertEqual(found(size="small", team="c"), [jobs[1].id])
        self.assertEqual(found(size="large"), [])
        self.assertIn("team=c", self.server.client("jobs", "show", jobs[1].id))
        self.assertIn(jobs[0].id, self.server.client("jobs", "list", "--tag", "team=b"))
        self.assert_code(CODE.INVALID_ARGUMENT, "'twin' is the name of several training jobs", self.server.get, "twin")
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=jobs[0].id), timeout=60)
        self.assertEqual(self.server.get("twin").id, jobs[1].id)
        self.server.stub.DeleteJob(training.DeleteJobRequest(id="twin"), timeout=60)
        self.assert_code(CODE.NOT_FOUND, "there is no training job 'twin'", self.server.get, "twin")

    def test_metrics_of_classes_are_those_of_scikit_learn(self):
        still = training.Optimizer(name="sgd", lr=1e-30)
        names = ["f1", "precision", "recall", "auc", "accuracy"]
        for model, data, builtin, labels in (("mlp", "clusters.pt", "cross_entropy", self.y),
                                             ("binary", "binary.pt", "bce_with_logits", self.y % 2)):
            job = self.server.run(model=training.ModelSource(name=model, version=1), data=data, builtin=builtin, optimizer=still, steps=1,
                                  evaluation=training.Evaluation(file=data, metrics=names, batch_size=37))
            self.assertEqual(job.state, COMPLETED, job.message)
            scores = torch.jit.load(self.server.model_file(model, 1))(self.x).detach().double()
            if model == "binary":
                found, chances, kind = (scores[:, 0] > 0).long(), scores[:, 0], {}
                wanted = {"auc": sklearn.metrics.roc_auc_score(labels, chances)}
            else:
                found, chances, kind = scores.argmax(1), torch.softmax(scores, 1), {"average": "macro", "zero_division": 0}
                wanted = {"auc": sklearn.metrics.roc_auc_score(labels, chances, multi_class="ovr")}
            wanted["accuracy"] = sklearn.metrics.accuracy_score(labels, found)
            for name in ("f1", "precision", "recall"):
                wanted[name] = getattr(sklearn.metrics, f"{name}_score")(labels, found, **kind)
            for name in names:
                self.assertAlmostEqual(job.progress.metrics[name], wanted[name], 6, name)

    def test_columns_of_a_csv_file_are_one_matrix(self):
        rows = np.random.default_rng(1).normal(size=(60, 2))
        with open(os.path.join(self.server.data, "people.csv"), "w") as out:
            out.write("name,age,city,height,label\n")
            for i, (age, height) in enumerate(rows):
                out.write(f"person {i},{age:.6f},\"Paris, France\",{height:.6f},{int(age > height)}\n")
        data = training.Data(file="people.csv", inputs={"x": "age,height"})
        fields = dict(model="people", label="label", optimizer=ADAM, epochs=60, publish=AT_END)
        job = self.server.run(data=data, evaluation=training.Evaluation(fraction=0.2, metrics=["accuracy"]), **fields)
        self.assertEqual(job.state, COMPLETED, job.message)
        self.assertGreater(job.progress.metrics["accuracy"], 0.9)
        data.inputs["x"] = "age,weight"
        self.assert_code(CODE.INVALID_ARGUMENT, "data.file: the data has no array 'weight'; it has 'name', 'age', 'city', 'height', 'label'",
                         self.server.create, data=data, **fields)
        data.inputs["x"] = "age,city"
        failed = self.server.run(data=data, **fields)
        self.assertIn("column 'city': 'Paris, France' is not a number", failed.message)


    def test_curves_are_exported_for_other_tools(self):
        job = self.server.run(model=MLP, optimizer=SGD, epochs=3, tags={"team": "a"},
                              evaluation=training.Evaluation(fraction=0.25, metrics=["accuracy"]))
        self.assertEqual(job.state, COMPLETED, job.message)
        _, points = self.server.watch(job.id)
        folder = self.server.folder.name
        board, mlflow = os.path.join(folder, "board"), os.path.join(folder, "mlruns")
        csv = self.server.client("jobs", "export", job.id, "--csv", "-", "--tensorboard", board, "--mlflow", mlflow)
        rows = [line.split(",") for line in csv.splitlines()]
        self.assertEqual(rows[0], ["job", "step", "epoch", "loss", "learning_rate", "gradient_norm", "samples_per_second", "eval_accuracy"])
        self.assertEqual([(int(row[1]), float(row[3])) for row in rows[1:]], [(point.step, point.loss) for point in points])
        (name,) = os.listdir(os.path.join(board, job.id))
        # Another export replaces the first one, and nothing else in that folder.
        other = pathlib.Path(board, job.id, "notes.txt")
        other.write_text("mine")
        self.server.client("jobs", "export", job.id, "--tensorboard", board)
        self.assertEqual(sorted(os.listdir(other.parent)), sorted([name, "notes.txt"]))
        with open(os.path.join(board, job.id, name), "rb") as file:
            events = list(records(file.read()))
        self.assertEqual(fields(events[0])[3], [b"brain.Event:2"])
        found = {}
        for event in map(fields, events[1:]):
            for value in map(fields, fields(event[5][0])[1]):
                found.setdefault(value[1][0].decode(), []).append((event[2][0], value[2][0]))
        wanted = [(point.step, np.float32(point.loss)) for point in points]
        self.assertEqual(found["train/loss"], wanted)
        self.assertEqual([value for _, value in found["eval/accuracy"]],
                         [np.float32(point.metrics["accuracy"]) for point in points if "accuracy" in point.metrics])
        (run,) = (entry for entry in os.listdir(os.path.join(mlflow, "0")) if entry != "meta.yaml")

        def kept(*path):
            return pathlib.Path(mlflow, "0", run, *path).read_text()

        self.assertIn("status: 3", kept("meta.yaml"))
        self.assertEqual((kept("params", "epochs"), kept("params", "optimizer.name"), kept("tags", "team")), ("3", "sgd", "a"))
        lines = [line.split() for line in kept("metrics", "train", "loss").splitlines()]
        self.assertEqual([(int(step), float(value)) for _, value, step in lines], [(point.step, point.loss) for point in points])
        self.assertIn("│", self.server.client("jobs", "plot", job.id, "--metric", "accuracy"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def records(data):
    """The messages of a file of TensorBoard, whose checksums are right."""
    def checked(part, mask):
        crc = crc32c(part)
        assert ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF == struct.unpack("<I", mask)[0]
        return part

    while data:
        (size,) = struct.unpack("<Q", checked(data[:8], data[8:12]))
        yield checked(data[12:12 + size], data[12 + size:16 + size])
        data = data[16 + size:]


def fields(message):
    """A protobuf message: values by field number."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
            value, at = message[at:at + size], at + size
            if key & 7 != 2:
                (value,) = struct.unpack({8: "<d", 4: "<f"}[size], value)
        found.setdefault(key >> 3, []).append(value)
    return found


if __name__ == "__main__":
    unittest.main()
