"""Writes the synchronous modules from those for asyncio (client.py from aio_client.py, and so on): each method is said once.

Usage: make_sync.py [--check]     --check only reports outdated files
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src" / "tensord"
NAMES = ("_client_base", "client", "job", "stream")

_RULES = [
    (r"^from typing import Awaitable\n", ""),
    (r"Awaitable\[(\w+)\]", r"\1"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Client|ClientBase|Job|InferStream|InferSequence|Iterator)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\b(_?)aio_(calls|client_base|client|job|stream)\b", r"\1\2"),
]


def _open_bracket(line: str) -> int:
    """Column of the last bracket that the line leaves open; -1 if none."""
    open_columns = []
    for column, letter in enumerate(line):
        if letter in "([{":
            open_columns.append(column)
        elif letter in ")]}" and open_columns:
            open_columns.pop()
    return open_columns[-1] if open_columns else -1


def synchronous(source: str) -> str:
    """The same module without asyncio; lines that go on in a bracket move with it."""
    lines = []
    shift = depth = 0  # columns that the open bracket has moved to the left; how many are open
    in_string = False
    for line in source.splitlines(keepends=True):
        changed = line
        for pattern, replacement in _RULES:
            changed = re.sub(pattern, replacement, changed)
        if depth > 0:
            changed = changed[min(shift, len(changed) - len(changed.lstrip(" "))):]
        if not in_string and '"""' not in line:
            if depth == 0:
                shift = _open_bracket(line) - _open_bracket(changed)
            depth += sum(line.count(bracket) for bracket in "([{") - sum(line.count(bracket) for bracket in ")]}")
        in_string ^= line.count('"""') % 2 == 1
        lines.append(changed)
    return "".join(lines)


def source_of(name: str) -> str:
    return f"_aio{name}.py" if name.startswith("_") else f"aio_{name}.py"


def written(name: str) -> str:
    head, rest = synchronous((SOURCES / source_of(name)).read_text()).split("\n", 1)
    return f"{head}\n# Written by make_sync.py from {source_of(name)}.\n{rest}"


def main() -> int:
    stale = [name for name in NAMES if not (path := SOURCES / f"{name}.py").exists() or path.read_text() != written(name)]
    if sys.argv[1:] == ["--check"]:
        for name in stale:
            print(f"{name}.py is not what make_sync.py writes from {source_of(name)}")
        return 1 if stale else 0
    for name in stale:
        (SOURCES / f"{name}.py").write_text(written(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
