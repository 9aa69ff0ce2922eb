"""jobs"""

from __future__ import annotations

import argparse
from typing import Any, Callable

from tensord._commands.connect import add_command, connect, print_json
from tensord._commands.job_view import print_job, print_jobs, print_report, watch
from tensord.job import Job
from tensord.jobs import JobInfo, JobState


def add_to(commands: Any) -> None:
    description = "Training jobs of a running tensord"
    of_jobs = commands.add_parser("jobs", help=description, description=description).add_subparsers(metavar="COMMAND", required=True)
    command = add_command(of_jobs, "list", list_jobs, "All jobs, oldest first")
    command.add_argument("--model", default="", help="only jobs of this model")
    command.add_argument("--tag", action="append", default=[], metavar="NAME=VALUE", help="only jobs with this tag; may be repeated")
    command = add_command(of_jobs, "rollback", rollback, "Serve a model's previous version again")
    command.add_argument("model")
    for name, run, help_text in (
        ("show", with_job(show), "Show all details of a job"),
        ("watch", with_job(watch_job), "Show progress until the job ends or pauses; exit code 1 if it failed"),
        ("pause", acting(Job.pause), "Stop after the current step, with a checkpoint"),
        ("resume", acting(Job.resume), "Resume from the last checkpoint"),
        ("finish", acting(Job.finish), "End the training now: evaluate and publish as if it were complete"),
        ("cancel", acting(Job.cancel), "Stop for good"),
        ("delete", with_job(delete), "Delete the job and its checkpoints"),
    ):
        add_command(of_jobs, name, run, help_text).add_argument("id")
    of_download = add_command(of_jobs, "download", download, "Bring the job's model to a new folder")
    of_download.add_argument("id")
    of_download.add_argument("-o", "--output", default="", help="the folder to make; default the job's id or name")


def list_jobs(given: argparse.Namespace) -> int:
    with connect(given) as client:
        jobs = client.jobs(given.model, tags=dict(tag.split("=", 1) if "=" in tag else (tag, "") for tag in given.tag))
    if given.json:
        for job in jobs:
            print_json(job)
    elif jobs:
        print_jobs(jobs)
    else:
        print("no jobs")
    return 0


def rollback(given: argparse.Namespace) -> int:
    with connect(given) as client:
        served = client.rollback(given.model)
    if given.json:
        print_json({"served_version": served})
    else:
        print(f"{given.model}: version {served} is served")
    return 0


def download(given: argparse.Namespace) -> int:
    with connect(given) as client:
        paths = client.job(given.id).download(given.output or given.id)
    if given.json:
        print_json({"files": paths})
    else:
        print("\n".join(paths))
    return 0


def with_job(run: Callable[[Job, bool], int]) -> Callable[[argparse.Namespace], int]:
    def command(given: argparse.Namespace) -> int:
        with connect(given) as client:
            return run(client.job(given.id), given.json)

    return command


def acting(act: Callable[[Job], JobInfo]) -> Callable[[argparse.Namespace], int]:
    def run(job: Job, as_json: bool) -> int:
        print_job(act(job), as_json)
        return 0

    return with_job(run)


def show(job: Job, as_json: bool) -> int:
    if as_json:
        print_json(job.info)
    else:
        print_report(job.info)
    return 0


def watch_job(job: Job, as_json: bool) -> int:
    watch(job, as_json)
    return 1 if job.state == JobState.FAILED else 0


def delete(job: Job, as_json: bool) -> int:
    job.delete()
    return 0
