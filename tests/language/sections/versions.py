"""Archives of older versions, whose operators mean what they meant then."""

import torch
from torch import Tensor

from tests.language.case import Section

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
