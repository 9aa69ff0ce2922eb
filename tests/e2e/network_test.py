"""Connections to the real daemon: Unix socket, TLS and its certificates, access, limits, HTTP."""

import concurrent.futures
import os
import socket
import stat
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import grpc

from tests.e2e import serve_models
from tests.e2e.authority import Authority, read
from tests.e2e.daemon import BINARY, Daemon, health_pb2, health_pb2_grpc, inference_pb2_grpc, pb, request, training
from tests.e2e.raw_tensors import fp32

CODE = grpc.StatusCode


IDENTITY = request("identity", [("x", "FP32", [2], fp32(1, 2))])


def replace(path, content):
    with open(path + ".new", "wb") as out:
        out.write(content)
    os.replace(path + ".new", path)


def ask(target, credentials=None, metadata=(), timeout=300):
    """One request on a new connection; returns None or the error's status code."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    channel = (grpc.secure_channel(target, credentials, options) if credentials
               else grpc.insecure_channel(target, options))
    with channel:
        try:
            inference_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(IDENTITY, metadata=metadata,
                                                                             timeout=timeout)
        except grpc.RpcError as error:
            return error.code()
    return None


def soon(holds, timeout=300):
    """Whether the condition becomes true, on a busy machine too."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def peak_memory(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def unknown_field(message, data):
    """The message with the unknown field number 100."""
    size, length = len(data), b""
    while True:
        length += bytes([size & 127 | (128 if size > 127 else 0)])
        size >>= 7
        if not size:
            break
    message.MergeFromString(b"\xa2\x06" + length + data)
    return message


class NetworkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.models = os.path.join(cls.folder.name, "models")
        for name in ("identity", "sleepy"):
            serve_models.save(serve_models.MODELS[name](), cls.models, name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as out:
            out.write(content)
        return self.path(name)

    def refused(self, *flags):
        """The daemon's error message at startup."""
        ended = subprocess.run([BINARY, "serve", "--model-repository", self.models, "--grpc-port", "0",
                                "--metrics-port", "0", *flags], capture_output=True, text=True, timeout=300)
        self.assertNotEqual(ended.returncode, 0)
        return ended.stderr

    def test_unix_socket(self):
        path = self.path("daemon.sock")
        flags = ["--grpc-unix-socket", path, "--grpc-unix-socket-mode", "660"]
        with Daemon(self.models, *flags, "--grpc-unix-socket-only", "true") as daemon:
            self.assertEqual(daemon.ready["grpc"], "unix:" + path)
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o660)
            self.assertEqual(daemon.stub.ModelInfer(IDENTITY).raw_output_contents[0], fp32(1, 2))
            self.assertIn("another server does", self.refused("--grpc-unix-socket", path))
            daemon.process.kill()
            daemon.process.wait()
        # The socket of a killed server is taken over; both addresses work.
        with Daemon(self.models, *flags) as daemon:
            self.assertIsNone(ask("unix:" + path))
            self.assertIsNone(ask(daemon.ready["grpc"]))
            self.assertEqual(daemon.stop(), 0)
        self.assertFalse(os.path.exists(path))
        self.assertIn("is not a socket", self.refused("--grpc-unix-socket", self.write("file", b"x")))
        # The kernel's structure has 108 bytes, including the terminating zero.
        self.assertIn("has more than 107 characters", self.refused("--grpc-unix-socket", "/tmp/".ljust(108, "x")))

    def test_tls_and_new_certificates(self):
        first, second = (Authority(self.folder.name, name) for name in ("first", "second"))
        cert, key = first.sign("server1")
        paths = self.write("cert.pem", cert), self.write("key.pem", key)
        flags = ["--grpc-use-ssl", "true", "--grpc-server-cert", paths[0], "--grpc-server-key", paths[1],
                 "--grpc-ssl-reload-secs", "1"]
        trusts_first, trusts_second = (grpc.ssl_channel_credentials(read(a.cert)) for a in (first, second))
        with Daemon(self.models, *flags) as daemon:
            target = daemon.ready["grpc"]
            self.assertIsNone(ask(target, trusts_first))
            self.assertEqual(ask(target, trusts_second), CODE.UNAVAILABLE)
            self.assertEqual(ask(target), CODE.UNAVAILABLE)
            with grpc.secure_channel(target, trusts_first) as channel:
                stub = inference_pb2_grpc.GRPCInferenceServiceStub(channel)
                stub.ModelInfer(IDENTITY)
                new_cert, new_key = second.sign("server2")
                # What is half-written, or does not fit, does not serve; what served goes on.
                for step, (path, content) in enumerate([(paths[0], cert[:len(cert) // 2]), (paths[0], new_cert)], 1):
                    with open(path, "wb") as out:
                        out.write(content)
                    self.assertTrue(soon(
                        lambda: daemon.metric("tensord_certificate_changes_total", result="refused") == step))
                    self.assertIsNone(ask(target, trusts_first))
                replace(paths[1], new_key)
                self.assertTrue(soon(lambda: ask(target, trusts_second, timeout=5) is None))
                stub.ModelInfer(IDENTITY)  # an open connection stays
            self.assertEqual(ask(target, trusts_first), CODE.UNAVAILABLE)
        self.assertIn("no PEM file", self.refused(*flags[:2], "--grpc-server-cert", self.write("bad.pem", b"bad"),
                                                  "--grpc-server-key", paths[1]))
        self.assertIn("cannot read", self.refused(*flags[:2], "--grpc-server-cert", self.path("none"),
                                                  "--grpc-server-key", paths[1]))

    def test_clients_with_certificates(self):
        authority, other = (Authority(self.folder.name, name) for name in ("ours", "theirs"))
        cert, key = authority.sign("server3")
        flags = ["--grpc-use-ssl-mutual", "true", "--grpc-server-cert", self.write("m.pem", cert),
                 "--grpc-server-key", self.write("m.key", key), "--grpc-root-cert", authority.cert]
        root = read(authority.cert)

        def credentials(signed=(None, None)):
            return grpc.ssl_channel_credentials(root, private_key=signed[1], certificate_chain=signed[0])

        with Daemon(self.models, *flags) as daemon:
            target = daemon.ready["grpc"]
            self.assertIsNone(ask(target, credentials(authority.sign("client"))))
            self.assertEqual(ask(target, credentials()), CODE.UNAVAILABLE)
            self.assertEqual(ask(target, credentials(other.sign("stranger"))), CODE.UNAVAILABLE)
            command = [BINARY, "models", "--address", target, "--root-cert", authority.cert, "--server-name", "localhost"]
            with_cert = [*command, "--cert", self.path("client.pem"), "--key"]
            for asked, code, said in ((command, 3, "asks for a client's certificate, perhaps: --cert and --key"),
                                      ([*with_cert, self.path("client.key")], 0, "READY"),
                                      ([*with_cert, self.path("stranger.key")], 3, "--cert and --key do not belong together"),
                                      ([BINARY, "health", "--address", target], 1, "speaks TLS, perhaps: --tls")):
                done = subprocess.run(asked, capture_output=True, text=True, timeout=300)
                self.assertEqual((done.returncode, said in done.stdout + done.stderr), (code, True), done.stderr)
                self.assertEqual(done.stderr.count("\n"), int(code != 0), done.stderr)

    def test_access_by_token(self):
        tokens = self.write("tokens", b"inference,metadata user-1\nall admin-1\n")
        with Daemon(self.models, "--access-tokens", tokens) as daemon:
            stub, target = daemon.stub, daemon.ready["grpc"]

            def bearer(token):
                return (("authorization", f"Bearer {token}"),)

            def code_of(call, message, token=None):
                try:
                    call(message, metadata=bearer(token) if token else None)
                except grpc.RpcError as error:
                    return error.code()
                return None

            self.assertTrue(stub.ServerLive(pb.ServerLiveRequest()).live)
            self.assertEqual(code_of(stub.ModelInfer, IDENTITY), CODE.UNAUTHENTICATED)
            self.assertEqual(code_of(stub.ModelInfer, IDENTITY, "user-2"), CODE.UNAUTHENTICATED)
            self.assertIsNone(code_of(stub.ModelInfer, IDENTITY, "user-1"))
            self.assertIsNone(code_of(stub.ServerMetadata, pb.ServerMetadataRequest(), "user-1"))
            shm = pb.SystemSharedMemoryStatusRequest()
            self.assertEqual(code_of(stub.SystemSharedMemoryStatus, shm), CODE.UNAUTHENTICATED)
            self.assertEqual(code_of(stub.SystemSharedMemoryStatus, shm, "user-1"), CODE.PERMISSION_DENIED)
            self.assertIsNone(code_of(stub.SystemSharedMemoryStatus, shm, "admin-1"))
            self.assertEqual(code_of(stub.SystemSharedMemoryRegister, pb.SystemSharedMemoryRegisterRequest(), "admin-1"),
                             CODE.UNIMPLEMENTED)
            with self.assertRaises(grpc.RpcError) as raised:
                list(stub.ModelStreamInfer(iter([IDENTITY])))
            self.assertEqual(raised.exception.code(), CODE.UNAUTHENTICATED)
            self.assertEqual(len(list(stub.ModelStreamInfer(iter([IDENTITY]), metadata=bearer("user-1")))), 1)
            # A new file takes effect soon; an invalid one changes nothing.
            replace(tokens, b"inference user-2\n")
            self.assertTrue(soon(lambda: ask(target, metadata=bearer("user-2")) is None))
            self.assertEqual(ask(target, metadata=bearer("user-1")), CODE.UNAUTHENTICATED)
            replace(tokens, b"nothing\n")
            time.sleep(1.2)
            self.assertIsNone(ask(target, metadata=bearer("user-2")))
        self.assertIn("line 1 must be", self.refused("--access-tokens", tokens))

    def test_restricted_protocols(self):
        with Daemon(self.models, "--grpc-restricted-protocol", "inference,shared-memory:admin=secret") as daemon:
            target = daemon.ready["grpc"]
            self.assertEqual(ask(target), CODE.PERMISSION_DENIED)
            self.assertEqual(ask(target, metadata=(("triton-grpc-protocol-admin", "wrong"),)), CODE.PERMISSION_DENIED)
            self.assertIsNone(ask(target, metadata=(("triton-grpc-protocol-admin", "secret"),)))
            self.assertEqual(daemon.stub.ServerMetadata(pb.ServerMetadataRequest()).name, "tensord")

    def test_limits(self):
        flags = ["--grpc-max-connections", "3", "--grpc-max-requests", "2", "--grpc-max-message-size", "1MB",
                 "--workers", "4"]
        with Daemon(self.models, *flags) as daemon:
            target = daemon.ready["grpc"]
            self.assertIsNone(ask(target))
            big = request("identity", [("x", "FP32", [1 << 18], b"\0" * (1 << 20))])
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.ModelInfer(big)
            self.assertEqual(raised.exception.code(), CODE.RESOURCE_EXHAUSTED)
            slow = request("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], struct.pack("<q", 10**9))])
            running = [daemon.stub.ModelInfer.future(slow) for _ in range(2)]
            self.assertTrue(soon(lambda: daemon.metric("tensord_in_flight_requests", model="sleepy") == 2))
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.ModelInfer(IDENTITY)
            self.assertEqual(raised.exception.code(), CODE.RESOURCE_EXHAUSTED)
            self.assertIn("2 requests under way", raised.exception.details())
            for call in running:
                call.cancel()
            self.assertTrue(soon(lambda: self.code_of(daemon) is None))
            self.check_connections(target)
            self.assertEqual(daemon.stop(), 0)

    @staticmethod
    def code_of(daemon):
        try:
            daemon.stub.ModelInfer(IDENTITY)
        except grpc.RpcError as error:
            return error.code()
        return None

    def check_connections(self, target):
        """Three connections are allowed: for a new one, the connection that is idle for longest is closed; if none is
        idle, the new one."""
        host, port = target.rsplit(":", 1)
        idle = [self.connection(host, port) for _ in range(3)]
        with self.connection(host, port):
            while self.receive(idle[0]):
                pass
        channels = [grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) for _ in range(3)]
        watches = [health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()) for channel in channels]
        for watch in watches:
            next(watch)
        with socket.create_connection((host, int(port))) as refused:
            refused.settimeout(60)
            self.assertEqual(self.receive(refused), b"")
        for one in watches:
            one.cancel()
        self.assertTrue(soon(lambda: ask(target, timeout=2) is None))
        for one in (*channels, *idle):
            one.close()

    def connection(self, host, port):
        made = socket.create_connection((host, int(port)))
        made.settimeout(60)
        self.assertNotEqual(made.recv(9), b"")  # the server's settings
        return made

    @staticmethod
    def connects(host, port):
        """A connection that is not accepted before its listener closes is reset, not refused."""
        try:
            socket.create_connection((host, port)).close()
        except (ConnectionRefusedError, ConnectionResetError):
            return False
        return True

    @staticmethod
    def receive(connection):
        try:
            return connection.recv(9)
        except ConnectionResetError:
            return b""

    def test_many_clients_come_and_go_below_the_limit(self):
        with Daemon(self.models, "--grpc-max-connections", "16") as daemon:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                codes = list(pool.map(lambda _: ask(daemon.ready["grpc"]), range(100)))
            # Those that have just closed may still count.
            self.assertGreater(codes.count(None), 90)

    def test_a_server_that_ends_takes_no_connections(self):
        with Daemon(self.models) as daemon:
            slow = request("sleepy", [("x", "FP32", [1], fp32(0)), ("rounds", "INT64", [1], struct.pack("<q", 10**9))])
            running = daemon.stub.ModelInfer.future(slow)
            self.assertTrue(soon(lambda: daemon.metric("tensord_in_flight_requests", model="sleepy") == 1))
            daemon.process.terminate()
            host, port = daemon.ready["grpc"].rsplit(":", 1)
            self.assertTrue(soon(lambda: not self.connects(host, int(port))))
            self.assertFalse(running.done())
            running.cancel()
            self.assertEqual(daemon.process.wait(40), 0)

    def test_compressed_requests_and_responses(self):
        with Daemon(self.models, "--grpc-infer-response-compression-level", "high") as daemon:
            numbers = b"\0" * 400000
            message = request("identity", [("x", "FP32", [100000], numbers)])
            for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate, grpc.Compression.NoCompression):
                response = daemon.stub.ModelInfer(message, compression=algorithm)
                self.assertEqual(response.raw_output_contents[0], numbers)
        with Daemon(self.models, "--grpc-compressed-requests", "false") as daemon:
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.ModelInfer(message, compression=grpc.Compression.Gzip)
            self.assertEqual(raised.exception.code(), CODE.UNIMPLEMENTED)
            self.assertEqual(daemon.stub.ModelInfer(message).raw_output_contents[0], numbers)

    def test_nothing_takes_more_memory_than_the_limits(self):
        flags = ["--grpc-max-message-size", "8MB", "--grpc-memory-quota", "64MB"]
        with Daemon(self.models, *flags) as daemon:
            self.assertIsNone(self.code_of(daemon))
            before = peak_memory(daemon.process.pid)
            # Each is some 64 KB on the wire and would be 64 MB. Five threads decompress them, and each keeps its
            # buffer.
            bomb = request("identity", [("x", "FP32", [16 << 20], bytes(64 << 20))])
            calls = [(daemon.stub.ModelInfer, bomb),
                     (lambda message, **options: list(daemon.stub.ModelStreamInfer(iter([message]), **options)), bomb),
                     (daemon.stub.ServerLive, unknown_field(pb.ServerLiveRequest(), bytes(64 << 20))),
                     (daemon.stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="x" * (64 << 20))),
                     (daemon.training.GetJob, training.GetJobRequest(id="x" * (64 << 20)))]
            for call, message in calls:
                for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
                    self.assertIn("8388608", self.refusal_of(call, message, algorithm))
            self.assertLess(peak_memory(daemon.process.pid) - before, 56 << 20)
            # gRPC reads all of a message before it checks its size, but no more than the quota.
            with self.assertRaises(grpc.RpcError) as raised:
                daemon.stub.ModelInfer(request("identity", [("x", "FP32", [64 << 20], bytes(256 << 20))]), timeout=300)
            self.assertEqual(raised.exception.code(), CODE.RESOURCE_EXHAUSTED)
            self.assertLess(peak_memory(daemon.process.pid) - before, 160 << 20)
            # Messages of the maximum size are accepted.
            most = bytes((8 << 20) - 4096)
            message = request("identity", [("x", "FP32", [len(most) // 4], most)])
            response = daemon.stub.ModelInfer(message, compression=grpc.Compression.Gzip)
            self.assertEqual(response.raw_output_contents[0], most)
            self.assertTrue(daemon.stub.ServerLive(pb.ServerLiveRequest(), compression=grpc.Compression.Gzip).live)
            metadata = daemon.stub.ModelMetadata(pb.ModelMetadataRequest(name="identity"),
                                                 compression=grpc.Compression.Deflate)
            self.assertEqual(metadata.name, "identity")
            self.assertEqual(daemon.stop(), 0)

    def refusal_of(self, call, message, algorithm):
        """Streams report errors in a message, unary calls in the status."""
        try:
            answer = call(message, compression=algorithm, timeout=300)
        except grpc.RpcError as error:
            self.assertEqual(error.code(), CODE.RESOURCE_EXHAUSTED)
            return error.details()
        return answer[0].error_message

    def test_keepalive(self):
        flags = ["--grpc-keepalive-time", "200", "--grpc-keepalive-timeout", "500",
                 "--grpc-keepalive-permit-without-calls", "true", "--grpc-http2-max-pings-without-data", "0"]
        with Daemon(self.models, *flags) as daemon:
            host, port = daemon.ready["grpc"].rsplit(":", 1)
            with socket.create_connection((host, int(port))) as silent:
                # A client that connects and does not answer pings is disconnected after the timeout.
                silent.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
                silent.settimeout(60)
                try:
                    while silent.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
            self.assertIsNone(ask(daemon.ready["grpc"]))

    def get(self, address, path):
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=300) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def test_http(self):
        broken = self.path("broken_models")
        serve_models.save(serve_models.MODELS["identity"](), broken, "identity")
        os.makedirs(os.path.join(broken, "broken", "1"))
        with open(os.path.join(broken, "broken", "1", "model.pt"), "w") as out:
            out.write("no archive")
        with Daemon(broken, "--allow-http", "true", "--http-port", "0") as daemon:
            for address in (daemon.ready["http"], daemon.ready["metrics"]):
                self.assertEqual(self.get(address, "/v2/health/live"), (200, b'{"live":true}'))
                self.assertEqual(self.get(address, "/v2/health/ready"), (503, b'{"ready":false}'))
                self.assertEqual(self.get(address, "/v2/models/identity/ready")[0], 200)
                self.assertEqual(self.get(address, "/v2/models/broken/ready")[0], 503)
                self.assertIn(b"tensord_model_ready", self.get(address, "/metrics")[1])
                self.assertEqual(self.get(address, "/nothing")[0], 404)
                self.assertEqual(self.get(address, "/../../etc/passwd")[0], 404)
        with Daemon(broken, "--strict-readiness", "false", "--status-page", "false") as daemon:
            address = daemon.ready["metrics"]
            self.assertNotIn("http", daemon.ready)
            self.assertEqual(self.get(address, "/v2/health/ready"), (200, b'{"ready":true}'))
            self.assertEqual(self.get(address, "/v2/models/identity/ready")[0], 200)
            self.assertEqual(self.get(address, "/v2/models/identity/versions/1/ready")[0], 200)
            self.assertEqual(self.get(address, "/v2/models/identity/versions/2/ready")[0], 503)
            self.assertEqual(self.get(address, "/v2/models/broken/ready")[0], 503)
            for path in ("/", "/status.json", "/page/app.js", "/status/models/identity"):
                self.assertEqual(self.get(address, path)[0], 404, path)

    def test_what_the_rest_port_shows_needs_a_token_where_calls_do(self):
        tokens = self.write("rest-tokens", b"statistics watcher\ninference user\n")
        with Daemon(self.models, "--allow-http", "true", "--http-port", "0", "--access-tokens", tokens) as daemon:
            for path in ("/metrics", "/status.json", "/", "/page/app.js", "/status/jobs/none"):
                self.assertEqual(self.get(daemon.ready["http"], path)[0], 401, path)
                # The metrics port is for operators.
                found = 404 if path == "/status/jobs/none" else 200
                self.assertEqual(self.get(daemon.ready["metrics"], path)[0], found, path)
                for token, code in (("watcher", found), ("user", 403)):
                    asked = urllib.request.Request(f"http://{daemon.ready['http']}{path}",
                                                   headers={"Authorization": f"Bearer {token}"})
                    try:
                        with urllib.request.urlopen(asked, timeout=300) as answer:
                            self.assertEqual(answer.status, code, path)
                    except urllib.error.HTTPError as error:
                        self.assertEqual(error.code, code, path)
            # A model's configuration needs the access of the call that returns it, on the metrics port too.
            for port in ("http", "metrics"):
                for token, code in (("watcher", 403), ("user", 403), ("none", 401)):
                    url, headers = f"http://{daemon.ready[port]}/status/models/identity", {"Authorization": f"Bearer {token}"}
                    with self.assertRaises(urllib.error.HTTPError) as caught:
                        urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=300)
                    self.assertEqual(caught.exception.code, code, (port, token))
                    caught.exception.close()
            for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/identity/ready"):
                self.assertEqual(self.get(daemon.ready["http"], path)[0], 200, path)

    def test_http_with_tokens(self):
        tokens = self.write("http-tokens", b"statistics watcher\n")
        with Daemon(self.models, "--access-tokens", tokens, "--http-access-tokens", "true") as daemon:
            url = f"http://{daemon.ready['metrics']}"
            self.assertEqual(self.get(daemon.ready["metrics"], "/metrics")[0], 401)
            self.assertEqual(self.get(daemon.ready["metrics"], "/")[0], 401)
            self.assertEqual(self.get(daemon.ready["metrics"], "/v2/health/ready")[0], 200)
            bearer = urllib.request.Request(url + "/metrics", headers={"Authorization": "Bearer watcher"})
            with urllib.request.urlopen(bearer, timeout=300) as answer:
                self.assertIn(b"tensord_model_ready", answer.read())
            # Like a browser, which asks its user for a password.
            passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
            passwords.add_password(None, url, "anybody", "watcher")
            browser = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(passwords))
            with browser.open(url + "/status.json", timeout=300) as answer:
                self.assertIn(b'"models"', answer.read())


if __name__ == "__main__":
    unittest.main()
