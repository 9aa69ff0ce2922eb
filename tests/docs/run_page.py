"""Runs the commands of a page of docs/ as a reader would: in order, in one shell, in a folder with only the
repository's files. What a fence "output" shows must be what the commands above it print, in that order, but for numbers
and spaces; "…" stands for lines left out, and within a line for a part of it. On failure it prints the page's output,
and the line of the block.

Usage: python3 -m tests.docs.run_page PAGE…
TENSORD_BINARY is `tensord` of the pages, PYTHONPATH has the Python client. The ports of the pages must be free.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tests import needed_programs
from tests.docs.pages import ROOT, blocks, runs_here

LIMIT_S = 200
PORTS = (8001, 8002)


def script(page, work):
    """The page as one bash script. Its Python is in files, because TorchScript reads the source."""
    parts = ["set -euo pipefail"]
    for block in filter(runs_here, blocks(page)):
        parts.append(f"printf '\\n--- {page.name}:{block.line}\\n'")
        if block.language == "bash":
            parts.append(block.code)
            continue
        (work / f"bin/line_{block.line}.py").write_text(block.code)
        parts.append(f"PYTHONPATH=.:$PYTHONPATH python3 bin/line_{block.line}.py")
    return "\n".join(parts) + "\n"


def outline(line):
    """A printed line without what differs from run to run."""
    line = re.sub(r"-[0-9a-f]{6}\b", "-0", line)  # of a job
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.e+-]*", "0", line)).strip()


def is_shown_as(line, printed):
    pattern = ".*".join(re.escape(part) for part in outline(line).split("…"))
    return re.fullmatch(pattern, outline(printed)) is not None


def wrong_outputs(page, printed):
    """Lines of the page's outputs that its commands did not print, each with its number."""
    parts = re.split(rf"^--- {re.escape(page.name)}:(\d+)$", printed, flags=re.M)
    by_line = dict(zip(map(int, parts[1::2]), parts[2::2]))
    last = None
    for block in blocks(page):
        if runs_here(block):
            last = block.line
        if block.language != "output":
            continue
        left = iter(by_line.get(last, "").splitlines())
        for number, line in enumerate(block.code.splitlines(), block.line + 1):
            if line != "…" and not any(is_shown_as(line, printed) for printed in left):  # each goes on after the last
                yield number, line


def taken_ports():
    def is_taken(port):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return True
        return False

    return [port for port in PORTS if is_taken(port)]


def wait_for_ports():
    """A killed server may hold its ports for a moment."""
    end = time.monotonic() + 10
    while taken_ports():
        if time.monotonic() > end:
            sys.exit(f"ports {taken_ports()} of 127.0.0.1 are taken, and the pages use them: stop what listens there")
        time.sleep(0.2)


def prepare(work):
    (work / "bin").mkdir()
    (work / "bin/tensord").symlink_to(os.environ["TENSORD_BINARY"])
    (work / "bin/python3").symlink_to("/usr/bin/python3")
    for name in ("deploy", "examples", "protos"):
        (work / name).symlink_to(ROOT / name)
    tools = ROOT / "build/clients/bin"  # helm
    return os.environ | {"PATH": f"{work}/bin:{os.environ['PATH']}:{tools}", "HOME": str(work),
                         "PYTHONDONTWRITEBYTECODE": "1"}


def run(page):
    with tempfile.TemporaryDirectory(prefix="tensord_docs_") as folder:
        work = pathlib.Path(folder)
        environment = prepare(work)
        with open(work / "output", "w+b") as output:
            process = subprocess.Popen(["bash", "-c", script(page, work)], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True)
            try:
                code = process.wait(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                code = f"no end after {LIMIT_S} s"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)  # servers that the page leaves running
                except ProcessLookupError:
                    pass
            output.seek(0)
            printed = output.read().decode(errors="replace")
        done = printed.count(f"--- {page.name}")
        wrong = [] if code else list(wrong_outputs(page, printed))
        print(f"{page.name}: {done} blocks" if code == 0 and not wrong else f"{page.name}: {code}\n{printed[-6000:]}")
        for number, line in wrong:
            print(f"{page.name}:{number}: the commands did not print {line!r}")
        return code == 0 and done > 0 and not wrong


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that servers of the page are stopped too
    for name in sys.argv[1:]:
        commands = "".join(block.code for block in filter(runs_here, blocks(ROOT / "docs" / name)))
        needed_programs.skip_without(*(program for program in needed_programs.PACKAGES if f"{program} " in commands))
        wait_for_ports()
        if not run(ROOT / "docs" / name):
            sys.exit(1)


if __name__ == "__main__":
    main()
