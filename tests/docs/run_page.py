"""Runs the commands of a page of docs/ as a reader would: in order, in one shell, in a folder with only the
repository's files. On failure it prints the page's output, and the line of the block.

Usage: python3 -m tests.docs.run_page PAGE…
TENSORD_BINARY is `tensord` of the pages, PYTHONPATH has the Python client. The ports of the pages must be free.
"""

import os
import pathlib
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
        parts.append(f"echo '--- {page.name}:{block.line}'")
        if block.language == "bash":
            parts.append(block.code)
            continue
        (work / f"bin/line_{block.line}.py").write_text(block.code)
        parts.append(f"PYTHONPATH=.:$PYTHONPATH python3 bin/line_{block.line}.py")
    return "\n".join(parts) + "\n"


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
        print(f"{page.name}: {done} blocks" if code == 0 else f"{page.name}: {code}\n{printed[-6000:]}")
        return code == 0 and done > 0


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
