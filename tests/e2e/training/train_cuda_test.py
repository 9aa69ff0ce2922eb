"""Training jobs on a CUDA device: losses, weights and checkpoints as on the CPU. On the emulated devices (tests/cuda/emulated)."""

import os
import shutil
import subprocess
import time
import unittest

import grpc
import torch
from torch import Tensor, nn

from tests.e2e.daemon import BINARY, RpcAssertions, training
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import COMPLETED, PAUSED, TrainingDaemon

EMULATED = os.path.join(os.path.dirname(BINARY), "..", "lib", "tensord", "libtensord_cuda_emulated.so")
FILES = {"script": "model.pt", "program": "model.pt2", "onnx": "model.onnx"}


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags, self.scores = nn.EmbeddingBag(20, 3, sparse=True, mode="mean"), nn.Embedding(20, 3, sparse=True, padding_idx=0)

    def forward(self, x: Tensor) -> Tensor:
        return self.bags(x) + self.scores(x).sum(1)


class Tokens(nn.Module):
    """Attention with dropout over an embedding, whose rows many tokens share, and pooling with windows that overlap."""

    def __init__(self):
        super().__init__()
        self.rows, self.pool, self.scores = nn.Embedding(5, 8), nn.MaxPool1d(3, 1), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.rows(x).unsqueeze(1)
        mixed = torch.nn.functional.dropout((rows @ rows.transpose(-2, -1)).softmax(-1), 0.2, self.training) @ rows
        return self.scores(self.pool(mixed.squeeze(1).transpose(1, 2)).mean(2))


class Warped(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 1)

    def forward(self, input: Tensor) -> Tensor:
        grid = torch.zeros([input.size(0), 3, 3, 2], device=input.device)
        return torch.nn.functional.grid_sample(self.conv(input), grid, align_corners=False).mean([2, 3])


@unittest.skipUnless(os.path.exists(EMULATED), f"no {EMULATED}: Boost.Context is missing, or it is not built")
class TrainCudaTest(unittest.TestCase, RpcAssertions):
    @classmethod
    def setUpClass(cls):
        os.environ["TENSORD_CUDA"] = EMULATED
        os.environ["TENSORD_CUDA_SEED"] = "7"  # threads come in another order at each launch
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--device", "cuda:0")
        x = torch.randn(40, 6)
        cls.server.save_data("rows.pt", input=x, y=x @ torch.randn(6, 3))
        cls.server.save_data("classes.pt", input=x, y=torch.arange(40) % 3)
        net = nn.Sequential(nn.Linear(6, 16), nn.Sigmoid(), nn.Linear(16, 3)).eval()
        archive = os.path.join(cls.server.folder.name, "net.pt")
        torch.jit.script(net).save(archive)
        for kind, file in FILES.items():
            folder = os.path.join(cls.server.models, kind, "1")
            os.makedirs(folder)
            if kind == "script":
                shutil.copy(archive, os.path.join(folder, file))
            else:
                subprocess.run([BINARY, "convert", archive, "--to", file.rsplit(".", 1)[1], "--input", "2,6", "--dynamic", "input:0",
                                "-o", os.path.join(folder, file)], check=True, capture_output=True)
        ids = torch.randint(0, 20, (40, 5))
        cls.server.save_data("words.pt", x=ids, y=ids[:, 0] % 3)
        models.save(Words(), cls.server.models, "words")
        tokens = torch.randint(0, 5, (40, 12))
        cls.server.save_data("tokens.pt", x=tokens, y=tokens.sum(1) % 3)
        models.save(Tokens(), cls.server.models, "tokens")
        cls.server.save_data("images.pt", input=torch.randn(16, 1, 4, 4), y=torch.randn(16, 2))
        models.save(Warped(), cls.server.models, "warped")
        drops = os.path.join(cls.server.models, "drops", "1")
        os.makedirs(drops)
        torch.jit.script(nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.5), nn.Linear(16, 3)).eval()).save(os.path.join(drops, "model.pt"))
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        del os.environ["TENSORD_CUDA"], os.environ["TENSORD_CUDA_SEED"]

    def needs(self, *operators):
        """Skips the test where CUDA has no code for one of these yet."""
        for name in operators:
            table = subprocess.run([BINARY, "ops", "--table", name], check=True, capture_output=True, text=True).stdout
            if " CUDA " not in table.split("tensord::")[1]:
                self.skipTest(f"{name} has no kernel for CUDA yet")

    def job(self, model, device, **fields):
        given = dict(data="rows.pt", builtin="mse", steps=20, batch_size=8,
                     optimizer=training.Optimizer(name="adam", lr=5e-2),
                     evaluation=training.Evaluation(fraction=0.2, metrics=["loss", "mae"]))
        given.update(fields)
        return dict(model=training.ModelSource(name=model, version=1), resources=training.Resources(device=device), seed=3,
                    publish=training.PublishPolicy(when="at_end"), **given)

    def run_job(self, model, device, **fields):
        created = self.server.create(**self.job(model, device, **fields))
        job, points = self.server.watch(created.id)
        self.assertEqual(job.state, COMPLETED, job.message + self.server.daemon.log_text()[-3000:])
        return job, [point.loss for point in points]

    def assert_close(self, one, other):
        self.assertEqual(len(one), len(other))
        for a, b in zip(one, other):
            self.assertAlmostEqual(a, b, delta=1e-4 * max(1, abs(b)))

    def test_losses_and_weights_are_those_of_the_cpu(self):
        self.needs("tensord::adam_step_", "tensord::grad_norm")
        for kind in FILES:
            with self.subTest(kind):
                results = []
                for device in ("", "cuda:1"):
                    job, losses = self.run_job(kind, device)
                    file = os.path.join(self.server.models, kind, str(job.published_version), FILES[kind])
                    result = file + ".result"
                    subprocess.run([BINARY, "run", file, "--input", "2,6", "--output", result], check=True, capture_output=True)
                    answer = torch.load(result)
                    results.append((losses, answer if isinstance(answer, torch.Tensor) else answer[0], dict(job.progress.metrics)))
                    os.remove(result)
                (losses, answer, metrics), (gpu_losses, gpu_answer, gpu_metrics) = results
                self.assertLess(losses[-1], losses[0])
                self.assert_close(gpu_losses, losses)
                torch.testing.assert_close(gpu_answer, answer, atol=1e-4, rtol=1e-4)
                self.assert_close([gpu_metrics[name] for name in sorted(metrics)], [metrics[name] for name in sorted(metrics)])

    def test_classes_are_checked_and_trained(self):
        self.needs("tensord::cross_entropy", "tensord::cross_entropy_backward", "tensord::adam_step_", "tensord::clip_grad_norm_")
        fields = dict(data="classes.pt", builtin="cross_entropy", clipping=training.Clipping(norm=1.0),
                      evaluation=training.Evaluation(fraction=0.2, metrics=["loss", "accuracy"]))
        self.assert_close(self.run_job("script", "cuda:0", **fields)[1], self.run_job("script", "", **fields)[1])

    def test_sparse_gradients_train_as_on_the_cpu(self):
        for name in ("sgd", "adagrad", "sparseadam"):
            with self.subTest(name):
                fields = dict(data="words.pt", builtin="cross_entropy", optimizer=training.Optimizer(name=name, lr=5e-2),
                              clipping=training.Clipping(norm=1.0), evaluation=training.Evaluation(fraction=0.2, metrics=["loss"]))
                losses = self.run_job("words", "cuda:0", **fields)[1]
                self.assertLess(losses[-1], losses[0])
                self.assert_close(losses, self.run_job("words", "", **fields)[1])

    def test_a_job_goes_on_from_its_checkpoint(self):
        self.needs("tensord::adam_step_", "tensord::grad_norm")
        for model in ("script", "drops"):
            with self.subTest(model):
                self.goes_on(model)

    def goes_on(self, model):
        whole = self.run_job(model, "cuda:0", steps=24)[1]
        created = self.server.create(**self.job(model, "cuda:0", steps=24, checkpoints=training.CheckpointPolicy(every_steps=4)))
        for _ in range(400):
            if self.server.get(created.id).progress.step >= 4:
                break
            time.sleep(0.01)
        self.server.stub.PauseJob(training.PauseJobRequest(id=created.id))
        job, _ = self.server.watch(created.id)
        if job.state == PAUSED:
            self.server.stub.ResumeJob(training.ResumeJobRequest(id=created.id))
        job, points = self.server.watch(created.id)
        self.assertEqual(job.state, COMPLETED, job.message)
        self.assert_close([point.loss for point in points], whole)

    def test_mixed_precision_follows_float32(self):
        fields = dict(ema_decay=0.5, steps=30)
        job, whole = self.run_job("script", "cuda:0", **fields)
        for precision, scale in (("bf16-mixed", 0), ("16-mixed", 1024)):
            with self.subTest(precision):
                job, losses = self.run_job("script", "cuda:0", precision=precision, loss_scale=scale, **fields)
                self.assertEqual((job.progress.loss_scale, job.progress.skipped_steps), (scale, 0))
                self.assertNotEqual(losses, whole)
                for one, other in zip(losses, whole):
                    self.assertAlmostEqual(one, other, delta=0.03 * max(1, abs(other)))
                self.assertEqual({tensor.dtype for tensor in self.published("script").values()}, {torch.float32})

    def test_bce_in_mixed_precision_is_refused(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.server.create(**self.job("script", "cuda:0", builtin="bce", precision="16-mixed"))
        self.assertIn("precision: 16-mixed is not for bce on a GPU", caught.exception.details())

    def test_deterministic_jobs_resume_with_the_same_bits(self):
        self.check_resumed_bits()

    def test_deterministic_jobs_in_mixed_precision_resume_with_the_same_bits(self):
        self.check_resumed_bits(precision="bf16-mixed")

    def check_resumed_bits(self, **more):
        fields = dict(more, data="tokens.pt", builtin="cross_entropy", steps=24, deterministic=True, evaluation=training.Evaluation(),
                      clipping=training.Clipping(norm=1.0))
        _, whole = self.run_job("tokens", "cuda:0", **fields)
        weights = self.published("tokens")
        created = self.server.create(**self.job("tokens", "cuda:0", checkpoints=training.CheckpointPolicy(every_steps=4), **fields))
        for _ in range(400):
            if self.server.get(created.id).progress.step >= 4:
                break
            time.sleep(0.01)
        self.server.stub.PauseJob(training.PauseJobRequest(id=created.id))
        job, _ = self.server.watch(created.id)
        if job.state == PAUSED:
            self.server.stub.ResumeJob(training.ResumeJobRequest(id=created.id))
        job, points = self.server.watch(created.id)
        self.assertEqual(job.state, COMPLETED, job.message)
        self.assertEqual([point.loss for point in points], whole)
        again = self.published("tokens")
        for name, tensor in weights.items():
            self.assertTrue(torch.equal(tensor, again[name]), name)

    def published(self, model):
        folder = os.path.join(self.server.models, model)
        newest = max(os.listdir(folder), key=lambda name: int(name) if name.isdigit() else -1)
        return torch.jit.load(os.path.join(folder, newest, "model.pt")).state_dict()

    def test_what_is_not_deterministic_is_refused_by_name(self):
        created = self.server.create(**self.job("warped", "cuda:0", data="images.pt", deterministic=True, evaluation=training.Evaluation()))
        job, _ = self.server.watch(created.id)
        self.assertIn("grid_sampler_backward does not have a deterministic implementation on CUDA", job.message)
        self.run_job("warped", "cuda:0", data="images.pt", steps=2, evaluation=training.Evaluation())

    def test_what_is_not_there_is_refused_by_name(self):
        for device, more, text in (("cuda:7", {}, "resources.device: device cuda:7 is not available"),
                                   ("gpu", {}, "resources.device: "),
                                   ("cuda:0", {"distribution": training.Distribution(world_size=2)}, "ranks of a distribution train on the CPU")):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.create(**self.job("script", device, **more))
            self.assertIn(text, caught.exception.details())


if __name__ == "__main__":
    unittest.main()
