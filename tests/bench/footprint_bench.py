"""What a server weighs and how soon it answers: files, start, resident memory, beside PyTorch and Triton.

    scripts/build static; scripts/setup bench test
    /usr/bin/python3 -m tests.bench.footprint_bench static=build/static/server/tensord release=build/release/server/tensord
        [--rounds 5] [--images tensord:latest …] [--pypi torch torchserve mlserver]

All are started in turn, to the first answer of one scripted resnet50. "code" is the size of the program and of all
libraries that it has mapped. Peers: a process with Debian's PyTorch, which serves nothing, and, where scripts/setup bench
made build/peer_servers, NVIDIA's Triton with its Python backend and that PyTorch. --pypi asks pip how much it would
download for a package and what it needs; --images, Docker.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import grpc
import torch
import torchvision

from tests.e2e.daemon import inference_pb2_grpc, pb

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEER_SERVERS = ROOT / "build" / "peer_servers" / "bin" / "python"
TIMEOUT_S = 120
PYTORCH = """
import sys, torch
print("ready", flush=True)
sys.stdin.readline()
model = torch.jit.load(sys.argv[1])
with torch.inference_mode():
    model(torch.zeros(1, 3, 224, 224))
print("answer", flush=True)
sys.stdin.readline()
"""


def processes(pid: int) -> list:
    """The process and all that it started."""
    found = [pid]
    for parent in found:
        for children in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def resident_bytes(pid: int) -> int:
    """Of several processes, what they share counts once."""
    every = processes(pid)
    field = "Rss:" if len(every) == 1 else "Pss:"
    lines = [line for each in every for line in pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def code_bytes(pid: int) -> int:
    files = set()
    for each in processes(pid):
        for line in pathlib.Path(f"/proc/{each}/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
                files.add(fields[5])
    return sum(os.path.getsize(file) for file in files if os.path.exists(file))


def ask(address: str) -> None:
    request = pb.ModelInferRequest(model_name="resnet50")
    request.inputs.add(name="x", datatype="FP32", shape=[1, 3, 224, 224])
    request.raw_input_contents.append(bytes(4 * 3 * 224 * 224))
    with grpc.insecure_channel(address) as channel:
        answer = inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=TIMEOUT_S)
    assert len(answer.raw_output_contents[0]) == 4000


def wait_until(process, condition) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{process.args[0]} did not become ready")
        time.sleep(0.0005)


def stop(process) -> None:
    for each in processes(process.pid)[::-1]:
        try:
            os.kill(each, signal.SIGTERM)
        except ProcessLookupError:
            pass
    process.wait()


def start_tensord(binary: str, repository, folder: pathlib.Path) -> dict:
    """Ready without a model and with one, and its first answer."""
    row = {}
    for name, models in (("idle", folder / "none"), ("loaded", repository)):
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        begin = time.perf_counter()
        process = subprocess.Popen([binary, "serve", "--model-repository", str(models), "--grpc-port", "0",
                                    "--metrics-port", "0", "--ready-file", str(ready)], stderr=subprocess.DEVNULL)
        try:
            wait_until(process, ready.exists)
            if name == "idle":
                row["ready"] = time.perf_counter() - begin
            else:
                ask(json.loads(ready.read_text())["grpc"])
                row["answer"] = time.perf_counter() - begin
            time.sleep(0.3)  # until the file's pages that were packed have been given back
            row[name] = resident_bytes(process.pid)
            row["code"] = code_bytes(process.pid)
        finally:
            stop(process)
    return row


def start_pytorch(repository: pathlib.Path) -> dict:
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", PYTORCH, str(repository / "resnet50" / "1" / "model.pt")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    row = {"ready": time.perf_counter() - begin, "idle": resident_bytes(process.pid)}
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    row |= {"answer": time.perf_counter() - begin, "loaded": resident_bytes(process.pid), "code": code_bytes(process.pid)}
    process.communicate("\n")
    return row


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_triton(repository: pathlib.Path) -> dict:
    """Its models (an MLP and an identity beside resnet50) are loaded when it is ready."""
    grpc_port, http_port, metrics_port = (free_port() for _ in range(3))
    begin = time.perf_counter()
    process = subprocess.Popen([str(PEER_SERVERS), str(ROOT / "tests" / "bench" / "pytriton_server.py"), str(repository),
                                str(grpc_port), str(http_port), str(metrics_port)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{http_port}/v2/models/resnet50/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    try:
        wait_until(process, is_ready)
        row = {"ready": time.perf_counter() - begin}
        ask(f"127.0.0.1:{grpc_port}")
        return row | {"answer": time.perf_counter() - begin, "loaded": resident_bytes(process.pid),
                      "code": code_bytes(process.pid)}
    finally:
        stop(process)


def make_repository(folder: pathlib.Path) -> pathlib.Path:
    repository = folder / "models"
    archives = {"resnet50": torchvision.models.resnet50(weights=None), "mlp": torch.nn.Sequential(torch.nn.Linear(64, 64))}
    for name, model in archives.items():
        target = folder / ("models" if name == "resnet50" else "peer") / name / "1" / "model.pt"
        target.parent.mkdir(parents=True)
        torch.jit.script(model.eval()).save(str(target))
    os.symlink(repository / "resnet50", folder / "peer" / "resnet50")
    (folder / "none").mkdir()
    return repository


def median(rows: list, key: str, scale: float, digits: int) -> str:
    values = [row[key] for row in rows if key in row]
    return f"{statistics.median(values) * scale:.{digits}f}" if values else ""


def download_bytes(requirement: str) -> tuple:
    """(files, bytes) that pip would fetch into an empty environment."""
    report = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-",
                             "--break-system-packages", requirement], capture_output=True, text=True, check=True).stdout
    urls = [item["download_info"]["url"] for item in json.loads(report)["install"]]
    size = 0
    for url in urls:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=30) as answer:
            size += int(answer.headers["Content-Length"])
    return len(urls), size


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="*", help="NAME=PATH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", nargs="*", default=[])
    parser.add_argument("--pypi", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        repository = make_repository(folder)
        weights = (repository / "resnet50" / "1" / "model.pt").stat().st_size
        starts = {}
        for binary in options.binaries:
            title, path = binary.split("=", 1)
            starts[f"tensord, {title}"] = lambda path=os.path.abspath(path): start_tensord(path, repository, folder)
        starts["PyTorch (Debian), no server"] = lambda: start_pytorch(repository)
        if PEER_SERVERS.exists():
            starts["Triton with PyTorch (Debian)"] = lambda: start_triton(folder / "peer")
        rounds = {title: [] for title in starts}
        for _ in range(options.rounds):
            for title, start in starts.items():
                rounds[title].append(start())
    print("| | code, MB | ready, ms | first resnet50 answer, ms | idle, MB | loaded, MB | (loaded − idle) / weights |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for title, rows in rounds.items():
        more = [{"ratio": (row["loaded"] - row["idle"]) / weights} for row in rows if "idle" in row]
        print(f"| {title} | {median(rows, 'code', 1e-6, 1)} | {median(rows, 'ready', 1e3, 0)} | {median(rows, 'answer', 1e3, 0)} "
              f"| {median(rows, 'idle', 1e-6, 1)} | {median(rows, 'loaded', 1e-6, 0)} | {median(more, 'ratio', 1, 2)} |")
    for image in options.images:
        size = subprocess.run(["docker", "image", "inspect", "-f", "{{.Size}}", image], capture_output=True, text=True, check=True)
        print(f"\nimage {image}: {int(size.stdout) / 1e6:.1f} MB")
    for requirement in options.pypi:
        files, size = download_bytes(requirement)
        print(f"\nPyPI {requirement}: {size / 1e6:.0f} MB in {files} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
