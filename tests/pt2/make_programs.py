"""Exports models with the PyTorch that runs this, and writes what they give:

    python -m tests.pt2.make_programs DIR [NAME …]

The models are those of feature_models.py. Architectures of transformers, timm and torchvision: tests/formats/real_models.py.

With --suffix TEXT the names end in it: programs of older versions of PyTorch lie beside those of the newest.

calls.pt has for each NAME.pt2 its calls: (the leaves of what forward takes, those of what it gives back that are not None). They
are in order: one may change what the next sees.
"""

import copy
import pathlib
import sys
import traceback
import warnings

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree


def leaves(value):
    return [leaf for leaf in pytree.tree_leaves(value) if leaf is not None]


def fed_leaves(program, args, kwargs):
    """The inputs of each call: tensors and dynamic ints. Constants are part of the program."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    values = pytree.tree_leaves((args, kwargs))
    assert len(specs) == len(values)
    return [value for spec, value in zip(specs, values) if not isinstance(spec.arg, ConstantArgument)]


def write(directory, name, program, module, calls, written):
    torch.export.save(program, directory / f"{name}.pt2")
    module = copy.deepcopy(module)
    written[name] = []
    for args, kwargs in calls:
        given = tuple(leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in fed_leaves(program, args, kwargs))
        with torch.no_grad():
            result = module(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        written[name].append((given, tuple(leaves(result))))


def export(directory, name, module, args, kwargs, dynamic, calls, decomposed, written):
    original = copy.deepcopy(module)
    program = torch.export.export(module, copy.deepcopy(args), copy.deepcopy(kwargs), dynamic_shapes=dynamic)
    write(directory, name, program, original, calls, written)
    if decomposed:
        write(directory, name + "_core", program.run_decompositions(), original, calls, written)


def main():
    warnings.filterwarnings("ignore")
    arguments = sys.argv[1:]
    directory = pathlib.Path(arguments.pop(0))
    directory.mkdir(parents=True, exist_ok=True)
    suffix = ""
    if "--suffix" in arguments:
        at = arguments.index("--suffix")
        suffix = arguments[at + 1]
        del arguments[at:at + 2]
    names = arguments
    failed = 0
    written = torch.load(directory / "calls.pt") if (directory / "calls.pt").exists() else {}
    from tests.pt2.feature_models import FEATURES

    for name, one in FEATURES.items():
        if names and name not in names:
            continue
        try:
            calls = [(one.args, one.kwargs), *one.more]
            export(directory, name + suffix, one.module, one.args, one.kwargs, one.dynamic_shapes, calls, one.decomposed, written)
        except Exception:
            traceback.print_exc()
            print("not exported", name, flush=True)
            failed += 1
    torch.save(written, directory / "calls.pt")
    return failed


if __name__ == "__main__":
    sys.exit(main())
