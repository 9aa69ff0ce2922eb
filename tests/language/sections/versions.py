"""Archives of older versions, whose operators keep their old meaning, and archives for mobile."""

import torch
from torch import Tensor, nn
from torch.utils.mobile_optimizer import MobileOptimizerType, optimize_for_mobile

from tests.language.case import Section
from tests.language.sections.decoding import values

section = Section()
T = torch.tensor
INTS, FLOATS = (T([7, -7, 5]), T([2, 2, 3])), (T([7.0, -7.0, 5.0]), T([2.0, 2.0, 3.0]))


def divisions(x: Tensor, y: Tensor):
    z = x.clone()
    z /= y.to(x.dtype)
    return torch.div(x, y), torch.div(x, 2), x / y, x / 2.0, 7 / y, z, x.size(0) / 2


def in_place(x: Tensor, y: Tensor):
    z = x.clone()
    z.div_(2)
    w = x.clone()
    w.div_(y)
    return z, w


def fills(x: Tensor, y: Tensor):
    return (torch.full([2], 3), torch.full([2], 2.5), torch.full([1, 2], 3, dtype=torch.int32), torch.full([2], float(x[0])), torch.full([0], 1),
            torch.nn.functional.gelu(x.to(torch.float64)).shape, torch.linspace(0, 1, 3), torch.logspace(0, 1, 2))


for version in (1, 2, 3, 4, 5, 8, 10):
    for function in (divisions, in_place, fills):
        section.made(f"{function.__name__}_of_{version}", lambda function=function: function, INTS, FLOATS, rtol=1e-6, version=version)


class Mobile(nn.Module):
    """The layers that XNNPACK has, with and without bounds."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1, stride=2)
        self.norm = nn.BatchNorm2d(4)
        self.depthwise = nn.Conv2d(4, 4, (3, 2), groups=4, dilation=(1, 2), bias=False)
        self.up = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)
        self.linear = nn.Linear(3, 5)
        self.last = nn.Linear(5, 2, bias=False)
        self.drop = nn.Dropout()
        with torch.no_grad():
            for i, p in enumerate(list(self.parameters())):
                p.copy_(torch.linspace(-0.7, 0.9, p.numel() + i)[i:].flip(0).reshape(p.shape))

    def forward(self, x: Tensor):
        x = torch.relu(self.norm(self.conv(x)))
        x = self.up(nn.functional.hardtanh(self.depthwise(x), 0.0, 6.0))
        x = nn.functional.relu(self.linear(self.drop(x.mean([2, 3]))))
        return self.last(x), x


PICTURE = torch.linspace(-1, 1, 2 * 2 * 9 * 11).reshape(2, 2, 9, 11).cos()
WITHOUT_LAYERS = {MobileOptimizerType.INSERT_FOLD_PREPACK_OPS}


def newer_arguments(q: Tensor, k: Tensor):
    grouped = torch.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    padded = torch.nn.utils.rnn.pad_sequence([q[0, 0], k[0, 0]], True, 0.5, padding_side="left")
    frames = torch.stft(q[0, 0].flatten(), 8, 3, 5, center=False, return_complex=True, align_to_window=True).abs()
    return grouped, padded, frames, torch.std(q, dim=[1], correction=0.5)


section.made("newer_arguments", lambda: torch.jit.script(newer_arguments), (values(2, 4, 5, 8), values(2, 2, 7, 8)), rtol=1e-4, since=(2, 7))
section.made("mobile", lambda: optimize_for_mobile(torch.jit.script(Mobile().eval())), (PICTURE,), (PICTURE[:1, :, 2:],), rtol=1e-4, before=(2,))
section.made("mobile_without_layers", lambda: optimize_for_mobile(torch.jit.script(Mobile().eval()), WITHOUT_LAYERS), (PICTURE,), rtol=1e-4, before=(2,))
section.made("lite", lambda: torch.jit.script(Mobile().eval()), (PICTURE,), rtol=1e-4, lite=True)
section.made("lite_mobile", lambda: optimize_for_mobile(torch.jit.script(Mobile().eval())), (PICTURE,), rtol=1e-4, lite=True, before=(2,))
