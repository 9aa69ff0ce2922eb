"""Writes archives that Debian's PyTorch 1.13 makes, whose engines are qnnpack and onednn; make_models runs them with fbgemm.

    /usr/bin/python3 -m tests.quantized.make_old FOLDER
"""

import sys
import warnings

import torch
from torch import nn
from torch.ao.quantization import convert, get_default_qconfig, prepare, quantize_dynamic


class Static(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.conv, self.relu, self.head = nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Linear(8, 5)

    def forward(self, x):
        x = self.relu(self.conv(self.quant(x)))
        return self.dequant(self.head(nn.functional.adaptive_avg_pool2d(x, (1, 1)).flatten(1)))


def main():
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    for engine in ("qnnpack", "onednn"):
        torch.backends.quantized.engine = engine
        layers = nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 7)).eval()
        torch.jit.save(torch.jit.script(quantize_dynamic(layers, {nn.Linear})), f"{sys.argv[1]}/old_linear_{engine}.pt")
        model = Static().eval()
        model.qconfig = get_default_qconfig(engine)
        prepared = prepare(model)
        prepared(torch.randn(4, 3, 11, 11))
        torch.jit.save(torch.jit.script(convert(prepared)), f"{sys.argv[1]}/old_static_{engine}.pt")


if __name__ == "__main__":
    main()
