"""The samples of one rank."""

from __future__ import annotations

from tensord.engine.data.sampler import Sampler


class DistributedSampler(Sampler):
    """Rank r of W takes samples r, r + W, r + 2W ... of an order that is the same on all ranks, drawn from seed +
    epoch.

    If W does not divide the number of samples, the first samples are repeated at the end, or, with `drop_last`, the
    last ones are dropped. Call set_epoch() before each epoch; otherwise every epoch has the same order.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle: bool = True, seed: int = 0, drop_last: bool = False):
        from tensord.engine import distributed

        self.num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        self.rank = distributed.get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(f"Invalid rank {self.rank}, rank should be in the interval [0, {self.num_replicas - 1}]")
        self.dataset, self.shuffle, self.seed, self.drop_last, self.epoch = dataset, shuffle, seed, drop_last, 0

    @property
    def num_samples(self) -> int:
        count = len(self.dataset)
        return count // self.num_replicas if self.drop_last else -(-count // self.num_replicas)

    def __iter__(self):
        from tensord import engine

        count = len(self.dataset)
        order = list(range(count))
        if self.shuffle:
            order = engine.randperm(count, generator=engine.Generator().manual_seed(self.seed + self.epoch)).tolist()
        total = self.num_samples * self.num_replicas
        while order and len(order) < total:
            order += order[: total - len(order)]
        return iter(order[:total][self.rank :: self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
