import json
import os
import pathlib
import subprocess
import threading

import pytest
import torch

from support import to_torch, from_torch, same
from tensord import engine


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x, scale: float = 1.0):
        return torch.relu(self.linear(x)) * scale + self.offset

    @torch.jit.export
    def pieces(self, x: torch.Tensor, names: list[str]) -> dict[str, torch.Tensor]:
        out: dict[str, torch.Tensor] = {}
        for name in names:
            out[name] = x * len(name)
        return out

    @torch.jit.export
    def fail(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")

    @torch.jit.export
    def forever(self, x: torch.Tensor) -> torch.Tensor:
        while bool(x.sum() < 1e30):
            x = x * 1.0
        return x


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    net = Net()
    path = str(tmp_path_factory.mktemp("models") / "net.pt")
    torch.jit.script(net).save(path)
    return net, path


def test_calls(saved):
    net, path = saved
    model = engine.load(path)
    x = torch.randn(5, 4)
    same(model(from_torch(x)), net(x))
    same(model(from_torch(x), scale=2.0), net(x, 2.0))
    assert {k: v.tolist() for k, v in model.pieces(engine.ones(1), ["a", "bcd"]).items()} == {"a": [1], "bcd": [3]}
    assert model.original_name == "Net" and "pieces" in repr(model) and "aten::" in str(model.graph) and "digraph" in model.graph.dot
    assert "scale" in model.schema() and model.format == "pytorch_libtorch"


def test_wrong_calls(saved):
    model = engine.load(saved[1])
    with pytest.raises(TypeError, match="forward"):
        model(engine.ones(1, 4), 1.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        model(engine.ones(1, 4), y=1)
    with pytest.raises(AttributeError, match="no method 'other'"):
        model.other
    with pytest.raises(RuntimeError, match="not today"):
        model.fail(engine.ones(1))
    with pytest.raises(TypeError):
        model(object())


def test_state(saved, tmp_path):
    net, path = saved
    model = engine.load(path, trainable=True)
    assert set(model.state_dict()) == {"linear.weight", "linear.bias", "offset"} and len(model.parameters()) == 2 and len(model.buffers()) == 1
    other = Net()
    model.load_state_dict({key: from_torch(value) for key, value in other.state_dict().items()})
    x = torch.randn(2, 4)
    same(model(from_torch(x)), other(x))
    model.save(tmp_path / "again.pt")
    same(from_torch(torch.jit.load(str(tmp_path / "again.pt"))(x)), other(x))
    with pytest.raises(RuntimeError, match="trainable"):
        engine.load(path).load_state_dict(model.state_dict())


def test_weights_that_are_packed_away_cannot_be_written(saved):
    _, path = saved
    model, x = engine.load(path), engine.ones(2, 4)
    before = model(x).tolist()
    tensors = [*model.parameters(), *model.buffers(), *model.state_dict().values()]
    assert not any(tensor.is_writable() or tensor.detach().numpy().flags.writeable for tensor in tensors)
    for tensor in tensors:
        with pytest.raises(RuntimeError, match="inference|read-only"), engine.no_grad():
            tensor.zero_()
    for tensor in model.parameters():
        with pytest.raises(RuntimeError, match="trainable=True"):
            tensor.data = engine.zeros_like(tensor)
    assert model(x).tolist() == before
    trained = engine.load(path, trainable=True)
    trained(x)
    with engine.no_grad():
        for tensor in trained.parameters():
            tensor.detach().numpy()[...] = 0
    assert trained(x).tolist() == [[1.0] * 3] * 2  # only the offset is left


def test_training(saved):
    net, path = saved
    model = engine.load(path, trainable=True)
    reference = torch.jit.load(path)
    first, second = torch.optim.SGD(reference.parameters(), 0.1), engine.optim.SGD(model.parameters(), 0.1)
    x = torch.randn(8, 4)
    for _ in range(3):
        for loaded, data, optimizer in ((reference, x, first), (model, from_torch(x), second)):
            optimizer.zero_grad()
            (loaded(data) ** 2).mean().backward()
            optimizer.step()
    for (name, got), (_, want) in zip(model.named_parameters(), reference.named_parameters()):
        same(got, want)
    assert model.training is True and model.eval().training is False


def test_threads(saved):
    net, path = saved
    model = engine.load(path)
    inputs = [torch.randn(n % 3 + 1, 4) for n in range(24)]
    results = [None] * len(inputs)

    def work(begin):
        for i in range(begin, len(inputs), 4):
            results[i] = model(from_torch(inputs[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, got in zip(inputs, results):
        same(got, net(x))


def test_ctrl_c_stops_a_long_call(saved):
    import os
    import signal

    model = engine.load(saved[1])
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.forever(engine.ones(1))
    timer.join()
    assert model(engine.ones(1, 4)).shape == (1, 3)


def test_values_in_files(tmp_path):
    value = {"a": torch.randn(3, 2), "b": [1, 2.5, "x", None, True], "c": {"d": torch.arange(3)}, "e": (1, 2)}
    torch.save(value, tmp_path / "theirs.pt")
    got = engine.load(tmp_path / "theirs.pt")
    same(got["a"], value["a"])
    assert got["b"] == value["b"] and got["c"]["d"].tolist() == [0, 1, 2] and got["e"] == (1, 2)
    engine.save(got, tmp_path / "mine.pt")
    again = torch.load(tmp_path / "mine.pt")
    assert torch.equal(again["a"], value["a"]) and again["b"] == value["b"]
    with pytest.raises(TypeError, match="object of class set"):
        engine.save({"a": {1}}, tmp_path / "wrong.pt")


def test_damaged_files(saved, tmp_path):
    data = open(saved[1], "rb").read()
    (tmp_path / "cut.pt").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.pt").write_bytes(b"no archive")
    for name in ("cut.pt", "text.pt"):
        with pytest.raises(engine.Error):
            engine.load(tmp_path / name)


def test_onnx_files(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval()
    torch.onnx.export(net, torch.ones(2, 4), str(tmp_path / "m.onnx"), input_names=["x"], dynamic_axes={"x": {0: "rows"}})
    model = engine.load(tmp_path / "m.onnx")
    assert model.format == "onnxruntime_onnx"
    x = engine.randn(5, 4)
    got = model(x)
    same(got if isinstance(got, engine.Tensor) else got[0], net(to_torch(x)))


NEWER_PYTORCH = pathlib.Path(__file__).resolve().parents[2] / "build" / "pypi_torch" / "bin" / "python"


@pytest.mark.skipif(not NEWER_PYTORCH.exists(), reason="scripts/setup pypi_torch makes what writes exported programs")
def test_exported_programs(tmp_path):
    program = ("import sys, torch; torch.manual_seed(0); net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()).eval(); x = torch.ones(2, 4)\n"
               "torch.export.save(torch.export.export(net, (x,)), sys.argv[1]); print(net(x).tolist())")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run([NEWER_PYTORCH, "-c", program, tmp_path / "m.pt2"], check=True, capture_output=True, text=True, env=environment)
    got = engine.load(tmp_path / "m.pt2")(engine.ones(2, 4))
    same(got if isinstance(got, engine.Tensor) else got[0], torch.tensor(json.loads(ran.stdout.splitlines()[-1])))
