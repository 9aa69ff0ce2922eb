"""Inference against a real daemon: names, types, parameters, errors, shared memory."""

import os
import threading

import numpy as np
import pytest

import tensord
from tensord._tensors import to_tensor

ROW = np.arange(16, dtype=np.int32)[None]
ONES = np.ones_like(ROW)


def test_by_position_and_by_name(client):
    by_position = client.infer("simple", ROW, ONES)
    by_name = client.infer("simple", {"INPUT1": ONES, "INPUT0": ROW})
    for result in (by_position, by_name):
        assert list(result) == ["OUTPUT0", "OUTPUT1"] and (result.model, result.version) == ("simple", "1")
        np.testing.assert_array_equal(result["OUTPUT0"], ROW + 1)
        np.testing.assert_array_equal(result["OUTPUT1"], ROW - 1)


def test_lists_take_the_types_of_the_model(client):
    result = client.infer("simple", ROW.tolist(), ONES.tolist())
    assert result["OUTPUT0"].dtype == np.int32
    np.testing.assert_array_equal(client.infer("simple_int8", ROW.tolist(), ONES.tolist())["OUTPUT0"], ROW + 1)


def test_a_single_output_is_an_array(client):
    values = np.random.default_rng(0).random((2, 3), dtype=np.float32)
    result = client.infer("identity_fp32", values)
    np.testing.assert_array_equal(np.asarray(result), values)
    np.testing.assert_array_equal(to_tensor(result).data, values)  # by DLPack
    assert np.asarray(result, np.float64).dtype == np.float64
    with pytest.raises(tensord.InvalidArgumentError, match="2 outputs"):
        client.infer("simple", ROW, ONES).output


def test_results_are_views_of_the_message(client):
    values = np.ones((8, 16), np.int8)  # bytes are aligned at any address
    result = client.infer("simple_int8", values, values)["OUTPUT0"]
    assert not result.flags.owndata and not result.flags.writeable


def test_large_results_are_cut_out_of_the_message(client):
    for count in (4090, 4097, 1 << 18):  # around the size below which messages are parsed whole
        values = np.arange(count, dtype=np.float32)[None]
        np.testing.assert_array_equal(client.infer("identity_fp32", values).output, values)


def test_strings(client):
    numbers = [[str(i) for i in range(16)]]
    result = client.infer("simple_string", numbers, np.array([["1"] * 16], object))
    assert result["OUTPUT0"].dtype == object and result["OUTPUT0"][0, 3] == b"4"
    assert result.texts("OUTPUT1").tolist() == [[str(i - 1) for i in range(16)]]
    odd = np.array([[b"", "日本".encode(), b"x" * 1000]], object)
    assert client.infer("simple_identity", {"INPUT0": odd}).output.tolist() == odd.tolist()


def test_options(client):
    result = client.infer("simple", ROW, ONES, outputs=["OUTPUT1"], version=1, request_id="mine", priority=1,
                          queue_timeout=5,
                          parameters={"text": "a", "number": 2, "large": 2**63, "part": 0.5, "yes": True})
    assert list(result) == ["OUTPUT1"] and result.request_id == "mine"
    with pytest.raises(tensord.InvalidArgumentError, match="must be bool, int, float or str"):
        client.infer("simple", ROW, ONES, parameters={"a": [1]})
    with pytest.raises(tensord.InvalidArgumentError, match="64 bits"):
        client.infer("simple", ROW, ONES, parameters={"a": 2**64})


def test_classes(client):
    scores = np.array([[0.1, 0.9, 0.3, 0.2], [4, 3, 2, 1]], np.float32)
    (first, second) = client.infer("labelled_identity", scores, classes=2).classes()
    assert [(item.index, item.label) for item in first] == [(1, "banana"), (2, "cherry")]
    assert second[0] == tensord.Class(4.0, 0, "apple")


@pytest.mark.parametrize("call, kind, message", [
    (lambda c: c.infer("nope", ROW), tensord.NotFoundError, "nope"),
    (lambda c: c.infer("simple", ROW, ONES, version=9), tensord.NotFoundError, "9"),
    (lambda c: c.infer("simple", {"INPUT0": ROW}), tensord.InvalidArgumentError, "INPUT1"),
    (lambda c: c.infer("simple", ROW, ONES, ONES), tensord.InvalidArgumentError, "has 2 inputs"),
    (lambda c: c.infer("simple", ROW, {"INPUT1": ONES}), tensord.InvalidArgumentError, "by position"),
    (lambda c: c.infer("simple", ROW, ONES.astype(np.float32)), tensord.InvalidArgumentError, "FP32"),
    (lambda c: c.infer("simple", ROW, np.zeros(16, complex)), tensord.InvalidArgumentError, "input 'INPUT1'"),
    (lambda c: c.infer("square_int32", [1]), tensord.UnimplementedError, "decoupled"),
    (lambda c: c.infer("identity_fp32", np.ones((1, 1), "f4"), outputs={"OUTPUT0": np.zeros(1, "f4")}),
     tensord.InvalidArgumentError, "shared memory"),
])
def test_errors(client, call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call(client)
    assert isinstance(caught.value, tensord.TensordError) and caught.value.code == kind.code


def test_a_model_that_changed_is_asked_for_again(client):
    client.infer("simple", ROW, ONES)
    known = client._metadata["simple/"]
    names = tuple(tensord.TensorSpec("OLD" + spec.name, spec.datatype, spec.shape) for spec in known.inputs)
    client._metadata["simple/"] = tensord.ModelMetadata("simple", ("1",), "", names, known.outputs)
    np.testing.assert_array_equal(client.infer("simple", ROW, ONES)["OUTPUT0"], ROW + 1)
    assert client._metadata["simple/"] == known


def test_threads_share_a_client(client):
    wrong = []

    def ask(number):
        for _ in range(20):
            if client.infer("simple", ROW, ROW * number)["OUTPUT0"][0, 1] != 1 + number:
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_shared_memory(client, server):
    with client.shared_memory(1 << 20) as region:
        assert [item.name for item in client.regions()] == [region.name]
        values = region.put(np.random.default_rng(0).random((64, 64), dtype=np.float32))
        answer = region.array((64, 64))
        sent = server.metric("tensord_received_bytes_total", model="identity_fp32")
        result = client.infer("identity_fp32", values, outputs={"OUTPUT0": answer})
        np.testing.assert_array_equal(answer, values)
        assert np.shares_memory(result.output, answer)
        assert server.metric("tensord_received_bytes_total", model="identity_fp32") - sent < 1000
        # A contiguous part of an array in the region is passed by reference; other parts are sent.
        np.testing.assert_array_equal(client.infer("identity_fp32", values[3:5]).output, values[3:5])
        np.testing.assert_array_equal(client.infer("identity_fp32", values[:, 3:5]).output, values[:, 3:5])
        smaller = client.infer("identity_fp32", values[:2], outputs={"OUTPUT0": answer}).output
        assert smaller.shape == (2, 64) and np.shares_memory(smaller, answer)
        path = "/dev/shm" + region.key
        assert os.path.exists(path)
    assert client.regions() == [] and not os.path.exists(path)
    np.testing.assert_array_equal(answer[:2], values[:2])  # still there
    np.testing.assert_array_equal(client.infer("identity_fp32", values).output, values)  # now sent


def test_strings_into_shared_memory(client):
    with client.shared_memory(4096) as region:
        place = region.array(1024, np.uint8)
        result = client.infer("simple_identity", [["a", "bcd"]], outputs={"OUTPUT0": place})
        assert result.texts().tolist() == [["a", "bcd"]] and place[4] == ord("a")


def test_shared_memory_is_cleaned_up_after_errors(client):
    with pytest.raises(KeyError):
        with client.shared_memory(4096, name="mine") as region:
            raise KeyError
    assert client.regions() == [] and not os.path.exists("/dev/shm" + region.key)
    with pytest.raises(tensord.ResourceExhaustedError, match="no room|bytes wanted"):
        with client.shared_memory(4096) as region:
            region.array(1025, np.float32)
    with pytest.raises(tensord.InvalidArgumentError):
        tensord.SharedMemory(0)


def test_other_clients_can_be_imported_too(server):
    grpcclient = pytest.importorskip("tritonclient.grpc")
    theirs = grpcclient.InferenceServerClient(server.ready["grpc"])
    with tensord.Client(server.ready["grpc"]) as ours:
        assert theirs.get_model_metadata("simple").inputs[0].name == ours.metadata("simple").inputs[0].name
    theirs.close()
