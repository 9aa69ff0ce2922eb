"""The exceptions of the client, one family.

`except tensord.TensordError` catches all of them; each gRPC status has a subclass.
"""

from __future__ import annotations

from typing import Dict, Optional, Type

import grpc

__all__ = [
    "AbortedError", "AlreadyExistsError", "CancelledError", "DataLossError", "DeadlineExceededError",
    "FailedPreconditionError", "InternalError", "InvalidArgumentError", "JobFailedError", "NotFoundError",
    "OutOfRangeError", "PermissionDeniedError", "ResourceExhaustedError", "TensordError", "UnauthenticatedError",
    "UnavailableError", "UnimplementedError",
]


class TensordError(Exception):
    """A failed call. `code` is the name of the status ("NOT_FOUND"), `message` the text from the server or this
    package."""

    code = "UNKNOWN"

    def __init__(self, message: str, code: Optional[str] = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> "tuple[type[TensordError], tuple[str, str]]":
        return type(self), (self.message, self.code)


class InvalidArgumentError(TensordError, ValueError):
    """The request is invalid: names, types, shapes, fields of a job."""

    code = "INVALID_ARGUMENT"


class NotFoundError(TensordError, LookupError):
    """The model, version, job, region or file does not exist."""

    code = "NOT_FOUND"


class AlreadyExistsError(TensordError):
    code = "ALREADY_EXISTS"


class PermissionDeniedError(TensordError, PermissionError):
    """The token or header does not permit this call."""

    code = "PERMISSION_DENIED"


class UnauthenticatedError(TensordError, PermissionError):
    """The token is missing or unknown."""

    code = "UNAUTHENTICATED"


class ResourceExhaustedError(TensordError):
    """A queue is full, or a limit on memory, size or connections is reached."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(TensordError):
    """The state of the job, model or region does not allow the call."""

    code = "FAILED_PRECONDITION"


class AbortedError(TensordError):
    code = "ABORTED"


class UnimplementedError(TensordError, NotImplementedError):
    """The server does not support this call, or not in its current mode."""

    code = "UNIMPLEMENTED"


class InternalError(TensordError):
    """The model's script raised an exception, or the server failed."""

    code = "INTERNAL"


class UnavailableError(TensordError, ConnectionError):
    """The server is unreachable or shutting down."""

    code = "UNAVAILABLE"


class DeadlineExceededError(TensordError, TimeoutError):
    """The call's timeout, or the timeout in the queue, expired."""

    code = "DEADLINE_EXCEEDED"


class DataLossError(TensordError):
    """An archive, checkpoint or file is damaged."""

    code = "DATA_LOSS"


class OutOfRangeError(TensordError):
    code = "OUT_OF_RANGE"


class CancelledError(TensordError):
    code = "CANCELLED"


class JobFailedError(TensordError):
    """A training job that was waited for has failed or was cancelled; `job_id` is its ID."""

    code = "JOB_FAILED"

    def __init__(self, message: str, job_id: str) -> None:
        super().__init__(message)
        self.job_id = job_id

    def __reduce__(self) -> "tuple[type[TensordError], tuple[str, str]]":
        return type(self), (self.message, self.job_id)


_BY_CODE: Dict[str, Type[TensordError]] = {
    kind.code: kind
    for kind in (InvalidArgumentError, NotFoundError, AlreadyExistsError, PermissionDeniedError, UnauthenticatedError,
                 ResourceExhaustedError, FailedPreconditionError, AbortedError, UnimplementedError, InternalError,
                 UnavailableError, DeadlineExceededError, CancelledError, DataLossError, OutOfRangeError)
}


def from_status(code: str, message: str) -> TensordError:
    kind = _BY_CODE.get(code)
    return kind(message) if kind else TensordError(message, code)


def from_rpc(error: grpc.RpcError) -> TensordError:
    """Converts an exception of gRPC's synchronous or asyncio API."""
    code = error.code()
    return from_status(code.name if code is not None else "UNKNOWN", error.details() or "the server gave no reason")
