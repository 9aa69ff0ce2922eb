"""Small models of quint8 from input to output, made by PyTorch's eager and FX quantization, and single operators.

Sizes are multiples of 64: PyTorch's vector code and what it does one by one at the end round differently.
"""

import torch
from torch import Tensor, nn
from torch.ao.quantization import convert, get_default_qconfig, get_default_qconfig_mapping, prepare
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
from torch.ao.nn.quantized import FloatFunctional


class Block(nn.Module):
    """Inverted residual, as in MobileNet: 1x1, depthwise, 1x1, sum."""

    def __init__(self, channels):
        super().__init__()
        wide = 2 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
            nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.skip = FloatFunctional()

    def forward(self, x: Tensor) -> Tensor:
        return self.skip.add(x, self.layers(x))


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.first = nn.Conv2d(3, 10, 3, stride=2, padding=1)
        self.relu = nn.ReLU()
        self.block = Block(10)
        self.grouped = nn.Conv2d(10, 6, 3, groups=2, dilation=2, padding=2)
        self.join = FloatFunctional()
        self.scale = FloatFunctional()
        self.pool = nn.MaxPool2d(2)
        self.average = nn.AdaptiveAvgPool2d((2, 2))
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.first(self.quant(x)))
        x = self.block(x)
        x = self.join.cat([x, self.grouped(x)], 1)
        x = self.scale.mul(x, x)
        x = self.average(self.pool(x))
        return self.dequant(self.head(torch.flatten(x, 1)))

    def fuse(self):
        parts = [["first", "relu"], *[[f"block.layers.{i + j}" for j in range(3)] for i in (0, 3)],
                 ["block.layers.6", "block.layers.7"]]
        torch.ao.quantization.fuse_modules(self, parts, inplace=True)


class Layers1d3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.three = nn.Conv1d(4, 8, 3, padding=1), nn.Conv3d(1, 4, 2)
        self.act, self.swish, self.leaky = nn.ReLU6(), nn.Hardswish(), nn.LeakyReLU(0.1)
        self.sigmoid, self.tanh = nn.Sigmoid(), nn.Tanh()

    def forward(self, x: Tensor) -> Tensor:
        y = self.leaky(self.swish(self.one(x)))
        z = self.three(torch.unsqueeze(torch.unsqueeze(y, 1), 1).expand(-1, -1, 2, -1, -1))
        return torch.cat([self.sigmoid(z).flatten(1), self.tanh(z).permute(0, 2, 3, 4, 1).reshape(x.shape[0], -1)], 1)


def calibrated(model, run):
    for _ in range(3):
        run(model)
    return model


def eager(model, run, engine):
    model.eval()
    if hasattr(model, "fuse"):
        model.fuse()
    model.qconfig = get_default_qconfig(engine)
    return convert(calibrated(prepare(model), run))


def fx(model, example, engine):
    prepared = prepare_fx(model.eval(), get_default_qconfig_mapping(engine), (example,))
    return convert_fx(calibrated(prepared, lambda m: m(torch.randn_like(example))))


class Operators(nn.Module):
    """Properties of quantized tensors, and unary functions."""

    def forward(self, x: Tensor) -> Tensor:
        q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        out = [torch.dequantize(q), torch.int_repr(q).to(torch.float32), torch.relu(q).dequantize(),
               torch.nn.functional.hardtanh(q, -1.0, 2.0).dequantize(), torch.sigmoid(q).dequantize(),
               torch.tanh(q).dequantize(), q[:, 1:].dequantize().sum().reshape(1, 1).expand(x.size(0), x.size(1)),
               torch.nn.functional.leaky_relu(q, 0.2).dequantize()]
        signed = torch.quantize_per_tensor(x, 0.1, -3, torch.qint8)
        out.append(torch.ops.quantized.add(signed, signed, 0.2, 5).dequantize())
        wide = torch.quantize_per_tensor(x, 0.001, 0, torch.qint32)
        out.append(wide.dequantize())
        out.append(torch.ops.quantized.add_scalar(q, 1.5).dequantize())
        out.append(torch.ops.quantized.add_scalar(q, -20.0).dequantize())
        out.append(torch.ops.quantized.mul_scalar(q, 0.7).dequantize())
        out.append(torch.ops.quantized.mul_scalar(q, -0.7).dequantize())
        again = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        view = again[2:]
        torch.nn.functional.relu(view, inplace=True)
        out.append(again.dequantize())
        out.append(torch.ops.quantized.mul_relu(q, q, 0.3, 20).dequantize())
        out.append(torch.ops.quantized.elu(q, 0.05, 30).dequantize())
        scale: float = q.q_scale()
        out.append(torch.full_like(x, scale + float(q.q_zero_point()) + float(q.is_quantized)))
        return torch.stack(out)


class Channels(nn.Module):
    def forward(self, x: Tensor, scales: Tensor, zero_points: Tensor) -> Tensor:
        q = torch.quantize_per_channel(x, scales, zero_points, 1, torch.qint8)
        return q.dequantize() + q.int_repr() + q.q_per_channel_scales().to(torch.float32) + float(q.q_per_channel_axis())


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(3)), nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        q = torch.quantize_per_tensor(x, 0.03, 90, torch.quint8)
        y = torch.ops.quantized.batch_norm2d(q, self.weight, self.bias, self.bias, self.weight, 1e-3, 0.05, 70)
        z = torch.nn.functional.interpolate(q, scale_factor=2.0, mode="nearest")
        a = torch.nn.functional.avg_pool2d(y, 2)
        b = torch.nn.functional.max_pool2d(y, 3, 2, 1)
        return torch.cat([t.dequantize().flatten() for t in [y, z, a, b]])


def static_models(engine):
    image = torch.randn(2, 3, 16, 16)
    run = lambda m: m(torch.randn(2, 3, 16, 16))  # noqa: E731
    convolutions = eager(Convolutions(), run, engine)
    yield "convolutions", torch.jit.script(convolutions), [(image,), (image[:1] * 3,)]
    frozen = torch.jit.freeze(torch.jit.script(eager(Convolutions(), run, engine).eval()))
    yield "convolutions_frozen", frozen, [(image,)]
    yield "convolutions_fx", torch.jit.script(fx(Convolutions(), image, engine)), [(image,)]
    line = torch.randn(4, 4, 16)
    yield "layers_1d_3d", torch.jit.trace(fx(Layers1d3d(), line, engine), line), [(line,)]
    yield "operators", torch.jit.script(Operators()), [(torch.randn(8, 16) * 3,)]
    scales, zero_points = torch.rand(5).double() * 0.1 + 0.01, torch.tensor([0, 3, -4, 100, 1])
    yield "channels", torch.jit.script(Channels()), [(torch.randn(4, 5), scales, zero_points)]
    yield "norms", torch.jit.script(Norms()), [(torch.randn(2, 3, 8, 8),)]
