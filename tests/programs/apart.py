"""Runs a function in a child process: PyTorch aborts on some programs, and never frees what it compiled."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback

# Limits of a child's CPU time and elapsed time.
COMPUTED_SECONDS, AWAITED_SECONDS = 240, 900


class Died(Exception):
    """The child was killed by a signal."""


def apart(function, *arguments, expected: tuple = ()):
    """function(*arguments), or an exception of one of the `expected` kinds. Raises Died."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _answer(writer, function, arguments, expected)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise Died(f"PyTorch ended by signal {os.WTERMSIG(status)}")
    if os.WEXITSTATUS(status) != 0:
        raise RuntimeError("a child failed; its error stands above")
    result, error = pickle.loads(data)
    if error is not None:
        raise error
    return result


def _answer(writer: int, function, arguments: tuple, expected: tuple):
    status = 1
    try:
        signal.setitimer(signal.ITIMER_PROF, COMPUTED_SECONDS)
        signal.alarm(AWAITED_SECONDS)
        try:
            outcome = (function(*arguments), None)
        except expected as error:
            outcome = (None, error)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(outcome, pipe)
        status = 0
    except BaseException:  # printed here, because nothing else would report it
        traceback.print_exc()
    finally:
        os._exit(status)
