"""Datasets: map-style, iterable, and combinations of them."""

from __future__ import annotations

import bisect
import itertools
import math


class Dataset:
    """Samples by index: subclasses have __getitem__ and, for samplers, __len__. `__getitems__(indices)`, where it is, gives a whole batch."""

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A stream of samples: subclasses define __iter__. Each worker process has a copy; get_worker_info identifies the
    worker."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class TensorDataset(Dataset):
    """Sample i is the tuple of row i of each tensor."""

    def __init__(self, *tensors):
        if not tensors or any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise ValueError("TensorDataset: expected tensors with as many rows each")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class ConcatDataset(Dataset):
    """Concatenates datasets."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise ValueError("ConcatDataset: expected at least one dataset")
        if any(isinstance(item, IterableDataset) for item in self.datasets):
            raise TypeError("ConcatDataset: an IterableDataset has no numbers")
        self.cumulative_sizes = list(itertools.accumulate(len(item) for item in self.datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        index %= len(self)
        place = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[place][index - (self.cumulative_sizes[place - 1] if place else 0)]


class Subset(Dataset):
    """The samples of a dataset at these indices."""

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None) -> list:
    """Splits a dataset at random into subsets of these lengths, or of fractions that sum to 1."""
    from tensord import engine

    lengths = list(lengths)
    if all(isinstance(length, float) for length in lengths) and math.isclose(sum(lengths), 1):
        counts = [math.floor(len(dataset) * share) for share in lengths]
        for i in range(len(dataset) - sum(counts)):
            counts[i % len(counts)] += 1
        lengths = counts
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: lengths {lengths} do not sum to the {len(dataset)} samples")
    order = engine.randperm(sum(lengths), **({} if generator is None else {"generator": generator})).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length:end]) for end, length in zip(ends, lengths)]
