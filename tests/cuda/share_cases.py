"""Every Nth of the operators' cases, a folder for each family: python3 -m tests.cuda.share_cases CASES TO N"""

import pathlib
import sys

import torch


def main():
    cases, to, nth = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    for path in sorted(cases.glob("*.pt")):
        folder = to / path.stem
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(torch.load(path)[::nth], folder / path.name)


if __name__ == "__main__":
    main()
