"""engine.jit.script: compiles functions and modules from their Python source with the TorchScript frontend.

Python only rewrites names: `engine.relu` and `F.relu` become `torch.relu`, module-level numbers become constants, a function that is
called becomes a function of the archive, `self.layer(x)` a call of its forward. The front end compiles the result; its errors are raised
with the line of the user's file.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
import textwrap
import types

from tensord.engine import _engine, nn
from tensord.engine._engine import Tensor
from tensord.engine._script_module import load_written
from tensord.engine._scripted_layers import layer_source
from tensord.engine.nn import functional

_FILE = "code/__torch__/scripted.py"
_SPACE = "__torch__.scripted"
# TorchScript's codes of dtypes.
_DTYPES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex64": 9, "complex128": 10, "bool": 11,
           "bfloat16": 15}
_BUILTINS = {"len", "range", "int", "float", "bool", "str", "min", "max", "abs", "isinstance", "enumerate", "zip", "print", "round", "sorted", "list", "all",
             "any", "sum", "divmod", "Exception", "ValueError", "RuntimeError", "IndexError", "KeyError", "AssertionError", "NotImplementedError"}
# Functions of nn.functional that are written in Python and take the same arguments as the operator of that name.
_SAME_AS_OPERATOR = {"relu", "relu6", "silu", "mish", "selu", "hardswish", "hardsigmoid", "elu", "celu", "leaky_relu", "hardtanh", "threshold", "gelu", "softmax",
                     "log_softmax", "softplus"}
_MATH = {"sqrt", "exp", "log", "floor", "ceil", "pow", "sin", "cos", "tanh"}
_MISSING = object()


class _Source:
    """The source of the archive so far, and where each of its lines comes from."""

    def __init__(self):
        self.lines, self.places = [], []

    def add(self, source: str, places=None) -> None:
        new = source.split("\n")
        self.lines += new
        self.places += places or [None] * len(new)

    def joined(self) -> str:
        return "\n".join(self.lines) + "\n"


class _Compiler:
    def __init__(self):
        self.source = _Source()
        self.functions = {}  # Python function → its name in the archive
        self.classes = 0
        self.with_gradient = []

    def function(self, function) -> str:
        if function not in self.functions:
            name = f"{function.__name__}_{len(self.functions)}".lstrip("_").replace("<lambda>", "function")
            self.functions[function] = f"{_SPACE}.{name}"
            source, places = _Rewriter(self, function, None).run(name)
            self.source.add(source + "\n", places + [None])
        return self.functions[function]

    def module(self, module) -> tuple:
        """Returns (class, {attribute: value}) for the archive writer. Submodules come first."""
        name = f"M{self.classes}"
        self.classes += 1
        attributes, declared, parameters, buffers = {"training": module.training}, ["  training : bool"], [], []
        for key, value in module._parameters.items():
            if value is None:
                declared.append(f"  {key} : NoneType")
            else:
                parameters.append(key)
                declared.append(f"  {key} : Tensor")
                if value.requires_grad:
                    self.with_gradient.append(value)
            attributes[key] = value
        for key, value in module._buffers.items():
            buffers.append(key)
            declared.append(f"  {key} : {'Tensor' if value is not None else 'NoneType'}")
            attributes[key] = value
        for key, value in module._modules.items():
            if value is not None:
                attributes[key] = self.module(value)
                kind = attributes[key][0]
                declared.append(f"  {key} : {kind}" if key.isidentifier() else f"  __annotations__[\"{key}\"] = {kind}")
        bodies = self._bodies(module, attributes, declared)
        head = [f"class {name}(Module):", f"  __parameters__ = [{''.join(repr(p) + ', ' for p in parameters)}]",
                f"  __buffers__ = [{''.join(repr(b) + ', ' for b in buffers)}]", *declared]
        self.source.add("\n".join(head).replace("'", '"'))
        for source, places in bodies:
            self.source.add(source, places)
        self.source.add("")
        return f"{_SPACE}.{name}", attributes

    def _bodies(self, module, attributes: dict, declared: list) -> list:
        own = layer_source(module)
        if own is not None:
            return [(textwrap.indent(own, "  "), None)]
        if type(module).__module__.startswith("tensord.engine.nn"):
            raise _engine.UnimplementedError(f"script: {type(module).__name__} has no TorchScript here; trace the model instead")
        wanted, done, bodies = ["forward"], set(), []
        while wanted:
            method = wanted.pop()
            if method in done:
                continue
            done.add(method)
            rewriter = _Rewriter(self, getattr(type(module), method), module)
            source, places = rewriter.run(method)
            bodies.append((textwrap.indent(source, "  "), places))
            wanted += rewriter.methods
            for key in rewriter.constants:
                if key not in attributes:
                    attributes[key] = getattr(module, key)
                    declared.append(f"  {key} : {_type_of(attributes[key], key)}")
        return bodies


def _type_of(value, name: str) -> str:
    if value is None:
        return "NoneType"
    for kind in (bool, int, float, str):
        if type(value) is kind:
            return kind.__name__
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, list) and value:
        return f"List[{_type_of(value[0], name)}]"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(_type_of(item, name) for item in value)}]"
    raise TypeError(f"script: attribute '{name}' is a {type(value).__name__}, which TorchScript has no type for")


class _Rewriter(ast.NodeTransformer):
    """Rewrites one function: Python names are replaced by what they refer to."""

    def __init__(self, compiler: _Compiler, function, module):
        self.compiler, self.module, self.function = compiler, module, inspect.unwrap(function)
        self.methods, self.constants = [], []
        try:
            lines, first = inspect.getsourcelines(self.function)
        except (OSError, TypeError) as error:
            raise TypeError(f"script: the source of {function!r} is not there ({error})") from None
        self.file, self.offset = inspect.getsourcefile(self.function) or "?", first - 1
        try:
            self.tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
        except SyntaxError:
            raise TypeError(f"script: {function!r} cannot be read from its source; write it as a def of its own") from None
        if not isinstance(self.tree, ast.FunctionDef):
            raise TypeError(f"script: {self.file}:{first}: only functions written with def have a TorchScript")
        outer = inspect.getclosurevars(self.function)
        self.known = {**vars(builtins), **self.function.__globals__, **outer.nonlocals}
        arguments = [a.arg for a in [*self.tree.args.posonlyargs, *self.tree.args.args, *self.tree.args.kwonlyargs]]
        self.local = set(arguments) | {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.self_name = arguments[0] if module is not None else None

    def fail(self, node, message: str):
        raise _engine.ScriptError(f"{self.file}:{node.lineno + self.offset}: {message}")

    def run(self, name: str) -> tuple:
        tree = self.tree
        arguments = tree.args
        if arguments.vararg or arguments.kwarg:
            self.fail(tree, "*args and **kwargs have no types in TorchScript")
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            if argument.arg != self.self_name:
                argument.annotation = self.type_of(argument.annotation) if argument.annotation else ast.Name("Tensor")
        arguments.defaults = [self.visit(item) for item in arguments.defaults]
        tree.returns = self.type_of(tree.returns) if tree.returns else None
        tree.decorator_list, tree.name = [], name
        if tree.body and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant) and len(tree.body) > 1:
            del tree.body[0]  # its docstring
        tree.body = [made for statement in tree.body for made in self.statements(statement)]
        source = ast.unparse(ast.fix_missing_locations(tree))
        again = ast.parse(source).body[0]
        places = [None] * (source.count("\n") + 1)
        for before, after in zip(ast.walk(tree), ast.walk(again)):
            if isinstance(after, (ast.stmt, ast.ExceptHandler)) and hasattr(before, "lineno"):
                places[after.lineno - 1] = (self.file, before.lineno + self.offset)
        return source, places

    def type_of(self, node):
        value = self.value_of(node)
        if value is Tensor:
            return ast.Name("Tensor")
        if isinstance(node, ast.BinOp):  # X | None
            sides = [side for side in (node.left, node.right) if not (isinstance(side, ast.Constant) and side.value is None)]
            return ast.Subscript(ast.Name("Optional"), self.type_of(sides[0]), ast.Load())
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.type_of(ast.parse(node.value, mode="eval").body)
        if isinstance(node, ast.Subscript):
            name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "?")
            inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            kinds = [self.type_of(item) for item in inner]
            return ast.Subscript(ast.Name(name[:1].upper() + name[1:]), ast.Tuple(kinds, ast.Load()) if len(kinds) > 1 else kinds[0], ast.Load())
        return node

    def statements(self, node) -> list:
        """Unrolls loops over modules."""
        if isinstance(node, ast.For):
            over = self.member(node.iter)
            if isinstance(over, (nn.ModuleList, nn.Sequential)) and isinstance(node.target, ast.Name):
                out = []
                for key in over._modules:
                    for statement in node.body:
                        copy = ast.parse(ast.unparse(statement)).body[0]
                        _Renamer(node.target.id, node.iter, key).visit(copy)
                        for part in ast.walk(copy):
                            if hasattr(part, "lineno"):
                                part.lineno = statement.lineno
                        out += self.statements(copy)
                return out
        blocks = {field: getattr(node, field) for field in ("body", "orelse") if isinstance(getattr(node, field, None), list)}
        for field in blocks:
            setattr(node, field, [])
        node = self.visit(node)
        for field, block in blocks.items():
            setattr(node, field, [made for statement in block for made in self.statements(statement)])
        return [node]

    def value_of(self, node):
        """The value of a name outside of the function, or _MISSING."""
        if isinstance(node, ast.Name) and node.id not in self.local:
            return self.known.get(node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            owner = self.value_of(node.value)
            if isinstance(owner, (types.ModuleType, type)) or owner is nn.functional:
                return getattr(owner, node.attr, _MISSING)
        return _MISSING

    def member(self, node):
        """Resolves a path to a submodule, such as self.encoder.layers."""
        if isinstance(node, ast.Name) and node.id == self.self_name:
            return self.module
        if isinstance(node, ast.Attribute) and isinstance(self.member(node.value), nn.Module):
            return getattr(self.member(node.value), node.attr, _MISSING)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            return getattr(self.member(node.args[0]), node.args[1].value, _MISSING)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(self.member(node.value), nn.Module):
            return self.member(node.value)[node.slice.value]
        return _MISSING

    def replacement(self, node, value):
        name = getattr(value, "__name__", "")
        if isinstance(value, (bool, int, float, str)) or value is None:
            return ast.Constant(value)
        if isinstance(value, _engine.dtype):
            return ast.Constant(_DTYPES[value.name])
        if type(value).__name__ == "Operator":
            return ast.Attribute(ast.Name("torch"), name, ast.Load())
        if value in (getattr(math, item) for item in _MATH):
            return ast.Attribute(ast.Name("torch"), name, ast.Load())
        if isinstance(value, types.FunctionType) and getattr(functional, name, None) is value:
            if name in _SAME_AS_OPERATOR:
                return ast.Attribute(ast.Name("torch"), name, ast.Load())
            self.fail(node, f"nn.functional.{name} has no TorchScript here; use a layer of nn, an operator, or trace the function")
        if isinstance(value, types.FunctionType):
            if getattr(value, "__module__", "").startswith("tensord.engine"):
                if hasattr(_engine, "_operator") and name in {n.removeprefix("aten::") for n in _engine._operator_names()}:
                    return ast.Attribute(ast.Name("torch"), name, ast.Load())
                self.fail(node, f"{name} has no TorchScript here")
            return ast.parse(self.compiler.function(value), mode="eval").body
        if name in _BUILTINS and getattr(builtins, name, None) is value:
            return node
        self.fail(node, f"'{ast.unparse(node)}' is a {type(value).__name__}, which TorchScript has no form for")

    def visit_Name(self, node):
        if node.id in self.local or not isinstance(node.ctx, ast.Load):
            return node
        value = self.value_of(node)
        if value is _MISSING:
            self.fail(node, f"name '{node.id}' is not defined")
        return ast.copy_location(self.replacement(node, value), node)

    def visit_Attribute(self, node):
        value = self.value_of(node)
        if value is not _MISSING:
            return ast.copy_location(self.replacement(node, value), node)
        owner = self.member(node.value)
        if owner is self.module and self.module is not None and isinstance(node.ctx, ast.Load):
            held = getattr(owner, node.attr, _MISSING)
            if held is _MISSING:
                self.fail(node, f"{type(owner).__name__} has no attribute '{node.attr}'")
            if not isinstance(held, nn.Module) and node.attr not in owner._parameters and node.attr not in owner._buffers:
                if callable(held):
                    self.methods.append(node.attr)
                else:
                    self.constants.append(node.attr)
            return node
        self.generic_visit(node)
        return node

    def visit_Subscript(self, node):
        owner = self.member(node)
        if isinstance(owner, nn.Module):
            call = ast.Call(ast.Name("getattr"), [self.visit(node.value), ast.Constant(str(node.slice.value))], [])
            return ast.copy_location(call, node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node):
        is_module = isinstance(self.member(node.func), nn.Module)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and is_module is False and self.member(node) is not _MISSING:
            node.args = [self.visit(node.args[0]), node.args[1]]
            return node
        self.generic_visit(node)
        if is_module:
            node.func = ast.copy_location(ast.Attribute(node.func, "forward", ast.Load()), node.func)
        return node


class _Renamer(ast.NodeTransformer):
    """Replaces `layer` in the body of `for layer in self.layers` by getattr(self.layers, "3")."""

    def __init__(self, name: str, over, key: str):
        self.name, self.over, self.key = name, over, key

    def visit_Name(self, node):
        if node.id != self.name:
            return node
        return ast.copy_location(ast.Call(ast.Name("getattr", ast.Load()), [self.over, ast.Constant(self.key)], []), node)


def _at_the_users_line(error, source: _Source):
    """The error with the user's file and line instead of the archive's."""
    found = re.search(re.escape(_FILE) + r":(\d+)", str(error))
    place = source.places[int(found.group(1)) - 1] if found and int(found.group(1)) <= len(source.places) else None
    if place is None:
        return error
    message = str(error).replace(found.group(0), f"{place[0]}:{place[1]}", 1)
    return type(error)(message)


def script_object(given):
    compiler = _Compiler()
    if isinstance(given, nn.Module):
        description = compiler.module(given)
    elif isinstance(given, types.FunctionType):
        name = compiler.function(given)
        names = list(inspect.signature(given).parameters)
        rewriter = _Rewriter(compiler, given, None)
        rewriter.run("forward")
        header = ast.unparse(rewriter.tree.args)
        compiler.source.add(f"class F(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
                            f"  def forward(self, {header}){' -> ' + ast.unparse(rewriter.tree.returns) if rewriter.tree.returns else ''}:\n"
                            f"    return {name}({', '.join(names)})\n")
        description = (f"{_SPACE}.F", {"training": False})
    else:
        raise TypeError(f"script: expected a function or a Module, not {type(given).__name__}")
    source = compiler.source.joined()
    try:
        made = load_written(lambda path: _engine._save_script(path, [(_FILE, source)], description, compiler.with_gradient))
        made.schema()  # compiles it
    except _engine.Error as error:
        raise _at_the_users_line(error, compiler.source) from None
    return made
