"""Shows a job's progress as a tqdm bar."""

from __future__ import annotations

from typing import Any, Union

from tensord._job_operations import JobUpdate
from tensord.errors import FailedPreconditionError


class ProgressBar:
    """`progress` is False for no bar, True for a bar in this terminal or notebook, or a class like tqdm.tqdm."""

    def __init__(self, progress: Union[bool, Any]) -> None:
        self._bar: Any = None
        self._kind: Any = _tqdm() if progress is True else progress or None

    def show(self, update: JobUpdate) -> None:
        if self._kind is None:
            return
        progress = update.info.progress
        if self._bar is None:
            title = update.info.name or update.info.model or update.info.id
            self._bar = self._kind(total=progress.total_steps or None, initial=progress.step, desc=title, unit="step")
        self._bar.total = progress.total_steps or None  # unknown while the job is queued
        values = {"loss": f"{progress.loss:.4g}", "lr": f"{progress.learning_rate:.3g}"}
        values.update((f"eval_{name}", f"{value:.4g}") for name, value in progress.metrics.items())
        self._bar.set_postfix(values, refresh=False)
        self._bar.update(progress.step - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _tqdm() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise FailedPreconditionError("progress bars need the package tqdm: pip install tensord[progress]") from error
    return tqdm
