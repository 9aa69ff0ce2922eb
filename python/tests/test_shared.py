"""Tensors shared between processes, and storages of tensors."""

import multiprocessing
import os
import subprocess
import sys

import numpy
import pytest
import torch

from tensord import engine
from tensord.engine import data, nn


def double_all(orders, answers):
    while (got := orders.get()) is not None:
        got.detach().mul_(2)
        answers.put((got.is_shared(), type(got).__name__, got.requires_grad, got.tolist()))


class Doubler:
    """A process that doubles its inputs in place."""

    def __init__(self, method):
        context = multiprocessing.get_context(method)
        self.orders, self.answers = context.Queue(), context.Queue()
        self.process = context.Process(target=double_all, args=(self.orders, self.answers), daemon=True)

    def __enter__(self):
        self.process.start()
        return self

    def __call__(self, tensor):
        self.orders.put(tensor)
        return self.answers.get(timeout=60)

    def __exit__(self, *error):
        self.orders.put(None)
        self.process.join(60)
        assert self.process.exitcode == 0


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_shared_tensor_is_one_memory(method):
    x = engine.arange(6.0).share_memory_()
    weight = nn.Parameter(engine.ones(3))
    weight.share_memory_()
    assert x.is_shared() and weight.is_shared() and weight.requires_grad
    with Doubler(method) as double:
        assert double(x) == (True, "Tensor", False, [0, 2, 4, 6, 8, 10])
        assert x.tolist() == [0, 2, 4, 6, 8, 10]
        assert double(x[1::2]) == (True, "Tensor", False, [4, 12, 20])
        assert x.tolist() == [0, 4, 4, 12, 8, 20]
        assert double(weight) == (True, "Parameter", True, [2, 2, 2])
        assert weight.tolist() == [2, 2, 2]
        assert double(x.requires_grad_())[2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("size", [4, 1 << 18])
def test_others_are_sent_as_copies(method, size):
    x = engine.ones(2 * size)
    with Doubler(method) as double:
        for tensor in (x, x[::2]):
            is_shared, _, _, values = double(tensor)
            assert is_shared == (tensor.nbytes > 1 << 18)  # sent as a descriptor, so the receiver does not copy
            assert values == [2] * tensor.numel()
        assert not x.is_shared() and x.sum().item() == 2 * size
        with pytest.raises(RuntimeError, match="only leaves"):
            multiprocessing.reduction.ForkingPickler.dumps(engine.ones(1 << 17).requires_grad_() * 2)


def fill(tensors, model, at):
    tensors["all"][at] = at + 1
    with engine.no_grad():
        next(model.parameters())[at] = at + 1


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_arguments_of_processes(method):
    context = multiprocessing.get_context(method)
    tensors = {"all": engine.zeros(2, 3).share_memory_()}
    model = nn.Linear(3, 2, bias=False).share_memory()
    processes = [context.Process(target=fill, args=(tensors, model, at)) for at in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert tensors["all"].tolist() == [[1, 1, 1], [2, 2, 2]]
    assert model.weight.tolist() == [[1, 1, 1], [2, 2, 2]]


def test_it_is_the_same_tensor_that_moves():
    x = engine.arange(4.0).requires_grad_()
    y = (x * x).sum()
    place = x.data_ptr()
    assert x.share_memory_() is x and x.data_ptr() != place
    y.backward()  # tensors saved by autograd are unchanged
    assert x.grad.tolist() == [0, 2, 4, 6]
    place = x.data_ptr()
    assert x.share_memory_().data_ptr() == place and x.detach().is_shared() and not x.clone().is_shared()
    x.detach().numpy()[0] = 7
    assert x.tolist()[0] == 7


def test_memory_of_others_too_is_not_moved():
    for holder in (lambda x: x[1:], lambda x: x.numpy(), lambda x: torch.from_dlpack(x), lambda x: x.untyped_storage()):
        x = engine.arange(4.0)
        held = holder(x)
        with pytest.raises(engine.Error, match="share_memory_: the tensor's memory is held by 1 more"):
            x.share_memory_()
        assert not x.is_shared()
        del held
        assert x.share_memory_().is_shared()


def test_memory_of_a_loaded_model(tmp_path):
    model = torch.jit.trace(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()), torch.zeros(2, 64))
    model.save(str(tmp_path / "model.pt"))
    given = torch.rand(2, 64)
    expected = model(given).detach().numpy()
    loaded = engine.load(str(tmp_path / "model.pt"))
    x = engine.from_numpy(given.numpy())
    for _ in range(3):
        numpy.testing.assert_allclose(loaded(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    for change in (lambda p: p.share_memory_(), lambda p: p.resize_(1), lambda p: p.set_(x), lambda p: p.untyped_storage().resize_(8)):
        for parameter in loaded.parameters():  # its plans contain their addresses
            with pytest.raises(engine.Error, match="inference mode"):
                change(parameter)
    numpy.testing.assert_allclose(loaded(x).numpy(), expected, rtol=1e-5, atol=1e-6)
    trained = engine.load(str(tmp_path / "model.pt"), trainable=True)
    trained(x)
    for parameter in trained.parameters():
        assert parameter.share_memory_().is_shared()
    numpy.testing.assert_allclose(trained(x).detach().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_batches_of_workers_are_shared():
    samples = data.TensorDataset(engine.arange(8.0))
    for (batch,) in data.DataLoader(samples, batch_size=4, num_workers=1):
        assert batch.is_shared()
    assert batch.tolist() == [4, 5, 6, 7]


def test_descriptors_of_strangers(tmp_path):
    def opened(file, size=64, offset=0, sizes=(4,), strides=(1,)):
        return engine._engine._open_shared(os.dup(file), size, offset, sizes, strides, engine.float32)

    with open(tmp_path / "file", "wb+") as file:
        file.write(bytes(64))
        file.flush()
        with pytest.raises(ValueError, match="not one of anonymous memory"):
            opened(file.fileno())
    file = os.memfd_create("cut", os.MFD_ALLOW_SEALING)
    os.pwrite(file, bytes(64), 0)
    with pytest.raises(ValueError, match="not sealed"):
        opened(file)
    os.close(file)
    x = engine.zeros(16).share_memory_()
    file = engine._engine._share(x)[0]
    for wrong in ({"size": 65}, {"offset": 13}, {"offset": -1}, {"sizes": (17,)}, {"strides": (-1,)}, {"sizes": (2**62, 2)}, {"strides": (1, 1)}):
        with pytest.raises(engine.Error):
            opened(file, **wrong)
    with pytest.raises(OSError):
        os.ftruncate(file, 0)
    assert opened(file).tolist() == [0] * 4


def test_import_does_without_multiprocessing():
    program = """
import sys
from tensord import engine
assert "multiprocessing" not in sys.modules
from multiprocessing import reduction
assert engine.Tensor in reduction.ForkingPickler._extra_reducers
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def storage_of(x):
    return x.untyped_storage() if isinstance(x, engine.Tensor) else x.storage()  # Debian's PyTorch is older


def test_resize_as_pytorchs():
    for library in (engine, torch):
        x = library.arange(6.0)
        assert x.resize_(2, 2) is x and x.tolist() == [[0, 1], [2, 3]]
        assert x.resize_((3, 2)).tolist() == [[0, 1], [2, 3], [4, 5]]  # nothing was lost
        assert x.resize_(2, 5).flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
        assert x.stride() == (5, 1) and storage_of(x).nbytes() == 40
        y = library.arange(6.0).reshape(2, 3).t()
        assert y.resize_(3, 2).stride() == (1, 3)  # unchanged: nothing to do
        assert y.resize_(6).tolist() == [0, 1, 2, 3, 4, 5]
        view = library.arange(6.0)[2:]
        assert view.resize_(2).tolist() == [2, 3] and view.storage_offset() == 2
        with pytest.raises(RuntimeError):
            library.ones(2).requires_grad_().resize_(1)
        with pytest.raises(Exception):
            library.ones(2).resize_(2**62, 4)


def test_resize_of_memory_that_others_hold():
    x = engine.arange(6.0)
    view = x[1:]
    with pytest.raises(engine.Error, match="resize_: the tensor's memory is held by 1 more"):
        x.resize_(7)
    assert x.resize_(5).tolist() == [0, 1, 2, 3, 4]  # the memory is large enough
    del view
    assert x.resize_(7)[:6].tolist() == [0, 1, 2, 3, 4, 5]
    shared = engine.ones(2).share_memory_()
    with pytest.raises(engine.Error, match="keeps its size"):
        shared.resize_(3)


def test_set_as_pytorchs():
    for library in (engine, torch):
        x, y = library.zeros(1), library.arange(6.0).reshape(2, 3)
        assert x.set_(y) is x and x.tolist() == y.tolist()
        x[0, 0] = 7
        assert y[0, 0].item() == 7
        z = library.zeros(1).set_(storage_of(y), 1, (2, 2), (3, 1))
        assert z.tolist() == [[1, 2], [4, 5]]
        assert library.zeros(1).set_(storage_of(y)).tolist() == [7, 1, 2, 3, 4, 5]
        for wrong in (library.zeros(1, dtype=library.int64), library.ones(1).requires_grad_()):
            with pytest.raises(RuntimeError):
                wrong.set_(y)
    with pytest.raises(engine.Error, match="outside"):
        engine.zeros(1).set_(y := engine.zeros(3).untyped_storage(), 0, (4,), (1,))
    assert y.nbytes() == 12


def test_set_is_seen_by_what_autograd_saved():
    w, x = engine.ones(2).requires_grad_(), engine.tensor([2.0, 3.0])
    y = (w * x).sum()
    x.set_(engine.tensor([5.0, 5.0]))
    try:
        y.backward()
    except engine.Error:
        return
    assert w.grad.tolist() == [2, 3]


def test_a_view_that_is_set_is_a_view_no_more():
    base = engine.zeros(4)
    view = base[:2]
    view.set_(engine.ones(2))
    w = engine.full((2,), 3.0).requires_grad_()
    view.mul_(w)
    assert base.tolist() == [0] * 4 and not base.requires_grad
    view.sum().backward()
    assert w.grad.tolist() == [1, 1]


def test_storages():
    x = engine.arange(6.0)
    storage = x.untyped_storage()
    assert storage.nbytes() == len(storage) == storage.size() == 24 and storage.data_ptr() == x.data_ptr()
    assert storage == x[2:].untyped_storage() and storage != x.clone().untyped_storage()
    assert hash(storage) == hash(x.untyped_storage()) and storage.device == x.device and not storage.is_shared()
    storage.resize_(40)
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and storage.nbytes() == 40 and storage.data_ptr() == x.data_ptr()
    assert x.resize_(10).numel() == 10
    with pytest.raises(engine.Error, match="outside"):
        storage.resize_(36)
    assert storage.share_memory_() is storage and x.is_shared() and storage.data_ptr() == x.data_ptr()
    x.set_(engine.ones(1))
    with pytest.raises(engine.Error, match="has another one now"):
        storage.resize_(8)
    assert storage.nbytes() == 40


def test_pinned_memory_needs_a_device():
    x = engine.ones(2)
    assert not x.is_pinned()
    with pytest.raises(NotImplementedError, match="pin_memory.*no devices"):
        x.pin_memory()


def test_a_loader_pins_where_there_is_a_device(monkeypatch):
    dataset = [{"x": engine.ones(2), "name": "a", "pair": (engine.zeros(1), 3)}] * 4
    with pytest.warns(UserWarning, match="no device that pinned memory is for"):
        loader = engine.data.DataLoader(dataset, batch_size=2, pin_memory=True)
    assert next(iter(loader))["x"].shape == (2, 2)

    pinned = []
    monkeypatch.setattr(engine.Tensor, "pin_memory", lambda self: pinned.append(tuple(self.shape)) or self)
    batch = next(iter(engine.data.DataLoader(dataset, batch_size=2, pin_memory=True)))
    assert batch["name"] == ["a", "a"] and sorted(pinned) == [(), (2,), (2, 1), (2, 2)]
