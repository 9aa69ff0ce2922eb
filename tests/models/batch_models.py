"""Batches whose tensors are larger than a CPU's last cache, for batch-independent models."""

import torch
import torch.nn.functional as F
from torch import nn

import cases

torch.manual_seed(20240517)

CASES, case = cases.collect()


def images(count):
    return torch.randn(count, 8, 120, 120)


@case(images(8), images(5), images(8)[:, :, :7, :9].contiguous(), images(3).to(memory_format=torch.channels_last))
class Batches(nn.Module):
    """Convolutions of all kinds, residual sums, gates from means, pools, a softmax, and a cross-sample operator at the
    end."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(8, 32, 3, padding=1)
        self.wide = nn.Conv2d(32, 48, 1)
        self.depthwise = nn.Conv2d(48, 48, 3, padding=1, groups=48)
        self.norm = nn.BatchNorm2d(48)
        self.narrow = nn.Conv2d(48, 32, 1)
        self.gate = nn.Conv2d(32, 32, 1)
        self.out = nn.Linear(64, 10)

    def forward(self, x):
        first = F.relu(self.first(x))
        y = self.narrow(F.hardswish(self.norm(self.depthwise(F.relu6(self.wide(first)))))) + first
        y = y * torch.sigmoid(self.gate(y.mean([2, 3], keepdim=True)))
        small = F.max_pool2d(y, 3, stride=2, padding=1)
        both = torch.cat([small, F.avg_pool2d(y, 3, stride=2, padding=1)], 1)
        scores = self.out(F.adaptive_avg_pool2d(both, 1).flatten(1)).softmax(-1)
        return scores, y.amax(3), scores * scores.mean(0)


@case(images(8), images(5))
class Images(nn.Module):
    """The same for one result: an image of its own for each sample."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(8, 64, 3, padding=1)
        self.second = nn.Conv2d(64, 64, 3, padding=1)
        self.last = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        y = F.relu(self.first(x))
        y = F.relu(self.second(y) + y)
        return torch.softmax(self.last(y), 1) * x[:, :1]
