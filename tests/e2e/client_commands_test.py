"""The client commands of the binary with a live daemon: infer, bench of a server, tables, JSON, exit codes, TLS."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from typing import List, Tuple

import numpy as np
import torch
from torch import Tensor, nn

from tests.e2e import serve_models
from tests.e2e.authority import Authority
from tests.e2e.daemon_process import BINARY, DaemonProcess
from tests.e2e.terminal import on_terminal

LABELED = """
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "scores" data_type: TYPE_FP32 dims: [ -1 ] label_filename: "labels.txt" } ]
"""
SPELL = """
input [ { name: "words" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "piece" data_type: TYPE_STRING dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
"""
COUNT = """
input [ { name: "x" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "left" data_type: TYPE_INT64 dims: [ 1 ] } ]
model_transaction_policy { decoupled: true }
"""


class Spell(nn.Module):
    """A response for each letter."""

    def forward(self, words: List[str]) -> List[List[str]]:
        out: List[List[str]] = []
        for word in words:
            for i in range(len(word)):
                out.append([word[i]])
        return out


class Count(nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        out: List[Tensor] = []
        for i in range(int(x.item())):
            out.append(x - i)
        return out


TYPES = """
input [ { name: "half" data_type: TYPE_FP16 dims: [ -1 ] }, { name: "small" data_type: TYPE_INT8 dims: [ -1 ] },
        { name: "yes" data_type: TYPE_BOOL dims: [ -1 ] } ]
output [ { name: "a" data_type: TYPE_FP16 dims: [ -1 ] }, { name: "b" data_type: TYPE_INT8 dims: [ -1 ] },
         { name: "c" data_type: TYPE_BOOL dims: [ -1 ] } ]
"""


class Types(nn.Module):
    def forward(self, half: Tensor, small: Tensor, yes: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        return half, small, yes


SLOW = """
instance_group [ { count: 1 } ]
input [ { name: "x" data_type: TYPE_INT64 dims: [ 1 ] } ]
output [ { name: "OUTPUT__0" data_type: TYPE_INT64 dims: [ 1 ] } ]
model_warmup [ { name: "one" inputs { key: "x" value { data_type: TYPE_INT64 dims: [ 1 ] zero_data: true } } } ]
"""


class Slow(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        for _ in range(1500000):
            x = x + 1
        return x


def write(content, *path):
    with open(os.path.join(*path), "w") as out:
        out.write(content)


def save(module, root, name, config):
    serve_models.save(module, root, name)
    write(config, root, name, "config.pbtxt")


def run(*arguments, environment=None):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(environment or {})})


class ClientCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tensord_commands_")
        cls.models = os.path.join(cls.folder.name, "models")
        serve_models.make_repository(cls.models)
        save(serve_models.Identity(), cls.models, "labeled", LABELED)
        write("apple\nbanana\ncherry\ndate\n", cls.models, "labeled", "labels.txt")
        save(Spell(), cls.models, "spell", SPELL)
        save(Count(), cls.models, "count", COUNT)
        save(Types(), cls.models, "types", TYPES)
        cls.daemon = DaemonProcess(cls.models, "--model-control-mode", "explicit", "--load-model", "*",
                                   "--allow-client-shm", "true")
        cls.address = ("--address", cls.daemon.ready["grpc"])

    @classmethod
    def tearDownClass(cls):
        cls.daemon.__exit__()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def command(self, *arguments):
        done = run(*arguments, *self.address)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")  # no progress: it is not a terminal
        return done.stdout

    def objects(self, *arguments):
        return [json.loads(line) for line in self.command(*arguments, "--json").splitlines()]

    def outputs(self, *arguments):
        answer, = self.objects("infer", *arguments)
        self.assertEqual(set(answer), {"model", "version", "outputs"})
        return answer["outputs"]

    def assert_fails(self, code, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(message, done.stderr)

    # -- infer: inputs --

    def test_values_by_name_and_by_position(self):
        self.assertEqual(self.outputs("add_sub", "--input", "a=random:1,2:f32", "--input", "b=random:1,2:f32")["OUTPUT__1"],
                         [[0.0, 0.0]])
        self.assertEqual(self.outputs("add_sub", "--input", "b=[[2.0, 2.0]]", "--input", "a=[[1.0, 3.0]]"),
                         self.outputs("add_sub", "--input", "[[1.0, 3.0]]", "--input", "[[2.0, 2.0]]"))
        a, b = self.path("a.npy"), self.path("b.json")
        np.save(a, np.asfortranarray(np.array([[1, 3]], "f4")))
        write("[[2.0, 2.0]]", b)
        np.save(self.path("c.npy"), np.array([[2, 2]], "f4"))
        answer = self.outputs("add_sub", "--input", f"a={a}", "--input", f"b={self.path('c.npy')}", "--output", "OUTPUT__0")
        self.assertEqual(answer, {"OUTPUT__0": [[3.0, 5.0]]})
        self.assertEqual(self.outputs("identity", "--input", f"x={b}"), {"OUTPUT__0": [[2.0, 2.0]]})

    def test_values_become_the_models_types(self):
        answer = self.outputs("types", "--input", "half=[0.1, 65504]", "--input", "small=[-128, true]",
                              "--input", "yes=[0, 1, false]")
        self.assertEqual(answer, {"a": [0.0999755859375, 65504.0], "b": [-128, 1], "c": [False, True, False]})
        self.assertEqual(self.outputs("words", "--input", '["ab", "ü"]')["OUTPUT__0"], ["abab", "üü"])
        self.assertEqual(self.outputs("words", "--input", "text:a=b")["OUTPUT__0"], ["a=ba=b"])

    def test_arrays_of_numpy(self):
        rng = np.random.default_rng(1)
        for dtype in ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "?"):
            array = rng.integers(0, 2, (2, 3, 4)).astype(dtype)
            for order in ("C", "F"):
                np.save(self.path("in.npy"), np.asarray(array, order=order))
                run("infer", "identity", "--input", f"x={self.path('in.npy')}", "--save", self.path("out.npy"), *self.address)
                got = np.load(self.path("out.npy"))
                self.assertEqual(got.dtype, array.dtype)
                np.testing.assert_array_equal(got, array)
        np.savez_compressed(self.path("in.npz"), a=np.full((1, 2), 3, "f4"), b=np.full((1, 2), 1, "f4"))
        self.command("infer", "add_sub", "--input", self.path("in.npz"), "--save", self.path("out.npz"))
        with np.load(self.path("out.npz")) as saved:
            self.assertEqual({name: saved[name].tolist() for name in saved}, {"OUTPUT__0": [[4, 4]], "OUTPUT__1": [[2, 2]]})
        np.save(self.path("words.npy"), np.array(["ab", "ü", ""]))
        self.assertEqual(self.outputs("words", "--input", self.path("words.npy"))["OUTPUT__0"], ["abab", "üü", ""])
        self.command("infer", "words", "--input", self.path("words.npy"), "--output", "OUTPUT__0", "--save", self.path("t.npy"))
        self.assertEqual(np.load(self.path("t.npy")).tolist(), [b"abab", "üü".encode(), b""])

    def test_random_values_of_the_models_shapes(self):
        answer = self.outputs("configured", "--random")
        self.assertEqual(np.shape(answer["scores"]), (1, 3))
        self.assertEqual(answer, self.outputs("configured", "--input", "INPUT__0=random"))
        self.assertEqual(np.shape(self.outputs("configured", "--input", "random:4,4")["scores"]), (4, 3))

    def test_a_files_bytes_and_parameters(self):
        write("abc", self.path("word"))
        self.assertEqual(self.outputs("words", "--input", f"@{self.path('word')}", "--parameter", "priority=1",
                                      "--parameter", "note=x")["OUTPUT__0"], ["abcabc"])

    # -- infer: outputs --

    def test_text_for_people(self):
        self.assertEqual(self.command("infer", "identity", "--input", "x=[[1, 2.5], [-3e10, 0.1]]"),
                         "OUTPUT__0  float32[2, 2]\n[[1 2.5]\n [-3e+10 0.1]]\n")
        printed = self.command("infer", "identity", "--input", "x=random:1000:i32")
        self.assertIn(" ... ", printed)
        self.assertLess(len(printed), 100)
        self.assertIn('["\\u001b[2Jx', self.command("infer", "words", "--input", '["\\u001b[2Jx"]'))

    def test_classes(self):
        flags = ("labeled", "--input", "x=[[1, 9, 2, 3]]", "--classes", "2")
        self.assertEqual(self.command("infer", *flags), "scores\n  banana 9, date 3\n")
        self.assertEqual(self.outputs(*flags)["scores"], [[{"score": 9.0, "index": 1, "label": "banana"},
                                                           {"score": 3.0, "index": 3, "label": "date"}]])

    def test_streams(self):
        self.assertEqual([item["outputs"] for item in self.objects("infer", "count", "--input", "[3]", "--stream")],
                         [{"left": [3]}, {"left": [2]}, {"left": [1]}])
        self.assertEqual(self.command("infer", "spell", "--input", "text:token by token", "--stream"), "token by token\n")
        self.assert_fails(1, "decoupled", "infer", "count", "--input", "[3]", *self.address)
        self.assert_fails(1, "nope", "infer", "nope", "--input", "x=[3]", "--stream", *self.address)

    # -- Exit codes --

    def test_what_is_wrong_is_named(self):
        infer = ("infer", "add_sub", *self.address, "--input")
        for message, value in (("neither JSON", "{"), ("a='[[1], [1, 2]]'", "a=[[1], [1, 2]]"), ("--input b=", "b=random:x"),
                            ("no type is called", "a=random:1:f9"), ("more than a request", "a=random:99999999999"),
                            ("32 deep", "a=" + "[" * 100 + "]" * 100)):
            self.assert_fails(2, message, *infer, value)
        self.assert_fails(2, "name all of them", *infer, "[1]", "--input", "b=[1]")
        self.assert_fails(2, "twice", *infer, "a=[1]", "--input", "a=[1]")
        self.assert_fails(2, "2 inputs", *infer, "[1]", "--input", "[1]", "--input", "[1]")
        self.assert_fails(2, "does not fit", "infer", "types", *self.address, "--input", "small=[128]")
        self.assert_fails(2, "whole numbers", "infer", "types", *self.address, "--input", "small=[1.5]")
        self.assert_fails(1, "cannot be read", *infer, "a=/not/there.npy")
        with open(self.path("bad.npy"), "wb") as out:
            out.write(b"\x93NUMPY\x01\x00\xff\xff{")
        self.assert_fails(1, "bad.npy", *infer, f"a={self.path('bad.npy')}")
        np.save(self.path("objects.npy"), np.array([{}], object))
        self.assert_fails(1, "dtype '|O'", *infer, f"a={self.path('objects.npy')}")
        np.save(self.path("good.npy"), np.zeros((2, 3), "f4"))
        with open(self.path("good.npy"), "rb") as file:
            good = file.read()
        rng = np.random.default_rng(3)
        for cut in rng.integers(0, len(good), 12):
            with open(self.path("cut.npy"), "wb") as out:
                out.write(good[:cut])
            self.assert_fails(1, "cut.npy", *infer, f"a={self.path('cut.npy')}")
        for _ in range(40):
            changed = bytearray(good)
            for at in rng.integers(0, 80, 3):
                changed[at] = rng.integers(0, 256)
            with open(self.path("changed.npy"), "wb") as out:
                out.write(changed)
            # A crash would give a negative code (the signal).
            self.assertIn(run(*infer, f"a={self.path('changed.npy')}", "--input", "b=[[1]]").returncode, (0, 1, 2))
        self.assert_fails(2, "--save", "infer", "add_sub", *self.address, "--input", "random:1", "--input", "random:1",
                          "--save", self.path("two.npy"))
        self.assert_fails(2, "excludes", "infer", "count", "--stream", "--classes", "2")
        self.assert_fails(1, "nope", "infer", "nope", *self.address, "--input", "x=[1]")
        self.assert_fails(2, "--nope", "infer", "identity", "--nope")

    def test_a_server_that_does_not_answer(self):
        wrong = ("--address", "127.0.0.1:1")
        for command in (("infer", "m", "--random"), ("models",), ("load", "m"), ("unload", "m"), ("jobs", "list"),
                        ("train", "m", "--data", "x.npz"), ("bench", "m")):
            with self.subTest(command=command):
                self.assert_fails(3, "UNAVAILABLE", *command, *wrong)
        self.assert_fails(3, "DEADLINE_EXCEEDED", "infer", "sleepy", *self.address, "--input", "x=[1.0]", "--input",
                          "rounds=[100000000]", "--timeout", "0.2")
        self.assert_fails(3, "UNAVAILABLE", "models", "--address", self.daemon.ready["grpc"], "--tls")
        self.assert_fails(3, "does not speak TLS", "models", "--address", self.daemon.ready["grpc"], "--tls")

    def test_the_address_may_be_a_variable(self):
        done = run("models", environment={"TENSORD_ADDRESS": self.daemon.ready["grpc"]})
        self.assertIn("identity", done.stdout)

    # -- Models --

    def test_tables_and_json(self):
        lines = self.command("models", "--ready").splitlines()
        self.assertRegex(lines[0], "^MODEL +VERSION +STATE +REASON$")
        self.assertEqual(len({line.find("READY") for line in lines[1:]}), 1)
        states = self.objects("models")
        self.assertEqual(set(states[0]), {"name", "version", "state", "reason"})
        self.command("infer", "linear", "--input", "random:1,4")
        self.assertRegex(self.command("models", "--statistics"), r"MEAN MS(.|\n)*\nlinear +1 +[1-9]")
        linear, = (item for item in self.objects("models", "--statistics") if item["name"] == "linear")
        self.assertGreater(linear["durations"]["success"]["seconds"], 0)

    def test_progress_is_for_terminals(self):
        code, out, shown = on_terminal("bench", "linear", "--input", "random:1,4", "--seconds", "0.5", *self.address)
        self.assertEqual(code, 0)
        self.assertIn("1 client", shown)
        self.assertIn("▏", shown)
        self.assertRegex(out, "^CLIENTS")
        code, out, shown = on_terminal("infer", "linear", "--input", "random:1,4", *self.address)
        self.assertEqual((code, shown), (0, ""))
        code, out, shown = on_terminal("bench", "linear", "--input", "random:1,4", "--seconds", "0.5", "--json", *self.address)
        self.assertEqual((code, shown), (0, ""))

    # -- bench --

    def test_bench_of_a_server(self):
        one, three = self.objects("bench", "configured", "--clients", "1,3", "--seconds", "0.4", "--batch", "4")
        self.assertEqual((one["clients"], three["clients"]), (1, 3))
        for row in (one, three):
            self.assertEqual(row["errors"], 0)
            self.assertGreater(row["requests"], 0)
            self.assertAlmostEqual(row["rows_per_second"], 4 * row["requests_per_second"], 3)
            self.assertLessEqual(row["median_ms"], row["p90_ms"])
            self.assertLessEqual(row["p90_ms"], row["p99_ms"])
            self.assertEqual(row["server"]["requests"], row["requests"])
            self.assertGreater(row["server"]["compute_infer_ms"], 0)
            self.assertGreaterEqual(row["server"]["rows_per_run"], 4)
        self.assertRegex(self.command("bench", "configured", "--seconds", "0.2"), "^CLIENTS  REQUESTS/S  MEDIAN MS")

    def test_bench_over_shared_memory(self):
        process = subprocess.Popen([BINARY, "bench", "add_sub", *self.address, "--input", "random:8,8", "--input",
                                    "random:8,8", "--clients", "2", "--seconds", "0.3", "--shared-memory", "--json"],
                                   stdout=subprocess.PIPE)
        out, _ = process.communicate(timeout=300)
        row = json.loads(out)
        self.assertEqual((process.returncode, row["errors"]), (0, 0))
        self.assertGreater(row["requests"], 0)
        self.assertFalse([name for name in os.listdir("/dev/shm") if name.startswith(f"tensord-{process.pid}-")])
        self.assert_fails(2, "of texts", "bench", "words", *self.address, "--input", "text:a", "--shared-memory")

    def test_an_interrupted_bench_says_what_it_has_and_leaves_nothing(self):
        process = subprocess.Popen([BINARY, "bench", "linear", *self.address, "--input", "random:1,4", "--seconds", "600",
                                    "--shared-memory"], stdout=subprocess.PIPE)
        mine = f"tensord-{process.pid}-"
        deadline = time.monotonic() + 300
        while not any(name.startswith(mine) for name in os.listdir("/dev/shm")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"REQUESTS/S", out)
        self.assertFalse([name for name in os.listdir("/dev/shm") if name.startswith(mine)])

    def test_bench_of_what_fails(self):
        self.assert_fails(2, "got 3 rows", "bench", "raises", *self.address, "--input", "random:3,2", "--seconds", "0.2")

    def test_bench_flags_of_the_other_kind_are_refused(self):
        self.assert_fails(2, "--threads", "bench", "linear", *self.address, "--threads", "1")
        self.assert_fails(2, "--address", "bench", "linear", "--clients", "2")
        self.assert_fails(2, "--batch 2", "bench", "linear", *self.address, "--input", "random:1,4", "--batch", "2")


class Loading(unittest.TestCase):
    def test_a_long_load_shows_that_it_goes_on(self):
        with tempfile.TemporaryDirectory() as models:
            save(Slow(), models, "slow", SLOW)
            with DaemonProcess(models, "--model-control-mode", "explicit") as daemon:
                code, out, shown = on_terminal("load", "slow", "--address", daemon.ready["grpc"])
                self.assertEqual((code, out), (0, "slow: loaded\n"))
                self.assertIn("slow: loading  0:0", shown)
                self.assertTrue(shown.endswith("\r\x1b[K"), shown)  # and is erased


class Secured(unittest.TestCase):
    def test_tls_and_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(folder, "ours")
            models, tokens, token = (os.path.join(folder, name) for name in ("models", "tokens", "token"))
            serve_models.save(serve_models.Identity(), models, "identity")
            write("all open-sesame-open-sesame\ninference,metadata only-questions-please\n", tokens)
            write("open-sesame-open-sesame\n", token)
            authority.sign("server")
            certificate, key = (os.path.join(folder, f"server.{end}") for end in ("pem", "key"))
            with DaemonProcess(models, "--grpc-use-ssl", "true", "--grpc-server-cert", certificate, "--grpc-server-key",
                               key, "--access-tokens", tokens) as daemon:
                flags = ("--address", daemon.ready["grpc"], "--root-cert", authority.cert, "--server-name", "localhost")
                ask = ("infer", "identity", "--input", "x=[1]", "--json", *flags)
                done = run(*ask, "--token-file", token)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads(done.stdout)["outputs"], {"OUTPUT__0": [1]})
                done = run(*ask, environment={"TENSORD_TOKEN": "only-questions-please"})
                self.assertEqual(done.returncode, 0, done.stderr)
                done = run("unload", "identity", *flags, environment={"TENSORD_TOKEN": "only-questions-please"})
                self.assertEqual(done.returncode, 1)
                self.assertIn("PERMISSION_DENIED", done.stderr)
                self.assertIn("UNAUTHENTICATED", run(*ask).stderr)
                done = run("models", "--address", daemon.ready["grpc"])
                self.assertEqual((done.returncode, "speaks TLS" in done.stderr), (3, True), done.stderr)
                done = run("models", "--address", daemon.ready["metrics"])
                self.assertEqual((done.returncode, "an HTTP port is there" in done.stderr), (3, True), done.stderr)
                done = run("models", *flags[:2], "--tls")
                self.assertEqual((done.returncode, "certificate is not trusted" in done.stderr), (3, True), done.stderr)
                write("two\nlines\n", token)
                done = run(*ask, "--token-file", token)
                self.assertEqual((done.returncode, "token" in done.stderr), (2, True), done.stderr)
                write("no certificate", token)
                done = run("models", "--address", daemon.ready["grpc"], "--root-cert", token)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (3, 1), done.stderr)
                done = run(*ask, "--token-file", "/not/there")
                self.assertEqual((done.returncode, "/not/there" in done.stderr), (1, True))


class HostileServer(unittest.TestCase):
    """A server that sends terminal escape sequences, and one that never ends."""

    HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b2J \u202eevil\u2028 end"
    SHOWN = r"\u001b]0;mine\u0007\u001b[2J\u009b2J \u202eevil\u2028 end"

    def serve(self, handle):
        import concurrent.futures

        import grpc

        class AnyCall(grpc.GenericRpcHandler):
            def service(self, details):
                return handle(details.method.rsplit("/", 1)[-1])

        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=[AnyCall()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        return "--address", f"127.0.0.1:{port}"

    def test_its_errors_are_shown_as_text(self):
        import grpc

        def fail(request, context):
            context.abort(grpc.StatusCode.INTERNAL, self.HOSTILE)

        address = self.serve(lambda _: grpc.unary_unary_rpc_method_handler(fail))
        for command in (("models",), ("load", "m"), ("infer", "m", "--random"), ("jobs", "show", "j"), ("jobs", "cancel", "j")):
            with self.subTest(command=command):
                done = run(*command, *address)
                self.assertEqual(done.returncode, 1)
                self.assertIn(self.SHOWN, done.stderr)
                self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]")

    def test_its_answers_are_shown_as_text(self):
        import grpc
        from tests.e2e.daemon import training

        job = training.Job(id=self.HOSTILE, message=self.HOSTILE, state=training.JOB_STATE_COMPLETED)
        answers = {"GetJob": job, "ListJobs": training.ListJobsResponse(jobs=[job]), "CancelJob": job}
        address = self.serve(lambda method: grpc.unary_unary_rpc_method_handler(
            lambda request, context: answers[method].SerializeToString()))
        for command in (("jobs", "show", "j"), ("jobs", "list"), ("jobs", "cancel", "j"), ("jobs", "list", "--json")):
            with self.subTest(command=command):
                done = run(*command, *address)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("evil", done.stdout)
                self.assertNotRegex(done.stdout, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]")

    def test_a_watch_ends_at_its_timeout(self):
        import grpc
        from tests.e2e.daemon import training

        def watch(request, context):
            yield training.WatchJobResponse(job=training.Job(id="j", state=training.JOB_STATE_RUNNING)).SerializeToString()
            time.sleep(5)

        address = self.serve(lambda _: grpc.unary_stream_rpc_method_handler(watch))
        begin = time.monotonic()
        done = run("jobs", "watch", "j", *address, "--timeout", "1")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("DEADLINE_EXCEEDED", done.stderr)
        self.assertLess(time.monotonic() - begin, 4)

    def test_health_ends_at_its_timeout(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def drip():
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                for _ in range(40):
                    connection.sendall(b"y")
                    time.sleep(0.2)
                connection.sendall(b"\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=drip, daemon=True).start()
        begin = time.monotonic()
        done = run("health", "--address", "127.0.0.1:%d" % listener.getsockname()[1], "--timeout-secs", "1")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no answer within 1 s", done.stderr)
        self.assertLess(time.monotonic() - begin, 4)


class Help(unittest.TestCase):
    def test_every_client_command_teaches(self):
        for command in ("infer", "models", "load", "unload", "train", "jobs", "bench"):
            done = run(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, rf"Examples:\n  tensord {command} ")
            self.assertIn("--token-file", done.stdout)
        self.assertIn("Exit codes:", run("--help").stdout)


if __name__ == "__main__":
    unittest.main()
