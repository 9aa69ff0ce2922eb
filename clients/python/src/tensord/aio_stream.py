"""Streams and sequences."""

from __future__ import annotations

from typing import Any, AsyncIterator, Mapping, Optional, Union

from tensord._aio_calls import Duplex, Items, each
from tensord._aio_client_base import AsyncClientBase
from tensord._inference import InferOptions, InferRequest, Inputs, Outputs, Parameter, Result
from tensord._operations import STREAM_INFER
from tensord._streaming import SequenceState, StreamAnswer, StreamState
from tensord._tensors import TensorLike
from tensord.errors import FailedPreconditionError

Step = Union[TensorLike, Mapping[str, TensorLike]]


class AsyncInferStream:
    """A call with many requests and responses; iterate over it for the responses. Leaving `async with` cancels what is
    in progress.

    Responses of a model with one response per request come in the order of its requests; other responses come in any
    order. Without asyncio, sending never waits, so one thread may send everything and then read, or two threads share
    the stream. With asyncio, sending waits while flow control stops the client, possibly until responses are read: with
    many of both, send and read in two tasks.
    """

    def __init__(self, client: AsyncClientBase, timeout: Optional[float] = None,
                 headers: Optional[Mapping[str, str]] = None) -> None:
        self._client = client
        self._state = StreamState()
        self._is_finished = False
        self._call = Duplex(client._channel, STREAM_INFER, timeout=client.settings.stream_timeout(timeout),
                            metadata=client._call_headers(headers), compression=client._compression)

    async def send(self, model: str, *inputs: Union[TensorLike, Mapping[str, TensorLike]], outputs: Outputs = (),
                   version: Union[int, str] = "", request_id: str = "", priority: int = 0,
                   queue_timeout: Optional[float] = None, classes: int = 0,
                   parameters: Optional[Mapping[str, Parameter]] = None) -> str:
        """Sends a request with the arguments of `AsyncClient.infer`. Returns the ID that its responses have."""
        options = InferOptions(outputs, str(version), request_id, priority, queue_timeout, classes, parameters or {})
        return await self.send_with(model, inputs, options, {})

    async def send_with(self, model: str, inputs: Inputs, options: InferOptions,
                        extra: Mapping[str, Parameter]) -> str:
        request_id = options.request_id or self._state.new_id()
        options = InferOptions(**{**vars(options), "request_id": request_id})

        async def attempt(request: InferRequest) -> None:
            self._state.note(request_id, request.placed)
            await self._call.write(request.message)

        if self._is_finished:
            raise FailedPreconditionError("the stream was finished; nothing can be sent any more")
        await self._client._with_request(model, inputs, options, extra, attempt)
        return request_id

    async def finish(self) -> None:
        """Ends the requests: iteration stops after the last response."""
        self._is_finished = True
        await self._call.finish()

    def cancel(self) -> None:
        self._is_finished = True
        self._call.cancel()

    def __aiter__(self) -> AsyncIterator[StreamAnswer]:
        return self

    async def __anext__(self) -> StreamAnswer:
        message = await self._call.read()
        if message is None:
            raise StopAsyncIteration
        return self._state.parse(message)

    async def __aenter__(self) -> AsyncInferStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()


class AsyncInferSequence:
    """Requests whose state the model keeps, one at a time."""

    def __init__(self, client: AsyncClientBase, model: str, sequence_id: Union[int, str, None], version: str) -> None:
        self._client = client
        self._model = model
        self._version = version
        self._state = SequenceState(sequence_id)

    @property
    def sequence_id(self) -> Union[int, str]:
        return self._state.sequence_id

    async def infer(self, *inputs: Step, end: bool = False, outputs: Outputs = (),
                    parameters: Optional[Mapping[str, Parameter]] = None, timeout: Optional[float] = None) -> Result:
        """Runs the next step; `end` marks the last one. Never retried, because a failed request may have changed the
        state."""
        options = InferOptions(outputs, self._version, parameters=parameters or {})
        extra = self._state.parameters(end)
        result = await self._client._infer(self._model, inputs, options, extra, False, timeout, None)
        self._state.sent(end)
        return result

    async def run(self, steps: Items[Step]) -> AsyncIterator[Result]:
        """Runs one step per input (for a model with one input) or mapping; the last one ends the sequence."""
        previous: Any = None
        has_previous = False
        async for step in each(steps):
            if has_previous:
                yield await self.infer(previous)
            previous, has_previous = step, True
        if has_previous:
            yield await self.infer(previous, end=True)
