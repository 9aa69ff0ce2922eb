"""Runs a program that may hang, crash or leave children, with a time limit, and ends all of its processes."""

import concurrent.futures
import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Outcome:
    what: str  # "passed", "failed", "hung" or "crashed"
    seconds: float
    output: str  # its end


def adopt_orphans() -> None:
    """Makes this process the parent of orphaned descendants, so that it can kill them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(pid: int) -> list[int]:
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:  # it has ended
            pass
    return found


def end_all_children() -> None:
    """Kills all started processes and their descendants; use it only if nothing else of this process runs."""
    while children := children_of(os.getpid()):
        for child in children:
            for pid in (*children_of(child), child):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.waitpid(child, 0)
            except ChildProcessError:
                pass


def read_until(process: subprocess.Popen, deadline: float, stop_at) -> tuple[str, bool, bool]:
    """The output, whether it contained `stop_at`, and whether it ended before the deadline."""
    output, descriptor = b"", process.stdout.fileno()
    has_said = is_over = False
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not (has_said or is_over) and (left := deadline - time.monotonic()) > 0:
            piece = os.read(descriptor, 1 << 16) if selector.select(min(left, 0.2)) else None
            if piece:
                output = (output + piece)[-(1 << 20):]
                has_said = bool(stop_at and stop_at.search(output[-len(piece) - 200:]))
            elif piece == b"":  # its end is closed: there is no more output
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(left)
                is_over = process.returncode is not None
                break
            else:  # its descendants may still hold the pipe
                is_over = process.poll() is not None
    return output.decode(errors="replace"), has_said, is_over


def run(command: list[str], limit_s: float, *, cwd=None, env=None, stop_at=None) -> Outcome:
    """Runs a program; output that matches `stop_at`, a bytes expression, means that it fails, before it ends."""
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, has_said, is_over = read_until(process, start + limit_s, stop_at)
        seconds = time.monotonic() - start
        if has_said:
            return Outcome("failed", seconds, output)
        if not is_over:
            return Outcome("hung", seconds, output)
        code = process.returncode
        return Outcome("passed" if code == 0 else "crashed" if code < 0 else "failed", seconds, output)
    finally:
        process.stdout.close()
        end_all_children()
        process.poll()


def begin_runner() -> None:
    adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


class Runners:
    """Worker processes that each run one program at a time, so that several run at once: descendants that a program
    leaves behind are killed with it, and no others. Thread-safe."""

    def __init__(self, count: int):
        self.pool = concurrent.futures.ProcessPoolExecutor(count, multiprocessing.get_context("fork"), begin_runner)

    def run(self, command: list[str], limit_s: float, **options) -> Outcome:
        return self.pool.submit(run, command, limit_s, **options).result()

    def close(self) -> None:
        """Kills what still runs."""
        for process in multiprocessing.active_children():
            process.terminate()
        self.pool.shutdown(cancel_futures=True)
