"""The exceptions of the client, one family.

`except tensord.TensordError` catches all of it; each status of gRPC has a class of its own.
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
    """A call that failed. `code` is the status's name ("NOT_FOUND"), `message` what the server or this package said."""

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
    """The request is wrong: names, types, shapes, fields of a job."""

    code = "INVALID_ARGUMENT"


class NotFoundError(TensordError, LookupError):
    """There is no such model, version, job, region or file."""

    code = "NOT_FOUND"


class AlreadyExistsError(TensordError):
    code = "ALREADY_EXISTS"


class PermissionDeniedError(TensordError, PermissionError):
    """The token, or header, is for other calls."""

    code = "PERMISSION_DENIED"


class UnauthenticatedError(TensordError, PermissionError):
    """No token, or one that the server does not know."""

    code = "UNAUTHENTICATED"


class ResourceExhaustedError(TensordError):
    """A full queue, or a limit on memory, size or connections."""

    code = "RESOURCE_EXHAUSTED"


class FailedPreconditionError(TensordError):
    """The state of the job, model or region does not allow it."""

    code = "FAILED_PRECONDITION"


class AbortedError(TensordError):
    code = "ABORTED"


class UnimplementedError(TensordError, NotImplementedError):
    """The server does not have this call, or not in this mode."""

    code = "UNIMPLEMENTED"


class InternalError(TensordError):
    """The model's script raised, or the server is wrong."""

    code = "INTERNAL"


class UnavailableError(TensordError, ConnectionError):
    """Nobody answers at the address, or the server is shutting down."""

    code = "UNAVAILABLE"


class DeadlineExceededError(TensordError, TimeoutError):
    """The call's `timeout`, or the queue's, has passed."""

    code = "DEADLINE_EXCEEDED"


class DataLossError(TensordError):
    """A damaged archive, checkpoint or file."""

    code = "DATA_LOSS"


class OutOfRangeError(TensordError):
    code = "OUT_OF_RANGE"


class CancelledError(TensordError):
    code = "CANCELLED"


class JobFailedError(TensordError):
    """A training job that was waited for failed or was cancelled; `job_id` says which."""

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
    """The exception for what gRPC raised, of the synchronous or the asyncio API."""
    code = error.code()
    return from_status(code.name if code is not None else "UNKNOWN", error.details() or "the server gave no reason")
