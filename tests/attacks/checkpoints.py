"""A daemon that starts over damaged jobs, checkpoints and captures, whose checksums were recomputed."""

import io
import json
import os
import random
import re
import shutil
import time
import zipfile
import zlib

import grpc

from tests.attacks.ranks import write_norms
from tests.attacks.registry import Figure, attack
from tests.attacks.robust import create, job, training_flags
from tests.e2e.daemon import training
from tests.e2e.processes import wait_until
from tests.e2e.training.training_daemon import AT_REST, STATE

NUMBERS = ("0", "-1", "1", "1e400", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1.5", "null", "true", '"x"', "[]", "{}",
           "4294967296", "NaN")


def change_json(data, chance):
    """Another number, a value of another kind, or a part less, in JSON."""
    source = data.decode()
    for _ in range(chance.randrange(1, 4)):
        numbers = list(re.finditer(r"-?\d+(\.\d+)?(e[-+]?\d+)?|\"[^\"]*\"", source))
        if numbers and chance.random() < 0.8:
            one = chance.choice(numbers)
            source = source[:one.start()] + chance.choice(NUMBERS) + source[one.end():]
        else:
            begin = chance.randrange(len(source))
            source = source[:begin] + source[begin + chance.randrange(1, 30):]
    return source.encode()


def change_bytes(data, chance):
    out = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        out[chance.randrange(len(out))] = chance.choice((0, 1, 0x7f, 0x80, 0xff, chance.randrange(256)))
    return bytes(out[:chance.randrange(len(out))] if chance.random() < 0.1 else out)


def change_entry(data, chance):
    """Damages an entry of an archive and corrects its checksum."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as changed:
        chosen = chance.choice([entry.filename for entry in archive.infolist() if entry.file_size and not entry.filename.endswith("debug_pkl")])
        for entry in archive.infolist():
            content = archive.read(entry)
            changed.writestr(entry.filename, change_bytes(content, chance) if entry.filename == chosen else content)
    return out.getvalue()


def changed(path, data, chance):
    if path.endswith(".json"):
        return change_json(data, chance)
    return change_entry(data, chance) if chance.random() < 0.8 else change_bytes(data, chance)


def damage(folder, chance):
    """Damages one file of a job, and corrects the checksums of its checkpoint. Returns the file's name."""
    files = [os.path.join(top, name) for top, _, names in os.walk(folder) for name in names if os.path.getsize(os.path.join(top, name))]
    path = chance.choice([file for file in files if not file.endswith("base.pt")])
    with open(path, "rb") as file:
        data = file.read()
    new = changed(path, data, chance)
    os.unlink(path)  # it may be a link
    with open(path, "wb") as file:
        file.write(new)
    manifest = os.path.join(os.path.dirname(path), "manifest.json")
    if os.path.basename(os.path.dirname(path)).startswith("checkpoint-") and path != manifest:
        with open(manifest) as file:
            wanted = json.load(file)
        wanted["files"][os.path.basename(path)] = {"size_bytes": len(new), "crc32": zlib.crc32(new)}
        with open(manifest, "w") as file:
            json.dump(wanted, file)
    return os.path.relpath(path, folder)


def job_with_checkpoints(context, flags):
    """The folder of a job that was running when its daemon was killed."""
    with context.daemon(*flags, repository=context.path("models")) as daemon:
        name = create(daemon, model=training.ModelSource(name="norms", version=1), data="norms.pt", steps=10**6, batch_size=32,
                      optimizer=training.Optimizer(name="adam", lr=0.01), checkpoints=training.CheckpointPolicy(every_steps=50),
                      evaluation=training.Evaluation(fraction=0.1, every_steps=20, metrics=["loss"]))
        wait_until(lambda: job(daemon, name).progress.checkpoint_step >= 100, timeout=60)
        daemon.kill()
    return name, context.path("jobs", "jobs", name)


def cancel(daemon, name):
    try:
        daemon.training.CancelJob(training.CancelJobRequest(id=name), timeout=60)
    except grpc.RpcError as error:
        if error.code() != grpc.StatusCode.FAILED_PRECONDITION:  # it has failed in the meantime
            raise


def start_with_damaged_jobs(context, count, seed):
    flags = training_flags(context)
    write_norms(context)
    chance = random.Random(seed)
    name, folder = job_with_checkpoints(context, flags)
    for number in range(count):
        copy = context.path("jobs", "jobs", f"norms-{number:06x}")
        shutil.copytree(folder, copy)
        with open(os.path.join(copy, "job.json")) as file:
            changed = file.read().replace(name, os.path.basename(copy)).replace('"steps":1000000', '"steps":1')
        with open(os.path.join(copy, "job.json"), "w") as out:
            out.write(changed)
        damage(copy, chance)
    shutil.rmtree(folder)
    with context.daemon(*flags, "--training-jobs", "4", "--training-memory", "500MB", repository=context.path("models")) as daemon:
        def under_way():
            return [one for one in daemon.training.ListJobs(training.ListJobsRequest(), timeout=60).jobs
                    if one.state not in AT_REST and one.progress.step < 10**5]
        end = time.monotonic() + 30 + count
        # A job that resumes from a checkpoint trains forever: it is cancelled once it was seen running.
        while time.monotonic() < end and under_way():
            for one in under_way():
                if one.state == STATE.JOB_STATE_RUNNING and one.progress.step > one.progress.checkpoint_step:
                    cancel(daemon, one.id)
            time.sleep(0.05)
        left = [f"{one.id} {one.state} step {one.progress.step} checkpoint {one.progress.checkpoint_step} {one.message}" for one in under_way()]
        if left:
            raise RuntimeError(f"jobs neither end nor go on: {left}")
        states = [one.state for one in daemon.training.ListJobs(training.ListJobsRequest(), timeout=60).jobs]
    return [Figure("jobs", count, 1, at_least=True), Figure("taken up", len(states), count // 3, at_least=True)]


@attack("jobs_that_were_damaged", short=True)
def jobs_that_were_damaged(context):
    """A daemon starts with twelve jobs, each with a damaged file: it keeps running, and each job is moved aside, fails,
    or resumes."""
    return start_with_damaged_jobs(context, 12, 21)


@attack("many_jobs_that_were_damaged")
def many_jobs_that_were_damaged(context):
    return start_with_damaged_jobs(context, 300, 22)
