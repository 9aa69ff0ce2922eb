"""Runs the programs of a folder that make_programs wrote, and compares their results:

python -m tests.pt2.compare_programs DIR TENSORD
"""

import pathlib
import subprocess
import sys
import tempfile

import torch

TOLERANCE = 2e-5  # relative to the largest element


def leaves(value):
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def difference(got, expected):
    """The difference, or nothing."""
    if not isinstance(expected, torch.Tensor):
        return "" if got == expected else f"{got}, expected {expected}"
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {tuple(got.shape)}, expected {expected.dtype} {tuple(expected.shape)}"
    wide = torch.complex128 if expected.is_complex() else torch.float64
    got, expected = got.to(wide), expected.to(wide)
    finite = torch.isfinite(expected)
    if not torch.equal(torch.nan_to_num(got[~finite], 1.5), torch.nan_to_num(expected[~finite], 1.5)):
        return "other infinities or NaN"
    if not finite.any():
        return ""
    worst = ((got - expected).abs()[finite] / (expected.abs()[finite].max() + 1e-6)).max().item()
    return "" if worst <= TOLERANCE else f"differs by {worst:.2g}"


def run(tensord, file, calls):
    """The errors in a program's calls, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        command = [tensord, "run", str(file)]
        for number, (arguments, _) in enumerate(calls):
            torch.save(arguments, f"{folder}/{number}.args")
            command += ["--call", f"forward,{folder}/{number}.args,{folder}/{number}.result"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr or done.stdout).strip().split("\n")[-1]
        for number, (_, expected) in enumerate(calls):
            got = leaves(torch.load(f"{folder}/{number}.result"))
            if len(got) != len(expected):
                return f"{len(got)} results, expected {len(expected)}"
            for index, (one, other) in enumerate(zip(got, expected)):
                if found := difference(one, other):
                    return f"WRONG: call {number}, result {index}: {found}"
    return ""


def main():
    folder, tensord = pathlib.Path(sys.argv[1]), sys.argv[2]
    calls = torch.load(folder / "calls.pt")
    failed = 0
    for name in sorted(calls):
        found = run(tensord, folder / f"{name}.pt2", calls[name])
        print(name, found or "equal", flush=True)
        failed += bool(found)
    print(f"{len(calls) - failed} of {len(calls)} equal")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
