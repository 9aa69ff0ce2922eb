"""Runs the binary with a terminal."""

import os
import pty
import subprocess

from tests.e2e.daemon_process import BINARY


def on_terminal(*arguments):
    """Runs the binary; returns the exit code, stdout, and the output of a terminal at stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([BINARY, *arguments], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    out, _ = process.communicate(timeout=300)
    os.close(ours)
    return process.returncode, out.decode(), shown.decode()
