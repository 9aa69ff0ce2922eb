"""The calls of the training service, without any I/O."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import grpc

from tensord._connection import Operation
from tensord._protocol import training as pb
from tensord._tensors import TensorLike, to_buffer, to_tensor
from tensord._wire import with_raw_contents
from tensord.errors import DataLossError, InvalidArgumentError, from_rpc
from tensord.jobs import JobInfo, JobState, Point, parse_job, parse_points

T = TypeVar("T")

SERVICE = "/tensord.training.v1.TrainingService/"
WATCH = SERVICE + "WatchJob"
STREAM_DATA = SERVICE + "StreamData"
UPLOAD = SERVICE + "UploadModel"
UPLOAD_DATA = SERVICE + "UploadData"
DOWNLOAD = SERVICE + "DownloadModel"

_PIECE_BYTES = 1 << 20

Batch = Mapping[str, TensorLike]
Archive = Union[bytes, str, "os.PathLike[str]"]


def _call(name: str, request: Any, response_type: Any, parse: Callable[[Any], T], is_repeatable: bool) -> Operation[T]:
    def read(message: bytes) -> T:
        return parse(response_type.FromString(message))

    return Operation(SERVICE + name, request.SerializeToString(), read, is_repeatable)


def create(spec: pb.JobSpec) -> Operation[JobInfo]:
    return _call("CreateJob", pb.CreateJobRequest(spec=spec), pb.Job, parse_job, False)


def get(job_id: str) -> Operation[JobInfo]:
    return _call("GetJob", pb.GetJobRequest(id=job_id), pb.Job, parse_job, True)


def list_jobs(model: str, states: Sequence[JobState], tags: Mapping[str, str]) -> Operation[List[JobInfo]]:
    request: Any = pb.ListJobsRequest(model=model, tags=tags)
    request.states.extend(int(state) for state in states)
    return _call("ListJobs", request, pb.ListJobsResponse, lambda answer: [parse_job(job) for job in answer.jobs], True)


def pause(job_id: str) -> Operation[JobInfo]:
    return _call("PauseJob", pb.PauseJobRequest(id=job_id), pb.Job, parse_job, False)


def resume(job_id: str, world_size: int) -> Operation[JobInfo]:
    return _call("ResumeJob", pb.ResumeJobRequest(id=job_id, world_size=world_size), pb.Job, parse_job, False)


def cancel(job_id: str) -> Operation[JobInfo]:
    return _call("CancelJob", pb.CancelJobRequest(id=job_id), pb.Job, parse_job, False)


def finish(job_id: str) -> Operation[JobInfo]:
    return _call("FinishJob", pb.FinishJobRequest(id=job_id), pb.Job, parse_job, False)


def delete(job_id: str) -> Operation[None]:
    return _call("DeleteJob", pb.DeleteJobRequest(id=job_id), pb.DeleteJobResponse, lambda answer: None, False)


def rollback(model: str) -> Operation[Tuple[int, int]]:
    return _call("Rollback", pb.RollbackRequest(model=model), pb.RollbackResponse,
                 lambda answer: (answer.withdrawn_version, answer.served_version), False)


@dataclass(frozen=True)
class JobUpdate:
    """A job's current state, and the points added since the previous update."""

    info: JobInfo
    points: List[Point]


class Watch:
    """A watch that survives broken connections: a job outlives its daemon and continues after a restart."""

    def __init__(self, job_id: str, reconnect_seconds: float) -> None:
        self._job_id = job_id
        self._reconnect_seconds = reconnect_seconds
        self._last_step = 0
        self._broken_at: Optional[float] = None

    def request(self) -> bytes:
        return pb.WatchJobRequest(id=self._job_id, after_step=self._last_step).SerializeToString()

    def update(self, message: bytes) -> JobUpdate:
        answer = pb.WatchJobResponse.FromString(message)
        self._broken_at = None
        points = parse_points(answer.points)
        if points:
            self._last_step = points[-1].step
        return JobUpdate(parse_job(answer.job), points)

    def delay_after(self, error: grpc.RpcError) -> float:
        """Seconds until the next attempt. Raises the error if there is no further attempt."""
        failure = from_rpc(error)
        now = time.monotonic()
        # A restarted daemon answers before it has read its jobs.
        is_starting = failure.code == "NOT_FOUND" and self._broken_at is not None
        if failure.code != "UNAVAILABLE" and not is_starting:
            raise failure from None
        self._broken_at = self._broken_at or now
        if now - self._broken_at >= self._reconnect_seconds:
            raise failure from None
        return 0.2


def batch_message(job_id: str, number: int, batch: Batch) -> bytes:
    head = pb.StreamDataRequest(job_id=job_id, batch=number)
    contents = []
    for name, value in batch.items():
        tensor = to_tensor(value)
        if tensor.datatype == "BYTES":
            raise InvalidArgumentError(f"batch {number}: array '{name}' has strings, which jobs do not take")
        head.inputs.add(name=name, datatype=tensor.datatype, shape=tensor.data.shape)
        contents.append(to_buffer(tensor))
    return with_raw_contents(head.SerializeToString(), contents)


def end_of_data(job_id: str) -> bytes:
    return pb.StreamDataRequest(job_id=job_id, complete=True).SerializeToString()


def parse_data_answer(message: bytes) -> int:
    return pb.StreamDataResponse.FromString(message).batches


def upload_messages(archive: Archive) -> Iterator[bytes]:
    """The archive in pieces; a file is read while they are sent."""
    if isinstance(archive, bytes):
        pieces: Iterator[bytes] = (archive[i:i + _PIECE_BYTES] for i in range(0, len(archive), _PIECE_BYTES))
        yield from _upload(pieces, len(archive))
        return
    with open(archive, "rb") as file:
        yield from _upload(iter(lambda: file.read(_PIECE_BYTES), b""), os.fstat(file.fileno()).st_size)


def _upload(pieces: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
    size: Optional[int] = size_bytes
    for piece in pieces:
        yield pb.UploadModelRequest(data=piece, size_bytes=size).SerializeToString()
        size = None


class DataUpload:
    """A file of data as messages, and the check of what arrived."""

    def __init__(self, path: "Union[str, os.PathLike[str]]") -> None:
        self._path = os.fspath(path)
        self._digest = hashlib.sha256()

    def messages(self) -> Iterator[bytes]:
        first = True
        with open(self._path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
                self._digest.update(piece)
                head: Dict[str, Any] = {"size_bytes": size, "file_name": os.path.basename(self._path)} if first else {}
                yield pb.UploadDataRequest(data=piece, **head).SerializeToString()
                first = False

    def name(self, message: bytes) -> str:
        answer = pb.UploadDataResponse.FromString(message)
        if answer.sha256 != self._digest.hexdigest():
            raise DataLossError(f"{self._path}: another file arrived at the server")
        return str(answer.file)


class Download:
    """Writes the files of a model into a new folder, which appears when all of them are there and right."""

    def __init__(self, job_id: str, folder: "Union[str, os.PathLike[str]]") -> None:
        self.request = pb.DownloadModelRequest(id=job_id).SerializeToString()
        self._target = os.path.abspath(os.fspath(folder))
        if os.path.lexists(self._target):
            raise FileExistsError(self._target)
        self._folder = os.path.join(os.path.dirname(self._target), f".download-{secrets.token_hex(8)}")
        os.mkdir(self._folder)
        self._file: Any = None
        self._digest = hashlib.sha256()

    def take(self, message: bytes) -> None:
        piece = pb.DownloadModelResponse.FromString(message)
        if piece.file_name:
            name = str(piece.file_name)
            if name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
                raise DataLossError(f"the server sends a file named {name!r}")
            if self._file is not None:
                raise DataLossError(f"the server sends {name!r} before the end of another file")
            self._file = open(os.path.join(self._folder, name), "wb")
            self._digest = hashlib.sha256()
        if self._file is None:
            raise DataLossError("the server sends a part of a file without its name")
        self._file.write(piece.data)
        self._digest.update(piece.data)
        if piece.sha256:
            self._file.close()
            self._file = None
            if piece.sha256 != self._digest.hexdigest():
                raise DataLossError("another file arrived than the server sent")

    def finish(self) -> List[str]:
        """The paths of the files."""
        if self._file is not None:
            raise DataLossError("the server ended within a file")
        os.rename(self._folder, self._target)
        return sorted(os.path.join(self._target, name) for name in os.listdir(self._target))

    def abandon(self) -> None:
        if self._file is not None:
            self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def parse_upload(message: bytes) -> str:
    return str(pb.UploadModelResponse.FromString(message).upload_id)
