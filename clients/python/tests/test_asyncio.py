"""The asyncio client against a real daemon."""

import asyncio
import os

import numpy as np
import pytest

import tensord
from conftest import labeled_images

ROW = np.arange(16, dtype=np.int32)[None]


def run(server, test):
    async def with_client():
        async with tensord.AsyncClient(server.ready["grpc"]) as client:
            return await asyncio.wait_for(test(client), 60)

    return asyncio.run(with_client())


def test_many_at_once(server):
    async def test(client):
        return await asyncio.gather(*(client.infer("simple", ROW, ROW * number) for number in range(16)))

    for number, result in enumerate(run(server, test)):
        np.testing.assert_array_equal(result["OUTPUT0"], ROW * (1 + number))


def test_errors(server):
    async def test(client):
        with pytest.raises(tensord.NotFoundError):
            await client.infer("nope", ROW)
        with pytest.raises(tensord.InvalidArgumentError, match="has 2 inputs"):
            await client.infer("simple", ROW, ROW, ROW)
        with pytest.raises(tensord.DeadlineExceededError):
            await client.stream(timeout=0.1).__anext__()
        with pytest.raises(tensord.NotFoundError):
            async for _ in client.infer_stream("nope", {"x": ROW}):
                pass
        client._metadata["simple/"] = tensord.ModelMetadata("simple", (), "", (), ())
        assert (await client.infer("simple", ROW, ROW)).version == "1"

    run(server, test)

def test_a_closed_client(server):
    async def test(client):
        await client.close()
        with pytest.raises(tensord.FailedPreconditionError, match="closed"):
            await client.live()

    run(server, test)


def test_streams(server):
    async def test(client):
        inputs = np.arange(3, dtype=np.int32), np.zeros(3, np.uint32), np.zeros(1, np.uint32)
        assert [int(item["OUT"][0]) async for item in client.infer_stream("repeat_int32", *inputs)] == [0, 1, 2]
        async with client.stream() as stream:
            ids = [await stream.send("simple", ROW, ROW * number) for number in range(4)]
            wrong = await stream.send("simple", {"INPUT0": ROW})
            await stream.finish()
            answers = {answer.request_id: answer async for answer in stream}
        assert set(answers) == {*ids, wrong}
        np.testing.assert_array_equal(answers[ids[3]].get()["OUTPUT0"], ROW * 4)
        with pytest.raises(tensord.TensordError, match="INPUT1"):
            answers[wrong].get()
        with pytest.raises(tensord.FailedPreconditionError):
            await stream.send("simple", ROW, ROW)
        steps = client.sequence("simple_sequence").run([[[10]], [[20]], [[30]]])
        assert [int(item.output[0, 0]) async for item in steps] == [11, 20, 30]

    run(server, test)


def test_a_cancelled_task_cancels_its_call(server):
    async def test(client):
        async def read():
            async with client.stream() as stream:
                await stream.__anext__()

        before = server.metric("tensord_requests_total")
        task = asyncio.ensure_future(read())
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await client.live() and server.metric("tensord_requests_total") >= before

    run(server, test)


def test_shared_memory(server):
    async def test(client):
        async with client.shared_memory(1 << 16) as region:
            values = region.put(np.random.default_rng(0).random((4, 4), dtype=np.float32))
            answer = region.array((4, 4))
            await client.infer("identity_fp32", values, outputs={"OUTPUT0": answer})
            np.testing.assert_array_equal(answer, values)
            assert [item.name for item in await client.regions()] == [region.name]
        assert await client.regions() == [] and not os.path.exists("/dev/shm" + region.key)

    run(server, test)


def test_control(server):
    async def test(client):
        await client.wait_until_ready("simple")
        assert await client.live() and await client.health() == "SERVING"
        assert (await client.server_metadata()).name == "tensord"
        assert (await client.metadata("simple")).inputs[0].name == "INPUT0"
        assert (await client.config("simple"))["max_batch_size"] == 8
        assert (await client.statistics("simple"))[0].name == "simple"
        assert "trace_rate" in await client.trace_settings() and "log_info" in await client.log_settings()
        await client.unload("simple_int8")
        assert not await client.ready("simple_int8")
        await client.load("simple_int8")
        await client.label("simple", {"canary": 1})
        assert "simple_int8" in {model.name for model in await client.models(ready=True)}
        with pytest.raises(tensord.DeadlineExceededError):
            await client.wait_until_ready("nope", timeout=0.3)

    run(server, test)


def test_training(trainer):
    async def test():
        async with tensord.AsyncClient(trainer.address) as client:
            upload = await client.upload(trainer.models / "shapes" / "1" / "model.pt")
            job = await client.train({"upload_id": upload}, data={"streamed": True}, loss="cross_entropy",
                                     label="label")
            feeding = asyncio.ensure_future(job.feed(labeled_images(8, number) for number in range(5)))
            info = await job.wait(timeout=60)
            assert await feeding == 5 and info.state == tensord.JobState.COMPLETED and info.progress.next_batch == 5
            assert (await job.history())["step"].tolist()[-1] == 5
            assert job.id in {item.id for item in await client.jobs()}
            assert (await (await client.job(job.id)).refresh()).progress.step == 5
            with pytest.raises(tensord.FailedPreconditionError):
                await job.pause()
            await job.delete()
            with pytest.raises(tensord.NotFoundError):
                await job.refresh()

    asyncio.run(asyncio.wait_for(test(), 120))
