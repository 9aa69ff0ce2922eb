"""NumPy arrays and functions, and DLPack, compared with PyTorch's tensors."""

import gc

import numpy
import pytest
import torch

from support import same
from tensord import engine

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool", "complex64", "complex128"]
SHAPES = [(2, 3), (), (0,), (0, 3), (3, 1, 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_ways(dtype, shape):
    x = engine.ones(shape, dtype=getattr(engine, dtype))
    if dtype != "bool" or torch.__version__ >= "2":  # 1.13 has no bool in DLPack
        theirs = torch.from_dlpack(x)
        assert theirs.tolist() == x.tolist() and str(theirs.dtype) == f"torch.{dtype}" and tuple(theirs.shape) == shape
        back = engine.from_dlpack(theirs)
        assert back.tolist() == x.tolist() and back.dtype is x.dtype and (x.numel() == 0 or back.data_ptr() == x.data_ptr())
    if dtype != "bfloat16":
        array = x.numpy()
        assert array.dtype == dtype and array.shape == shape and array.tolist() == x.tolist()
        back = engine.from_numpy(array)
        assert back.dtype is x.dtype and (x.numel() == 0 or back.data_ptr() == x.data_ptr())


def test_copy_and_device_of_dlpack():
    source = torch.ones(2)
    assert engine.from_dlpack(source, copy=True).data_ptr() != source.data_ptr() == engine.from_dlpack(source, copy=False, device="cpu").data_ptr()
    x = engine.arange(6.0).reshape(2, 3)
    assert torch.utils.dlpack.from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert x.__dlpack_device__() == (1, 0) and x.__dlpack__(dl_device=(1, 0), max_version=(1, 0)) is not None
    for options in ({"dl_device": (2, 0)}, {"dl_device": (2, 0), "copy": False}):
        with pytest.raises(BufferError, match="__dlpack__"):
            x.__dlpack__(**options)
    turned = torch.from_dlpack(x.T)
    turned[0, 1] = 50
    assert x[1, 0].item() == 50 and turned.stride() == (1, 3)
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    engine.from_dlpack(capsule)
    for given, error in ((capsule, ValueError), (3, TypeError), (numpy.arange(3)[::-1], ValueError)):
        with pytest.raises(error, match="from_dlpack"):
            engine.from_dlpack(given)
    with pytest.raises(RuntimeError, match="detach"):
        torch.from_dlpack(engine.ones(2, requires_grad=True))
    assert torch.from_dlpack(engine.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]


def test_owners_stay():
    x = engine.arange(1000.0)
    array, theirs = x.numpy(), torch.from_dlpack(x)
    own, other = engine.from_numpy(numpy.arange(1000.0)), engine.from_dlpack(torch.arange(1000.0))
    del x
    gc.collect()
    engine.zeros(1000), numpy.zeros(1000), torch.zeros(1000)
    assert array.sum() == theirs.sum().item() == own.sum().item() == other.sum().item() == 499500


def test_read_only_and_foreign():
    fixed = numpy.arange(3.0)
    fixed.flags.writeable = False
    made = engine.from_numpy(fixed)
    assert not made.numpy().flags.writeable and engine.tensor(fixed).add_(1).tolist() == [1, 2, 3]
    for write in (lambda: made.add_(1), lambda: made.__setitem__(0, 1), lambda: made.zero_()):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    for array, match in ((numpy.arange(3, dtype=">i4"), "byte order"), (numpy.arange(3)[::-1], "negative strides"), (numpy.array(["a"]), "no dtype"),
                         (numpy.ones(2, dtype=numpy.uint16), "no dtype"), (numpy.zeros(2, dtype=[("a", "i4")]), "no dtype")):
        with pytest.raises(RuntimeError, match=match):
            engine.from_numpy(array)
    assert engine.tensor(numpy.arange(3)[::-1]).tolist() == [2, 1, 0]


def test_arrays_of_tensors():
    x = engine.arange(6.0).reshape(2, 3)
    assert numpy.shares_memory(numpy.asarray(x), x.numpy()) and not numpy.shares_memory(numpy.array(x), x.numpy())
    assert x.__array__(numpy.float64, copy=True).dtype == numpy.float64 and numpy.shares_memory(x.__array__(copy=False), x.numpy())
    with pytest.raises(ValueError, match="a copy is needed"):
        x.__array__(numpy.float64, copy=False)
    with pytest.raises(RuntimeError, match="detach"):
        numpy.asarray(engine.ones(2, requires_grad=True))
    assert numpy.arange(5)[engine.tensor([1, 2])].tolist() == [1, 2] and numpy.concatenate([x, x]).shape == (4, 3)
    assert list(range(engine.tensor(3))) == [0, 1, 2] and [1, 2, 3][engine.tensor(1)] == 2


ARRAY = numpy.arange(1.0, 7.0).reshape(2, 3)
RUNS = [
    lambda x: numpy.sin(x), lambda x: numpy.add(x, ARRAY), lambda x: x + ARRAY, lambda x: numpy.maximum(x, 2.0), lambda x: numpy.float64(2) * x,
    lambda x: x * numpy.float64(2), lambda x: numpy.int64(2) * x, lambda x: numpy.exp(x, dtype=numpy.float64),
]


@pytest.mark.parametrize("run", RUNS)
def test_functions_of_numpy(run):
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    got = run(engine.from_dlpack(x.clone()))
    assert isinstance(got, engine.Tensor)
    same(got, run(x))


def test_more_functions_of_numpy():
    x = engine.from_numpy(ARRAY.copy())
    for got, want in ((ARRAY - x, ARRAY - ARRAY), (ARRAY < x, ARRAY < ARRAY), (x == ARRAY, ARRAY == ARRAY), (ARRAY @ x.T, ARRAY @ ARRAY.T),
        (ARRAY / x, ARRAY / ARRAY),
                      (numpy.add.reduce(x), ARRAY.sum(0)), (numpy.divmod(x, 2)[1], ARRAY % 2), (numpy.isfinite(x), numpy.isfinite(ARRAY))):
        assert isinstance(got, engine.Tensor) and got.tolist() == want.tolist() and str(got.dtype) == f"engine.{want.dtype}"
    array = ARRAY.copy()
    array += x
    assert isinstance(array, numpy.ndarray) and array.tolist() == (2 * ARRAY).tolist()
    with pytest.raises(TypeError):
        numpy.add(ARRAY, 1, out=x)
    with pytest.raises(RuntimeError, match="detach"):
        numpy.sin(engine.ones(2, requires_grad=True))


LITERALS = ["[1, 2.5]", "[True, 2.5]", "[1, 2j]", "range(3)", "[range(2), range(2)]", "[(1, 2), [3, 4]]", "[]", "[[]]", "2 ** 40", "[numpy.int8(1)]",
    "[numpy.float64(2)]", "numpy.array(3)", "((1, 2), (3, 4))"]


@pytest.mark.parametrize("literal", LITERALS)
def test_literals(literal):
    value = eval(literal)
    for make in ("tensor", "as_tensor"):
        same(getattr(engine, make)(value), getattr(torch, make)(value))


WRONG = [("[[1, 2], [3]]", ValueError), ("[[1, 2], 3]", ValueError), ("[1, [2]]", ValueError), ("[1, 'a']", TypeError), ("None", TypeError), ("{}",
    TypeError),
         ("{1}", TypeError), ("2 ** 63", OverflowError), ("[[1], []]", ValueError), ("[range(2), [1]]", ValueError)]


@pytest.mark.parametrize("literal,error", WRONG)
def test_wrong_literals(literal, error):
    with pytest.raises(error):
        engine.tensor(eval(literal))


NUMBERS = [("uint8", 300), ("uint8", 255), ("uint8", -1), ("int8", 128), ("int8", -129), ("int8", -128), ("int32", 2 ** 40), ("int64", float("nan")),
    ("int32", float("inf")),
           ("uint8", 256.5), ("uint8", 3.9), ("float16", 1e6), ("float16", float("inf")), ("float32", 1e40), ("float32", 1 + 2j), ("uint8", 1 + 2j),
           ("bool", 3), ("complex64", 1j),
           ("bfloat16", 1e38), ("float32", 2 + 0j)]


@pytest.mark.parametrize("dtype,value", NUMBERS, ids=str)
def test_numbers_that_do_not_fit(dtype, value):
    for make in (lambda m, d: m.full((2,), value, dtype=d), lambda m, d: m.zeros(2, dtype=d).fill_(value), lambda m, d: m.full_like(m.zeros(2,
        dtype=d), value),
                 lambda m, d: m.zeros(2).new_full((2,), value, dtype=d)):
        try:
            want = make(torch, getattr(torch, dtype))
        except RuntimeError:
            with pytest.raises(ValueError, match="without overflow"):
                make(engine, getattr(engine, dtype))
        else:
            same(make(engine, getattr(engine, dtype)), want)


@pytest.mark.parametrize("value,dtype", [([float("nan")], "int64"), ([256.5], "uint8"), ([float("inf")], "int32"), ([300], "uint8"), ([-129.0],
    "int8")], ids=str)
def test_lists_that_do_not_fit(value, dtype):
    with pytest.raises(RuntimeError):
        torch.tensor(value, dtype=getattr(torch, dtype))
    with pytest.raises(ValueError, match="tensor:"):
        engine.tensor(value, dtype=getattr(engine, dtype))
