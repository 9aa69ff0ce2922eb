"""The wheel tensord-engine and the daemon's beside it, made over a finished build folder and tried in environments that have nothing else: the
module without NumPy, the daemon as a command and behind engine.serve, and what auditwheel says of it.

Usage: python3 -m tests.packages.wheel_test BUILD_FOLDER
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77

PROGRAM = """
import sys, tempfile, os
from tensord import engine
from tensord.engine import data, distributed, nn
assert "numpy" not in sys.modules and "torch" not in sys.modules
x = engine.ones(2, 3, requires_grad=True)
(x @ x.T).sum().backward()
assert x.grad.tolist() == [[4.0] * 3] * 2, x.grad
assert engine.linalg_inv(engine.eye(3) * 2).diagonal().tolist() == [0.5] * 3
assert nn.Conv2d(3, 8, 3)(engine.ones(1, 3, 9, 9)).shape == (1, 8, 7, 7)
assert distributed.is_gloo_available()
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
traced = engine.jit.trace(net, engine.ones(2, 4))
assert sum(len(batch[0]) for batch in data.DataLoader(data.TensorDataset(engine.arange(10)), 3, num_workers=1)) == 10
with engine.serve(traced, name="net") as server:
    print(server)
print(engine.__file__)
"""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, capture_output=True, **options).stdout


def new_environment(folder, python, wheel):
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", wheel.parent, wheel)
    return folder / "bin"


def try_wheel(wheel, python, work):
    programs = new_environment(work / f"environment-{pathlib.Path(python).name}", python, wheel)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH", "TENSORD_BINARY")}
    out = run(programs / "python", "-c", PROGRAM, cwd=work, env=environment)
    assert "running" in out and str(programs.parent) in out, out
    assert re.match(r"tensord \d+\.\d+", run(programs / "tensord", "--version", env=environment)), "no version"
    (work / "models").mkdir(exist_ok=True)
    ready = work / "ready.json"
    ready.unlink(missing_ok=True)
    daemon = subprocess.Popen([programs / "tensord", "serve", "--model-repository", work / "models", "--grpc-port", "0", "--metrics-port", "0",
                               "--ready-file", ready], env=environment, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            assert daemon.poll() is None and time.monotonic() < deadline, "tensord serve did not start"
            time.sleep(0.02)
        assert json.loads(ready.read_text())["grpc"]
    finally:
        daemon.terminate()
        assert daemon.wait(60) == 0


def newer_python():
    """A Python for the wheel with the stable ABI, with headers; None if there is none."""
    for name in ("python3.14", "python3.13", "python3.12"):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", "import sysconfig, os; exit(not os.path.exists(sysconfig.get_path('include') + '/Python.h'))"],
                                    capture_output=True).returncode == 0:
            return found
    return None


def main():
    if not (ROOT / "build" / "engine_tools" / "bin" / "auditwheel").exists():
        print("skipped: no auditwheel (scripts/setup test)")
        sys.exit(SKIPPED)
    pythons = ["/usr/bin/python3", *filter(None, [newer_python()])]
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        out = pathlib.Path(sys.argv[1]) / "engine_wheel"
        shutil.rmtree(out / "dist", ignore_errors=True)
        run(ROOT / "scripts" / "engine_wheel", "--build", sys.argv[1], "--out", out, *pythons)
        wheels = sorted((out / "dist").glob("tensord_engine-*.whl"))
        assert len(wheels) == len(pythons), wheels
        assert len(list((out / "dist").glob("tensord_server-*.whl"))) == 1, "no wheel of the daemon"
        for wheel in wheels:
            print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")
            assert "manylinux_2_" in wheel.name
            assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/tensord")], "a second daemon"
            is_stable = "abi3" in wheel.name
            for python in pythons[1:] if is_stable else pythons[:1]:
                try_wheel(wheel, python, work)


if __name__ == "__main__":
    main()
