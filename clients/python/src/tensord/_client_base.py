"""How a client makes its calls, which jobs, streams and sequences use too."""
# Written by make_sync.py from _aio_client_base.py.

from __future__ import annotations

from typing import Any, Iterator, Callable, Dict, Mapping, Optional, Sequence, Union

import grpc

from tensord import _operations
from tensord._calls import close, open_channel, send_all, sleep
from tensord._connection import ChannelOption, Headers, Operation, Retry, Settings, T, TLS, Token, parsed, resolve
from tensord._inference import InferOptions, InferRequest, Inputs, Parameter, Result, build_request, needs_metadata
from tensord._shared_memory import Regions
from tensord.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from tensord.types import ModelMetadata


class ClientBase:
    """A channel and its settings; the metadata of models that requests were built for."""

    def __init__(self, address: str = "localhost:8001", *, tls: Union[TLS, bool] = False, token: Optional[Token] = None,
                 headers: Optional[Mapping[str, str]] = None, timeout: float = 60.0, retry: Retry = Retry(),
                 compression: str = "", load_balancing: str = "", options: Sequence[ChannelOption] = ()) -> None:
        self.address = address
        self.settings = Settings(tls, token, headers or {}, timeout, retry, compression, load_balancing, options)
        self._compression = self.settings.grpc_compression
        target, tls_settings, channel_options = resolve(address, self.settings)
        self._channel: Any = open_channel(target, tls_settings, channel_options)
        self._unary: Dict[str, Any] = {}
        self._metadata: Dict[str, ModelMetadata] = {}
        self._regions = Regions()
        self._is_closed = False

    def close(self) -> None:
        """Ends calls and streams that are under way."""
        self._is_closed = True
        close(self._channel)

    def _infer(self, model: str, inputs: Inputs, options: InferOptions, extra: Mapping[str, Parameter],
               is_repeatable: bool, timeout: Optional[float], headers: Optional[Mapping[str, str]]) -> Result:
        def attempt(request: InferRequest) -> Result:
            return self._run(_operations.infer(request, is_repeatable), timeout, headers)

        return self._with_request(model, inputs, options, extra, attempt)

    def _with_request(self, model: str, inputs: Inputs, options: InferOptions, extra: Mapping[str, Parameter],
                      attempt: Callable[[InferRequest], T]) -> T:
        """Builds the request and gives it to `attempt`; again, when what was known of the model has changed since."""
        key = f"{model}/{options.version}"
        is_needed = needs_metadata(inputs, options)
        known = self._metadata.get(key) if is_needed else None
        try:
            metadata = known or (self._learn(key, model, options.version) if is_needed else None)
            return attempt(build_request(model, inputs, options, self._regions, metadata, extra))
        except (InvalidArgumentError, NotFoundError):
            if known is None:
                raise
            metadata = self._learn(key, model, options.version)
            if metadata == known:
                raise
        return attempt(build_request(model, inputs, options, self._regions, metadata, extra))

    def _learn(self, key: str, model: str, version: str) -> ModelMetadata:
        self._metadata.pop(key, None)
        metadata = self._run(_operations.metadata(model, version))
        self._metadata[key] = metadata
        return metadata

    def _call_headers(self, headers: Optional[Mapping[str, str]] = None) -> Headers:
        """The metadata of a call. Raises if the client is closed."""
        if self._is_closed:
            raise FailedPreconditionError("the client is closed")
        return self.settings.call_headers(headers)

    def _run(self, operation: Operation[T], timeout: Optional[float] = None,
             headers: Optional[Mapping[str, str]] = None) -> T:
        call = self._unary.get(operation.method)
        if call is None:
            call = self._unary[operation.method] = self._channel.unary_unary(operation.method)
        attempts = self.settings.attempts(operation.is_repeatable, timeout)
        while True:
            try:
                response = call(operation.request, timeout=attempts.timeout(),
                                metadata=self._call_headers(headers), compression=self._compression)
                return parsed(operation, response)
            except grpc.RpcError as error:
                delay = attempts.delay_after(error)
            sleep(delay)

    def _send_stream(self, method: str, messages: Iterator[bytes], timeout: Optional[float]) -> bytes:
        return send_all(self._channel, method, messages, self.settings.stream_timeout(timeout),
                        self._call_headers())
