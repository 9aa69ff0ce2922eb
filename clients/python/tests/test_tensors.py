"""Converts arrays of every kind to the protocol's bytes and back."""

import numpy as np
import pytest

import tensord
from tensord._tensors import dtype_of, from_buffer, needs_datatype, to_buffer, to_tensor

DTYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64"]


def round_trip(value, datatype=""):
    tensor = to_tensor(value, datatype)
    return from_buffer(memoryview(to_buffer(tensor)), tensor.datatype, tensor.data.shape), tensor.datatype


@pytest.mark.parametrize("datatype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 4), (1, 2, 1, 2)])
def test_numpy(datatype, shape):
    values = (np.random.default_rng(0).random(shape) * 100).astype(dtype_of(datatype))
    back, name = round_trip(values)
    assert name == datatype and back.dtype == values.dtype and back.shape == shape
    np.testing.assert_array_equal(back, values)


def test_memory_is_not_copied_where_it_lies_in_order():
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(np.frombuffer(to_buffer(to_tensor(values)), np.float32), values)
    data = memoryview(bytearray(values.tobytes()))
    assert np.shares_memory(from_buffer(data, "FP32", (2, 3)), np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("values", [
    np.arange(12).reshape(3, 4).T, np.arange(24)[::-2], np.arange(5, dtype=">i4"),
    np.broadcast_to(np.float32(2), (3, 2)),
    np.asfortranarray(np.ones((3, 2))), np.float32(1.5), np.arange(3, dtype=">f8")[::2],
])
def test_memory_in_another_order(values):
    back, _ = round_trip(values)
    np.testing.assert_array_equal(back, values)


def test_unaligned_bytes_become_an_aligned_array():
    values = np.arange(5, dtype=np.float64)
    back = from_buffer(memoryview(b"x" + values.tobytes())[1:], "FP64", (5,))
    assert back.flags.aligned
    np.testing.assert_array_equal(back, values)


@pytest.mark.parametrize("value, datatype, dtype", [
    ([1, 2], "FP32", np.float32), (3, "INT64", np.int64), ([[True]], "BOOL", np.bool_), ([1.5], "", np.float64),
    (2.5, "FP16", np.float16), ((1, 2), "UINT8", np.uint8),
])
def test_lists_take_the_type_of_the_model(value, datatype, dtype):
    assert needs_datatype(value)
    back, name = round_trip(value, datatype)
    assert back.dtype == dtype and name == (datatype or "FP64")
    np.testing.assert_array_equal(back, np.asarray(value, dtype))


@pytest.mark.parametrize("value, datatype", [
    (["a"], "FP32"), ([[1], [2, 3]], "FP32"), ([300], "UINT8"), ([-1], "UINT64"), ([1.5], "INT32"), ([2**70], "INT64"),
    (np.array(1j), "")])
def test_values_that_make_no_tensor(value, datatype):
    with pytest.raises(tensord.InvalidArgumentError):
        to_tensor(value, datatype)


TEXTS = [b"", b"a", "é", "日本", b"\0zeros\0", b"x" * 300]


@pytest.mark.parametrize("value", [
    np.array(TEXTS, object).reshape(2, 3), TEXTS, "alone", b"bytes\0", np.array(["a", "bc"]), np.array([b"a", b"bc"]),
    np.array([], object), [["a"], ["b"]]])
def test_strings(value):
    back, name = round_trip(value, "BYTES")
    expected = np.array(value, object)
    assert name == "BYTES" and back.shape == expected.shape
    assert list(back.reshape(-1)) == [item.encode() if isinstance(item, str) else item for item in expected.reshape(-1)]


@pytest.mark.parametrize("data, shape", [(b"\1\0\0\0", (1,)), (b"\1\0\0\0ab", (1,)), (b"\1\0\0\0a", (2,)),
                                         (b"\xff\xff\xff\xff", (1,)), (b"\0\0", (0,))])
def test_strings_that_do_not_fit(data, shape):
    with pytest.raises(tensord.InternalError):
        from_buffer(memoryview(data), "BYTES", shape)


def test_numbers_that_do_not_fit():
    with pytest.raises(tensord.InternalError, match="7 bytes"):
        from_buffer(memoryview(b"1234567"), "FP32", (2,))
    with pytest.raises(tensord.InternalError, match="unknown type 'FP8'"):
        from_buffer(memoryview(b"1"), "FP8", (1,))


# Values and the bits of the nearest bfloat16, ties to even.
BFLOAT16 = [(0.0, 0), (1.0, 0x3F80), (-2.5, 0xC020), (1.00390625, 0x3F80), (1.01171875, 0x3F82), (3.4e38, 0x7F80),
            (float("inf"), 0x7F80), (1e-40, 0x0001)]


def test_bfloat16_is_rounded():
    tensor = tensord.bfloat16([value for value, _ in BFLOAT16])
    assert tensor.datatype == "BF16" and tensor.data.tolist() == [bits for _, bits in BFLOAT16]
    assert np.isnan(round_trip(tensord.bfloat16([np.nan]))[0].astype(np.float32))[0]
    assert tensord.bfloat16(1.5).data.shape == ()


def test_bfloat16_comes_back():
    back, name = round_trip([1.0, -2.5], "BF16")
    assert name == "BF16" and back.astype(np.float32).tolist() == [1.0, -2.5]


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([[1, 2.5], [-3, 4]], ml_dtypes.bfloat16)
    back, name = round_trip(values.T)
    assert name == "BF16" and back.dtype == values.dtype
    np.testing.assert_array_equal(back.astype(np.float32), values.T.astype(np.float32))


def test_types_without_a_counterpart():
    for values in (np.zeros(2, np.complex64), np.zeros(2, "M8[s]")):
        with pytest.raises(tensord.InvalidArgumentError, match="no counterpart"):
            to_tensor(values)


class Lent:
    """An array that has only __array_interface__."""

    def __init__(self, array):
        self.keep = array
        self.__array_interface__ = array.__array_interface__


class LentByDlpack:
    """An array that has only DLPack."""

    def __init__(self, array, device=(1, 0)):
        self._array = array
        self._device = device

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._device


@pytest.mark.parametrize("lend", [Lent, LentByDlpack])
def test_arrays_of_other_libraries_are_used_in_place(lend):
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    tensor = to_tensor(lend(values))
    assert tensor.datatype == "INT16" and np.shares_memory(tensor.data, values)
    np.testing.assert_array_equal(to_tensor(lend(np.ascontiguousarray(values.T))).data, values.T)
    np.testing.assert_array_equal(to_tensor(lend(values[:, ::2])).data, values[:, ::2])


def test_lent_memory_lives_as_long_as_the_tensor():
    tensor = to_tensor(LentByDlpack(np.full(1 << 16, 7, np.int64)))
    np.random.default_rng(0).random(1 << 16)
    assert (tensor.data == 7).all()


def test_arrays_of_other_devices_are_refused():
    with pytest.raises(tensord.InvalidArgumentError, match="move it to the CPU"):
        to_tensor(LentByDlpack(np.zeros(1), device=(2, 0)))


def test_torch():
    torch = pytest.importorskip("torch")
    values = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    tensor = to_tensor(values)
    assert tensor.datatype == "FP32" and tensor.data.__array_interface__["data"][0] == values.data_ptr()
    np.testing.assert_array_equal(to_tensor(values.T).data, values.T.numpy())
    assert to_tensor(torch.zeros(0, 3)).data.shape == (0, 3)
    half = to_tensor(values.to(torch.bfloat16))
    assert half.datatype == "BF16" and half.data.tolist() == tensord.bfloat16(values.numpy()).data.tolist()
    with pytest.raises(tensord.InvalidArgumentError, match="grad"):
        to_tensor(values.clone().requires_grad_())
    result = tensord.Result({"y": np.frombuffer(values.numpy().tobytes(), np.float32)})
    assert torch.equal(torch.from_dlpack(result), values.reshape(-1))
