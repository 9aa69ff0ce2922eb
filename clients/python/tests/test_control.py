"""Health, metadata, statistics, settings and the repository against a real daemon."""

import json
import pathlib

import numpy as np
import pytest

import tensord

ROW = np.arange(16, dtype=np.int32)[None]


def test_health(client, server):
    client.wait_until_ready(timeout=10)
    client.wait_until_ready("simple", timeout=10)
    assert client.live() and client.ready() and client.ready("simple", 1) and not client.ready("nope")
    assert client.health() == "SERVING"
    with pytest.raises(tensord.DeadlineExceededError, match="nope: not ready"):
        client.wait_until_ready("nope", timeout=0.3)
    with pytest.raises(tensord.NotFoundError):
        client.health("nope")


def test_a_server_that_is_not_there():
    with tensord.Client("127.0.0.1:1", retry=tensord.NO_RETRY) as client:
        with pytest.raises(tensord.UnavailableError):
            client.live()
        with pytest.raises(tensord.DeadlineExceededError, match="not ready after 0.3"):
            client.wait_until_ready(timeout=0.3)


def test_a_closed_client(server):
    client = tensord.Client(server.ready["grpc"])
    client.close()
    for call in (client.live, client.stream, lambda: client.infer("simple", {})):
        with pytest.raises(tensord.FailedPreconditionError, match="closed"):
            call()


def test_metadata_and_config(client):
    server = client.server_metadata()
    assert server.name == "tensord" and "statistics" in server.extensions
    metadata = client.metadata("simple")
    assert metadata.inputs[0] == tensord.TensorSpec("INPUT0", "INT32", (-1, 16)) and metadata.versions == ("1",)
    config = client.config("simple")
    assert config["max_batch_size"] == 8 and config["input"][0] == {
        "name": "INPUT0", "data_type": "TYPE_INT32", "dims": [16]}
    ensemble = client.config("simple_ensemble")["ensemble_scheduling"]["step"][0]
    assert ensemble["model_version"] == -1 and ensemble["input_map"]["INPUT0"] == "INPUT0"


def test_statistics(client):
    client.infer("simple_int8", ROW.astype(np.int8), ROW.astype(np.int8))
    (counted,) = client.statistics("simple_int8")
    assert counted.inference_count >= 1 and counted.last_inference_ms > 0
    assert counted.durations["success"].count >= 1 and counted.durations["success"].mean_seconds > 0
    assert counted.batches[1]["compute_infer"].count >= 1 and counted.row()["success_ms"] > 0
    assert {item.name for item in client.statistics()} >= {"simple", "simple_int8"}
    with pytest.raises(tensord.TensordError):
        client.statistics("nope")


def test_settings(client):
    assert client.trace_settings(changes={"trace_rate": 7})["trace_rate"] == ["7"]
    assert client.trace_settings("simple", {"trace_level": ["TIMESTAMPS"]})["trace_level"] == ["TIMESTAMPS"]
    client.trace_settings("simple", {"trace_level": None})
    client.trace_settings(changes={"trace_rate": None})
    before = client.log_settings()
    assert client.log_settings({"log_verbose_level": 1})["log_verbose_level"] == 1
    client.log_settings({"log_verbose_level": before["log_verbose_level"]})
    with pytest.raises(tensord.TensordError, match="nope"):
        client.log_settings({"nope": "x"})


def test_models_come_and_go(client):
    assert tensord.ModelIndex("simple", "1", "READY", "") in client.models()
    client.unload("simple_int8")
    states = {model.name: model for model in client.models()}
    assert not states["simple_int8"].is_ready and states["simple"].is_ready
    assert "simple_int8" not in {model.name for model in client.models(ready=True)}
    client.load("simple_int8")
    assert client.ready("simple_int8")
    with pytest.raises(tensord.NotFoundError, match="nope"):
        client.load("nope")


def test_a_model_that_a_client_brings(client, tmp_path):
    root = pathlib.Path(__file__).resolve().parents[3] / "examples" / "triton" / "model_repository"
    archive = root / "labelled_identity" / "1" / "model.pt"
    config = {"max_batch_size": 2, "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [3]}],
              "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [3]}]}
    for source in (archive, archive.read_bytes()):
        client.load("brought", config=config, files={"1/model.pt": source})
        np.testing.assert_array_equal(client.infer("brought", [[1, 2, 3]]).output, [[1, 2, 3]])
        assert client.config("brought")["max_batch_size"] == 2
        client.unload("brought")
    client.load("labelled_identity", config=json.loads(json.dumps(client.config("labelled_identity"))))
    with pytest.raises(tensord.InvalidArgumentError, match="weights_format"):
        client.load_weights("simple", b"", version=2)


def test_labels(client):
    client.label("simple", {"stable": 1})
    assert client.infer("simple", ROW, ROW, version="stable").version == "1"
    client.label("simple", {"stable": ""})
    with pytest.raises(tensord.TensordError):
        client.infer("simple", ROW, ROW, version="stable")
