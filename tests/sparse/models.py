"""Makes scripted modules of cases.py, and compares the results."""

import importlib.util
import itertools
import warnings
from pathlib import Path

import torch

LAYOUTS = (torch.sparse_coo, torch.sparse_csr)


def module_of(folder, cases, name):
    """A scripted module with one method for each case, from a source file of its own."""
    source = "import torch\nfrom torch import Tensor\n\n\nclass Cases(torch.nn.Module):\n    def forward(self, x: Tensor):\n        return x\n"
    for method, case in cases.items():
        arguments = ", ".join(f"{letter}: Tensor" for letter in "xyz"[: len(case.arguments)])
        header = f"{method}(self, {arguments})" if arguments else f"{method}(self)"
        lines = [line.removeprefix(" " * 8) for line in case.body.splitlines() if line.strip()]
        source += f"\n    @torch.jit.export\n    def {header}:\n" + "".join(f"        {line}\n" for line in lines)
    path = Path(folder) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(module.Cases())


def difference(got, expected, tolerance=1e-5):
    """Empty if both have the same values; sparse tensors are compared in one layout."""
    if isinstance(expected, (tuple, list)) and len(expected) == 1 and isinstance(got, torch.Tensor):
        expected = expected[0]
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)) or len(got) != len(expected):
            return f"got {got}, expected {expected}"
        return next(filter(None, itertools.starmap(difference, zip(got, expected))), "")
    if not isinstance(expected, torch.Tensor):
        return "" if got == expected and type(got) is type(expected) else f"got {got}, expected {expected}"
    if not isinstance(got, torch.Tensor) or got.layout != expected.layout or got.dtype != expected.dtype:
        return f"got {got}, expected {expected}"
    if got.layout in LAYOUTS:
        if got.layout == torch.sparse_coo and got.sparse_dim() != expected.sparse_dim():
            return f"got {got}, expected {expected}"
        if got.layout == torch.sparse_coo and expected.is_coalesced() and not torch.equal(got._indices(), expected._indices()):
            return f"got indices {got._indices()}, expected {expected._indices()}"
        got, expected = got.to_dense(), expected.to_dense()
    if got.shape != expected.shape:
        return f"got sizes {got.shape}, expected {expected.shape}"
    loose = tolerance if got.dtype not in (torch.bfloat16, torch.float16) else 1e-2
    return "" if torch.allclose(got, expected, rtol=loose, atol=loose, equal_nan=True) else f"got {got}, expected {expected}"
