"""The subset of Triton's tests that ctest runs, if their sources are available: TRITON_SERVER_SOURCES and
TRITON_CLIENT_SOURCES."""

import os
import pathlib
import subprocess
import sys

SKIPPED = 77
SUITES = ("ensemble", "infer_zero", "decoupled", "config_json", "names", "strings", "implicit", "compression",
          "https")


def main():
    sources = [os.environ.get(f"TRITON_{part}_SOURCES", "") for part in ("SERVER", "CLIENT")]
    missing = [f"TRITON_{part}_SOURCES" for part, path in zip(("SERVER", "CLIENT"), sources) if not os.path.isdir(path)]
    if missing:
        print("skipped: no checkouts in", ", ".join(missing))
        sys.exit(SKIPPED)
    run = pathlib.Path(__file__).with_name("run.sh")
    sys.exit(subprocess.run([run, os.environ["TENSORD_BINARY"], *sources, *SUITES]).returncode)


if __name__ == "__main__":
    main()
