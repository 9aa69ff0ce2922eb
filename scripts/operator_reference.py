#!/usr/bin/env python3
"""Writes docs/operators.md: the operators of BINARY's registry, and the dtypes in which tests/ops compares
each with PyTorch.

Usage: scripts/operator_reference.py BINARY [--check]      --check: only says whether the page is up to date

Needs PyTorch, as the rows do.
"""

import collections
import importlib
import json
import pathlib
import pkgutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGE = ROOT / "docs" / "operators.md"
BEGIN, END = "<!-- operators: made by scripts/operator_reference.py -->", "<!-- end of operators -->"
NAMESPACES = {
    "aten": "Tensors",
    "quantized": "Quantized layers and tensors",
    "tensord": "Operators of tensord's own",
    "prim": "Numbers, texts and what the compiler needs",
}
# In the order in which a cell names them.
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "uint8", "int8", "int16", "int32", "int64", "bool"]
GROUPS = {"floats": DTYPES[:4], "integers": DTYPES[6:11]}


def registry(binary):
    lines = subprocess.run([binary, "ops", "--json"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def tested_dtypes():
    """dtypes by operator name, from rows for which PyTorch has results."""
    from tests.ops import cases
    found = collections.defaultdict(set)
    for module in pkgutil.iter_modules(cases.__path__):
        for row in importlib.import_module(f"tests.ops.cases.{module.name}").CASES:
            if row.error is None:
                found[row.op].update(str(dtype).removeprefix("torch.") for dtype in row.dtypes)
    return found


def dtype_cell(dtypes):
    left, words = set(dtypes), []
    for group, members in GROUPS.items():
        if left.issuperset(members):
            words.append(group)
            left.difference_update(members)
    return ", ".join(words + [dtype for dtype in DTYPES if dtype in left])


def notes(records):
    has = lambda key: any(record[key] for record in records)  # noqa: E731
    words = [word for key, word in (("view", "view"), ("random", "random"), ("dynamic_shape", "shape depends on data"),
                                    ("fused", "fused"), ("joined", "joined to a packed one"), ("packed", "packed"),
                                    ("prepared", "prepared")) if has(key)]
    words += [f"on CUDA by a copy to the host and back: {reason}" for reason in
              sorted({record["on_host"] for record in records if record["on_host"]})]
    return ", ".join(words)


def rows(records, tested):
    by_name = collections.defaultdict(list)
    for record in records:
        by_name[record["name"].partition(".")[0]].append(record)
    for name, overloads in sorted(by_name.items()):
        # In-place and out= variants are described with their operator.
        if name.endswith("_") and name[:-1] in by_name and all(record["base"] for record in overloads):
            continue
        plain = [record for record in overloads if not record["base"]] or overloads
        forms = [variant for variant, there in (("in place", name + "_" in by_name),
                                          ("out=", any(record["base"] for record in overloads))) if there]
        suffixes = [record["name"].partition(".")[2] for record in plain]
        dtypes = set().union(*(tested.get(record["name"], ()) for record in plain))
        devices = sorted(set().union(*(record["devices"] for record in plain)))
        yield (name, ", ".join(filter(None, suffixes)), ", ".join(forms), dtype_cell(dtypes), " ".join(devices) or "any",
               "yes" if any(record["differentiable"] for record in plain) else "", notes(plain))


def lines(binary):
    records, tested = registry(binary), tested_dtypes()
    by_space = collections.defaultdict(list)
    for record in records:
        by_space[record["name"].partition("::")[0]].append(record)
    out = []
    for space in sorted(by_space, key=lambda space: (list(NAMESPACES) + [space]).index(space)):
        out += [f"## {NAMESPACES.get(space, space)} (`{space}::`)", "",
                "| operator | overloads | forms | dtypes | devices | gradient | how it runs |", "|---|---|---|---|---|---|---|"]
        for name, overloads, *cells in rows(by_space[space], tested):
            marked = ", ".join(f"`{word}`" for word in overloads.split(", ") if word)
            out.append(f"| `{name.partition('::')[2]}` | {marked} | " + " | ".join(cells) + " |")
        out.append("")
    return out


def main():
    binary, is_check = sys.argv[1], sys.argv[2:] == ["--check"]
    before = PAGE.read_text()
    head, found, rest = before.partition(BEGIN)
    _, found_end, tail = rest.partition(END)
    if not found or not found_end:
        sys.exit(f"{PAGE} has lost its lines '{BEGIN}' and '{END}'")
    after = "\n".join([head + BEGIN, "", *lines(binary), END]) + tail
    if not is_check:
        PAGE.write_text(after)
    elif after != before:
        sys.exit(f"docs/operators.md is not what {binary} has: run scripts/operator_reference.py {binary}")


if __name__ == "__main__":
    main()
