"""Loss curves of jobs compared with PyTorch's, for the same data in the same order: a transformer on a small text, and
resnet18 on generated images.

A ReLU or a max pool occasionally decides by less than float32's rounding, and over 8 images with batch norms that
changes the loss: at a learning rate of 0.002 PyTorch's own curves with and without oneDNN differ by 0.003 after 5
steps. So the original resnet18 is compared in float64, in float32 at a tenth of that rate (where PyTorch's curves
differ by 0.0003), and in float32 with SiLU and average pools, where PyTorch's two curves agree to 2e-6.
"""

import copy
import unittest

import torch
import torchvision
from torch import Tensor, nn

from tests.e2e.daemon import training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon, spec
from tests.e2e.training.training_models import save

TEXT = ("the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. how vexingly quick daft "
        "zebras jump. sphinx of black quartz, judge my vow. the five boxing wizards jump quickly. ") * 4
WINDOW = 24


class TextModel(nn.Module):
    """Returns scores of the next character at each position: (rows, characters, positions), as cross entropy expects
    them."""

    def __init__(self, characters: int, width: int = 32):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.places = nn.Parameter(torch.randn(WINDOW, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.scores = nn.Linear(width, characters)
        self.register_buffer("mask", torch.triu(torch.full((WINDOW, WINDOW), float("-inf")), 1))

    def forward(self, text: Tensor) -> Tensor:
        hidden = self.encoder(self.embed(text) + self.places, self.mask)
        return self.scores(hidden).transpose(1, 2)


def text_data():
    characters = sorted(set(TEXT))
    codes = torch.tensor([characters.index(c) for c in TEXT])
    windows = codes.unfold(0, WINDOW + 1, 3)
    return len(characters), windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def without_branching(module):
    """`module` with every ReLU a SiLU and every max pool a mean pool; changed in place."""
    for name, child in module.named_children():
        if isinstance(child, nn.ReLU):
            setattr(module, name, nn.SiLU())
        elif isinstance(child, nn.MaxPool2d):
            setattr(module, name, nn.AvgPool2d(child.kernel_size, child.stride, child.padding))
        else:
            without_branching(child)
    return module


class CurvesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = TrainingDaemon()
        torch.manual_seed(0)
        characters, text, following = text_data()
        cls.transformer = TextModel(characters)
        cls.resnet = torchvision.models.resnet18(num_classes=5)
        save(cls.transformer, cls.server.models, "transformer")
        cls.smooth = without_branching(copy.deepcopy(cls.resnet))
        cls.floats = copy.deepcopy(cls.resnet)
        cls.resnet.double()
        save(cls.resnet, cls.server.models, "resnet")
        save(cls.floats, cls.server.models, "floats")
        save(cls.smooth, cls.server.models, "smooth")
        cls.text = (text, following)
        cls.server.save_data("text.pt", text=text, following=following)
        labels = torch.randint(5, (32,))
        cls.images = (torch.randn(32, 3, 48, 48) + labels.view(-1, 1, 1, 1) * 0.3, labels)
        cls.server.save_data("images.pt", x=cls.images[0], y=labels)
        cls.server.save_data("doubles.pt", x=cls.images[0].double(), y=labels)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def curve(self, **fields):
        message = spec(**fields)
        message.data.shuffle = False
        job = self.server.stub.CreateJob(training.CreateJobRequest(spec=message), timeout=300)
        job, points = self.server.watch(job.id)
        self.assertEqual(job.state, COMPLETED, job.message)
        self.assertEqual([point.step for point in points], list(range(1, job.progress.total_steps + 1)))
        return points

    def pytorch_curve(self, module, optimizer, data, batch_size, steps, schedule=None, clip=None):
        module.train()
        losses, norms = [], []
        rows = len(data[0])
        starts = [start for _ in range(steps) for start in range(0, rows, batch_size)][:steps]
        for start in starts:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(module(data[0][start:start + batch_size]),
                                               data[1][start:start + batch_size])
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(module.parameters(), clip or float("inf"))
            optimizer.step()
            if schedule:
                schedule.step()
            losses.append(loss.item())
            norms.append(norm.item())
        return losses, norms

    def assert_close(self, points, losses, norms, tolerance):
        for point, loss, norm in zip(points, losses, norms):
            self.assertLess(abs(point.loss - loss), tolerance * (1 + loss), f"step {point.step}: {point.loss} {loss}")
            self.assertLess(abs(point.gradient_norm - norm), 10 * tolerance * (1 + norm), f"step {point.step}")

    def test_a_transformer_on_a_small_text(self):
        steps = 60
        points = self.curve(
            model="transformer", data="text.pt", label="following", steps=steps, batch_size=16,
            optimizer=training.Optimizer(name="adamw", lr=3e-3, weight_decay=0.01),
            schedule=training.Schedule(name="cosine"), clipping=training.Clipping(norm=1.0))
        optimizer = torch.optim.AdamW(self.transformer.parameters(), lr=3e-3, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        losses, norms = self.pytorch_curve(self.transformer, optimizer, self.text, 16, steps, schedule, clip=1.0)
        self.assert_close(points, losses, norms, 2e-3)
        self.assertLess(losses[-1], losses[0] / 1.5)
        self.assertAlmostEqual(points[steps // 2].learning_rate, 1.5e-3, places=6)

    def check_resnet(self, model, module, data, images, tolerance, rate=0.002):
        steps = 6
        points = self.curve(model=model, data=data, steps=steps, batch_size=8,
                            optimizer=training.Optimizer(name="sgd", lr=rate, momentum=0.9, weight_decay=1e-4))
        optimizer = torch.optim.SGD(module.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
        losses, norms = self.pytorch_curve(module, optimizer, images, 8, steps)
        self.assert_close(points, losses, norms, tolerance)

    def test_resnet18_on_made_images(self):
        images, labels = self.images
        self.check_resnet("resnet", self.resnet, "doubles.pt", (images.double(), labels), 1e-12)

    def test_resnet18_in_float32(self):
        self.check_resnet("floats", self.floats, "images.pt", self.images, 1e-3, rate=0.0002)

    def test_smooth_resnet18_in_float32(self):
        self.check_resnet("smooth", self.smooth, "images.pt", self.images, 2e-5)


if __name__ == "__main__":
    unittest.main()
