"""`tensord fetch` against a server of the test: web files, S3 with its signatures, a hub; what breaks on the way, and what is refused."""

import gzip
import os
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

from tests.e2e.daemon_process import BINARY
from tests.e2e.fetch_server import HF_TOKEN, KEY, REGION, SECRET, SESSION, Server, pattern, sha256


class FetchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.server, self.other = Server(), Server()
        self.server.other = self.other
        for server in (self.server, self.other):
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)

    def path(self, *names):
        return os.path.join(self.folder.name, *names)

    def fetch(self, source, destination, *flags, code=0, **environment):
        done = subprocess.run([BINARY, "fetch", source, destination, *flags], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def fetch_s3(self, source, destination, *flags, code=0, **environment):
        return self.fetch(source, destination, *flags, code=code, **{
            "AWS_ENDPOINT_URL": self.server.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION,
            "AWS_REGION": REGION, **environment})

    def fetch_hub(self, source, destination, *flags, code=0, **environment):
        return self.fetch(source, destination, *flags, code=code, **{"HF_ENDPOINT": self.server.url, "HF_TOKEN": HF_TOKEN, **environment})

    def read(self, *names):
        with open(self.path(*names), "rb") as file:
            return file.read()

    def all_files(self, *names):
        root = self.path(*names)
        return {os.path.relpath(os.path.join(folder, name), root): self.read(*names, os.path.relpath(os.path.join(folder, name), root))
                for folder, _, files in os.walk(root) for name in files}

    def requests(self, path):
        return [fields for seen, fields in self.server.seen if seen.partition("?")[0] == path]

    # -- Files of the web --

    def test_a_file_and_its_checksum(self):
        data = self.server.files["/a/model.onnx"] = pattern(300_000)
        out = self.fetch(self.server.url + "/a/model.onnx?token=1", self.path("m", "1", "model.onnx"), "--sha256", sha256(data).upper())
        self.assertIn("1 file, 300000 bytes", out)
        self.assertEqual(self.all_files("m"), {"1/model.onnx": data})
        self.assertEqual(self.server.seen[0][0], "/a/model.onnx?token=1")

        error = self.fetch(self.server.url + "/a/model.onnx", self.path("m", "1", "model.onnx"), code=1)
        self.assertIn("model.onnx: is there already", error)
        self.assertIn("is there already", self.fetch(self.server.url + "/a/model.onnx", self.path("m", "1", "model.onnx"), "--skip-existing"))

    def test_a_wrong_checksum_leaves_nothing(self):
        self.server.files["/model.pt"] = b"what somebody put there"
        error = self.fetch(self.server.url + "/model.pt", self.path("x", "model.pt"), "--sha256", sha256(b"other"), code=1)
        self.assertIn(f"has the SHA-256 {sha256(b'what somebody put there')}, and {sha256(b'other')} is expected", error)
        self.assertFalse(os.path.exists(self.path("x", "model.pt")))
        self.assertEqual(len(self.requests("/model.pt")), 1)
        self.assertIn("--sha256: expected 64", self.fetch(self.server.url + "/model.pt", self.path("y"), "--sha256", "ab", code=2))

    def test_a_connection_that_ends_is_continued(self):
        data = self.server.files["/model.pt"] = pattern(500_000)
        self.server.etags["/model.pt"] = '"one"'
        self.server.cuts["/model.pt"] = [100_000, 150_000]
        self.fetch(self.server.url + "/model.pt", self.path("model.pt"))
        self.assertEqual(self.read("model.pt"), data)
        ranges = [(fields.get("Range"), fields.get("If-Range")) for fields in self.requests("/model.pt")]
        self.assertEqual(ranges, [(None, None), ("bytes=100000-", '"one"'), ("bytes=250000-", '"one"')])

    def test_an_interrupted_fetch_is_continued_by_the_next(self):
        data = self.server.files["/model.pt"] = pattern(500_000)
        for name, etag, change, first in (("same", '"one"', False, "bytes=100000-"), ("changed", '"one"', True, "bytes=100000-"),
                                          ("unknown", None, False, None)):
            with self.subTest(name):
                self.server.files["/model.pt"], self.server.etags["/model.pt"], self.server.cuts["/model.pt"] = data, etag, [100_000]
                error = self.fetch(self.server.url + "/model.pt", self.path(name), "--retries", "0", code=3)
                self.assertIn("/model.pt: ", error)
                self.assertFalse(os.path.exists(self.path(name)))
                expected = data
                if change:
                    expected = self.server.files["/model.pt"] = pattern(400_000, seed=2)
                    self.server.etags["/model.pt"] = '"two"'
                self.server.seen.clear()
                self.fetch(self.server.url + "/model.pt", self.path(name))
                self.assertEqual(self.read(name), expected)
                self.assertEqual(self.requests("/model.pt")[0].get("Range"), first)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["changed", "same", "unknown"])

    def test_a_continued_file_with_a_wrong_beginning_is_brought_anew(self):
        data = self.server.files["/model.pt"] = pattern(200_000)
        self.server.cuts["/model.pt"] = [50_000]
        checksum = ("--sha256", sha256(data))
        self.fetch(self.server.url + "/model.pt", self.path("m"), *checksum, "--retries", "0", code=3)
        part = next(os.path.join(folder, name) for folder, _, names in os.walk(self.folder.name) for name in names if name.endswith(".part"))
        with open(part, "r+b") as file:
            file.write(b"damaged")
        self.server.seen.clear()
        self.fetch(self.server.url + "/model.pt", self.path("m"), *checksum)
        self.assertEqual(self.read("m"), data)
        self.assertEqual([fields.get("Range") for fields in self.requests("/model.pt")], ["bytes=50000-", None])

    def test_a_server_that_ignores_if_range(self):
        """Its second part is of another file; nothing but the ETag says so."""
        self.server.files["/model.pt"], self.server.etags["/model.pt"], self.server.cuts["/model.pt"] = pattern(500_000), '"one"', [100_000]
        self.fetch(self.server.url + "/model.pt", self.path("m"), "--retries", "0", code=3)
        data = self.server.files["/model.pt"] = pattern(500_000, seed=2)
        self.server.etags["/model.pt"], self.server.ignores_if_range = '"two"', True
        self.fetch(self.server.url + "/model.pt", self.path("m"))
        self.assertEqual(self.read("m"), data)

    def test_a_part_that_is_complete(self):
        """The last try ended behind the last byte, so that nothing is left to ask for."""
        data = self.server.files["/model.pt"] = pattern(50_000)
        self.server.cuts["/model.pt"], self.server.etags["/model.pt"] = [49_999], '"one"'
        self.fetch(self.server.url + "/model.pt", self.path("m"), "--retries", "0", code=3)
        part = next(os.path.join(folder, name) for folder, _, names in os.walk(self.folder.name) for name in names if name.endswith(".part"))
        with open(part, "ab") as file:
            file.write(data[-1:])
        self.server.seen.clear()
        self.fetch(self.server.url + "/model.pt", self.path("m"), "--retries", "0")
        self.assertEqual(self.read("m"), data)
        self.assertEqual([fields.get("Range") for fields in self.requests("/model.pt")], ["bytes=50000-"])

    def test_folders_above_appear_with_the_file(self):
        self.server.files["/model.pt"], self.server.cuts["/model.pt"] = pattern(5000), [100]
        self.fetch(self.server.url + "/model.pt", self.path("m", "1", "model.pt"), "--retries", "0", code=3)
        (staging,) = os.listdir(self.folder.name)
        self.assertRegex(staging, r"^\.model\.pt-[0-9a-f]{16}\.fetch$")
        self.fetch(self.server.url + "/model.pt", self.path("m", "1", "model.pt"))
        self.assertEqual(self.all_files(), {"m/1/model.pt": pattern(5000)})
        self.fetch(self.server.url + "/model.pt", self.path("m", "2", "model.pt"))
        self.assertEqual(sorted(self.all_files()), ["m/1/model.pt", "m/2/model.pt"])

    def test_destinations_with_alike_names(self):
        """An interrupted fetch to one is not taken for the other's; nor is a long path too long."""
        self.server.files["/model.pt"] = pattern(5000)
        destinations = [("a", "b-c"), ("a-b", "c"), ("x" * 100, "y" * 100, "z" * 200)]
        for names in destinations:
            self.server.cuts["/model.pt"] = [100]
            self.fetch(self.server.url + "/model.pt", self.path(*names), "--retries", "0", code=3)
        self.assertEqual(len(os.listdir(self.folder.name)), 3)
        for names in destinations:
            self.fetch(self.server.url + "/model.pt", self.path(*names))
            self.assertEqual(self.read(*names), pattern(5000))

    def test_encoded_bodies_are_refused(self):
        self.server.files["/model.pt"] = gzip.compress(pattern(5000))
        content, transfer = "Content-Encoding", "Transfer-Encoding"
        for fields in ([(content, "gzip")], [(content, "identity"), (content, "gzip")], [(transfer, "gzip")]):
            self.server.seen.clear()
            self.server.encodings["/model.pt"] = fields
            error = self.fetch(self.server.url + "/model.pt", self.path("m"), code=1)
            self.assertIn(f"/model.pt: is sent with the {fields[-1][0]} 'gzip', though identity was asked for", error)
            self.assertEqual(self.requests("/model.pt")[0]["Accept-Encoding"], "identity")
            self.assertEqual(len(self.requests("/model.pt")), 1)
        self.server.encodings["/model.pt"] = [(content, "Identity")]
        self.fetch(self.server.url + "/model.pt", self.path("m"))

    def hostile(self, begin, piece, pause=0.0):
        """The URL of a server that answers with `begin`, then `piece` again and again."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    try:
                        client.recv(1 << 16)
                        client.sendall(begin)
                        while piece:
                            client.sendall(piece)
                            time.sleep(pause)
                    except OSError:
                        pass

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/m"

    def test_servers_that_do_not_end(self):
        head = b"HTTP/1.1 200 OK\r\n"
        for begin, piece, pause, code, said in (
                (head, b"A: b\r\n" * 1000, 0, 1, "header limit exceeded"), (head + b"A: ", b"b" * 10_000, 0, 1, "header limit exceeded"),
                (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0, 1, "more than 8 interim answers"),
                (b"", b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n", 0.01, 1, "more than 8 interim answers"),
                (head, b"A", 0.1, 3, "no answer in time"), (head + b"Content-Length: 1000000\r\n\r\n", b"a", 0.1, 3, "no answer in time"),
                (head + b"Transfer-Encoding: chunked\r\n\r\n", b"1" * 100, 0, 1, "the answer is no HTTP"),
                (head + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 1000, 0, 1, "the answer is no HTTP"),
                (head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 1000, 0, 1, "a line is too long"),
                (b"hello, this is something else\r\n\r\n", b"", 0, 1, "the answer is no HTTP"), (b"", b"", 0, 3, "Connection closed before the end"),
                (head + b"Content-Length: 10\r\n\r\nabc", b"", 0, 3, "Connection closed before the end")):
            with self.subTest(begin=begin, piece=piece[:20]):
                timeout = "1" if said == "no answer in time" else "60"  # a loaded machine must not need longer for the others
                error = self.fetch(self.hostile(begin, piece, pause), self.path("m"), "--retries", "0", "--timeout", timeout, code=code)
                self.assertIn(said, error)
        self.assertFalse(os.path.exists(self.path("m")))

    def test_answers_of_old_servers(self):
        for answer in (b"HTTP/1.0 200 OK\r\n\r\nmodel", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nmodel",
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nmo\r\n3\r\ndel\r\n0\r\n\r\n"):
            with self.subTest(answer):
                self.fetch(self.hostile(answer, b""), self.path("m"), "--retries", "0")
                self.assertEqual(self.read("m"), b"model")
                os.remove(self.path("m"))

    def test_a_wrong_length(self):
        self.server.files["/model.pt"], self.server.lengths["/model.pt"] = b"model", "abc"
        self.assertIn("bad Content-Length", self.fetch(self.server.url + "/model.pt", self.path("m"), code=1))
        self.assertFalse(os.path.exists(self.path("m")))

    def test_an_interrupted_fetch_keeps_no_secret(self):
        self.server.files["/model.pt"], self.server.cuts["/model.pt"] = pattern(5000), [100]
        self.fetch(self.server.url + "/model.pt?signature=secret", self.path("m"), "--retries", "0", code=3)
        kept = self.all_files()
        self.assertIn(pattern(100), kept.values())
        self.assertFalse([name for name, data in kept.items() if b"secret" in data])

    def test_errors_of_the_server(self):
        self.server.files["/model.pt"] = b"model"
        self.server.failures["/model.pt"] = [503, 429]
        self.fetch(self.server.url + "/model.pt", self.path("works"))
        for status, code, text in ((403, 1, "status 403: not now; the credentials do not allow it"), (401, 1, "status 401"), (400, 1, "status 400"),
                                   (503, 3, "status 503: not now")):
            self.server.failures["/model.pt"] = [status]
            self.assertIn(text, self.fetch(self.server.url + "/model.pt", self.path("fails"), "--retries", "0", code=code))
        self.assertIn("/none: status 404: no such thing", self.fetch(self.server.url + "/none", self.path("fails"), code=1))
        self.assertIn("Connection", self.fetch("http://127.0.0.1:9/model.pt", self.path("fails"), "--retries", "0", code=3))
        self.assertFalse(os.path.exists(self.path("fails")))

    def test_redirects(self):
        self.other.files["/real"] = b"model"
        self.server.redirects.update({"/moved": self.other.url + "/real", "/up/down/here": "../there", "/up/there": "/moved", "/loop": "/loop"})
        self.fetch(self.server.url + "/up/down/here", self.path("model"))
        self.assertEqual(self.read("model"), b"model")
        # Queries with a URL of their own, and a query alone.
        self.server.files.update({"/real": b"here", "/same": b"same"})
        self.server.redirects.update({"/login": "/real?next=https://host/x", "/same": "?again=1", "/part": "/real#part"})
        for name, expected in (("login", b"here"), ("same", b"same"), ("part", b"here")):
            self.fetch(f"{self.server.url}/{name}", self.path(name))
            self.assertEqual(self.read(name), expected)
        signed = "/real?disposition=a%3B%20name%3D%22m.pt%22&size=1%2C2&signature=a%7Cb%2Bc%26d%25e%2Ff+g"
        self.server.redirects["/signed"] = self.other.url + signed
        self.fetch(self.server.url + "/signed", self.path("signed"))
        self.assertEqual(self.other.seen[-1][0], signed)
        self.assertIn("more than 5 redirects", self.fetch(self.server.url + "/loop", self.path("loop"), code=1))
        self.server.redirects["/loop"] = "ftp://127.0.0.1/x"
        self.assertIn("expected http://HOST", self.fetch(self.server.url + "/loop", self.path("loop"), code=1))

    def test_tls(self):
        key, certificate = self.path("key.pem"), self.path("cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out",
                        certificate, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        secure = Server(context)
        self.addCleanup(secure.server_close)
        self.addCleanup(secure.shutdown)
        secure.files["/model"] = self.server.files["/model"] = b"model"
        self.fetch(secure.url + "/model", self.path("model"), SSL_CERT_FILE=certificate)
        self.assertEqual(self.read("model"), b"model")
        self.fetch(secure.url + "/model", self.path("untrusted"), "--retries", "0", code=3)
        wrong_host = secure.url.replace("localhost", "127.0.0.1")
        self.fetch(wrong_host + "/model", self.path("untrusted"), "--retries", "0", code=3, SSL_CERT_FILE=certificate)
        self.assertFalse(os.path.exists(self.path("untrusted")))
        secure.redirects["/down"] = self.server.url + "/model"
        self.assertIn("which is not encrypted", self.fetch(secure.url + "/down", self.path("plain"), code=1, SSL_CERT_FILE=certificate))

    def test_limits(self):
        self.server.files["/model.pt"] = pattern(5000)
        self.assertIn("--max-size", self.fetch(self.server.url + "/model.pt", self.path("m"), "--max-size", "4999", code=1))
        self.fetch(self.server.url + "/model.pt", self.path("m"), "--max-size", "5000")
        for authority in ("127.0.0.1:99999", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1#x", "a:b:1", "[::1", "[]"):
            self.assertIn("expected a host, perhaps with a port", self.fetch(f"http://{authority}/x", self.path("bad"), code=1))
        for source in ("ftp://host/x", "http:///x", "http://user:word@127.0.0.1/x", "http://127.0.0.1/a b", "http://127.0.0.1/", "models/x"):
            self.fetch(source, self.path("bad"), code=1)
        self.assertIn("give the file to make", self.fetch(self.server.url + "/model.pt", self.path("folder") + "/", code=1))

    # -- S3 --

    def test_a_prefix_of_a_bucket(self):
        objects = {"models/resnet/config.pbtxt": b"max_batch_size: 8", "models/resnet/1/model.onnx": pattern(70_000),
                   "models/resnet/2/a & <b>+ü.onnx": b"second", "models/resnet/2/": b"", "models/other/1/model.pt": b"other"}
        self.server.objects = objects
        out = self.fetch_s3("s3://bucket/models/resnet/", self.path("resnet"))
        self.assertIn("3 files", out)
        self.assertEqual(self.all_files("resnet"), {"config.pbtxt": b"max_batch_size: 8", "1/model.onnx": objects["models/resnet/1/model.onnx"],
                                                    "2/a & <b>+ü.onnx": b"second"})
        self.assertEqual(len(self.requests("/bucket")), 2)  # pages of the listing
        self.fetch_s3("s3://bucket/models/resnet/", self.path("only"), "--include", "2/*")
        self.assertEqual(list(self.all_files("only")), ["2/a & <b>+ü.onnx"])

    def test_a_bucket_of_another_region(self):
        self.server.is_elsewhere = True
        self.assertIn("the bucket is in AWS_REGION eu-other-1", self.fetch_s3("s3://bucket/p/", self.path("out"), code=1))

    def test_a_listing_without_an_end(self):
        self.server.is_endless = True
        self.assertIn("the listing does not end", self.fetch_s3("s3://bucket/p/", self.path("out"), code=1))

    def test_an_object(self):
        self.server.objects = {"models/m.onnx": b"bytes"}
        self.fetch_s3("s3://bucket/models/m.onnx", self.path("m.onnx"), "--sha256", sha256(b"bytes"))
        self.assertEqual(self.read("m.onnx"), b"bytes")
        self.assertIn("The specified key does not exist", self.fetch_s3("s3://bucket/none", self.path("none"), code=1))
        self.assertIn("no object begins so", self.fetch_s3("s3://bucket/none/", self.path("none"), code=1))

    def test_s3_credentials(self):
        self.server.objects = {"m": b"bytes"}
        error = self.fetch_s3("s3://bucket/m", self.path("m"), code=1, AWS_SECRET_ACCESS_KEY="wrong")
        self.assertIn("status 403: another signature", error)
        self.assertNotIn("wrong", error)
        self.assertIn("no signature", self.fetch_s3("s3://bucket/m", self.path("m"), code=1, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""))
        self.assertIn("need each other", self.fetch_s3("s3://bucket/m", self.path("m"), code=1, AWS_ACCESS_KEY_ID=""))
        self.assertIn("expected s3://BUCKET", self.fetch_s3("s3://Up_per/m", self.path("m"), code=1))

    def test_names_that_lead_elsewhere(self):
        for key in ("p/../x", "p//etc/passwd", "p/./x", "p/a\\b", "p/a\nb", "p/" + "n" * 300):
            self.server.objects = {key: b"x", "p/good": b"x"}
            with self.subTest(key=key):
                self.assertIn("not a relative path of plain names", self.fetch_s3("s3://bucket/p/", self.path("out"), code=1))
        self.server.objects = {"p/a": b"x", "p/a/b": b"x"}
        self.assertIn("both as a file and as a folder", self.fetch_s3("s3://bucket/p/", self.path("out"), code=1))
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_an_interrupted_folder_is_continued(self):
        self.server.objects = {"p/1": pattern(1000), "p/2": pattern(90_000, seed=2), "p/3": b"three"}
        self.server.cuts["/bucket/p/2"] = [40_000]
        self.fetch_s3("s3://bucket/p/", self.path("out"), "--retries", "0", code=3)
        self.assertFalse(os.path.exists(self.path("out")))
        self.server.seen.clear()
        self.server.objects["p/3"] = b"tree"
        self.fetch_s3("s3://bucket/p/", self.path("out"))
        self.assertEqual(self.all_files("out"), {key[2:]: data for key, data in self.server.objects.items()})
        self.assertEqual(self.requests("/bucket/p/1"), [])
        self.assertEqual(self.requests("/bucket/p/2")[0]["Range"], "bytes=40000-")

    # -- The hub --

    def test_a_repository_of_a_hub(self):
        self.server.hub = {"config.json": b"{}", "onnx/model.onnx": pattern(50_000), "README.md": b"text"}
        self.fetch_hub("hf://owner/name@v1", self.path("all"))
        self.assertEqual(self.all_files("all"), self.server.hub)
        # The token went to the hub and to nobody else.
        self.assertTrue(all(fields["Authorization"] == "Bearer " + HF_TOKEN for _, fields in self.server.seen))
        self.assertEqual([(path, "Authorization" in fields) for path, fields in self.other.seen], [("/lfs/onnx/model.onnx?signed=secret", False)])
        self.fetch_hub("hf://owner/name@v1/onnx/model.onnx", self.path("model.onnx"))
        self.assertEqual(self.read("model.onnx"), self.server.hub["onnx/model.onnx"])
        self.assertIn("there is no such file", self.fetch_hub("hf://owner/name@v1/none", self.path("none"), code=1))
        self.assertIn("status 401: Invalid credentials", self.fetch_hub("hf://owner/name@v1", self.path("none"), code=1, HF_TOKEN=""))
        self.assertIn("expected hf://OWNER", self.fetch_hub("hf://owner", self.path("none"), code=1))
        self.assertIn("expected hf://OWNER", self.fetch_hub("hf://owner/../x", self.path("none"), code=1))

    def test_checksums_of_a_hub(self):
        self.server.hub = {"config.json": b"{}", "model.onnx": pattern(50_000)}
        for name, change, text in (("config.json", {"oid": "2" * 40}, "has the git hash"), ("model.onnx", {"lfs": {"oid": "3" * 64}}, "has the SHA-256"),
                                   ("config.json", {"size": 1}, "the listing says 1"), ("config.json", {"size": 3}, "has 2 bytes, and 3 are expected"),
                                   ("model.onnx", {"lfs": {"oid": "../x"}}, "has no SHA-256")):
            self.server.hub_changes = {name: change}
            error = self.fetch_hub("hf://owner/name@v1", self.path("m"), code=1)
            self.assertIn(text, error)
            self.assertNotIn("signed=secret", error)
            self.assertFalse(os.path.exists(self.path("m")))

    def test_a_listing_that_does_not_end(self):
        self.server.hub_never_ends = True
        self.assertIn("the listing does not end", self.fetch_hub("hf://owner/name@v1", self.path("m"), code=1))
        self.assertEqual(len(self.server.seen), 1 + 1000)

    # -- This machine --

    def test_files_of_this_machine(self):
        os.makedirs(self.path("from", "1"))
        for name in ("config.pbtxt", "1/model.pt"):
            with open(self.path("from", name), "w") as file:
                file.write(name)
        self.fetch("file://" + self.path("from"), self.path("to"), "--sha256", "config.pbtxt=" + sha256(b"config.pbtxt"))
        self.assertEqual(self.all_files("to"), {"config.pbtxt": b"config.pbtxt", "1/model.pt": b"1/model.pt"})
        self.fetch("file://" + self.path("from", "config.pbtxt"), self.path("one"))
        self.assertEqual(self.read("one"), b"config.pbtxt")
        os.symlink("/etc/passwd", self.path("from", "1", "link"))
        self.assertIn("is a symbolic link", self.fetch("file://" + self.path("from"), self.path("links"), code=1))
        self.assertIn("is not there", self.fetch("file:///none/at/all", self.path("none"), code=1))
        self.assertIn("expected an absolute path", self.fetch("file://from", self.path("none"), code=1))

    def test_one_at_a_time(self):
        data = self.server.files["/model.pt"] = pattern(1000)
        asked, goes_on = self.server.holds["/model.pt"] = threading.Event(), threading.Event()
        with subprocess.Popen([BINARY, "fetch", self.server.url + "/model.pt", self.path("m")], stdout=subprocess.PIPE) as first:
            self.assertTrue(asked.wait(60))
            self.assertIn("another fetch to this destination", self.fetch(self.server.url + "/model.pt", self.path("m"), code=1))
            goes_on.set()
            first.communicate()
        self.assertEqual(self.read("m"), data)


if __name__ == "__main__":
    unittest.main()
