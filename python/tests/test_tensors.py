import copy
import pickle

import numpy
import pytest
import torch

from support import DTYPES, from_torch, same
from tensord import engine


@pytest.mark.parametrize("data", [1, 2.5, True, 3 + 4j, [], [1, 2], [1, 2.5], [True, 2], [[1, 2], [3, 4]], [[], []],
                                  [[[1.0]]], (1, 2), [(1, 2), (3, 4)], [1, 2j]])
def test_literals(data):
    got, want = engine.tensor(data), torch.tensor(data)
    assert got.dtype.name == str(want.dtype).split(".")[1]
    assert got.tolist() == want.tolist() and tuple(got.shape) == tuple(want.shape)


@pytest.mark.parametrize("dtype", DTYPES)
def test_literals_with_dtype(dtype):
    same(engine.tensor([[0, 1], [2, 3]], dtype=getattr(engine, dtype)), torch.tensor([[0, 1], [2, 3]], dtype=getattr(torch, dtype)))


@pytest.mark.parametrize("data,error", [([[1, 2], [3]], ValueError), ([1, [2]], ValueError), ("ab", TypeError), ([object()], TypeError),
                                        ([1, None], TypeError)])
def test_wrong_literals(data, error):
    with pytest.raises(error, match="^tensor"):
        engine.tensor(data)


def test_numbers_out_of_range():
    with pytest.raises(ValueError, match="300 does not fit into uint8"):
        engine.tensor([300], dtype=engine.uint8)
    with pytest.raises(OverflowError):
        engine.tensor(2**70)


def test_arrays_in_lists():
    got = engine.tensor([numpy.float64(1), numpy.float64(2)])
    assert got.dtype is engine.float64 and got.tolist() == [1, 2]
    assert engine.tensor([engine.tensor(1), engine.tensor(2)]).tolist() == [1, 2]
    assert tuple(engine.tensor([numpy.zeros((2, 3)), numpy.ones((2, 3))]).shape) == (2, 2, 3)


OPERATORS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b, "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("first", ["int64", "float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("second", ["int64", "float32", "float16", 2, 2.5, True])
def test_operators_promote_as_pytorch(name, first, second):
    data = [3, 1, 2, 5]
    mine, theirs = engine.tensor(data, dtype=getattr(engine, first)), torch.tensor(data, dtype=getattr(torch, first))
    if isinstance(second, str):
        other, their_other = engine.tensor([1, 2, 3, 1], dtype=getattr(engine, second)), torch.tensor([1, 2, 3, 1], dtype=getattr(torch, second))
    else:
        other = their_other = second
    for flip in (False, True):
        a, b, x, y = (other, mine, their_other, theirs) if flip else (mine, other, theirs, their_other)
        try:
            want = OPERATORS[name](x, y)
        except RuntimeError:
            continue  # a number minus a bool: PyTorch refuses it
        same(OPERATORS[name](a, b), want, rtol=2e-3 if second == "float16" else 1e-5)


@pytest.mark.parametrize("expression", ["a & b", "a | b", "a ^ b", "a << b", "a >> b", "~a", "-a", "+a", "abs(a)", "a & 3", "3 | a", "5 ^ a",
                                        "a << 1", "16 >> b", "1 << b"])
def test_integer_operators(expression):
    a, b = torch.tensor([5, 3, 9]), torch.tensor([1, 2, 3])
    same(eval(expression, {"a": from_torch(a), "b": from_torch(b)}), eval(expression, {"a": a, "b": b}))


def test_in_place_operators_keep_the_object():
    x = engine.tensor([1.0, 2.0])
    before, view = x, x[0]
    x += 1
    x *= engine.tensor([2.0, 3.0])
    x /= 2
    x -= 0.5
    x **= 2
    assert x is before and x.tolist() == [2.25, 16.0]
    assert view.item() == 2.25
    assert x.add_(1) is x


def test_matmul():
    a, b = torch.randn(3, 4), torch.randn(4, 5)
    same(from_torch(a) @ from_torch(b), a @ b, rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_stays_pythons():
    x = engine.ones(2)
    assert (x == None) is False and (x != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(TypeError):
        x + None


def test_conversions_to_numbers():
    assert float(engine.tensor(2.5)) == 2.5 and int(engine.tensor([3.7])) == 3 and bool(engine.tensor(0.0)) is False
    assert [10, 20, 30][engine.tensor(1)] == 20
    assert engine.tensor(1 + 2j).item() == 1 + 2j and engine.tensor(True).item() is True
    for convert in (float, int, bool):
        with pytest.raises(ValueError, match="2 elements"):
            convert(engine.ones(2))
    with pytest.raises(TypeError, match="index"):
        [1, 2][engine.tensor(0.5)]


def test_shape():
    x = engine.zeros(2, 3, 4)
    assert x.shape == (2, 3, 4) and x.shape.numel() == 24 and repr(x.shape) == "engine.Size([2, 3, 4])"
    assert x.size() == (2, 3, 4) and x.size(-1) == 4 and x.ndim == 3 and x.dim() == 3 and x.stride() == (12, 4, 1)
    assert x.numel() == 24 and len(x) == 2 and x.element_size() == 4 and x.nbytes == 96
    assert x.view(6, 4).shape == x.view((6, 4)).shape == x.view([6, 4]).shape == (6, 4)
    assert x.permute(2, 0, 1).shape == (4, 2, 3) and x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3)
    assert x.reshape(-1).shape == (24,) and x.expand(5, 2, 3, 4).shape == (5, 2, 3, 4)
    with pytest.raises(IndexError):
        x.size(3)


def test_dtypes():
    assert engine.float32 is engine.float and engine.ones(1).dtype is engine.float32
    assert repr(engine.bfloat16) == "engine.bfloat16" and engine.float16.itemsize == 2 and engine.float16.is_floating_point
    assert pickle.loads(pickle.dumps(engine.int8)) is engine.int8 and copy.deepcopy(engine.int8) is engine.int8
    assert engine.zeros(2, dtype=float).dtype is engine.float64 and engine.zeros(2, dtype=int).dtype is engine.int64
    assert engine.ones(2).to(engine.float64).dtype is engine.float64 and engine.ones(2).half().dtype is engine.float16
    assert engine.promote_types(engine.int32, engine.float16) is engine.float16
    assert engine.result_type(engine.ones(1, dtype=engine.uint8), 2.5) is engine.float32


def test_devices():
    assert engine.device("cpu") == engine.zeros(1).device and str(engine.device("cuda", 1)) == "cuda:1"
    assert engine.device("cuda:1").index == 1 and repr(engine.device("cpu")) == "device(type='cpu')"
    with pytest.raises(ValueError, match="tpu"):
        engine.device("tpu")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickling(dtype, protocol):
    x = engine.arange(6).reshape(2, 3).to(getattr(engine, dtype)).t()
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()


def test_pickling_details():
    x = engine.ones(3, requires_grad=True)
    assert pickle.loads(pickle.dumps(x)).requires_grad
    assert pickle.loads(pickle.dumps(engine.tensor(5))).item() == 5
    assert pickle.loads(pickle.dumps(engine.zeros(0, 3))).shape == (0, 3)
    with pytest.raises(RuntimeError, match="leaves"):
        pickle.dumps(x * 2)
    buffers = []
    data = pickle.dumps(engine.zeros(1000), 5, buffer_callback=buffers.append)
    assert len(data) < 500 and len(buffers) == 1
    assert pickle.loads(data, buffers=buffers).shape == (1000,)


def test_copies():
    x = engine.ones(2)
    for made in (copy.deepcopy(x), x.clone(), engine.tensor(x)):
        made.fill_(5)
        assert x.tolist() == [1, 1]


def test_named_results():
    values, indices = engine.ones(3).max(0)
    found = engine.sort(engine.tensor([3, 1, 2]))
    assert found.values.tolist() == [1, 2, 3] and found.indices.tolist() == [1, 2, 0] and values.item() == 1
    assert isinstance(engine.ones(4).chunk(2), tuple)


def test_other_names_of_arguments():
    x = engine.arange(6).reshape(2, 3)
    assert engine.sum(input=x, axis=1).tolist() == x.sum(dim=1).tolist() == [3, 12]
    assert x.sum(1, keepdims=True).shape == (2, 1)


def test_functions_and_methods_of_the_registry():
    names = dir(engine)
    assert len([name for name in names if callable(getattr(engine, name, None))]) > 500
    assert "add(" in engine.add.__doc__ and engine.add.__name__ == "add" and callable(engine.Tensor.add)
    assert pickle.loads(pickle.dumps(engine.add)) is engine.add
    assert engine.ops.aten.add.Tensor(engine.ones(1), engine.ones(1)).item() == 2
    assert "Scalar" in engine.ops.aten.add.overloads()
    with pytest.raises(AttributeError, match="no_such"):
        engine.no_such
    with pytest.raises(AttributeError):
        engine.ops.aten.add.Nothing


def test_random_numbers_are_pytorchs():
    engine.manual_seed(3)
    torch.manual_seed(3)
    same(engine.randn(5, 3), torch.randn(5, 3))
    same(engine.rand(7), torch.rand(7))
    generator, theirs = engine.Generator().manual_seed(4), torch.Generator().manual_seed(4)
    same(engine.rand(7, generator=generator), torch.rand(7, generator=theirs))
    state = engine.get_rng_state()
    first = engine.rand(3)
    engine.set_rng_state(state)
    assert engine.rand(3).tolist() == first.tolist()


def test_unique_and_others():
    x = torch.tensor([3, 1, 3, 2, 1])
    got, want = engine.unique(from_torch(x), return_inverse=True, return_counts=True), torch.unique(x, return_inverse=True, return_counts=True)
    for one, other in zip(got, want):
        same(one, other)
    assert engine.broadcast_shapes((2, 1), (3,)) == (2, 3)
    same(engine.einsum("ij,jk->ik", engine.ones(2, 3), engine.ones(3, 4)), torch.full((2, 4), 3.0))
    same(engine.tensordot(engine.ones(2, 3), engine.ones(3, 4), 1), torch.full((2, 4), 3.0))
    assert [tuple(part.shape) for part in engine.split(engine.ones(5), 2)] == [(2,), (2,), (1,)]
    assert 3 in from_torch(x) and 7 not in from_torch(x)
    assert [item.item() for item in from_torch(x)] == x.tolist()


@pytest.mark.parametrize("samples", [17, 30, 31, 40])
@pytest.mark.parametrize("n_fft,length,hop", [(10, 6, 4), (9, 4, 5), (10, 7, 3), (16, 5, 3), (8, 8, 2), (12, 1, 4)])
def test_stft_aligned_to_its_window(samples, n_fft, length, hop):
    """An argument that PyTorch 1.13 lacks: as many frames as windows fit, with zeros around them."""
    x, window = torch.randn(2, samples), torch.rand(length)
    frames, left = 1 + (samples - length) // hop, (n_fft - length) // 2
    padded = torch.nn.functional.pad(x, (left, (frames - 1) * hop + n_fft - samples - left))
    want = torch.stft(padded, n_fft, hop, length, window, center=False, onesided=True, return_complex=True)
    got = engine.stft(from_torch(x), n_fft, hop, length, from_torch(window), False, True, True, True)
    assert tuple(got.shape) == tuple(want.shape) == (2, n_fft // 2 + 1, frames)
    same(got.abs(), want.abs(), rtol=1e-4, atol=1e-5)


def test_traces_of_stft_are_read_by_older_pytorch(tmp_path):
    x = torch.rand(2, 32)
    engine.jit.trace(lambda y: engine.stft(y, 8, 4, 8, engine.ones(8), False, True, True).abs(), (from_torch(x),)).save(str(tmp_path / "stft.pt"))
    want = torch.stft(x, 8, 4, 8, torch.ones(8), center=False, onesided=True, return_complex=True).abs()
    torch.testing.assert_close(torch.jit.load(str(tmp_path / "stft.pt"))(x), want, rtol=1e-4, atol=1e-5)
