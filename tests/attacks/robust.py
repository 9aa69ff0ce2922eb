"""Malicious files, loads and configurations: jobs' data, models, certificates, thread counts."""

import os
import resource
import shutil
import subprocess
import threading
import time
from typing import Tuple

import grpc
import torch
from torch import Tensor

from tests.attacks.models import config, tensor
from tests.attacks.registry import Figure, attack
from tests.e2e.processes import wait_until
from tests.e2e.training import training_models
from tests.e2e.daemon import pb, request, training
from tests.e2e.training.training_daemon import FAILED, STATE, spec


def training_flags(context):
    """Folders for jobs and data, with a model `mlp` to train."""
    for name in ("models", "data", "jobs"):
        os.makedirs(context.path(name), exist_ok=True)
    if not os.path.exists(context.path("models", "mlp")):
        training_models.save(training_models.Mlp(), context.path("models"), "mlp")
    return ("--training-dir", context.path("jobs"), "--training-data", context.path("data"), "--training-nice", "0")


def create(daemon, **fields):
    return daemon.training.CreateJob(training.CreateJobRequest(spec=spec(**fields)), timeout=60).id


def job(daemon, job_id):
    return daemon.training.GetJob(training.GetJobRequest(id=job_id), timeout=60)


@attack("job_with_bad_text", short=True)
def job_with_bad_text(context):
    """Column names and cells that are not UTF-8. A job without its column is refused, one with such a cell has failed, and
    the same holds after a restart."""
    flags = training_flags(context)
    with open(context.path("data", "names.csv"), "wb") as out:
        out.write(b"\xff\xfe\x80,y\n" + b"1,0\n" * 60)
    with open(context.path("data", "cells.csv"), "wb") as out:
        out.write(b"x,y\n" + b"1,0\n" * 60 + b"\xff\xfe\x80,0\n")
    starts = 0
    for start in range(2):
        with context.daemon(*flags, repository=context.path("models")) as daemon:
            if start == 0:
                job_id = create(daemon, data="cells.csv", epochs=1)
            try:
                create(daemon, data="names.csv", epochs=1)
                raise RuntimeError("a job without its column was taken")
            except grpc.RpcError as error:
                if "has no array 'x'" not in error.details():
                    raise
            ended = wait_until(lambda: [now for now in [job(daemon, job_id)] if now.state == FAILED], timeout=60)
            if "column 'x': " not in ended[0].message:
                raise RuntimeError("the reason is another one: " + ended[0].message)
            starts += daemon.is_alive()
    return Figure("starts", starts, 2, at_least=True)


@attack("job_that_cannot_be_read", short=True)
def job_that_cannot_be_read(context):
    """Broken stored jobs do not keep the daemon from starting."""
    flags = training_flags(context)
    for number, content in enumerate([b"", b"{", b"\xff", b"[]", b'{"id": {}}', b'{"id": "5", "state": "NO", "steps": 1e400}']):
        os.makedirs(context.path("jobs", "jobs", str(number)))
        with open(context.path("jobs", "jobs", str(number), "job.json"), "wb") as out:
            out.write(content)
    with context.daemon(*flags, repository=context.path("models")) as daemon:
        left = len(daemon.training.ListJobs(training.ListJobsRequest()).jobs)
        if "is set aside" not in daemon.log_text():
            raise RuntimeError("the log says nothing of it")
    aside = len(os.listdir(context.path("jobs", "unreadable")))
    return [Figure("jobs left", left, 0), Figure("set aside", aside, 6, at_least=True)]


class EndlessStep(torch.nn.Module):
    """A step that is one operator of minutes."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    @torch.jit.export
    def training_step(self, x, y):
        ones = torch.ones([1, 1, 2048, 2048])
        endless = torch.conv2d(ones, ones, padding=[1023, 1023])
        return (self.weight * x).mean() + endless.sum() * 0

    def forward(self, x):
        return self.weight * x


@attack("delete_of_endless_job", short=True)
def delete_of_endless_job(context):
    """Jobs with long-running operators are deleted; neither this nor creating others is blocked."""
    flags = training_flags(context)
    training_models.save(EndlessStep(), context.path("models"), "endless")
    torch.save({"x": torch.ones(60, 4), "y": torch.ones(60, 4)}, context.path("data", "ones.pt"))
    with context.daemon(*flags, repository=context.path("models")) as daemon:
        fields = dict(data="ones.pt", steps=1)
        running = create(daemon, model="endless", loss=training.Loss(method="training_step"), builtin="", label="", **fields)
        wait_until(lambda: job(daemon, running).state == STATE.JOB_STATE_RUNNING, timeout=60)
        time.sleep(2)  # now it is in its step, which says nothing until it ends
        begin = time.monotonic()
        daemon.training.DeleteJob(training.DeleteJobRequest(id=running), timeout=60)
        deleted = time.monotonic() - begin
        begin = time.monotonic()
        other = create(daemon, loss=training.Loss(method="training_step"), model="endless", builtin="", label="", **fields)
        daemon.training.DeleteJob(training.DeleteJobRequest(id=other), timeout=60)
        another = time.monotonic() - begin
        daemon.kill()  # a stop would wait for the step, up to --exit-timeout-secs
        return [Figure("delete", deleted, 5, "s"), Figure("another", another, 5, "s")]


@attack("ready_without_token", short=True)
def ready_without_token(context):
    """Readiness can be queried without a token, also for models that are not loaded: no model is loaded or unloaded for
    it."""
    tokens = context.path("tokens")
    with open(tokens, "w") as out:
        out.write("all secret\n")
    flags = ("--model-control-mode", "explicit", "--load-on-demand", "true", "--access-tokens", tokens)
    with context.daemon(*flags) as daemon:
        ready = sum(daemon.stub.ModelReady(pb.ModelReadyRequest(name=name), timeout=60).ready
                    for name in ("identity", "words", "steps") for _ in range(5))
        index = daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=True), timeout=60,
                                            metadata=[("authorization", "Bearer secret")])
        return [Figure("ready", ready, 0), Figure("loaded", len(index.models), 0)]


class EndlessState(torch.nn.Module):
    """Loading it never ends."""

    def __init__(self):
        super().__init__()
        self.n = 0

    @torch.jit.export
    def __getstate__(self) -> Tuple[int, bool]:
        return self.n, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]):
        self.n = state[0]
        self.training = state[1]
        while self.n >= 0:
            self.n = self.n + 1

    def forward(self, x: Tensor) -> Tensor:
        return x + self.n


class EndlessWarmup(torch.nn.Module):
    """No request to it ever ends."""

    def forward(self, x: Tensor) -> Tensor:
        n = 0
        while n >= 0:
            n = n + 1
        return x + n


def endless_constants_module():
    """Minutes of work on constants, one operator after the other."""
    lines = ["def forward(self, x: Tensor) -> Tensor:", "  y = torch.zeros([1])"]
    lines += ["  y = y + torch.zeros([4096, 4096]).sort()[0].sum() + torch.ones([4096, 4096]).cumsum(1).sum()"] * 100
    module = torch.jit.script(torch.nn.Module())
    module.define("\n".join(lines + ["  return x + y", ""]))
    return module


def add_model(repository, name, module, *, dims=None, more=""):
    """A TorchScript archive with a configuration of one input and one output of numbers."""
    folder = os.path.join(repository, name, "1")
    os.makedirs(folder, exist_ok=True)
    if isinstance(module, str):
        shutil.copy(module, os.path.join(folder, "model.pt"))
    else:
        torch.jit.script(module).save(os.path.join(folder, "model.pt"))
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as out:
        out.write(config([tensor("x", "TYPE_FP32", dims or -1)], [tensor("y", "TYPE_FP32", dims or -1)], more))


def load(daemon, name, timeout=60):
    return daemon.stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name=name), timeout=timeout)


def seconds(call, *args, **kwargs):
    begin = time.monotonic()
    call(*args, **kwargs)
    return time.monotonic() - begin


@attack("endless_loads", short=True)
def endless_loads(context):
    """Eight loads that never end do not block the index, other loads, unloads, or the daemon's shutdown."""
    repository = context.path("models")
    for number in range(4):
        add_model(repository, f"state{number}", EndlessState())
        add_model(repository, f"warmup{number}", EndlessWarmup(), dims=4)
    add_model(repository, "good", torch.nn.Identity())
    with context.daemon("--model-control-mode", "explicit", repository=repository) as daemon:
        endless = [f"{kind}{number}" for kind in ("state", "warmup") for number in range(4)]
        calls = [daemon.stub.RepositoryModelLoad.future(pb.RepositoryModelLoadRequest(model_name=name), timeout=120)
                 for name in endless]

        def states():
            index = daemon.stub.RepositoryIndex(pb.RepositoryIndexRequest(), timeout=60)
            return [model for model in index.models if model.state == "LOADING"]
        wait_until(lambda: len(states()) == len(endless), timeout=60)
        figures = [Figure("index", seconds(states), 2, "s"), Figure("load", seconds(load, daemon, "good"), 10, "s")]
        unload = pb.RepositoryModelUnloadRequest(model_name="state0")
        figures.append(Figure("unload", seconds(daemon.stub.RepositoryModelUnload, unload, timeout=60), 10, "s"))
        if calls[0].exception() is None or calls[1].done():
            raise RuntimeError("the cancelled load continues, or another one does not")
        begin = time.monotonic()
        if daemon.stop() != 0:
            raise RuntimeError("the daemon did not end well: " + daemon.log_text()[-2000:])
        return figures + [Figure("stop", time.monotonic() - begin, 10, "s")]


@attack("load_timeout", short=True)
def load_timeout(context):
    """A load that never ends is cancelled after its time limit."""
    repository = context.path("models")
    add_model(repository, "state", EndlessState())
    with context.daemon("--model-control-mode", "explicit", "--model-load-timeout-secs", "1", repository=repository) as daemon:
        begin = time.monotonic()
        try:
            load(daemon, "state")
        except grpc.RpcError as error:
            if "it takes too long" in error.details():
                return Figure("load", time.monotonic() - begin, 10, "s")
            raise
        raise RuntimeError("it is loaded")


@attack("warmup_of_gigabytes", short=True)
def warmup_of_gigabytes(context):
    """A warm-up of 4 GB of random numbers is refused at once; one of 1 GB is generated while health checks get
    responses."""
    repository = context.path("models")
    for name, count in (("four", 1 << 30), ("one", 1 << 28)):
        add_model(repository, name, torch.nn.Identity(), more='model_warmup [{ name: "w" inputs { key: "x" value: '
                  f'{{ data_type: TYPE_FP32 dims: [{count}] random_data: true }} }} }}]')
    with context.daemon("--model-control-mode", "explicit", "--model-load-timeout-secs", "10", repository=repository) as daemon:
        with context.watched(daemon, 3000) as figures:
            begin = time.monotonic()
            try:
                load(daemon, "four")
            except grpc.RpcError as error:
                figures.append(Figure("4 GB refused", time.monotonic() - begin, 2, "s"))
                if "a warm-up has at most" not in error.details():
                    raise
            figures.append(Figure("1 GB", seconds(load, daemon, "one"), 10, "s"))
    return figures


@attack("endless_constants")
def endless_constants(context):
    """Constants that take minutes to compute do not keep a model from loading."""
    repository = context.path("models")
    add_model(repository, "constants", endless_constants_module())
    with context.daemon("--model-control-mode", "explicit", repository=repository) as daemon:
        return Figure("load", seconds(load, daemon, "constants", timeout=120), 20, "s")


class Table(torch.nn.Module):
    """Sixteen megabytes, of which a request reads one row."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.arange(1 << 22, dtype=torch.float32).view(1 << 10, 1 << 12))

    def forward(self, x: Tensor) -> Tensor:
        return self.table[int(x.item())]


def ask_table(daemon, line):
    """True if the answer is right, False without an answer. A wrong one is an exception."""
    data = torch.tensor([float(line)]).numpy().tobytes()
    try:
        answer = daemon.stub.ModelInfer(request("table", [("x", "FP32", [1], data)]), timeout=60)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.DATA_LOSS:
            return False
        raise
    got = torch.frombuffer(bytearray(answer.raw_output_contents[0]), dtype=torch.float32)
    if not torch.equal(got, torch.arange(line << 12, (line + 1) << 12, dtype=torch.float32)):
        raise RuntimeError(f"line {line} has wrong numbers")
    return True


@attack("archive_changed_in_place", short=True)
def archive_changed_in_place(context):
    """A served archive is touched, overwritten, truncated. No response is wrong, and the daemon survives."""
    figures = []
    for how in ("touch", "overwrite", "cut"):
        repository = context.path(how)
        add_model(repository, "table", Table(), dims=-1)
        path = os.path.join(repository, "table", "1", "model.pt")
        with context.daemon(repository=repository) as daemon:
            if not all(ask_table(daemon, line) for line in range(0, 1024, 128)):
                raise RuntimeError("no answers even before")
            if how == "touch":
                os.utime(path)
            elif how == "overwrite":
                with open(path, "r+b") as out:
                    out.seek(1 << 20)
                    out.write(b"\0" * (14 << 20))
            else:
                os.truncate(path, 1 << 20)
            answered = sum(ask_table(daemon, line) for line in range(1, 1024, 64))
            if not daemon.is_alive():
                raise RuntimeError("the daemon has died")
        figures.append(Figure(how, answered, 16, at_least=True) if how == "touch" else Figure(how, answered, 0))
    return figures


@attack("threads_of_400_models")
def threads_of_400_models(context):
    """The number of threads does not grow with the number of models, loaded or used, with and without timeouts."""
    repository = context.path("models")
    add_model(repository, "m0", torch.nn.Linear(8, 8), dims=8, more="max_batch_size: 8 dynamic_batching {}")
    for number in range(1, 400):
        add_model(repository, f"m{number}", os.path.join(repository, "m0", "1", "model.pt"), dims=8,
                  more="max_batch_size: 8 dynamic_batching {}")
    with context.daemon(repository=repository) as daemon:
        figures = [Figure("loaded", daemon.threads(), 60)]
        for number in range(400):
            daemon.stub.ModelInfer(request(f"m{number}", [("x", "FP32", [1, 8], bytes(32))], parameters={
                "timeout": pb.InferParameter(int64_param=60_000_000)}), timeout=60)
        return figures + [Figure("after a request each", daemon.threads(), 60)]


@attack("threads_that_are_not_there", short=True)
def threads_that_are_not_there(context):
    """A model requests more threads than the process may have: that load fails, everything else continues."""
    repository = context.path("models")
    many = 'parameters { key: "INTRA_OP_THREAD_COUNT" value: { string_value: "1024" } }'
    add_model(repository, "threads", torch.nn.Linear(8, 8), dims=8, more=many)
    add_model(repository, "workers", torch.nn.Linear(8, 8), dims=8, more="instance_group [{ count: 200 }]")
    add_model(repository, "good", torch.nn.Identity())
    with context.daemon("--model-control-mode", "explicit", "--load-model", "good", repository=repository) as daemon:
        # Root may start any number of threads, but not without memory for their stacks.
        room = daemon._status("VmSize") * 1024 + (4 << 30)
        resource.prlimit(daemon.pid, resource.RLIMIT_AS, (room, room))
        try:
            load(daemon, "threads")
            raise RuntimeError("1024 threads were to be had")
        except grpc.RpcError as error:
            if "threads" not in error.details():
                raise
        load(daemon, "workers")
        answers = 0

        def ask(_):
            nonlocal answers
            daemon.stub.ModelInfer(request("workers", [("x", "FP32", [8], bytes(32))]), timeout=60)
            answers += 1
        asking = [threading.Thread(target=ask, args=(index,)) for index in range(64)]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        if not daemon.is_alive():
            raise RuntimeError("the daemon has died: " + daemon.log_text()[-2000:])
        return Figure("answers", answers, 64, at_least=True)


def make_certificate(context, name):
    """The PEM texts of a self-signed certificate and its key."""
    key, chain = context.path(name + ".key"), context.path(name + ".pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key,
                    "-out", chain, "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    return open(chain, "rb").read(), open(key, "rb").read()


@attack("certificates_being_renewed", short=True)
def certificates_being_renewed(context):
    """Certificate and key are written in pieces, the wrong one first. Every new connection meanwhile is served."""
    (old_chain, old_key), (new_chain, new_key) = make_certificate(context, "old"), make_certificate(context, "new")
    chain, key = context.path("chain.pem"), context.path("key.pem")

    def write(path, data):
        with open(path, "wb") as out:
            out.write(data)
    write(chain, old_chain)
    write(key, old_key)
    tls = ("--grpc-use-ssl", "true", "--grpc-server-cert", chain, "--grpc-server-key", key, "--grpc-ssl-reload-secs", "1")

    def is_served(daemon, roots):
        with grpc.secure_channel(daemon.ready["grpc"], grpc.ssl_channel_credentials(roots)) as channel:
            try:
                channel.unary_unary("/inference.GRPCInferenceService/ServerLive")(b"", timeout=5)
                return True
            except grpc.RpcError:
                return False
    refused = 0
    with context.daemon(*tls) as daemon:
        for path, data in ((chain, new_chain[:200]), (chain, new_chain), (key, new_key[:50])):
            write(path, data)
            for _ in range(12):
                refused += not is_served(daemon, old_chain)
                time.sleep(0.1)
        write(key, new_key)
        begin = time.monotonic()
        wait_until(lambda: is_served(daemon, new_chain), timeout=20)
        return [Figure("refused", refused, 0), Figure("taken after", time.monotonic() - begin, 10, "s")]
