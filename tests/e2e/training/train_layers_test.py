"""Gradients through every kind of layer and loss of torch.nn in training mode: `tensord run --grad` against PyTorch.

All layers are in one module, with a method for each that gives its result and the gradients of its input and parameters.
"""

import os
import subprocess
import tempfile
import unittest
import warnings

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: F401  the methods below say it

from tests.e2e.models.compare import difference

BINARY = os.environ["TENSORD_BINARY"]
TOLERANCE = 3e-4
R = torch.randn
torch.manual_seed(0)
warnings.filterwarnings("ignore")

# name: (module, input); the result is the module's.
LAYERS = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), R(2, 4, 9)),
    "conv2d": (nn.Conv2d(3, 5, 3, padding=1, padding_mode="reflect"), R(2, 3, 7, 7)),
    "conv2d_depthwise": (nn.Conv2d(4, 4, 3, padding="same", dilation=2, groups=4), R(2, 4, 7, 7)),
    "conv3d": (nn.Conv3d(2, 3, (2, 3, 3)), R(1, 2, 4, 5, 5)),
    "conv_transpose1d": (nn.ConvTranspose1d(3, 4, 3, stride=2), R(2, 3, 5)),
    "conv_transpose2d": (nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1, padding=1), R(2, 3, 5, 5)),
    "batch_norm1d": (nn.BatchNorm1d(4), R(5, 4)),
    "batch_norm2d": (nn.BatchNorm2d(3), R(2, 3, 4, 4)),
    "batch_norm3d": (nn.BatchNorm3d(2, affine=False), R(2, 2, 3, 3, 3)),
    "batch_norm_cumulative": (nn.BatchNorm1d(4, momentum=None), R(5, 4)),
    "batch_norm_of_batch": (nn.BatchNorm1d(4, track_running_stats=False), R(5, 4)),
    "layer_norm": (nn.LayerNorm((3, 4)), R(2, 3, 4)),
    "group_norm": (nn.GroupNorm(2, 4), R(2, 4, 5)),
    "instance_norm1d": (nn.InstanceNorm1d(3, track_running_stats=True), R(2, 3, 6)),
    "instance_norm2d": (nn.InstanceNorm2d(3, affine=True), R(2, 3, 4, 4)),
    "local_response_norm": (nn.LocalResponseNorm(2), R(2, 4, 3, 3)),
    "encoder": (nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation="gelu", batch_first=True, norm_first=True), R(2, 5, 8)),
    "in_place": (nn.Sequential(nn.Linear(4, 5), nn.ReLU6(inplace=True), nn.ELU(inplace=True), nn.Linear(5, 2)), R(3, 4)),
    "in_place_again": (nn.Sequential(nn.Linear(4, 5), nn.SiLU(inplace=True), nn.Linear(5, 2), nn.LeakyReLU(0.1, inplace=True)),
                       R(3, 4)),
    "prelu": (nn.PReLU(3), R(2, 3, 4)),
    "max_pool1d": (nn.MaxPool1d(2), R(2, 3, 8)),
    "max_pool2d": (nn.MaxPool2d(3, 2, 1), R(2, 3, 7, 7)),
    "max_pool2d_ceil": (nn.MaxPool2d(2, ceil_mode=True), R(2, 3, 7, 7)),
    "max_pool3d": (nn.MaxPool3d(2), R(1, 2, 4, 4, 4)),
    "avg_pool1d": (nn.AvgPool1d(2), R(2, 3, 8)),
    "avg_pool2d": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), R(2, 3, 7, 7)),
    "avg_pool3d": (nn.AvgPool3d(2), R(1, 2, 4, 4, 4)),
    "adaptive_avg_pool2d": (nn.AdaptiveAvgPool2d((3, 2)), R(2, 3, 7, 7)),
    "adaptive_max_pool2d": (nn.AdaptiveMaxPool2d((3, 2)), R(2, 3, 7, 7)),
    "lp_pool2d": (nn.LPPool2d(2, 2), R(2, 3, 6, 6).abs()),
    "upsample_nearest": (nn.Upsample(scale_factor=2.0), R(1, 2, 3, 3)),
    "upsample_bilinear": (nn.Upsample(size=(5, 6), mode="bilinear", align_corners=True), R(1, 2, 3, 3)),
    "upsample_bicubic": (nn.Upsample(scale_factor=2.0, mode="bicubic"), R(1, 2, 4, 4)),
    "upsample_linear": (nn.Upsample(scale_factor=2.0, mode="linear"), R(1, 2, 4)),
    "pixel_shuffle": (nn.PixelShuffle(2), R(1, 8, 3, 3)),
    "pixel_unshuffle": (nn.PixelUnshuffle(2), R(1, 2, 4, 4)),
    "reflection_pad": (nn.ReflectionPad2d(2), R(1, 2, 5, 5)),
    "replication_pad": (nn.ReplicationPad2d(2), R(1, 2, 5, 5)),
    "constant_pad": (nn.ConstantPad1d(2, 1.5), R(1, 2, 5)),
    "dropout_of_nothing": (nn.Sequential(nn.Dropout(0.0), nn.Dropout2d(0.0), nn.AlphaDropout(0.0)), R(2, 3, 4, 4)),
    "glu": (nn.GLU(), R(3, 4)),
    "softmax": (nn.Softmax(1), R(3, 4)),
    "log_softmax": (nn.LogSoftmax(1), R(3, 4)),
    "gelu_tanh": (nn.GELU(approximate="tanh"), R(3, 4)),
    **{name: (getattr(nn, name)(), R(3, 4)) for name in
       ("ReLU", "ReLU6", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Softplus", "Softsign", "Tanh", "Sigmoid", "LogSigmoid",
        "Hardtanh", "Hardswish", "Hardsigmoid", "LeakyReLU", "Tanhshrink", "Softshrink", "Hardshrink")},
}
# name: (module, input, what the method does with it)
CALLED = {
    "lstm": (nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), R(2, 6, 4), "m(x)[0]"),
    "lstm_projected": (nn.LSTM(4, 5, proj_size=3), R(6, 2, 4), "m(x)[0]"),
    "gru": (nn.GRU(4, 5, 2, bidirectional=True, batch_first=True), R(2, 6, 4), "m(x)[0]"),
    "rnn": (nn.RNN(4, 5, nonlinearity="relu"), R(6, 2, 4), "m(x)[0]"),
    "gru_cell": (nn.GRUCell(4, 5), R(3, 4), "m(x, m(x))"),
    "lstm_cell": (nn.LSTMCell(4, 5), R(3, 4), "m(x, m(x))[0]"),
    "embedding": (nn.Embedding(6, 4, padding_idx=3), R(2), "m(torch.tensor([[0, 1, 2], [3, 3, 4]])) + x.sum()"),
    "embedding_by_count": (nn.Embedding(6, 4, scale_grad_by_freq=True), R(2), "m(torch.tensor([[0, 1], [3, 3]])) + x.sum()"),
    "embedding_bag": (nn.EmbeddingBag(6, 4, mode="mean"), R(2), "m(torch.tensor([[0, 1, 2], [3, 3, 4]])) + x.sum()"),
    "attention": (nn.MultiheadAttention(8, 2, batch_first=True), R(2, 5, 8), "m(x, x, x)[0]"),
    "attention_alone": (nn.MultiheadAttention(8, 2), R(5, 2, 8), "m(x, x, x, need_weights=False)[0]"),
    "attention_biased": (nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True), R(5, 2, 8), "m(x, x, x)[0]"),
    "decoder": (nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), R(2, 5, 8), "m(x, x)"),
}
# name: the loss of x, which requires a gradient, and y, which does not; both of 3×4
LOSSES = {
    "mse": "F.mse_loss(x, y)",
    "l1": "F.l1_loss(x, y)",
    "smooth_l1": "F.smooth_l1_loss(x, y, beta=0.5)",
    "huber": "F.huber_loss(x, y, delta=0.7)",
    "bce": "F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y))",
    "bce_with_logits": "F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), pos_weight=torch.ones(4) * 2)",
    "kl_div": "F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction='batchmean')",
    "cross_entropy": "F.cross_entropy(x, y.argmax(1), weight=torch.arange(1., 5.), label_smoothing=0.1)",
    "cross_entropy_sum": "F.cross_entropy(x, y.argmax(1), reduction='sum', ignore_index=1)",
    "cross_entropy_of_chances": "F.cross_entropy(x, F.softmax(y, 1), label_smoothing=0.1)",
    "nll": "F.nll_loss(F.log_softmax(x, 1), y.argmax(1))",
    "gaussian_nll": "F.gaussian_nll_loss(x, y, torch.exp(y))",
    "poisson_nll": "F.poisson_nll_loss(x, torch.exp(y), full=True)",
    "hinge_embedding": "F.hinge_embedding_loss(x, torch.sign(y))",
    "margin_ranking": "F.margin_ranking_loss(x, y, torch.ones_like(x), margin=0.5)",
    "soft_margin": "F.soft_margin_loss(x, torch.sign(y))",
    "multilabel_soft_margin": "F.multilabel_soft_margin_loss(x, (y > 0).to(x.dtype))",
    "multi_margin": "F.multi_margin_loss(x, y.argmax(1))",
    "triplet_margin": "F.triplet_margin_loss(x, y, x * y)",
    "cosine_embedding": "F.cosine_embedding_loss(x, y, torch.tensor([1., -1., 1.]))",
    "cosine_similarity": "F.cosine_similarity(x, y).sum()",
    "pairwise_distance": "F.pairwise_distance(x, y).sum()",
    "tensordot": "torch.tensordot(x, y, dims=([1], [1])).pow(2).sum() + torch.cross(x[:, :3], y[:, 1:], dim=1).pow(2).sum()",
    "normalize": "(F.normalize(x) * y).sum() + x.norm() + x.norm(p=1, dim=1).sum()",
}
GRADIENTS = """
def {name}(self, x: Tensor, c: Tensor):
    x = x.detach().requires_grad_()
    m = self.{name}_layer
    y = {call}
    gradients = torch.autograd.grad([(y * y * y * c).sum()], [x{parameters}], allow_unused=True)
    return y.detach(), gradients
"""
LOSS = """
def {name}(self, x: Tensor, y: Tensor):
    x = x.detach().requires_grad_()
    loss = {call}
    return loss.detach(), torch.autograd.grad([loss], [x])
"""


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        for name, (layer, *_) in {**LAYERS, **CALLED}.items():
            setattr(self, f"{name}_layer", layer)

    def forward(self, x: Tensor) -> Tensor:
        return x


def path_of(name: str, parameter: str) -> str:
    path = f"self.{name}_layer"
    for part in parameter.split("."):
        path = f"getattr({path}, '{part}')" if part.isdigit() else f"{path}.{part}"
    # Optional biases are declared as Optional.
    return f", torch.jit._unwrap_optional({path})" if "bias" in parameter.split(".")[-1] else f", {path}"


def build():
    """The scripted module, and the arguments of each of its methods."""
    model = torch.jit.script(Layers().train())
    arguments = {}
    for name, (layer, x, *call) in {**LAYERS, **CALLED}.items():
        parameters = "".join(path_of(name, parameter) for parameter, _ in layer.named_parameters())
        model.define(GRADIENTS.format(name=name, call=call[0] if call else "m(x)", parameters=parameters))
        arguments[name] = (x, torch.tensor(0.5))
    for name, call in LOSSES.items():
        model.define(LOSS.format(name=name, call=call))
        arguments[name] = (R(3, 4), R(3, 4))
    return model, arguments


class TrainLayers(unittest.TestCase):
    def test_gradients(self):
        model, arguments = build()
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.pt")
            command = [BINARY, "run", f"{folder}/model.pt", "--grad"]
            for name, values in arguments.items():
                torch.save(values, f"{folder}/{name}.pt")
                command += ["--call", f"{name},{folder}/{name}.pt,{folder}/{name}.result.pt"]
            expected = {name: getattr(model, name)(*values) for name, values in arguments.items()}
            for flags in ([], ["--no-optimize"]):
                done = subprocess.run([*command, *flags], capture_output=True, text=True, timeout=600)
                self.assertEqual(done.returncode, 0, done.stderr)
                for name in arguments:
                    with self.subTest(name=name, flags=flags):
                        found = torch.load(f"{folder}/{name}.result.pt")
                        self.assertIsNone(difference(found, expected[name], TOLERANCE, name))


if __name__ == "__main__":
    unittest.main(verbosity=2)
