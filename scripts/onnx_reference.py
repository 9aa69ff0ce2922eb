#!/usr/bin/env python3
"""Writes docs/onnx_operators.md: the supported ONNX operators, their inputs, and their attributes with defaults
and accepted values. Read from core/jit/formats/onnx: operators/*.py, attribute_values.cpp and, which attributes are element types, call.cpp.

Usage: scripts/onnx_reference.py [--check]      --check: only says whether the page is up to date
"""

import ast
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = ROOT / "core" / "jit" / "formats" / "onnx"
PAGE = ROOT / "docs" / "onnx_operators.md"
DOMAINS = {"": "ai.onnx", "ml": "ai.onnx.ml", "microsoft": "com.microsoft", "training": "ai.onnx.preview.training",
           "preview": "ai.onnx.preview"}
TYPES = {"int": "int", "float": "float", "str": "string", "List[int]": "ints", "List[float]": "floats",
         "List[str]": "strings", "Tensor": "tensor"}
HEAD = """# ONNX operators

What nodes of an ONNX model may be, by domain, and since which opset they mean that. A node that is not here, an attribute that is
not here, and a value that an attribute does not take are refused when the model is loaded, by node, operator and attribute. So is
what an operator refuses for reasons that the file tells: which inputs are given, the elements and sizes of weights, the sizes that the
file declares for inputs, and what follows from them. `If`, `Loop`, `Scan`, `Constant`, `Identity`, `SequenceMap` and the operators on
optionals are there too, and functions that a model brings along.

An attribute without a default must be given; *[…]* marks one that may be left out. Made by `scripts/onnx_reference.py`.
"""


def choices():
    """(attribute, operator or None): values."""
    source = (SOURCES / "attribute_values.cpp").read_text()
    names = {name: "".join(re.findall(r'"([^"]*)"', value)) for name, value in re.findall(r'(k\w+) =\s*((?:"[^"]*"\s*)+)', source)}
    table = re.search(r"kValues\[\] = \{(.*?)\n\};", source, re.S).group(1)
    found = {}
    words = r'((?:"[^"]*"\s*)+|k\w+)'

    def value_of(word):
        return names[word] if word in names else "".join(re.findall(r'"([^"]*)"', word))

    for attribute, operators, values in re.findall(r'\{"(\w+)",\s*' + words + r',\s*' + words + r'\}', table):
        for operator in value_of(operators).split() or [None]:
            found[attribute, operator] = value_of(values).split()
    return found


def functions():
    """(domain, name): {opset: function}."""
    found = collections.defaultdict(dict)
    for path in sorted((SOURCES / "operators").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            match = isinstance(node, ast.FunctionDef) and re.fullmatch(r"(?!_)(\w+)_(\d+)", node.name)
            if match:
                prefix, _, rest = match[1].partition("_")
                domain, name = (prefix, rest) if rest and prefix in DOMAINS else ("", match[1])
                found[domain, name][int(match[2])] = node
    return found


def element_types():
    """Attributes that hold an element type, of which functions get our number."""
    source = (SOURCES / "call.cpp").read_text()
    return set(re.findall(r'"(\w+)"', re.search(r"kTypeAttributes\[\] = \{(.*?)\};", source, re.S).group(1)))


ELEMENT_TYPES = element_types()
OUR_TYPES = {3: "INT32", 6: "FLOAT"}


def type_of(annotation):
    declared = ast.unparse(annotation)
    optional = re.fullmatch(r"Optional\[(.*)\]", declared)
    inner = optional[1] if optional else declared
    return TYPES.get(inner, inner), bool(optional)


def attribute_cell(name, annotation, default, values):
    kind, is_optional = type_of(annotation)
    value = ast.literal_eval(default) if default is not None else None
    if name in ELEMENT_TYPES:
        kind, value = "element type", OUR_TYPES[value] if value is not None else None
    elif values and kind == "ints" and values[0].isalpha():
        kind = "strings"
    cell = f"`{name}` {kind}"
    if default is not None and value is not None:
        cell += " = " + (f"`{value}`" if value != "" else "none")
    if values and values != ["*"]:
        cell += ": " + ", ".join(f"`{each}`" for each in values)
    return f"[{cell}]" if is_optional else cell


def row(domain, name, versions, known):
    cells, key = [], f"{domain}_{name}" if domain else name
    for opset, node in sorted(versions.items()):
        inputs = []
        first_default = len(node.args.args) - len(node.args.defaults)
        for i, argument in enumerate(node.args.args):
            kind, is_optional = type_of(argument.annotation)
            cell = argument.arg + (" …" if kind == "List[Tensor]" else "")
            inputs.append(f"[{cell}]" if is_optional or i >= first_default else cell)
        attributes = [attribute_cell(argument.arg, argument.annotation, default,
                                     known.get((argument.arg, key), known.get((argument.arg, None))))
                      for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults)
                      if argument.arg != "_outputs"]
        cells.append((opset, ", ".join(inputs), "; ".join(attributes)))
    merged = []
    for opset, inputs, attributes in cells:
        if merged and merged[-1][1:] == (inputs, attributes):
            continue
        merged.append((opset, inputs, attributes))
    return [f"| `{name}` | {opset} | {inputs} | {attributes} |" for opset, inputs, attributes in merged]


def page():
    known, lines = choices(), [HEAD]
    all_functions = functions()
    for domain, title in DOMAINS.items():
        operators = {name: versions for (place, name), versions in all_functions.items() if place == domain}
        if not operators:
            continue
        lines += [f"## {title}", "", "| operator | opset | inputs | attributes |", "|---|---|---|---|"]
        for name in sorted(operators, key=str.lower):
            lines += row(domain, name, operators[name], known)
        lines.append("")
    return "\n".join(lines)


def main():
    markdown = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(markdown)
    elif not PAGE.exists() or PAGE.read_text() != markdown:
        sys.exit("docs/onnx_operators.md is out of date: run scripts/onnx_reference.py")


if __name__ == "__main__":
    main()
