#!/usr/bin/env python3
"""Finds names that clash between files of one unity-build unit.

Sources of a folder are compiled together (cmake/unity.cmake), so what stands in the unnamed namespace of one file is seen by those
behind it. Two mistakes compile but give wrong results, and are errors here:

- a function or variable that a header declares in the same namespace, or in one around it: for the other files the header's is
  hidden, or has one more overload;
- a name that two files of a unit have in the unnamed namespaces of the same one, or of one around it: functions are overloads of
  each other, or one hides the other.

Usage: tests/unity_names.py BUILD_FOLDER     (the units are those of the build)
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests import compile_commands  # noqa: E402

TEXTS = re.compile(r'''R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'|//[^\n]*|/\*.*?\*/''', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
NAMESPACE = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
TYPE = re.compile(r"(class|struct|union|enum)\b[^()=;]*[{;]")
DECLARED = re.compile(r"(.*[\w>&*])\s*(?<=[\s&*>])([A-Za-z_]\w*)(?:\[[^\]]*\])*")
PARENTHESES = re.compile(r"\b(?:decltype|alignas|noexcept|requires|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)")
MACRO = re.compile(r"[A-Z][A-Z0-9_]+\(")
# Declarations of neither a function nor a variable.
OTHERS = re.compile(r"(using|namespace|typedef|static_assert|template class|template struct)\b")

Name = collections.namedtuple("Name", "name space is_local line")


def only_code(source: str) -> str:
    """Without comments, texts and directives; lines stay where they are."""
    def blank(found):
        return ("" if found[0].startswith("/") else '""') + "\n" * found[0].count("\n")

    return DIRECTIVE.sub(lambda found: "\n" * found[0].count("\n"), TEXTS.sub(blank, source))


def without_templates(head: str) -> str:
    """Without the text between < and >, and the word `template`."""
    out, depth = [], 0
    for i, letter in enumerate(head):
        if letter == "<" and (depth or re.search(r"\w ?$", head[:i])) and not head[i - 1:i + 1] == "<<":
            depth += 1
        elif letter == ">" and depth and head[i - 1] != "-":
            depth -= 1
            out.append(">" if depth == 0 else "")
        elif depth == 0:
            out.append(letter)
    return re.sub(r"^template ?>\s*(requires [\w:]+> )?", "", "".join(out))


def name_of(head: str) -> str:
    """The function or variable that a declaration in a namespace declares; "" for other declarations."""
    head = re.sub(r"\[\[[^\]]*\]\]", "", head).strip()
    plain = PARENTHESES.sub("", without_templates(head)).strip()
    if OTHERS.match(plain) or TYPE.match(plain) or MACRO.match(plain):
        return ""
    start = re.search(r"[(={;]", plain)
    if not start or "operator" in plain[:start.end() + 2]:
        return ""
    match = DECLARED.fullmatch(plain[:start.start()].rstrip())
    return match[2] if match else ""


def names_in(source: str, place: str = ""):
    """What a file declares in namespaces, with the namespace as a tuple; and all namespaces that it has code in."""
    spaces, head, depth = [], [], 0
    found, used = [], set()
    for number, line in enumerate(only_code(source).split("\n"), 1):
        line = line.strip()
        if not line:
            continue
        opened = NAMESPACE.match(line)
        if not head and (opened or line == "}"):
            spaces = [*spaces, opened[1] or ""] if opened else spaces[:-1]
            continue
        head.append(line)
        depth += line.count("(") + line.count("{") - line.count(")") - line.count("}")
        if depth or not (line.endswith((";", "}")) or MACRO.match(head[0]) and line.endswith(")")):
            continue
        declaration, start, head = " ".join(head), number - len(head) + 1, []
        space = tuple(part for one in spaces for part in one.split("::") if part)
        used.add(space)
        name = name_of(declaration)
        if name:
            found.append(Name(name, space, "" in spaces or declaration.startswith("static "), start))
    if spaces or head:
        raise SystemExit(f"{place}: this check cannot read it: {' '.join(head)[:80] or 'a namespace has no end'}")
    return found, used


def headers_of(paths, root: pathlib.Path) -> set:
    """The repository's headers that the files include, transitively."""
    found, todo = set(), list(paths)
    while todo:
        path = todo.pop()
        for name in INCLUDE.findall(path.read_text()):
            for include in (root / name, path.parent / name):
                if include.suffix == ".h" and include.is_file() and include not in found:
                    found.add(include)
                    todo.append(include)
    return found


def is_around(outer: tuple, inner: tuple) -> bool:
    return inner[:len(outer)] == outer


def clashes_in(unit: list, root: pathlib.Path, known: dict) -> list:
    """Errors in the files of a unit, one line each."""
    def read(path):
        if path not in known:
            known[path] = names_in(path.read_text(), str(path))
        return known[path]

    declared = collections.defaultdict(list)
    precompiled = root / "core/ops/precompiled.h"  # each unit sees what it includes
    for header in sorted(headers_of([*unit, *([precompiled] if precompiled.exists() else [])], root)):
        for name in read(header)[0]:
            declared[name.name].append((name.space, header))
    found = []
    local = {path: {(name.name, name.space): name.line for name in reversed(read(path)[0]) if name.is_local} for path in unit}
    for path in unit:
        others = [other for other in unit if other != path]
        for (name, space), line in local[path].items():
            place = f"{path.relative_to(root)}:{line}: {name}"
            seeing = [other for other in others if any(is_around(space, used) for used in read(other)[1])]
            headers = [header for outer, header in declared[name] if outer and is_around(outer, space)]
            if headers and seeing:
                found.append(f"{place} is also declared by {headers[0].relative_to(root)}")
            for other in seeing:
                outer = [there for named, there in local[other] if named == name and is_around(there, space)]
                # For a pair in the same namespace, one line is enough.
                if outer and (outer[0] != space or unit.index(other) < unit.index(path)):
                    found.append(f"{place} is also in an unnamed namespace of {other.relative_to(root)}")
    return found


def main() -> int:
    known, found = {}, set()
    for _, members in compile_commands.units(pathlib.Path(sys.argv[1])):
        unit = [pathlib.Path(path) for path in members if path.endswith(".cpp")]  # not the services of protos/
        if len(unit) > 1:
            found.update(clashes_in(unit, ROOT, known))
    print("".join(f"{line}\n" for line in sorted(found)), end="")
    if found:
        print("Give them names of their own: these files are compiled together (cmake/unity.cmake).")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
