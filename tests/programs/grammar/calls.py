"""Inputs other than plain tensors, results, and the calls of a program."""

from __future__ import annotations

import dataclasses

import torch

from tests.programs.builder import Builder, Skip
from tests.programs.grammar.rules import rule
from tests.programs.program import Argument, Method, Statement


RESULT_TYPES = ("Tensor", "int", "float", "bool", "List[Tensor]", "List[int]", "List[float]", "Dict[str, Tensor]", "Dict[int, Tensor]", "Tuple[Tensor, int]", "str", "List[str]")


def finish(b: Builder):
    """Results, an early return, and the calls."""
    rng, program = b.rng, b.program
    names = [(n, t) for n, t in b.types.items() if t in RESULT_TYPES or t.startswith("N")]
    made = [pair for pair in names if pair[0][0] == "v"] or names
    results = rng.sample(made[-8:], min(len(made[-8:]), rng.randint(1, 5)))
    forward = Method("forward", [(n, a.type) for n, a in b.inputs], b.block, results)
    program.methods.append(forward)
    program.is_traced = rng.random() < 0.08 and not program.pieces and all(a.type == "Tensor" for _, a in b.inputs)
    program.is_frozen = not program.is_traced and rng.random() < 0.08
    calls = rng.choice([1, 2, 2, 3])
    program.calls = [("forward", [a for _, a in b.inputs])]
    for _ in range(calls - 1):
        program.calls.append(("forward", [changed(b, a) for _, a in b.inputs] if rng.random() < 0.5 else [dataclasses.replace(a, seed=a.seed + 1) for _, a in b.inputs]))
    if rng.random() < 0.4 and len(program.calls) > 1:
        program.calls.append(program.calls[0])
    if rng.random() < 0.25 and not program.is_traced:
        c = rng.randrange(len(program.calls))
        program.calls[c] = (program.calls[c][0], overlapping(b, program.calls[c][1]))


def overlapping(b: Builder, arguments: list) -> list:
    """The arguments with one in the memory of another, if two are compatible."""
    def ways(i: int, j: int) -> list:
        a, other = arguments[i], arguments[j]
        if i == j or a.type != "Tensor" or other.type != "Tensor" or a.dtype != other.dtype:
            return []
        square = len(a.shape) >= 2 and a.shape[-1] == a.shape[-2]
        same = ["same", "view"] + ["turned"] * square if a.shape == other.shape else []
        return same + ["row"] * (len(other.shape) > 0 and other.shape[0] > 0 and other.shape[1:] == a.shape)

    pairs = [(i, j, how) for i in range(len(arguments)) for j in range(len(arguments)) for how in ways(i, j)]
    if not pairs:
        return arguments
    i, j, how = b.rng.choice(pairs)
    return [dataclasses.replace(a, same_as=j, how=how) if k == i else a for k, a in enumerate(arguments)]


# ---- inputs


def tensor_argument(b: Builder, kind: str, shape=None) -> Argument:
    return Argument(kind, b.shape(1, 3) if shape is None else shape, torch.float32, -2.0, 2.0, b.rng.randrange(1 << 30))


def given_argument(b: Builder, kind: str) -> Argument:
    rng = b.rng
    if kind == "Optional[Tensor]":
        return dataclasses.replace(tensor_argument(b, kind), is_none=rng.random() < 0.4)
    if kind == "List[Tensor]":
        shape = b.shape(1, 3)
        return Argument(kind, value=[tensor_argument(b, "Tensor", shape) for _ in range(rng.choice([1, 2, 2, 3]))])
    value = {"int": rng.randint(-1, 4), "float": round(rng.uniform(-2, 2), 2), "bool": rng.random() < 0.5, "Optional[int]": rng.choice([0, 2, 3]),
             "List[int]": [rng.randint(0, 3) for _ in range(rng.randint(1, 3))], "str": rng.choice(["", "ab", "a,b"])}[kind]
    return Argument(kind, value=value, is_none=kind == "Optional[int]" and rng.random() < 0.4)


@rule(2)
def given(b):
    """An input that is not a plain tensor."""
    if not b.forward_open or b.depth or len(b.inputs) >= 6:
        raise Skip
    kind = b.rng.choice(["Optional[Tensor]"] * 3 + ["List[Tensor]"] * 3 + ["int", "float", "bool", "Optional[int]", "List[int]", "str"])
    argument = given_argument(b, kind)
    name = b.new_name("x")
    b.inputs.append((name, argument))
    b.names[name] = argument.make(False)
    b.types[name] = kind
    if kind == "Optional[Tensor]":
        result = b.let(b.pick())
        b.compound(Statement(f"if {name} is not None:", [Statement(f"{result} = {name} * 2")], [Statement(f"{result} = {result} + 1")]))
    elif kind == "Optional[int]":
        result = b.let("1", "int")
        b.compound(Statement(f"if {name} is not None:", [Statement(f"{result} = {result} + {name}")]))


def changed(b: Builder, argument: Argument) -> Argument:
    """Another first dimension for tensors that have the program's; another value for other arguments."""
    if argument.type == "List[Tensor]":
        return dataclasses.replace(argument, value=[changed(b, item) for item in argument.value] + argument.value[:b.rng.randint(0, 1)])
    if argument.type not in ("Tensor", "Optional[Tensor]"):
        return given_argument(b, argument.type)
    if argument.type == "Optional[Tensor]" and b.rng.random() < 0.5:
        argument = dataclasses.replace(argument, is_none=not argument.is_none)
    old = b.sizes[0]
    new = (old + 1) if old < 40 else old - 3
    shape = tuple(new if size == old and i == 0 else size for i, size in enumerate(argument.shape))
    return dataclasses.replace(argument, shape=shape, seed=argument.seed + 7)
