"""The gRPC calls of the synchronous client, which are all that differs from the asyncio one (`_aio_calls`)."""

from __future__ import annotations

import queue
import time
from typing import Any, Iterable, Iterator, List, Optional, TypeVar

import grpc

from tensord._connection import TLS, Headers
from tensord.errors import from_rpc

T = TypeVar("T")
Items = Iterable[T]


def open_channel(target: str, tls: Optional[TLS], options: Any) -> Any:
    if tls is None:
        return grpc.insecure_channel(target, options)
    return grpc.secure_channel(target, tls.credentials(), options)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def close(channel: Any) -> None:
    channel.close()


def each(items: Items[T]) -> Iterator[T]:
    yield from items


def received(call: Any) -> Iterator[bytes]:
    """The responses of a server-streaming call. Raises grpc.RpcError."""
    yield from call


def send_all(channel: Any, method: str, messages: Iterator[bytes], timeout: Optional[float],
             metadata: Headers) -> bytes:
    """A client-streaming call. Exceptions of `messages` are passed on."""
    failures: List[BaseException] = []

    def guarded() -> Iterator[bytes]:
        try:
            yield from messages
        except BaseException as error:  # gRPC would only report that iterating failed
            failures.append(error)
            raise

    try:
        answer: bytes = channel.stream_unary(method)(guarded(), timeout=timeout, metadata=metadata)
        return answer
    except grpc.RpcError as error:
        raise (failures[0] if failures else from_rpc(error)) from None


class Duplex:
    """A bidirectional stream. `write` never waits and may be called on another thread than `read`."""

    def __init__(self, channel: Any, method: str, **options: Any) -> None:
        self._requests: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._call: Any = channel.stream_stream(method)(iter(self._requests.get, None), **options)

    def write(self, message: bytes) -> None:
        self._requests.put(message)

    def finish(self) -> None:
        self._requests.put(None)

    def read(self) -> Optional[bytes]:
        """Returns None when the call has ended."""
        try:
            message: Optional[bytes] = next(self._call, None)
            return message
        except grpc.RpcError as error:
            raise from_rpc(error) from None

    def cancel(self) -> None:
        self._call.cancel()
        self._requests.put(None)
