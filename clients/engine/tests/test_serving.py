"""engine.serve, with the daemon that TENSORD_BINARY names."""

import os
import socket

import pytest

from tensord import engine
from tensord.engine import nn

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
    with pytest.raises(engine.NotFoundError, match="tensord-engine"):
        engine.serve(engine.jit.trace(lambda x: x + 1, engine.ones(1)))
