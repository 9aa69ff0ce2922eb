"""A random convnet for the 8x8 handwritten digits of scikit-learn, and the digits as data files.

Usage: /usr/bin/python3 -m examples.digits MODELS DATA
Writes MODELS/digits/1/model.pt, DATA/digits-train.npz and DATA/digits-test.npz.
"""

import os
import sys

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

TEST_ROWS = 360


class DigitsNet(nn.Module):
    """Two convolutions, batch norms and dropout on 8x8 images of 0 to 16."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 16, 10))

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.features(images / 16.0))


def write(models: str, data: str) -> None:
    torch.manual_seed(0)
    folder = os.path.join(models, "digits", "1")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(data, exist_ok=True)
    torch.jit.script(DigitsNet().eval()).save(os.path.join(folder, "model.pt"))
    digits = load_digits()
    images = digits.images.astype(np.float32)[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    for name, rows in (("test", order[:TEST_ROWS]), ("train", order[TEST_ROWS:])):
        np.savez(os.path.join(data, f"digits-{name}.npz"), images=images[rows], labels=digits.target[rows])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(sys.argv[1], sys.argv[2])
