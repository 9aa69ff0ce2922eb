"""Streamed data and uploads that no training job uses."""

import os

import grpc

from tests.attacks.memory import settled_mb
from tests.attacks.registry import Figure, attack
from tests.e2e.daemon import training

ROWS, WIDTH = 4096, 1024  # 16 MB a batch


def daemon(context, *flags):
    return context.daemon("--training-dir", context.path("jobs"), *flags)


def streamed_job(stub):
    job = training.JobSpec(batch_size=ROWS)
    job.model.name = "line"
    job.data.streamed = True
    job.data.max_buffered_bytes = 4 << 30
    job.loss.builtin, job.loss.label = "mse", "y"
    job.optimizer.name = "adamw"
    return stub.CreateJob(training.CreateJobRequest(spec=job), timeout=60).id


def batches(job_id, count):
    for number in range(count):
        message = training.StreamDataRequest(job_id=job_id, batch=number)
        message.inputs.add(name="x", datatype="FP32", shape=[ROWS, WIDTH])
        message.inputs.add(name="y", datatype="FP32", shape=[ROWS, 1])
        message.raw_input_contents.extend([bytes(4 * ROWS * WIDTH), bytes(4 * ROWS)])
        yield message


@attack("waiting_batches")
def waiting_batches(context):
    """Four jobs wait for a first one that waits for data; each is sent 480 MB, all of which it claims to buffer."""
    with daemon(context, "--client-memory-quota", "128MB") as server:
        jobs = [streamed_job(server.training) for _ in range(5)]
        with context.watched(server, 450) as figures:
            codes = []
            for job in jobs[1:]:
                try:
                    server.training.StreamData(batches(job, 30), timeout=20)
                    codes.append("taken")
                except grpc.RpcError as error:
                    codes.append(error.code())
            figures.append(Figure("refused", codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED), len(codes), at_least=True))
        for job in jobs:
            server.training.CancelJob(training.CancelJobRequest(id=job))
        figures.append(settled_mb(server, 200))
    return figures


@attack("unused_uploads", short=True)
def unused_uploads(context):
    """Uploads that no job uses: the oldest are deleted."""
    with open(os.path.join(context.repository, "line", "1", "model.pt"), "rb") as file:
        archive = file.read()
    with daemon(context) as server:
        for _ in range(50):
            upload = server.training.UploadModel(iter([training.UploadModelRequest(data=archive)]), timeout=20)
        kept = os.listdir(context.path("jobs", "uploads"))
        return [Figure("kept", len(kept), 32, "files"),
                Figure("the last one", sum(upload.upload_id in name for name in kept), 1, at_least=True)]
