"""A minimal KServe v2 server over gRPC with ONNX Runtime or OpenVINO inside, as a peer for the load benchmark.

    python -m tests.bench.load.engine_server ENGINE MODEL.onnx WORKERS THREADS BATCH

Each of WORKERS threads runs the model with THREADS threads of the engine's. With BATCH above 1, a worker takes what waits,
up to BATCH requests of the same shape, and runs it as one batch along the first dimension. Prints the port once it serves.
"""

import concurrent.futures
import queue
import sys
import threading

import grpc
import numpy

from tests.e2e.daemon import inference_pb2_grpc, pb

TYPES = {"FP32": numpy.float32, "INT64": numpy.int64}


def onnx_runtime(path, workers, threads):
    """A function (dict of arrays → list of arrays) for each worker."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return [lambda inputs: session.run(None, inputs)] * workers


def openvino(path, workers, threads):
    import openvino as ov

    core = ov.Core()
    hint = "LATENCY" if workers == 1 else "THROUGHPUT"
    model = core.compile_model(core.read_model(path), "CPU",
                               {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": hint, "NUM_STREAMS": workers,
                                "INFERENCE_NUM_THREADS": workers * threads})
    return [lambda inputs, request=model.create_infer_request(): list(request.infer(inputs).values())
            for _ in range(workers)]


class Batcher:
    """Requests that wait for a worker."""

    def __init__(self, runs, batch):
        self.waiting, self.batch = queue.Queue(), batch
        for run in runs:
            threading.Thread(target=self.work, args=(run,), daemon=True).start()

    def infer(self, inputs):
        done = concurrent.futures.Future()
        self.waiting.put((inputs, done))
        return done.result()

    def take(self, first):
        """`first` and what waits behind it and fits."""
        taken, shapes = [first], {name: array.shape for name, array in first[0].items()}
        while len(taken) < self.batch:
            try:
                entry = self.waiting.get_nowait()
            except queue.Empty:
                break
            if {name: array.shape for name, array in entry[0].items()} != shapes:
                self.waiting.put(entry)
                break
            taken.append(entry)
        return taken

    def work(self, run):
        while True:
            taken = self.take(self.waiting.get())
            try:
                if len(taken) == 1:
                    taken[0][1].set_result(run(taken[0][0]))
                    continue
                results = run({name: numpy.concatenate([inputs[name] for inputs, _ in taken]) for name in taken[0][0]})
                parts = [numpy.split(array, len(taken)) for array in results]
                for (_, done), own in zip(taken, zip(*parts)):
                    done.set_result(list(own))
            except Exception as failure:  # the requests' answer
                for _, done in taken:
                    done.set_exception(failure)


class Service(inference_pb2_grpc.GRPCInferenceServiceServicer):
    def __init__(self, batcher):
        self.batcher = batcher

    def ModelInfer(self, request, context):
        inputs = {tensor.name: numpy.frombuffer(raw, TYPES[tensor.datatype]).reshape(tensor.shape)
                  for tensor, raw in zip(request.inputs, request.raw_input_contents)}
        answer = pb.ModelInferResponse(model_name=request.model_name)
        for i, array in enumerate(self.batcher.infer(inputs)):
            answer.outputs.add(name=f"OUTPUT__{i}", datatype="FP32", shape=array.shape)
            answer.raw_output_contents.append(numpy.ascontiguousarray(array).tobytes())
        return answer


def main():
    engine, path, workers, threads, batch = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
    runs = {"ONNX Runtime": onnx_runtime, "OpenVINO": openvino}[engine](path, workers, threads)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(128), options=[("grpc.max_receive_message_length", -1)])
    inference_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Service(Batcher(runs, batch)), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
