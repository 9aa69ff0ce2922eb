"""Parses a page of docs/: its code blocks, links and headings."""

import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARK = re.compile(r"<!-- (run by (?P<script>\S+)|not run in CI: .+) -->")


class Block(NamedTuple):
    line: int  # of the opening fence, from 1
    language: str
    code: str
    run_by: str  # a file of the repository that runs these commands instead of the pages' test, or ""
    by_hand: bool  # takes too long for a test


def pages() -> list[pathlib.Path]:
    return sorted((ROOT / "docs").rglob("*.md"))


def documents() -> list[pathlib.Path]:
    """Every page of the repository, including those of docs/."""
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name != "build" and not path.name.startswith(".")]
    return sorted([*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))])


def blocks(path: pathlib.Path) -> list[Block]:
    """The fenced blocks of a page. A comment in the line above a fence says what runs it, if not the page test."""
    found, lines = [], path.read_text().splitlines()
    start, previous = None, ""
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            previous = line if start is None else previous
            continue
        if start is None:
            start, language, mark = number, line[3:].strip(), MARK.fullmatch(previous.strip())
            continue
        script = mark["script"] if mark and mark["script"] else ""
        code = "\n".join(lines[start:number - 1]) + "\n"
        found.append(Block(start, language, code, script, bool(mark) and not script))
        start, previous = None, ""
    assert start is None, f"{path}:{start}: the block has no end"
    return found


def runs_here(block: Block) -> bool:
    return block.language in ("bash", "python") and not block.run_by and not block.by_hand


def prose(path: pathlib.Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)


def links(path: pathlib.Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", prose(path))


def anchors(path: pathlib.Path) -> set[str]:
    """Valid `#…` targets in links: headings as GitHub and mkdocs convert them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
