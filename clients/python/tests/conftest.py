"""Daemons that the tests share: the examples of Triton's models, and one that trains a copy of the image model."""

import pathlib
import shutil
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.e2e.clients.example_server import start  # noqa: E402
from tests.e2e.daemon_process import DaemonProcess  # noqa: E402

import tensord  # noqa: E402

CLASSES = 4


@pytest.fixture(scope="session")
def server():
    with start("--model-control-mode", "explicit", "--load-model", "*") as daemon:
        yield daemon


@pytest.fixture()
def client(server):
    with tensord.Client(server.ready["grpc"]) as out:
        yield out


def labeled_images(rows, seed=0):
    """Arrays of training data for the model `shapes`: rows with a bright half, which the labels say."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, CLASSES, rows)
    images = generator.random((rows, 1, 32, 32), dtype=np.float32)
    for row, label in enumerate(labels):
        images[row, 0, 8 * label:8 * label + 8] += 2
    return {"image": images, "label": labels}


class Trainer:
    """A training daemon with folders that outlive it."""

    def __init__(self, folder):
        self.models = folder / "models"
        self.data = folder / "data"
        self._jobs = folder / "jobs"
        shutil.copytree(ROOT / "examples" / "models" / "shapes", self.models / "shapes")
        self.data.mkdir()
        np.savez(self.data / "images.npz", **labeled_images(96))
        self.daemon = None

    def start(self, *flags):
        self.daemon = DaemonProcess(str(self.models), "--training-dir", str(self._jobs), "--training-data",
                                    str(self.data), "--training-nice", "0", *flags)
        return self

    @property
    def address(self):
        return self.daemon.ready["grpc"]


@pytest.fixture(scope="session")
def trainer(tmp_path_factory):
    out = Trainer(tmp_path_factory.mktemp("training")).start()
    yield out
    out.daemon.__exit__()


@pytest.fixture()
def training_client(trainer):
    with tensord.Client(trainer.address) as out:
        yield out
