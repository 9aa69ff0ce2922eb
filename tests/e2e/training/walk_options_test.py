"""Walks the options of jobs and of served models over formats of models, devices and numbers of processes: each combination does what the plain one
does, or is refused by name. A row of OPTIONS is an option; `refused` says where. With --all every combination, otherwise each pair of values.

Usage: walk_options_test.py [--all]
"""

import dataclasses
import io
import itertools
import os
import shutil
import subprocess
import sys
import unittest
from typing import Callable, Optional

import grpc
import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from tests.e2e.daemon import BINARY, pb, request, training
from tests.e2e.training.training_daemon import COMPLETED, TrainingDaemon, spec

EMULATED = os.path.join(os.path.dirname(BINARY), "..", "lib", "tensord", "libtensord_cuda_emulated.so")
WALKS_ALL = "--all" in sys.argv
ROWS, CLASSES = 40, 3
FORMATS = ("torchscript", "pt2", "onnx", "source")
DEVICES = ("", "cuda:0")
PROCESSES = (0, 2)
SOURCE = """
class Net(Module):
    __parameters__ = ["first_weight", "first_bias", "last_weight", "last_bias"]
    first_weight: Tensor
    first_bias: Tensor
    last_weight: Tensor
    last_bias: Tensor
    training: bool

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(torch.linear(torch.flatten(x, 1), self.first_weight, self.first_bias))
        return torch.linear(hidden, self.last_weight, self.last_bias)
"""
IMAGE_PARAMETERS = {"image_resize_size": "4,4", "image_mean": "0.5", "image_std": "0.25"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(48, 16), nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.relu(self.first(torch.flatten(x, 1))))


@dataclasses.dataclass
class Option:
    fields: Callable  # of a job
    refused: Callable = lambda processes: None  # the text of the refusal with so many processes, or None
    distribution: Optional[dict] = None  # fields of it that the option is
    tolerance: float = 2e-3
    data: str = "rows.pt"
    formats: tuple = FORMATS  # others have no modules, which the option needs


def optimizer(name, lr, **options):
    return lambda: {"optimizer": training.Optimizer(name=name, lr=lr, **options)}


def plain(**fields):
    return lambda: fields


def unless_alone(text):
    return lambda processes: text if processes else None


def unless_together(text):
    return lambda processes: None if processes else text


NEEDS_PROCESSES = unless_together("distribution.world_size: needed where there is a distribution")
HALF = training.Evaluation(fraction=0.25, metrics=["loss", "accuracy"])
OPTIONS = {
    "plain": Option(plain()),
    "momentum": Option(optimizer("sgd", 0.05, momentum=0.9, nesterov=True)),
    "adam": Option(optimizer("adam", 0.01, amsgrad=True)),
    "rmsprop": Option(optimizer("rmsprop", 0.003, centered=True)),
    "adagrad": Option(optimizer("adagrad", 0.05)),
    # Few iterations on all rows: more of them fit each batch, and would multiply what is only rounding.
    "lbfgs": Option(plain(optimizer=training.Optimizer(name="lbfgs", lr=0.1, max_iter=3), batch_size=ROWS, epochs=4),
                    unless_alone("distribution: lbfgs trains in one process")),
    "frozen": Option(plain(optimizer=training.Optimizer(name="sgd", lr=0.1, groups=[training.ParameterGroup(pattern="first*", freeze=True)]))),
    "clipped norm": Option(plain(clipping=training.Clipping(norm=0.1))),
    "clipped values": Option(plain(clipping=training.Clipping(value=0.01))),
    "schedule": Option(plain(schedule=training.Schedule(name="one_cycle"))),
    "warm-up": Option(plain(schedule=training.Schedule(warmup_steps=3))),
    "accumulation": Option(plain(accumulation=2), unless_alone("accumulation: not with streamed data or a distribution")),
    "average": Option(plain(ema_decay=0.5, evaluation=HALF)),
    "best": Option(plain(evaluation=HALF, publish=training.PublishPolicy(when="best", metric="loss"))),
    "patience": Option(plain(evaluation=training.Evaluation(fraction=0.25, metrics=["loss"], patience=50))),
    "class weights": Option(plain(loss=training.Loss(class_weights=[1, 2, 0.5])), unless_alone("loss.class_weights")),
    "smoothing": Option(plain(loss=training.Loss(label_smoothing=0.1))),
    "ignored label": Option(plain(loss=training.Loss(ignore_index=1)), unless_alone("loss.ignore_index: each rank would count its own rows")),
    "loss scale": Option(plain(loss_scale=1024.0)),
    "mixed precision": Option(plain(precision="bf16-mixed"), tolerance=3e-2),
    "half precision": Option(plain(precision="16-mixed"), tolerance=1e-2),
    "activations again": Option(plain(activation_checkpointing=["first"]), formats=("torchscript",)),
    "deterministic": Option(plain(deterministic=True)),
    "last dropped": Option(plain(batch_size=16), data="drop"),
    "time limit": Option(plain(max_seconds=3600)),
    "shares": Option(plain(), NEEDS_PROCESSES, {"zero": 1}),
    "half gradients": Option(plain(), NEEDS_PROCESSES, {"compression": "fp16"}, tolerance=2e-2),
    "factors": Option(plain(), NEEDS_PROCESSES, {"compression": "powersgd"}),
    "shared statistics": Option(plain(), NEEDS_PROCESSES, {"sync_batch_norm": True}),
    "images": Option(plain(), data="pictures"),
    "archive of images": Option(plain(), data="pictures.zip"),
    "other images": Option(plain(), data="changed"),
    "upload": Option(plain(), data="upload"),
}


def picture(number):
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, (9, 11, 3), np.uint8))


def pairs_of(axes):
    """Combinations of the axes' values that have each pair of values of two axes, chosen greedily."""
    missing = {(i, a, j, b) for i, j in itertools.combinations(range(len(axes)), 2) for a in axes[i] for b in axes[j]}

    def found(row):
        return {(i, row[i], j, row[j]) for i, j in itertools.combinations(range(len(axes)), 2)} & missing

    while missing:
        row = max(itertools.product(*axes), key=lambda row: len(found(row)))
        missing -= found(row)
        yield row


def combinations(*axes):
    return list(itertools.product(*axes) if WALKS_ALL else pairs_of(axes))


def save_formats(place):
    """The same model in every format; place(format, file name) is a path."""
    net = Net().eval()
    archive = place("torchscript", "model.pt")
    torch.jit.script(net).save(archive)
    for kind, name in (("onnx", "model.onnx"), ("pt2", "model.pt2")):
        subprocess.run([BINARY, "convert", archive, "--to", kind, "--input", "2,3,4,4", "--dynamic", "x:0", "-o", place(kind, name)], check=True,
                       capture_output=True)
    with open(place("source", "model.py"), "w") as file:
        file.write(SOURCE)
    torch.save({name.replace(".", "_"): weight for name, weight in net.state_dict().items()}, place("source", "weights.pt"))
    return net


def write_parameters(file, parameters):
    with open(file, "a") as config:
        for name, value in parameters.items():
            config.write(f'parameters {{ key: "{name}" value: {{ string_value: "{value}" }} }}\n')


class Walk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["TENSORD_CUDA"] = EMULATED if os.path.exists(EMULATED) else "off"
        torch.manual_seed(0)
        cls.server = TrainingDaemon("--strict-readiness", "false")
        cls.net = save_formats(cls.place)
        cls.x = torch.randn(ROWS, 3, 4, 4)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    @classmethod
    def place(cls, model, name):
        folder = os.path.join(cls.server.models, model, "1")
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)

    def answer(self, model, version="", data=None):
        """Of the first rows; or of an image file."""
        name = self.server.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name=model), timeout=60).inputs[0].name
        inputs = [(name, "BYTES", [1, 1], len(data).to_bytes(4, "little") + data)] if data else [(name, "FP32", [3, 3, 4, 4], self.x[:3].numpy().tobytes())]
        found = self.server.daemon.stub.ModelInfer(request(model, inputs, version=version), timeout=120)
        return np.frombuffer(found.raw_output_contents[0], np.float32)


class JobsTest(Walk):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        y = (cls.x.mean([1, 2, 3]) * 10).long() % CLASSES
        cls.server.save_data("rows.pt", x=cls.x, labels=y)
        for number in range(ROWS):
            folder = os.path.join(cls.server.data, "pictures", "abc"[number % CLASSES])
            os.makedirs(folder, exist_ok=True)
            picture(number).save(os.path.join(folder, f"{number}.png"))
        shutil.make_archive(os.path.join(cls.server.data, "pictures"), "zip", os.path.join(cls.server.data, "pictures"))
        cls.server.start()
        cls.references = {}

    def data_of(self, option):
        data = training.Data(file="rows.pt", shuffle=False)
        if option.data == "drop":
            data.drop_last = True
        elif option.data == "upload":
            with open(os.path.join(self.server.data, "rows.pt"), "rb") as file:
                data.file = self.server.stub.UploadData(iter([training.UploadDataRequest(data=file.read(), file_name="rows.pt")]), timeout=60).file
        elif option.data != "rows.pt":
            data.file = "pictures" if option.data == "changed" else option.data
            data.image_parameters.update(IMAGE_PARAMETERS)
            if option.data == "changed":
                data.random_horizontal_flip = 1.0  # always, so that it does not matter who draws
                data.image_parameters["image_resize_size"] = "9,11"
                data.image_parameters["image_crop_size"] = "4"
        return data

    def train(self, option, model, device, processes):
        """The losses by step and the published model's answer."""
        given = {**dict(optimizer=training.Optimizer(name="sgd", lr=0.1), epochs=2, batch_size=8, publish=training.PublishPolicy(when="at_end")), **option.fields()}
        distribution = training.Distribution(world_size=processes, **(option.distribution or {}))
        job = self.server.stub.CreateJob(training.CreateJobRequest(spec=spec(
            model=training.ModelSource(name=model, version=1), data=self.data_of(option), label="labels", distribution=distribution,
            resources=training.Resources(device=device), **given)), timeout=120)
        job, points = self.server.watch(job.id)
        self.assertEqual(job.state, COMPLETED, job.message)
        return [point.loss for point in points], self.answer(model, str(job.published_version))

    def reference(self, name):
        """What one process does on the CPU, from TorchScript."""
        if name not in self.references:
            option = OPTIONS[name]
            alone = dataclasses.replace(option, distribution=None)
            self.references[name] = self.train(alone, "torchscript", "", 0)
            losses = self.references[name][0]
            self.assertLess(min(losses[1:]), losses[0], name)
        return self.references[name]

    def test_every_option_trains_as_one_process_on_the_cpu_or_is_refused(self):
        devices = DEVICES if os.path.exists(EMULATED) else DEVICES[:1]
        for name, model, device, processes in combinations(OPTIONS, FORMATS, devices, PROCESSES):
            option = OPTIONS[name]
            refusal = option.refused(processes)
            if model not in option.formats:
                refusal = refusal or "activation_checkpointing: "
            if device and processes:
                refusal = refusal or "resources.device: ranks of a distribution train on the CPU"
            with self.subTest(option=name, format=model, device=device, processes=processes):
                if refusal:
                    with self.assertRaises(grpc.RpcError) as caught:
                        self.train(option, model, device, processes)
                    refusals = (refusal, "resources.device: ranks") if device and processes else (refusal,)
                    self.assertTrue(any(text in caught.exception.details() for text in refusals), caught.exception.details())
                    continue
                losses, answer = self.train(option, model, device, processes)
                expected, expected_answer = self.reference(name)
                np.testing.assert_allclose(losses, expected, rtol=option.tolerance, atol=option.tolerance)
                np.testing.assert_allclose(answer, expected_answer, rtol=0.02, atol=20 * option.tolerance)


class ServingTest(Walk):
    """`precision: auto`, image files and fetched models."""

    FEATURES = ("plain", "auto", "images", "images auto")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cases = combinations(FORMATS, cls.FEATURES, DEVICES if os.path.exists(EMULATED) else DEVICES[:1], ("copied", "fetched"))
        for kind, feature, device, way in cls.cases:
            model = cls.name_of(kind, feature, device, way)
            to = os.path.join(cls.server.models, model)
            if way == "fetched":
                subprocess.run([BINARY, "fetch", "file://" + os.path.join(cls.server.models, kind), to], check=True, capture_output=True, text=True)
            else:
                shutil.copytree(os.path.join(cls.server.models, kind), to)
            parameters = dict(IMAGE_PARAMETERS) if "images" in feature else {}
            if "auto" in feature:
                parameters["precision"] = "auto"
            config = os.path.join(to, "config.pbtxt")
            write_parameters(config, parameters)
            if device:
                with open(config, "a") as file:
                    file.write("instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]\n")
        cls.server.start()

    @staticmethod
    def name_of(kind, feature, device, way):
        return "_".join((kind, feature.replace(" ", "_"), "gpu" if device else "cpu", way))

    def test_every_format_serves_every_feature_on_every_device(self):
        file = io.BytesIO()
        picture(3).save(file, "PNG")
        resized = np.asarray(picture(3).resize((4, 4), Image.BILINEAR), np.float32) / 255
        pixels = torch.tensor((resized - 0.5) / 0.25).permute(2, 0, 1)[None]
        for case in self.cases:
            with self.subTest(case=case):
                is_image = "images" in case[1]
                expected = self.net(pixels if is_image else self.x[:3]).detach().numpy().ravel()
                found = self.answer(self.name_of(*case), data=file.getvalue() if is_image else None)
                precise = "auto" not in case[1]
                np.testing.assert_allclose(found, expected, rtol=1e-4 if precise else 0.1, atol=1e-4 if precise else 0.1)


del Walk  # it has no tests of its own

if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--all"])
