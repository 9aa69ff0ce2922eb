"""ModelInfer on an identity model, compared with a minimal gRPC server that echoes the same bytes.

Both servers run throughout; bursts of calls alternate between them. Prints the p50, p99 and throughput of
each and the ratios (above 1: tensord is slower). Two processes of one binary can differ by a third;
--starts N starts all of them N times and prints the medians of the columns.

    python3 tests/bench/echo_bench.py [--seconds 0.5] [--rounds 7] [--starts 1] [--payloads 1000,600000] [--clients 1,64]
"""

import argparse
import contextlib
import os
import statistics
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
    parser.add_argument("--starts", type=int, default=1, help="how often all processes are started anew")
    parser.add_argument("--apart", action="store_true",
                        help="one server after the other, for rows that do not fit memory with both")
    parser.add_argument("--payloads", default="1000,600000,4000000,64000000", help="bytes")
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--echo-load", default=os.environ.get("TENSORD_ECHO_LOAD", "build/tests/echo_load"))
    options = parser.parse_args()
    print("| payload | clients | ours p50 us | bare p50 us | ratio | ours p99 us | bare p99 us | ratio "
          "| ours calls/s | bare calls/s | ratio | copied of the payload |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    measured = {}  # by payload and clients: the row of each start
    for start in range(options.starts):
        for key, row in rows(options):
            measured.setdefault(key, []).append(row)
            if options.starts == 1:
                show(key, row)
        print(f"start {start + 1} of {options.starts}", file=sys.stderr, flush=True)
    if options.starts > 1:
        for key, of_starts in measured.items():
            show(key, [statistics.median(column) for column in zip(*of_starts)])


def show(key, row):
    columns = [f"{value:.2f}" if is_ratio else f"{value:.0f}" for value, is_ratio in zip(row, 3 * [0, 0, 1] + [1])]
    print("| " + " | ".join([*key, *columns]) + " |", flush=True)


def rows(options):
    """Starts both servers and the clients; yields key and row for each payload and number of clients."""
    if not options.apart:
        with start_ours() as daemon, start_bare(options) as bare_address:
            for key, numbers, share in measure(options, [f"ours={daemon.ready['grpc']}", f"bare={bare_address}"], daemon):
                yield key, make_row(numbers[:3], numbers[3:], share)
        return
    with start_ours() as daemon:
        ours = list(measure(options, [f"ours={daemon.ready['grpc']}"], daemon))
    with start_bare(options) as bare_address:
        bare = {key: numbers for key, numbers, _ in measure(options, [f"bare={bare_address}"])}
    for key, numbers, share in ours:
        yield key, make_row(numbers, bare[key], share)


def make_row(ours, bare, share):
    ours_p50, ours_p99, ours_rate = ours
    bare_p50, bare_p99, bare_rate = bare
    return [ours_p50, bare_p50, ours_p50 / bare_p50, ours_p99, bare_p99, ours_p99 / bare_p99,
            ours_rate, bare_rate, bare_rate / ours_rate, share]


@contextlib.contextmanager
def start_ours():
    with tempfile.TemporaryDirectory() as folder:
        serve_models.save(serve_models.Identity(), folder, "identity")
        with Daemon(folder) as daemon:
            yield daemon


@contextlib.contextmanager
def start_bare(options):
    with tempfile.TemporaryDirectory() as folder:
        address_file = os.path.join(folder, "address")
        bare = subprocess.Popen([options.echo_load, "serve", address_file])
        try:
            while not os.path.exists(address_file) or os.path.getsize(address_file) == 0:
                time.sleep(0.01)
            with open(address_file) as file:
                yield file.read().strip()
        finally:
            bare.kill()
            bare.wait()


def measure(options, targets, daemon=None):
    """For each payload and number of clients: key; p50, p99 and calls a second by target; bytes copied by the
    daemon."""
    load = subprocess.Popen([options.echo_load, "load", options.seconds, options.rounds, options.payloads, options.clients,
                             *targets], stdout=subprocess.PIPE, text=True)
    before = copied_and_received(daemon)
    for line in load.stdout:
        size, clients, *columns = line.split()
        numbers = [float(column) for column in columns if column not in ("ours", "bare")]
        now = copied_and_received(daemon)
        yield (size, clients), numbers, (now[0] - before[0]) / max(now[1] - before[1], 1)
        before = now
    if load.wait() != 0:
        sys.exit("the load client failed")


def copied_and_received(daemon):
    if daemon is None:
        return 0.0, 0.0
    return (daemon.metric("tensord_copied_bytes_total", model="identity"),
            daemon.metric("tensord_received_bytes_total", model="identity"))


if __name__ == "__main__":
    main()
