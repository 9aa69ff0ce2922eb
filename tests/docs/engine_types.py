"""Checks the Python blocks of docs/engine.md with mypy, and with pyright if installed, against the stubs of the build.

Usage: python3 -m tests.docs.engine_types FOLDER   (the folder with tensord/engine)
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from tests.docs.pages import ROOT, blocks

SKIPPED = 77


def main():
    tools = ROOT / "build" / "engine_tools" / "bin"
    if not (tools / "mypy").exists():
        print("skipped: no mypy (scripts/setup test)")
        sys.exit(SKIPPED)
    folder = pathlib.Path(sys.argv[1]).resolve()
    failed = False
    with tempfile.TemporaryDirectory() as work:
        programs = []
        for block in blocks(ROOT / "docs" / "engine.md"):
            if block.language == "python":
                programs.append(pathlib.Path(work) / f"engine_line_{block.line}.py")
                programs[-1].write_text(block.code)
        assert programs, "docs/engine.md has no programs"
        # Like an installed package: only the programs are checked.
        (pathlib.Path(work) / "mypy.ini").write_text("[mypy]\nignore_missing_imports = True\n[mypy-tensord.*]\nignore_errors = True\n")
        checks = [[tools / "mypy", "--cache-dir", os.path.join(work, "cache"), *programs]]
        if (tools / "pyright").exists():
            (pathlib.Path(work) / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{folder}"], "reportMissingImports": false, "reportMissingModuleSource": false}}')
            checks.append([tools / "pyright", "--project", work, *programs])
        for check in checks:
            print(f"{check[0].name}:", flush=True)
            failed |= subprocess.run(check, cwd=work, env={**os.environ, "MYPYPATH": str(folder)}).returncode != 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
