"""Datasets, samplers, and a loader with worker processes, as in torch.utils.data."""

from tensord.engine.data.arrow import TableRows, read_table
from tensord.engine.data.collate import default_collate
from tensord.engine.data.dataset import ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split
from tensord.engine.data.loader import DataLoader
from tensord.engine.data.distributed import DistributedSampler
from tensord.engine.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from tensord.engine.data.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler", "Subset",
    "SubsetRandomSampler", "TableRows", "TensorDataset", "WeightedRandomSampler", "WorkerInfo", "default_collate", "get_worker_info", "random_split", "read_table",
]
