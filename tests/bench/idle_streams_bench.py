"""Memory of the daemon per idle open stream.

python3 tests/bench/idle_streams_bench.py [--streams 10000] [--connections 100]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon  # noqa: E402


def memory_of(pid):
    """Private memory of the process in bytes."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no Private_Dirty")


def settled_memory_of(pid):
    """The same once it is stable."""
    last = memory_of(pid)
    for _ in range(100):
        time.sleep(0.2)
        now = memory_of(pid)
        if abs(now - last) < 64 << 10:
            return now
        last = now
    return last


def measure(options, streams, requests):
    """Memory of this many streams and their connections, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), folder, "identity")
        with Daemon(folder) as daemon:
            before = settled_memory_of(daemon.process.pid)
            client = subprocess.Popen([options.idle_streams, daemon.ready["grpc"], str(streams),
                                       str(options.connections), str(requests)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            if client.stdout.readline() != "open\n":
                sys.exit("the client failed")
            after = settled_memory_of(daemon.process.pid)
            client.stdin.close()
            client.wait()
            return after - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--idle-streams", default=os.environ.get("TENSORD_IDLE_STREAMS", "build/tests/idle_streams"))
    options = parser.parse_args()
    print("| streams | connections | requests before | bytes a stream | bytes a connection |")
    print("|---:|---:|---:|---:|---:|")
    for requests in (0, 1):
        few = measure(options, options.connections, requests)
        many = measure(options, options.streams, requests)
        of_stream = (many - few) / (options.streams - options.connections)
        of_connection = few / options.connections - of_stream
        print(f"| {options.streams} | {options.connections} | {requests} | {of_stream:.0f} | {of_connection:.0f} |",
              flush=True)


if __name__ == "__main__":
    main()
