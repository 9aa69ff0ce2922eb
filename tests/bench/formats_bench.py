"""One network as TorchScript, .pt2 and ONNX in tensord, compared with ONNX Runtime and OpenVINO on the same .onnx, and with torch.compile
and AOTInductor on the same .pt2. All alternate:

    build/pypi_torch/bin/python -m tests.bench.formats_bench build/dev/server/tensord [--threads 1 2] [--precisions f32 bf16]

One line for each network, precision and number of threads: microseconds of the fastest run of all rounds. In bf16 tensord and OpenVINO
are asked for it, Inductor gets the network converted to it, and ONNX Runtime has none on a CPU.
The Python is the one of `scripts/setup pypi_torch`; OpenVINO is measured where it can be imported, Inductor where there is a compiler.
"""

import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch import nn

from tests.bench import machine

FORMATS = {"TorchScript": "model.pt", ".pt2": "model.pt2", "ONNX": "model.onnx"}
PEERS = ("ONNX Runtime", "OpenVINO", "torch.compile", "AOTInductor")


class Encoder(nn.Module):
    """BERT of 4 layers, 512 wide, with word and position embeddings."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30522, 512), nn.Parameter(torch.randn(128, 512) * 0.02)
        self.norm = nn.LayerNorm(512)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "qkv": nn.Linear(512, 1536), "out": nn.Linear(512, 512), "norm": nn.LayerNorm(512), "up": nn.Linear(512, 2048),
            "down": nn.Linear(2048, 512), "last": nn.LayerNorm(512)}) for _ in range(4))

    def forward(self, ids):
        x = self.norm(self.words(ids) + self.places)
        for layer in self.layers:
            q, k, v = (part.view(1, 128, 8, 64).transpose(1, 2) for part in layer["qkv"](x).split(512, -1))
            heads = nn.functional.scaled_dot_product_attention(q, k, v)
            x = layer["norm"](x + layer["out"](heads.transpose(1, 2).reshape(1, 128, 512)))
            x = layer["last"](x + layer["down"](nn.functional.gelu(layer["up"](x))))
        return x


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)), torch.randn(8, 784)


def resnet18():
    import torchvision
    return torchvision.models.resnet18(weights=None), torch.randn(1, 3, 224, 224)


def bert_small():
    return Encoder(), torch.randint(0, 30522, (1, 128))


def call_us(call, seconds):
    call()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best * 1e6


def write_files(module, x, folder):
    torch.jit.trace(module, x).save(folder / "model.pt")
    program = torch.export.export(module, (x,))
    torch.export.save(program, folder / "model.pt2")
    torch.onnx.export(program, f=folder / "model.onnx", dynamo=True, verbose=False, external_data=False)
    return program


def onnx_peers(file, x, threads, precision):
    peers = {}
    if precision == "f32":
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 4
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        given = {session.get_inputs()[0].name: x.numpy()}
        peers["ONNX Runtime"] = lambda: session.run(None, given)
    try:
        import openvino
        compiled = openvino.compile_model(str(file), "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                                                             "INFERENCE_PRECISION_HINT": precision})
        request, array = compiled.create_infer_request(), x.numpy()
        peers["OpenVINO"] = lambda: request.infer([array])
    except ImportError:
        pass
    return peers


def program_peers(module, program, x, folder, precision):
    peers = {}
    try:
        if precision == "bf16":
            x = x.bfloat16() if x.is_floating_point() else x
            program = torch.export.export(copy.deepcopy(module).bfloat16(), (x,))
        compiled = torch.compile(program.module(check_guards=False))
        compiled(x)
        peers["torch.compile"] = lambda: compiled(x)
        packed = torch._inductor.aoti_load_package(
            torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "aoti.pt2")))
        peers["AOTInductor"] = lambda: packed(x)
    except Exception as error:
        print(f"Inductor: {type(error).__name__}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
    return peers


def tensord_us(binary, file, arguments, threads, precision, seconds):
    out = subprocess.run([binary, "bench", file, "--args", arguments, "--threads", str(threads), "--latency-only", "--json",
                          "--precision", precision, "--seconds", str(seconds)], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["min_ms"] * 1e3


def measure(options, module, program, x, folder, precision):
    inductor = program_peers(module, program, x, folder, precision)
    for threads in options.threads:
        torch.set_num_threads(threads)
        contenders = {title: lambda file=folder / file: tensord_us(options.tensord, file, folder / "args.pt", threads, precision,
                                                                   options.seconds)
                      for title, file in FORMATS.items()}
        for title, call in {**onnx_peers(folder / "model.onnx", x, threads, precision), **inductor}.items():
            contenders[title] = lambda call=call: call_us(call, options.seconds)
        best = dict.fromkeys(contenders, float("inf"))
        for _ in range(options.rounds):
            for title in random.sample(list(contenders), len(contenders)):
                best[title] = min(best[title], contenders[title]())
        mine = [best[title] for title in FORMATS]
        cells = [f"{best[title]:.0f}" if title in best else "–" for title in (*FORMATS, *PEERS)]
        yield f"{precision} | {threads} | " + " | ".join(cells) + f" | {max(mine) / min(mine):.3f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensord")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--precisions", nargs="+", default=["f32"], choices=["f32", "bf16"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.manual_seed(1)
    print(machine.describe(options.tensord), end="\n\n")
    print("| network | precision | threads | " + " | ".join((*FORMATS, *PEERS)) + " | slowest of the formats |")
    print("|---|---|---|" + "---|" * (len(FORMATS) + len(PEERS) + 1))
    with torch.no_grad(), tempfile.TemporaryDirectory() as name:
        for make in (mlp, resnet18, bert_small):
            if options.only not in make.__name__:
                continue
            folder = pathlib.Path(name) / make.__name__
            folder.mkdir()
            module, x = make()
            program = write_files(module.eval(), x, folder)
            torch.save((x,), folder / "args.pt")
            for precision in options.precisions:
                for row in measure(options, module, program, x, folder, precision):
                    print(f"| {make.__name__} | {row}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    main()
