"""Runs the examples of README.md unchanged except for the address."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from tests.e2e.daemon_process import DaemonProcess

README = (pathlib.Path(__file__).resolve().parent.parent / "README.md").read_text()


@pytest.fixture()
def address(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "models", tmp_path / "models")
    (tmp_path / "data").mkdir()
    (tmp_path / "token").write_text("secret")
    monkeypatch.chdir(tmp_path)
    triton = ROOT / "examples" / "triton"
    with DaemonProcess([str(tmp_path / "models"), str(triton / "model_repository"), str(triton / "more_models")],
                       "--allow-client-shm", "true", "--training-dir", str(tmp_path / "jobs"), "--training-data",
                       str(tmp_path / "data"), "--training-nice", "0", "--model-control-mode", "explicit",
                       "--load-model", "*") as daemon:
        yield daemon.ready["grpc"]


def blocks(language):
    return [code.replace("localhost:8001", "ADDRESS") for code in re.findall(rf"```{language}\n(.*?)```", README, re.S)]


def test_examples(address):
    pytest.importorskip("tqdm")
    names = {}
    for number, block in enumerate(blocks("python")):
        exec(compile(block.replace("ADDRESS", address), f"README.md, example {number}", "exec"), names)
    assert names["info"].published_version == 2 and len(names["results"]) == 8
    names["client"].close()


def test_commands(address):
    lines = [line for block in blocks("sh") for line in block.replace("\\\n", "").splitlines()]
    for line in lines:
        words = shlex.split(line.replace("ADDRESS", address))
        assert words[:3] == ["python", "-m", "tensord"]
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, env=dict(os.environ))
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout or "jobs list" in line
