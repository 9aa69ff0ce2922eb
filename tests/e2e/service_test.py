"""The daemon as a systemd service: notifications, inherited sockets, reloading."""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import grpc

from tests.e2e.daemon import inference_pb2_grpc, pb
from tests.e2e.daemon_process import BINARY, ROOT

MODELS = os.path.join(ROOT, "examples", "models")
TIMEOUT_S = 60


class Service:
    """`tensord serve`, started like systemd does: with a notification socket, and `listeners` as file descriptors 3, 4
    …"""

    def __init__(self, models, *flags, listeners=(), names=None, abstract=False):
        self.folder = tempfile.TemporaryDirectory()
        address = f"\0tensord-test-{os.getpid()}" if abstract else os.path.join(self.folder.name, "notify")
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.told.bind(address)
        self.told.settimeout(TIMEOUT_S)
        environment = {**os.environ, "NOTIFY_SOCKET": address.replace("\0", "@")}
        if listeners:
            environment["LISTEN_FDS"] = str(len(listeners))
            if names:
                environment["LISTEN_FDNAMES"] = names
        redirect = " ".join(f"{3 + i}<&{listener.fileno()}" for i, listener in enumerate(listeners))
        # LISTEN_PID is only known inside the new process.
        script = f'export LISTEN_PID=$$; exec "$0" "$@" {redirect}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, BINARY, "serve", "--model-repository", models, "--metrics-port", "0", *flags],
            env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            pass_fds=[listener.fileno() for listener in listeners])

    def next_state(self):
        return self.told.recv(4096).decode().split("\n")[0]

    def stop(self):
        """The exit code and the log."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self.told.close()
        self.folder.cleanup()


def ready_models(target):
    with grpc.insecure_channel(target) as channel:
        stub = inference_pb2_grpc.GRPCInferenceServiceStub(channel)
        index = stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=True), timeout=TIMEOUT_S, wait_for_ready=True)
        return sorted(model.name for model in index.models)


class ServiceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def listening(self, address, kind=socket.AF_INET):
        """A listening socket, with a descriptor beyond those that the daemon inherits."""
        with socket.socket(kind) as listener:
            listener.bind(address)
            listener.listen()
            high = socket.socket(fileno=fcntl.fcntl(listener.fileno(), fcntl.F_DUPFD, 20))
        self.addCleanup(high.close)
        return high

    def test_tells_that_it_is_ready_reloads_and_stops(self):
        models = os.path.join(self.folder, "models")
        shutil.copytree(os.path.join(MODELS, "shapes"), os.path.join(models, "shapes"))
        listener = self.listening(("127.0.0.1", 0))
        target = "127.0.0.1:%d" % listener.getsockname()[1]
        with Service(models, "--model-control-mode", "poll", "--repository-poll-secs", "3600", listeners=[listener],
                     names="grpc") as service:
            self.assertEqual(service.next_state(), "READY=1")
            self.assertEqual(ready_models(target), ["shapes"])
            shutil.copytree(os.path.join(MODELS, "language"), os.path.join(models, "language"))
            # Recently changed files may still be written to.
            old = time.time() - 7200
            for path, _, files in os.walk(models):
                for name in ("", *files):
                    os.utime(os.path.join(path, name), (old, old))
            service.process.send_signal(signal.SIGHUP)
            self.assertEqual(service.next_state(), "RELOADING=1")
            self.assertEqual(service.next_state(), "READY=1")
            self.assertEqual(ready_models(target), ["language", "shapes"])
            code, log = service.stop()
            self.assertEqual(service.next_state(), "STOPPING=1")
            self.assertEqual(code, 0)
            self.assertIn(f"grpc={target}", log)

    def test_requests_wait_at_the_socket_and_unix_sockets_too(self):
        tcp = self.listening(("127.0.0.1", 0))
        path = os.path.join(self.folder, "grpc.sock")
        unix = self.listening(path, socket.AF_UNIX)
        target = "127.0.0.1:%d" % tcp.getsockname()[1]
        # Connected before the daemon starts.
        early = socket.create_connection(tcp.getsockname())
        self.addCleanup(early.close)
        with Service(MODELS, listeners=[tcp, unix], abstract=True) as service:
            self.assertEqual(service.next_state(), "READY=1")
            self.assertEqual(ready_models(target), ["language", "shapes"])
            self.assertEqual(ready_models("unix:" + path), ["language", "shapes"])
            early.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            early.settimeout(TIMEOUT_S)
            self.assertEqual(early.recv(9)[3], 4)  # its SETTINGS
            early.close()
            self.assertEqual(service.stop()[0], 0)
        self.assertTrue(os.path.exists(path))  # the socket's owner removes it

    def test_wrong_sockets_are_refused(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, Service(MODELS, listeners=[datagrams]) as service:
            self.assertEqual(service.process.wait(TIMEOUT_S), 1)
            self.assertIn("not a stream socket that listens", service.stop()[1])
        with Service(MODELS, listeners=[self.listening(("127.0.0.1", 0))], names="metrics") as service:
            self.assertEqual(service.process.wait(TIMEOUT_S), 1)
            self.assertIn("metrics: only gRPC's sockets", service.stop()[1])


if __name__ == "__main__":
    unittest.main()
