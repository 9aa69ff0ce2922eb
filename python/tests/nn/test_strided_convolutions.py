"""Convolutions that skip pixels, of images in channels_last, on several threads: oneDNN 2.6's own code for them is wrong for some shapes."""

import random

from tensord import engine
from tensord.engine import nn


def gradients(image, weight, grad, stride):
    image, weight = image.detach().requires_grad_(), weight.detach().requires_grad_()
    result = nn.functional.conv2d(image, weight, stride=stride)
    result.backward(grad(result.shape))
    return result.detach(), image.grad, weight.grad


def test_pixels_that_are_skipped():
    draw = random.Random(5)
    engine.manual_seed(5)
    for _ in range(400):
        image = engine.randn(draw.choice([1, 2, 9]), draw.choice([3, 4, 8]), draw.randint(2, 24), draw.randint(2, 24))
        image = image.contiguous(memory_format=engine.channels_last)
        weight, stride = engine.randn(8, image.shape[1], 1, 1), draw.choice([(2, 2), (1, 2), (1, 3), (3, 1)])
        kept = []
        got = gradients(image, weight, lambda shape: kept.append(engine.randn(*shape)) or kept[0], stride)
        want = gradients(image.double(), weight.double(), lambda _: kept[0].double(), stride)
        for one, other in zip(got, want):
            assert (one.double() - other).abs().max().item() <= 1e-4 * max(1, other.abs().max().item()), (image.shape, stride)
