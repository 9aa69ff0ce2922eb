"""Decoupled models, streams and sequences against a real daemon."""

import numpy as np
import pytest

import tensord

ROW = np.arange(16, dtype=np.int32)[None]


def repeat(count):
    return np.arange(count, dtype=np.int32), np.zeros(count, np.uint32), np.zeros(1, np.uint32)


@pytest.mark.parametrize("count", [1, 5])
def test_many_responses(client, count):
    results = list(client.infer_stream("repeat_int32", *repeat(count)))
    assert [int(result["OUT"][0]) for result in results] == list(range(count))


def test_no_responses(client):
    assert list(client.infer_stream("square_int32", np.zeros(1, np.int32))) == []


def test_one_response_of_an_ordinary_model(client):
    (result,) = client.infer_stream("simple", ROW, ROW)
    np.testing.assert_array_equal(result["OUTPUT0"], 2 * ROW)


def test_errors_of_a_stream_have_their_codes(client):
    with pytest.raises(tensord.NotFoundError, match="nope"):
        list(client.infer_stream("nope", {"x": ROW}))
    with pytest.raises(tensord.InvalidArgumentError, match="INPUT1"):
        list(client.infer_stream("simple", {"INPUT0": ROW}))


def test_leaving_early_cancels(client):
    for result in client.infer_stream("repeat_int32", *repeat(1000)):
        assert int(result["OUT"][0]) == 0
        break
    assert client.live()


def test_many_requests(client):
    with client.stream() as stream:
        ids = [stream.send("simple", {"INPUT0": ROW, "INPUT1": ROW * number}) for number in range(4)]
        wrong = stream.send("simple", {"INPUT0": ROW})
        named = stream.send("identity_fp32", np.ones((1, 2), np.float32), request_id="mine")
        stream.finish()
        answers = {answer.request_id: answer for answer in stream}
    assert set(answers) == {*ids, wrong, named} and named == "mine"
    for number, request_id in enumerate(ids):
        assert answers[request_id].is_final
        np.testing.assert_array_equal(answers[request_id].get()["OUTPUT0"], ROW * (1 + number))
    with pytest.raises(tensord.TensordError, match="INPUT1"):
        answers[wrong].get()
    with pytest.raises(tensord.FailedPreconditionError):
        stream.send("simple", ROW, ROW)


def test_a_stream_has_a_deadline(client):
    with client.stream(timeout=0.2) as stream:
        with pytest.raises(tensord.DeadlineExceededError):
            next(stream)


def test_sequences(client):
    results = [int(result.output[0, 0]) for result in client.sequence("simple_sequence").run([[[10]], [[20]], [[30]]])]
    assert results == [11, 20, 30]  # the model adds 1 to the first of a sequence
    sequence = client.sequence("simple_dyna_sequence", sequence_id=5)
    first, last = sequence.infer([[1]]), sequence.infer([[1]], end=True)
    assert (int(first.output[0, 0]), int(last.output[0, 0])) == (2, 6)  # the model adds the ID to the last
    with pytest.raises(tensord.InvalidArgumentError, match="has ended"):
        sequence.infer([[1]])
    by_string = client.sequence("simple_string_dyna_sequence", sequence_id="7")
    by_string.infer({"INPUT": np.array([[2]], np.int32)})
    assert int(by_string.infer({"INPUT": np.array([[3]], np.int32)}, end=True)["OUTPUT"][0, 0]) == 2 + 3 + 7
    with pytest.raises(tensord.InvalidArgumentError, match="sequence_id"):
        client.sequence("simple_sequence", sequence_id=0)


def test_a_step_that_failed_is_not_the_first(client):
    sequence = client.sequence("simple_sequence")
    with pytest.raises(tensord.InvalidArgumentError):
        sequence.infer(np.zeros((1, 1), np.float64))
    assert int(sequence.infer([[4]], end=True).output[0, 0]) == 5
