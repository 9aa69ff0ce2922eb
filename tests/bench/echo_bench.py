"""ModelInfer on an identity model against a bare gRPC server that echoes the same bytes.

Both servers run all the time; bursts of calls alternate between them. Prints p50, p99 and
throughput of each and the ratios (above 1: ours is slower).

    python3 tests/bench/echo_bench.py [--seconds 0.5] [--rounds 7] [--payloads 1000,600000] [--clients 1,64]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="0.5", help="length of a burst")
    parser.add_argument("--rounds", default="7")
    parser.add_argument("--payloads", default="1000,600000,4000000,64000000", help="bytes")
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--echo-load", default=os.environ.get("TENSORD_ECHO_LOAD", "build/tests/echo_load"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), os.path.join(folder, "models"), "identity")
        address_file = os.path.join(folder, "address")
        bare = subprocess.Popen([options.echo_load, "serve", address_file])
        try:
            while not os.path.exists(address_file) or os.path.getsize(address_file) == 0:
                time.sleep(0.01)
            with open(address_file) as file:
                address = file.read().strip()
            with Daemon(os.path.join(folder, "models")) as daemon:
                run(options, address, daemon)
        finally:
            bare.kill()


def run(options, bare_address, daemon):
    print("| payload | clients | ours p50 us | bare p50 us | ratio | ours p99 us | bare p99 us | ratio "
          "| ours calls/s | bare calls/s | ratio | copied |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    load = subprocess.Popen([options.echo_load, "load", options.seconds, options.rounds, options.payloads, options.clients,
                             f"ours={daemon.ready['grpc']}", f"bare={bare_address}"], stdout=subprocess.PIPE, text=True)
    copied, received = 0.0, 0.0
    for line in load.stdout:
        size, clients, _, *numbers = line.split()
        ours_p50, ours_p99, ours_rate = map(float, numbers[:3])
        bare_p50, bare_p99, bare_rate = map(float, numbers[4:])
        copied_now = daemon.metric("tensord_copied_bytes_total", model="identity")
        received_now = daemon.metric("tensord_received_bytes_total", model="identity")
        share = (copied_now - copied) / max(received_now - received, 1)
        copied, received = copied_now, received_now
        print(f"| {size} | {clients} | {ours_p50:.0f} | {bare_p50:.0f} | {ours_p50 / bare_p50:.2f} | {ours_p99:.0f} "
              f"| {bare_p99:.0f} | {ours_p99 / bare_p99:.2f} | {ours_rate:.0f} | {bare_rate:.0f} "
              f"| {bare_rate / ours_rate:.2f} | {share:.2f} of the payload |", flush=True)
    if load.wait() != 0:
        sys.exit("the load client failed")


if __name__ == "__main__":
    main()
