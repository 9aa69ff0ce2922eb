"""train"""

from __future__ import annotations

import argparse
import json
from typing import Any, Callable, Dict, List, Mapping, Tuple

from tensord._commands.connect import add_command, connect, pairs
from tensord._commands.job_view import print_job, watch
from tensord.errors import InvalidArgumentError
from tensord.jobs import JobState


def _texts(given: str) -> List[str]:
    return given.split(",")


def _numbers(given: str) -> List[float]:
    return [float(number) for number in _texts(given)]


# Flag, field of the job, type (bool: a flag without a value), help. With those of add_to() they are the flags of
# `tensord train`, but for --attach and --list-optimizers, which need the engine (tests/test_commands.py compares both).
_FLAGS: Tuple[Tuple[str, str, Callable[[str], Any], str], ...] = (
    ("--name", "name", str, "a readable name"),
    ("--data", "data.file", str,
     "file in the server's data folder: .npz, .safetensors, .pt, .csv; or a folder or .zip of images"),
    ("--random-resized-crop", "data.random_resized_crop", float,
     "train on random parts of images, of at least this share"),
    ("--random-horizontal-flip", "data.random_horizontal_flip", float, "probability with which an image is mirrored"),
    ("--streamed", "data.streamed", bool, "a client streams the data"),
    ("--label", "loss.label", str, "the array with the labels"),
    ("--loss", "loss.builtin", str, "cross_entropy, mse, l1, smooth_l1, huber, bce_with_logits, nll …"),
    ("--class-weights", "loss.class_weights", _numbers,
     "of cross_entropy and nll: the weight of each class; with commas"),
    ("--loss-method", "loss.method", str, "method of the script that returns the loss, instead"),
    ("--epochs", "epochs", int, "passes over the data"),
    ("--steps", "steps", int, "updates of the weights"),
    ("--batch-size", "batch_size", int, "rows of a batch; default 32"),
    ("--accumulation", "accumulation", int, "batches whose gradients make one step; default 1"),
    ("--loss-scale", "loss_scale", float,
     "multiply the loss, so that small gradients do not vanish in float16; adjusted later"),
    ("--precision", "precision", str, "32, bf16-mixed, 16-mixed: types in which the loss is computed"),
    ("--activation-checkpointing", "activation_checkpointing", _texts,
     "modules whose activations are computed again in the backward pass: name patterns with commas, or auto"),
    ("--deterministic", "deterministic", bool, "on a GPU: the same bits each time"),
    ("--max-seconds", "max_seconds", int, "end the training after this time, and publish as configured"),
    ("--seed", "seed", int, "seed of all random numbers"),
    ("--optimizer", "optimizer.name", str, "sgd, adam, adamw, rmsprop, adagrad, sparseadam, lbfgs; default adamw"),
    ("--lr", "optimizer.lr", float, "learning rate; default PyTorch's"),
    ("--momentum", "optimizer.momentum", float, "of sgd and rmsprop"),
    ("--weight-decay", "optimizer.weight_decay", float, "default the optimizer's"),
    ("--dampening", "optimizer.dampening", float, "of sgd: dampening of the momentum"),
    ("--nesterov", "optimizer.nesterov", bool, "of sgd: Nesterov's momentum"),
    ("--beta1", "optimizer.beta1", float, "of adam, adamw, sparseadam: decay of the gradients' mean"),
    ("--beta2", "optimizer.beta2", float, "of adam, adamw, sparseadam: decay of their squares' mean"),
    ("--eps", "optimizer.eps", float, "added to the divisor; not of sgd and lbfgs"),
    ("--amsgrad", "optimizer.amsgrad", bool, "of adam, adamw: divide by the maximum of the squares' means"),
    ("--alpha", "optimizer.alpha", float, "of rmsprop: decay of the squares' mean"),
    ("--centered", "optimizer.centered", bool, "of rmsprop: divide by the variance"),
    ("--lr-decay", "optimizer.lr_decay", float, "of adagrad: decay of the rate with the steps"),
    ("--initial-accumulator-value", "optimizer.options.initial_accumulator_value", float,
     "of adagrad: initial value of the sum of squares"),
    ("--max-iter", "optimizer.max_iter", int, "of lbfgs: iterations of a step"),
    ("--history-size", "optimizer.history_size", int, "of lbfgs: number of kept updates"),
    ("--tolerance-grad", "optimizer.options.tolerance_grad", float, "of lbfgs: the step ends at a gradient below this"),
    ("--tolerance-change", "optimizer.options.tolerance_change", float,
     "of lbfgs: the step ends at a change below this"),
    ("--schedule", "schedule.name", str, "step, multi_step, exponential, cosine, one_cycle, linear, plateau"),
    ("--warmup-steps", "schedule.warmup_steps", int, "steps in which the learning rate rises"),
    ("--clip-norm", "clipping.norm", float, "largest norm of all gradients together"),
    ("--eval-fraction", "evaluation.fraction", float, "fraction of the rows used for evaluation"),
    ("--eval-data", "evaluation.file", str, "file used for evaluation"),
    ("--metrics", "evaluation.metrics", _texts,
     "loss, accuracy, top_5_accuracy, f1, auc, mae, mse, rmse …; with commas"),
    ("--patience", "evaluation.patience", int,
     "end the training after this many evaluations without a better --metric"),
    ("--ema-decay", "ema_decay", float, "decay of a moving average of the weights, which is evaluated and published"),
    ("--publish", "publish.when", str, "never, at_end, best"),
    ("--publish-as", "publish.model", str, "model that gets the new version; default the same"),
    ("--metric", "publish.metric", str, "the metric for best, and for the bar"),
    ("--bar", "publish.bar", float, "the value that the metric must reach for publishing"),
    ("--threads", "resources.threads", int, "threads of the job"),
    ("--device", "resources.device", str, "device of the job, such as cuda:0; default the CPU"),
    ("--world-size", "distribution.world_size", int, "number of processes; 0: the server itself trains"),
    ("--procs-per-host", "distribution.processes_per_host", int,
     "processes on each host: the others run on hosts that joined the server; default all"),
    ("--hosts", "distribution.hosts", _texts, "names of allowed hosts, with commas; default all"),
    ("--sync-batch-norm", "distribution.sync_batch_norm", bool, "batch norms use the rows of all processes"),
    ("--zero", "distribution.zero", int, "1: each process keeps the optimizer's state of its share of the parameters"),
    ("--compression", "distribution.compression", str, "compression of gradients: fp16, bf16, powersgd; default none"),
    ("--compression-rank", "distribution.compression_rank", int,
     "of powersgd: columns of the low-rank factors; default 1"),
    ("--compression-start-step", "distribution.compression_start_step", int,
     "of powersgd: earlier steps are not compressed; default 1000"),
    ("--min-world-size", "distribution.min_world_size", int,
     "start with as few as this many processes if hosts are missing; default all"),
    ("--backend", "distribution.backend", str, "the communication backend: gloo"),
    ("--max-restarts", "distribution.max_restarts", int,
     "how often all processes are restarted after one was lost; default 3"),
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
    command.add_argument("--input", action="append", default=[], metavar="ARGUMENT=ARRAY",
                         help="the array for an argument; may be repeated")
    command.add_argument("--image-parameter", action="append", default=[], metavar="NAME=VALUE",
                         help="how images become the input, such as image_crop_size=224; may be repeated")
    command.add_argument("--freeze", action="append", default=[], metavar="PATTERN",
                         help="parameters that are not trained, such as layer1.*; may be repeated")
    command.add_argument("--tag", action="append", default=[], metavar="NAME=VALUE", help="a tag of the job; may be repeated")
    for flag, place, kind, help_text in _FLAGS:
        if kind is bool:
            command.add_argument(flag, dest=place, action="store_const", const=True, help=help_text)
        else:
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
    for argument, array in pairs(given.input, "--input", "ARGUMENT=ARRAY").items():
        fields.setdefault("data", {}).setdefault("inputs", {})[argument] = array
    for name, value in pairs(given.image_parameter, "--image-parameter", "NAME=VALUE").items():
        fields.setdefault("data", {}).setdefault("image_parameters", {})[name] = value
    for name, value in pairs(given.tag, "--tag", "NAME=VALUE").items():
        fields.setdefault("tags", {})[name] = value
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
