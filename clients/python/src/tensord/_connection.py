"""How a client reaches its server: address, TLS, tokens, retries and deadlines."""

from __future__ import annotations

import json
import math
import os
import random
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, FrozenSet, Generic, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

import grpc

from tensord.errors import InvalidArgumentError, TensordError, from_rpc

T = TypeVar("T")
ChannelOption = Tuple[str, Any]
Headers = Tuple[Tuple[str, Union[str, bytes]], ...]
Pem = Union[bytes, str, "os.PathLike[str]"]


@dataclass(frozen=True)
class TLS:
    """How to be sure of the server, and the server of this client. PEM contents are bytes, anything else is a path.

    Without `root_certificates`, the system's are used. `certificate` and `private_key` are for servers that require a
    client certificate. `server_name` is the name in the server's certificate if it differs from the address.
    """

    root_certificates: Optional[Pem] = None
    certificate: Optional[Pem] = None
    private_key: Optional[Pem] = field(default=None, repr=False)
    server_name: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        root, key, certificate = _pem(self.root_certificates), _pem(self.private_key), _pem(self.certificate)
        return grpc.ssl_channel_credentials(root, key, certificate)


def _pem(value: Optional[Pem]) -> Optional[bytes]:
    if value is None or isinstance(value, bytes):
        return value
    with open(value, "rb") as file:
        return file.read()


@dataclass(frozen=True)
class Retry:
    """When a failed call is repeated: the backoff doubles each time, minus random jitter of up to a half.

    Only idempotent calls are repeated: not those of sequences and streams, and not the creation of jobs. A pushback by
    the server (`grpc-retry-pushback-ms`) is respected. The call's timeout includes all attempts.
    """

    attempts: int = 3
    initial_backoff: float = 0.05  # seconds
    max_backoff: float = 1.0
    codes: FrozenSet[str] = frozenset({"UNAVAILABLE"})


NO_RETRY = Retry(attempts=1)


@dataclass(frozen=True)
class Operation(Generic[T]):
    """A unary call: the request and how to parse the response. `parse` raises for malformed responses."""

    method: str
    request: bytes
    parse: Callable[[bytes], T]
    is_repeatable: bool = True


class Attempts:
    """Counts a call's attempts and the remaining time."""

    def __init__(self, retry: Retry, is_repeatable: bool, timeout: float) -> None:
        self._retry = retry
        self._left = retry.attempts if is_repeatable else 1
        self._backoff = retry.initial_backoff
        self._deadline = None if math.isinf(timeout) else time.monotonic() + timeout

    def timeout(self) -> Optional[float]:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def delay_after(self, error: grpc.RpcError) -> float:
        """Seconds to wait before the next attempt. Raises the error of the call if there is no further attempt."""
        failure = from_rpc(error)
        self._left -= 1
        if self._left <= 0 or failure.code not in self._retry.codes:
            raise failure from None
        delay = self._backoff * random.uniform(0.5, 1.0)
        self._backoff = min(self._backoff * 2, self._retry.max_backoff)
        trailers: Any = error.trailing_metadata() or ()
        for key, value in trailers:
            if key == "grpc-retry-pushback-ms":
                delay = float(value) / 1e3
        left = self.timeout()
        if delay < 0 or (left is not None and delay >= left):
            raise failure from None
        return delay


Token = Union[str, Callable[[], str]]

_COMPRESSION = {"": None, "none": None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


@dataclass(frozen=True)
class Settings:
    """Settings shared by all calls of a client. They are the keyword arguments of `Client` and `AsyncClient`.

    `timeout` is the default in seconds; math.inf means no limit. `token` is sent as `authorization: Bearer …`; a
    function is called before each call. `headers` are sent with every call. `options` are gRPC's channel options.
    `load_balancing="round_robin"` distributes calls over all addresses that the name resolves to.
    """

    tls: Union[TLS, bool] = False
    token: Optional[Token] = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 60.0
    retry: Retry = Retry()
    compression: str = ""
    load_balancing: str = ""
    options: Sequence[ChannelOption] = ()

    def call_headers(self, more: Optional[Mapping[str, str]]) -> Headers:
        headers: List[Tuple[str, Union[str, bytes]]]
        headers = [(key.lower(), value) for key, value in {**self.headers, **(more or {})}.items()]
        if self.token is not None:
            token = self.token if isinstance(self.token, str) else self.token()
            headers.append(("authorization", f"Bearer {token}"))
        return tuple(headers)

    def attempts(self, is_repeatable: bool, timeout: Optional[float]) -> Attempts:
        return Attempts(self.retry, is_repeatable, self.timeout if timeout is None else timeout)

    def stream_timeout(self, timeout: Optional[float]) -> Optional[float]:
        """A stream has no timeout unless the call sets one."""
        return None if timeout is None or math.isinf(timeout) else timeout

    @property
    def grpc_compression(self) -> Optional[grpc.Compression]:
        if self.compression not in _COMPRESSION:
            raise InvalidArgumentError(f"compression: must be gzip, deflate or none, got '{self.compression}'")
        return _COMPRESSION[self.compression]


def resolve(address: str, settings: Settings) -> Tuple[str, Optional[TLS], List[ChannelOption]]:
    """The channel's target, TLS and options. grpcs:// turns on TLS; the default port is 8001."""
    tls = settings.tls if isinstance(settings.tls, TLS) else TLS() if settings.tls else None
    target = address
    for scheme in ("grpc://", "grpcs://"):
        if address.startswith(scheme):
            target = address[len(scheme):].rstrip("/")
            tls = tls or (TLS() if scheme == "grpcs://" else None)
    if not target:
        raise InvalidArgumentError(f"address: must be HOST:PORT or unix:PATH, got '{address}'")
    if target.startswith(("http://", "https://")):
        raise InvalidArgumentError(f"address: the protocol is gRPC, not HTTP: HOST:PORT, got '{address}'")
    if ":" not in target:
        target += ":8001"
    # No limit on the message size in the client; the server has its own.
    options: Dict[str, Any] = {"grpc.max_send_message_length": -1, "grpc.max_receive_message_length": -1}
    if tls and tls.server_name:
        options["grpc.ssl_target_name_override"] = tls.server_name
    if settings.load_balancing:
        options["grpc.service_config"] = json.dumps({"loadBalancingConfig": [{settings.load_balancing: {}}]})
    options.update(settings.options)
    return target, tls, list(options.items())


def parsed(operation: Operation[T], response: bytes) -> T:
    """Parses a response. A malformed one raises a TensordError too."""
    try:
        return operation.parse(response)
    except TensordError:
        raise
    except Exception as error:
        raise TensordError(f"{operation.method}: the answer cannot be read: {error}", "INTERNAL") from error
