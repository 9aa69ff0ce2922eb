"""The environment of the process: pipes, signals, limits, file permissions, and random numbers."""

import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time

import grpc
import torch
from torch import Tensor, nn

from tests.attacks.registry import Figure, attack
from tests.attacks.robust import add_model, create, job, training_flags
from tests.e2e.daemon import BINARY, request
from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import COMPLETED, FAILED


def ask(daemon):
    return daemon.stub.ModelInfer(request("identity", [("x", "FP32", [4], bytes(16))]), timeout=60)


@attack("signals_that_nobody_awaits", short=True)
def signals_that_nobody_awaits(context):
    """SIGUSR1, SIGUSR2 and SIGPIPE arrive: requests are served as before."""
    answers = 0
    with context.daemon() as daemon:
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
            os.kill(daemon.pid, number)
            time.sleep(0.1)
            ask(daemon)
            answers += daemon.is_alive()
    return Figure("answers", answers, 3, at_least=True)


def serve_with_pipe(context, log_pipe):
    ready = context.path("ready")
    return subprocess.Popen([BINARY, "serve", "--model-repository", context.repository, "--grpc-port", "0", "--metrics-port", "0",
                             "--ready-file", ready], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=log_pipe), ready


@attack("log_without_reader", short=True)
def log_without_reader(context):
    """Like `tensord serve 2>&1 | tee` after tee has ended. The following log lines are lost, and nothing else."""
    reading, writing = os.pipe()
    process, ready = serve_with_pipe(context, writing)
    os.close(writing)
    try:
        wait_until(lambda: os.path.exists(ready), timeout=60)
        os.close(reading)
        for _ in range(3):
            process.send_signal(signal.SIGHUP)  # logs that files are read again
            time.sleep(0.3)
        lives = process.poll() is None
        process.terminate()
        return [Figure("lives", lives, 1, at_least=True), Figure("exit code", abs(process.wait(timeout=60)), 0)]
    finally:
        process.kill()


@attack("log_lines_of_libraries", short=True)
def log_lines_of_libraries(context):
    """Strings that are not UTF-8 in calls of all services, noise sent to gRPC, a bad configuration: each log line is
    still valid JSON."""
    repository = context.path("models")
    shutil.copytree(context.repository, repository)
    with open(os.path.join(repository, "identity", "config.pbtxt"), "ab") as config:
        config.write(b'metric_tags { key: "\xff" value: "x" }\n')
    bad, refused = b"\x0a\x03a\xff\xfe", 0
    with context.daemon("--log-format", "json", "--log-verbose", "1", repository=repository) as daemon:
        for call in ("inference.GRPCInferenceService/ModelMetadata", "inference.GRPCInferenceService/RepositoryIndex",
                     "inference.GRPCInferenceService/ModelInfer", "grpc.health.v1.Health/Check"):
            try:
                daemon.channel.unary_unary("/" + call)(bad, timeout=60)
            except grpc.RpcError as error:
                refused += error.code() == grpc.StatusCode.INVALID_ARGUMENT
        for noise in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(100)):
            with socket.create_connection(("127.0.0.1", daemon.grpc_port)) as stranger:
                stranger.sendall(noise)
                stranger.recv(100)
    lines = daemon.log_text().splitlines()
    for line in lines:
        if "time_us" not in json.loads(line):
            raise RuntimeError("not a line of the log: " + line)
    return [Figure("lines", len(lines), 5, at_least=True), Figure("refused", refused, 4, at_least=True)]


@attack("little_address_space", short=True)
def little_address_space(context):
    """With `ulimit -v` of 200 MB to 1.3 GB the start fails with one clear error."""
    figures = []
    for limit_mb in (200, 300, 400, 500, 600, 1000, 1300):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))
        process = subprocess.Popen([BINARY, "serve", "--model-repository", context.repository, "--grpc-port", "0",
                                    "--metrics-port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited)
        begin = time.monotonic()
        try:
            _, errors = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RuntimeError(f"with {limit_mb} MB the start hangs")
        lines = errors.strip().splitlines()
        if process.returncode != 1 or len(lines) != 1 or "ulimit -v" not in lines[0]:
            raise RuntimeError(f"with {limit_mb} MB: exit code {process.returncode}, {errors}")
        figures.append(Figure(f"{limit_mb} MB", time.monotonic() - begin, 5, "s"))
    return figures


@attack("files_of_the_daemon", short=True)
def files_of_the_daemon(context):
    """Client data is readable only for the daemon's user: captures, traces, jobs, checkpoints. Token files that others
    can read cause a warning."""
    tokens = context.path("tokens")
    with open(tokens, "w") as out:
        out.write("all secret\n")
    os.chmod(tokens, 0o644)
    flags = (*training_flags(context), "--capture-dir", context.path("captures"),
             "--trace-config", "triton,file=" + context.path("traces", "trace.json"), "--trace-config", "level=TIMESTAMPS",
             "--trace-config", "rate=1")
    os.makedirs(context.path("traces"))
    torch.save({"x": torch.ones(60, 4), "y": torch.ones(60, 1)}, context.path("data", "ones.pt"))
    old = os.umask(0o022)
    try:
        with context.daemon(*flags, repository=[context.path("models"), context.repository]) as daemon:
            ask(daemon)
            done = create(daemon, data="ones.pt", steps=4)
            wait_until(lambda: job(daemon, done).state in (COMPLETED, FAILED), timeout=60)
        warned = 0
        with context.daemon("--access-tokens", tokens) as daemon:
            warned = "can be read by other users" in daemon.log_text()
    finally:
        os.umask(old)
    open_files, seen = [], 0
    for top in ("jobs", "captures", "traces"):
        for folder, _, names in os.walk(context.path(top)):
            for name in names:
                seen += 1
                status = os.stat(os.path.join(folder, name))
                # A job's link to its base model is the repository's file.
                if status.st_nlink == 1 and status.st_mode & (stat.S_IRWXO | stat.S_IRWXG):
                    open_files.append(os.path.relpath(os.path.join(folder, name), context.folder))
    if open_files:
        raise RuntimeError("others can read " + ", ".join(open_files))
    return [Figure("files", seen, 3, at_least=True), Figure("warned", warned, 1, at_least=True)]


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.rand(4) + x * 0


class Seeds(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.manual_seed(5)
        return torch.rand(4) + x * 0


@attack("random_numbers_of_others", short=True)
def random_numbers_of_others(context):
    """Two starts draw different random numbers, unless seeded; manual_seed in one model does not affect another."""
    repository = context.path("models")
    add_model(repository, "draws", Draws(), dims=4)
    add_model(repository, "seeds", Seeds(), dims=4)
    add_model(repository, "seeded", Draws(), dims=4, more='parameters { key: "seed" value: { string_value: "7" } }')

    def drawn(daemon, model):
        return daemon.stub.ModelInfer(request(model, [("x", "FP32", [4], bytes(16))]), timeout=60).raw_output_contents[0]
    numbers, seeded = set(), set()
    for _ in range(2):
        with context.daemon(repository=repository) as daemon:
            seeded.add(drawn(daemon, "seeded"))
            for _ in range(2):
                drawn(daemon, "seeds")
                numbers.add(drawn(daemon, "draws"))
    return [Figure("draws that differ", len(numbers), 4, at_least=True), Figure("of a seed", len(seeded), 1)]
