"""Runs the array API standard's tests on tensord.engine.array_api: see README.md. Usage: python3 -m tests.array_api.run
[SOURCES]"""

import os
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
EXAMPLES = 8


def listed():
    """Maps failing tests to the reason, which is the comment above them."""
    out, reason = {}, None
    for line in (pathlib.Path(__file__).parent / "not_passing.txt").read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            out[line] = reason
    assert all(out.values()), "an entry has no reason"
    return out


def results(sources, junit):
    """Maps each test to whether it passed; skipped tests are omitted."""
    environment = {**os.environ, "ARRAY_API_TESTS_MODULE": "tensord.engine.array_api", "ARRAY_API_TESTS_MAX_ARRAY_SIZE": "64"}
    python = ROOT / "build" / "array_api" / "bin" / "python"
    command = [python, "-m", "pytest", "array_api_tests", "-q", "--tb=short", "-p", "no:cacheprovider", "--max-examples", str(EXAMPLES), "--disable-deadline",
               "--derandomize", "-o", "junit_family=xunit2", f"--junitxml={junit}"]
    ran = subprocess.run(command, cwd=sources, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not os.path.exists(junit):
        sys.exit(ran.stdout)
    out = {}
    for case in xml.etree.ElementTree.parse(junit).iter("testcase"):
        if case.find("skipped") is None:
            name = f"{case.get('classname').removeprefix('array_api_tests.').replace('.', '::')}::{case.get('name')}"
            out[name] = case.find("failure") is None and case.find("error") is None
    return out, ran.stdout


def main():
    sources = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ARRAY_API_TESTS_SOURCES")
    if not sources or not (pathlib.Path(sources) / "array-api" / "src").is_dir():
        print("skipped: ARRAY_API_TESTS_SOURCES names no checkout of array-api-tests with its submodule")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        found, output = results(sources, os.path.join(folder, "junit.xml"))
    known = listed()
    failed = {name for name, is_passed in found.items() if not is_passed}
    print(f"{len(found) - len(failed)} of {len(found)} pass ({100 * (1 - len(failed) / len(found)):.1f} %)")
    unexpected, passing = sorted(failed - set(known)), sorted(set(known) - failed)
    for name in unexpected:
        print("fails and is not listed:", name)
    for name in passing:
        print("is listed, but passes or is not there:", name)
    if unexpected:
        print(output[-6000:])
    sys.exit(1 if unexpected or passing else 0)


if __name__ == "__main__":
    main()
