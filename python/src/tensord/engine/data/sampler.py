"""Samplers: iterables of indices. The orders are PyTorch's for the same seeds."""

from __future__ import annotations

import itertools


def _drawn_by(generator) -> dict:
    return {} if generator is None else {"generator": generator}


def draw_seed(generator=None) -> int:
    from tensord import engine

    return int(engine.empty((), dtype=engine.int64).random_(**_drawn_by(generator)).item())


class Sampler:
    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler):
    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in a new random order each time; with `replacement`, or if `num_samples` exceeds them, `num_samples`
    draws."""

    def __init__(self, data_source, replacement: bool = False, num_samples=None, generator=None):
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        if self.num_samples <= 0:
            raise ValueError(f"RandomSampler: expected a positive number of samples, got {self.num_samples}")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        from tensord import engine

        count = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = engine.Generator().manual_seed(draw_seed())
        if self.replacement:
            for _ in range(self.num_samples // 32):
                yield from engine.randint(0, count, (32,), dtype=engine.int64, generator=generator).tolist()
            yield from engine.randint(0, count, (self.num_samples % 32,), dtype=engine.int64, generator=generator).tolist()
        else:
            for _ in range(self.num_samples // count):
                yield from engine.randperm(count, generator=generator).tolist()
            yield from engine.randperm(count, generator=generator).tolist()[: self.num_samples % count]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    def __init__(self, indices, generator=None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        from tensord import engine

        for place in engine.randperm(len(self.indices), **_drawn_by(self.generator)).tolist():
            yield self.indices[place]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Draws `num_samples` indices with probabilities proportional to the weights."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        from tensord import engine

        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(f"WeightedRandomSampler: expected a positive number of samples, got {num_samples}")
        self.weights = engine.as_tensor(weights, dtype=engine.float64)
        if self.weights.ndim != 1:
            raise ValueError(f"WeightedRandomSampler: expected weights of one dimension, got shape {list(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self):
        from tensord import engine

        return iter(engine.multinomial(self.weights, self.num_samples, self.replacement, **_drawn_by(self.generator)).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"BatchSampler: expected a positive batch_size, got {batch_size}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        numbers = iter(self.sampler)
        while batch := list(itertools.islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        return (len(self.sampler) if self.drop_last else len(self.sampler) + self.batch_size - 1) // self.batch_size
