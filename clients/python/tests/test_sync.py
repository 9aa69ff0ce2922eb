"""The synchronous classes are up to date with the asyncio ones."""

import pathlib
import subprocess
import sys

MAKE_SYNC = pathlib.Path(__file__).resolve().parents[1] / "make_sync.py"


def test_synchronous_classes_are_up_to_date():
    check = subprocess.run([sys.executable, str(MAKE_SYNC), "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stdout
