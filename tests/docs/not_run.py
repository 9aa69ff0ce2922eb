"""Lists the commands of README.md, docs/ and the other pages that no test runs, to be tried by hand before a release.

Usage: python3 -m tests.docs.not_run
"""

import re

from tests.docs.pages import ROOT, blocks, documents, runs_here

RUN = {"bash", "python", "sh"}
PROGRAM = r"(?:[A-Z_]+=\S+ )*(?:\S*/)?(?:tensord|curl|pip|python3?|scripts/\S+|helm|kubectl|docker|apt|cmake|ctest|promtool|systemctl|\w+_test)"
COMMAND = re.compile(rf" {{4,}}({PROGRAM} .*)")
SHOWN = re.compile(rf"{PROGRAM} .*")
# Run block by block by clients/python/tests/test_readme.py.
RUN_ELSEWHERE = {"clients/python/README.md"}


def pages_with_tests():
    listed = re.search(r"set\(pages_with_commands ([^)]*)\)", (ROOT / "tests" / "CMakeLists.txt").read_text())
    return {ROOT / "docs" / f"{name}.md" for name in listed[1].split()}


def joined(code):
    """With each command on one line."""
    return re.sub(r"\\\n *", "", code)


def not_run(page, has_test):
    """(line, command) of the page's blocks that its test leaves out, and of its indented commands."""
    for block in blocks(page):
        if block.language in RUN and not block.run_by and not (has_test and runs_here(block)):
            yield block.line, joined(block.code).strip().splitlines()[0]
        if block.language == "text" and not block.run_by:
            # With an ellipsis it is not a whole command.
            yield from ((block.line + number, line) for number, line in enumerate(joined(block.code).splitlines(), 1)
                        if SHOWN.fullmatch(line) and "…" not in line)
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if command := COMMAND.fullmatch(line):
            yield number, command[1].strip()


def every_command():
    """(page's name, line, command) of all pages."""
    tested = pages_with_tests()
    for page in documents():
        name = page.relative_to(ROOT).as_posix()
        if name not in RUN_ELSEWHERE:
            yield from ((name, line, command) for line, command in sorted(not_run(page, page in tested)))


def main():
    for name, line, command in every_command():
        print(f"{name}:{line}: {command}")


if __name__ == "__main__":
    main()
