"""Training jobs as plain data: states, progress, curves."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Tuple

import numpy as np
import numpy.typing as npt

from tensord._plain import to_dict
from tensord._protocol import training as pb

__all__ = ["History", "JobInfo", "JobState", "Point", "Progress"]


class JobState(enum.IntEnum):
    UNSPECIFIED = 0
    QUEUED = 1
    RUNNING = 2
    PAUSED = 3
    COMPLETED = 4
    FAILED = 5
    CANCELLED = 6

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self) if spec.endswith("d") else self.name, spec)

    @property
    def is_at_rest(self) -> bool:
        """Whether the job is in a state that it leaves only when somebody resumes it."""
        return self >= JobState.PAUSED


@dataclass(frozen=True)
class RankProgress:
    """One process of a distributed job."""

    rank: int
    pid: int
    step: int
    samples: int  # since it was started
    communication_seconds: float  # time spent waiting for other ranks since it was started
    memory_bytes: int


@dataclass(frozen=True)
class Progress:
    step: int
    total_steps: int  # 0: unknown, because the data is streamed
    epoch: float
    loss: float
    learning_rate: float
    gradient_norm: float
    samples_per_second: float
    seconds_left: float  # negative: unknown
    memory_bytes: int
    peak_memory_bytes: int
    metrics: Mapping[str, float]  # from the last evaluation
    best_metric: float
    best_step: int  # 0: not evaluated yet
    checkpoint_step: int  # 0: none
    samples: int
    next_batch: int  # for streamed data
    best_metrics: Mapping[str, float] = field(default_factory=dict)  # from the evaluation after best_step
    ranks: Tuple[RankProgress, ...] = ()  # for a distributed job
    restarts: int = 0  # of all ranks, after one was lost
    loss_scale: float = 0  # of the next step; 0: none
    skipped_steps: int = 0  # steps whose gradients were not finite, with a loss scale


@dataclass(frozen=True)
class Point:
    """A point of the curves, with metrics if the step was evaluated."""

    step: int
    epoch: float
    loss: float
    learning_rate: float
    gradient_norm: float
    samples_per_second: float
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class JobInfo:
    """A snapshot of a job. `spec` includes the defaults."""

    id: str
    state: JobState
    message: str
    progress: Progress
    spec: Mapping[str, Any]
    created_at: datetime.datetime
    updated_at: datetime.datetime
    base_version: int
    published_version: int  # 0: none

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def model(self) -> str:
        return str(self.spec.get("model", {}).get("name", ""))


class History(Dict[str, npt.NDArray[Any]]):
    """A job's curves as columns of equal length, one row per point.

    The columns are step, epoch, loss, learning_rate, gradient_norm, samples_per_second, and `eval_NAME` for each
    metric, with NaN where the step was not evaluated. Works with `pandas.DataFrame(history)` and `plt.plot("step",
    "loss", data=history)`.
    """

    def evaluations(self, metric: str) -> Tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Steps and values of a metric, for evaluated steps only."""
        values = self[f"eval_{metric}"]
        known = ~np.isnan(values)
        return self["step"][known], values[known]


_COLUMNS = ("epoch", "loss", "learning_rate", "gradient_norm", "samples_per_second")


def history_of(points: Iterable[Point]) -> History:
    """Builds the columns. A repeated step, sent again with its evaluation, replaces the previous one."""
    rows = [point for _, point in sorted({point.step: point for point in points}.items())]
    history = History(step=np.array([row.step for row in rows], np.int64))
    for column in _COLUMNS:
        history[column] = np.array([getattr(row, column) for row in rows], np.float64)
    for metric in sorted({name for row in rows for name in row.metrics}):
        history[f"eval_{metric}"] = np.array([row.metrics.get(metric, np.nan) for row in rows], np.float64)
    return history


def _by_name(metrics: Mapping[str, float]) -> Dict[str, float]:
    """A map of a message comes in another order each time."""
    return dict(sorted(metrics.items()))


def parse_job(message: pb.Job) -> JobInfo:
    def time(milliseconds: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(milliseconds / 1e3, datetime.timezone.utc)

    values = {each.name: getattr(message.progress, each.name) for each in pb.Progress.DESCRIPTOR.fields}
    known = {name: values[name] for name in Progress.__dataclass_fields__ if not name.endswith("metrics")}
    known["ranks"] = tuple(RankProgress(**{name: getattr(rank, name) for name in RankProgress.__dataclass_fields__})
                           for rank in message.progress.ranks)
    return JobInfo(message.id, JobState(message.state), message.message,
                   Progress(**known, metrics=_by_name(message.progress.metrics),
                            best_metrics=_by_name(message.progress.best_metrics)),
                   to_dict(message.spec),
                   time(message.created_at_ms), time(message.updated_at_ms), message.base_version,
                   message.published_version)


def parse_points(messages: Iterable[pb.Point]) -> List[Point]:
    return [Point(item.step, item.epoch, item.loss, item.learning_rate, item.gradient_norm, item.samples_per_second,
                  _by_name(item.metrics)) for item in messages]
