#!/usr/bin/env python3
"""Writes reference models with PyTorch: make_models.py DIRECTORY [NAME…].

Tests call ensure(DIRECTORY), which makes what is not there yet. For each model and each way of saving it (scripted, traced) there are
  NAME.WAY.pt            the archive
  NAME.WAY.N.METHOD.args.pt, NAME.WAY.N.METHOD.result.pt   calls, in order
and NAME.json lists them. Everything comes from fixed seeds.
"""

import fcntl
import json
import os
import sys

import torch
import torchvision
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import alias_models  # noqa: E402
import batch_models  # noqa: E402
import detection_models  # noqa: E402
import language_models  # noqa: E402
import layer_models  # noqa: E402
import recurrent_models  # noqa: E402
import script_models  # noqa: E402

VISION = ["resnet18", "resnet50", "vgg11", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "densenet121",
          "efficientnet_b0"]


def condition(model):
    """Random weights that keep activations in a reasonable range, so that outputs differ."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(module.weight, 0.8, 1.2)
            nn.init.uniform_(module.bias, -0.1, 0.1)
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
        elif isinstance(module, nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.8, 1.2)
            nn.init.uniform_(module.bias, -0.1, 0.1)
        elif isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_normal_(module.weight)
    return model.eval()


def fit_statistics(model, x):
    """Sets running statistics to those of x, so that activations of deep random networks neither vanish nor explode."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for module in norms:
        module.momentum = 1.0
        module.train()
    with torch.no_grad():
        model(x)
    for module in norms:
        module.momentum = 0.1
        module.running_var.mul_(1.1).add_(0.05)
        module.eval()
    return model


def vision(name):
    model = condition(getattr(torchvision.models, name)(weights=None))
    x = torch.randn(4, 3, 224, 224)
    fit_statistics(model, x)
    calls = [("forward", (x[:1].clone(),)), ("forward", (x[1:3].clone(),))]
    return model, ["scripted", "traced"], calls


def mlp():
    model = condition(script_models.Mlp())
    return model, ["scripted", "traced"], [("forward", (torch.randn(3, 16),)), ("forward", (torch.randn(1, 16),))]


def encoder():
    model = condition(script_models.Encoder())
    ids = torch.randint(1, 1000, (2, 24))
    mask = torch.ones(2, 24, dtype=torch.int64)
    mask[1, 15:] = 0
    long_ids = torch.randint(1, 1000, (3, 24))
    calls = [("forward", (ids, mask)), ("forward", (long_ids, torch.ones(3, 24, dtype=torch.int64)))]
    return model, ["scripted", "traced"], calls


def constants():
    """In traces, its numbers are saved as 0-d tensors of float64 and int64."""
    return script_models.Constants().eval(), ["scripted", "traced"], [("forward", (torch.arange(6).view(2, 3),))]


def padded_encoder():
    """nn.TransformerEncoder with a padding mask: PyTorch omits the padding, and the result is as long as the longest
    sequence."""
    model = condition(script_models.PaddedEncoder()).requires_grad_(False)
    x = torch.randn(3, 5, 8)
    lengths = [[3, 2, 4], [5, 1, 5], [0, 2, 1], [0, 0, 0]]
    masks = [torch.arange(5) >= torch.tensor(row).unsqueeze(1) for row in lengths]
    holes = torch.tensor([[1, 0, 0, 1, 1], [0, 0, 1, 1, 1], [0, 1, 0, 0, 1]]).bool()
    return model, ["scripted", "traced"], [("forward", (x, mask)) for mask in [*masks, holes]]


def language():
    model = script_models.Language().eval()
    x = torch.randn(3, 4)
    calls = [
        ("forward", (x,)),
        ("forward", (x, 27, ["a", "_skipped", "b", "c"])),
        ("forward", (x, 1, ["a", "b", "c", "d", "e", "f"])),
        ("remember", (torch.arange(4.0),)),
        ("remember", (torch.ones(4),)),
        ("forward", (x, 9, None)),
    ]
    return model, ["scripted"], calls


def features():
    x = torch.randn(3, 4)
    calls = [("forward", (x, 0)), ("forward", (x, 1)), ("forks", (x,)), ("objects", (2,)), ("objects", (9,)),
             ("strings", ("ab-cd-a", 1.5)), ("dicts", ({"b": 5, "a": 3, "q": 1},)), ("union", (3,)), ("union", ("x",)),
             ("union", (x,)), ("numbers", (7, -2, 2.5)), ("nt", (x,)), ("lists", ([1, 2, 3, 4],)),
             ("slices", (x, x > 0))]
    return language_models.Features().eval(), ["scripted"], calls


def small(model, calls):
    return model().eval(), ["scripted"], [("forward", call) for call in calls]


def snake_case(name):
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def plain(value):
    """The value as `tensord run` writes it: NamedTuples become tuples."""
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def save(directory, name, way, module, calls):
    path = f"{name}.{way}.pt"
    module.save(os.path.join(directory, path))
    fresh = torch.jit.load(os.path.join(directory, path))
    case = {"name": name, "way": way, "model": path, "calls": []}
    for number, (method, arguments) in enumerate(calls):
        base = f"{name}.{way}.{number}.{method}"
        torch.save(arguments, os.path.join(directory, base + ".args.pt"))
        with torch.no_grad():
            result = getattr(fresh, method)(*arguments)
        torch.save(plain(result), os.path.join(directory, base + ".result.pt"))
        case["calls"].append({"method": method, "args": base + ".args.pt", "result": base + ".result.pt"})
    return case


MAKERS = {"mlp": mlp, "encoder": encoder, "padded_encoder": padded_encoder, "constants": constants, "language": language,
          "features": features, "deformable": detection_models.deformable}
MAKERS.update({name: (lambda name=name: vision(name)) for name in VISION})
MAKERS.update({snake_case(model.__name__): (lambda model=model, calls=calls: small(model, calls))
               for model, calls in alias_models.CASES + batch_models.CASES + layer_models.CASES +
               recurrent_models.CASES})


# The kept boxes depend on their order, so these run in float32 and once, not in every way.
DETECTORS = {name: (lambda name=name: detection_models.detector(name)) for name in detection_models.DETECTORS}


def make(directory, name):
    torch.manual_seed(20240517)
    model, ways, calls = (MAKERS | DETECTORS)[name]()
    cases = []
    for way in ways:
        module = torch.jit.script(model) if way == "scripted" else torch.jit.trace(model, calls[0][1])
        cases.append(save(directory, name, way, module, calls))
    with open(os.path.join(directory, name + ".json"), "w") as file:
        json.dump(cases, file, indent=1)


def ensure(directory, names=None):
    """Makes the missing models, one process at a time; returns their cases."""
    os.makedirs(directory, exist_ok=True)
    cases = []
    with open(os.path.join(directory, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in names or MAKERS:
            listing = os.path.join(directory, name + ".json")
            if not os.path.exists(listing):
                make(directory, name)
            with open(listing) as file:
                cases.extend(json.load(file))
    return cases


def main():
    for name in sys.argv[2:] or MAKERS:
        ensure(sys.argv[1], [name])
        print(name, flush=True)


if __name__ == "__main__":
    main()
