"""Runs samples of PyTorch's operator database with tensord and prints the differences. See README.md."""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import pathlib
import sys
import tempfile

import torch

from tests.op_db.check import check_samples
from tests.op_db.errors import check_errors
from tests.op_db.samples import MOST_SAMPLES, all_operators, name_of, samples_of

UNSUPPORTED = pathlib.Path(__file__).with_name("unsupported.txt")


ALL_DTYPES = "float32,float64,int64,bool,bfloat16,float16,complex64,complex128"


def check_operator(job) -> tuple:
    """The operator's index, the number of correct samples, the total, and the reason of the first failure."""
    index, kind, dtype, binary, most = job
    torch.set_num_threads(1)
    info = all_operators()[index]
    is_gradient = kind.startswith("gradients")
    if kind != "errors" and (dtype not in info.dtypes or (is_gradient and not info.supports_autograd)):
        return index, 0, 0, ""
    with tempfile.TemporaryDirectory(prefix="tensord_op_db_") as name:
        folder = pathlib.Path(name)
        try:
            results = check_errors(info, binary, folder) if kind == "errors" else check_samples(samples_of(info, dtype, most), binary, is_gradient, folder)
        except Exception as error:  # noqa: BLE001
            return index, 0, 0, f"no samples: {error}"
    return index, results.count(""), len(results), next((r for r in results if r), "")


def listed(kind: str) -> dict:
    """name → reason; `kind` is a dtype, gradients or errors, with a + if only some samples fail."""
    lines = UNSUPPORTED.read_text().splitlines() if UNSUPPORTED.exists() else []
    rows = [line.split(" ", 1) for line in lines if line and not line.startswith("#")]
    wanted = kind.replace("float64", "float32").replace("complex128", "complex64")
    return dict(row.split(": ", 1) for row_kind, row in rows if row_kind in (kind, wanted))


def run(kind: str, dtype, arguments, indices) -> dict:
    """name → (correct, count, reason) of the operators that have samples."""
    operators = all_operators()
    jobs = [(i, kind, dtype, arguments.tensord, arguments.samples) for i in indices]
    found = {}
    with multiprocessing.get_context("fork").Pool(arguments.jobs, maxtasksperchild=40) as pool:
        for index, right, count, reason in pool.imap_unordered(check_operator, jobs):
            if count == 0:
                continue
            name = name_of(operators[index])
            found[name] = (right, count, reason)
            if right != count and not arguments.check_list:
                print(f"{kind} {name}: {right} of {count}: {reason[:200]}", flush=True)
    return found


def check_against_list(kind: str, found: dict) -> int:
    problems = 0
    known, sometimes = listed(kind), listed(kind + "+")
    for name, (right, count, reason) in sorted(found.items()):
        if right != count and name not in known and name not in sometimes:
            print(f"{kind} {name}: {right} of {count}: {reason[:300]}")
            problems += 1
        if right == count and name in known:
            print(f"{kind} {name} is whole, but in {UNSUPPORTED.name}")
            problems += 1
    return problems


def kinds_of(arguments) -> list:
    """(kind, dtype) of each run."""
    if arguments.errors:
        return [("errors", None)]
    if arguments.gradients:
        names = (arguments.dtype or "float64").split(",")
        return [("gradients" if name == "float64" else f"gradients_{name}", getattr(torch, name)) for name in names]
    names = (arguments.dtype or (ALL_DTYPES if arguments.all else "float32")).split(",")
    kinds = [(name, getattr(torch, name)) for name in names]
    return [*kinds, ("gradients", torch.float64), ("errors", None)] if arguments.all else kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only operators whose names begin so")
    parser.add_argument("--tensord", required=True)
    parser.add_argument("--all", action="store_true", help="every dtype, gradients and errors, all samples, and the table")
    parser.add_argument("--dtype", help="float32, or several; with --gradients float64")
    parser.add_argument("--gradients", action="store_true", help="first and second ones")
    parser.add_argument("--errors", action="store_true", help="calls that have to fail")
    parser.add_argument("--samples", type=int, help=f"at most so many of each operator; 0: all that there are; else {MOST_SAMPLES}")
    parser.add_argument("--every", type=int, default=1, help="only every n-th operator")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check-list", action="store_true", help="fail where unsupported.txt is not right")
    arguments = parser.parse_args()
    if arguments.samples is None:
        arguments.samples = 0 if arguments.all else MOST_SAMPLES
    indices = [i for i, info in enumerate(all_operators()) if i % arguments.every == 0 and
               (not arguments.names or name_of(info).startswith(tuple(arguments.names)))]
    problems = 0
    table = []
    for kind, dtype in kinds_of(arguments):
        found = run(kind, dtype, arguments, indices)
        whole = sum(right == count for right, count, _ in found.values())
        right, count = sum(r for r, _, _ in found.values()), sum(c for _, c, _ in found.values())
        reasons = collections.Counter(reason.split(":")[0] for r, c, reason in found.values() if r != c)
        print(f"{kind}: {whole} of {len(found)} operators whole" + "".join(f"; {n} × {reason}" for reason, n in reasons.most_common(4)), flush=True)
        table.append(f"| {kind.replace('_', ' of ')} | {whole} | {len(found)} | {100 * whole / max(len(found), 1):.1f} % | {right} of {count} |")
        if arguments.check_list:
            problems += check_against_list(kind, found)
    print("| kind | whole | operators | | calls |\n|---|---|---|---|---|", *table, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
