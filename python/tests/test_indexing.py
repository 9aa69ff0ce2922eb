import numpy
import pytest
import torch

from support import from_torch, same
from tensord import engine

SHAPE = (3, 4, 5)
INDICES = [
    0, -1, slice(None), slice(1, 3), slice(None, None, 2), slice(5, 1), slice(-2, None), None, ..., (0, 1), (0, ..., 1), (..., 0),
    (None, 0), (slice(None), None, 1), (..., None), (slice(1, 2), slice(None), 3), [0, 2], ([0, 2],), ([0, 2], [1, 3]), ([0, 2], 1), (1, [0, 2]),
    (slice(None), [0, 2]), ([0, 2], slice(None), [1, 3]), ([[0], [2]], [1, 3]), (0, slice(None), [1, 1]), (..., [0, 4]), True, False,
    (True, 0), (slice(None), True), "mask", "mask0", ("mask0", 1), ("mask0", slice(1, 3)), "long", ("long", slice(None), "long"), "scalar", (slice(None), "scalar"),
    ("mask0", None), (None, "long"), ([True, False, True],), [],
]


def resolve(index, library):
    """Names in INDICES as tensors of the library."""
    named = {
        "mask": torch.arange(60).reshape(SHAPE) % 3 == 0, "mask0": torch.tensor([True, False, True]), "long": torch.tensor([2, 0]),
        "scalar": torch.tensor(1),
    }
    if isinstance(index, tuple):
        return tuple(resolve(item, library) for item in index)
    if isinstance(index, str):
        return from_torch(named[index]) if library is engine else named[index]
    return index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_reading(index):
    x = torch.arange(60).reshape(SHAPE).float()
    same(from_torch(x)[resolve(index, engine)], x[resolve(index, torch)])


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("value", ["number", "tensor", "one", "array"])
def test_writing(index, value):
    x = torch.arange(60).reshape(SHAPE).float()
    y = from_torch(x)
    shape = x[resolve(index, torch)].shape
    values = {"number": -1, "tensor": torch.arange(shape.numel()).reshape(shape).float() + 100, "one": torch.full((1, 1), 7.0),
              "array": numpy.array(9.0, dtype=numpy.float32)}
    given = values[value]
    if value == "one" and len(shape) == 0:
        given = torch.tensor(7.0)
    x[resolve(index, torch)] = torch.as_tensor(given) if value == "array" else given
    y[resolve(index, engine)] = from_torch(given) if isinstance(given, torch.Tensor) else given
    same(y, x)


def test_views_share_memory():
    x = engine.zeros(3, 4)
    x[1][2] = 5
    x[:, 0] += 1
    assert x.tolist() == [[1, 0, 0, 0], [1, 0, 5, 0], [1, 0, 0, 0]]
    assert x[...] is not x and not x[...].is_same(x)


def test_a_mask_of_two_dimensions_beside_others():
    # NumPy's rule; PyTorch refuses it.
    x = numpy.arange(24).reshape(2, 3, 4)
    mask = x[:, :, 0] % 8 == 0
    assert engine.tensor(x)[engine.tensor(mask), 1].tolist() == x[mask, 1].tolist()
    assert engine.tensor(x)[mask, 1:3].tolist() == x[mask, 1:3].tolist()


@pytest.mark.parametrize("index,error", [(5, IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError), (1.5, TypeError), ("a", TypeError),
                                         (slice(None, None, -1), ValueError), ((0, 9), IndexError), (slice(0.5, 1), TypeError)])
def test_wrong_indices(index, error):
    with pytest.raises(error):
        engine.zeros(3, 4, 5)[index]


def test_wrong_masks():
    with pytest.raises(IndexError, match="mask"):
        engine.zeros(3, 4)[engine.ones(2, dtype=engine.bool)]
    with pytest.raises((IndexError, ValueError)):
        engine.zeros(3)[[3]]


def test_wrong_assignment():
    x = engine.zeros(3)
    with pytest.raises(ValueError):
        x[:] = engine.ones(4)
    with pytest.raises(TypeError):
        del x[0]
    with pytest.raises(TypeError):
        x[0] = "a"


def test_gradients_through_indices():
    for index in (0, (slice(1, 3), None), ([0, 2], [1, 1]), "mask"):
        x = torch.arange(60).reshape(SHAPE).double().requires_grad_()
        y = from_torch(x)
        (x[resolve(index, torch)] ** 2).sum().backward()
        (y[resolve(index, engine)] ** 2).sum().backward()
        same(y.grad, x.grad)


def test_gradients_through_assignment():
    x, value = torch.ones(3, 2, requires_grad=True), torch.full((2,), 2.0, requires_grad=True)
    y, other = from_torch(x), from_torch(value)
    for a, b, library in ((x, value, torch), (y, other, engine)):
        c = a * 3
        c[1] = b
        (c * c).sum().backward()
    same(y.grad, x.grad)
    same(other.grad, value.grad)


def test_gradients_of_values_with_leading_ones():
    y, value = engine.zeros(3) * 1, engine.ones(1, 1, requires_grad=True)
    y[[0, 1]] = value
    y.sum().backward()
    assert value.grad.tolist() == [[2]]


def test_masks_and_one_element_of_another_dtype():
    for m in (torch, engine):
        x = m.zeros(3, 2, dtype=m.float64)
        x[m.tensor([True, False, True])] = m.tensor(2.5)
        x[m.tensor([False, True, False]), 1] = m.tensor([7])
        assert x.tolist() == [[2.5, 2.5], [0, 7], [2.5, 2.5]]
        with pytest.raises(RuntimeError, match="dtypes match"):
            x[[0, 1]] = m.tensor(2.5)
