"""L0_socket: ports and addresses; L0_sequence_stress."""

import subprocess
import time

import kit_paths as paths
from harness import BIN, MODELS, PYTHON, WORK, Server, check, folder, prepared, run_script, skip

ADDRESSES = ("--grpc-address", "--http-address", "--metrics-address")
SAME = [part for flag in ADDRESSES for part in (flag, "127.0.0.1")]
APART = [part for number, flag in enumerate(ADDRESSES, 1) for part in (flag, f"127.0.0.{number}")]


def starts(what, flags, want):
    """Whether a server on Triton's ports, changed by `flags`, starts."""
    ports = {"--grpc-port": "8001", "--http-port": "8000", "--metrics-port": "8002", "--allow-http": "true"}
    given = dict(zip(flags[::2], flags[1::2]))
    command = [BIN, "serve", "--model-repository", str(MODELS / "own"), *[part for pair in {**ports, **given}.items() for part in pair]]
    log = WORK / "logs" / "socket.server.log"
    with open(log, "w") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    end = time.monotonic() + 20
    while server.poll() is None and "models loaded" not in log.read_text() and time.monotonic() < end:
        time.sleep(0.1)
    up = server.poll() is None
    if up:
        server.terminate()
        server.wait(30)
    check("L0_socket", f"test.sh: {what}: {'starts' if want else 'does not start'}", up == want, log.read_text()[-400:], kind="qa")


def sockets():
    for where, flags in (("", []), (" at one address", SAME)):
        starts(f"HTTP at gRPC's port{where}, but off", [*flags, "--http-port", "8001", "--allow-http", "false"], True)
        starts(f"HTTP at gRPC's port{where}", [*flags, "--http-port", "8001"], False)
        starts(f"gRPC at HTTP's port{where}", [*flags, "--grpc-port", "8000"], False)
        starts(f"gRPC and HTTP at one other port{where}", [*flags, "--grpc-port", "8003", "--http-port", "8003"], False)
        starts(f"HTTP at metrics' port{where}", [*flags, "--http-port", "8002"], False)
        starts(f"gRPC at metrics' port{where}", [*flags, "--grpc-port", "8002"], False)
        starts(f"metrics at HTTP's port{where}, but off", [*flags, "--metrics-port", "8000", "--allow-metrics", "false"], True)
        starts(f"metrics at HTTP's port{where}", [*flags, "--metrics-port", "8000"], False)
        starts(f"metrics at gRPC's port{where}", [*flags, "--metrics-port", "8001"], False)
    for port, flag in (("8001", "--http-port"), ("8000", "--grpc-port"), ("8001", "--metrics-port"), ("8000", "--metrics-port")):
        starts(f"{flag} {port} at addresses of their own", [*APART, flag, port], True)
    starts("--http-port -47, but off", ["--http-port", "-47", "--allow-http", "false"], True)
    skip("L0_socket", "test.sh: --allow-grpc 0", "gRPC is always there")
    skip("L0_socket", "test.sh: --reuse-grpc-port, --reuse-http-port", "a port is one server's; sockets can be handed on instead")


def stress():
    test = prepared("L0_sequence_stress/sequence_stress.py", folder("sequence_stress_test"))
    for batch, count in ((4, 1), (2, 2), (1, 4)):
        models = folder("sequence_stress") / "models"
        paths.renamed(models, MODELS / "sequence" / "custom_sequence_int32", "custom_sequence_int32", [
            (r"max_sequence_idle_microseconds: \d+", "max_sequence_idle_microseconds: 1000000"),
            (r"max_batch_size: \d+", f"max_batch_size: {batch}"), (r"kind: KIND_CPU", f"kind: KIND_CPU count: {count}")])
        with Server(models, name="sequence_stress"):
            run_script("L0_sequence_stress", f"sequence_stress.py -i 40, {count} instances of batch size {batch}",
                       [PYTHON, test, "-i", "40"], cwd=test.parent, timeout=400, kind="qa")


SUITES = {"sockets": sockets, "stress": stress}
