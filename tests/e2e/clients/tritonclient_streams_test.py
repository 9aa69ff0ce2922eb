"""tritonclient's streams and sequences: Triton's example clients, and several concurrent streams."""

import random
import threading
import unittest
import uuid

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from tests.e2e.clients import support
from tests.e2e.clients.support import Answers, tensor

VALUES = [11, 7, 5, 3, 2, 0, 1]


def number(value):
    return [tensor("INPUT", np.array([[value]], np.int32))]


class StreamTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = support.start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()

    def open_client(self):
        client = grpcclient.InferenceServerClient(self.daemon.ready["grpc"])
        self.addCleanup(client.close)
        return client

    def open_stream(self, **kwargs):
        client, answers = self.open_client(), Answers()
        client.start_stream(callback=answers, **kwargs)
        self.addCleanup(client.stop_stream)
        return client, answers

    def send(self, client, model, sequence, values):
        for i, value in enumerate(values):
            client.async_stream_infer(model, number(value), request_id=f"{sequence}_{i}", sequence_id=sequence,
                                      sequence_start=i == 0, sequence_end=i + 1 == len(values))

    def test_sequences(self):
        """Like simple_grpc_sequence_stream_infer_client.py, direct and oldest, with numbers and strings as ids."""
        for is_dyna in (False, True):
            numbers = "simple_dyna_sequence" if is_dyna else "simple_sequence"
            string_model = "simple_string_dyna_sequence" if is_dyna else "simple_sequence"
            string_id = "1002" if is_dyna else str(uuid.uuid4())
            client, answers = self.open_stream(headers={"x": "y"})
            sent = {1000: [0] + VALUES, 1001: [100] + [-v for v in VALUES], string_id: [20] + [-v for v in VALUES]}
            for sequence, values in sent.items():
                self.send(client, string_model if sequence == string_id else numbers, sequence, values)
            got = {str(sequence): [] for sequence in sent}
            for _ in range(3 * 8):
                result = answers.take_result()
                sequence, index = result.get_response().id.rsplit("_", 1)
                self.assertEqual(int(index), len(got[sequence]))
                got[sequence].append(int(result.as_numpy("OUTPUT")[0, 0]))
            for sequence in (1000, 1001):
                expected = list(sent[sequence])
                expected[0] += 1
                expected[-1] += sequence if is_dyna else 0
                self.assertEqual(got[str(sequence)], expected)
            expected = list(np.cumsum(sent[string_id])) if is_dyna else [21] + sent[string_id][1:]
            expected[-1] += 1002 if is_dyna else 0
            self.assertEqual(got[string_id], expected)

    def test_sequences_by_calls(self):
        """Like simple_grpc_sequence_sync_infer_client.py."""
        client = self.open_client()
        got = {2000: [], 2001: []}
        for i, value in enumerate([0] + VALUES):
            for sequence, sign in ((2000, 1), (2001, -1)):
                result = client.infer("simple_sequence", number(sign * value), sequence_id=sequence,
                                      sequence_start=i == 0, sequence_end=i == len(VALUES))
                got[sequence].append(int(result.as_numpy("OUTPUT")[0, 0]))
        self.assertEqual(got, {2000: [1] + VALUES, 2001: [1] + [-v for v in VALUES]})

    def test_rules_of_sequences(self):
        client = self.open_client()
        for model in ("simple_sequence", "simple_dyna_sequence"):
            with self.assertRaises(InferenceServerException) as caught:
                client.infer(model, number(1), sequence_id=77)
            self.assertEqual(caught.exception.status(), "StatusCode.INVALID_ARGUMENT")
            self.assertIn("must specify the START flag on the first request", caught.exception.message())
            with self.assertRaises(InferenceServerException):
                client.infer(model, number(1))
        with self.assertRaises(InferenceServerException):
            client.infer("simple_dyna_sequence", number(1), sequence_id="a text", sequence_start=True)

    def test_many_streams_of_sequences(self):
        errors = []

        def work(seed):
            try:
                choose = random.Random(seed)
                client, answers = grpcclient.InferenceServerClient(self.daemon.ready["grpc"]), Answers()
                client.start_stream(callback=answers)
                for turn in range(3):
                    values = [choose.randrange(1000) for _ in range(1 + choose.randrange(8))]
                    sequence = str(10000 + seed * 10 + turn)
                    self.send(client, "simple_string_dyna_sequence", sequence, values)
                    got = [int(answers.take_result().as_numpy("OUTPUT")[0, 0]) for _ in values]
                    expected = list(np.cumsum(values))
                    expected[-1] += int(sequence)
                    self.assertEqual(got, expected)
                client.stop_stream()
                client.close()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        self.assertEqual(errors, [])

    def test_models_without_sequences_keep_their_order(self):
        client, answers = self.open_stream()
        for i in range(50):
            x = np.full((1, 4), i, np.float32)
            client.async_stream_infer("labelled_identity", [tensor("INPUT0", x)], request_id=str(i))
        for i in range(50):
            result = answers.take_result()
            self.assertEqual(result.get_response().id, str(i))
            self.assertEqual(result.as_numpy("OUTPUT0")[0, 0], i)

    def repeat_inputs(self, count):
        return [tensor("IN", np.arange(100, 100 + count, dtype=np.int32)),
                tensor("DELAY", np.full(count, 1, np.uint32)), tensor("WAIT", np.array([1], np.uint32))]

    def test_decoupled(self):
        """Like simple_grpc_custom_repeat.py."""
        client, answers = self.open_stream()
        client.async_stream_infer("repeat_int32", self.repeat_inputs(10),
                                  outputs=[grpcclient.InferRequestedOutput("OUT")])
        for i in range(10):
            result = answers.take_result()
            self.assertEqual(list(result.as_numpy("OUT")), [100 + i])
            self.assertIsNone(result.as_numpy("IDX"))
        client.async_stream_infer("square_int32", [tensor("IN", np.array([4], np.int32))])
        self.assertEqual([int(answers.take_result().as_numpy("OUT")[0]) for _ in range(4)], [4] * 4)

    def test_final_responses(self):
        client, answers = self.open_stream()
        for model, inputs, count in (("repeat_int32", self.repeat_inputs(3), 3), ("repeat_int32", self.repeat_inputs(0), 0),
                                     ("square_int32", [tensor("IN", np.array([2], np.int32))], 2)):
            client.async_stream_infer(model, inputs, request_id="r", enable_empty_final_response=True)
            results = []
            while not results or not results[-1].get_response().parameters["triton_final_response"].bool_param:
                results.append(answers.take_result())
                self.assertEqual(results[-1].get_response().id, "r")
            filled = [result for result in results if result.get_response().outputs]
            self.assertEqual(len(filled), count, model)
            self.assertEqual(len(results), count + 1, "the final one is a message of its own")
        x = np.ones((1, 4), np.float32)
        client.async_stream_infer("labelled_identity", [tensor("INPUT0", x)], enable_empty_final_response=True)
        self.assertTrue(answers.take_result().get_response().parameters["triton_final_response"].bool_param)

    def test_an_error_leaves_the_stream_open(self):
        client, answers = self.open_stream()
        client.async_stream_infer("nothing", number(1), request_id="bad")
        _, error = answers.take()
        self.assertIn("unknown model: 'nothing' is not found", error.message())
        client.async_stream_infer("square_int32", [tensor("IN", np.array([1], np.int32))])
        self.assertEqual(list(answers.take_result().as_numpy("OUT")), [1])

    def test_errors_as_codes_where_asked(self):
        client, answers = self.open_stream(headers={"triton_grpc_error": "true"})
        client.async_stream_infer("nothing", number(1))
        _, error = answers.take()
        self.assertEqual(error.status(), "StatusCode.NOT_FOUND")

    def test_stream_timeout_and_cancellation(self):
        _, answers = self.open_stream(stream_timeout=0.2)
        self.assertEqual(answers.take()[1].status(), "StatusCode.DEADLINE_EXCEEDED")
        client, answers = self.open_client(), Answers()
        client.start_stream(callback=answers)
        client.async_stream_infer("repeat_int32", self.repeat_inputs(2000))
        answers.take_result()
        client.stop_stream(cancel_requests=True)
        self.assertTrue(client.is_server_live())

    def test_compressed_stream(self):
        client, answers = self.open_stream(compression_algorithm="gzip")
        client.async_stream_infer("square_int32", [tensor("IN", np.array([3], np.int32))])
        self.assertEqual([int(answers.take_result().as_numpy("OUT")[0]) for _ in range(3)], [3] * 3)


if __name__ == "__main__":
    unittest.main()
