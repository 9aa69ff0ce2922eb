"""The environment of a running daemon changes: the clock jumps, folders become read-only, processes and memory run short."""

import glob
import json
import os
import shutil
import subprocess
import time
from types import SimpleNamespace

import grpc
import torch

from tests.attacks.process import ask
from tests.attacks.ranks import norms_job, result_of, write_norms
from tests.attacks.registry import Figure, attack
from tests.attacks.robust import job, training_flags
from tests.e2e.daemon import BINARY, inference_pb2_grpc, pb, request, training, training_pb2_grpc
from tests.e2e.processes import wait_until
from tests.e2e.training import disks
from tests.e2e.training.training_daemon import AT_REST, COMPLETED, FAILED, spec

CODE = grpc.StatusCode
JUMPS = ("+1d", "-1d", "+3650d", "-3650d", "-20000d", "+0")
NOBODY = 65534


def faketime():
    """Empty if it is not installed."""
    return "".join(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")[:1])


@attack("clock_jumps", short=True)
def clock_jumps(context):
    """The time of day jumps by a day, ten years, to before 1980, and back, while a job trains and the folder is polled:
    deadlines, queue times, polls, jobs and checkpoints are unaffected."""
    if not faketime():
        return Figure("not played: needs libfaketime", 0, 0)
    flags = training_flags(context)
    write_norms(context)
    for name in os.listdir(context.repository):
        shutil.copytree(os.path.join(context.repository, name), context.path("models", name))
    now = context.path("now")

    def jump(to):
        with open(now + ".new", "w") as out:
            out.write(to + "\n")
        os.replace(now + ".new", now)
    jump("+0")
    environment = {"LD_PRELOAD": faketime(), "FAKETIME_TIMESTAMP_FILE": now, "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                   "NO_FAKE_STAT": "1"}
    slowest, answers, served = 0.0, 0, 0
    with context.daemon(*flags, "--model-control-mode", "poll", "--repository-poll-secs", "1", repository=context.path("models"),
                        environment=environment) as daemon:
        _, whole = result_of(context, daemon, norms_job(daemon, 100))
        trained = norms_job(daemon, 3000)
        for number, to in enumerate(JUMPS):
            jump(to)
            begin = time.monotonic()
            for _ in range(20):
                ask(daemon)
                answers += 1
            # Deadlines still work, and a request without one has none.
            try:
                daemon.stub.ModelInfer(request("rounds", [("x", "FP32", [1], bytes(4)), ("n", "INT64", [1], (10**11).to_bytes(8, "little"))]),
                                       timeout=0.3)
            except grpc.RpcError as error:
                if error.code() != CODE.DEADLINE_EXCEEDED:
                    raise
            slowest = max(slowest, time.monotonic() - begin)
            name = f"new_{number}"
            shutil.copytree(os.path.join(context.repository, "identity"), context.path("models", "." + name))
            os.rename(context.path("models", "." + name), context.path("models", name))
            wait_until(lambda: daemon.stub.ModelReady(pb.ModelReadyRequest(name=name)).ready, timeout=20)
            served += 1
            if job(daemon, trained).state in AT_REST:
                trained = norms_job(daemon, 3000)
        daemon.training.CancelJob(training.CancelJobRequest(id=trained), timeout=60)
        _, weights = result_of(context, daemon, norms_job(daemon, 100))
    different = [name for name, weight in whole.items() if not torch.equal(weight, weights[name])]
    return [Figure("answers", answers, 120, at_least=True), Figure("slowest", slowest, 5, "s"),
            Figure("models that came", served, len(JUMPS), at_least=True), Figure("different weights", len(different), 0)]


def as_nobody(command, environment, log=None):
    def become():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if log:
        with open(log, "w") as out:
            return subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=become, env=environment)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=become, env=environment)


@attack("folders_that_cannot_be_written", short=True)
def folders_that_cannot_be_written(context):
    """Each folder in turn is read-only, or owned by another user: one error that names it, or a daemon that serves
    without it."""
    models = context.path("models")
    shutil.copytree(context.repository, models)
    closed, open_one = context.path("closed"), context.path("open")
    os.makedirs(closed)
    os.makedirs(open_one)
    os.chmod(closed, 0o555)
    os.chmod(open_one, 0o777)
    for folder in (context.folder, models):
        os.chmod(folder, 0o755)
    binary = context.path("tensord")
    shutil.copy(BINARY, binary)
    refused = served = 0
    # Files that are written for requests only do not matter for the start.
    cases = {"--training-dir": True, "--ready-file": True, "--log-file": True, "--grpc-unix-socket": True, "--capture-dir": False,
             "--trace-file": False}
    for flag, is_refused in cases.items():
        path = closed if flag.endswith("dir") else os.path.join(closed, "file")
        process = as_nobody([binary, "serve", "--model-repository", models, "--grpc-port", "0", "--metrics-port", "0", flag, path],
                            {**os.environ, "TMPDIR": open_one})
        try:
            _, errors = process.communicate(timeout=8 if is_refused else 2)
        except subprocess.TimeoutExpired:
            process.terminate()
            _, errors = process.communicate(timeout=30)
            served += 1
            if is_refused:
                raise RuntimeError(f"{flag}: it serves, and says {errors[-500:]}")
            continue
        if process.returncode != 1 or closed not in errors.splitlines()[-1]:
            raise RuntimeError(f"{flag}: {process.returncode} {errors[-500:]}")
        refused += 1
    return [Figure("refused", refused, 5, at_least=True), Figure("served", served, 1, at_least=True)]


def bind_read_only(folder):
    """Makes the folder read-only for processes that open it from now on. Returns what went wrong."""
    for how in (["--bind", folder, folder], ["-o", "remount,bind,ro", folder]):
        found = subprocess.run(["mount", *how], capture_output=True, text=True, check=False)
        if found.returncode:
            return found.stderr.strip()
    return ""


@attack("disk_that_becomes_read_only", short=True)
def disk_that_becomes_read_only(context):
    """Like a file system remounted read-only after a disk error: a job on it fails with the reason; requests and other
    models are unaffected. Once it is writable again, the job resumes and reaches the weights of an undisturbed one."""
    if os.geteuid() != 0:
        return Figure("not played: needs root", 0, 0)
    flags = training_flags(context)
    write_norms(context)
    with context.daemon(*flags, repository=[context.path("models"), context.repository]) as daemon:
        _, whole = result_of(context, daemon, norms_job(daemon, 500))
        disturbed = norms_job(daemon, 500)
        wait_until(lambda: job(daemon, disturbed).progress.step > 50, timeout=60)
        problem = bind_read_only(context.path("jobs"))
        try:
            if problem:
                return Figure("not played: " + problem, 0, 0)
            for _ in range(10):
                ask(daemon)
            try:
                norms_job(daemon, 10)
                raise RuntimeError("a job was made on a read-only disk")
            except grpc.RpcError as error:
                if "Read-only file system" not in error.details():
                    raise
            failed = wait_until(lambda: [now for now in [job(daemon, disturbed)] if now.state in AT_REST], timeout=60)[0]
        finally:
            disks.unmount(context.path("jobs"))
        if failed.state != FAILED or "Read-only file system" not in failed.message:
            raise RuntimeError(f"the job is {failed.state}: {failed.message}")
        daemon.training.ResumeJob(training.ResumeJobRequest(id=disturbed), timeout=60)
        _, weights = result_of(context, daemon, disturbed)
        different = [name for name, weight in whole.items() if not torch.equal(weight, weights[name])]
        return Figure("different weights", len(different), 0)


@attack("few_processes", short=True)
def few_processes(context):
    """A limit on processes and threads (like a cgroup's pids.max) is reached under load: operations that need one more
    fail with an error, other requests get responses, and without the limit everything works again."""
    flags = training_flags(context)
    write_norms(context)
    shutil.copytree(context.repository, context.path("served"))
    for folder, names, files in os.walk(context.folder):
        os.chmod(folder, 0o777)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)
    binary = context.path("tensord")
    shutil.copy(BINARY, binary)
    os.chmod(binary, 0o755)
    ready = context.path("ready.json")
    process = as_nobody([binary, "serve", "--model-repository", context.path("models"), "--model-repository", context.path("served"),
                         "--model-control-mode", "explicit", "--load-model", "identity", "--grpc-port", "0", "--metrics-port", "0", "--allow-http",
                         "true", "--http-port", "0", "--ready-file", ready, *flags], {**os.environ, "TMPDIR": context.folder},
                        log=context.path("log"))
    try:
        wait_until(lambda: os.path.exists(ready), timeout=60)
        with open(ready) as ready_file:
            places = json.load(ready_file)
        answered, refused = use_up_threads(process, places)
    finally:
        process.terminate()
        code = process.wait(timeout=60)
    if code != 0:
        with open(context.path("log")) as log:
            raise RuntimeError(f"exit code {code}\n{log.read()[-3000:]}")
    return [Figure("answered", answered, 30, at_least=True), Figure("refused", refused, 1, at_least=True)]


def limit_processes(pid, soft):
    """For a process of the current user; "" removes the limit."""
    with open(f"/proc/{pid}/limits") as limits:
        hard = next(line.split()[3] for line in limits if line.startswith("Max processes"))
    changing = as_nobody(["prlimit", "--pid", str(pid), f"--nproc={soft or hard}:{hard}"], dict(os.environ))
    _, errors = changing.communicate(timeout=30)
    if changing.returncode:
        raise RuntimeError(errors)


def use_up_threads(process, places):
    stub = inference_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(places["grpc"]))
    jobs = training_pb2_grpc.TrainingServiceStub(grpc.insecure_channel(places["grpc"]))
    message = request("identity", [("x", "FP32", [4], bytes(16))])
    with open(f"/proc/{process.pid}/status") as status:
        threads = next(int(line.split()[1]) for line in status if line.startswith("Threads:"))
    # The process limit of a user who has no other processes.
    limit_processes(process.pid, threads)
    answered = refused = 0
    for name in ("norms", "steps", "rounds", "words", "mlp"):
        for call in (lambda: stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=30),
                     lambda: jobs.CreateJob(training.CreateJobRequest(spec=spec(model="norms", data="norms.pt", steps=5)), timeout=30)):
            try:
                call()
            except grpc.RpcError as error:
                if error.code() not in (CODE.RESOURCE_EXHAUSTED, CODE.UNAVAILABLE, CODE.INVALID_ARGUMENT, CODE.INTERNAL, CODE.NOT_FOUND):
                    raise
                refused += 1
        for call in [stub.ModelInfer.future(message, timeout=30) for _ in range(10)]:
            try:
                call.result()
                answered += 1
            except grpc.RpcError as error:
                if error.code() not in (CODE.RESOURCE_EXHAUSTED, CODE.UNAVAILABLE):
                    raise
                refused += 1
    limit_processes(process.pid, "")
    for name in ("steps", "norms"):
        stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=30)
    made = jobs.CreateJob(training.CreateJobRequest(spec=spec(model="norms", data="norms.pt", steps=5)), timeout=30).id
    wait_until(lambda: jobs.GetJob(training.GetJobRequest(id=made), timeout=30).state == COMPLETED, timeout=60)
    stub.ModelInfer(message, timeout=30)
    return answered, refused


@attack("first_process_of_a_namespace", short=True)
def first_process_of_a_namespace(context):
    """As in a container without an init, the daemon is process 1. Ranks of a job are killed repeatedly; none is left
    behind, the weights are correct, and SIGTERM ends it in order."""
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        return Figure("not played: no namespaces", 0, 0)
    flags = training_flags(context)
    write_norms(context)
    ready = context.path("ready.json")
    with open(context.path("log"), "w") as log:
        process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", BINARY, "serve", "--model-repository", context.path("models"),
                                    "--grpc-port", "0", "--metrics-port", "0", "--ready-file", ready, *flags], stderr=log)
    try:
        wait_until(lambda: os.path.exists(ready), timeout=60)
        with open(ready) as ready_file, grpc.insecure_channel(json.load(ready_file)["grpc"]) as channel:
            daemon = SimpleNamespace(training=training_pb2_grpc.TrainingServiceStub(channel), log_text=lambda: read_text(context.path("log")))
            first = children(process.pid)[0]
            _, whole = result_of(context, daemon, norms_job(daemon, 400))
            disturbed = norms_job(daemon, 400)
            killed = 0
            while killed < 4:
                ranks = wait_until(lambda: children(first) or job(daemon, disturbed).state in AT_REST, timeout=60)
                time.sleep(0.3)
                if job(daemon, disturbed).state in AT_REST:
                    break
                os.kill(ranks[-1], 9)
                killed += 1
                wait_until(lambda: job(daemon, disturbed).state in AT_REST or job(daemon, disturbed).progress.restarts >= killed, timeout=60)
            done, weights = result_of(context, daemon, disturbed)
            wait_until(lambda: not children(first), timeout=60)  # not even as zombies
        os.kill(first, 15)
        code = process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
    different = [name for name, weight in whole.items() if not torch.equal(weight, weights[name])]
    return [Figure("different weights", len(different), 0), Figure("restarts", done.progress.restarts, 1, at_least=True),
            Figure("exit code", abs(code), 0)]


def read_text(path):
    with open(path) as opened:
        return opened.read()


def children(pid):
    """As this namespace numbers them, including zombies."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        found += [int(child) for child in read_text(f"/proc/{pid}/task/{task}/children").split()]
    return found
