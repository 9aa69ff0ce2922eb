"""Small models with 8-bit or float16 weights, and float32 inputs: (name, model that PyTorch can script, calls)."""

import torch
from torch import Tensor, nn
from torch.ao.nn import quantized
from torch.ao.nn.intrinsic.quantized.dynamic import LinearReLU
from torch.ao.quantization import (
    convert, float_qparams_weight_only_qconfig, per_channel_dynamic_qconfig, prepare, quantize_dynamic)


def layers(inputs, hidden, outputs):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs)).eval()


def inputs(width):
    """Ranges of every kind: both signs, one, none, and scales that are widened."""
    shapes = [(1, width), (3, width), (2, 4, width), (0, width)]
    out = [(torch.randn(shape),) for shape in shapes]
    plain = torch.randn(5, width)
    return out + [(plain.abs() + 1,), (-plain.abs(),), (torch.zeros(2, width),), (plain * 1e-6,), (plain.abs() * 1e-3,),
                  (plain * 1e30,), (plain * 1e-44,), (torch.randn(width, 6).t(),)]


class Packed(nn.Module):
    """A layer whose weight has zero points, with and without the reduced range."""

    def __init__(self, weight, bias):
        super().__init__()
        self.packed = torch.ops.quantized.linear_prepack(weight, bias)

    def forward(self, x: Tensor) -> Tensor:
        full = torch.ops.quantized.linear_dynamic(x, self.packed)
        return full + torch.ops.quantized.linear_relu_dynamic(x, self.packed, True)


class Prepacking(nn.Module):
    """Packs quantized tensors from the archive at run time."""

    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x: Tensor) -> Tensor:
        packed = torch.ops.quantized.linear_prepack(self.weight, None)
        weight, bias = torch.ops.quantized.linear_unpack(packed)
        assert bias is None
        return torch.ops.quantized.linear_dynamic(x, torch.ops.quantized.linear_prepack(weight, bias), True)


def linear_models():
    quantize = {nn.Linear}
    yield "linear", torch.jit.script(quantize_dynamic(layers(13, 48, 7), quantize)), inputs(13)
    traced = torch.jit.trace(quantize_dynamic(layers(13, 48, 7), quantize), torch.randn(2, 13))
    yield "linear_traced", traced, inputs(13)
    frozen = torch.jit.freeze(torch.jit.script(quantize_dynamic(layers(16, 20, 64), quantize).eval()))
    yield "linear_frozen", frozen, inputs(16)
    wide = quantize_dynamic(layers(130, 200, 33), {nn.Linear: per_channel_dynamic_qconfig})
    yield "linear_per_channel", torch.jit.script(wide), [(torch.randn(n, 130),) for n in (1, 2, 9, 10, 37)]
    no_bias = quantize_dynamic(nn.Sequential(nn.Linear(64, 97, bias=False)).eval(), quantize)
    yield "linear_no_bias", torch.jit.script(no_bias), inputs(64)
    half = quantize_dynamic(layers(13, 48, 7), quantize, dtype=torch.float16)
    yield "linear_float16", torch.jit.script(half), [call for call in inputs(13) if call[0].abs().sum() < 1e6]
    fused = LinearReLU(9, 50)
    fused.set_weight_bias(torch.quantize_per_tensor(torch.randn(50, 9), 0.02, 0, torch.qint8), torch.randn(50))
    yield "linear_relu", torch.jit.script(fused.eval()), inputs(9)
    shifted = torch.quantize_per_tensor(torch.randn(70, 11), 0.03, 5, torch.qint8)
    yield "linear_zero_point", torch.jit.script(Packed(shifted, torch.randn(70))), inputs(11)
    scales, zero_points = torch.rand(20) * 0.05 + 0.01, torch.randint(-9, 9, (20,))
    channels = torch.quantize_per_channel(torch.randn(20, 11), scales, zero_points, 0, torch.qint8)
    yield "linear_zero_points", torch.jit.script(Packed(channels, None)), inputs(11)
    yield "linear_prepacking", torch.jit.script(Prepacking(channels)), inputs(11)


class Recurrent(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.layer(x)
        return self.head(y)


class RecurrentPacked(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        y, _ = self.layer(packed)
        return nn.utils.rnn.pad_packed_sequence(y)[0]


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(7, 10), nn.GRUCell(10, 10)
        self.tanh, self.relu = nn.RNNCell(10, 10), nn.RNNCell(10, 10, nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.lstm(x)
        h, c = self.lstm(x, (h, c))
        return self.relu(self.tanh(self.gru(h, c)))


def recurrent_models():
    def dynamic(model, dtype=torch.qint8):
        return quantize_dynamic(model.eval(), {nn.LSTM, nn.GRU, nn.Linear, nn.LSTMCell, nn.GRUCell, nn.RNNCell}, dtype=dtype)

    steps = [(torch.randn(6, 3, 7),), (torch.randn(1, 1, 7),)]
    lengths = [(torch.randn(6, 3, 7), torch.tensor([2, 6, 4]))]
    yield "lstm", torch.jit.script(dynamic(Recurrent(nn.LSTM(7, 5, 2, bidirectional=True)))), steps
    yield "lstm_float16", torch.jit.script(dynamic(Recurrent(nn.LSTM(7, 10)), torch.float16)), steps
    yield "gru", torch.jit.script(dynamic(Recurrent(nn.GRU(7, 5, 2, bidirectional=True)))), steps
    batch_first = dynamic(Recurrent(nn.LSTM(7, 10, batch_first=True)))
    yield "lstm_traced", torch.jit.trace(batch_first, torch.randn(3, 6, 7)), [(torch.randn(3, 6, 7),)]
    yield "lstm_packed", torch.jit.script(dynamic(RecurrentPacked(nn.LSTM(7, 5, bidirectional=True)))), lengths
    yield "gru_packed", torch.jit.script(dynamic(RecurrentPacked(nn.GRU(7, 5)))), lengths
    yield "cells", torch.jit.script(dynamic(Cells())), [(torch.randn(3, 7),), (torch.randn(1, 7),)]


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 9)
        self.bag = nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)

    def forward(self, rows: Tensor, indices: Tensor, offsets: Tensor) -> Tensor:
        bags = self.bag(indices, offsets)
        return torch.cat([self.table(rows).flatten(), bags.flatten()])


def embedding_models():
    rows, indices = torch.tensor([[0, 3], [19, 3]]), torch.tensor([1, 2, 3, 19, 0, 7])
    calls = [(rows, indices, torch.tensor([0, 2, 2, 6])), (rows[:1], indices[:0], torch.tensor([0]))]
    model = Bags().eval()
    model.table.qconfig = model.bag.qconfig = float_qparams_weight_only_qconfig
    yield "embedding_8bit", torch.jit.script(convert(prepare(model))), calls
    # As made by torch.ao.quantization.convert, except for the dtype, which it sets incorrectly for 4-bit tables.
    four = Bags().eval()
    four.table = quantized.Embedding(20, 10, _weight=four_bits(20, 10), dtype=torch.quint4x2)
    four.bag = quantized.EmbeddingBag(20, 8, _weight=four_bits(20, 8), dtype=torch.quint4x2, mode="sum",
                                      include_last_offset=True)
    yield "embedding_4bit", torch.jit.script(four), calls


def four_bits(rows, columns):
    weight = torch.randn(rows, columns)
    scales = (weight.max(1).values - weight.min(1).values) / 15
    return torch.quantize_per_channel(weight, scales, -weight.min(1).values / scales, 0, torch.quint4x2)
