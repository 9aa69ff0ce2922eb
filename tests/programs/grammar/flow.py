"""Branches, loops, methods and functions."""

from __future__ import annotations

from tests.programs.builder import Skip
from tests.programs.grammar.rules import rule
from tests.programs.program import Method, Statement


def condition(b) -> str:
    rng = b.rng
    bools = [n for n, t in b.types.items() if t == "bool"]
    if bools and rng.random() < 0.3:
        return rng.choice(bools)
    x = b.pick()
    return rng.choice([f"{x}.dim() > {rng.choice([1, 2, 3])}", f"{x}.size(0) > 2", f"bool({x}.sum() > {rng.choice([0, 1])})", f"{x}.numel() % 2 == 0", f"{x}.size(-1) == 3",
                       f"{x}.is_floating_point()", f"{x}.dtype == torch.float32", "self.training", f"bool(({x} > 0).any())"])


@rule(4)
def branch(b):
    if b.depth >= 2:
        raise Skip
    tested = condition(b)
    body = b.nested(b.rng.randint(1, 4))
    orelse = b.nested(b.rng.randint(1, 3)) if b.rng.random() < 0.5 else None
    if not body:
        raise Skip
    b.compound(Statement(f"if {tested}:", body, orelse))


@rule(3)
def loop(b):
    if b.depth >= 2:
        raise Skip
    rng = b.rng
    x = b.pick()
    index = b.new_name("k")
    style = rng.randrange(4)
    lists_ = [n for n, t in b.types.items() if t == "List[Tensor]"]
    kept = dict(b.types)
    if style == 0 and lists_:
        head, kind, first = f"for {index} in {rng.choice(lists_)}.copy():", "Tensor", x
    elif style == 1:
        counter = b.let("0", "int")
        head, kind, first = f"while {counter} < {rng.choice(['2', '3', f'{x}.dim()'])}:", "", ""
        b.frozen.add(counter)
    else:
        head, kind, first = f"for {index} in range({rng.choice(['2', '3', '0', f'{x}.size(0)', f'{x}.dim()'])}):", "int", "1"
    if kind:
        b.names[index] = b.value(first)
        b.types[index] = kind
        b.frozen.add(index)
    body = b.nested(rng.randint(1, 3))
    if kind:
        b.types.pop(index, None)
    if not body:
        raise Skip
    if head.startswith("while"):
        body.append(Statement(f"{counter} += 1"))
    elif rng.random() < 0.25:
        body.insert(rng.randint(0, len(body)), Statement(f"if {condition_of_loop(b, index, kind)}:", [Statement(rng.choice(["break", "continue"]))]))
    b.compound(Statement(head, body))
    if kind:
        b.types.pop(index, None)


def condition_of_loop(b, index: str, kind: str) -> str:
    return f"{index} == 1" if kind == "int" else f"{index}.dim() > 1"


@rule(2.5)
def helper(b):
    """A separate method or function, called twice."""
    if b.depth:
        raise Skip
    rng = b.rng
    x = b.pick()
    name, argument = b.new_name("f"), b.new_name("v")
    kept, outer, is_open = b.snapshot(), b.block, b.forward_open
    b.block, b.forward_open = [], False
    is_method = rng.random() < 0.5
    b.types = {n: t for n, t in b.types.items() if is_method and n.startswith("self.")}
    b.names[argument] = b.value(x)
    b.types[argument] = "Tensor"
    b.depth += 2
    members = len(b.program.members)
    try:
        b.statements(rng.randint(1, 4))
        body = b.block
        result = b.pick()
    finally:
        b.depth -= 2
        b.block, b.forward_open = outer, is_open
        b.restore(kept)
    if len(b.program.members) > members and not is_method:
        del b.program.members[members:]
        raise Skip
    b.add_members_again(members)
    if rng.random() < 0.3:
        body.insert(rng.randint(0, len(body)), Statement(f"if {argument}.dim() > {rng.choice([1, 2])}:", [Statement(f"return {argument}")]))
    method = Method(name, [(argument, "Tensor")], body, [(result, "Tensor")])
    if is_method:
        lines = method.lines("", True)[1:]
        b.execute("\n".join(lines))
        setattr(b.module, name, b.names.pop(name).__get__(b.module))
        b.program.methods.append(method)
    else:
        b.piece("\n".join(method.lines("", False)) + "\n")
    call = ("self." if is_method else "") + name
    b.let(f"{call}({x})")
    if rng.random() < 0.5:
        b.let(f"{call}({b.pick()})")
