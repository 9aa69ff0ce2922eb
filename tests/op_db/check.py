"""Compares tensord with PyTorch on samples: all samples of an operator in one archive and one run, or each alone."""

from __future__ import annotations

import linecache
import pathlib
import subprocess
import unittest.mock

import torch

from tests.op_db.samples import Sample, archive_of, is_continuous, tensors_in

TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-7), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2),
              torch.complex64: (1e-4, 1e-5), torch.complex128: (1e-7, 1e-7)}
TIME_LIMIT_S = 60
GROUP = 40  # samples in one archive
SEEDS = 12  # with few possible outcomes, some agree by chance


def describe(tensor) -> str:
    return f"{str(tensor.dtype).split('.')[-1]}{list(tensor.shape)}"


def is_random(tensors) -> bool:
    """Whether PyTorch's results differ with another seed."""
    tensors = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
    first, *others = [t.nan_to_num() if is_continuous(t) else t for t in tensors]
    return any(first.shape == other.shape and not torch.equal(first, other) for other in others)


def difference(got, want, *again) -> str:
    """"" if `got` is as accurate as PyTorch. `again`: PyTorch's results with other random numbers."""
    if len(got) != len(want):
        return f"{len(got)} results, not {len(want)}"
    for x, y, *others in zip(got, want, *again):
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"{describe(x)}, not {describe(y)}"
        if is_random([y, *others]):
            continue
        rtol, atol = TOLERANCES.get(y.dtype, (0, 0))
        if not torch.allclose(x, y, rtol=rtol, atol=atol * max(1.0, size_of(y)), equal_nan=True):
            x, y = (t if t.is_complex() else t.double() for t in (x, y))
            return f"another value: off by {(x - y).abs().max().item():.2g} in {describe(y)}"
    return ""


def size_of(tensor) -> float:
    finite = tensor[torch.isfinite(tensor)]
    return finite.abs().max().item() if is_continuous(tensor) and finite.numel() else 1.0


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def load_result(path: pathlib.Path):
    """Like torch.load; CSR tensors are written as PyTorch 2 reads them."""
    coo = torch._utils._rebuild_sparse_tensor

    def rebuild(layout, data):
        return torch.sparse_csr_tensor(*data[:3], size=data[3]) if layout == torch.sparse_csr else coo(layout, data[:3])

    with unittest.mock.patch.object(torch._utils, "_rebuild_sparse_tensor", rebuild):
        return torch.load(path)


class Program:
    """A sample as an archive may contain it, with PyTorch's results; with random numbers, the results of several
    seeds."""

    def __init__(self, sample: Sample, gradients: bool, folder: pathlib.Path, index: int):
        self.module, arguments = archive_of(sample, gradients)
        self.index, self.folder, self.name = index, folder, sample.info.name
        torch.save(arguments, str(folder / f"arguments{index}.pt"))
        self.module.save(str(folder / f"model{index}.pt"))
        self.results = []
        for seed in range(SEEDS):
            torch.manual_seed(seed)
            before = torch.get_rng_state()
            self.results.append([dense(t.detach()).resolve_conj().resolve_neg().clone() for t in tensors_in(self.module(*torch.load(folder / f"arguments{index}.pt")))])
            if torch.equal(before, torch.get_rng_state()) and "resize" not in self.name:
                break

    def call(self, method: str) -> list:
        return ["--call", f"{method},{self.folder}/arguments{self.index}.pt,{self.folder}/result{self.index}.pt"]

    def problem(self) -> str:
        found = [dense(t) for t in tensors_in(load_result(self.folder / f"result{self.index}.pt"))]
        if "empty" in self.name:
            return "" if list(map(describe, found)) == list(map(describe, self.results[0])) else "another shape or dtype"
        return difference(found, *self.results)


def joined(programs: list, gradients: bool) -> torch.jit.ScriptModule:
    """A module with a method for each program."""
    parameters, arguments = ("tensors: list[torch.Tensor], wanted: list[int]", "tensors, wanted") if gradients else ("tensors: list[torch.Tensor]", "tensors")
    methods = "".join(f"def s{i}(self, {parameters}):\n    return self.m{i}({arguments})\n" for i in range(len(programs)))
    file = "<samples>"
    linecache.cache[file] = (len(methods), None, methods.splitlines(keepends=True), file)
    scope: dict = {"torch": torch}
    exec(compile(methods, file, "exec"), scope)  # noqa: S102: our own text
    module = type("Samples", (torch.nn.Module,), {f"s{i}": torch.jit.export(scope[f"s{i}"]) for i in range(len(programs))})()
    for i, program in enumerate(programs):
        setattr(module, f"m{i}", program.module)
    return torch.jit.script(module)


def run(binary: str, model: pathlib.Path, calls: list, gradients: bool, limit_s: float):
    return subprocess.run([binary, "run", model, *calls, *(["--grad"] if gradients else [])], capture_output=True, text=True, timeout=limit_s)


def check_alone(program: Program, binary: str, gradients: bool) -> str:
    """"" if correct, otherwise the reason."""
    try:
        done = run(binary, program.folder / f"model{program.index}.pt", program.call("forward"), gradients, TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"took more than {TIME_LIMIT_S} s"
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return f"exit {done.returncode}: {lines[0] if lines else ''}"
    return program.problem()


def check_group(programs: list, binary: str, gradients: bool, folder: pathlib.Path) -> list:
    try:
        joined(programs, gradients).save(str(folder / "all.pt"))
        calls = [part for i, program in enumerate(programs) for part in program.call(f"s{i}")]
        if run(binary, folder / "all.pt", calls, gradients, TIME_LIMIT_S).returncode == 0:
            return [program.problem() for program in programs]
    except Exception:  # noqa: BLE001: one of them fails, or cannot be in one archive with the others
        pass
    return [check_alone(program, binary, gradients) for program in programs]


def check_samples(samples: list, binary: str, gradients: bool, folder: pathlib.Path) -> list:
    """A string for each sample that PyTorch can trace and compute: "" if correct, otherwise the reason."""
    programs = []
    with torch.jit.optimized_execution(False):
        for index, sample in enumerate(samples):
            try:
                program = Program(sample, gradients, folder, index)
            except Exception:  # noqa: BLE001: there is nothing to compare with
                continue
            if program.results[0] or not gradients:
                programs.append(program)
    groups = [programs[i:i + GROUP] for i in range(0, len(programs), GROUP)]
    return [result for group in groups for result in check_group(group, binary, gradients, folder)]
