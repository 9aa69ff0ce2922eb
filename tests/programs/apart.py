"""Runs a function in a child process: PyTorch aborts on some programs, and never frees what it compiled."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback

# A child that computes for longer is ended, and one that is awaited for longer.
COMPUTED_SECONDS, AWAITED_SECONDS = 240, 900


class Died(Exception):
    """The child was ended by a signal."""


def apart(function, *arguments, expected: tuple = ()):
    """function(*arguments), or the exception of one of the `expected` kinds that it raised. Raises Died."""
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
    except BaseException:  # told here: nobody else would
        traceback.print_exc()
    finally:
        os._exit(status)
