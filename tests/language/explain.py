"""Finds the parts of a returned tuple that PyTorch refuses, by scripting each alone."""

import ast
import inspect
import io
import linecache
import textwrap

import torch


def _scripted(source: str, name: str, scope: dict) -> str:
    """"" if it can be scripted, saved and loaded, otherwise the error."""
    file = f"<language {name} {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope = dict(scope)
    exec(compile(source, file, "exec"), scope)  # noqa: S102: our own text
    try:
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(scope[name]), buffer)
        buffer.seek(0)
        torch.jit.load(buffer)
    except Exception as error:  # noqa: BLE001
        return str(error).strip()
    return ""


def refused_parts(function) -> list[tuple[str, str]]:
    """(source, error) of the parts of the last return statement that PyTorch refuses; [] if there are no parts."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (TypeError, OSError):
        return []
    definition = tree.body[0]
    last = definition.body[-1] if isinstance(definition, ast.FunctionDef) else None
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple):
        return []
    definition.decorator_list = []
    parts, out = last.value.elts, []
    for part in parts:
        last.value = part
        complaint = _scripted(ast.unparse(tree), definition.name, function.__globals__)
        if complaint:
            out.append((ast.unparse(part), complaint.splitlines()[0]))
    return out
