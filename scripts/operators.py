#!/usr/bin/env python3
"""Makes the typed functions of the operators from kernels/*/*.ops, when the engine is built: for each folder ops/FOLDER.h and .cpp, the table of
core/ops/declared.h, and of the public API tensord/ops.h and the members of Tensor.

Usage: scripts/operators.py OUT [--skipped]
    A file is written only where its text changes. --skipped lists the operators on tensors that get no function, with the reason.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TEMPLATES = pathlib.Path(__file__).resolve().parent / "operators"
METHOD_PARTS = 4
# Types of the schema -> of C++.
TYPES = {
    "Tensor": "const Tensor&", "Tensor?": "const std::optional<Tensor>&", "Tensor[]": "tensord::TensorList", "int": "Int", "int?": "std::optional<Int>",
    "Tensor?[]": "tensord::OptionalTensorList", "float": "Float", "float?": "std::optional<Float>", "bool": "Bool", "bool?": "std::optional<Bool>",
    "Scalar": "const ops::Scalar&", "Scalar?": "const std::optional<ops::Scalar>&", "Scalar[]": "tensord::ScalarList", "str": "std::string_view",
    "str?": "std::optional<std::string_view>", "int[]": "tensord::IntList", "int[]?": "tensord::OptionalIntList", "float[]": "tensord::FloatList",
    "float[]?": "tensord::OptionalFloatList", "bool[]": "tensord::BoolList", "ScalarType": "DType", "ScalarType?": "std::optional<DType>",
    "Device": "const Device&", "Device?": "std::optional<Device>", "MemoryFormat": "MemoryFormat", "MemoryFormat?": "std::optional<MemoryFormat>",
    "Layout?": "std::optional<Layout>",
}
# Objects of operators: packed weights.
OBJECT, OBJECT_TYPE = re.compile(r"__torch__\.torch\.classes\.[\w.]+"), "const ops::Value&"
RESULTS = {"Tensor": "Tensor", "Tensor?": "Tensor", "Tensor[]": "std::vector<Tensor>", "Tensor?[]": "std::vector<Tensor>", "bool": "bool", "int": "int64_t",
           "float": "double", "Scalar": "ops::Scalar", "int[]": "Dims", "ScalarType": "DType", "Device": "Device", "()": "void"}
# Nothing to choose here: they are None.
OMITTED = ("Generator?",)
DTYPES = {"long": "DType::kInt64", "4": "DType::kInt64", "float": "DType::kFloat32", "6": "DType::kFloat32"}
MEMORY_FORMATS = {"contiguous_format": "MemoryFormat::kContiguous", "preserve_format": "MemoryFormat::kPreserve"}
KEYWORDS = set("and bool double float int long not or xor new delete default register short signed template this".split())
# include/tensord/index.h has them, with ranges and masks.
HAND_WRITTEN = ("index", "index_put", "index_put_")
# Tensor has members of these names.
MEMBERS = set("data device dtype is_contiguous ndim numel offset size sizes storage stride strides version".split())
MARK = re.compile(r"\([a-z!|> *-]+\)")


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
            return "tensord::BoolList"
        return "tensord::OptionalIntOrList" if fixed[2] else "tensord::IntOrList"
    if OBJECT.fullmatch(schema_type):
        return OBJECT_TYPE
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
    if base == "str":
        return '"' + value[1:-1] + '"'
    return value


class Argument:
    def __init__(self, argument, is_keyword):
        declaration, has_default, default = argument.partition("=")
        schema_type, self.name = declaration.strip().rsplit(" ", 1)
        self.is_written = "!" in schema_type
        schema_type = MARK.sub("", schema_type)
        self.is_omitted = schema_type in OMITTED or self.name == "pin_memory"
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
    """An operator with a function."""

    def __init__(self, family, schema):
        self.family, self.schema = family, schema
        head, rest = schema.split("(", 1)
        self.full_name = head
        space, _, name = head.partition("::")
        self.name, _, self.overload = name.partition(".")
        if space != "aten":
            self.name = f"{space}_{self.name}"
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
        if self.overload.startswith("prim_") or re.match(r"aten::[A-Z]", head):
            raise Skipped("of TorchScript")
        self.outs = [a for a in self.arguments if a.is_out]
        self.positional = [a for a in self.arguments if not a.is_keyword and not a.is_omitted]
        self.keywords = [a for a in self.arguments if a.is_keyword and not a.is_out]
        if self.outs and not self.name.endswith("_out"):
            self.name += "_out"
        self.required = self.required_count()
        self.is_public = bool(re.match(r"aten::[a-z]", head)) and self.name not in HAND_WRITTEN and self.result != "void" \
            and not any(kind in argument.type for argument in self.arguments for kind in ("OptionalTensorList", "Value"))

    def result_type(self, result):
        result = MARK.sub("", result)
        if OBJECT.fullmatch(result):
            return "ops::Value"
        if not result.startswith("(") or result == "()":
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
        while count > 0 and (self.outs + self.positional)[count - 1].default is not None:
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
            out.append(f"const keyword::{structs.name_of(self)}& keywords" + (" = {}" if has_default else ""))
        return ", ".join(out)

    @property
    def is_method(self):
        first = self.arguments[0] if self.arguments else None
        return self.is_public and bool(first) and (first.name, first.type) == ("self", "const Tensor&") and not self.outs and self.name not in MEMBERS

    def calls(self, structs):
        """(parameters, arguments) of each way to call it as a method: without defaults, whose types are incomplete
        inside Tensor."""
        parameters = split_parameters(self.parameters(structs, False))[1:]
        names = [parameter.rsplit(" ", 1)[1] for parameter in parameters]
        for count in range(self.required - 1, len(parameters) + 1):
            yield ", ".join(parameters[:count]), ", ".join(["*this", *names[:count]])

    def declaration(self, structs):
        return f"{self.result} {self.name}({self.parameters(structs, True)});  // {self.full_name.removeprefix('aten::')}"

    def definition(self, structs):
        values = "".join(", nullptr" if a.is_omitted else f", keywords.{a.name}" if a in self.keywords else f", {a.name}" for a in self.arguments)
        macro = "TENSORD_RUN" if self.result == "void" else "TENSORD_CALL"
        return f"{self.result} {self.name}({self.parameters(structs, False)}) {{ {macro}(\"{self.full_name}\"{values}); }}"


class Structs:
    """Keyword arguments as aggregates, by their fields; each family has its own."""

    def __init__(self):
        self.names = {}

    def name_of(self, operator):
        family, keywords = operator.family, operator.keywords
        names, fields = self.names.setdefault(family, {}), tuple(a.field() for a in keywords)
        if fields not in names:
            name = "".join(word.capitalize() for word in [family, *(word for a in keywords for word in a.name.split("_"))] if word) + "Args"
            same = sum(1 for other in names.values() if re.fullmatch(name + r"\d*", other))
            names[fields] = name + (str(same + 1) if same else "")
        return names[fields]

    def definitions(self, family):
        return "\n".join(f"struct {name} {{\n" + "".join(f"  {field};\n" for field in fields) + "};" for fields, name in self.names.get(family, {}).items())

    def declarations(self):
        return "\n".join(f"struct {name};" for names in self.names.values() for name in names.values())


FORM = r"(inplace(\.\w+)?|out|autocast ((cpu|cuda) )?(lower|f32|promote|refused))"


def read_lines(root=ROOT):
    """(folder, file, line) of each operator. Ends the program at lines that are doubled, or are none."""
    lines, seen, problems = [], {}, []
    for path in sorted(root.glob("kernels/*/*.ops")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            place = f"{path.relative_to(root)}:{number}"
            if not re.fullmatch(rf"[a-z_0-9]+::\w+(\.\w+)?\(.*\) -> [^;]+(; {FORM}(, {FORM})*)?", line):
                problems.append(f"{place}: expected 'space::name.overload(arguments) -> results; inplace, out, autocast lower': {line}")
                continue
            name = line.split("(")[0]
            if name in seen:
                problems.append(f"{place}: {name} is declared in {seen[name]} too")
            seen[name] = place
            lines.append((path.parent.name, path.relative_to(root).as_posix(), line))
    if problems:
        raise SystemExit("\n".join(problems))
    return lines


def schemas_of(line):
    """The schema of a line, and those of its forms; as the constructor of core/ops/op.h's OpBuilder makes them."""
    schema, _, forms = line.partition("; ")
    yield schema
    head, rest = schema.split("(", 1)
    name, _, overload = head.partition(".")
    body, _ = rest.rsplit(") -> ", 1)
    if forms.startswith("inplace"):
        first, *others = split(body)
        kind, argument = first.split(" ", 1)
        inplace = forms.split(", ")[0].partition(".")[2] or overload
        yield f"{name}_{'.' + inplace if inplace else ''}({', '.join([f'{kind}(a!) {argument}', *others])}) -> Tensor(a!)"
    if "out" in forms.split(", "):
        form = "out" if overload in ("", "Tensor") else overload + "_out"
        yield f"{name}.{form}({', '.join(split(body) + ([] if '*' in split(body) else ['*']) + ['Tensor(a!) out'])}) -> Tensor(a!)"


def read_operators(lines):
    found, skipped, taken = [], [], {}
    for family, _, line in lines:
        for schema in schemas_of(line):
            try:
                found.append(Operator(family, schema))
            except Skipped as reason:
                if str(reason) and "Tensor" in schema:
                    skipped.append((schema, str(reason)))
            except (KeyError, ValueError) as error:
                raise SystemExit(f"{schema}: {error!r}") from error
    # Public ones first, the plain overload, then by the number of required parameters: earlier ones keep their defaults.
    found.sort(key=lambda o: (o.name, not o.is_public, o.overload != "", o.required, o.full_name))
    kept = []
    for operator in found:
        try:
            operator.separate_from(taken.setdefault(operator.name, set()))
            kept.append(operator)
        except Skipped as reason:
            skipped.append((operator.schema, str(reason)))
    return kept, skipped


NOTE = "// Made by scripts/operators.py from kernels/*/*.ops.\n// clang-format off\n"


def family_files(kept, structs, families):
    out = {}
    head = (TEMPLATES / "family.h").read_text()
    for family in families:
        members = [o for o in kept if o.family == family]
        declarations = "\n".join(o.declaration(structs) for o in members)
        out[f"ops/{family}.h"] = NOTE + head.replace("@STRUCTS@", structs.definitions(family)).replace("@OPERATORS@", declarations)
        definitions = "\n".join(o.definition(structs) for o in members)
        out[f"ops/{family}.cpp"] = f'{NOTE}#include "ops/{family}.h"\n\n#include "core/ops/typed_call.h"\n\nnamespace tensord::ops {{\n\n{definitions}\n\n' \
                                   "}  // namespace tensord::ops\n"
    return out


def table_file(lines):
    rows = "\n".join(f'    {{R"ops({line})ops", "{file}"}},' for _, file, line in sorted(lines, key=lambda row: row[2].split("(")[0]))
    return f'{NOTE}#include "core/ops/declared.h"\n\nnamespace tensord::ops {{\nnamespace {{\n\nconstexpr Declared kDeclared[] = {{\n{rows}\n}};\n\n' \
           "}  // namespace\n\nstd::span<const Declared> declared_operators() { return kDeclared; }\n\n}  // namespace tensord::ops\n"


def public_files(kept, structs, families):
    names = sorted({o.name for o in kept if o.is_public})
    out = {"tensord/ops.h": NOTE + (TEMPLATES / "ops.h").read_text().replace("@INCLUDES@", "\n".join(f'#include "ops/{family}.h"' for family in families))
           .replace("@OPERATORS@", "\n".join(f"using ops::{name};" for name in names))}
    methods = [o for o in kept if o.is_method]
    out["tensord/methods.h"] = NOTE + (TEMPLATES / "methods.h").read_text().replace("@STRUCTS@", structs.declarations())
    lines = [f"{o.result} {o.name}({parameters}) const&;" for o in methods for parameters, _ in o.calls(structs)]
    out["tensord/method_list.h"] = NOTE + "// Members of Tensor, see methods.h; read inside of the class.\n" + "\n".join(lines) + "\n"
    size = -(-len(methods) // METHOD_PARTS)
    for part in range(METHOD_PARTS):
        body = "\n".join(f"{o.result} Tensor::{o.name}({parameters}) const& {{ return tensord::{o.name}({arguments}); }}"
                         for o in methods[part * size:(part + 1) * size] for parameters, arguments in o.calls(structs))
        out[f"methods_{part + 1}.cpp"] = f'{NOTE}#include "tensord/ops.h"\n\nnamespace tensord {{\n\n{body}\n\n}}  // namespace tensord\n'
    return out


def main():
    folder, *options = sys.argv[1:]
    lines = read_lines()
    kept, skipped = read_operators(lines)
    if options == ["--skipped"]:
        print("\n".join(f"{reason}: {schema}" for schema, reason in skipped))
        return
    structs = Structs()
    for operator in kept:
        if operator.keywords:
            structs.name_of(operator)
    families = sorted({family for family, _, _ in lines})
    files = {**family_files(kept, structs, families), "ops/declared.cpp": table_file(lines), **public_files(kept, structs, families)}
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
