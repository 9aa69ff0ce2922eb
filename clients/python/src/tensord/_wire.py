"""Parts of protobuf's wire format, used to keep tensors out of messages.

protobuf copies `bytes` fields when they are set and again when the message is serialized. Concatenated messages are one
message, so a small head is serialized as usual and the tensors' memory is appended. In a response, the tensors are cut
out as views before the head is parsed.
"""

from __future__ import annotations

from typing import Iterable, List, Tuple, Union

Buffer = Union[bytes, memoryview]

REQUEST_RAW_FIELD = 7  # ModelInferRequest.raw_input_contents, StreamDataRequest.raw_input_contents
RESPONSE_RAW_FIELD = 6  # ModelInferResponse.raw_output_contents

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def with_raw_contents(head: bytes, contents: Iterable[Buffer]) -> bytes:
    """The message `head` with `contents` in its field of raw contents. Copies each of them once."""
    parts: List[Buffer] = [head]
    key = varint(REQUEST_RAW_FIELD << 3 | _BYTES)
    for content in contents:
        parts.append(key + varint(len(content)))
        parts.append(content)
    return b"".join(parts)


def without_field(message: memoryview, field: int) -> Tuple[bytes, List[memoryview]]:
    """The message without one `bytes` field, and views of that field's entries."""
    kept: List[memoryview] = []
    taken: List[memoryview] = []
    position = kept_from = 0
    while position < len(message):
        start = position
        key, position = _read_varint(message, position)
        begin, position = _value(message, key & 7, position)
        if key >> 3 == field and key & 7 == _BYTES:
            kept.append(message[kept_from:start])
            taken.append(message[begin:position])
            kept_from = position
    kept.append(message[kept_from:])
    return b"".join(kept), taken


def _read_varint(message: memoryview, position: int) -> Tuple[int, int]:
    value = shift = 0
    while shift < 70 and position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("the server's answer is not a protobuf message: a number does not end")


def _value(message: memoryview, wire_type: int, position: int) -> Tuple[int, int]:
    """Start and end of a field's value."""
    if wire_type == _VARINT:
        begin, end = position, _read_varint(message, position)[1]
    elif wire_type == _BYTES:
        size, begin = _read_varint(message, position)
        end = begin + size
    elif wire_type in (_FIXED64, _FIXED32):
        begin, end = position, position + (8 if wire_type == _FIXED64 else 4)
    else:
        raise ValueError(f"the server's answer is not a protobuf message: wire type {wire_type}")
    if end > len(message):
        raise ValueError("the server's answer is not a protobuf message: it is cut off")
    return begin, end
