"""tensord.engine.array_api beyond the operators; tests/array_api runs the standard's own suite."""

import numpy
import pytest

from tensord import engine
from tensord.engine import array_api as xp


def test_promotion_is_by_dtype_alone():
    # PyTorch would return float32, because it ignores the 0-dimensional operand.
    assert xp.add(xp.asarray(1.0, dtype=xp.float64), xp.ones(3, dtype=xp.float32)).dtype is xp.float64
    assert xp.add(xp.ones(2, dtype=xp.int16), 3).dtype is xp.int16
    assert xp.multiply(2.0, xp.ones(2, dtype=xp.float64)).dtype is xp.float64
    assert xp.result_type(xp.int8, xp.uint8) is xp.int16
    assert xp.result_type(xp.complex64, xp.float64) is xp.complex128
    assert xp.sum(xp.ones(3, dtype=xp.uint8)).dtype is xp.int64
    with pytest.raises(TypeError):
        xp.add(1, 2)


def test_the_namespace_of_a_tensor():
    x = engine.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.01")
    assert engine.float32 != None and not (engine.device("cpu") == None)  # noqa: E711


def test_functions_of_several_operators_beside_numpy():
    generator = numpy.random.default_rng(0)
    x = generator.integers(0, 4, (3, 5)).astype("float32")
    x[0, 0] = numpy.nan
    got, want = xp.unique_all(xp.asarray(x)), numpy.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    for one, other in zip(got, want):
        numpy.testing.assert_array_equal(one.numpy().reshape(other.shape), other)
    ours = xp.asarray(x[1:])
    numpy.testing.assert_allclose(xp.var(ours, axis=1, correction=1.5).numpy(), x[1:].var(axis=1) * 5 / 3.5, rtol=1e-5)
    numpy.testing.assert_allclose(xp.cumulative_sum(ours, axis=1, include_initial=True).numpy()[:, 1:], x[1:].cumsum(axis=1))
    numpy.testing.assert_array_equal(xp.take(ours, xp.asarray([[0, -1]]), axis=1).numpy(), x[1:].take([[0, -1]], axis=1))
    numpy.testing.assert_array_equal(xp.squeeze(xp.expand_dims(ours, axis=(0, 3)), axis=0).numpy(), x[1:][..., None])
    z = numpy.array([1e-9 + 1e-9j, -0.3 + 2j, 5 - 1j])
    numpy.testing.assert_allclose(xp.expm1(xp.asarray(z)).tolist(), numpy.expm1(z), rtol=1e-12)
    numpy.testing.assert_allclose(xp.log1p(xp.asarray(z)).tolist(), numpy.log1p(z), rtol=1e-6)  # NumPy's is the less accurate one
    assert bool(xp.isnan(xp.sign(xp.asarray(float("nan")))))


def test_what_is_wrong_is_refused():
    with pytest.raises(ValueError, match="size 2"):
        xp.squeeze(xp.ones((2, 1)), axis=0)
    with pytest.raises(IndexError):
        xp.sum(xp.ones(2), axis=1)
    with pytest.raises(TypeError, match="real"):
        xp.astype(xp.asarray(1 + 2j), xp.float32)
    with pytest.raises(ValueError, match="lattice"):
        xp.isdtype(xp.float32, "lattice")
