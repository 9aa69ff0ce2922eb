"""Decoders served token by token: requests join and leave the running batch without changing the tokens of others."""

import struct
import tempfile
import threading
import unittest

import grpc
import torch

from tests.e2e import sequence_models
from tests.e2e.daemon import Daemon, pb, request

NAMES = ("growing", "fixed", "whole")
PROMPTS = [[1, 2, 3], [7], [4, 4, 4, 4, 4, 9], [11, 12, 13], [60], [5, 6, 7, 8], [3, 1, 4, 1, 5, 9, 2, 6], [2, 7]]


def message(model, prompt, count, request_id="", **parameters):
    values = {"max_tokens": pb.InferParameter(int64_param=count)} if count else {}
    values.update(parameters)
    return request(model, [("tokens", "INT64", [1, len(prompt)], struct.pack(f"<{len(prompt)}q", *prompt))],
                   outputs=["token"], request_id=request_id, parameters=values)


def tokens_of(response):
    data = response.raw_output_contents[0]
    return list(struct.unpack(f"<{len(data) // 8}q", data))


class GenerationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        sequence_models.make_repository(cls.folder.name, NAMES)
        cls.daemon = Daemon(cls.folder.name).__enter__()
        torch.set_num_threads(1)
        cls.growing = sequence_models.GrowingDecoder().eval()
        cls.fixed = sequence_models.FixedDecoder().eval()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def stream(self, messages):
        """All tokens by request id, and the errors."""
        tokens, errors = {}, []
        for response in self.daemon.stub.ModelStreamInfer(iter(messages), timeout=300):
            if response.error_message:
                errors.append(response.error_message)
            else:
                tokens.setdefault(response.infer_response.id, []).extend(tokens_of(response.infer_response))
        return tokens, errors

    def expected(self, model, prompt, count):
        if model == "fixed":
            return sequence_models.fixed_tokens(self.fixed, prompt, count)
        return sequence_models.growing_tokens(self.growing, prompt, count)

    def test_one_after_the_other(self):
        for model in ("growing", "fixed"):
            for prompt in PROMPTS[:3]:
                tokens, errors = self.stream([message(model, prompt, 9, "a")])
                self.assertEqual(errors, [])
                self.assertEqual(tokens["a"], self.expected(model, prompt, 9), (model, prompt))

    def test_all_at_once(self):
        # Of different lengths, over one stream: twice as many as the batch has rows.
        for model in ("growing", "fixed"):
            wanted = {str(i): (PROMPTS[i % 8], 5 + 3 * i % 17) for i in range(16)}
            tokens, errors = self.stream([message(model, *wanted[key], key) for key in wanted])
            self.assertEqual(errors, [])
            for key, (prompt, count) in wanted.items():
                self.assertEqual(tokens[key], self.expected(model, prompt, count), (model, key))

    def test_streams_side_by_side(self):
        results = {}

        def run(i):
            results[i] = self.stream([message("growing", PROMPTS[i], 12, "a"), message("fixed", PROMPTS[i], 20, "b")])

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i, (tokens, errors) in results.items():
            self.assertEqual(errors, [])
            self.assertEqual(tokens["a"], self.expected("growing", PROMPTS[i], 12))
            self.assertEqual(tokens["b"], self.expected("fixed", PROMPTS[i], 20))

    def test_the_model_says_when_it_is_done(self):
        tokens, errors = self.stream([message("fixed", list(range(20)), 40, "a")])
        self.assertEqual(errors, [])
        expected = self.expected("fixed", list(range(20)), 40)
        self.assertLess(len(expected), 40)
        self.assertEqual(tokens["a"], expected)

    def test_one_response(self):
        response = self.daemon.stub.ModelInfer(message("whole", PROMPTS[2], 10), timeout=300)
        self.assertEqual(list(response.outputs[0].shape), [1, 10])
        self.assertEqual(tokens_of(response), self.expected("whole", PROMPTS[2], 10))

    def test_bad_requests(self):
        tokens, errors = self.stream([message("growing", [1], 41, "a")])
        self.assertEqual(tokens, {})
        self.assertEqual(errors, ["parameter 'max_tokens' must be a whole number from 1 to 40 for model 'growing'"])
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(message("growing", [1], 1), timeout=300)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        # An unknown token fails only its own request.
        tokens, errors = self.stream([message("growing", [1, 2], 8, "a"), message("growing", [99, 2], 8, "b"),
                                      message("growing", [3, 4], 8, "c")])
        self.assertEqual(len(errors), 1)
        self.assertEqual(tokens["a"], self.expected("growing", [1, 2], 8))
        self.assertEqual(tokens["c"], self.expected("growing", [3, 4], 8))

    def test_cancelled_streams_leave(self):
        calls = [self.daemon.stub.ModelStreamInfer(iter([message("growing", PROMPTS[i], 40, str(i))]), timeout=300)
                 for i in range(8)]
        for call in calls:
            next(call)
            call.cancel()
        tokens, errors = self.stream([message("growing", PROMPTS[0], 15, "a")])
        self.assertEqual(errors, [])
        self.assertEqual(tokens["a"], self.expected("growing", PROMPTS[0], 15))


if __name__ == "__main__":
    unittest.main()
