"""Runs a container image of tensord and checks what users rely on; prints sizes.

Usage: python3 -m deploy.docker.check_image IMAGE     from the root of the sources; $DOCKER is the client to use

Each way of running it: start, wait until healthy, infer over gRPC, scrape the metrics, SIGTERM, exit code 0.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

from tests.packages.debian import TWO_PROCESSES, write_pictures

DOCKER = os.environ.get("DOCKER", "docker")
OWN_LIMIT, LIMIT = 60e6, 120e6
HARDENED = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=200"]
WAYS = {
    "as it is": [],
    "read-only root": HARDENED,
    "arbitrary user": [*HARDENED, "--user", "54321:0"],
    "256 MB and half a core": [*HARDENED, "--memory=256m", "--memory-swap=256m", "--cpus=0.5"],
}


def docker(*arguments: str) -> str:
    result = subprocess.run([DOCKER, *arguments], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"docker {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout.strip()


def make_stubs(folder: pathlib.Path) -> dict:
    """The environment in which examples.demo finds its stubs."""
    plugin = subprocess.run(["which", "grpc_python_plugin"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["protoc", "-Iprotos", f"--python_out={folder}", f"--grpc_python_out={folder}",
                    f"--plugin=protoc-gen-grpc_python={plugin}", "inference.proto", "model_config.proto"], check=True)
    return {**os.environ, "PYTHONPATH": f".:{folder}"}


def address(container: str, port: int) -> str:
    return docker("port", container, f"{port}/tcp").splitlines()[0]


def wait_healthy(container: str, timeout_s: float = 120) -> None:
    """Waits for Docker's own health check of the image."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        state = json.loads(docker("inspect", "-f", "{{json .State}}", container))
        if state["Status"] != "running":
            raise SystemExit(f"the container stopped: {docker('logs', container)}")
        if state["Health"]["Status"] == "healthy":
            return
        time.sleep(0.2)
    raise SystemExit(f"not healthy after {timeout_s} s: {docker('inspect', '-f', '{{json .State.Health}}', container)}")


def infer(grpc_address: str, metrics_address: str, environment: dict) -> None:
    """The demo calls every example model, and fails if a result is wrong."""
    result = subprocess.run(["/usr/bin/python3", "-m", "examples.demo", grpc_address, metrics_address],
                            env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit(f"a wrong answer: {result.stdout} {result.stderr}")


def scrape(target: str) -> None:
    with urllib.request.urlopen(f"http://{target}/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    wanted = [line for line in metrics.splitlines() if line.startswith("tensord_requests_total") and 'model="shapes"' in line]
    if not any(float(line.split()[-1]) >= 1 for line in wanted):
        raise SystemExit(f"the metrics do not count the request: {wanted}")


def check_way(image: str, name: str, options: list, models: pathlib.Path, environment: dict) -> None:
    begin = time.monotonic()
    container = docker("run", "-d", "-p", "127.0.0.1::8001", "-p", "127.0.0.1::8002", "--health-interval=1s",
                       "-v", f"{models}:/models:ro", *options, image)
    try:
        wait_healthy(container)
        ready = time.monotonic() - begin
        infer(address(container, 8001), address(container, 8002), environment)
        scrape(address(container, 8002))
        docker("stop", "-t", "20", container)
        state = json.loads(docker("inspect", "-f", "{{json .State}}", container))
        if state["ExitCode"] != 0 or state["OOMKilled"]:
            raise SystemExit(f"exit code {state['ExitCode']}, killed for memory: {state['OOMKilled']}")
        print(f"{name}: healthy after {ready:.1f} s, answered, counted, exit code 0")
    finally:
        docker("rm", "-f", container)


def check_ranks(image: str, folder: pathlib.Path) -> None:
    """A training job of two processes, which need Gloo."""
    (folder / "data").mkdir()
    write_pictures(folder / "data" / "pictures.safetensors")
    container = docker("run", "-d", "--health-interval=1s", *HARDENED, "--tmpfs=/jobs:mode=1777", "-v", f"{pathlib.Path('examples/models').resolve()}:/models:ro",
                       "-v", f"{folder / 'data'}:/data:ro", image, "serve", "--model-repository=/models", "--training-dir=/jobs", "--training-data=/data")
    try:
        wait_healthy(container)
        if "COMPLETED" not in docker("exec", container, "tensord", *TWO_PROCESSES):
            raise SystemExit("the job of two processes did not complete")
        print("a training job of two processes: completed")
    finally:
        docker("rm", "-f", container)


def layers(image: str) -> list:
    """(bytes, command) of the non-empty layers, the base first."""
    rows = docker("history", "--no-trunc", "--human=false", "--format", "{{.Size}}\t{{.CreatedBy}}", image).splitlines()
    found = [(int(size), command) for size, command in (row.split("\t", 1) for row in rows) if int(size) > 0]
    return found[::-1]


def check_sizes(image: str) -> None:
    (base, _), *own = layers(image)
    own_bytes = sum(size for size, _ in own)
    packed = subprocess.run(f"{DOCKER} save {image} | gzip -6 | wc -c", shell=True, capture_output=True, text=True, check=True)
    print(f"base {base / 1e6:.1f} MB, own layers {own_bytes / 1e6:.1f} MB, together {(base + own_bytes) / 1e6:.1f} MB; "
          f"compressed {int(packed.stdout) / 1e6:.1f} MB")
    if own_bytes >= OWN_LIMIT or base + own_bytes >= LIMIT:
        raise SystemExit(f"more than {OWN_LIMIT / 1e6:.0f} MB of its own, or {LIMIT / 1e6:.0f} MB in all")


def check_config(image: str) -> None:
    config = json.loads(docker("inspect", "-f", "{{json .Config}}", image))
    if config["User"].split(":")[0] in ("", "0", "root"):
        raise SystemExit("the image runs as root")
    missing = [key for key in ("title", "version", "revision", "created") if not config["Labels"].get(f"org.opencontainers.image.{key}")]
    if missing:
        raise SystemExit(f"labels without a value: {missing}")


def main() -> None:
    image = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = make_stubs(folder)
        check_config(image)
        for way, options in WAYS.items():
            check_way(image, way, options, pathlib.Path("examples/models").resolve(), environment)
        check_ranks(image, folder)
    check_sizes(image)


if __name__ == "__main__":
    main()
