"""Finds the change that makes a model wrong: the pass, and the number of its change.

Usage: /usr/bin/python3 -m tests.e2e.models.bisect_passes TENSORD_BINARY MODEL.pt METHOD ARGS.pt RESULT.pt [--tolerance
1e-4] [--threads N]

RESULT.pt is the correct result (PyTorch's). Passes are disabled one by one (--jit-disable). For a pass without which
the model is correct, a search finds the largest number of changes that is still correct (--jit-limit). `tensord inspect
--jit-limit PASS:N --after PASS` then shows the graph before and after the wrong change.
"""

import argparse
import os
import subprocess
import sys
import tempfile

MAX_CHANGES = 1 << 20


def last_good(is_good, limit: int = MAX_CHANGES) -> int:
    """The largest n for which is_good(n), given that is_good(0) and not is_good(limit)."""
    good, bad = 0, 1
    while bad < limit and is_good(bad):
        good, bad = bad, bad * 2
    bad = min(bad, limit)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if is_good(middle) else (good, middle)
    return good


def culprits(passes, is_good):
    """(pass, its first wrong change, counted from 1) for every pass that is needed for the fault."""
    found = []
    for name in passes:
        if is_good(["--jit-disable", name]):
            found.append((name, last_good(lambda n, name=name: is_good(["--jit-limit", f"{name}:{n}"])) + 1))
    return found


def known_passes(binary: str, model: str) -> list:
    """The names of passes, from the message about an unknown one."""
    done = subprocess.run([binary, "inspect", model, "--jit-disable", "?"], capture_output=True, text=True)
    return done.stderr.strip().split("known are ")[-1].split(", ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("binary", "model", "method", "args", "result"):
        parser.add_argument(name)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--threads", default="0")
    options = parser.parse_args()
    import torch

    from tests.e2e.models.compare import difference

    expected = torch.load(options.result)

    def is_good(flags) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result.pt")
            call = ",".join([options.method, options.args, result])
            done = subprocess.run([options.binary, "run", options.model, "--threads", options.threads, "--call", call, *flags],
                                  capture_output=True, text=True)
            return done.returncode == 0 and not difference(torch.load(result), expected, options.tolerance, options.method)

    if is_good([]):
        print("the result is right")
        return 0
    if not is_good(["--no-optimize"]):
        print("the result is wrong without any pass as well: an operator, or the front end")
        return 1
    for name, change in culprits(known_passes(options.binary, options.model), is_good):
        print(f"{name}: change {change} makes it wrong (--jit-limit {name}:{change - 1} is right, {name}:{change} is not)")
    return 1


if __name__ == "__main__":
    sys.exit(main())
