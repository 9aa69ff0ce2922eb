"""External programs that some tests need. Without one, the test is skipped and names it.

Usage: python3 -m tests.needed_programs PROGRAM [ARGUMENT…]   runs it, or exits with the code that ctest treats as
skipped
"""

import os
import shutil
import sys
import unittest

PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus"}  # Debian packages by program
SKIPPED = 77


def missing(*programs):
    """A readable list; empty if all exist."""
    return ", ".join(f"{program} (package {PACKAGES[program]})" for program in programs if not shutil.which(program))


def needs(*programs):
    """Decorates a test, or a class of them."""
    lacking = missing(*programs)
    if lacking:
        print(f"skipped, missing: {lacking}", file=sys.stderr)
    return unittest.skipIf(lacking, f"missing: {lacking}")


def skip_without(*programs):
    """Ends this process as skipped if one is missing."""
    lacking = missing(*programs)
    if lacking:
        print(f"skipped, missing: {lacking}")
        sys.exit(SKIPPED)


if __name__ == "__main__":
    skip_without(sys.argv[1])
    os.execvp(sys.argv[1], sys.argv[1:])
