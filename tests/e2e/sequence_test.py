"""Sequences and decoupled models in the real daemon: state, controls, slots, errors."""

import os
import struct
import tempfile
import threading
import time
import unittest

import grpc

from tests.e2e import sequence_models
from tests.e2e.daemon import Daemon, pb, request
from tests.e2e.raw_tensors import read_fp32, read_int64

NAMES = ("direct", "oldest", "brief", "first", "rows", "remember", "names", "repeat")


def parameters(sequence, start=False, end=False):
    key = "string_param" if isinstance(sequence, str) else "int64_param"
    return {"sequence_id": pb.InferParameter(**{key: sequence}), "sequence_start": pb.InferParameter(bool_param=start),
            "sequence_end": pb.InferParameter(bool_param=end)}


class WithDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = cls.folder.name
        sequence_models.make_repository(root, NAMES)
        os.makedirs(os.path.join(root, "first", "initial_state"))
        with open(os.path.join(root, "first", "initial_state", "ten"), "wb") as data:
            data.write(struct.pack("<f", 10))
        cls.daemon = Daemon(root).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()


class SequenceTest(WithDaemon):
    def send(self, model, sequence, value, start=False, end=False):
        message = request(model, [("x", "FP32", [1, 1], struct.pack("<f", value))],
                          parameters=parameters(sequence, start, end))
        return self.daemon.stub.ModelInfer(message, timeout=300)

    def ask(self, *arguments, **named):
        return read_fp32(self.send(*arguments, **named).raw_output_contents[0])

    def code_of(self, *arguments, **named):
        with self.assertRaises(grpc.RpcError) as caught:
            self.send(*arguments, **named)
        return caught.exception.code(), caught.exception.details()

    def run_sequence(self, model, sequence, values, sums):
        total = 0
        for i, value in enumerate(values):
            total += value
            sums.append((self.ask(model, sequence, value, i == 0, i == len(values) - 1), [total]))

    def test_many_sequences_at_a_time(self):
        for model in ("direct", "oldest", "rows"):  # more sequences than the first and the last model have rows
            with self.subTest(model):
                sums = [[] for _ in range(6)]
                threads = [threading.Thread(target=self.run_sequence, args=(model, i + 1, range(i, i + 12), sums[i]))
                           for i in range(6)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for results in sums:
                    self.assertEqual(len(results), 12)
                    for got, expected in results:
                        self.assertEqual(got, expected)

    def test_signature_is_the_clients(self):
        metadata = self.daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="oldest"), timeout=300)
        self.assertEqual([tensor.name for tensor in metadata.inputs], ["x"])
        self.assertEqual([tensor.name for tensor in metadata.outputs], ["total"])
        message = request("oldest", [("x", "FP32", [1, 1], struct.pack("<f", 1)),
                                     ("START", "FP32", [1, 1], struct.pack("<f", 1))], parameters=parameters(9, True))
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(message, timeout=300)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_initial_state(self):
        self.assertEqual(self.ask("first", 3, 5, start=True), [15])
        self.assertEqual(self.ask("first", 3, 5, end=True), [20])

    def test_state_grows(self):
        seen = []
        for i in range(5):
            seen.append(float(i))
            self.assertEqual(self.ask("remember", "a text", i, i == 0, i == 4), seen)

    def test_controls(self):
        response = self.send("names", "somebody", 1, start=True)
        self.assertEqual(response.raw_output_contents[0], struct.pack("<I", 8) + b"somebody")
        self.assertEqual(read_fp32(response.raw_output_contents[1]), [1])
        response = self.send("names", "somebody", 1, end=True)
        self.assertEqual(read_fp32(response.raw_output_contents[1]), [2])
        code, details = self.code_of("names", 77, 1, start=True, end=True)
        self.assertEqual((code, details), (grpc.StatusCode.INVALID_ARGUMENT, "sequence batching control 'CORRID' data-type is 'UINT64', but model "
                                        "'names' expects 'BYTES'"))

    def test_errors(self):
        code, details = self.code_of("oldest", 50, 1)
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(details, "inference request for sequence 50 to model 'oldest' must specify the START flag on the "
                         "first request of the sequence")
        code, details = self.code_of("oldest", 0, 1, start=True)
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(details,
                         "inference request to model 'oldest' must specify a non-zero or non-empty correlation ID")
        wide = request("oldest", [("x", "FP32", [2, 1], struct.pack("<2f", 1, 2))], parameters=parameters(51, True))
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(wide, timeout=300)
        self.assertEqual(caught.exception.details(),
                         "inference request to model 'oldest' must specify batch-size 1 due to requirements of sequence "
                         "batcher")
        self.assertEqual(self.ask("oldest", 52, 4, start=True), [4])
        code, _ = self.code_of("oldest", 52, -1)  # the script refuses it; the sequence continues
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(self.ask("oldest", 52, 4, end=True), [8])
        self.assertEqual(self.code_of("oldest", 52, 4)[0], grpc.StatusCode.INVALID_ARGUMENT)

    def test_idle_sequences_end(self):
        self.assertEqual(self.ask("brief", 60, 1, start=True), [1])
        time.sleep(0.2)
        self.assertEqual(self.code_of("brief", 60, 1)[0], grpc.StatusCode.INVALID_ARGUMENT)

    def test_second_start(self):
        self.assertEqual(self.ask("oldest", 70, 1, start=True), [1])
        self.assertEqual(self.ask("oldest", 70, 5, start=True), [5])
        self.assertEqual(self.ask("oldest", 70, 1, end=True), [6])


class DecoupledTest(WithDaemon):
    @staticmethod
    def message(values, request_id, **more):
        data = struct.pack(f"<{len(values)}q", *values)
        return request("repeat", [("x", "INT64", [len(values)], data)], request_id=request_id, **more)

    def stream(self, messages):
        answers = {}
        for response in self.daemon.stub.ModelStreamInfer(iter(messages), timeout=300):
            answers.setdefault(response.infer_response.id, []).append(response)
        return answers

    def test_items_are_responses(self):
        answers = self.stream([self.message([7, 8, 9], "three"), self.message([5], "one")])
        self.assertEqual([read_int64(one.infer_response.raw_output_contents[0]) for one in answers["three"]],
                         [[7], [8], [9]])
        self.assertEqual([read_int64(one.infer_response.raw_output_contents[1]) for one in answers["three"]],
                         [[0], [1], [2]])
        self.assertEqual(len(answers["one"]), 1)

    def test_no_response_and_errors(self):
        final = {"triton_enable_empty_final_response": pb.InferParameter(bool_param=True)}
        answers = self.stream([self.message([], "none", parameters=final), self.message([1, -1], "bad")])
        self.assertEqual(len(answers["none"]), 1)
        self.assertEqual(len(answers["none"][0].infer_response.outputs), 0)
        self.assertTrue(answers["none"][0].infer_response.parameters["triton_final_response"].bool_param)
        errors = [one.error_message for one in sum(answers.values(), []) if one.error_message]
        self.assertEqual(len(errors), 1)
        self.assertIn("negative", errors[0])

    def test_unary_calls_are_refused(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.daemon.stub.ModelInfer(self.message([1], "unary"), timeout=300)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertEqual(caught.exception.details(),
                         "ModelInfer RPC doesn't support models with decoupled transaction policy")


if __name__ == "__main__":
    unittest.main()
