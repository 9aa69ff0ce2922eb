"""The repository of the stress test: equivalents of Triton's examples, and models whose responses identify their
version."""

import os
import shutil

import torch
from torch import Tensor, nn

from tests.e2e.daemon_process import ROOT
from tests.e2e.serve_models import save

TWINS = ("simple", "simple_string", "simple_sequence", "simple_string_dyna_sequence", "labelled_identity")
MORE_TWINS = ("square_int32", "simple_ensemble", "identity_fp32")


class Marked(nn.Module):
    """Returns a number stored in its archive, and has a weight that uses some memory."""

    def __init__(self, mark):
        super().__init__()
        self.register_buffer("mark", torch.tensor([mark], dtype=torch.int64))
        self.register_buffer("weight", torch.full((64, 1024), float(mark)))

    def forward(self, x: Tensor) -> Tensor:
        return self.mark + x * 0 + self.weight[0, 0].to(torch.int64) * 0


class Sleepy(nn.Module):
    """Runs for a long time, instruction by instruction."""

    def forward(self, x: Tensor, rounds: int) -> Tensor:
        y = x
        for _ in range(rounds):
            y = y + 1
        return y


def write_marked(root, name, mark, version=1):
    """Replaces the archive atomically."""
    aside = os.path.join(root, f".aside_{name}")
    save(Marked(mark), aside, name, version)
    folder = os.path.join(root, name, str(version))
    os.makedirs(folder, exist_ok=True)
    os.replace(os.path.join(aside, name, str(version), "model.pt"), os.path.join(folder, "model.pt"))
    shutil.rmtree(aside)


def write_corrupt(root, name, choose):
    """Writes an archive that is truncated, altered or invalid, atomically."""
    source = os.path.join(ROOT, "examples", "triton", "model_repository", "simple", "1", "model.pt")
    with open(source, "rb") as archive:
        data = bytearray(archive.read())
    kind = choose.randrange(3)
    if kind == 0:
        data = data[:choose.randrange(len(data))]
    elif kind == 1:
        # Changes a byte of the central directory, at the end, or of an entry.
        for _ in range(50):
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    else:
        data = choose.randbytes(choose.randrange(5000))
    folder = os.path.join(root, name, "1")
    os.makedirs(folder, exist_ok=True)
    aside = os.path.join(folder, "aside")
    with open(aside, "wb") as archive:
        archive.write(data)
    os.replace(aside, os.path.join(folder, "model.pt"))


def make_repository(root):
    for repository, names in (("model_repository", TWINS), ("more_models", MORE_TWINS)):
        for name in names:
            shutil.copytree(os.path.join(ROOT, "examples", "triton", repository, name), os.path.join(root, name))
    save(Sleepy(), root, "sleepy")
    for name in ("replaced", "coming"):
        write_marked(root, name, 0)
