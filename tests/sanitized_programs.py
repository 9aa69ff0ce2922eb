"""Which test programs scripts/sanitize builds and runs beside those that it always does, one name a line:

    python3 tests/sanitized_programs.py build/asan

First those of the layers that the commits since `main`, or on `main` the last five, and the working tree touched: of
core/jit/importers/onnx/x.cpp it is onnx_test, because there is no importers_onnx_test; of server/rest/x.cpp server_test.
Then all others, from another one on with each commit.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMITS = 5  # as many as scripts/tidy looks at


def git(*arguments: str) -> str:
    """What it prints; nothing if it fails."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def base() -> str:
    head = git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        common = git("merge-base", "HEAD", main)
        if common and common != head:
            return common
    return git("rev-parse", "--verify", "--quiet", f"HEAD~{COMMITS}") or git("rev-list", "--max-parents=0", "HEAD").partition("\n")[0]


def program_of(path: str, programs: list[str]) -> str:
    """The program of the innermost folder that has one, or ""."""
    folders = pathlib.PurePath(path).parts[:-1]
    prefix = "server_" if "server" in folders[:2] else ""
    names = [f"{prefix}{folder}_test" for folder in reversed(folders)] + [f"{prefix.rstrip('_')}_test"]
    return next((name for name in names if name in programs), "")


def in_order(changed: list[str], programs: list[str], turn: int) -> list[str]:
    touched = dict.fromkeys(program_of(path, programs) for path in changed)
    first = [name for name in programs if name in touched]
    others = [name for name in programs if name not in touched]
    start = turn % len(others) if others else 0
    return first + others[start:] + others[:start]


def programs_in(build: pathlib.Path) -> list[str]:
    """The programs with fast tests, without those that always run. Of what is not built yet ctest has no command."""
    targets = subprocess.run(["ninja", "-t", "targets", "all"], cwd=build, capture_output=True, text=True, check=True).stdout
    listed = subprocess.run(["ctest", "--show-only=json-v1"], cwd=build, capture_output=True, text=True, check=True)
    found = []
    for test in json.loads(listed.stdout)["tests"]:
        labels = next((one["value"] for one in test["properties"] if one["name"] == "LABELS"), [])
        if f"\ntests/{test['name']}: CXX_EXECUTABLE_LINKER" in targets and "fast" in labels and "sanitized" not in labels:
            found.append(test["name"])
    return sorted(found)


def main() -> None:
    changed = git("diff", "--name-only", base()).splitlines()
    turn = git("rev-list", "--count", "HEAD")
    for name in in_order(changed, programs_in(pathlib.Path(sys.argv[1])), int(turn or 0)):
        print(name)


if __name__ == "__main__":
    main()
