"""A client with requests, a stream and a sequence in progress until it is killed."""

import grpc

from tests.e2e.daemon import inference_pb2_grpc, request
from tests.stress.actors import Stream, int32, int64


def run(address):
    stub = inference_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(address))
    stream = Stream(stub)
    number = 0
    while True:
        number += 1
        stream.send(request("square_int32", [("IN", "INT32", [1], int32(5))]))
        next(stream.call)
        begun = request("simple_sequence", [("INPUT", "INT32", [1, 1], int32(1))])
        begun.parameters["sequence_id"].int64_param = number + hash(address) % 1000 * 1000
        begun.parameters["sequence_start"].bool_param = True
        stub.ModelInfer.future(begun, timeout=60)
        stub.ModelInfer.future(
            request("sleepy", [("x", "INT64", [1], int64(0)), ("rounds", "INT64", [1], int64(10000))]))
        print(number, flush=True)
