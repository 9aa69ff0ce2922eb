import pytest
import torch

from support import from_torch
from tensord import engine

VALUES = [
    torch.tensor(1.5), torch.tensor(3), torch.tensor(True), torch.arange(5), torch.arange(6.0).reshape(2, 3), torch.rand(3, 4), torch.zeros(0), torch.zeros(0, 3),
    torch.tensor([1e-5, 1.0]), torch.tensor([1e9, 2.0]), torch.tensor([1.0, 2000.0]), torch.tensor([0.001, 2.5]), torch.arange(2000.0), torch.arange(2000),
    torch.arange(20000).reshape(10, 20, 100), torch.rand(100, 30), torch.tensor([float("nan"), 1.0, float("inf")]),
    torch.tensor([float("nan")]), torch.tensor([float("inf"), -float("inf")]), torch.tensor([True, False]), torch.arange(3, dtype=torch.int8),
    torch.rand(2, dtype=torch.float64), torch.rand(2, 2).half(), torch.rand(2, 2).bfloat16(), torch.arange(100.0), torch.arange(-30, 30), -torch.rand(3),
    torch.rand(2, 3, 4), torch.rand(1, 1, 1, 2), torch.tensor([[1.0, 0.0], [0.0, 1e-8]]), torch.tensor([0.0, 0.0]), torch.tensor([1e-8]),
    torch.zeros(3, dtype=torch.uint8), torch.zeros(2, 0, dtype=torch.int64), torch.ones(2, requires_grad=True), torch.tensor(float("nan")),
    torch.tensor([1 + 2j, 3.5 - 1j]),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{str(v.dtype)[6:]}{list(v.shape)}")
def test_as_pytorch(value):
    assert repr(from_torch(value)).replace("engine.", "torch.") == repr(value)


def test_with_history():
    x = engine.ones(2, requires_grad=True)
    assert repr(x * x) == "tensor([1., 1.], grad_fn=<MulBackward0>)"
    assert repr(engine.nn.Parameter(engine.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_options():
    try:
        engine.set_printoptions(precision=2, sci_mode=True)
        assert repr(engine.tensor([1.234, 5.0])) == "tensor([1.23e+00, 5.00e+00])"
    finally:
        engine.set_printoptions(profile="default")
    assert repr(engine.tensor([1.234, 5.0])) == "tensor([1.2340, 5.0000])"


def test_formats():
    assert f"{engine.tensor(1.23456):.2f}" == "1.23" and f"{engine.tensor([1])}" == "tensor([1])"


@pytest.mark.parametrize("layout", ["sparse", "sparse_csr"])
def test_sparse(layout):
    dense = torch.tensor([[0.0, 1.5], [2.0, 0.0]])
    expected = repr(getattr(dense, f"to_{layout}")())
    assert repr(getattr(from_torch(dense), f"to_{layout}")()).replace("engine.", "torch.") == expected


class _Quantizing(torch.nn.Module):
    def forward(self, x):
        return torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)


def test_quantized(tmp_path):
    torch.jit.script(_Quantizing()).save(str(tmp_path / "model.pt"))
    x = engine.jit.load(str(tmp_path / "model.pt"))(engine.tensor([[1.0, 2.5], [0.0, -1.0]]))
    assert x.is_quantized and x.dtype is engine.quint8 and x.shape == (2, 2)
    expected = repr(_Quantizing()(torch.tensor([[1.0, 2.5], [0.0, -1.0]])))
    assert repr(x).replace("engine.", "torch.") == expected
    assert x.dequantize().tolist() == [[1.0, 2.5], [0.0, -1.0]]
    for read in (x.numpy, x.stride, x.tolist, x.data_ptr):
        with pytest.raises((engine.UnimplementedError, TypeError), match="quint8|quantized"):
            read()
