"""NVIDIA Triton with the models of peer_servers_bench.py behind its Python backend, by nvidia-pytriton.

Usage: pytriton_server.py FOLDER GRPC_PORT HTTP_PORT METRICS_PORT; FOLDER has NAME/1/model.pt. Run by the bench.
"""

import os
import sys

import numpy as np
import torch
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig

BATCH = 32


def load(folder, name):
    return torch.jit.load(os.path.join(folder, name, "1", "model.pt")).eval()


def tensor(name, *shape):
    return Tensor(name=name, dtype=np.float32, shape=shape)


def main():
    folder, grpc_port, http_port, metrics_port = sys.argv[1:]
    mlp, resnet50 = load(folder, "mlp"), load(folder, "resnet50")

    def answer_as_it_is(requests):
        return [{"OUTPUT__0": request["x"]} for request in requests]

    @batch
    def run_mlp(input):
        with torch.inference_mode():
            return {"OUTPUT__0": mlp(torch.from_numpy(input)).numpy()}

    def run_resnet50(requests):
        with torch.inference_mode():
            return [{"OUTPUT__0": resnet50(torch.from_numpy(request["x"])).numpy()} for request in requests]

    config = TritonConfig(grpc_port=int(grpc_port), http_port=int(http_port), metrics_port=int(metrics_port))
    # perf_analyzer asks for the server's statistics.
    with Triton(config=config, security_config=TritonSecurityConfig(restricted_endpoints=[])) as triton:
        alone = ModelConfig(batching=False)
        triton.bind(model_name="identity", infer_func=answer_as_it_is, inputs=[tensor("x", -1)],
                    outputs=[tensor("OUTPUT__0", -1)], config=alone)
        width = next(mlp.parameters()).shape[1]
        triton.bind(model_name="mlp", infer_func=run_mlp, inputs=[tensor("input", width)],
                    outputs=[tensor("OUTPUT__0", width)],
                    config=ModelConfig(batching=True, max_batch_size=BATCH, batcher=DynamicBatcher()))
        triton.bind(model_name="resnet50", infer_func=run_resnet50, inputs=[tensor("x", 1, 3, 224, 224)],
                    outputs=[tensor("OUTPUT__0", 1, 1000)], config=alone)
        triton.serve()


if __name__ == "__main__":
    main()
