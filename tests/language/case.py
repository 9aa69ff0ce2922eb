"""A row of the language suite: a function or module that PyTorch scripts, and the arguments to call it with."""

import dataclasses
from typing import Any, Callable

import torch


@dataclasses.dataclass
class Case:
    name: str
    make: Callable[[], Any]  # a function to script, or a module
    calls: list  # of argument tuples, or of (method, arguments)
    since: tuple  # the first PyTorch that accepts it
    before: tuple  # the first PyTorch that no longer accepts it
    grad: bool  # with grad mode on, as in training; otherwise off, as in serving
    rtol: float  # 0 if every bit counts
    version: int = 0  # of the archive format, set after saving
    lite: bool = False  # saved with mobile bytecode beside the source


class Section:
    """The rows of one file, in order."""

    def __init__(self, before=(99,)):
        self.cases: list[Case] = []
        self.before = before

    def case(self, *calls, since=(1, 13), before=None, grad=False, rtol=0.0):
        """Decorates a function, or a module class whose constructor takes no arguments."""

        def add(subject):
            assert calls, f"{subject.__name__} is never called"
            is_class = isinstance(subject, type)
            self.cases.append(Case(subject.__name__, subject if is_class else lambda: subject, list(calls), since, before or self.before, grad, rtol))
            return subject

        return add

    def made(self, name: str, make: Callable[[], Any], *calls, since=(1, 13), before=None, grad=False, rtol=0.0, version=0, lite=False):
        """Adds a module made by `make`, scripted or not."""
        self.cases.append(Case(name, make, list(calls), since, before or self.before, grad, rtol, version, lite))


def version() -> tuple:
    return tuple(int(part) for part in torch.__version__.split(".")[:2])
