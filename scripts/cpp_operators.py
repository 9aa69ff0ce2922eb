#!/usr/bin/env python3
"""Generates the typed C++ operators from the registry of BINARY: include/tensord/ops.h and core/api/ops_*.cpp, and as members of Tensor
include/tensord/{methods,method_list}.h and core/api/methods_*.cpp.

Usage: scripts/cpp_operators.py BINARY [--check | --skipped]
    --check     only says whether the files are up to date
    --skipped   lists the operators on tensors that get no function, with the reason
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADER = ROOT / "include/tensord/ops.h"
METHODS_HEADER, METHOD_LIST = ROOT / "include/tensord/methods.h", ROOT / "include/tensord/method_list.h"
PARTS, METHOD_PARTS = 6, 4
# Types of the schema -> of C++.
TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const std::optional<Tensor>&", "Tensor[]": "TensorList", "int": "Int", "int?": "std::optional<Int>",
    "float": "Float", "float?": "std::optional<Float>", "bool": "Bool", "bool?": "std::optional<Bool>", "Scalar": "const Scalar&",
    "Scalar?": "const std::optional<Scalar>&", "Scalar[]": "ScalarList", "str": "std::string_view", "str?": "std::optional<std::string_view>",
    "int[]": "IntList", "int[]?": "OptionalIntList", "float[]": "FloatList", "float[]?": "OptionalFloatList", "bool[]": "BoolList",
    "ScalarType": "DType", "ScalarType?": "std::optional<DType>", "Device": "const Device&", "Device?": "std::optional<Device>",
    "MemoryFormat": "MemoryFormat", "MemoryFormat?": "std::optional<MemoryFormat>",
}
RESULTS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "bool": "bool", "int": "int64_t", "float": "double", "Scalar": "Scalar", "int[]": "Dims",
           "ScalarType": "DType", "Device": "Device"}
# Nothing to choose here: they are None.
OMITTED = ("Layout?", "Generator?")
DTYPES = {"4": "DType::kInt64", "6": "DType::kFloat32"}
MEMORY_FORMATS = {"0": "MemoryFormat::kContiguous"}
KEYWORDS = set("and bool double float int long not or xor new delete default register short signed template this".split())
# include/tensord/index.h has them, with ranges and masks.
HAND_WRITTEN = ("index", "index_put", "index_put_")
# Tensor has members of these names.
MEMBERS = set("data device dtype is_contiguous ndim numel offset size sizes storage stride strides version".split())


class Skipped(Exception):
    pass


def split(declaration):
    """At commas outside of brackets."""
    out, depth, part = [], 0, ""
    for char in declaration:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            out.append(part.strip())
            part = ""
        else:
            part += char
    return out + [part.strip()] if part.strip() else out


def split_parameters(declaration):
    """At commas outside of template arguments."""
    return re.split(r", (?![^<]*>)", declaration)


def cpp_type(schema_type):
    if fixed := re.fullmatch(r"(int|bool)\[\d+\](\??)", schema_type):
        if fixed[1] == "bool":
            return "BoolList"
        return "OptionalIntOrList" if fixed[2] else "IntOrList"
    if schema_type not in TYPES:
        raise Skipped(f"an argument of the type {schema_type}")
    return TYPES[schema_type]


def cpp_default(value, schema_type):
    base = schema_type.rstrip("?")
    if value == "None":
        return "std::nullopt"
    if base == "ScalarType":
        return DTYPES[value]
    if base == "MemoryFormat":
        return MEMORY_FORMATS[value]
    if value in ("True", "False"):
        return value.lower()
    if value.startswith("["):
        return "{" + value[1:-1].replace("True", "true").replace("False", "false") + "}"
    if value == "inf":
        return "std::numeric_limits<double>::infinity()"
    return value


class Argument:
    def __init__(self, argument, is_keyword):
        declaration, has_default, default = argument.partition("=")
        schema_type, self.name = declaration.strip().rsplit(" ", 1)
        self.is_written = "!" in schema_type
        schema_type = re.sub(r"\([a-z!|> *-]+\)", "", schema_type)
        self.is_omitted = schema_type in OMITTED or self.name == "pin_memory"
        if self.is_omitted and not has_default:
            raise Skipped(f"{self.name} must be given")
        self.type = "" if self.is_omitted else cpp_type(schema_type)
        self.default = cpp_default(default, schema_type) if has_default and not self.is_omitted else None
        self.is_keyword = is_keyword and not self.is_omitted
        self.is_out = self.is_keyword and self.is_written
        if self.name in KEYWORDS:
            self.name += "_"

    def field(self):
        kind = re.sub(r"^const (.*)&$", r"\1", self.type)
        return f"{kind} {self.name}" + (f" = {self.default}" if self.default is not None else "")


class Operator:
    def __init__(self, schema):
        self.schema = schema
        head, rest = schema.split("(", 1)
        self.full_name = head
        self.name, _, self.overload = head.removeprefix("aten::").partition(".")
        body, result = rest.rsplit(" -> ", 1)
        self.arguments, is_keyword = [], False
        for declared in split(body[:-1]):
            if declared == "*":
                is_keyword = True
                continue
            if declared == "...":
                raise Skipped("any arguments")
            self.arguments.append(Argument(declared, is_keyword))
        self.result = self.result_type(result)
        if not any("Tensor" in argument.type for argument in self.arguments) and "Tensor" not in self.result:
            raise Skipped("")  # of a script's numbers, strings and lists
        self.outs = [a for a in self.arguments if a.is_out]
        self.positional = [a for a in self.arguments if not a.is_keyword and not a.is_omitted]
        self.keywords = [a for a in self.arguments if a.is_keyword and not a.is_out]
        if self.outs and not self.name.endswith("_out"):
            self.name += "_out"
        self.required = self.required_count()

    def result_type(self, result):
        result = re.sub(r"\([a-z!|> *-]+\)", "", result)
        if result == "()":
            raise Skipped("no result")
        if not result.startswith("("):
            if result not in RESULTS:
                raise Skipped(f"a result of the type {result}")
            return RESULTS[result]
        parts = [part.split(" ")[0] for part in split(result[1:-1])]
        if any(part not in RESULTS for part in parts):
            raise Skipped(f"results of the types {result}")
        return f"std::tuple<{', '.join(RESULTS[part] for part in parts)}>"

    def types(self):
        """Of all C++ parameters, in order."""
        return [a.type for a in self.outs + self.positional] + ([f"keyword {[a.field() for a in self.keywords]}"] if self.keywords else [])

    def required_count(self):
        """The number of leading parameters without defaults."""
        if any(a.default is None for a in self.keywords):
            return len(self.types())
        count = len(self.outs) + len(self.positional)
        while count > len(self.outs) and self.positional[count - len(self.outs) - 1].default is not None:
            count -= 1
        return count

    def separate_from(self, taken):
        """Removes defaults, so that no call is ambiguous with a previous operator."""
        types = self.types()
        calls = [tuple(types[:count]) for count in range(self.required, len(types) + 1)]
        while calls and calls[0] in taken:
            self.required += 1
            calls = calls[1:]
        clash = [index for index, call in enumerate(calls) if call in taken]
        if clash:
            self.required += clash[-1] + 1
            calls = calls[clash[-1] + 1:]
        if not calls:
            raise Skipped("its calls look like those of another overload")
        taken.update(calls)

    def parameters(self, structs, with_defaults):
        out = []
        for argument in self.outs + self.positional:
            has_default = with_defaults and len(out) >= self.required
            out.append(f"{argument.type} {argument.name}" + (f" = {argument.default}" if has_default else ""))
        if self.keywords:
            has_default = with_defaults and len(out) >= self.required
            out.append(f"const keyword::{structs.name_of(self.keywords)}& keywords" + (" = {}" if has_default else ""))
        return ", ".join(out)

    @property
    def is_method(self):
        first = self.arguments[0] if self.arguments else None
        return bool(first) and (first.name, first.type) == ("self", "const Tensor&") and not self.outs and self.name not in MEMBERS

    def calls(self, structs):
        """(parameters, arguments) of each way to call it as a method: without defaults, whose types are incomplete
        inside Tensor."""
        parameters = split_parameters(self.parameters(structs, False))[1:]
        names = [parameter.rsplit(" ", 1)[1] for parameter in parameters]
        for count in range(self.required - 1, len(parameters) + 1):
            yield ", ".join(parameters[:count]), ", ".join(["*this", *names[:count]])

    def values(self):
        return ", ".join("nullptr" if a.is_omitted else f"keywords.{a.name}" if a in self.keywords else a.name for a in self.arguments)


class Structs:
    """Keyword arguments as aggregates, by their fields."""

    def __init__(self):
        self.names = {}

    def name_of(self, keywords):
        fields = tuple(a.field() for a in keywords)
        if fields not in self.names:
            name = "".join(word.capitalize() for a in keywords for word in a.name.split("_") if word) + "Args"
            same = sum(1 for other in self.names.values() if re.fullmatch(name + r"\d*", other))
            self.names[fields] = name + (str(same + 1) if same else "")
        return self.names[fields]

    def definitions(self):
        return "\n".join(f"struct {name} {{\n" + "".join(f"  {field};\n" for field in fields) + "};" for fields, name in self.names.items())


def operators(binary):
    lines = subprocess.run([binary, "ops", "--json"], check=True, capture_output=True, text=True).stdout.splitlines()
    found, skipped, taken = [], [], {}
    for schema in (json.loads(line)["schema"] for line in lines if line.startswith("{")):
        head = schema.split("(")[0]
        if not re.match(r"aten::[a-z]", head):
            continue
        try:
            operator = Operator(schema)
            if operator.name in HAND_WRITTEN:
                raise Skipped("see index.h")
            if operator.overload.startswith("prim_"):
                raise Skipped("of TorchScript")
            found.append(operator)
        except Skipped as reason:
            if str(reason) and "Tensor" in schema:
                skipped.append((schema, str(reason)))
    # The plain overload first, then by the number of required parameters: earlier ones keep their defaults.
    found.sort(key=lambda o: (o.name, o.overload != "", o.required))
    kept = []
    for operator in found:
        try:
            operator.separate_from(taken.setdefault(operator.name, set()))
            kept.append(operator)
        except Skipped as reason:
            skipped.append((operator.schema, str(reason)))
    return kept, skipped


NOTE = "// Printed by scripts/cpp_operators.py from the registry; not to be edited.\n// clang-format off\n"


def files(kept):
    structs = Structs()
    for operator in kept:
        if operator.keywords:
            structs.name_of(operator.keywords)
    declarations = [f"{o.result} {o.name}({o.parameters(structs, True)});  // {o.full_name.removeprefix('aten::')}" for o in kept]
    head = (ROOT / "scripts/cpp_operators_head.txt").read_text()
    out = {HEADER: NOTE + head.replace("@STRUCTS@", structs.definitions()).replace("@OPERATORS@", "\n".join(declarations))}
    size = -(-len(kept) // PARTS)
    for part in range(PARTS):
        body = "\n".join(f"{o.result} {o.name}({o.parameters(structs, False)}) {{ TENSORD_CALL(\"{o.full_name}\", {o.values()}); }}"
                         for o in kept[part * size:(part + 1) * size])
        out[ROOT / f"core/api/ops_{part + 1}.cpp"] = (f'{NOTE}#include "core/api/call.h"\n#include "tensord/ops.h"\n\nnamespace tensord {{\n\n'
                                                      f"{body}\n\n}}  // namespace tensord\n")
    out.update(method_files(kept, structs))
    return out


def method_files(kept, structs):
    methods = [o for o in kept if o.is_method]
    head = (ROOT / "scripts/cpp_methods_head.txt").read_text()
    forward = "\n".join(f"struct {name};" for name in structs.names.values())
    out = {METHODS_HEADER: NOTE + head.replace("@STRUCTS@", forward)}
    lines = [f"{o.result} {o.name}({parameters}) const&;" for o in methods for parameters, _ in o.calls(structs)]
    out[METHOD_LIST] = NOTE + "// Members of Tensor, see methods.h; read inside of the class.\n" + "\n".join(lines) + "\n"
    size = -(-len(methods) // METHOD_PARTS)
    for part in range(METHOD_PARTS):
        body = "\n".join(f"{o.result} Tensor::{o.name}({parameters}) const& {{ return tensord::{o.name}({arguments}); }}"
                         for o in methods[part * size:(part + 1) * size] for parameters, arguments in o.calls(structs))
        out[ROOT / f"core/api/methods_{part + 1}.cpp"] = f'{NOTE}#include "tensord/ops.h"\n\nnamespace tensord {{\n\n{body}\n\n}}  // namespace tensord\n'
    return out


def main():
    binary, *options = sys.argv[1:]
    kept, skipped = operators(binary)
    if options == ["--skipped"]:
        print("\n".join(f"{reason}: {schema}" for schema, reason in skipped))
        return
    stale = [path for path, content in files(kept).items() if not path.exists() or path.read_text() != content]
    if options == ["--check"]:
        if stale:
            raise SystemExit(f"stale: {', '.join(str(path.relative_to(ROOT)) for path in stale)}; run scripts/cpp_operators.py {binary}")
        return
    for path, content in files(kept).items():
        if path in stale:
            path.write_text(content)
    print(f"{len(kept)} functions, {len(skipped)} operators on tensors without one; written: {len(stale)} files")


if __name__ == "__main__":
    main()
