"""ModelInfer on an identity model whose input and output lie in shared memory: the time must not grow with the size.

Sizes take turns. Prints p50 of each and its ratio to the smallest, and what was copied.

    python3 tests/bench/shared_memory_bench.py [--rounds 20] [--calls 50]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon, pb, request  # noqa: E402

SIZES = (4_000, 600_000, 4_000_000, 64_000_000)


def message(name, size):
    out = request("identity", [("x", "FP32", [size // 4], None)], outputs=["OUTPUT__0"])
    for item, offset in ((out.inputs[0], 0), (out.outputs[0], size)):
        item.parameters["shared_memory_region"].string_param = name
        item.parameters["shared_memory_byte_size"].int64_param = size
        item.parameters["shared_memory_offset"].int64_param = offset
    return out


def run(daemon, rounds, calls):
    messages, paths = {}, []
    for size in SIZES:
        name = f"tensord_bench_{os.getpid()}_{size}"
        paths.append("/dev/shm/" + name)
        with open(paths[-1], "wb") as region:
            region.write(bytes(2 * size))
        daemon.stub.SystemSharedMemoryRegister(
            pb.SystemSharedMemoryRegisterRequest(name=name, key="/" + name, byte_size=2 * size), timeout=60)
        messages[size] = message(name, size)
        daemon.stub.ModelInfer(messages[size], timeout=60)
    times, copied = {size: [] for size in SIZES}, {size: 0 for size in SIZES}
    try:
        for _ in range(rounds):
            for size in SIZES:
                before = daemon.metric("tensord_copied_bytes_total", model="identity")
                for _ in range(calls):
                    start = time.perf_counter()
                    daemon.stub.ModelInfer(messages[size], timeout=60)
                    times[size].append(time.perf_counter() - start)
                copied[size] += daemon.metric("tensord_copied_bytes_total", model="identity") - before
    finally:
        for path in paths:
            os.unlink(path)
    smallest = statistics.median(times[SIZES[0]])
    print("| bytes | p50 us | ratio | copied a call |")
    print("|---:|---:|---:|---:|")
    for size in SIZES:
        p50 = statistics.median(times[size])
        print(f"| {size} | {p50 * 1e6:.0f} | {p50 / smallest:.2f} | {copied[size] / rounds / calls:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), folder, "identity")
        with Daemon(folder, "--allow-client-shm", "true") as daemon:
            run(daemon, options.rounds, options.calls)


if __name__ == "__main__":
    main()
