import gc
import weakref

import numpy
import pytest
import torch

from support import DTYPES
from tensord import engine

NUMPY_DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool", "complex64", "complex128"]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_both_ways_without_copies(dtype):
    array = numpy.arange(6).reshape(2, 3).astype(dtype)
    x = engine.from_numpy(array)
    assert x.dtype.name == dtype and x.data_ptr() == array.ctypes.data
    back = x.numpy()
    assert back.dtype == array.dtype and numpy.shares_memory(back, array) and (back == array).all()
    array[0, 0] = 1
    assert x[0, 0].item() == array[0, 0]
    x[1, 2] = 0
    assert array[1, 2] == 0
    y = x.clone()
    y[0, 0] = 0
    assert array[0, 0] == 1
    assert numpy.asarray(x).ctypes.data == array.ctypes.data and numpy.array(x).ctypes.data != array.ctypes.data


def test_strides():
    base = numpy.arange(24.0).reshape(4, 6)
    for array in (base.T, base[::2, 1::2], base[:, 0], base[2], numpy.broadcast_to(base[0], (3, 6)), numpy.array(5.0), base[:0], base[:, :1]):
        x = engine.as_tensor(array)
        assert tuple(x.shape) == array.shape and x.tolist() == array.tolist()
        assert x.numpy().tolist() == array.tolist()
    x = engine.arange(24).reshape(4, 6).t()[1:3]
    assert x.numpy().tolist() == x.tolist() and x.numpy().strides == (8, 48)


def test_what_numpy_has_and_the_engine_has_not():
    for array, words in [(numpy.arange(3)[::-1], "negative strides"), (numpy.arange(3, dtype=">i4"), "foreign byte order"),
                         (numpy.arange(3, dtype="uint16"), "no dtype"), (numpy.zeros(2, dtype="i4,f4"), "no dtype"),
                         (numpy.zeros(3, dtype="f4,i1")["f0"], "whole elements")]:
        with pytest.raises((ValueError, NotImplementedError), match=words):
            engine.from_numpy(array)
    assert engine.tensor(numpy.arange(3)[::-1]).tolist() == [2, 1, 0]  # a documented copy
    with pytest.raises(TypeError, match="bfloat16"):
        engine.ones(2, dtype=engine.bfloat16).numpy()
    with pytest.raises((TypeError, BufferError)):
        engine.from_numpy([1, 2])


def test_read_only_arrays():
    array = numpy.arange(3.0)
    array.flags.writeable = False
    x = engine.from_numpy(array)
    assert not x.is_writable() and x.tolist() == [0, 1, 2] and (x + 1).tolist() == [1, 2, 3]
    for write in (lambda: x.add_(1), lambda: x.__setitem__(0, 5), lambda: x[1:].zero_(), lambda: engine.add(engine.ones(3).double(), 1, out=x)):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert array.tolist() == [0, 1, 2]
    assert not x.numpy().flags.writeable
    assert engine.from_numpy(numpy.frombuffer(b"abc", dtype="uint8")).tolist() == [97, 98, 99]


def test_owners_stay_alive():
    class Owner(numpy.ndarray):
        pass

    array = numpy.zeros(4).view(Owner)
    gone = weakref.ref(array)
    x = engine.from_numpy(array)[1:3]
    del array
    gc.collect()
    assert gone() is not None and x.tolist() == [0, 0]
    del x
    gc.collect()
    assert gone() is None
    array = engine.full((1000,), 7.0).numpy()
    gc.collect()
    [engine.zeros(1000) for _ in range(10)]
    assert (array == 7).all()


def test_memory_that_arrays_share_keeps_its_size():
    x = engine.zeros(2)
    array = x.numpy()
    with pytest.raises(ValueError, match="views share its memory"):
        engine.add(engine.ones(1000), 1, out=x)
    assert x.shape == (2,) and array.tolist() == [0, 0]
    del array
    engine.add(engine.ones(1000), 1, out=x)  # takes the result's shape
    assert x.shape == (1000,) and x[999].item() == 2


def test_numpy_of_tensors_with_gradients():
    x = engine.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="detach"):
        x.numpy()
    assert x.detach().numpy().tolist() == x.numpy(force=True).tolist() == [1, 1]


def test_buffers():
    data = bytearray(numpy.arange(5, dtype="int32").tobytes())
    x = engine.frombuffer(data, dtype=engine.int32)
    assert x.tolist() == [0, 1, 2, 3, 4]
    x[0] = 7
    assert data[0] == 7
    assert engine.frombuffer(data, dtype=engine.int32, count=2, offset=4).tolist() == [1, 2]
    for wrong in ({"offset": 3}, {"count": 9}, {"offset": 100}):
        with pytest.raises(ValueError, match="frombuffer"):
            engine.frombuffer(data, dtype=engine.int32, **wrong)
    assert bytes(memoryview(engine.tensor([1, 2], dtype=engine.uint8))) == b"\1\2"
    view = memoryview(engine.ones(2, 3))
    assert view.shape == (2, 3) and view.format == "f" and not view.readonly


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"])
def test_dlpack_with_pytorch(dtype):
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    mine = engine.from_dlpack(theirs)
    assert mine.dtype.name == dtype and mine.data_ptr() == theirs.data_ptr() and mine.tolist() == theirs.tolist()
    mine[0, 0] = 9
    assert theirs[0, 0].item() == 9
    again = torch.from_dlpack(mine.t()[1:])
    assert again.data_ptr() == mine.t()[1:].data_ptr() and again.tolist() == mine.t()[1:].tolist()


def test_dlpack_with_numpy():
    x = engine.arange(6.0).reshape(2, 3)
    array = numpy.from_dlpack(x)
    assert numpy.shares_memory(array, x.numpy())
    assert engine.from_dlpack(numpy.arange(3.0)).tolist() == [0, 1, 2]


def test_dlpack_details():
    x = engine.ones(2, 3)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__(max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule) and '"dltensor"' in repr(x.__dlpack__())
    taken = engine.from_dlpack(capsule)
    assert taken.data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="used already"):
        engine.from_dlpack(capsule)
    copied = engine.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    assert copied.data_ptr() != x.data_ptr() and copied.tolist() == x.tolist()
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    with pytest.raises(ValueError, match="gradient"):
        engine.ones(1, requires_grad=True).__dlpack__()
    array = numpy.arange(3.0)
    array.flags.writeable = False
    locked = engine.from_numpy(array)
    with pytest.raises(ValueError, match="read-only"):
        locked.__dlpack__()
    assert not engine.from_dlpack(locked).is_writable()
    assert engine.from_dlpack(engine.zeros(0, 3)).shape == (0, 3) and engine.from_dlpack(engine.tensor(5)).item() == 5


def test_dlpack_owners():
    x = engine.full((1000,), 3.0)
    theirs = torch.from_dlpack(x)
    del x
    gc.collect()
    [engine.zeros(1000) for _ in range(10)]
    assert (theirs == 3).all()
    for _ in range(100):
        engine.ones(10).__dlpack__()  # capsules that nobody consumes
