"""Compares the schemas of operators with the newest PyTorch's, whose exported programs name all arguments.

Usage: build/pypi_torch/bin/python -m tests.ops.compare_schemas build/dev/server/tensord   (scripts/setup pypi_torch)
Prints what differs; exit status 1 when something does.
"""

import json
import subprocess
import sys

import torch

# Names of arguments that no program writes, and operators that scripts of old archives call.
KNOWN = {"aten::can_cast", "aten::seed"}


def described(schema):
    return [(argument.name, str(argument.type), argument.kwarg_only) for argument in schema.arguments]


def main() -> int:
    output = subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, text=True, check=True).stdout
    ours = {row["name"]: row["schema"] for row in map(json.loads, output.splitlines())}
    compared = differing = 0
    for theirs in torch._C._jit_get_all_schemas():
        name = theirs.name + ("." + theirs.overload_name if theirs.overload_name else "")
        if not name.startswith("aten::") or name not in ours or name in KNOWN:
            continue
        try:
            own = torch._C.parse_schema(ours[name])
        except RuntimeError:  # our own types
            continue
        compared += 1
        if described(own) != described(theirs):
            differing += 1
            print(f"{name}\n  here     {own}\n  PyTorch  {theirs}")
    print(f"{compared} operators compared with PyTorch {torch.__version__}, {differing} differ")
    return 1 if differing or compared < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
