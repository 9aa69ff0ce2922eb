"""Size of the files, start-up time and resident memory of servers: tensord beside PyTorch and others.

    scripts/build static; scripts/build release; scripts/setup bench pypi_torch test
    /usr/bin/python3 -m tests.bench.footprint_bench static=build/static/server/tensord release=build/release/server/tensord
        [--rounds 5] [--only TorchServe] [--images tensord:latest …] [--pypi torch torchserve mlserver]

Each server is started in turn and measured up to its first answer of one scripted resnet50. "installed" is the size on disk
of the program, its pip environment, and the Debian packages whose files it maps; "code" is the size of the program and of
all mapped libraries; "ready" is measured without a model (Triton: with it). Peers: processes without a server that load
libtorch (compiled here), Debian's PyTorch or PyPI's; and the servers of peer_servers.py. --pypi asks pip for the download
size of a package and its dependencies; --images asks Docker.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
import torch
import torchvision

from tests.bench.peer_servers import PEERS, ROOT, Triton, descendants, kserve_message, stop
from tests.e2e.daemon import grpc

TIMEOUT_S = 120
PYPI_TORCH = ROOT / "build" / "pypi_torch"
LIBTORCH_SOURCE = ROOT / "tests" / "bench" / "libtorch_resnet50.cpp"
LIBTORCH_HEADERS = pathlib.Path("/usr/include/torch/csrc/api/include")
IMAGE = np.zeros((1, 3, 224, 224), np.float32)
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


def resident_bytes(pid: int) -> int:
    """Shared memory of several processes counts once."""
    every = descendants(pid)
    field = "Rss:" if len(every) == 1 else "Pss:"
    lines = [line for each in every for line in pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def mapped_code(pid: int) -> set:
    files = set()
    for each in descendants(pid):
        for line in pathlib.Path(f"/proc/{each}/maps").read_text().splitlines():
            fields = line.split(maxsplit=5)
            if len(fields) == 6 and "x" in fields[1] and os.path.exists(fields[5]):
                files.add(fields[5])
    return files


def packages_bytes(files: list) -> int:
    """The installed size of the Debian packages that contain these files, and the files that belong to none."""
    # A package may list a file of /usr/lib under /lib.
    names = {name: file for file in files for name in (file, file.removeprefix("/usr"))}
    found = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True).stdout
    owners = dict(reversed(line.rsplit(": ", 1)) for line in found.splitlines())
    owned = {names[name] for name in owners if name in names}
    packages = {owner.split(", ")[0] for owner in owners.values()}
    installed = subprocess.run(["dpkg-query", "-W", "-f=${Installed-Size}\n", *packages], capture_output=True, text=True, check=True)
    return 1024 * sum(map(int, installed.stdout.split())) + sum(os.path.getsize(file) for file in files if file not in owned)


@functools.cache
def tree_bytes(folder: pathlib.Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def sizes(pid: int, environment: pathlib.Path | None = None) -> dict:
    code = mapped_code(pid)
    outside = [file for file in code if environment is None or not file.startswith(f"{environment.resolve()}/")]
    installed = packages_bytes(outside) + (tree_bytes(environment.resolve()) if environment else 0)
    return {"code": sum(map(os.path.getsize, code)), "installed": installed}


def ask(address: str, method: str, message: bytes) -> None:
    with grpc.insecure_channel(address) as channel:
        answer = channel.unary_unary(method)(message, timeout=TIMEOUT_S)
    assert len(answer) >= 4000


def wait_until(process, condition) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f"{process.args[0]} did not become ready")
        time.sleep(0.0005)


def start_tensord(binary: str, repository, folder: pathlib.Path) -> dict:
    """The time until ready without a model and with one, and until its first response."""
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
                ask(json.loads(ready.read_text())["grpc"], PEERS[0].method, kserve_message("resnet50", IMAGE))
                row["answer"] = time.perf_counter() - begin
            time.sleep(0.3)  # until the pages of packed weights are released
            row[name] = resident_bytes(process.pid)
            row |= sizes(process.pid)
        finally:
            stop(process)
    return row


def start_process(command: list, environment: pathlib.Path | None = None) -> dict:
    """A process that prints "ready" and "answer", each on a line, and waits for a line after each."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = [process.stdout.readline()]
        row = {"ready": time.perf_counter() - begin, "idle": resident_bytes(process.pid)}
        process.stdin.write("\n")
        process.stdin.flush()
        said += [process.stdout.readline()]
        row |= {"answer": time.perf_counter() - begin, "loaded": resident_bytes(process.pid)}
        row |= sizes(process.pid, environment)
        process.communicate("\n")
    finally:
        stop(process)
    if said != ["ready\n", "answer\n"]:
        raise SystemExit(f"{command[0]} did not do what it should")
    return row


def libtorch_program() -> pathlib.Path:
    program = ROOT / "build" / "bench" / "libtorch_resnet50"
    if not program.exists() or program.stat().st_mtime < LIBTORCH_SOURCE.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++17", "-O1", "-isystem", LIBTORCH_HEADERS, LIBTORCH_SOURCE, "-o", program, "-ltorch",
                        "-ltorch_cpu", "-lc10"], check=True)
    return program


def start_peer(peer: type, repository: pathlib.Path, folder: pathlib.Path) -> dict:
    """The time until ready without a model, if it can start without, and with one, and until its first response."""
    row = {}
    if peer.title != Triton.title:
        with peer(folder / "none", folder) as server:
            server.wait_until_ready()
            row |= {"ready": time.perf_counter() - server.started, "idle": resident_bytes(server.process.pid)}
    with peer(repository, folder) as server:
        server.wait_until_ready()
        row.setdefault("ready", time.perf_counter() - server.started)
        ask(server.grpc, server.method, server.message("resnet50", IMAGE))
        row |= {"answer": time.perf_counter() - server.started, "loaded": resident_bytes(server.process.pid)}
        return row | sizes(server.process.pid, peer.python().parents[1])


def make_repository(folder: pathlib.Path) -> pathlib.Path:
    repository = folder / "models"
    target = repository / "resnet50" / "1" / "model.pt"
    target.parent.mkdir(parents=True)
    torch.jit.script(torchvision.models.resnet50(weights=None).eval()).save(str(target))
    (folder / "none").mkdir()
    return repository


def candidates(binaries: list, repository: pathlib.Path, folder: pathlib.Path) -> dict:
    """Maps names to functions that start a candidate and return a row, or to instructions for installing it."""
    archive = str(repository / "resnet50" / "1" / "model.pt")
    out = {}
    for binary in binaries:
        title, path = binary.split("=", 1)
        out[f"tensord, {title}"] = functools.partial(start_tensord, os.path.abspath(path), repository, folder)
    out["libtorch (Debian) in C++, no server"] = "scripts/setup bench"
    if LIBTORCH_HEADERS.exists():
        out["libtorch (Debian) in C++, no server"] = functools.partial(start_process, [libtorch_program(), archive])
    out["PyTorch (Debian), no server"] = functools.partial(start_process, [sys.executable, "-c", PYTORCH, archive])
    out["PyTorch (PyPI), no server"] = "scripts/setup pypi_torch"
    if (PYPI_TORCH / "bin" / "python").exists():
        command = [PYPI_TORCH / "bin" / "python", "-c", PYTORCH, archive]
        out["PyTorch (PyPI), no server"] = functools.partial(start_process, command, PYPI_TORCH)
    for peer in PEERS:
        start = functools.partial(start_peer, peer, repository, folder)
        out[f"{peer.title}, with PyTorch (Debian)"] = start if peer.is_installed() else "scripts/setup bench"
    return out


def median(rows: list, key: str, scale: float, digits: int) -> str:
    values = [row[key] for row in rows if key in row]
    return f"{statistics.median(values) * scale:.{digits}f}" if values else ""


def download_bytes(requirement: str) -> tuple:
    """(files, bytes) that pip would download into an empty environment."""
    report = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-",
                             "--break-system-packages", requirement], capture_output=True, text=True, check=True).stdout
    urls = [item["download_info"]["url"] for item in json.loads(report)["install"]]
    size = 0
    for url in urls:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=30) as answer:
            size += int(answer.headers["Content-Length"])
    return len(urls), size


def print_table(rounds: dict, weights: int) -> None:
    print("| | installed, MB | code, MB | ready, ms | first resnet50 answer, ms | idle, MB | loaded, MB | (loaded − idle) / weights |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for title, rows in rounds.items():
        if isinstance(rows, str):
            print(f"| {title} | not installed: `{rows}` | | | | | | |")
            continue
        more = [{"ratio": (row["loaded"] - row["idle"]) / weights} for row in rows if "idle" in row]
        print(f"| {title} | {median(rows, 'installed', 1e-6, 0)} | {median(rows, 'code', 1e-6, 1)} | {median(rows, 'ready', 1e3, 0)} "
              f"| {median(rows, 'answer', 1e3, 0)} | {median(rows, 'idle', 1e-6, 1)} | {median(rows, 'loaded', 1e-6, 0)} "
              f"| {median(more, 'ratio', 1, 2)} |")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="*", help="NAME=PATH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows whose name has this")
    parser.add_argument("--images", nargs="*", default=[])
    parser.add_argument("--pypi", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        repository = make_repository(folder)
        weights = (repository / "resnet50" / "1" / "model.pt").stat().st_size
        starts = {title: start for title, start in candidates(options.binaries, repository, folder).items() if options.only in title}
        rounds = {title: start if isinstance(start, str) else [] for title, start in starts.items()}
        for _ in range(options.rounds):
            for title, start in starts.items():
                if not isinstance(start, str):
                    rounds[title].append(start())
    print_table(rounds, weights)
    for image in options.images:
        size = subprocess.run(["docker", "image", "inspect", "-f", "{{.Size}}", image], capture_output=True, text=True, check=True)
        print(f"\nimage {image}: {int(size.stdout) / 1e6:.1f} MB")
    for requirement in options.pypi:
        files, size = download_bytes(requirement)
        print(f"\nPyPI {requirement}: {size / 1e6:.0f} MB in {files} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
