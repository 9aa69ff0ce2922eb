"""Folders and archives of images as data of jobs, compared with torchvision's ImageFolder and transforms."""

import io
import json
import os
import subprocess
import tempfile
import time
import unittest
import zipfile

import grpc
import numpy
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision import datasets, transforms

from tests.e2e.daemon import BINARY, RpcAssertions, training
from tests.e2e.training import training_models as models
from tests.e2e.training.training_daemon import COMPLETED, FAILED, JobAssertions, TrainingDaemon

CODE = grpc.StatusCode
SIZE = (24, 20)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PARAMETERS = {"image_resize_size": "32", "image_crop_size": "24,20", "image_mean": "0.485,0.456,0.406", "image_std": "0.229,0.224,0.225"}
NORMALIZED = (transforms.ToTensor(), transforms.Normalize(MEAN, STD))
PREPARE = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(SIZE), *NORMALIZED])
SGD = training.Optimizer(name="sgd", lr=1.0)
SLOW = training.Optimizer(name="sgd", lr=0.01)
AT_END = training.PublishPolicy(when="at_end")
IMAGES = 11
SEED = 7


class Probe(nn.Module):
    """A step of SGD with a rate of 1 leaves the negative images and labels of a batch in its weights."""

    def __init__(self, rows: int):
        super().__init__()
        self.pixels = nn.Parameter(torch.zeros(rows, 3, *SIZE))
        self.classes = nn.Parameter(torch.zeros(rows))

    def forward(self, x: Tensor) -> Tensor:
        return x.mean([1, 2, 3])

    @torch.jit.export
    def take(self, x: Tensor, y: Tensor) -> Tensor:
        rows = x.size(0)
        return (self.pixels[:rows] * x).sum() + (self.classes[:rows] * y.float()).sum()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def picture(number):
    random = numpy.random.default_rng(number)
    height, width = 30 + 7 * (number % 4), 34 + 11 * (number % 3)
    y, x = numpy.mgrid[:height, :width]
    planes = [128 + 120 * numpy.sin(x / (3 + number % 5) + i) * numpy.cos(y / (4 + i)) + random.normal(0, 6, x.shape) for i in range(3)]
    return Image.fromarray(numpy.clip(numpy.stack(planes, -1), 0, 255).astype(numpy.uint8))


def save_pictures(folder):
    """Three classes of different sizes, colors and kinds; nested folders, and a file that is no image."""
    places = ["b cat/1.jpg", "b cat/2.PNG", "b cat/10.jpeg", "b cat/a/x.png", "b cat/a-b/y.png", "b cat/a/c/z.png",
              "Ant/gray.png", "Ant/palette.png", "Ant/0.jpg", "dog/1.jpg", "dog/2.jpg"]
    for number, place in enumerate(places):
        image, path = picture(number), os.path.join(folder, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if "gray" in place:
            image = image.convert("L")
        image.convert("P").save(path) if "palette" in place else image.save(path)
    with open(os.path.join(folder, "dog", "notes.txt"), "w") as file:
        file.write("no image")
    assert len(places) == IMAGES


def archive_of(folder, path, root="", kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for parent, _, names in os.walk(folder):
            for name in names:
                file = os.path.join(parent, name)
                archive.write(file, root + os.path.relpath(file, folder))
        archive.writestr("__MACOSX/._1.jpg", "no image")


def write_config(folder, model, parameters):
    with open(os.path.join(folder, model, "config.pbtxt"), "w") as file:
        for key, value in parameters.items():
            file.write(f'parameters {{ key: "{key}" value: {{ string_value: "{value}" }} }}\n')


def draws_of(seed, index):
    """Seeds torch as the engine seeds the draws of a sample, given the seed of its batch."""
    torch.manual_seed((seed * 0x9E3779B97F4A7C15 + index * 0xBF58476D1CE4E5B9) % 2**64)


class TrainImagesTest(JobAssertions, RpcAssertions, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--allow-http", "true", "--http-port", "0")
        cls.local = tempfile.TemporaryDirectory()
        models.save(Probe(IMAGES), cls.server.models, "probe")
        models.save(Net(), cls.server.models, "net")
        models.save(Net(), cls.server.models, "numbers")
        for model in ("probe", "net"):
            write_config(cls.server.models, model, PARAMETERS)
        cls.folder = os.path.join(cls.server.data, "pets")
        save_pictures(cls.folder)
        archive_of(cls.folder, os.path.join(cls.server.data, "pets.zip"))
        cls.images = datasets.ImageFolder(cls.folder)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()
        cls.local.cleanup()

    def probe(self, file="pets", data=None, **fields):
        """The images and labels of a job's only batch."""
        data = data or training.Data()
        data.file, data.shuffle = file, False
        data.inputs["y"] = "labels"
        job = self.server.create(model=training.ModelSource(name="probe", version=1), builtin="", label="", data=data, optimizer=SGD, batch_size=IMAGES,
                                 steps=1, publish=AT_END, loss=training.Loss(method="take"), **fields)
        _, _, weights = self.finished(job, "probe")
        return -weights["pixels"], -weights["classes"]

    def train(self, file="pets", model="net", **fields):
        data = fields.pop("data", training.Data())
        data.file = file
        source = training.ModelSource(name=model, version=1)
        return self.server.create(**{**dict(model=source, data=data, label="labels", optimizer=SLOW, epochs=2, batch_size=4, publish=AT_END), **fields})

    def assert_equals_image_folder(self, probed, transform=PREPARE):
        pixels, classes = probed
        for i, (path, target) in enumerate(self.images.samples):
            self.assertEqual(classes[i].item(), target, path)
            self.assertTrue(torch.equal(pixels[i], transform(self.images[i][0])), path)

    def test_folders_have_the_tensors_of_torchvision(self):
        self.assert_equals_image_folder(self.probe())

    def test_archives_have_them_too(self):
        self.assert_equals_image_folder(self.probe("pets.zip"))
        for root, kind in (("photos/", zipfile.ZIP_STORED), ("", zipfile.ZIP_DEFLATED), ("a b/", zipfile.ZIP_DEFLATED)):
            with self.subTest(root=root, kind=kind):
                archive_of(self.folder, os.path.join(self.server.data, "other.ZIP"), root, kind)
                self.assert_equals_image_folder(self.probe("other.ZIP"))

    def test_parameters_of_the_job_come_before_those_of_the_model(self):
        data = training.Data(image_parameters={"image_resize_size": "40,30", "image_interpolation": "bicubic"})
        prepare = transforms.Compose([transforms.Resize((40, 30), transforms.InterpolationMode.BICUBIC), transforms.CenterCrop(SIZE), *NORMALIZED])
        self.assert_equals_image_folder(self.probe(data=data), prepare)

    def test_random_changes_are_torchvisions(self):
        order = torch.Generator().manual_seed(SEED ^ 0x0BDEB)
        batch_seed = torch.empty((), dtype=torch.int64).random_(generator=order).item()
        flip = transforms.RandomHorizontalFlip(0.5)
        for share, chance, changes in ((0.08, 0.5, [transforms.RandomResizedCrop(SIZE, scale=(0.08, 1)), flip]),
                                       (0.3, 0.0, [transforms.RandomResizedCrop(SIZE, scale=(0.3, 1))]),
                                       (0.0, 0.5, [transforms.Resize(32), transforms.CenterCrop(SIZE), flip])):
            with self.subTest(share=share, chance=chance):
                data = training.Data(random_resized_crop=share, random_horizontal_flip=chance)
                pixels, _ = self.probe(data=data)
                change = transforms.Compose([*changes, *NORMALIZED])
                for i, (image, _) in enumerate(self.images):
                    draws_of(batch_seed, i)
                    self.assertTrue(torch.equal(pixels[i], change(image)), self.images.samples[i])

    def test_evaluations_see_the_images_unchanged(self):
        plain = torch.stack([PREPARE(image) for image, _ in self.images])
        for evaluation in (training.Evaluation(file="pets.zip", metrics=["mse"], batch_size=3), training.Evaluation(file="pets", metrics=["mse"])):
            data = training.Data(file="pets", random_resized_crop=0.1, random_horizontal_flip=0.5, inputs={"y": "labels"})
            job = self.server.run(model=training.ModelSource(name="probe", version=1), data=data, builtin="", label="labels", steps=1,
                                  loss=training.Loss(method="take"), evaluation=evaluation, optimizer=SGD)
            self.assertEqual(job.state, COMPLETED, job.message)
            expected = (plain.mean([1, 2, 3]) - torch.tensor(self.images.targets)).square().mean().item()
            self.assertAlmostEqual(job.progress.metrics["mse"], expected, delta=1e-4 * expected)

    def test_a_killed_job_ends_with_the_same_bits(self):
        fields = dict(epochs=30, evaluation=training.Evaluation(fraction=0.3), checkpoints=training.CheckpointPolicy(every_steps=1))

        def data():
            return training.Data(random_resized_crop=0.2, random_horizontal_flip=0.5)

        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                distribution = training.Distribution(world_size=ranks)
                whole = self.finished(self.train(data=data(), distribution=distribution, **fields), "net")
                job = self.train(data=data(), distribution=distribution, **fields)
                self.server.wait_until(job.id, lambda it: it.progress.checkpoint_step >= 5)
                self.server.restart()
                stopped = self.server.get(job.id)
                self.assertLess(stopped.progress.step, whole[0].progress.step)
                again = self.finished(job, "net")
                for name, weight in whole[2].items():
                    self.assertTrue(torch.equal(weight, again[2][name]), name)

    def test_any_number_of_processes_sees_the_same_images(self):
        weights = []
        for ranks in (1, 2, 3):
            data = training.Data(random_resized_crop=0.2, random_horizontal_flip=0.5)
            job = self.train(data=data, distribution=training.Distribution(world_size=ranks), optimizer=training.Optimizer(name="sgd", lr=0.3))
            weights.append(self.finished(job, "net")[2])
        for other in weights[1:]:
            for name, weight in weights[0].items():
                self.assertTrue(torch.allclose(weight, other[name], rtol=1e-4, atol=1e-6), name)

    def test_the_published_model_takes_the_files(self):
        job = self.finished(self.train(model="net", epochs=1), "net")[0]
        module = torch.jit.load(self.server.model_file("net", job.published_version))
        with open(os.path.join(self.folder, "dog", "1.jpg"), "rb") as file:
            content = file.read()
        expected = module(PREPARE(Image.open(io.BytesIO(content)).convert("RGB"))[None])
        out = self.command("infer", "net", "--input", "@" + os.path.join(self.folder, "dog", "1.jpg"), "--json")
        numbers = torch.tensor(next(iter(json.loads(out)["outputs"].values()))).reshape(expected.shape)
        self.assertTrue(torch.allclose(numbers, expected, atol=1e-5), out)

    def command(self, *arguments, code=0):
        done = subprocess.run([BINARY, *arguments, "--address", self.server.daemon.ready["grpc"]], capture_output=True, text=True, timeout=300,
                              cwd=self.local.name, env={**os.environ, "TMPDIR": self.local.name})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_the_command_uploads_folders(self):
        there = self.finished(self.train(seed=3), "net")
        flags = ("--label", "labels", "--loss", "cross_entropy", "--epochs", "2", "--batch-size", "4", "--optimizer", "sgd", "--lr", "0.01", "--seed", "3",
                 "--publish", "at_end", "--version", "1")
        for attach in ((), ("--attach",)):
            self.command("train", "net", "--upload-data", self.folder, "--upload-eval-data", self.folder, "--name", "from-here", *flags, *attach)
        self.assertEqual(os.listdir(self.local.name), [])
        job = self.server.get("from-here")
        self.assertTrue(job.spec.data.file.endswith(".zip"))
        here = self.finished(job, "net")
        for name, weight in there[2].items():
            self.assertTrue(torch.equal(weight, here[2][name]), name)
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("has no folders of classes", self.command("train", "net", "--upload-data", empty, *flags, code=2))
        self.assertEqual(os.listdir(self.local.name), [])
        # Other parameters than those of the model, which has none.
        self.command("train", "numbers", "--data", "pets", *flags, *(flag for key, value in PARAMETERS.items() for flag in ("--image-parameter", f"{key}={value}")),
                     "--random-resized-crop", "0.5", "--random-horizontal-flip", "0.5", "--name", "changed")
        spec = self.server.get("changed").spec.data
        self.assertEqual((dict(spec.image_parameters), spec.random_resized_crop, spec.random_horizontal_flip), (PARAMETERS, 0.5, 0.5))

    def refuse(self, code, text, *arguments, **fields):
        with self.subTest(text), self.assertRaises(grpc.RpcError) as caught:
            self.train(*arguments, **fields)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertIn(text, caught.exception.details())
        self.assertNotIn(self.server.folder.name, caught.exception.details())  # names, not paths of the server

    def test_what_is_refused_when_a_job_is_created(self):
        bad = os.path.join(self.server.data, "bad", "cat")
        os.makedirs(bad)
        self.refuse(CODE.INVALID_ARGUMENT, "bad/cat: the class has no images", "bad")
        picture(0).save(os.path.join(bad, "0.png"))
        with open(os.path.join(bad, "1.jpg"), "wb") as file:
            file.write(b"no image at all")
        self.refuse(CODE.UNIMPLEMENTED, "data.file: bad/cat/1.jpg: is neither a JPEG nor a PNG", "bad")
        archive_of(os.path.dirname(bad), os.path.join(self.server.data, "bad.zip"))
        self.refuse(CODE.UNIMPLEMENTED, "bad.zip/cat/1.jpg: is neither a JPEG nor a PNG", "bad.zip")
        self.refuse(CODE.UNIMPLEMENTED, "evaluation.file: ", evaluation=training.Evaluation(file="bad"))
        os.rename(os.path.join(bad, "1.jpg"), os.path.join(bad, "1.webp"))
        self.refuse(CODE.UNIMPLEMENTED, "1.webp: images of this kind are not read", "bad")
        os.remove(os.path.join(bad, "1.webp"))
        os.symlink("/etc", os.path.join(bad, "etc"))
        self.refuse(CODE.INVALID_ARGUMENT, "cat/etc: is a link that leads out of the folder of data", "bad")
        os.remove(os.path.join(bad, "etc"))
        os.symlink("nothing", os.path.join(bad, "2.png"))
        self.refuse(CODE.NOT_FOUND, "cat/2.png: is a link that leads nowhere", "bad")
        os.remove(os.path.join(bad, "2.png"))
        small = training.Data(image_parameters={"image_max_pixels": "1000", "image_resize_size": "9", "image_crop_size": "9"})
        self.refuse(CODE.OUT_OF_RANGE, "0.png: an image of 34 x 30 pixels; the limit is 1000", "bad", data=small)
        with open(os.path.join(self.server.data, "broken.zip"), "wb") as file:
            file.write(b"PK")
        self.refuse(CODE.DATA_LOSS, "broken.zip: is not a zip archive", "broken.zip")
        self.refuse(CODE.INVALID_ARGUMENT, "data.image_parameters: how images become the model's input is not known", model="numbers")
        open_size = training.Data(image_parameters={"image_resize_size": "40"})
        self.refuse(CODE.INVALID_ARGUMENT, "images of one size only make a batch", model="numbers", data=open_size)
        for text, parameters in (("parameter image_sizes is not known", {"image_sizes": "3"}), ("none of them begins with image_", {"x": "1"}),
                                 ("image_layout: jobs train with batches", {"image_layout": "CHW"})):
            self.refuse(CODE.INVALID_ARGUMENT, text, model="numbers", data=training.Data(image_parameters={**PARAMETERS, **parameters} if "x" not in parameters else parameters))
        self.refuse(CODE.INVALID_ARGUMENT, "give --input ARGUMENT=labels", model="probe", label="", builtin="", loss=training.Loss(method="take"))
        self.refuse(CODE.INVALID_ARGUMENT, "data.random_horizontal_flip: must be", data=training.Data(random_horizontal_flip=1.5))
        self.server.save_data("rows.pt", x=torch.zeros(4, 3, *SIZE), labels=torch.zeros(4, dtype=torch.int64))
        self.refuse(CODE.INVALID_ARGUMENT, "are for folders and archives of images", "rows.pt", model="numbers", data=training.Data(random_horizontal_flip=0.5))

    def test_hostile_folders_and_archives(self):
        content = io.BytesIO()
        picture(1).save(content, "PNG")
        image = content.getvalue()

        def archive(name, *entries):
            with zipfile.ZipFile(os.path.join(self.server.data, name), "w") as file:
                for entry, data in entries:
                    file.writestr(entry, data)
            return name

        # Nothing is unpacked, so names lead nowhere.
        for name in (archive("up.zip", ("../x/1.png", image), ("../y/2.png", image)), archive("absolute.zip", ("/x/1.png", image), ("/y/2.png", image))):
            job = self.server.watch(self.train(name).id)[0]
            self.assertEqual(job.state, COMPLETED, job.message)
        self.refuse(CODE.INVALID_ARGUMENT, "flat.zip: has no folders of classes", archive("flat.zip", ("1.png", image)))
        self.refuse(CODE.INVALID_ARGUMENT, "hollow.zip/a: the class has no images", archive("hollow.zip", ("a/", b""), ("b/1.png", image)))
        self.refuse(CODE.UNIMPLEMENTED, "empty.zip/a/1.png: is neither", archive("empty.zip", ("a/1.png", b""), ("b/1.png", image)))
        self.refuse(CODE.DATA_LOSS, "is not a zip archive", archive("none.zip"))
        folder = os.path.join(self.server.data, "pipe", "a")
        os.makedirs(folder)
        os.mkfifo(os.path.join(folder, "1.png"))
        self.refuse(CODE.INVALID_ARGUMENT, "pipe/a/1.png: is not a regular file", "pipe")

    def test_a_damaged_image_fails_the_job_by_its_name(self):
        folder = os.path.join(self.server.data, "damaged")
        save_pictures(folder)
        path = os.path.join(folder, "dog", "2.jpg")
        with open(path, "rb+") as file:
            file.truncate(os.path.getsize(path) - 60)
        for ranks in (0, 2):
            job = self.server.watch(self.train("damaged", distribution=training.Distribution(world_size=ranks)).id)[0]
            self.assertEqual(job.state, FAILED)
            self.assertIn("sample 10: damaged/dog/2.jpg: damaged JPEG: the image is truncated", job.message)

    def test_images_are_decoded_while_a_step_computes(self):
        job = self.train(epochs=40, batch_size=2)
        threads = set()
        deadline = time.monotonic() + 60
        while not threads & {"data-loader"} and time.monotonic() < deadline:
            for task in os.listdir(f"/proc/{self.server.daemon.process.pid}/task"):
                try:
                    with open(f"/proc/{self.server.daemon.process.pid}/task/{task}/comm") as file:
                        threads.add(file.read().strip())
                except OSError:
                    pass
        self.assertIn("data-loader", threads)
        done = self.server.watch(job.id)[0]
        self.assertEqual(done.state, COMPLETED, done.message)
        # Not all images are held at once, only some batches of two.
        self.assertLess(done.progress.peak_memory_bytes, 3_000_000)


if __name__ == "__main__":
    unittest.main()
