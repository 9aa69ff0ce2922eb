"""train"""

from __future__ import annotations

import argparse
import json
from typing import Any, Dict, Mapping

from tensord._commands.connect import add_command, connect, pairs
from tensord._commands.job_view import print_job, watch
from tensord.errors import InvalidArgumentError
from tensord.jobs import JobState

# Flag, field of the job, type, help; the same as in `tensord train`.
_FLAGS = (
    ("--name", "name", str, "a readable name"),
    ("--data", "data.file", str, "file in the server's data folder: .npz, .safetensors, .pt, .csv; or a folder or .zip of images"),
    ("--random-resized-crop", "data.random_resized_crop", float, "train on random parts of images, of at least this share"),
    ("--random-horizontal-flip", "data.random_horizontal_flip", float, "probability with which an image is mirrored"),
    ("--label", "loss.label", str, "the array with the labels"),
    ("--loss", "loss.builtin", str, "cross_entropy, mse, l1, smooth_l1, huber, bce_with_logits, nll …"),
    ("--loss-method", "loss.method", str, "method of the script that returns the loss, instead"),
    ("--epochs", "epochs", int, "passes over the data"),
    ("--steps", "steps", int, "updates of the weights"),
    ("--batch-size", "batch_size", int, "rows of a batch; default 32"),
    ("--seed", "seed", int, "seed of all random numbers"),
    ("--optimizer", "optimizer.name", str, "sgd, adam, adamw, rmsprop, adagrad, sparseadam, lbfgs; default adamw"),
    ("--lr", "optimizer.lr", float, "learning rate; default PyTorch's"),
    ("--momentum", "optimizer.momentum", float, "of sgd and rmsprop"),
    ("--weight-decay", "optimizer.weight_decay", float, "default the optimizer's"),
    ("--schedule", "schedule.name", str, "step, multi_step, exponential, cosine, one_cycle, linear, plateau"),
    ("--warmup-steps", "schedule.warmup_steps", int, "steps in which the learning rate rises"),
    ("--clip-norm", "clipping.norm", float, "largest norm of all gradients together"),
    ("--eval-fraction", "evaluation.fraction", float, "fraction of the rows used for evaluation"),
    ("--eval-data", "evaluation.file", str, "file used for evaluation"),
    ("--publish", "publish.when", str, "never, at_end, best"),
    ("--publish-as", "publish.model", str, "model that gets the new version; default the same"),
    ("--metric", "publish.metric", str, "the metric for best, and for the bar"),
    ("--bar", "publish.bar", float, "the value that the metric must reach for publishing"),
    ("--threads", "resources.threads", int, "threads of the job"),
    ("--device", "resources.device", str, "device of the job, such as cuda:0; default the CPU"),
)


def add_to(commands: Any) -> None:
    command = add_command(commands, "train", train, "Train a model of a running tensord, and watch the job")
    command.add_argument("model", nargs="?", default="",
                         help="the served model to start from; with --upload, what to publish as")
    command.add_argument("--detach", action="store_true", help="print the job's id and leave it running")
    command.add_argument("--version", dest="model_version", type=int, default=0,
                         help="version of the model; default the served one")
    command.add_argument("--upload", help="start from this archive instead")
    command.add_argument("--upload-data", help="a file of this machine as data, also .parquet where pyarrow is installed, or a folder of images")
    command.add_argument("--upload-eval-data", help="a file of this machine for the evaluation")
    command.add_argument("--spec", help="the job as JSON; flags override it")
    command.add_argument("--streamed", action="store_true", help="a client streams the data")
    command.add_argument("--input", action="append", default=[], metavar="ARGUMENT=ARRAY",
                         help="the array for an argument; may be repeated")
    command.add_argument("--image-parameter", action="append", default=[], metavar="NAME=VALUE",
                         help="how images become the input, such as image_crop_size=224; may be repeated")
    command.add_argument("--freeze", action="append", default=[], metavar="PATTERN",
                         help="parameters that are not trained, such as layer1.*; may be repeated")
    command.add_argument("--metrics", default="", help="loss, accuracy, top_5_accuracy, mae, mse, rmse; with commas")
    for flag, place, kind, help_text in _FLAGS:
        command.add_argument(flag, dest=place, type=kind, help=help_text)


def job_fields(given: argparse.Namespace) -> Dict[str, Any]:
    """The job file's fields, overridden by flags."""
    fields: Dict[str, Any] = {}
    if given.spec:
        with open(given.spec) as file:
            try:
                fields = json.load(file)
            except ValueError as error:
                raise InvalidArgumentError(f"--spec: {given.spec} is not JSON: {error}") from error
    for _, place, _, _ in _FLAGS:
        value = getattr(given, place)
        if value is not None:
            put(fields, place, value)
    if given.streamed:
        put(fields, "data.streamed", True)
    if given.metrics:
        put(fields, "evaluation.metrics", given.metrics.split(","))
    for argument, array in pairs(given.input, "--input", "ARGUMENT=ARRAY").items():
        fields.setdefault("data", {}).setdefault("inputs", {})[argument] = array
    for name, value in pairs(given.image_parameter, "--image-parameter", "NAME=VALUE").items():
        fields.setdefault("data", {}).setdefault("image_parameters", {})[name] = value
    for pattern in given.freeze:
        fields.setdefault("optimizer", {}).setdefault("groups", []).append({"pattern": pattern, "freeze": True})
    if given.model:
        put(fields, "model.name", given.model)
    if given.model_version:
        put(fields, "model.version", given.model_version)
    return fields


def put(fields: Dict[str, Any], place: str, value: Any) -> None:
    *parents, name = place.split(".")
    for parent in parents:
        fields = fields.setdefault(parent, {})
        if not isinstance(fields, dict):
            raise InvalidArgumentError(f"--spec: '{parent}' must be an object")
    fields[name] = value


def train(given: argparse.Namespace) -> int:
    fields = job_fields(given)
    with connect(given) as client:
        source: Mapping[str, Any] = fields.pop("model", {})
        if given.upload:
            source = {**source, "upload_id": client.upload(given.upload)}
        for place, path in (("data.file", given.upload_data), ("evaluation.file", given.upload_eval_data)):
            if path:
                put(fields, place, client.upload_data(path))
        job = client.train(source, **fields)  # type: ignore[arg-type]
        if given.detach:
            print_job(job.info, True) if given.json else print(job.id)
            return 0
        if not given.json:
            print(f"job {job.id}", flush=True)
        watch(job, given.json)
        return 0 if job.state == JobState.COMPLETED else 1
