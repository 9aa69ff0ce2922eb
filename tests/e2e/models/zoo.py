"""torchvision's models, scripted and traced, through `tensord run` against PyTorch: what is not supported, what differs.

Usage: /usr/bin/python3 -m tests.e2e.models.zoo TENSORD_BINARY [--models alexnet,swin_t,…] [--flags "--threads 1"]

Prints a line for each model and way of saving it; the exit status is the number of lines that are not ok. A failure is tried
again with --no-optimize, to tell an optimization from an operator. Too slow for ctest.
"""

import argparse
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import warnings

import torch
import torchvision

from tests.models import make_models

MODELS = ["alexnet", "vgg11", "resnet18", "squeezenet1_1", "densenet121", "mobilenet_v2", "mobilenet_v3_large", "mnasnet1_0",
          "shufflenet_v2_x1_0", "googlenet", "inception_v3", "regnet_y_400mf", "resnext50_32x4d", "efficientnet_b0",
          "efficientnet_v2_s", "convnext_tiny", "vit_b_16", "swin_t", "swin_v2_t", "maxvit_t",
          "segmentation.fcn_resnet50", "segmentation.deeplabv3_mobilenet_v3_large", "segmentation.lraspp_mobilenet_v3_large"]
IMAGE_SIZES = {"inception_v3": 299, "swin_v2_t": 256}


def build(name: str):
    torch.manual_seed(0)
    module, _, function = name.rpartition(".")
    options = {"weights": None}
    if module:
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options["init_weights"] = False
    model = getattr(getattr(torchvision.models, module) if module else torchvision.models, function)(**options)
    model = make_models.condition(model)
    size = IMAGE_SIZES.get(name, 224)
    return make_models.fit_statistics(model, torch.randn(2, 3, size, size)).eval(), torch.randn(2, 3, size, size)


def tensors(value, out: list) -> list:
    if isinstance(value, torch.Tensor):
        out.append(value)
    elif isinstance(value, dict):
        tensors(list(value.values()), out)
    elif isinstance(value, (tuple, list)):
        for item in value:
            tensors(item, out)
    return out


def run(binary: str, model: str, folder: pathlib.Path, flags: list):
    """The result, or tensord's error."""
    result = folder / "result.pt"
    result.unlink(missing_ok=True)
    done = subprocess.run([binary, "run", model, "--call", f"forward,{folder / 'args.pt'},{result}", *flags],
                          capture_output=True, text=True)
    return torch.load(result) if done.returncode == 0 else done.stderr.strip() or f"exit status {done.returncode}"


def verdict(got, want) -> str:
    if isinstance(got, str):
        return got
    got, want = tensors(got, []), tensors(want, [])
    if [x.shape for x in got] != [x.shape for x in want]:
        return f"shapes {[tuple(x.shape) for x in got]} instead of {[tuple(x.shape) for x in want]}"
    worst = max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(got, want))
    return "" if worst < 1e-4 else f"differs by {worst:.1e} of the largest value"


def check(binary: str, name: str, way: str, flags: list) -> str:
    model, image = build(name)
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        archive = str(folder / "model.pt")
        with torch.inference_mode(False), torch.no_grad():
            saved = torch.jit.script(model) if way == "scripted" else torch.jit.trace(model, image[:1], strict=False)
            saved.save(archive)
            want = saved(image)
        torch.save((image,), folder / "args.pt")
        problem = verdict(run(binary, archive, folder, flags), want)
        if problem and not verdict(run(binary, archive, folder, [*flags, "--no-optimize"]), want):
            problem += " (right with --no-optimize)"
        return problem


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=os.path.abspath)
    parser.add_argument("--models", type=lambda argument: argument.split(","), default=MODELS)
    parser.add_argument("--flags", type=shlex.split, default=[])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    problems = 0
    for name in options.models:
        for way in ("scripted", "traced"):
            try:
                problem = check(options.binary, name, way, options.flags)
            except Exception as error:  # PyTorch itself cannot save or run it this way
                print(f"{name}, {way}: not made: {str(error).strip().splitlines()[-1][:200]}", flush=True)
                continue
            problems += bool(problem)
            print(f"{name}, {way}: {problem or 'ok'}", flush=True)
    return min(problems, 100)


if __name__ == "__main__":
    sys.exit(main())
