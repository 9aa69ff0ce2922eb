"""NVIDIA Triton with the models of peer_servers.py behind its Python backend, by nvidia-pytriton.

Usage: pytriton_server.py FOLDER GRPC_PORT HTTP_PORT METRICS_PORT; FOLDER has NAME/1/model.pt. Run by the benches.
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


def bind_identity(triton, _):
    def answer_as_it_is(requests):
        return [{"OUTPUT__0": request["x"]} for request in requests]

    triton.bind(model_name="identity", infer_func=answer_as_it_is, inputs=[tensor("x", -1)],
                outputs=[tensor("OUTPUT__0", -1)], config=ModelConfig(batching=False))


def bind_mlp(triton, model):
    @batch
    def run(input):
        with torch.inference_mode():
            return {"OUTPUT__0": model(torch.from_numpy(input)).numpy()}

    width = next(model.parameters()).shape[1]
    triton.bind(model_name="mlp", infer_func=run, inputs=[tensor("input", width)], outputs=[tensor("OUTPUT__0", width)],
                config=ModelConfig(batching=True, max_batch_size=BATCH, batcher=DynamicBatcher()))


def bind_resnet50(triton, model):
    def run(requests):
        with torch.inference_mode():
            return [{"OUTPUT__0": model(torch.from_numpy(request["x"])).numpy()} for request in requests]

    triton.bind(model_name="resnet50", infer_func=run, inputs=[tensor("x", 1, 3, 224, 224)],
                outputs=[tensor("OUTPUT__0", 1, 1000)], config=ModelConfig(batching=False))


def main():
    folder, grpc_port, http_port, metrics_port = sys.argv[1:]
    binds = {"identity": bind_identity, "mlp": bind_mlp, "resnet50": bind_resnet50}
    config = TritonConfig(grpc_port=int(grpc_port), http_port=int(http_port), metrics_port=int(metrics_port))
    # perf_analyzer queries the server's statistics.
    with Triton(config=config, security_config=TritonSecurityConfig(restricted_endpoints=[])) as triton:
        for name in sorted(os.listdir(folder)):
            binds[name](triton, load(folder, name))
        triton.serve()


if __name__ == "__main__":
    main()
