"""Dynamic int8 compared with float32, both in tensord and in PyTorch with fbgemm. All alternate.

    build/pypi_torch/bin/python -m tests.bench.quantized_bench build/dev/server/tensord [--threads 1 2] [--rounds 3]

Prints a line for each model, number of rows and threads: microseconds per run, the smallest of the rounds' medians.
The PyTorch that runs it makes the models. It must be PyPI's (scripts/setup pypi_torch), because Debian's has no fbgemm.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings

import torch
from torch import nn
from torch.ao.quantization import quantize_dynamic

from tests.bench import machine


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


def layers(*widths):
    parts = []
    for inputs, outputs in zip(widths, widths[1:]):
        parts += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


# name, model, shapes of the input
MODELS = [
    ("linear 768x768", layers(768, 768), [(1, 768), (16, 768), (128, 768)]),
    ("feed forward 768-3072-768", layers(768, 3072, 768), [(1, 768), (16, 768), (128, 768)]),
    ("mlp 1024-2048-2048-1000", layers(1024, 2048, 2048, 1000), [(1, 1024), (32, 1024)]),
    ("lstm 256, 32 steps", Recurrent(), [(32, 1, 256), (32, 8, 256)]),
]


def torch_us(model, x, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        model(x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def tensord_us(binary, path, shape, threads, seconds):
    out = subprocess.run(
        [binary, "bench", path, "--input", ",".join(map(str, shape)), "--threads", str(threads), "--seconds", str(seconds),
         "--latency-only", "--json"], check=True, capture_output=True, text=True).stdout
    return median_of(json.loads(out))


def median_of(report):
    return report["median_ms"] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensord")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.backends.quantized.engine = "fbgemm"
    torch.set_grad_enabled(False)
    print(f"{machine.describe(options.tensord)}\nPyTorch {torch.__version__}; microseconds, median")
    print(f"{'model':28}{'input':>12}{'threads':>8}{'f32':>10}{'int8':>10}{'torch f32':>11}{'torch int8':>11}"
          f"{'int8/f32':>10}{'int8/torch':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for name, model, shapes in MODELS:
            if options.only not in name:
                continue
            model.eval()
            quantized = torch.jit.freeze(torch.jit.script(quantize_dynamic(model, {nn.Linear, nn.LSTM}).eval()))
            plain = torch.jit.freeze(torch.jit.script(model))
            paths = {kind: os.path.join(folder, f"{kind}.pt") for kind in ("f32", "int8")}
            torch.jit.save(plain, paths["f32"])
            torch.jit.save(quantized, paths["int8"])
            for shape in shapes:
                for threads in options.threads:
                    torch.set_num_threads(threads)
                    x = torch.randn(shape)
                    rounds = [[tensord_us(options.tensord, paths["f32"], shape, threads, options.seconds),
                               tensord_us(options.tensord, paths["int8"], shape, threads, options.seconds),
                               torch_us(plain, x, options.seconds), torch_us(quantized, x, options.seconds)]
                              for _ in range(options.rounds)]
                    best = [min(column) for column in zip(*rounds)]
                    print(f"{name:28}{'x'.join(map(str, shape)):>12}{threads:>8}{best[0]:10.1f}{best[1]:10.1f}"
                          f"{best[2]:11.1f}{best[3]:11.1f}{best[1] / best[0]:10.2f}{best[1] / best[3]:11.2f}", flush=True)


if __name__ == "__main__":
    main()
