"""Writes archives of quantized models and calls.pt: the arguments and results of each.

Run with PyPI's PyTorch, which has fbgemm (scripts/setup pypi_torch): python -m tests.quantized.make_models FOLDER
"""

import sys
import warnings
from pathlib import Path

import torch

from tests.quantized import dynamic_models, static_models


def models(engine):
    yield from dynamic_models.linear_models()
    yield from dynamic_models.recurrent_models()
    yield from dynamic_models.embedding_models()
    yield from static_models.static_models(engine)


def main():
    warnings.filterwarnings("ignore")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    engine = sys.argv[2] if len(sys.argv) > 2 else "fbgemm"
    torch.backends.quantized.engine = engine
    torch.manual_seed(0)
    calls = {}
    for name, model, inputs in models(engine):
        path = str(folder / f"{name}.pt")
        torch.jit.save(model, path)
        # PyTorch 2.15 counts a byte for each 4-bit number, and so cannot load what it saved.
        loaded = model if name.endswith("4bit") else torch.jit.load(path)
        with torch.no_grad():
            calls[name] = [(arguments, (loaded(*arguments),)) for arguments in inputs]
    for path in sorted(folder.glob("old_*.pt")):  # from make_old.py
        loaded = torch.jit.load(path)
        x = torch.randn(2, 3, 11, 11) if "static" in path.stem else torch.randn(3, 13)
        with torch.no_grad():
            calls[path.stem] = [((x,), (loaded(x),))]
    torch.save(calls, folder / "calls.pt")
    print(f"{len(calls)} models of PyTorch {torch.__version__} with {engine}")


if __name__ == "__main__":
    main()
