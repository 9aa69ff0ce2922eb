"""One peer in a process of its own: python -m tests.bench.cpu_inference.worker PEER FOLDER THREADS NAME,…

Reads commands from standard input and answers each with one line of JSON:
  answers PATH    writes the results of the checked requests to PATH (.npz)
  burst SECONDS   runs whole cycles of the requests for about that time
"""

import json
import statistics
import sys
import time

import numpy

from tests.bench.cpu_inference import files


class PyTorch:
    """Debian's PyTorch with TorchScript: frozen and optimized for inference."""

    def __init__(self, folder, threads, requests):
        import torch

        self.torch = torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        model = torch.jit.load(f"{folder}/model.pt").eval()
        self.model = torch.jit.optimize_for_inference(torch.jit.freeze(model))
        self.requests = [tuple(map(torch.from_numpy, request.values())) for request in requests]

    def run(self, i):
        return self.model(*self.requests[i])

    def answers(self, i):
        return [x.numpy() for x in files.flat(self.run(i))]


class OnnxRuntime:
    def __init__(self, folder, threads, requests):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
        self.bindings = []
        for request in requests:  # bound beforehand: less Python in each call
            binding = self.session.io_binding()
            for name, array in request.items():
                binding.bind_cpu_input(name, array)
            for output in self.session.get_outputs():
                binding.bind_output(output.name)
            self.bindings.append(binding)

    def run(self, i):
        self.session.run_with_iobinding(self.bindings[i])

    def answers(self, i):
        self.run(i)
        return self.bindings[i].copy_outputs_to_cpu()


class OpenVino:
    def __init__(self, folder, threads, requests):
        import openvino

        core = openvino.Core()
        self.model = core.compile_model(core.read_model(f"{folder}/model.onnx"), "CPU",
                                        {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY",
                                         "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
        self.request = self.model.create_infer_request()
        self.inputs = [[openvino.Tensor(array, shared_memory=True) for array in request.values()]
                       for request in requests]
        self.bound = None

    def run(self, i):
        if self.bound != i:
            for position, tensor in enumerate(self.inputs[i]):
                self.request.set_input_tensor(position, tensor)
            self.bound = i
        self.request.infer(share_outputs=True)

    def answers(self, i):
        self.run(i)
        return [numpy.array(self.request.get_output_tensor(k).data) for k in range(len(self.model.outputs))]


PEERS = {"PyTorch": PyTorch, "ONNX Runtime": OnnxRuntime, "OpenVINO": OpenVino}


def cycle_ms(peer, count):
    """Wall time and CPU time of a request, averaged over a cycle."""
    start, cpu = time.perf_counter(), time.process_time()
    for i in range(count):
        peer.run(i)
    return (time.perf_counter() - start) * 1e3 / count, (time.process_time() - cpu) * 1e3 / count


def burst(peer, count, seconds):
    end = time.perf_counter() + seconds / 10  # warms the caches
    while time.perf_counter() < end:
        cycle_ms(peer, count)
    cycles = []
    end = time.perf_counter() + seconds
    while not cycles or time.perf_counter() < end:
        cycles.append(cycle_ms(peer, count))
    wall, cpu = zip(*cycles)
    return {"wall": {"median": statistics.median(wall), "best": min(wall)},
            "cpu": {"median": statistics.median(cpu), "best": min(cpu)}}


def main():
    _, name, folder, threads, input_names = sys.argv
    requests = files.load_requests(f"{folder}/requests.npz", input_names.split(","))
    peer = PEERS[name](folder, int(threads), requests)
    for _ in range(3):  # PyTorch's executor compiles in its first runs
        cycle_ms(peer, len(requests))
    for line in sys.stdin:
        command, argument = line.rstrip("\n").split(" ", 1)
        start = time.process_time()
        if command == "answers":
            numpy.savez(argument, **{f"{i}.{k}": value for i in files.checked_requests(len(requests))
                                     for k, value in enumerate(peer.answers(i))})
            result = {}
        else:
            result = burst(peer, len(requests), float(argument))
        print(json.dumps({**result, "cpu_seconds": time.process_time() - start}), flush=True)


if __name__ == "__main__":
    main()
