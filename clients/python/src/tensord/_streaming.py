"""The common part of both clients' streams, without any I/O."""

from __future__ import annotations

import itertools
import secrets
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Union

from tensord._inference import Parameter, Result, parse_response
from tensord._protocol import inference as pb
from tensord._tensors import Array
from tensord._wire import without_field
from tensord.errors import CancelledError, InvalidArgumentError, TensordError

_RESPONSE_FIELD = 2  # ModelStreamInferResponse.infer_response

# With it a server ends the stream with the status of a request that failed, instead of a message without one.
STATUS_HEADERS = {"triton_grpc_error": "true"}


@dataclass(frozen=True)
class StreamAnswer:
    """A response to one request of a stream: a result or an error."""

    request_id: str
    result: Optional[Result]
    error: Optional[TensordError]
    # Whether this is the request's last response; also False if the server does not say.
    is_final: bool

    def get(self) -> Result:
        """Returns the result, or raises the error."""
        if self.error is not None:
            raise self.error
        if self.result is None:
            raise CancelledError("the stream's answer has neither a result nor an error")
        return self.result


class StreamState:
    """IDs of a stream's requests, and their outputs in shared memory."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._placed: Dict[str, Mapping[str, Array]] = {}

    def new_id(self) -> str:
        return str(next(self._ids))

    def note(self, request_id: str, placed: Mapping[str, Array]) -> None:
        if placed:
            self._placed[request_id] = placed

    def _places(self, request_id: str) -> Mapping[str, Array]:
        return self._placed.get(request_id, {})

    def parse(self, message: bytes) -> StreamAnswer:
        head_bytes, responses = without_field(memoryview(message), _RESPONSE_FIELD)
        head = pb.ModelStreamInferResponse.FromString(head_bytes)
        result = parse_response(responses[-1], self._places) if responses else None
        request_id, is_final = "", False
        if result is not None:  # after an error too, but without outputs
            request_id = result.request_id
            is_final = bool(result.parameters.get("triton_final_response", False))
        if head.error_message:
            # The protocol has no status code here.
            return StreamAnswer(request_id, None, TensordError(head.error_message), is_final)
        return StreamAnswer(request_id, result, None, is_final)


class SequenceState:
    """The parameters of a sequence's next request."""

    def __init__(self, sequence_id: Union[int, str, None]) -> None:
        # A random ID, which does not collide with those of other clients; 0 means none.
        self.sequence_id: Union[int, str] = secrets.randbits(62) + 1 if sequence_id is None else sequence_id
        self._is_started = False
        self._is_ended = False
        if self.sequence_id in (0, ""):
            raise InvalidArgumentError("sequence_id: must not be 0 or empty")

    def parameters(self, end: bool) -> Dict[str, Parameter]:
        if self._is_ended:
            raise InvalidArgumentError(f"sequence {self.sequence_id} has ended")
        return {"sequence_id": self.sequence_id, "sequence_start": not self._is_started, "sequence_end": end}

    def sent(self, end: bool) -> None:
        """Call after the server accepted a request."""
        self._is_started = True
        self._is_ended = end
