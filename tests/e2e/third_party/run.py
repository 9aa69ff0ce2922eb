"""Runs the tests of this folder, each in a process of its own, because the clients bring different definitions of the
same messages. Ends as skipped if scripts/setup has not installed the clients.

Usage: python3 -m tests.e2e.third_party.run      (TENSORD_BINARY: the daemon)
"""

import pathlib
import subprocess
import sys

from tests.e2e.daemon_process import ROOT
from tests.needed_programs import SKIPPED

FOLDER = pathlib.Path(__file__).parent
PYTHON = pathlib.Path(ROOT) / "build" / "third_party_clients" / "bin" / "python"


def main():
    if not PYTHON.exists():
        print(f"skipped: {PYTHON.parents[1]} is made by scripts/setup third_party_clients")
        sys.exit(SKIPPED)
    failed = []
    for path in sorted(FOLDER.glob("*_test.py")):
        print(f"--- {path.stem}", flush=True)
        if subprocess.run([PYTHON, "-W", "ignore", "-m", f"tests.e2e.third_party.{path.stem}"], cwd=ROOT).returncode != 0:
            failed.append(path.stem)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
