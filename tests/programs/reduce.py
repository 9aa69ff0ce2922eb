"""Reduces a failing program: removes statements, results, calls, members and inputs while it fails in the same way."""

from __future__ import annotations

import copy
import dataclasses
import re
import time

from tests.programs.program import Argument, Program, Statement

MAX_SECONDS = 90


def blocks(program: Program):
    """Every list of statements."""
    stack = [method.body for method in program.methods]
    while stack:
        block = stack.pop()
        yield block
        for statement in block:
            stack += [part for part in (statement.body, statement.orelse) if part is not None]


def renamed(program: Program, old: str, new: str):
    pattern = re.compile(rf"(?<![\w.]){re.escape(old)}\b")
    for block in blocks(program):
        for statement in block:
            statement.text = pattern.sub(new, statement.text)
    for method in program.methods:
        method.results = [(pattern.sub(new, name), kind) for name, kind in method.results]


def target_of(text: str):
    found = re.match(r"(v\d+)(: [^=]+)? = (.*)", text, re.S)
    return (found.group(1), found.group(3)) if found else (None, text)


def candidates(program: Program):
    """Smaller programs, largest reductions first, as functions that change a copy."""
    for i in range(len(program.calls)):
        if len(program.calls) > 1:
            yield lambda p, i=i: p.calls.pop(i)
    for m, method in enumerate(program.methods):
        if len(method.results) > 1:
            for i in range(len(method.results)):
                yield lambda p, m=m, i=i: p.methods[m].results.pop(i)
    for b, block in enumerate(list(blocks(program))):
        for size in (8, 4, 2):
            for start in range(0, len(block), size):
                if len(block) >= size:
                    yield lambda p, b=b, s=start, n=size: list(blocks(p))[b].__delitem__(slice(s, s + n))
        for i in reversed(range(len(block))):
            statement = block[i]
            yield lambda p, b=b, i=i: list(blocks(p))[b].pop(i)
            if statement.body is not None:
                yield lambda p, b=b, i=i: unwrapped(list(blocks(p))[b], i, "body")
                if statement.orelse is not None:
                    yield lambda p, b=b, i=i: unwrapped(list(blocks(p))[b], i, "orelse")
            name, text = target_of(statement.text)
            if name:
                for operand in dict.fromkeys(re.findall(r"(?:self\.)?\b[vxp]\d+\b", text)):
                    if operand != name:
                        yield lambda p, b=b, i=i, n=name, o=operand: replaced(p, b, i, n, o)
    yield from smaller_parts(program)


def smaller_parts(program: Program):
    for i in range(len(program.pieces)):
        yield lambda p, i=i: p.pieces.pop(i)
    for i in range(len(program.methods) - 1):
        yield lambda p, i=i: p.methods.pop(i)
    for i in range(len(program.members)):
        yield lambda p, i=i: p.members.pop(i)
    for i in range(len(program.methods[-1].inputs)):
        yield lambda p, i=i: drop_input(p, i)
    if program.is_traced or program.is_frozen:
        yield lambda p: p.__dict__.update(is_traced=False, is_frozen=False)
    for c, (_, arguments) in enumerate(program.calls):
        for a, argument in enumerate(arguments):
            if argument.same_as is not None:
                yield lambda p, c=c, a=a: set_argument(p, c, a, same_as=None)
            if argument.layout != "plain":
                yield lambda p, c=c, a=a: set_argument(p, c, a, layout="plain")
            for d, size in enumerate(argument.shape):
                if size > 1:
                    yield lambda p, a=a, d=d: shrink(p, a, d)


def unwrapped(block: list, i: int, part: str):
    block[i:i + 1] = getattr(block[i], part)


def replaced(program: Program, b: int, i: int, name: str, operand: str):
    list(blocks(program))[b].pop(i)
    renamed(program, name, operand)


def drop_input(program: Program, i: int):
    program.methods[-1].inputs.pop(i)
    program.calls = [(name, [without(a, i) for a in arguments[:i] + arguments[i + 1:]]) for name, arguments in program.calls]


def without(argument: Argument, i: int) -> Argument:
    """The same without argument `i`."""
    other = argument.same_as
    return dataclasses.replace(argument, same_as=None if other is None or other == i else other - (other > i))


def set_argument(program: Program, c: int, a: int, **changes):
    name, arguments = program.calls[c]
    arguments = list(arguments)
    arguments[a] = Argument(**{**arguments[a].__dict__, **changes})
    program.calls[c] = (name, arguments)


def shrink(program: Program, a: int, d: int):
    for c, (_, arguments) in enumerate(program.calls):
        shape = list(arguments[a].shape)
        shape[d] = 1
        set_argument(program, c, a, shape=tuple(shape))


def reduced(program: Program, still_fails, seconds: float = MAX_SECONDS) -> Program:
    end = time.monotonic() + seconds
    best, has_changed = program, True
    while has_changed and time.monotonic() < end:
        has_changed = False
        position = 0
        while time.monotonic() < end:
            changes = list(candidates(best))
            if position >= len(changes):
                break
            smaller = copy.deepcopy(best)
            try:
                changes[position](smaller)
                is_failing = still_fails(smaller)
            except Exception:
                is_failing = False
            if is_failing:
                best, has_changed = smaller, True
            else:
                position += 1
    return best
