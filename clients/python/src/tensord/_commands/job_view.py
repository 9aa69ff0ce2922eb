"""Displays jobs: one line, a report, or a progress bar."""

from __future__ import annotations

import sys
from typing import Sequence

from tensord._commands.connect import print_json, print_table
from tensord._progress import ProgressBar
from tensord.errors import FailedPreconditionError
from tensord.job import Job
from tensord.jobs import JobInfo


def job_line(info: JobInfo) -> str:
    progress = info.progress
    steps = f"{progress.step}/{progress.total_steps}" if progress.total_steps else f"{progress.step}"
    line = f"{info.id}  {info.state.name}  step {steps}  loss {progress.loss:.4g}{format_metrics(info)}"
    if info.published_version:
        line += f"  published {info.published_version}"
    return line + (f"  ({info.message})" if info.message else "")


def format_metrics(info: JobInfo) -> str:
    parts = [f" {name} {value:.4g}" for name, value in info.progress.metrics.items()]
    return "  evaluated:" + "".join(parts) if parts else ""


def print_jobs(jobs: Sequence[JobInfo]) -> None:
    rows = []
    for info in jobs:
        progress = info.progress
        steps = f"{progress.step}/{progress.total_steps}" if progress.total_steps else f"{progress.step}"
        metrics = " ".join(f"{name} {value:.4g}" for name, value in progress.metrics.items())
        published = str(info.published_version) if info.published_version else ""
        rows.append([info.id, info.name, info.model, info.state.name, steps, f"{progress.loss:.4g}", metrics, published,
                     info.message])
    print_table(["ID", "NAME", "MODEL", "STATE", "STEP", "LOSS", "EVALUATED", "PUBLISHED", "MESSAGE"], rows)


def print_job(info: JobInfo, as_json: bool) -> None:
    if as_json:
        print_json(info)
    else:
        print(job_line(info))


def print_report(info: JobInfo) -> None:
    progress = info.progress
    lines = {
        "job": info.id, "state": info.state.name, "message": info.message,
        "model": f"{info.model or info.spec.get('model', {}).get('upload_id', '')} version {info.base_version}",
        "step": f"{progress.step} of {progress.total_steps or '?'}, epoch {progress.epoch:.4g}",
        "loss": f"{progress.loss:.4g}{format_metrics(info)}",
        "rate": f"{progress.learning_rate:.4g}, gradient norm {progress.gradient_norm:.4g}",
        "speed": f"{progress.samples_per_second:.4g} samples/s",
        "memory": f"{progress.memory_bytes >> 20} MiB, at most {progress.peak_memory_bytes >> 20} MiB",
        "checkpoint": f"step {progress.checkpoint_step}" if progress.checkpoint_step else "",
        "published": f"version {info.published_version}" if info.published_version else "",
    }
    for name, value in lines.items():
        if value:
            print(f"{name:<11} {value}")


def watch(job: Job, as_json: bool) -> None:
    """Watches the job until it ends or pauses: a bar on a terminal and a report, or one JSON object per change."""
    bar = None
    if not as_json and sys.stderr.isatty():
        try:
            bar = ProgressBar(True)
        except FailedPreconditionError:
            pass  # without tqdm only the report is shown
    try:
        for update in job.watch():
            if as_json:
                print_json({"job": update.info, "points": update.points})
            elif bar is not None:
                bar.show(update)
    finally:
        if bar is not None:
            bar.close()
    if not as_json:
        print_report(job.info)
