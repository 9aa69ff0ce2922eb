"""The Python client beside NVIDIA's tritonclient: the time of a call, and the client's share of it.

Usage: build/clients/bin/python -m tests.bench.python_client_bench     (PYTHONPATH: clients/python as a wheel, and the
repository's root; TENSORD_BINARY: the daemon). Both send the same tensors to the same daemon, alternately.
"""

import statistics
import time

import numpy as np
import tensord
import tritonclient.grpc as grpcclient

from tests.e2e.clients.example_server import start

SIZES = {"1 KB": (1, 256, 400), "64 KB": (16, 1024, 400), "4 MB": (1024, 1024, 40), "64 MB": (4096, 4096, 8)}


def ask_tensord(client, values):
    return client.infer("identity_fp32", {"INPUT0": values})["OUTPUT0"]


def ask_triton(client, values):
    tensor = grpcclient.InferInput("INPUT0", values.shape, "FP32")
    tensor.set_data_from_numpy(values)
    return client.infer("identity_fp32", [tensor]).as_numpy("OUTPUT0")


def measure(asks, values, count):
    """Median milliseconds of a call, and mean milliseconds of this process's CPU time, of each way to ask."""
    walls, cpus = [[] for _ in asks], [0.0 for _ in asks]
    for number in range(count + 2):
        for index, (ask, client) in enumerate(asks):
            wall, cpu = time.perf_counter(), time.process_time()
            answer = ask(client, values)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            if number < 2:  # warms up, and checks the response
                np.testing.assert_array_equal(answer, values)
                continue
            walls[index].append(wall)
            cpus[index] += cpu
    return [(statistics.median(wall) * 1e3, cpu / count * 1e3) for wall, cpu in zip(walls, cpus)]


def main():
    print("| tensor | tensord: call ms | tritonclient: call ms | ratio | tensord: client CPU ms | tritonclient | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    with start("--model-control-mode", "explicit", "--load-model", "identity_fp32") as daemon:
        ours = tensord.Client(daemon.ready["grpc"])
        theirs = grpcclient.InferenceServerClient(daemon.ready["grpc"])
        for name, (rows, columns, count) in SIZES.items():
            values = np.random.default_rng(0).random((rows, columns), dtype=np.float32)
            (wall, cpu), (wall2, cpu2) = measure([(ask_tensord, ours), (ask_triton, theirs)], values, count)
            print(f"| {name} | {wall:.3f} | {wall2:.3f} | {wall / wall2:.2f} | {cpu:.3f} | {cpu2:.3f} | {cpu / cpu2:.2f} |",
                  flush=True)
        ours.close()
        theirs.close()


if __name__ == "__main__":
    main()
