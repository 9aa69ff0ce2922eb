"""Writes the package's .pyi files from the module and the registry. Usage: stubs.py FOLDER (the package tensord/engine in it).

The build runs it after linking the module. Hand-written bindings come from nanobind's stubgen, operators from their
schemas.
"""

from __future__ import annotations

import importlib
import keyword
import pathlib
import re
import subprocess
import sys

HEAD = '''"""Printed by python/stubs.py."""

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple, Union, overload

'''
TYPES = {
    "Tensor": "Tensor", "int": "builtins.int", "float": "builtins.float", "bool": "builtins.bool", "str": "str", "number": "_Number", "Scalar": "_Number",
    "complex": "builtins.complex", "ScalarType": "Union[dtype, builtins.type]", "Layout": "layout", "MemoryFormat": "memory_format",
    "Device": "Union[device, str]", "Generator": "Generator", "Any": "Any", "NoneType": "None",
}
# Types that nanobind reports as "object".
PROPERTIES = {
    "shape": "Size", "dtype": "dtype", "device": "device", "layout": "layout", "grad": "Union[Tensor, None]", "data": "Tensor", "T": "Tensor",
    "mT": "Tensor", "grad_fn": "Union[Node, None]", "tolist": "Any", "item": "Any",
}
FUNCTIONS = {"from_numpy": "Tensor", "frombuffer": "Tensor", "from_dlpack": "Tensor", "get_rng_state": "Tensor", "get_default_dtype": "dtype"}
RETURNS = {"ScalarType": "dtype", "Device": "device", "number": "_Number", "Scalar": "_Number"}


def _type(schema_type: str, fixed: bool, result: bool) -> str:
    if match := re.fullmatch(r"Optional\[(.*)\]", schema_type):
        return f"Union[{_type(match.group(1), fixed, result)}, None]"
    if match := re.fullmatch(r"List\[(.*)\]", schema_type):
        element = _type(match.group(1), False, result)
        if result:
            return f"tuple[{element}, ...]" if element == "Tensor" else f"list[{element}]"
        return f"Union[{element}, Sequence[{element}]]" if fixed else f"Sequence[{element}]"
    if result and schema_type in RETURNS:
        return RETURNS[schema_type]
    return TYPES.get(schema_type, "Any")


def _argument_type(argument: dict) -> str:
    kind = argument["type"]
    if kind in ("ScalarType", "Layout", "MemoryFormat"):
        return f"Union[{TYPES[kind]}, None]" if argument["is_optional"] else TYPES[kind]
    return _type(kind, argument["fixed_size"] > 0, False)


def _parameters(record: dict, is_method: bool, spread: bool) -> str | None:
    out = []
    seen_keyword_only = False
    for index, argument in enumerate(record["arguments"]):
        name = argument["name"]
        if keyword.iskeyword(name):
            return None
        if index == 0 and is_method:
            out.append("self")
            continue
        if spread and index == record["spreads"]:
            out.append(f"*{name}: builtins.int")
            seen_keyword_only = True
            continue
        if argument["is_keyword_only"] and not seen_keyword_only:
            out.append("*")
            seen_keyword_only = True
        out.append(f"{name}: {_argument_type(argument)}" + (" = ..." if argument["has_default"] else ""))
    makes_tensors = not any(argument["type"] in ("Tensor", "List[Tensor]") for argument in record["arguments"])
    if makes_tensors or record["overload"] == "" and record["text"].split("(")[0].endswith("_like"):
        out += [] if seen_keyword_only else ["*"]
        out.append("requires_grad: builtins.bool = ...")
    return ", ".join(out)


class Printer:
    def __init__(self, engine):
        self.engine = engine
        self.results = []

    def _result(self, name: str, record: dict) -> str:
        returns = record["returns"]
        if not returns:
            return "None"
        types = [RETURNS.get(r["type"], TYPES.get(r["type"])) or _type(r["type"], False, True) for r in returns]
        if len(returns) == 1:
            return types[0]
        if not all(r["name"] for r in returns):
            return f"tuple[{', '.join(types)}]"
        label = f"_{name}_{record['overload']}".rstrip("_") if record["overload"] else f"_{name}"
        fields = [r["name"] if not r["name"].startswith("_") and not keyword.iskeyword(r["name"]) else f"field{i}" for i, r in enumerate(returns)]
        if not any(line.startswith(f"class {label}(") for line in self.results):
            self.results.append(f"class {label}(NamedTuple):\n" + "\n".join(f"    {f}: {t}" for f, t in zip(fields, types)) + "\n")
        return label

    def definitions(self, name: str, records: list, is_method: bool) -> list:
        lines = []
        for record in records:
            for spread in [False, True] if record["spreads"] >= 0 else [False]:
                parameters = _parameters(record, is_method, spread)
                if parameters is None:
                    parameters = "self, *args: Any, **kwargs: Any" if is_method else "*args: Any, **kwargs: Any"
                # NumPy's names for the same, which calls take too.
                for signature in dict.fromkeys((parameters, re.sub(r"\bdim: ", "axis: ", re.sub(r"\bkeepdim: ", "keepdims: ", parameters)))):
                    line = f"def {name}({signature}) -> {self._result(name, record)}: ..."
                    if line not in lines:
                        lines.append(line)
        if len(lines) > 1:
            return [signature for line in lines for signature in ("@overload", line)]
        return lines


def operators(engine):
    names = [full.removeprefix("aten::") for full in engine._engine._operator_names() if full.startswith("aten::")]
    for name in [*names, *engine._aliases.NAMES]:
        if name.isidentifier() and not name.startswith("_") and not keyword.iskeyword(name):
            yield name, engine._engine._schemas("aten::" + name)


def _python_result(function) -> str:
    if function.__name__ == "convert":
        return "Tensor"
    return {"Tensor": "Tensor", "bool": "builtins.bool"}.get(getattr(function, "__annotations__", {}).get("return"), "Any")


def _properties(engine, native: set) -> list:
    lines = []
    for name, (_, setter, kind) in engine._python_methods.PROPERTIES.items():
        lines += ["    @property", f"    def {name}(self) -> {'Tensor' if kind is engine.Tensor else 'builtins.' + kind.__name__}: ..."]
        if setter is not None:
            lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        native.add(name)
    return lines


def errors(engine) -> str:
    kinds = [(name, kind) for name, kind in vars(engine._engine).items() if isinstance(kind, type) and issubclass(kind, BaseException)]
    return "".join(f"class {name}({', '.join(base.__name__ for base in kind.__bases__)}): ...\n" for name, kind in kinds)


def native_stub(folder: pathlib.Path, printer: Printer, engine) -> str:
    # The native module alone, before the package adds methods to Tensor.
    program = "import sys; sys.path.insert(0, sys.argv[1]); from nanobind.stubgen import main; main(['-q', '-P', '-m', '_engine', '-o', sys.argv[2]])"
    made = folder / "_engine.pyi"
    subprocess.run([sys.executable, "-c", program, str(folder), str(made)], check=True)
    stub = made.read_text()
    native = set(re.findall(r"^    def (\w+)\(", stub[stub.index("class Tensor:"):], re.MULTILINE))
    for name, result in PROPERTIES.items():
        stub = re.sub(rf"(    def {name}\(self\)) -> object", rf"\1 -> {result}", stub)
    for name, result in FUNCTIONS.items():
        stub = re.sub(rf"^(def {name}\(.*\)) -> object", rf"\1 -> {result}", stub, flags=re.MULTILINE)
    # The builtins of these names are dtypes here.
    stub = re.sub(r"(?<=[ \[(|])(?<!def )(int|float|bool)\b(?![(:] ?[a-z])", r"builtins.\1", stub)
    stub += "\nclass Size(tuple[builtins.int, ...]):\n    def numel(self) -> builtins.int: ...\n" + errors(engine)
    methods = _properties(engine, native)
    written = {name: function for name, function in engine._python_methods.METHODS.items() if name not in engine._aliases.NAMES}
    for name, function in {**engine._tensor_methods._METHODS, **written}.items():
        if callable(function) and not name.startswith("__repr") and name not in native:
            methods.append(f"    def {name}(self, *args: Any, **kwargs: Any) -> {_python_result(function)}: ...")
            native.add(name)
    for name, records in operators(engine):
        own = [r for r in records if r["arguments"] and r["arguments"][0]["name"] == "self" and r["arguments"][0]["type"] == "Tensor"]
        if own and name not in native:
            methods += ["    " + line for line in printer.definitions(name, own, True)]
    block = "\n".join(methods)
    return re.sub(r"^(class Tensor:\n(?:    \"\"\".*?\"\"\"\n)?)", lambda match: match.group(1) + block + "\n", stub, count=1, flags=re.MULTILINE)


def package_stub(printer: Printer, engine) -> str:
    native = sorted(name for name in dir(engine._engine) if not name.startswith("_") and name not in ("Operator", *engine._functions))
    python = sorted(engine._functions)
    lines = ["from tensord.engine import array_api as array_api, autograd as autograd, data as data, fft as fft, func as func, jit as jit",
             "from tensord.engine import linalg as linalg, nested as nested, nn as nn, optim as optim, special as special"]
    lines += [f"from tensord.engine._engine import {name} as {name}" for name in native]
    lines += [f"from tensord.engine._functions import {name} as {name}" for name in python]
    lines += ["from tensord.engine._dtype_info import finfo as finfo, iinfo as iinfo",
              "from tensord.engine._grad_mode import enable_grad as enable_grad, inference_mode as inference_mode",
              "from tensord.engine._grad_mode import no_grad as no_grad, set_grad_enabled as set_grad_enabled",
              "from tensord.engine._operators import ops as ops",
              "from tensord.engine._planned_step import PlannedStep as PlannedStep, plan_step as plan_step",
              "from tensord.engine._serving import Server as Server, serve as serve",
              "from tensord.engine._printing import set_printoptions as set_printoptions",
              "from tensord.engine.files import load as load, save as save", "", "_Number = Union[builtins.int, builtins.float, builtins.complex]",
              "__version__: str", ""]
    for name, records in operators(engine):
        if name not in native and name not in python and name != "data":  # the module of that name
            lines += printer.definitions(name, records, False)
    return "\n".join(lines)


def module_stub(engine, prefix: str) -> str:
    """The stub of a module that exposes the operators with a prefix."""
    printer = Printer(engine)
    lines = ["from tensord.engine._engine import Generator, Tensor, device, dtype, layout, memory_format", "",
             "_Number = Union[builtins.int, builtins.float, builtins.complex]", ""]
    for name in engine._operator_module.names(prefix):
        if not keyword.iskeyword(name):
            lines += printer.definitions(name, engine._engine._schemas(f"aten::{prefix}{name}"), False)
    return HEAD + "\n".join(printer.results) + "\n".join(lines) + "\n"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(folder.parents[1]))
    engine = importlib.import_module("tensord.engine")
    printer = Printer(engine)
    package = package_stub(printer, engine)
    (folder / "__init__.pyi").write_text(HEAD + "\n".join(printer.results) + package + "\n")
    printer = Printer(engine)
    native = native_stub(folder, printer, engine)
    (folder / "_engine.pyi").write_text(HEAD + native + "\n_Number = Union[builtins.int, builtins.float, builtins.complex]\n" + "\n".join(printer.results))
    for module in ("fft", "linalg", "special"):
        (folder / f"{module}.pyi").write_text(module_stub(engine, module + "_"))
    (folder / "py.typed").write_text("")


if __name__ == "__main__":
    main()
