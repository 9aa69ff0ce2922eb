"""The client against NVIDIA's Triton. Runs if TENSORD_TRITON_PYTHON is a Python with nvidia-pytriton, which contains
Triton.

`scripts/setup bench` makes one: build/peer_servers/bin/python.
"""

import asyncio
import os
import pathlib
import socket
import subprocess

import numpy as np
import pytest

import tensord

PYTHON = os.environ.get("TENSORD_TRITON_PYTHON")
pytestmark = pytest.mark.skipif(not PYTHON, reason="TENSORD_TRITON_PYTHON is not set")
TOKEN = {"triton-grpc-protocol-triton-access-token": "secret"}
VALUES = np.random.default_rng(0).random((2, 5), dtype=np.float32)


def free_ports(count):
    """The first of `count` consecutive free ports."""
    for first in range(19400, 19500 - count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for offset, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no free ports")


@pytest.fixture(scope="module")
def address():
    port = free_ports(3)
    process = subprocess.Popen([PYTHON, str(pathlib.Path(__file__).with_name("triton_server.py")), str(port)])
    try:
        with tensord.Client(f"127.0.0.1:{port}") as client:
            client.wait_until_ready("count", timeout=180)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture()
def triton(address):
    with tensord.Client(address, headers=TOKEN) as client:
        yield client


def test_inference(triton):
    assert triton.server_metadata().name == "triton"
    np.testing.assert_array_equal(triton.infer("numbers", VALUES).output, VALUES)
    np.testing.assert_array_equal(triton.infer("numbers", [[1, 2]]).output, [[1, 2]])
    assert triton.infer("texts", [["a", "é"]]).texts().tolist() == [["a", "é"]]
    assert triton.infer("numbers", VALUES, classes=1).classes()[0][0].index == VALUES[0].argmax()


def test_streams(triton):
    assert [int(result["OUT"][0, 0]) for result in triton.infer_stream("count", [[3]])] == [0, 1, 2]
    with triton.stream() as stream:
        good = stream.send("numbers", VALUES)
        bad = stream.send("numbers", {"INPUT0": VALUES.astype(np.float64)})
        stream.finish()
        answers = {answer.request_id: answer for answer in stream}
    np.testing.assert_array_equal(answers[good].get().output, VALUES)
    assert "FP64" in answers[bad].error.message


def test_shared_memory(triton):
    with triton.shared_memory(1 << 16) as region:
        values, answer, labels = region.put(VALUES), region.array(VALUES.shape), region.array(512, np.uint8)
        triton.infer("numbers", values, outputs={"OUTPUT0": answer})
        np.testing.assert_array_equal(answer, VALUES)
        result = triton.infer("texts", [["a", "bcd"]], outputs={"OUTPUT0": labels})
        assert result.texts().tolist() == [["a", "bcd"]]
    assert triton.regions() == []


def test_control(triton, address):
    assert triton.live() and triton.ready("numbers") and triton.health() == "SERVING"
    assert triton.metadata("numbers").inputs == (tensord.TensorSpec("INPUT0", "FP32", (-1, -1)),)
    assert triton.config("numbers")["max_batch_size"] == 8
    triton.infer("numbers", VALUES)
    assert triton.statistics("numbers")[0].inference_count >= 1
    assert "trace_rate" in triton.trace_settings() and "log_info" in triton.log_settings()
    assert isinstance(triton.models(), list)
    with tensord.Client(address, retry=tensord.NO_RETRY) as stranger, pytest.raises(tensord.UnavailableError,
                                                                                    match="restricted"):
        stranger.statistics("numbers")


def test_errors(triton):
    with pytest.raises(tensord.NotFoundError):
        triton.infer("nope", {"x": VALUES})
    with pytest.raises(tensord.InvalidArgumentError, match="FP64"):
        triton.infer("numbers", VALUES.astype(np.float64))
    with pytest.raises(tensord.UnimplementedError):
        triton.infer("count", [[3]])
    with pytest.raises(tensord.UnimplementedError):
        triton.jobs()


def test_asyncio(address):
    async def ask():
        async with tensord.AsyncClient(address) as client:
            result = await client.infer("numbers", VALUES)
            return result.output, [int(item["OUT"][0, 0]) async for item in client.infer_stream("count", [[2]])]

    output, counted = asyncio.run(ask())
    np.testing.assert_array_equal(output, VALUES)
    assert counted == [0, 1]
