"""Metadata of servers and models, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Mapping, Tuple

__all__ = [
    "Class", "Duration", "ModelIndex", "ModelMetadata", "ModelStatistics", "Region", "ServerMetadata", "TensorSpec",
]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model. A size of -1 is dynamic; an empty datatype is any type."""

    name: str
    datatype: str
    shape: Tuple[int, ...]


@dataclass(frozen=True)
class ServerMetadata:
    name: str
    version: str
    extensions: Tuple[str, ...]


@dataclass(frozen=True)
class ModelMetadata:
    name: str
    versions: Tuple[str, ...]
    platform: str
    inputs: Tuple[TensorSpec, ...]
    outputs: Tuple[TensorSpec, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelIndex:
    """A version in the repository. The state is READY, UNAVAILABLE, LOADING, UNLOADING, or empty if it was never
    loaded."""

    name: str
    version: str
    state: str
    reason: str

    @property
    def is_ready(self) -> bool:
        return self.state == "READY"


@dataclass(frozen=True)
class Duration:
    """Number and total duration of an event, in seconds."""

    count: int
    seconds: float

    @property
    def mean_seconds(self) -> float:
        return self.seconds / self.count if self.count else 0.0


@dataclass(frozen=True)
class ModelStatistics:
    """Counters since the version was loaded."""

    name: str
    version: str
    inference_count: int  # rows
    execution_count: int  # batches
    last_inference_ms: int  # Unix time; 0: none yet
    # success, fail, queue, compute_input, compute_infer, compute_output, cache_hit, cache_miss
    durations: Mapping[str, Duration]
    # By batch size: compute_input, compute_infer, compute_output
    batches: Mapping[int, Mapping[str, Duration]]
    memory_bytes: Mapping[str, int]  # by kind: "CPU", "CPU_PINNED", "GPU 0"

    def row(self) -> Dict[str, float]:
        """The statistics as one flat dict for a table: counts, and means in milliseconds."""
        out: Dict[str, float] = {"inferences": self.inference_count, "executions": self.execution_count}
        for name, duration in self.durations.items():
            out[f"{name}_count"] = duration.count
            out[f"{name}_ms"] = duration.mean_seconds * 1e3
        return out


@dataclass(frozen=True)
class Region:
    """A registered shared memory region."""

    name: str
    key: str
    offset: int
    byte_size: int


@dataclass(frozen=True)
class Class:
    """One of the largest values of a row. `label` is empty if the model has no labels."""

    score: float
    index: int
    label: str
