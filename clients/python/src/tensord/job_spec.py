"""The specification of a training job, as dicts with the fields of protos/training.proto, which documents them.

Omitted fields have the server's defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Sequence, TypedDict, Union

from google.protobuf import json_format

from tensord._protocol import training as pb
from tensord.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "Checkpoints", "Clipping", "Data", "Evaluation", "JobSpec", "Loss", "ModelSource", "Optimizer", "ParameterGroup",
    "Publish", "Resources", "Schedule",
]


class ModelSource(TypedDict, total=False):
    name: str
    version: int
    upload_id: str


class Data(TypedDict, total=False):
    file: str
    streamed: bool
    inputs: Mapping[str, str]
    shuffle: bool
    drop_last: bool
    max_buffered_bytes: int
    stream_timeout_seconds: int
    image_parameters: Mapping[str, str]
    random_resized_crop: float
    random_horizontal_flip: float


class Loss(TypedDict, total=False):
    method: str
    builtin: str
    label: str
    output: str
    label_smoothing: float
    ignore_index: int
    delta: float
    class_weights: List[float]


class ParameterGroup(TypedDict, total=False):
    pattern: str
    freeze: bool
    lr: float
    weight_decay: float
    momentum: float
    options: Dict[str, Union[float, bool]]  # as in the optimizer


class Optimizer(TypedDict, total=False):
    name: str
    lr: float
    weight_decay: float
    momentum: float
    dampening: float
    nesterov: bool
    beta1: float
    beta2: float
    eps: float
    amsgrad: bool
    alpha: float
    centered: bool
    lr_decay: float
    groups: List[ParameterGroup]
    max_iter: int
    history_size: int
    options: Dict[str, Union[float, bool]]  # options without a field here, by name (docs/training.md lists all)


class Schedule(TypedDict, total=False):
    name: str
    warmup_steps: int
    warmup_factor: float
    by_epoch: bool
    step_size: int
    milestones: List[int]
    gamma: float
    t_max: int
    min_lr: float
    max_lr: float
    pct_start: float
    end_factor: float
    metric: str
    factor: float
    patience: int


class Clipping(TypedDict, total=False):
    norm: float
    value: float


class Evaluation(TypedDict, total=False):
    fraction: float
    file: str
    every_steps: int
    batch_size: int
    metrics: List[str]
    patience: int


class Checkpoints(TypedDict, total=False):
    every_steps: int
    every_seconds: int
    keep: int


class Publish(TypedDict, total=False):
    when: str
    model: str
    metric: str
    bar: float


class Resources(TypedDict, total=False):
    threads: int
    memory_bytes: int
    device: str


class Distribution(TypedDict, total=False):
    world_size: int
    processes_per_host: int
    max_restarts: int
    timeout_seconds: int
    join_timeout_seconds: int
    hosts: List[str]
    sync_batch_norm: bool
    zero: int
    compression: str
    compression_rank: int
    compression_start_step: int
    backend: str
    min_world_size: int


class JobSpec(TypedDict, total=False):
    """The keyword arguments of `train`.

    A string is short for the main field: `data` for its file, `loss` for the name of a built-in one,
    `optimizer` and `schedule` for their names, `evaluation` for its file, `publish` for when. `label` and `lr` are
    those of the loss and the optimizer.
    """

    name: str
    data: Union[str, Data]
    loss: Union[str, Loss]
    label: str
    optimizer: Union[str, Optimizer]
    lr: float
    schedule: Union[str, Schedule]
    clipping: Clipping
    evaluation: Union[str, Evaluation]
    epochs: int
    steps: int
    batch_size: int
    seed: int
    checkpoints: Checkpoints
    publish: Union[str, Publish]
    resources: Resources
    distribution: Distribution
    max_seconds: int
    tags: Mapping[str, str]
    ema_decay: float
    accumulation: int
    deterministic: bool
    loss_scale: float
    precision: str
    activation_checkpointing: Sequence[str]


_SHORT = {
    "data": "file", "loss": "builtin", "optimizer": "name", "schedule": "name", "evaluation": "file", "publish": "when",
}
_INSIDE = {"label": "loss", "lr": "optimizer"}


def job_spec_message(model: Union[str, ModelSource], **spec: Unpack[JobSpec]) -> pb.JobSpec:
    """Builds the message. An unknown field or a wrong type raises an InvalidArgumentError that names the field."""
    fields: Dict[str, Any] = {"model": {"name": model} if isinstance(model, str) else dict(model)}
    for name, value in spec.items():
        if name not in _INSIDE:
            fields[name] = {_SHORT[name]: value} if name in _SHORT and isinstance(value, str) else value
    for name, parent in _INSIDE.items():
        if name in spec:
            inside = dict(fields.get(parent, {}))
            inside.setdefault(name, spec[name])  # type: ignore[literal-required]
            fields[parent] = inside
    try:
        message: pb.JobSpec = json_format.ParseDict(fields, pb.JobSpec())
    except json_format.ParseError as error:
        raise InvalidArgumentError(f"job: {error}") from error
    return message
