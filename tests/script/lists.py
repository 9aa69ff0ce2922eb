"""Every list method over every element type, for lists created in every way."""

import math

import torch

from tests.script.program import Program, program

MAX, MIN = 2**63 - 1, -(2**63)
NAN, INF = math.nan, math.inf


class Element:
    """An element type: what a list of it is made of, and how it is shown in a result.

    `source` is the type of the arguments, which `make` turns into an element named v, and `show` turns back.
    """

    def __init__(self, type, lists, probes, source=None, make="v", show="v"):
        self.type, self.lists, self.probes = type, lists, probes
        self.source, self.make, self.show = source or type, make, show
        self.is_direct = make == "v"


def _tensor(*values, dtype=torch.float32):
    return [torch.tensor(value, dtype=dtype) for value in values]


ELEMENTS = {
    "int": Element("int", [[3, 1, 2, 1], [], [MAX, MIN, 0, -1], list(range(20, 0, -1))], [1, 7]),
    "float": Element("float", [[3.5, -1.0, 2.0, -1.0], [], [INF, 0.5, -INF, 1e-300], [0.0, NAN, 1.0, -2.0, NAN],
                               [0.1 * (i * 7 % 23) for i in range(40)]], [-1.0, NAN, 0.0]),
    "bool": Element("bool", [[True, False, True], [], [False] * 3], [True, False]),
    "str": Element("str", [["b", "a", "c", "a"], [], ["", "é", "z", "Z", "aa"]], ["a", ""]),
    "tensor": Element("Tensor", [_tensor(3.0, 1.0, 2.0), [], _tensor(5, 4, 4, dtype=torch.int64)], _tensor(1.0, 9.0)),
    "vector": Element("Tensor", [[torch.tensor([1.0, 2.0]), torch.tensor([3.0])], [torch.zeros(0)]],
                      [torch.tensor([1.0, 2.0])]),
    "tuple": Element("Tuple[int, str]", [[(2, "b"), (1, "z"), (2, "a")], [], [(1, "")]], [(2, "b"), (9, "")]),
    "pair": Element("Pair", [[3, 1, 2, 1], []], [1, 7], source="int", make="Pair(v, 'p')", show="v.first"),
    "list": Element("List[int]", [[[2, 1], [1], [], [1]], []], [[1], [5]]),
    "optional": Element("Optional[int]", [[3, None, 1, None], [], [None]], [1, None]),
    "item": Element("Item", [[3, 1, 2, 1, 1], [], [i * 7 % 5 for i in range(30)]], [1, 7], source="int",
                    make="Item(v, v * 10)", show="(v.key, v.label)"),
    "plain": Element("Plain", [[3, 1], []], [1], source="int", make="Plain(v)", show="v.key"),
    "dict": Element("Dict[str, int]", [[{"a": 1}, {}], []], [{"a": 1}, {"b": 2}]),
    "color": Element("Color", [[1, 2, 1], []], [1, 3], source="int",
                     make="(Color.RED if v == 1 else (Color.GREEN if v == 2 else Color.BLUE))", show="v.name"),
}

# Operations on a list l of elements, with an element x and an int i. `r` is shown, as well as l and k, the same list.
ON_LISTS = {
    "append": ("l.append(x)", None),
    "append_get": ("l.append(x)\nr = l[-1]", "element"),
    "extend": ("l.extend([x, x])", None),
    "extend_self": ("l.extend(l)", None),
    "sort": ("l.sort()", None),
    "sort_reverse": ("l.sort(reverse=True)", None),
    "sort_positional": ("l.sort(True)", None),
    "sort_flag": ("l.sort(len(l) > 2)", None),
    "sorted": ("r = sorted(l)", "list"),
    "reverse": ("l.reverse()", None),
    "clear": ("l.clear()", None),
    "copy": ("r = l.copy()\nl.append(x)", "list"),
    "list_call": ("r = list(l)\nl.append(x)", "list"),
    "pop": ("r = l.pop()", "element"),
    "remove": ("l.remove(x)", None),
    "index": ("r = l.index(x)", "plain"),
    "count": ("r = l.count(x)", "plain"),
    "contains": ("r = x in l", "plain"),
    "contains_not": ("r = x not in l", "plain"),
    "len": ("r = len(l)", "plain"),
    "bool_loop": ("r = 0\nwhile len(l) > 0:\n  l.pop()\n  r += 1", "plain"),
    "equal": ("m = l.copy()\nr = l == m\nm.append(x)\ns = l == m\nr = r and not s", "plain"),
    "not_equal": ("m = l.copy()\nr = l != m", "plain"),
    "less": ("m = l.copy()\nm.append(x)\nr = l < m", "plain"),
    "less_equal": ("m = l.copy()\nm.append(x)\nr = m <= l", "plain"),
    "greater": ("m = l.copy()\nm.append(x)\nr = m > l", "plain"),
    "greater_equal": ("m = l.copy()\nm.append(x)\nr = l >= m", "plain"),
    "add": ("r = l + [x]\nl.append(x)", "list"),
    "add_self": ("r = l + l", "list"),
    "augmented": ("l += [x]", None),
    "repeat": ("r = l * 2\nl.append(x)", "list"),
    "repeat_left": ("r = 3 * l", "list"),
    "augmented_repeat": ("l *= 2", None),
    "slice_copy": ("r = l[:]\nl.append(x)", "list"),
    "slice_assign_one": ("l[0] = x\nr = l[0]", "element"),
    "iterate": ("r = 0\nfor y in l:\n  r += 1\n  if r < 3:\n    l.append(x)", "plain"),
    "enumerate": ("r = [x]\nr.clear()\nfor j, y in enumerate(l):\n  if j % 2 == 0:\n    r.append(y)", "list"),
    "zip": ("r = [x]\nr.clear()\nfor y, j in zip(l, range(2)):\n  r.append(y)", "list"),
    "comprehension": ("r = [y for y in l]\nr.append(x)", "list"),
    "unpack_two": ("a, b = l\nr = b", "element"),
    "in_tuple": ("t = (l, 1)\nt[0].append(x)", None),
    "in_list": ("t = [l, l]\nt[1].append(x)", None),
    "in_dict": ("t = {'a': l}\nt['a'].append(x)", None),
    "sum": ("r = sum(l)", "plain"),
    "any": ("r = any(l)", "plain"),
    "all": ("r = all(l)", "plain"),
    "min": ("r = min(l)", "plain"),
    "max": ("r = max(l)", "plain"),
    "min_two": ("m = [x, x]\nr = min(l, m)", "list"),
    "max_two": ("m = [x, x]\nr = max(l, m)", "list"),
    "text": ("r = str(l)", "text"),
    "is": ("r = l is k", "plain"),
    "is_not": ("m = l.copy()\nr = l is not m", "plain"),
}
# The same with an int i as well.
WITH_INDEX = {
    "get": ("r = l[i]", "element"),
    "set": ("l[i] = x", None),
    "insert": ("l.insert(i, x)", None),
    "pop_at": ("r = l.pop(i)", "element"),
    "delete": ("del l[i]", None),
    "slice_from": ("r = l[i:]", "list"),
    "slice_to": ("r = l[:i]", "list"),
    "slice_both": ("r = l[i:i + 2]\nl.clear()", "list"),
    "slice_step": ("r = l[::i]", "list"),
    "slice_back": ("r = l[i::-1]", "list"),
    "slice_to_back": ("r = l[:i:-2]", "list"),
    "slice_all": ("r = l[i:10:2]", "list"),
    "repeat_by": ("r = l * i", "list"),
    "repeat_by_left": ("r = i * l", "list"),
    "repeat_in_place": ("l *= i", None),
    "slice_assign": ("l[i:] = [x]", None),
}
SIMPLE = ("int", "float", "bool", "str")
INDICES = [0, 1, -1, 2, -2, 5, -5, MAX, MIN]
REPEATS = [0, 1, 2, -1, MIN]
# These depend most on how a list was built: they run for every way, the others for two.
EVERYWHERE = {"append", "extend", "sort", "sort_reverse", "sorted", "pop", "insert", "set", "delete", "clear", "augmented"}


def _constructions(element: Element):
    """Code that builds l from the list `src`; a literal has its own items."""
    yield "loop", f"l: List[{element.type}] = []\nfor v in src:\n  l.append({element.make})"
    yield "comprehension", f"l = [{element.make} for v in src]"
    if element.is_direct:
        yield "argument", "l = src"
        yield "branch", f"if len(src) > 1:\n  l = src\nelse:\n  l = torch.jit.annotate(List[{element.type}], [])"
        yield "added", f"l: List[{element.type}] = []\nl += src"


def _shown(kind, element: Element) -> str:
    if kind == "text" and element.type in ("Item", "Plain", "Tensor"):
        return "len(r) > 0"  # addresses; digits of tensors differ from PyTorch's
    each = {"element": "[{0} for v in [r]]", "list": "[{0} for v in r]", "plain": "r", "text": "r"}.get(kind, "0")
    return each.format(element.show)


def _program(name: str, element: Element, how: str, construction: str, body: str, kind, has_index: bool) -> Program:
    parameters = f"src: List[{element.source}], p: {element.source}" + (", i: int" if has_index else "")
    make_x = f"x = [{element.make} for v in [p]][0]"
    shown = f"return {_shown(kind, element)}, [{element.show} for v in l], [{element.show} for v in k]"
    indices = REPEATS if "repeat" in name else INDICES
    calls = [(list(items), probe, *index) for items in element.lists for probe in element.probes[:1 if has_index else 3]
             for index in ([(i,) for i in indices] if has_index else [()])]
    if name == "slice_step":
        calls = [c for c in calls if c[-1] != MIN]  # PyTorch counts backwards by -MIN there
    return program(f"{how}_{name}", parameters, f"{make_x}\n{construction}\nk = l\n{body}\n{shown}", *calls)


def _literals(element: Element) -> list:
    """Lists of constants, which passes may fold."""
    out = []
    for number, items in enumerate(element.lists[:1]):
        if any(item != item or item in (INF, -INF, MIN) for item in items):
            continue
        literal = f"l = torch.jit.annotate(List[{element.type}], {items!r})"
        for table, has_index in [(ON_LISTS, False), (WITH_INDEX, True)]:
            for name, (body, kind) in table.items():
                made = _program(name, element, f"literal{number}", literal, body, kind, has_index)
                made.calls = [call for call in made.calls if call[0] == []]
                out.append(made)
    return out


def groups() -> dict:
    out = {}
    for key, element in ELEMENTS.items():
        programs = []
        for how, construction in _constructions(element):
            for table, has_index in [(ON_LISTS, False), (WITH_INDEX, True)]:
                programs += [_program(name, element, how, construction, body, kind, has_index)
                             for name, (body, kind) in table.items()
                             if name in EVERYWHERE or how == "loop" or (how == "argument" and key in SIMPLE)]
        if key in SIMPLE:
            programs += _literals(element)
        out[f"list_{key}"] = programs
    return out
