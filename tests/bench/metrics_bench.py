"""The cost of metrics: time to count a request, as a share of the server's CPU time for the smallest request.

The server answers echo_load's requests to an identity model with 1 KB; metrics_cost only counts such requests.

    python3 tests/bench/metrics_bench.py [--seconds 0.5] [--build build]
"""

import argparse
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from tests.e2e import serve_models  # noqa: E402
from tests.e2e.daemon import Daemon  # noqa: E402


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="0.5", help="length of a burst")
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    tests = os.path.join(options.build, "tests")
    counted = subprocess.run([os.path.join(tests, "metrics_cost")], check=True, capture_output=True, text=True).stdout
    costs = {int(line.split()[0]): float(line.split()[1]) for line in counted.splitlines()}
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), folder, "identity")
        with Daemon(folder) as daemon:
            before = cpu_seconds(daemon.process.pid)
            subprocess.run([os.path.join(tests, "echo_load"), "load", options.seconds, "3", "1000", "1,16",
                            f"ours={daemon.ready['grpc']}"], check=True, stdout=subprocess.DEVNULL)
            used = cpu_seconds(daemon.process.pid) - before
            requests = daemon.metric("tensord_requests_total", model="identity", code="OK")
    request_ns = used / requests * 1e9
    print(f"CPU time of a request: {request_ns / 1000:.1f} us ({requests:.0f} requests)")
    print("| threads that count | ns a request | share |\n|---:|---:|---:|")
    for threads, ns in costs.items():
        print(f"| {threads} | {ns:.0f} | {100 * ns / request_ns:.2f} % |")
    if max(costs.values()) / request_ns >= 0.01:
        sys.exit("metrics cost 1 % or more")


if __name__ == "__main__":
    main()
