"""Draws small gray images of shapes: the training data of the example vision model."""

import random

SHAPES = ["circle", "square", "triangle", "cross"]
SIZE = 32


def _inside(shape: str, x: float, y: float) -> bool:
    """Whether a point of [-1, 1]² belongs to the shape."""
    if shape == "circle":
        return x * x + y * y <= 1
    if shape == "square":
        return abs(x) <= 0.85 and abs(y) <= 0.85
    if shape == "triangle":
        return -0.9 <= y <= 0.9 and abs(x) <= (y + 0.9) / 1.8
    return min(abs(x), abs(y)) <= 0.28 and max(abs(x), abs(y)) <= 1


def draw(shape: str, seed: int | None = None) -> list:
    """A SIZE × SIZE image as rows of floats in [0, 1], at a random position and scale, with noise."""
    pick = random.Random(seed)
    radius = pick.uniform(6, 13)
    cx, cy = pick.uniform(radius, SIZE - radius), pick.uniform(radius, SIZE - radius)
    ink, paper = pick.uniform(0.6, 1), pick.uniform(0, 0.25)
    return [
        [min(1.0, max(0.0, (ink if _inside(shape, (x - cx) / radius, (y - cy) / radius) else paper) + pick.gauss(0, 0.05)))
         for x in range(SIZE)]
        for y in range(SIZE)
    ]
