"""Declarations: script classes, NamedTuples, enums, submodules; and strings."""

from __future__ import annotations

from torch import nn

from tests.programs.builder import Skip
from tests.programs.grammar.rules import number, rule
from tests.programs.program import Method, Statement


@rule(2.5)
def strings(b):
    rng = b.rng
    known = [n for n, t in b.types.items() if t == "str"]
    ints = [n for n, t in b.types.items() if t == "int"] or ["7"]
    bools = [n for n, t in b.types.items() if t == "bool"] or ["True"]
    if not known or rng.random() < 0.25:
        b.let(rng.choice(["'a,b,c'", "' Ab cD '", "''", "'x'", f"str({rng.choice(ints)})", f"'{{}}-{{}}'.format({rng.choice(ints)}, {rng.choice(bools)})"]), "str")
        return
    s, t, i = rng.choice(known), rng.choice(known), rng.choice(ints)
    kind = rng.choice(["str"] * 4 + ["int", "int", "bool", "bool", "List[str]"])
    b.let(rng.choice({
        "str": [f"{s} + {t}", f"{s} * 2", f"{s}.upper()", f"{s}.strip()", f"{s}[1:]", f"{s}[:2]", f"{s}.replace('a', 'xy')", f"{s}.join(['p', 'q'])",
                f"{s} + str({i})", f"f'{{{s}}}|{{{i}}}'", f"'%s=%d' % ({s}, {i})", f"{s} if len({s}) > 2 else {t}", f"{s}.capitalize()", f"{s}.zfill(4)"],
        "int": [f"len({s})", f"{s}.find('b')", f"{s}.count('a')", f"{s}.rfind(',')"],
        "bool": [f"{s} == {t}", f"{s} < {t}", f"'b' in {s}", f"{s}.startswith('a')", f"{s}.isdigit()", f"{s} != 'x'"],
        "List[str]": [f"{s}.split(',')", f"[{s}, {t}]", f"sorted([{t}, {s}])"]}[kind]), kind)
    if any(isinstance(value, str) and len(value) > 200 for value in b.names.values()):
        raise Skip("a long text")


CLASS = """@torch.jit.script
class {name}:
    def __init__(self, x: Tensor, n: int):
        self.x = {first}
        self.n = n
        self.items: List[Tensor] = [x]

    def step(self, y: Tensor) -> Tensor:
        {change}
        return {result}

    def size(self) -> int:
        return self.n * 2 + len(self.items)

    def __lt__(self, other: "{name}") -> bool:
        return self.n < other.n
"""


@rule(3)
def script_class(b):
    rng = b.rng
    known = b.of_kind("C")
    if not known or rng.random() < 0.2:
        classes = [kind for kind in b.kinds if kind.startswith("C")]
        if not classes or (rng.random() < 0.3 and not b.depth):
            classes = [b.new_name("C")]
            b.piece(CLASS.format(name=classes[0], first=rng.choice(["x", "x", "x + 1", "x.clone()"]),
                                 change=rng.choice(["self.n += 1", "self.x = self.x + y", "self.x.add_(1)", "self.items.append(y)", "self.items[0] = y * 2",
                                                    "self.x, self.n = y, self.n + 2", "self.items = [self.x, y]"]),
                                 result=rng.choice(["self.x", "self.x * float(self.n)", "self.items[0] + 1", "self.items[-1]", "y + self.n", "self.x.t()"])))
        b.let(f"{rng.choice(classes)}({b.pick()}, {rng.randint(0, 3)})", rng.choice(classes))
        return
    name, kind = rng.choice(known)
    style = rng.randrange(9)
    if style < 2:
        b.let(f"{name}.step({b.pick()})")
    elif style == 2:
        b.let(rng.choice([f"{name}.x", f"{name}.items[0]", f"{name}.items[-1] * 2"]))
    elif style == 3:
        b.let(rng.choice([f"{name}.n", f"{name}.size()", f"len({name}.items)"]), "int")
    elif style == 4:
        b.do(rng.choice([f"{name}.x = {b.pick()}", f"{name}.n += 1", f"{name}.x.add_(1)", f"{name}.items.append({b.pick()})", f"{name}.items[0].mul_(2)", f"{name}.items.reverse()"]))
    elif style == 5:
        b.let(name, kind)  # another name of the same object
    elif style == 6:
        others = [n for n, k in known if k == kind]
        items = b.let(f"[{name}, {rng.choice(others)}]", f"List[{kind}]")
        b.do(rng.choice([f"{items}[0].n += 5", f"{items}.reverse()", f"{items}.sort()", f"{items}[1].x = {items}[0].x"]))
        b.let(f"{items}[0].n - {items}[1].n", "int")
    elif style == 7:
        others = [n for n, k in known if k == kind]
        b.let(rng.choice([f"{name} is {rng.choice(others)}", f"{name} < {rng.choice(others)}"]), "bool")
    else:
        b.let(f"{name} if {name}.n > {rng.randint(0, 3)} else {rng.choice([n for n, k in known if k == kind])}", kind)


@rule(2)
def named_tuple(b):
    rng = b.rng
    known = b.of_kind("N")
    if not known or rng.random() < 0.3:
        classes = [kind for kind in b.kinds if kind.startswith("N")]
        if not classes:
            classes = [b.new_name("N")]
            b.piece(f"class {classes[0]}(NamedTuple):\n    x: Tensor\n    n: int\n    y: Tensor\n")
        b.let(f"{rng.choice(classes)}({b.pick()}, {rng.randint(0, 4)}, {rng.choice(['y=', ''])}{b.pick()})", rng.choice(classes))
        return
    name, kind = rng.choice(known)
    style = rng.randrange(5)
    if style < 2:
        b.let(rng.choice([f"{name}.x", f"{name}[0]", f"{name}.y", f"{name}[-1]", f"{name}.x + {name}.n"]))
    elif style == 2:
        b.let(rng.choice([f"{name}.n", f"{name}[1] + 1", f"len({name})"]), "int")
    elif style == 3:
        b.do(rng.choice([f"{name}.x.add_(1)", f"{name}.y.mul_(2)", f"{name}[0].zero_()"]))
    else:
        b.let(f"{kind}({name}.y, {name}.n + 1, {name}.x)", kind)


@rule(1.5)
def enum(b):
    rng = b.rng
    known = b.of_kind("E")
    if not known or rng.random() < 0.4:
        classes = [kind for kind in b.kinds if kind.startswith("E")]
        if not classes:
            classes = [b.new_name("E")]
            b.piece(f"class {classes[0]}(Enum):\n    A = {rng.randint(0, 2)}\n    B = 3\n    D = 5\n")
        kind = rng.choice(classes)
        b.let(rng.choice([f"{kind}.A", f"{kind}.B", f"{kind}.A if {b.pick()}.dim() > 1 else {kind}.D"]), kind)
        return
    name, kind = rng.choice(known)
    style = rng.randrange(4)
    if style == 0:
        b.let(rng.choice([f"{name} == {kind}.A", f"{name} != {kind}.B", f"{name} is {kind}.A"]), "bool")
    elif style == 1:
        b.let(f"{name}.value", "int")
    elif style == 2:
        b.let(f"{name}.name", "str")
    else:
        target = b.let(b.pick())
        b.compound(Statement(f"if {name} == {kind}.B:", [Statement(f"{target} = {target} * 2")], [Statement(f"{target} = {target} - {number(b)}")]))


@rule(2.5)
def submodule(b):
    """A submodule with a buffer, a number and whatever its statements need; called once or twice."""
    if b.depth:
        raise Skip
    rng = b.rng
    x = b.pick()
    shape = tuple(b.value(x).shape)
    kind, argument = b.new_name("S"), b.new_name("v")
    kept, outer, is_open, module = b.snapshot(), b.block, b.forward_open, b.module
    members = len(b.program.members)
    tensor_source = f"filled({rng.randrange(10**6)}, {shape})"
    b.block, b.forward_open, b.module = [], False, nn.Module().eval()
    b.module.register_buffer("kept", eval(tensor_source, b.names))
    b.module.n = 2
    b.names["self"], b.names[argument] = b.module, b.value(x)
    b.types = {argument: "Tensor", "self.kept": "Tensor", "self.n": "int"}
    b.depth += 2
    try:
        b.statements(rng.randint(1, 4))
        body, result = b.block, b.pick()
    finally:
        b.depth -= 2
        b.block, b.forward_open = outer, is_open
        own = b.program.members[members:]
        del b.program.members[members:]
        b.restore(kept)
    if rng.random() < 0.4:
        body.insert(0, Statement("self.n += 1"))
    lines = [f"class {kind}(nn.Module):"] + [f"    {name}: {annotation}" for name, _, annotation in own if annotation]
    lines += ["    def __init__(self):", "        super().__init__()", f"        self.register_buffer('kept', {tensor_source})", "        self.n = 2"]
    lines += [f"        self.register_buffer('{name}', {made[7:]})" if made.startswith("buffer ") else f"        self.{name} = {made}" for name, made, _ in own]
    b.piece("\n".join(lines + [""] + Method("forward", [(argument, "Tensor")], body, [(result, "Tensor")]).lines("    ")) + "\n")
    if rng.random() < 0.3:
        layers = b.member(f"nn.ModuleList([{kind}(), {kind}()])")
        target, layer = b.let(x), b.new_name("k")
        b.compound(Statement(f"for {layer} in {layers}:", [Statement(f"{target} = {layer}({target})")]))
        b.names.pop(layer, None)
        return
    layer = b.member(f"{kind}()")
    b.let(f"{layer}({x})")
    if rng.random() < 0.5:
        b.let(f"{layer}({b.pick()})")
