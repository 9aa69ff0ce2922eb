"""Tensor files: safetensors according to its specification, and open file objects."""

import io
import json
import struct

import pytest
import torch

from tensord import engine
from tensord.engine import nn

VALUES = {"w": ("F32", [2], struct.pack("2f", 1, 2)), "i": ("I64", [1], struct.pack("q", 7)), "b": ("BOOL", [2], b"\1\0"), "h": ("BF16", [1], b"\x80\x3f"),
          "m": ("U8", [2, 2], bytes(range(4))), "s": ("F64", [], struct.pack("d", 2.5))}


def write(path):
    head, data = {}, b""
    for name, (dtype, shape, raw) in VALUES.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def test_safetensors(tmp_path):
    path = tmp_path / "theirs.safetensors"
    write(path)
    found = engine.load(path)
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "w": [1, 2], "i": [7], "b": [True, False], "h": [1], "m": [[0, 1], [2, 3]], "s": 2.5}
    assert found["h"].dtype is engine.bfloat16 and found["w"].add_(1).tolist() == [2, 3]
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    engine.save({**model.state_dict(), "turned": engine.arange(6.0).reshape(2, 3).T}, tmp_path / "own.safetensors")
    raw = (tmp_path / "own.safetensors").read_bytes()
    head = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])
    assert head["0.weight"]["dtype"] == "F32" and head["turned"]["shape"] == [3, 2]
    state = engine.load(tmp_path / "own.safetensors")
    assert state.pop("turned").tolist() == [[0, 3], [1, 4], [2, 5]]
    other = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    other.load_state_dict(state)
    assert engine.equal(other[0].weight, model[0].weight)
    for value in ([engine.ones(1)], {"a": 1}, {1: engine.ones(1)}):
        with pytest.raises(TypeError, match="dict of tensors by name"):
            engine.save(value, tmp_path / "wrong.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(raw[:-1])
    with pytest.raises(engine.DataLossError, match="broken.safetensors"):
        engine.load(tmp_path / "broken.safetensors")
    with pytest.raises(FileNotFoundError):
        engine.load(tmp_path / "nothing.safetensors")


def test_open_files():
    held = io.BytesIO()
    engine.save({"a": engine.arange(3), "b": [1, "x"]}, held)
    held.seek(0)
    theirs = torch.load(held)
    assert theirs["a"].tolist() == [0, 1, 2] and theirs["b"] == [1, "x"]
    held.seek(0)
    assert engine.load(held)["a"].tolist() == [0, 1, 2]
    written = io.BytesIO()
    torch.save([torch.ones(2), 3], written)
    written.seek(0)
    found = engine.load(written)
    assert found[0].tolist() == [1, 1] and found[1] == 3
