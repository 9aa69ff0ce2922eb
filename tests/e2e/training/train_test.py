"""Training jobs over gRPC: from data to a served new version, with pauses and crashes."""

import hashlib
import json
import os
import subprocess
import threading
import time
import unittest

import grpc
import torch

from tests.e2e.training import training_models as models
from tests.e2e.daemon import BINARY, RpcAssertions, request, training
from tests.e2e.terminal import on_terminal
from tests.e2e.training.training_daemon import AT_REST, CANCELLED, COMPLETED, PAUSED, RUNNING, TrainingDaemon, spec

CODE = grpc.StatusCode
ADAM = training.Optimizer(name="adam", lr=1e-2)
EVALUATION = training.Evaluation(fraction=0.2, metrics=["accuracy", "loss"])
AT_END = training.PublishPolicy(when="at_end")
# Enough steps to observe it running, few enough that it ends soon.
LONG = dict(model=training.ModelSource(name="mlp", version=1), epochs=200, optimizer=ADAM)
FIRST_NORMS = training.ModelSource(name="norms", version=1)
ENDLESS = dict(steps=10**7, optimizer=ADAM)


class TrainingTest(RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon()
        models.save(models.Mlp(), cls.server.models, "mlp")
        models.save(models.BatchNormNet(), cls.server.models, "norms")
        models.save(models.Mlp(), cls.server.models, "alone")
        cls.x, cls.y = models.clusters(1000, 64, 10, seed=1, spread=2.0)
        cls.server.save_data("clusters.pt", x=cls.x, y=cls.y)
        x, y = models.clusters(1000, 16, 4, seed=2)
        cls.server.save_data("norms.pt", x=x, y=y)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def infer(self, model="mlp", rows=8):
        response = self.server.daemon.stub.ModelInfer(
            request(model, [("x", "FP32", [rows, 64], self.x[:rows].numpy().tobytes())]), timeout=300)
        scores = torch.frombuffer(bytearray(response.raw_output_contents[0]), dtype=torch.float32)
        return int(response.model_version), scores.view(rows, 10)

    def test_trains_publishes_and_rolls_back_without_a_failed_request(self):
        models.save(models.Mlp(), self.server.models, "circle")
        self.server.restart()
        failures, versions, is_over = [], [], threading.Event()

        def ask():
            while not is_over.is_set():
                try:
                    versions.append(self.infer("circle")[0])
                except grpc.RpcError as error:
                    failures.append(error.details())

        clients = [threading.Thread(target=ask) for _ in range(2)]
        for client in clients:
            client.start()
        try:
            self.assertEqual(self.infer("circle")[0], 1)
            job, points = self.server.watch(self.server.create(
                model="circle", epochs=5, optimizer=ADAM, evaluation=EVALUATION, publish=AT_END).id)
            self.assertEqual((job.state, job.published_version, job.message), (COMPLETED, 2, ""))
            self.assertEqual((job.progress.step, job.progress.total_steps, job.base_version), (80, 80, 1))
            self.assertGreater(job.progress.metrics["accuracy"], 0.9)
            version, scores = self.infer("circle")
            self.assertEqual(version, 2)
            theirs = torch.jit.load(self.server.model_file("circle", 2))
            self.assertFalse(theirs.training)
            self.assertTrue(torch.allclose(theirs(self.x[:8]), scores, atol=1e-5))
            with open(os.path.join(self.server.models, "circle", "2", "job.json")) as origin:
                self.assertEqual(json.load(origin)["job"], job.id)
            rollback = self.server.stub.Rollback(training.RollbackRequest(model="circle"), timeout=300)
            self.assertEqual((rollback.withdrawn_version, rollback.served_version), (2, 1))
            self.assertEqual(self.infer("circle")[0], 1)
            again = self.server.run(model="circle", epochs=1, publish=AT_END)
            self.assertEqual(again.published_version, 3)
        finally:
            is_over.set()
            for client in clients:
                client.join()
        self.assertEqual(failures, [])
        self.assertEqual(set(versions), {1, 2, 3})
        self.assertEqual([point.step for point in points], list(range(1, 81)) if len(points) == 80 else
                         sorted(point.step for point in points))
        self.assertGreater(points[0].loss, points[-1].loss)
        self.assert_code(CODE.FAILED_PRECONDITION, "no version before 1", self.server.stub.Rollback,
                         training.RollbackRequest(model="alone"))

    def test_a_killed_job_ends_with_the_same_weights(self):
        fields = dict(model=FIRST_NORMS, data="norms.pt", epochs=60, optimizer=training.Optimizer(
            name="adamw", lr=3e-3, groups=[training.ParameterGroup(pattern="*.bias", weight_decay=0.0)]),
            schedule=training.Schedule(name="cosine", warmup_steps=20), clipping=training.Clipping(norm=1.0),
            evaluation=training.Evaluation(fraction=0.1, metrics=["loss", "accuracy"]),
            checkpoints=training.CheckpointPolicy(every_steps=37), batch_size=32,
            publish=training.PublishPolicy(when="best", metric="loss"))
        whole = self.server.run(**fields)
        self.assertEqual(whole.state, COMPLETED, whole.message)
        job = self.server.create(**fields)
        for part in (0.25, 0.6):
            self.server.wait_until(job.id, lambda now: now.progress.step >= part * whole.progress.total_steps or
                                   now.state in AT_REST)
            self.server.restart()
        killed, points = self.server.watch(job.id)
        self.assertEqual(killed.state, COMPLETED, killed.message)
        self.assertEqual(dict(killed.progress.metrics), dict(whole.progress.metrics))
        self.assertEqual(killed.progress.best_step, whole.progress.best_step)
        ours, wanted = (self.server.weights("norms", job.published_version) for job in (killed, whole))
        self.assertEqual(ours.keys(), wanted.keys())
        for name in ours:
            self.assertTrue(torch.equal(ours[name], wanted[name]), name)
        steps = [point.step for point in points]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(steps[-1], whole.progress.total_steps)
        self.server.restart()
        again, kept = self.server.watch(job.id)
        self.assertEqual((again.state, again.progress), (COMPLETED, killed.progress))
        self.assertEqual(kept, points)

    def test_a_job_without_a_checkpoint_begins_again(self):
        fields = dict(model=training.ModelSource(name="mlp", version=1), epochs=3, optimizer=ADAM, publish=AT_END)
        whole = self.server.run(**fields)
        job = self.server.create(**{**fields, "epochs": 0, "steps": 10**7})
        self.server.wait_until(job.id, lambda now: now.progress.step > 10)
        self.server.stub.CancelJob(training.CancelJobRequest(id=job.id))
        cancelled, _ = self.server.watch(job.id)
        self.assertEqual((cancelled.state, cancelled.progress.checkpoint_step), (CANCELLED, 0))
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id))
        begun = self.server.wait_until(job.id, lambda now: now.state == RUNNING and 0 < now.progress.step)
        self.assertLessEqual(begun.progress.samples, begun.progress.step * 50)
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.run(**fields).progress.loss, whole.progress.loss)

    def test_pause_and_resume_give_the_same_weights(self):
        fields = dict(publish=AT_END, **LONG)
        whole = self.server.run(**fields)
        job = self.server.create(**fields)
        self.server.wait_until(job.id, lambda now: now.progress.step >= 20)
        self.server.stub.PauseJob(training.PauseJobRequest(id=job.id))
        paused, _ = self.server.watch(job.id)
        self.assertEqual(paused.state, PAUSED)
        self.assertEqual(paused.progress.checkpoint_step, paused.progress.step)
        self.assertLess(paused.progress.step, paused.progress.total_steps)
        self.server.stub.ResumeJob(training.ResumeJobRequest(id=job.id))
        done, _ = self.server.watch(job.id)
        self.assertEqual(done.state, COMPLETED, done.message)
        ours, wanted = (self.server.weights("mlp", job.published_version) for job in (done, whole))
        for name in ours:
            self.assertTrue(torch.equal(ours[name], wanted[name]), name)

    def test_the_life_of_jobs(self):
        running = self.server.create(name="first of two", publish=training.PublishPolicy(when="at_end", model="next"),
                                     **ENDLESS)
        waiting = self.server.create(**ENDLESS)
        self.assertTrue(running.id.startswith("first-of-two-"))
        self.server.wait_until(running.id, lambda now: now.state == RUNNING and now.progress.step > 0)
        listed = self.server.stub.ListJobs(training.ListJobsRequest(model="mlp")).jobs
        self.assertEqual([job.id for job in listed][-2:], [running.id, waiting.id])
        listed = self.server.stub.ListJobs(training.ListJobsRequest(model="next")).jobs
        self.assertEqual([job.id for job in listed], [running.id])
        self.assertEqual(len(self.server.stub.ListJobs(training.ListJobsRequest(model="none")).jobs), 0)
        states = self.server.stub.ListJobs(training.ListJobsRequest(states=[RUNNING])).jobs
        self.assertEqual([job.id for job in states], [running.id])
        stub = self.server.stub
        self.assertEqual(stub.PauseJob(training.PauseJobRequest(id=waiting.id)).state, PAUSED)
        self.assertEqual(stub.CancelJob(training.CancelJobRequest(id=waiting.id)).state, CANCELLED)
        stub.CancelJob(training.CancelJobRequest(id=running.id))
        self.assertEqual(self.server.watch(running.id)[0].state, CANCELLED)
        self.assert_code(CODE.FAILED_PRECONDITION, "cannot be paused", stub.PauseJob,
                         training.PauseJobRequest(id=running.id))
        for job in (running, waiting):
            stub.DeleteJob(training.DeleteJobRequest(id=job.id))
            self.assert_code(CODE.NOT_FOUND, job.id, self.server.get, job.id)
            self.assertFalse(os.path.exists(os.path.join(self.server.jobs, "jobs", job.id)))

    def test_deletes_a_job_that_runs(self):
        job = self.server.create(**ENDLESS)
        self.server.wait_until(job.id, lambda now: now.progress.step > 0)
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)
        self.assert_code(CODE.NOT_FOUND, job.id, self.server.get, job.id)

    def test_jobs_outlive_a_clean_stop(self):
        job = self.server.create(**ENDLESS)
        self.server.wait_until(job.id, lambda now: now.progress.step > 10)
        self.assertEqual(self.server.daemon.stop(), 0)
        self.server.start()
        now = self.server.wait_until(job.id, lambda now: now.state == RUNNING and now.progress.step > 0)
        self.assertGreater(now.progress.checkpoint_step, 10)  # written when it was stopped
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id), timeout=300)
        self.assertEqual(self.server.daemon.stop(), 0)  # also with nothing to do, and not because of the timeout
        self.assertIn(" info stopped\n", self.server.daemon.log_text())
        self.server.start()

    def test_a_bar_that_is_not_met_keeps_the_old_version(self):
        before = self.infer()[0]
        job = self.server.run(epochs=1, optimizer=training.Optimizer(name="sgd", lr=1e-6), evaluation=EVALUATION,
                              publish=training.PublishPolicy(when="at_end", metric="accuracy", bar=0.99))
        self.assertEqual((job.state, job.published_version), (COMPLETED, 0))
        self.assertIn("not published: accuracy is", job.message)
        self.assertEqual(self.infer()[0], before)

    def test_the_best_is_not_the_last(self):
        """The learning rate grows until the decay of the weights turns them around."""
        job, points = self.server.watch(self.server.create(
            steps=16, optimizer=training.Optimizer(name="sgd", lr=0.1, weight_decay=1),
            schedule=training.Schedule(name="step", step_size=4, gamma=8.0),
            evaluation=training.Evaluation(fraction=0.2, every_steps=2, metrics=["loss"]),
            publish=training.PublishPolicy(when="best", metric="loss")).id)
        self.assertEqual(job.state, COMPLETED, job.message)
        losses = {point.step: point.metrics["loss"] for point in points if "loss" in point.metrics}
        best = min(losses, key=lambda step: (losses[step], -step))  # the later of two equally good ones
        self.assertLess(best, max(losses), losses)
        self.assertEqual((job.progress.best_step, job.progress.best_metric), (best, losses[best]))

    def test_evaluation_is_what_pytorch_finds_in_eval_mode(self):
        """With dropout and batch norms; evaluating changes nothing, however often it is done."""
        x, y = models.clusters(300, 16, 4, seed=3, spread=4.0)
        self.server.save_data("held_out.pt", x=x, y=y)

        def run(every_steps):
            return self.server.run(
                model=FIRST_NORMS, data="norms.pt", steps=30, optimizer=ADAM, publish=AT_END,
                evaluation=training.Evaluation(file="held_out.pt", every_steps=every_steps, batch_size=128,
                                               metrics=["loss", "accuracy", "top_2_accuracy"]))

        job, once = run(1), run(30)
        weights, same = (self.server.weights("norms", each.published_version) for each in (job, once))
        for name, tensor in weights.items():
            self.assertTrue(torch.equal(tensor, same[name]), name)
        module = torch.jit.load(self.server.model_file("norms", job.published_version)).eval()
        with torch.no_grad():
            scores = module(x)
        expected = {"loss": torch.nn.functional.cross_entropy(scores, y),
                    "accuracy": (scores.argmax(1) == y).float().mean(),
                    "top_2_accuracy": (scores.topk(2, 1).indices == y[:, None]).any(1).float().mean()}
        for each in (job, once):
            for name, value in expected.items():
                self.assertAlmostEqual(each.progress.metrics[name], float(value), delta=1e-4, msg=name)

    def test_the_loss_may_be_a_method_of_the_script(self):
        first = training.ModelSource(name="mlp", version=1)
        ours = self.server.run(model=first, builtin="", loss=training.Loss(method="training_step"), epochs=3,
                               optimizer=ADAM, publish=AT_END)
        theirs = self.server.run(model=first, epochs=3, optimizer=ADAM, publish=AT_END)
        self.assertEqual((ours.state, theirs.state), (COMPLETED, COMPLETED), ours.message)
        ours, theirs = (self.server.weights("mlp", job.published_version) for job in (ours, theirs))
        for name in ours:
            self.assertTrue(torch.allclose(ours[name], theirs[name], atol=1e-5), name)

    def test_frozen_parameters_stay(self):
        before = self.server.weights("mlp", 1)
        job = self.server.run(model="mlp", epochs=1, publish=AT_END, optimizer=training.Optimizer(
            name="sgd", lr=0.1, momentum=0.9, groups=[training.ParameterGroup(pattern="hidden.*", freeze=True)]))
        self.assertEqual(job.state, COMPLETED, job.message)
        base = self.server.weights("mlp", job.base_version)
        after = self.server.weights("mlp", job.published_version)
        for name in before:
            self.assertEqual(torch.equal(base[name], after[name]), name.startswith("hidden."), name)

    def test_optimizers_and_losses(self):
        x, _ = models.clusters(200, 16, 4, seed=3)
        self.server.save_data("values.pt", x=x, y=torch.rand(200, 4))
        jobs = [dict(data="norms.pt", optimizer=training.Optimizer(name=name, lr=0.1 if name == "lbfgs" else 1e-3))
                for name in ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lbfgs")]
        jobs += [dict(data="values.pt", builtin=name)
                 for name in ("mse", "l1", "smooth_l1", "huber", "bce_with_logits")]
        for fields in jobs:
            with self.subTest(str(fields)):
                first, points = self.server.watch(self.server.create(model=FIRST_NORMS, epochs=6, **fields).id)
                self.assertEqual(first.state, COMPLETED, first.message)
                losses = [point.loss for point in points]
                third = len(losses) // 3
                self.assertLess(sum(losses[-third:]), sum(losses[:third]))

    def test_options_by_name(self):
        # Options without a field of their own are in the map; others may be.
        def adagrad(**options):
            optimizer = training.Optimizer(name="adagrad", lr=0.1)
            optimizer.options.update(options)
            return dict(model=training.ModelSource(name="mlp", version=1), steps=1, publish=AT_END, optimizer=optimizer)

        def moved(job):
            self.assertEqual(job.state, COMPLETED, job.message)
            before = self.server.weights("mlp", job.base_version)
            after = self.server.weights("mlp", job.published_version)
            return max(float((before[name] - after[name]).abs().max()) for name in before)

        slow = self.server.run(**adagrad(initial_accumulator_value=1e6, lr_decay=0.5))
        self.assertEqual(dict(slow.spec.optimizer.options), {"initial_accumulator_value": 1e6})
        self.assertEqual(slow.spec.optimizer.lr_decay, 0.5)
        self.assertLess(moved(slow), 1e-3)
        self.assertGreater(moved(self.server.run(**adagrad())), 0.05)
        for message, options in (("optimizer.nope: there is no such field", {"nope": 1}),
                                 ("optimizer.eps: must be a number", {"eps": True}),
                                 ("optimizer.options: lr appears twice", {"lr": 1}),
                                 ("optimizer.initial_accumulator_value: must be a number of at least 0",
                                  {"initial_accumulator_value": -1})):
            self.assert_code(CODE.INVALID_ARGUMENT, message, self.server.create, **adagrad(**options))
        self.assert_code(CODE.INVALID_ARGUMENT, "optimizer.beta1: must be a number of at least 0 and below 1, got 1",
                         self.server.create, epochs=1, optimizer=training.Optimizer(name="adam", beta1=1))

    def test_uploads(self):
        with open(self.server.model_file("norms", 1), "rb") as archive:
            data = archive.read()
        pieces = [training.UploadModelRequest(data=data[i:i + 10000], size_bytes=len(data) if i == 0 else 0)
                  for i in range(0, len(data), 10000)]
        upload = self.server.stub.UploadModel(iter(pieces), timeout=300)
        self.assertEqual(upload.size_bytes, len(data))
        job = self.server.run(model=training.ModelSource(upload_id=upload.upload_id), data="norms.pt", epochs=1,
                              publish=training.PublishPolicy(when="at_end", model="brought"))
        self.assertEqual((job.state, job.published_version), (COMPLETED, 1), job.message)
        self.assertEqual(self.server.weights("brought", 1).keys(), self.server.weights("norms", 1).keys())
        self.assert_code(CODE.NOT_FOUND, "upload_id", self.server.create,
                         model=training.ModelSource(upload_id="upload-none", name="m"), epochs=1)
        self.assert_code(CODE.DATA_LOSS, "", self.server.stub.UploadModel,
                         iter([training.UploadModelRequest(data=data[:500])]), timeout=300)
        self.assert_code(CODE.INVALID_ARGUMENT, "announced", self.server.stub.UploadModel,
                         iter([training.UploadModelRequest(data=data, size_bytes=5)]), timeout=300)
        uploads = os.listdir(os.path.join(self.server.jobs, "uploads"))
        self.assertEqual(uploads, [upload.upload_id])

    def test_metrics_by_job(self):
        job = self.server.run(epochs=1, evaluation=EVALUATION)
        daemon = self.server.daemon
        self.assertEqual(daemon.metric("tensord_training_steps_total", job_id=job.id), 16)
        self.assertEqual(daemon.metric("tensord_training_samples_total", job_id=job.id, model="mlp"), 800)
        self.assertEqual(daemon.metric("tensord_training_job_state", job_id=job.id, state="COMPLETED"), 1)
        self.assertEqual(daemon.metric("tensord_training_job_state", job_id=job.id), 1)
        self.assertEqual(daemon.metric("tensord_training_metric", job_id=job.id, metric="accuracy"),
                         job.progress.metrics["accuracy"])
        checked = subprocess.run(["promtool", "check", "metrics"], input=daemon.metrics(), capture_output=True,
                                 text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.server.stub.DeleteJob(training.DeleteJobRequest(id=job.id))
        self.assertNotIn(job.id, "\n".join(
            line for line in daemon.metrics().splitlines() if line.startswith("tensord_training")))

    def command(self, *args, code=0):
        result = subprocess.run([BINARY, *args[:1], "--address", self.server.daemon.ready["grpc"], *args[1:]],
                                capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout if code == 0 else result.stderr

    def test_commands(self):
        train = ("train", "mlp", "--data", "clusters.pt", "--label", "y", "--loss", "cross_entropy")
        printed = self.command(*train, "--epochs", "3", "--optimizer", "adam", "--lr", "0.01", "--eval-fraction", "0.2",
                            "--metrics", "accuracy,loss", "--batch-size", "50", "--freeze", "hidden.bias")
        self.assertIn("COMPLETED", printed)
        self.assertIn("█", printed)
        job_id = printed.split()[1]
        lines = self.command(*train, "--epochs", "1", "--json").splitlines()
        self.assertEqual(json.loads(lines[-1])["job"]["state"], "COMPLETED")
        self.assertIn(job_id, self.command("jobs", "list"))
        listed = [json.loads(line) for line in self.command("jobs", "list", "--json").splitlines()]
        self.assertIn(job_id, [job["id"] for job in listed])
        self.assertIn("accuracy", self.command("jobs", "show", job_id))
        endless = self.command(*train, "--steps", "10000000", "--detach").strip()
        self.command("jobs", "pause", endless)
        self.assertIn("PAUSED", self.command("jobs", "watch", endless))
        self.command("jobs", "resume", endless)
        self.command("jobs", "cancel", endless)
        self.assertIn("CANCELLED", self.command("jobs", "watch", endless))
        self.command("jobs", "delete", endless)
        self.assertIn("there is no training job", self.command("jobs", "show", endless, code=1))
        self.assertIn("optimizer.lr", self.command(*train, "--epochs", "1", "--lr=-1", code=2))

    def test_bars_are_for_terminals(self):
        train = ("train", "mlp", "--data", "clusters.pt", "--label", "y", "--loss", "cross_entropy", "--epochs", "3",
                 "--address", self.server.daemon.ready["grpc"])
        code, out, shown = on_terminal(*train)
        self.assertEqual(code, 0, shown)
        self.assertIn("▕", shown)
        self.assertNotIn("▕", out)
        self.assertIn("COMPLETED", out)
        code, out, shown = on_terminal(*train, "--json")
        self.assertEqual((code, shown), (0, ""))
        done = subprocess.run([BINARY, *train], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = self.command("jobs", "list").splitlines()
        self.assertRegex(lines[0], "^ID +NAME +MODEL +STATE +STEP +LOSS")
        columns = [line.find(" mlp ") for line in lines[1:] if " mlp " in line]  # other tests upload models too
        self.assertGreater(len(columns), 1)
        self.assertEqual(set(columns), {lines[0].find(" MODEL")})

    def test_command_attaches_to_the_job_of_its_name(self):
        train = ("train", "mlp", "--data", "clusters.pt", "--label", "y", "--loss", "cross_entropy", "--attach")
        first = self.command(*train, "--epochs", "2", "--name", "again", "--detach").strip()
        self.assertEqual(self.command(*train, "--epochs", "2", "--name", "again", "--detach").strip(), first)
        printed = self.command(*train, "--epochs", "2", "--name", "again")
        self.assertIn(first, printed)
        self.assertIn("COMPLETED", printed)
        self.assertIn("needs --name", self.command(*train, "--epochs", "2", code=2))
        stopped = self.command(*train, "--steps", "10000000", "--name", "stopped", "--detach").strip()
        self.assertNotEqual(stopped, first)
        self.command("jobs", "cancel", stopped)
        # It is not restarted by accident.
        self.command(*train, "--steps", "10000000", "--name", "stopped", code=1)

    def test_command_attaches_to_no_other_job(self):
        train = ("train", "mlp", "--data", "clusters.pt", "--label", "y", "--loss", "cross_entropy", "--attach",
                 "--name", "one", "--detach")
        first = self.command(*train, "--epochs", "2", "--lr", "0.01", "--input", "x=x").strip()
        for flags, difference in {
                ("--epochs", "3", "--lr", "0.01", "--input", "x=x"): "epochs (2 there, 3 here)",
                ("--epochs", "2", "--lr", "0.02", "--input", "x=x"): "optimizer.lr (0.01 there, 0.02 here)",
                ("--epochs", "2", "--lr", "0.01"): 'data.inputs.x ("x" there, none here)',
                ("--epochs", "2", "--lr", "0.01", "--input", "x=x", "--eval-fraction", "0.5"):
                    "evaluation.fraction (none there, 0.5 here)"}.items():
            with self.subTest(difference):
                printed = self.command(*train, *flags, code=2)
                self.assertIn(f"job '{first}' of this --name is another one: ", printed)
                self.assertIn(difference, printed)
        # A default that is spelled out is the same, and so is a version that the server chose.
        self.assertEqual(self.command(*train, "--epochs", "2", "--lr", "0.01", "--input", "x=x", "--optimizer", "adamw",
                                      "--batch-size", "32", "--publish", "never").strip(), first)

    def test_the_record_of_a_published_version(self):
        models.save(models.Line(), self.server.models, "worse")
        self.server.save_data("line.pt", x=torch.rand(64, 1), y=torch.rand(64, 1))
        self.server.restart()
        # It diverges: the first evaluation is the best one.
        printed = self.command("train", "worse", "--data", "line.pt", "--eval-data", "line.pt", "--label", "y", "--loss",
                            "mse", "--epochs", "6", "--batch-size", "64", "--optimizer", "sgd", "--lr", "3", "--seed", "5",
                            "--metrics", "loss,mae", "--publish", "best", "--metric", "loss", "--bar", "1000")
        job_id = printed.split()[1]
        job = self.server.get(job_id)
        self.assertEqual((job.state, job.published_version), (COMPLETED, 2), job.message)
        self.assertEqual((job.progress.step, job.progress.best_step), (6, 1))
        self.assertGreater(job.progress.metrics["loss"], 1000)
        self.assertIn("best        step 1: loss ", printed)
        self.assertIn("published   version 2, the weights of step 1", printed)
        with open(os.path.join(self.server.models, "worse", "2", "job.json")) as file:
            record = json.load(file)
        # An audit: the published weights are these, they meet their bar, and come from this data.
        layer = torch.jit.load(self.server.model_file("worse", 2))
        data = torch.load(os.path.join(self.server.data, "line.pt"))
        loss = float((layer(data["x"]) - data["y"]).square().mean())
        self.assertAlmostEqual(record["metrics"]["loss"], loss, delta=1e-5 * loss)
        self.assertLess(record["metrics"]["loss"], record["spec"]["publish"]["bar"])
        self.assertEqual(dict(job.progress.best_metrics), record["metrics"])
        self.assertEqual((record["step"], record["last_step"], record["seed"]), (1, 6, 5))
        self.assertEqual(record["base_version"], 1)

        def sha256(path):
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()

        self.assertEqual(record["base_sha256"], sha256(self.server.model_file("worse", 1)))
        line = os.path.join(self.server.data, "line.pt")
        self.assertEqual([(note["use"], note["file"], note["size_bytes"], note["sha256"]) for note in record["data"]],
                         [(use, "line.pt", os.path.getsize(line), sha256(line)) for use in ("training", "evaluation")])
        self.assertEqual(record["spec"]["optimizer"], {"name": "sgd", "lr": 3})

    def test_a_daemon_without_training_says_so(self):
        from tests.e2e.daemon import Daemon
        with Daemon(self.server.models) as daemon:
            self.assert_code(CODE.UNIMPLEMENTED, "--training-dir", daemon.training.ListJobs, training.ListJobsRequest())
            self.assert_code(CODE.UNIMPLEMENTED, "--training-dir", daemon.training.CreateJob,
                             training.CreateJobRequest(spec=spec()))


if __name__ == "__main__":
    unittest.main()
