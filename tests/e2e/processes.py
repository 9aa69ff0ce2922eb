"""Waiting for conditions, and the state of other processes."""

import time


def is_running(pid):
    """A process that has ended may be a zombie until its parent waits for it."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, what="", timeout=300, interval=0.02):
    """Polls `condition` until it is true, and returns its value. `what`, a string or a function that makes one, names it in the error."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            what = what() if callable(what) else what
            raise AssertionError(f"waited {timeout} s in vain{': ' if what else ''}{what}")
        time.sleep(interval)
    return value
