"""engine.serve, with the daemon that TENSORD_BINARY names."""

import os
import socket

import pytest

from tensord import engine
from tensord.engine import _serving, nn

needs_daemon = pytest.mark.skipif("TENSORD_BINARY" not in os.environ, reason="TENSORD_BINARY names no daemon")


@needs_daemon
def test_a_served_model_listens_until_it_is_stopped():
    with engine.serve(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), name="net") as server:
        host, port = server.address.rsplit(":", 1)
        socket.create_connection((host, int(port)), 5).close()
        folder = server._folder
        assert os.listdir(os.path.join(folder, "models")) == ["net"] and "running" in repr(server)
    assert "stopped" in repr(server) and not os.path.exists(folder)
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), 5)


@needs_daemon
def test_what_the_daemon_says_at_its_start_is_the_error(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"no model")
    with pytest.raises(engine.Error, match="ended at its start"):
        engine.serve(tmp_path / "model.pt", flags=["--no-such-flag"])


def test_without_a_daemon(monkeypatch):
    monkeypatch.delenv("TENSORD_BINARY", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(_serving, "_installed_daemon", lambda: None)
    with pytest.raises(engine.NotFoundError, match="tensord-server"):
        engine.serve(engine.jit.trace(lambda x: x + 1, engine.ones(1)))


def test_the_daemon_of_the_installed_wheel(monkeypatch, tmp_path):
    program = tmp_path / "bin" / "tensord"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    info = tmp_path / "lib" / "tensord_server-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensord-server\nVersion: 0.1.0\n")
    (info / "RECORD").write_text("tensord_server-0.1.0.dist-info/METADATA,,\n../bin/tensord,,\n")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.delenv("TENSORD_BINARY", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(engine.NotFoundError, match="tensord-server"):
        _serving.daemon_program()  # it is not executable
    program.chmod(0o755)
    assert os.path.samefile(_serving.daemon_program(), program)
    monkeypatch.setenv("TENSORD_BINARY", "/mine")
    assert _serving.daemon_program() == "/mine"
