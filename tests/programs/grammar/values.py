"""Numbers, lists, dicts, tuples, Optionals, and attributes that calls change."""

from __future__ import annotations

import torch

from tests.programs.builder import Skip
from tests.programs.grammar.rules import rule
from tests.programs.program import Statement


@rule(5)
def numbers(b):
    rng = b.rng
    x = b.pick()
    ints = [n for n, t in b.types.items() if t == "int"] or ["2"]
    floats = [n for n, t in b.types.items() if t == "float"] or ["0.5"]
    i, j, f = rng.choice(ints), rng.choice(ints), rng.choice(floats)
    kind = rng.choice(["int"] * 3 + ["float"] * 2 + ["bool"])
    expressions = {"int": [f"{x}.size(0)", f"{x}.dim()", f"{x}.numel()", f"{x}.size(-1)", f"{i} + {j}", f"{i} * 2 - {j}", f"{i} // 2", f"{i} % 3", f"max({i}, {j})",
                     f"int({x}.sum())", f"{x}.shape[0] + 0", f"len({x})", f"{x}.stride(0)", f"abs(-{i})", f"-{i}", f"{i} if {i} > {j} else {j}", f"{x}.storage_offset()"],
             "float": [f"float({x}.sum())", f"{f} * 2.0", f"float({i})", f"{i} / 4", f"{f} + {i}", f"math.sqrt(abs({f}))", f"float({x}.mean())", f"{x}.max().item() * 1.0"],
             "bool": [f"{x}.dim() > 2", f"bool({x}.sum() > 0)", f"{i} == {j}", f"{x}.is_contiguous()", f"{x}.is_floating_point()", f"not {i} > 2", f"{i} > 1 and {j} < 4",
                      f"torch.equal({x}, {b.pick()})", f"{x} is {b.pick()}", f"{x}.is_contiguous(memory_format=torch.channels_last)"]}
    name = b.let(rng.choice(expressions[kind]), kind)
    if kind == "int" and abs(b.value(name)) > 1 << 20:
        raise Skip


@rule(5)
def lists(b):
    rng = b.rng
    known = [n for n, t in b.types.items() if t == "List[Tensor]"]
    if not known or rng.random() < 0.3:
        x = b.pick()
        b.let(rng.choice([f"[{x}, {b.pick()}]", f"[{x}]", f"[{x} * float(k) for k in range(3)]", f"list(torch.unbind({x}))", f"[t for t in {x}.split(1)]",
                          f"torch.chunk({x}, 2)" if rng.random() < 0.2 else f"[{x}, {x}, {b.pick()}]"]), "List[Tensor]")
        return
    name = rng.choice(known)
    style = rng.randrange(10)
    if style < 3:
        b.let(rng.choice([f"{name}[0]", f"{name}[-1]", f"torch.cat({name})", f"torch.stack({name})", f"torch.cat({name}, -1)"]))
    elif style < 6:
        b.do(rng.choice([f"{name}.append({b.pick()})", f"{name}[0] = {b.pick()}", f"{name}.insert(0, {b.pick()})", f"{name}.reverse()", f"{name}.extend({name})", f"{name} += [{b.pick()}]",
                         f"{name}.clear()", f"{name}[0].add_(1)", f"{name}[-1].mul_(2)"]))
    elif style == 6:
        b.let(f"{name}.pop()")
    elif style == 7:
        b.let(f"len({name})", "int")
    elif style == 8:
        b.let(rng.choice([f"{name}[1:]", f"{name}[::-1]", f"{name} + {name}", f"[t + 1 for t in {name}]", f"{name}.copy()", f"{name} * 2"]), "List[Tensor]")
    else:
        b.let(f"{name}", "List[Tensor]")


@rule(2)
def number_lists(b):
    rng = b.rng
    kind = rng.choice(["int", "float"])
    known = [n for n, t in b.types.items() if t == f"List[{kind}]"]
    x = b.pick()
    if not known or rng.random() < 0.3:
        b.let(rng.choice([f"{x}.size()" if False else f"[{x}.size(0), 1, 3]", f"[k * 2 for k in range({x}.dim())]", f"list({x}.shape)"]) if kind == "int"
              else rng.choice(["[0.5, -1.0, 2.0]", f"[float({x}.sum()), 1.0]"]), f"List[{kind}]")
        return
    name = rng.choice(known)
    style = rng.randrange(4)
    if style == 0:
        b.do(rng.choice([f"{name}.sort()", f"{name}.sort(reverse=True)", f"{name}.append({name}[0])", f"{name}.reverse()", f"{name}[0] = {name}[-1]", f"{name}.insert(1, {name}[-1])", f"{name}.pop()"]))
    elif style == 1:
        b.let(rng.choice([f"{name}[0]", f"max({name})", f"min({name})", f"sum({name})", f"{name}[-1]"]), kind)
    elif style == 2:
        b.let(rng.choice([f"sorted({name})", f"{name}[1:]", f"{name} + {name}", f"{name}[::-1]", f"{name}.copy()"]), f"List[{kind}]")
    else:
        b.let(f"torch.tensor({name})")


@rule(3)
def dicts(b):
    rng = b.rng
    kind = rng.choice(["Dict[str, Tensor]", "Dict[int, Tensor]"])
    keys = ['"a"', '"b"', '"c"'] if "str" in kind else ["0", "1", "5"]
    known = [n for n, t in b.types.items() if t == kind]
    if not known or rng.random() < 0.25:
        b.let(f"{{{keys[0]}: {b.pick()}, {keys[1]}: {b.pick()}}}", kind)
        return
    name, key = rng.choice(known), rng.choice(keys)
    style = rng.randrange(6)
    if style == 0:
        b.let(rng.choice([f"{name}[{key}]", f"{name}.pop({key})", f"{name}.setdefault({key}, {b.pick()})", f"{name}.get({key}, {b.pick()})"]))
    elif style == 1:
        b.do(rng.choice([f"{name}[{key}] = {b.pick()}", f"{name}.update({{{key}: {b.pick()}}})", f"del {name}[{key}]", f"{name}[{key}].add_(1)", f"{name}.clear()"]))
    elif style == 2:
        b.let(rng.choice([f"len({name})"]), "int")
    elif style == 3:
        b.let(f"{key} in {name}", "bool")
    elif style == 4:
        b.let(f"list({name}.values())", "List[Tensor]")
    else:
        b.let(f"{name}.copy()", kind)


@rule(2)
def tuples(b):
    known = [n for n, t in b.types.items() if t == "Tuple[Tensor, int]"]
    if not known or b.rng.random() < 0.4:
        x = b.pick()
        b.let(f"({x}, {x}.dim())", "Tuple[Tensor, int]")
    elif b.rng.random() < 0.5:
        b.let(f"{b.rng.choice(known)}[0]")
    else:
        b.let(f"{b.rng.choice(known)}[1]", "int")


@rule(2)
def state(b):
    """Attributes that calls change."""
    rng = b.rng
    style = rng.randrange(5)
    if style == 0:
        counter = b.member("0", "c", "int")
        b.do(f"{counter} += 1")
        b.let(f"{counter} * 2", "int")
    elif style == 1:
        x = b.float_tensor(lambda t: t.dtype == torch.float32)
        buffer = b.member(f"buffer filled({rng.randrange(10**6)}, {tuple(b.value(x).shape)})", "p")
        b.do(rng.choice([f"{buffer}.mul_(0.9).add_({x}, alpha=0.1)", f"{buffer}.copy_({x})", f"{buffer} = {buffer} * 0.5 + {x}", f"{buffer}.add_({x})", f"{buffer}[0] = {x}[0]"]))
        b.let(rng.choice([f"{buffer} + 1", f"{buffer}.clone()", f"{buffer}"]))
    elif style == 2:
        history = b.member("torch.jit.annotate(List[float], [])", "h", "List[float]")
        b.do(f"{history}.append(float({b.pick()}.sum()))")
        b.let(f"len({history})", "int")
    elif style == 3:
        cache = b.member("torch.jit.annotate(Dict[str, Tensor], {})", "h", "Dict[str, Tensor]")
        x = b.pick()
        b.do(f'{cache}["last"] = {x}.clone()')
        b.let(f'{cache}["last"]')
    else:
        x = b.float_tensor(lambda t: t.dim() in (2, 3, 4) and t.shape[1] > 0 and t.numel() > t.shape[1] and t.dtype == torch.float32)
        value = b.value(x)
        layer = b.member(f"seeded({rng.randrange(10**6)}, lambda: nn.BatchNorm{ {2: '1d', 3: '1d', 4: '2d'}[value.dim()] }({value.shape[1]}))")
        b.let(f"F.batch_norm({x}, {layer}.running_mean, {layer}.running_var, None, None, True, 0.3)")


@rule(1.5)
def optional(b):
    x = b.pick()
    name = b.let(b.rng.choice([f"{x}", "None"]), "Optional[Tensor]")
    b.compound(Statement(f"if {name} is None:", [Statement(f"{name} = {b.pick()}")]))
    b.let(f"torch.jit._unwrap_optional({name})")
