"""The wheel tensord-server, made by scripts/wheel and installed by pip in virtual environments of clean Debian 12 and 13 systems, without
compiler, OpenBLAS, OpenMP or Python packages.

Usage, as root: python3 -m tests.packages.server_wheel_test [WHEEL]   (needs debootstrap and a mirror)
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from tests.packages.debian import ROOT, TWO_PROCESSES, Debian, run, write_pictures

SKIPPED = 77
LIMIT_BYTES = 30_000_000
SUITES = {"bookworm": "Debian 12", "trixie": "Debian 13"}
# Libraries that the daemon must not take from the system, or that a build would have put there.
ABSENT = ("libgomp", "libopenblas", "liblapack", "libdnnl", "libgrpc", "libprotobuf", "libspdlog", "libhwy", "libprometheus-cpp")
SQUARE = [1.0 if 6 <= row < 26 and 6 <= column < 26 else 0.1 for row in range(32) for column in range(32)]


def check_that_nothing_is_there(debian):
    for program in ("gcc", "g++", "cc", "c++", "clang", "ld"):
        assert not os.path.exists(debian.path(f"/usr/bin/{program}")), f"{program} is there"
    libraries = debian.run("/sbin/ldconfig", "-p")
    assert not [name for name in ABSENT if name in libraries], libraries
    assert debian.run("python3", "-c", "import importlib.util as u; print(u.find_spec('numpy'), u.find_spec('torch'))") == "None None\n"


class Daemon:
    """The environment's `tensord serve`, run without Python."""

    def __init__(self, debian, *flags):
        shutil.copytree(ROOT / "examples" / "models", debian.path("/root/models"), dirs_exist_ok=True)
        self.ready = pathlib.Path(debian.path("/root/ready.json"))
        self.process = subprocess.Popen(
            debian.command("/root/env/bin/tensord", "serve", "--model-repository", "/root/models", "--grpc-port", "0", "--metrics-port", "0",
                           "--ready-file", "/root/ready.json", *flags), stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while not self.ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise SystemExit(f"tensord serve did not start:\n{self.process.stderr.read()}")
            time.sleep(0.05)
        return json.loads(self.ready.read_text())["grpc"]

    def __exit__(self, *_):
        self.process.terminate()
        assert self.process.wait(60) == 0, "tensord serve did not end well"


def try_commands(debian):
    tensord = "/root/env/bin/tensord"
    assert debian.run(tensord, "--version").startswith("tensord ")
    pathlib.Path(debian.path("/root/square.json")).write_text(json.dumps([[[SQUARE[row * 32:row * 32 + 32] for row in range(32)]]]))
    os.makedirs(debian.path("/root/data"), exist_ok=True)
    write_pictures(debian.path("/root/data/pictures.safetensors"))
    with Daemon(debian, "--training-dir", "/root/jobs", "--training-data", "/root/data") as address:
        models = [json.loads(line) for line in debian.run(tensord, "models", "--address", address, "--json").splitlines()]
        assert sorted((model["name"], model["state"]) for model in models) == [("language", "READY"), ("shapes", "READY")], models
        assert "COMPLETED" in debian.run(tensord, *TWO_PROCESSES, "--address", address)
        answer = json.loads(debian.run(tensord, "infer", "shapes", "--input", "/root/square.json", "--address", address, "--json"))
    scores = answer["outputs"]["OUTPUT__0"][0]
    assert len(scores) == 4 and scores.index(max(scores)) == 1, answer  # circle, square, triangle, cross
    assert "ms" in debian.run(tensord, "bench", "/root/models/shapes/1/model.pt", "--input", "1,1,32,32", "--threads", "2")


def try_wheel(wheel, suite):
    with Debian(suite, ("python3", "python3-venv")) as debian:
        check_that_nothing_is_there(debian)
        shutil.copy(wheel, debian.path("/root/"))
        debian.run("python3", "-m", "venv", "/root/env")
        before = files_of(debian)
        debian.run("/root/env/bin/pip", "install", "--quiet", "--no-index", f"/root/{wheel.name}")
        started = time.monotonic()
        try_commands(debian)
        print(f"{SUITES[suite]}: installed, served, asked and stopped in {time.monotonic() - started:.1f} s", flush=True)
        debian.run("/root/env/bin/pip", "install", "--quiet", "--no-index", "--target", "/root/target", f"/root/{wheel.name}")
        assert debian.run("/root/target/bin/tensord", "--version").startswith("tensord ")
        debian.run("/root/env/bin/pip", "uninstall", "--quiet", "--yes", "tensord-server")
        assert files_of(debian) == before, "files stayed"


def files_of(debian):
    root = pathlib.Path(debian.path("/root/env"))
    return {path.relative_to(root) for path in root.rglob("*") if "__pycache__" not in path.parts and not path.is_dir()}


def main():
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        print("skipped: wants root, and debootstrap (scripts/setup wheel)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 1:
            wheel = pathlib.Path(sys.argv[1])
        else:
            run(ROOT / "scripts" / "wheel", "--out", folder)
            wheel, = pathlib.Path(folder).glob("*.whl")
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size / 1e6:.1f} MB", flush=True)
        assert size <= LIMIT_BYTES, f"{size} bytes"
        for suite in SUITES:
            try_wheel(wheel, suite)


if __name__ == "__main__":
    main()
