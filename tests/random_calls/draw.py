"""Random sizes, scalars, and tensors of many memory layouts, for the families of calls."""

from __future__ import annotations

import math
import random

import torch

FLOATS = [torch.float32, torch.float32, torch.float32, torch.float64, torch.bfloat16, torch.float16]
REALS = [torch.float32, torch.float32, torch.float64]
INTEGERS = [torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16]
EVERY = [*FLOATS, *INTEGERS, torch.bool]
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -5.9, 5.9, 1e-30, -1e-30, 1e20, -1e20, 89.0, -89.0, -104.0, 3.9, -3.9,
         math.inf, -math.inf, math.nan]
MOST_ELEMENTS = 1 << 11


class Draw:
    """One call's random numbers."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, *values):
        return self.rng.choice(values)

    def size(self, low: int = 0, high: int = 17) -> int:
        """Small sizes more often; 0 rarely, as most of its calls compute nothing."""
        if low == 0 and self.chance(0.03):
            return 0
        low = max(low, 1) if low == 0 else low
        return min(self.rng.randint(low, high), self.rng.randint(low, high)) if self.chance(0.5) else self.rng.randint(low, high)

    def sizes(self, count: int, low: int = 0, high: int = 17) -> list:
        sizes, most = [self.size(low, high) for _ in range(count)], MOST_ELEMENTS
        if count and self.chance(0.03):  # larger than the blocks of kernels, and enough for several threads
            most = self.pick(1 << 14, 1 << 17)
            sizes[self.rng.randrange(count)] = self.rng.randint(200, most)
        while math.prod(sizes) > most:
            at = self.rng.randrange(count)
            sizes[at] = max(low, sizes[at] // 2)
        return sizes

    def numbers(self, count: int, low: int, high: int) -> list:
        return [self.rng.randint(low, high) for _ in range(count)]

    def number_list(self, count: int, low: int, high: int) -> list:
        """One entry may be given for all."""
        return self.numbers(self.pick(1, count, count), low, high)

    def axis(self, ndim: int) -> int:
        return self.rng.randint(-ndim, ndim - 1) if ndim else self.pick(0, -1)

    def axes(self, ndim: int, least: int = 0) -> list:
        chosen = self.rng.sample(range(ndim), self.rng.randint(min(least, ndim), ndim)) if ndim else []
        return [d - ndim if self.chance(0.3) else d for d in chosen]

    def dense(self, sizes, dtype: torch.dtype, low: float, high: float, edges: bool) -> torch.Tensor:
        if dtype == torch.bool:
            return torch.rand(sizes, generator=self.generator) > 0.5
        real = torch.rand(sizes, generator=self.generator, dtype=torch.float64) * (high - low) + low
        if self.chance(0.25):  # ties, and values equal to bounds and thresholds
            real = ((real * 2).round() / 2).clamp(low, high)
        if edges and dtype.is_floating_point and real.numel():
            where = torch.rand(sizes, generator=self.generator) < 0.3
            chosen = torch.tensor(EDGES, dtype=torch.float64)[
                torch.randint(len(EDGES), tuple(sizes), generator=self.generator)]
            real = torch.where(where, chosen, real)
        if not dtype.is_floating_point:
            real = real.round().abs() if dtype == torch.uint8 else real.round()
        return real.to(dtype)

    def tensor(self, sizes, dtype: torch.dtype = torch.float32, low: float = -3.0, high: float = 3.0,
               edges: bool = False, lay: bool = True) -> torch.Tensor:
        dense = self.dense(list(sizes), dtype, low, high, edges)
        return self.laid_out(dense) if lay else dense

    def laid_out(self, dense: torch.Tensor) -> torch.Tensor:
        """The same values in memory with gaps, in another order of dimensions, expanded, or with an offset."""
        way = self.pick("dense", "dense", "last", "permuted", "gaps", "offset", "repeated")
        ndim = dense.dim()
        if way == "last" and ndim in (4, 5):
            return dense.contiguous(memory_format=torch.channels_last if ndim == 4 else torch.channels_last_3d)
        if way == "permuted" and ndim > 1:
            order = self.rng.sample(range(ndim), ndim)
            back = [order.index(d) for d in range(ndim)]
            return dense.permute(order).contiguous().permute(back)
        if way == "gaps" and ndim > 0:
            steps = [self.pick(1, 1, 2, 3) for _ in range(ndim)]
            base = torch.zeros([s * step + 1 for s, step in zip(dense.shape, steps)], dtype=dense.dtype)
            view = base[tuple(slice(1, 1 + s * step, step) for s, step in zip(dense.shape, steps))]
            return view.copy_(dense)
        if way == "offset":
            base = torch.zeros(dense.numel() + 3, dtype=dense.dtype)
            return base[3:].view(dense.shape).copy_(dense) if dense.numel() else dense
        if way == "repeated" and ndim > 0 and self.chance(0.3):
            at = self.rng.randrange(ndim)
            return dense.narrow(at, 0, min(1, dense.shape[at])).expand(dense.shape) if dense.shape[at] else dense
        return dense

    def broadcast_sizes(self, sizes) -> list:
        """Sizes that broadcast with `sizes`."""
        other = [1 if self.chance(0.3) else s for s in sizes]
        return other[self.rng.randint(0, len(other)):] if self.chance(0.3) else other
