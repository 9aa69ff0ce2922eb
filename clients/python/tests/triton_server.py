"""NVIDIA's Triton with three models, for test_triton.py.

Usage: PYTHON_WITH_PYTRITON triton_server.py GRPC_PORT     (takes the two ports after it too)
"""

import sys

import numpy as np
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig, TritonSecurityConfig


@batch
def identity(**inputs):
    return {"OUTPUT0": inputs["INPUT0"]}


@batch
def count(IN):
    for number in range(int(IN.max())):
        yield {"OUT": IN * 0 + number}


def main():
    port = int(sys.argv[1])
    config = TritonConfig(grpc_address="127.0.0.1", grpc_port=port, http_port=port + 1, metrics_port=port + 2)
    with Triton(config=config, security_config=TritonSecurityConfig(access_token="secret")) as triton:
        for name, dtype in (("numbers", np.float32), ("texts", bytes)):
            triton.bind(name, identity, [Tensor(name="INPUT0", dtype=dtype, shape=(-1,))],
                        [Tensor(name="OUTPUT0", dtype=dtype, shape=(-1,))], config=ModelConfig(max_batch_size=8))
        triton.bind("count", count, [Tensor(name="IN", dtype=np.int32, shape=(1,))],
                    [Tensor(name="OUT", dtype=np.int32, shape=(1,))],
                    config=ModelConfig(max_batch_size=8, decoupled=True))
        triton.serve()


if __name__ == "__main__":
    main()
