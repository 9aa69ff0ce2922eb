"""Finds Python files that import each other. tests/layering.py refuses them.

Imports inside functions and under TYPE_CHECKING count as all others do, as they only hide a cycle. One that cannot be avoided has a comment at
its end that begins with "import cycle:" and says why. A file may import a package that it lies in, which Python has begun to load before it.
"""

import ast
import pathlib
import subprocess

# Folders that modules are imported from, besides the importing file's own, as scripts do.
PACKAGES = ("python/src", "clients/python/src")
ALLOWED = "# import cycle:"


def python_files(root: pathlib.Path) -> list[str]:
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.py"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (root / name).is_file()]


def imported_names(source: str, package: str) -> list[tuple[int, str]]:
    """(line, full name) of all that a file of this package imports; `from a import b` names a and a.b."""
    lines, found = source.splitlines(), []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or any(ALLOWED in line for line in lines[node.lineno - 1:node.end_lineno]):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            parents = package.split(".")
            base = ".".join(parents[:len(parents) - node.level + 1] if node.level else [])
            base = ".".join(part for part in (base, node.module) if part)
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        found += [(node.lineno, name) for name in names]
    return found


def imports(files: list[str], sources: dict[str, str]) -> dict[str, dict[str, int]]:
    """File -> the files that it imports, each with the line."""
    known = set(files)
    graph: dict[str, dict[str, int]] = {name: {} for name in files}
    for importer in files:
        folder = importer.rpartition("/")[0]
        for line, name in imported_names(sources[importer], folder.replace("/", ".")):
            parts = name.split(".")
            for root in ("", *PACKAGES, *(() if folder.startswith(PACKAGES) else (folder,))):
                for count in range(1, len(parts) + 1):
                    path = "/".join([root, *parts[:count]] if root else parts[:count])
                    is_own_package = importer.startswith(path + "/")
                    for target in (path + ".py", path + "/__init__.py"):
                        if target in known and target != importer and not is_own_package:
                            graph[importer].setdefault(target, line)
    return graph


def cycles(graph: dict[str, dict[str, int]]) -> list[list[str]]:
    """A shortest cycle through each file that has one, each cycle once."""
    found = {}
    for start in graph:
        paths, seen = [[start]], {start}
        while paths:
            path = paths.pop(0)
            if start in graph[path[-1]]:
                found.setdefault(frozenset(path), path)
                break
            paths += [[*path, target] for target in graph[path[-1]] if target not in seen]
            seen |= set(graph[path[-1]])
    return list(found.values())


def problems(root: pathlib.Path) -> list[str]:
    files = python_files(root)
    graph = imports(files, {name: (root / name).read_text() for name in files})
    return [f"{path[0]}:{graph[path[0]][(path[1:] + path[:1])[0]]}: Python files import each other: {' -> '.join([*path, path[0]])}"
            for path in cycles(graph)]
