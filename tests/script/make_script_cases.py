"""Writes the archives of the script tests, with PyTorch's result of every call.

Usage: python3 -m tests.script.make_script_cases OUTPUT_FOLDER [GROUP ...] [--refused]
"""

import importlib
import pathlib
import sys

import torch

from tests.script.program import write_group

FAMILIES = ["lists", "dicts", "strings", "scalars", "language"]


def main() -> int:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder, wanted = pathlib.Path(arguments[0]), arguments[1:]
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    total = 0
    for family in FAMILIES:
        groups = importlib.import_module(f"tests.script.{family}").groups()
        for name, programs in groups.items():
            if wanted and name not in wanted and family not in wanted:
                continue
            count, refused = write_group(name, programs, folder)
            total += count
            print(f"{name}: {len(programs) - len(refused)} programs, {count} calls; PyTorch refuses {len(refused)}")
            if "--refused" in sys.argv:
                for one, complaint in refused:
                    print(f"--- {one.source()}{complaint}\n")
    print(f"{total} calls written to {folder}")
    return 0 if total > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
