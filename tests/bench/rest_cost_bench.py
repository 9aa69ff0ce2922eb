"""The cost of the REST protocol for gRPC clients: size of the binary, wall and CPU time of calls over gRPC.

    python3 -m tests.bench.rest_cost_bench BUILD_FOLDER CALL_LOAD [--rounds 7] [--seconds 0.6]

Links the daemon of a build folder (Ninja) again with without_rest.cpp instead of server/rest. Three daemons then answer
bursts of ModelInfer in alternating order: this one, the complete one, and the complete one with its HTTP port. Prints
medians, and medians of the ratios to the first one within a round.
"""

import argparse
import os
import pathlib
import shlex
import statistics
import subprocess
import tempfile

from tests.e2e import daemon_process, serve_models
from tests.e2e.daemon import Daemon, request

HERE = pathlib.Path(__file__).resolve().parent
METHOD = "/inference.GRPCInferenceService/ModelInfer"
COLUMNS = ("cpu us", "p50 us", "p99 us", "calls/s")


def command_of(folder, target, wanted):
    """The last of Ninja's commands for a target that contains this string."""
    run = subprocess.run(["ninja", "-t", "commands", target], cwd=folder, check=True, capture_output=True, text=True)
    return [line for line in run.stdout.splitlines() if wanted in line][-1]


def link(folder, out):
    """The daemon without REST and the complete one, stripped of symbols."""
    compiled = shlex.split(command_of(folder, "server/tensord", f"-c {HERE.parents[1]}/server/daemon/daemon.cpp"))
    compiled = compiled[:compiled.index("-MD")] + ["-o", str(out / "rest.o"), "-c", str(HERE / "without_rest.cpp")]
    subprocess.run(compiled, cwd=folder, check=True)
    linked = command_of(folder, "server/tensord", " -o server/tensord ")
    for name, archive in (("without", str(out / "rest.o")), ("whole", "server/libtensord_server_rest.a")):
        command = linked.replace("server/libtensord_server_rest.a", archive)
        command = command.replace(" -o server/tensord ", f" -s -o {out / name} ")
        subprocess.run(command, shell=True, cwd=folder, check=True)
    return out / "without", out / "whole"


def cpu_us(daemon):
    tasks = pathlib.Path(f"/proc/{daemon.process.pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e3


def burst(options, daemon, message, clients):
    before = cpu_us(daemon)
    arguments = [daemon.ready["grpc"], METHOD, message, str(clients), str(options.seconds), "0.2"]
    run = subprocess.run([options.call_load, *arguments], check=True, capture_output=True, text=True)
    rate, p50, p99, _ = map(float, run.stdout.split())
    return (cpu_us(daemon) - before) / (rate * (options.seconds + 0.2)), p50, p99, rate


def measure(options, daemons, message, clients):
    rows = {name: [] for name in daemons}
    for turn in range(options.rounds):
        for name in list(daemons)[::-1 if turn % 2 else 1]:
            rows[name].append(burst(options, daemons[name], message, clients))
    base = next(iter(rows.values()))
    for name, bursts in rows.items():
        medians = [statistics.median(column) for column in zip(*bursts)]
        ratios = [statistics.median(one[i] / first[i] for one, first in zip(bursts, base)) for i in range(len(COLUMNS))]
        yield name, medians, ratios


def start(binary, repository, *flags):
    daemon_process.BINARY = str(binary)
    return Daemon(repository, *flags)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("call_load")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.6)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        without, whole = link(options.build, pathlib.Path(folder))
        sizes = [os.path.getsize(binary) for binary in (without, whole)]
        print(f"stripped: {sizes[1]} bytes, {sizes[1] - sizes[0]} of them REST")
        repository = os.path.join(folder, "models")
        serve_models.save(serve_models.Identity(), repository, "identity")
        with start(without, repository) as first, start(whole, repository) as second, \
                start(whole, repository, "--allow-http", "true", "--http-port", "0") as third:
            daemons = {"without REST": first, "REST, off": second, "REST, on": third}
            print("| bytes | clients | daemon | " + " | ".join(f"{column} | ratio" for column in COLUMNS) + " |")
            for size in (1000, 600_000):
                message = os.path.join(folder, str(size))
                with open(message, "wb") as file:
                    file.write(request("identity", [("x", "FP32", [size // 4], bytes(size))]).SerializeToString())
                for clients in (1, 16):
                    for name, medians, ratios in measure(options, daemons, message, clients):
                        cells = " | ".join(f"{value:.1f} | {ratio:.2f}" for value, ratio in zip(medians, ratios))
                        print(f"| {size} | {clients} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
