"""Runs samples of PyTorch's operator database with tensord and prints what is not right. See README.md."""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import pathlib
import subprocess
import sys
import tempfile
import unittest.mock

import torch

from tests.op_db.samples import all_operators, archive_of, is_continuous, name_of, samples_of, tensors_in

TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-7), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2),
              torch.complex64: (1e-4, 1e-5), torch.complex128: (1e-7, 1e-7)}
TIME_LIMIT_S = 60
UNSUPPORTED = pathlib.Path(__file__).with_name("unsupported.txt")


def describe(tensor) -> str:
    return f"{str(tensor.dtype).split('.')[-1]}{list(tensor.shape)}"


def is_random(tensors) -> bool:
    """Whether PyTorch gave something else with another seed."""
    tensors = [torch.view_as_real(t) if t.is_complex() else t for t in tensors]
    first, *others = [t.nan_to_num() if is_continuous(t) else t for t in tensors]
    return any(first.shape == other.shape and not torch.equal(first, other) for other in others)


def difference(got, want, *again) -> str:
    """"" where `got` is as right as PyTorch is. `again`: what PyTorch gave with other random numbers."""
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


def check_sample(sample, binary: str, gradients: bool, folder: pathlib.Path) -> str:
    """"" when right, else why not; "-" where PyTorch cannot trace or compute it."""
    try:
        program, arguments = archive_of(sample, gradients)
        program.save(str(folder / "model.pt"))
        torch.save(arguments, str(folder / "arguments.pt"))
        results = []
        for seed in range(4):
            torch.manual_seed(seed)
            results.append([dense(t.detach()).resolve_conj().resolve_neg().clone() for t in tensors_in(program(*torch.load(folder / "arguments.pt")))])
    except Exception:  # noqa: BLE001: there is nothing to compare with
        return "-"
    if gradients and not results[0]:
        return "-"
    command = [binary, "run", folder / "model.pt", "--call", f"forward,{folder}/arguments.pt,{folder}/result.pt"]
    try:
        done = subprocess.run([*command, *(["--grad"] if gradients else [])], capture_output=True, text=True, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"took more than {TIME_LIMIT_S} s"
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return f"exit {done.returncode}: {lines[0] if lines else ''}"
    return difference([dense(t) for t in tensors_in(load_result(folder / "result.pt"))], *results)


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def load_result(path: pathlib.Path):
    """As torch.load; CSR tensors are written as PyTorch 2 reads them."""
    coo = torch._utils._rebuild_sparse_tensor

    def rebuild(layout, data):
        return torch.sparse_csr_tensor(*data[:3], size=data[3]) if layout == torch.sparse_csr else coo(layout, data[:3])

    with unittest.mock.patch.object(torch._utils, "_rebuild_sparse_tensor", rebuild):
        return torch.load(path)


def check_operator(job) -> tuple:
    index, dtype, binary, gradients = job
    torch.set_num_threads(1)
    info = all_operators()[index]
    if dtype not in info.dtypes or (gradients and not info.supports_autograd):
        return index, 0, 0, ""
    try:
        samples = samples_of(info, dtype)
    except Exception as error:  # noqa: BLE001
        return index, 0, 0, f"no samples: {error}"
    right = count = 0
    reason = ""
    with tempfile.TemporaryDirectory(prefix="tensord_op_db_") as folder:
        for sample in samples:
            problem = check_sample(sample, binary, gradients, pathlib.Path(folder))
            if problem == "-":
                continue
            count += 1
            right += problem == ""
            reason = reason or problem
    return index, right, count, reason


def listed(kind: str) -> dict:
    """name → reason; `kind` is a dtype or "gradients"."""
    lines = UNSUPPORTED.read_text().splitlines() if UNSUPPORTED.exists() else []
    rows = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    return dict(row.split(": ", 1) for row_kind, row in rows if row_kind == kind)


def run(dtype, arguments, indices) -> dict:
    """name → (right, count, reason) of the operators that have samples."""
    operators = all_operators()
    jobs = [(i, dtype, arguments.tensord, arguments.gradients) for i in indices]
    found = {}
    with multiprocessing.get_context("fork").Pool(arguments.jobs, maxtasksperchild=40) as pool:
        for index, right, count, reason in pool.imap_unordered(check_operator, jobs):
            if count == 0:
                continue
            name = name_of(operators[index])
            found[name] = (right, count, reason)
            if right != count and not arguments.check_list:
                print(f"{name}: {right} of {count}: {reason[:200]}", flush=True)
    return found


def check_against_list(kind: str, found: dict) -> int:
    problems = 0
    known = listed(kind)
    for name, (right, count, reason) in sorted(found.items()):
        if right != count and name not in known:
            print(f"{name}: {right} of {count}: {reason[:300]}")
            problems += 1
        if right == count and name in known:
            print(f"{name} is whole, but in {UNSUPPORTED.name}")
            problems += 1
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only operators whose names begin so")
    parser.add_argument("--tensord", required=True)
    parser.add_argument("--dtype", help="float32, or several; with --gradients float64")
    parser.add_argument("--gradients", action="store_true", help="first and second ones")
    parser.add_argument("--every", type=int, default=1, help="only every n-th operator")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check-list", action="store_true", help="fail where unsupported.txt is not right")
    arguments = parser.parse_args()
    indices = [i for i, info in enumerate(all_operators()) if i % arguments.every == 0 and
               (not arguments.names or name_of(info).startswith(tuple(arguments.names)))]
    problems = 0
    dtypes = arguments.dtype or ("float64" if arguments.gradients else "float32")
    for dtype in dtypes.split(","):
        found = run(getattr(torch, dtype), arguments, indices)
        whole = sum(right == count for right, count, _ in found.values())
        reasons = collections.Counter(reason.split(":")[0] for right, count, reason in found.values() if right != count)
        kind = f"gradients of {dtype}" if arguments.gradients else dtype
        print(f"{kind}: {whole} of {len(found)} operators whole" + "".join(f"; {n} × {reason}" for reason, n in reasons.most_common(4)))
        if arguments.check_list:
            problems += check_against_list("gradients" if arguments.gradients else dtype, found)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
