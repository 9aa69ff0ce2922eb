"""Tensors next to messages: assembled messages are taken apart again, and malformed ones are refused."""

import pytest

from tensord._protocol import inference as pb
from tensord._wire import varint, with_raw_contents, without_field


def request_head():
    head = pb.ModelInferRequest(model_name="m", id="7")
    head.inputs.add(name="x", datatype="FP32", shape=[2, -1])
    return head


@pytest.mark.parametrize("sizes", [[], [0], [1], [127, 128], [16383, 16384, 0, 3]])
def test_contents_are_what_protobuf_reads(sizes):
    contents = [bytes([i % 251]) * size for i, size in enumerate(sizes)]
    message = pb.ModelInferRequest.FromString(with_raw_contents(request_head().SerializeToString(), contents))
    assert list(message.raw_input_contents) == contents
    del message.raw_input_contents[:]
    assert message == request_head()


@pytest.mark.parametrize("sizes", [[], [0], [5], [200, 0, 70000]])
def test_what_protobuf_writes_comes_apart(sizes):
    message = pb.ModelInferResponse(model_name="m", model_version="3", id="i")
    message.outputs.add(name="y", datatype="FP32", shape=[1])
    message.parameters["p"].double_param = 2.5
    expected_head = message.SerializeToString()
    message.raw_output_contents.extend(b"\x5a" * size for size in sizes)
    head, contents = without_field(memoryview(message.SerializeToString()), 6)
    assert head == expected_head
    assert [bytes(content) for content in contents] == list(message.raw_output_contents)


def test_contents_are_views_of_the_message():
    message = memoryview(with_raw_contents(b"", [b"abc"]))
    _, (content,) = without_field(message, 7)
    assert content.obj is message.obj


def test_fields_of_all_wire_types_are_skipped():
    unknown = varint(9 << 3) + varint(2**63) + varint(10 << 3 | 1) + b"8bytes!!" + varint(11 << 3 | 5) + b"four"
    head, contents = without_field(memoryview(unknown + varint(6 << 3 | 2) + b"\x01x"), 6)
    assert head == unknown and bytes(contents[0]) == b"x"


@pytest.mark.parametrize("message", [
    b"\x32\x05abc",  # a length beyond the end
    b"\xff" * 12,  # a varint without an end
    b"\x0b",  # a group, which proto3 does not have
    b"\x31abc",  # half of a fixed64
    b"\x80",
])
def test_other_bytes_are_refused(message):
    with pytest.raises(ValueError, match="not a protobuf message"):
        without_field(memoryview(message), 6)
