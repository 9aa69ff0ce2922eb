"""The gRPC calls of the asyncio client, which are all that differs from the synchronous one (`_calls`)."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterable, AsyncIterator, Iterable, Optional, TypeVar, Union

import grpc
import grpc.aio

from tensord._connection import TLS, Headers
from tensord.errors import FailedPreconditionError, from_rpc

T = TypeVar("T")
Items = Union[Iterable[T], AsyncIterable[T]]


def open_channel(target: str, tls: Optional[TLS], options: Any) -> Any:
    if tls is None:
        return grpc.aio.insecure_channel(target, options)
    return grpc.aio.secure_channel(target, tls.credentials(), options)


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def close(channel: Any) -> None:
    await channel.close()


async def each(items: Items[T]) -> AsyncIterator[T]:
    """Iterates over a synchronous or asynchronous iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def received(call: Any) -> AsyncIterator[bytes]:
    """The responses of a server-streaming call. Raises grpc.RpcError."""
    while True:
        message = await call.read()
        if message is grpc.aio.EOF:
            return
        yield message


async def send_all(channel: Any, method: str, messages: AsyncIterator[bytes], timeout: Optional[float],
                   metadata: Headers) -> bytes:
    """A client-streaming call. Exceptions of `messages` are passed on."""
    call: Any = channel.stream_unary(method)(timeout=timeout, metadata=metadata)
    try:
        async for message in messages:
            await call.write(message)
        await call.done_writing()
    except (grpc.RpcError, asyncio.InvalidStateError):
        pass  # the server ended the call; the response says why
    except BaseException:
        call.cancel()
        raise
    try:
        answer: bytes = await call
        return answer
    except grpc.RpcError as error:
        raise from_rpc(error) from None


class Duplex:
    """A bidirectional stream. `write` waits while flow control stops the client."""

    def __init__(self, channel: Any, method: str, **options: Any) -> None:
        self._call: Any = channel.stream_stream(method)(**options)

    async def write(self, message: bytes) -> None:
        try:
            await self._call.write(message)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        except asyncio.InvalidStateError:
            raise FailedPreconditionError("the stream has ended; nothing can be sent any more") from None

    async def finish(self) -> None:
        try:
            await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # the call has ended; reading says why

    async def read(self) -> Optional[bytes]:
        """Returns None when the call has ended."""
        try:
            message: Any = await self._call.read()
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        return None if message is grpc.aio.EOF else message

    def cancel(self) -> None:
        self._call.cancel()
