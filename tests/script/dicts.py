"""Every dict method over every type of key, and several of values, for dicts created in every way."""

import math

import torch

from tests.script.lists import Element
from tests.script.program import program

NAN = math.nan

# Keys: (type, keys that are inserted, in this order, keys that are looked up).
KEYS = {
    "int": ("int", [[3, 1, 2], [], [2**63 - 1, -(2**63), 0], list(range(20, 0, -1))], [1, 7, 0]),
    "float": ("float", [[3.5, -1.0, 2.0], [], [0.0, math.inf, -math.inf, 1e-300], [NAN, 1.0, NAN]], [-1.0, NAN, -0.0]),
    "bool": ("bool", [[True, False], [], [False]], [True, False]),
    "str": ("str", [["b", "a", "c"], [], ["", "é", "Z"], [f"k{i * 7 % 31}" for i in range(31)]], ["a", "", "q"]),
    "tensor": ("Tensor", [[torch.tensor(float(i)) for i in (3, 1, 2)], [], [torch.tensor(1.0) for _ in range(12)]],
               [torch.tensor(1.0)]),
}
VALUES = {
    "int": Element("int", [], [], source="int", make="v", show="v"),
    "tensor": Element("Tensor", [], [], source="int", make="torch.full([1], v)", show="int(v)"),
    "list": Element("List[int]", [], [], source="int", make="[v, v]", show="v[0] + 100 * len(v)"),
    "item": Element("Item", [], [], source="int", make="Item(v, 1)", show="v.key"),
}

# Operations on a dict d, a key q and a value x. d and e, the same dict, are shown.
METHODS = {
    "len": ("r = len(d)", "plain"),
    "get": ("r = d[q]", "value"),
    "set": ("d[q] = x", None),
    "set_twice": ("d[q] = x\nd[q] = x\nr = len(d)", "plain"),
    "delete": ("del d[q]\nr = len(d)", "plain"),
    "contains": ("r = q in d", "plain"),
    "contains_not": ("r = q not in d", "plain"),
    "get_none": ("r = d.get(q) is None", "plain"),
    "get_some": ("y = d.get(q)\nr = [x]\nif y is not None:\n  r = [y, x]", "values"),
    "get_default": ("r = d.get(q, x)", "value"),
    "pop": ("r = d.pop(q)", "value"),
    "pop_default": ("r = d.pop(q, x)", "value"),
    "popitem": ("a, b = d.popitem()\nr = b", "value"),
    "popitem_all": ("r = [x]\nwhile len(d) > 0:\n  a, b = d.popitem()\n  r.append(b)", "values"),
    "clear": ("d.clear()\nr = len(d)", "plain"),
    "clear_set": ("d.clear()\nd[q] = x\nr = len(d)", "plain"),
    "setdefault": ("r = d.setdefault(q, x)", "value"),
    "setdefault_len": ("d.setdefault(q, x)\nr = len(d)", "plain"),
    "update": ("m = {q: x}\nd.update(m)\nm.clear()", None),
    "copy": ("m = d.copy()\nm[q] = x\nr = len(m) * 100 + len(d)", "plain"),
    "copy_of_copy": ("m = d.copy()\nd.clear()\nr = [v for v in m.values()]", "values"),
    "dict_call": ("m = dict(d)\nm[q] = x\nr = len(m) * 100 + len(d)", "plain"),
    "keys": ("m = d.keys()\nd[q] = x\nr = len(m)", "plain"),
    "values": ("r = d.values()\nd[q] = x", "values"),
    "items": ("r = [x]\nfor a, b in d.items():\n  r.append(b)", "values"),
    "items_list": ("m = d.items()\nd.clear()\nr = len(m)", "plain"),
    "items_dict": ("m = dict(d.items())\nr = m.values()", "values"),
    "list_keys": ("m = list(d.keys())\nr = len(m)", "plain"),
    "iterate": ("r = [x]\nfor a in d:\n  r.append(d[a])", "values"),
    "iterate_change": ("r = 0\nfor a in d:\n  r += 1\n  if r < 3:\n    d[q] = x", "plain"),
    "delete_in_loop": ("r = 0\nfor a in list(d.keys()):\n  r += 1\n  if r % 2 == 0:\n    del d[a]", "plain"),
    "delete_and_set": ("if q in d:\n  del d[q]\nd[q] = x", None),
    "comprehension": ("m = {a: b for a, b in d.items()}\nr = m.values()", "values"),
    "in_list": ("t = [d]\nt[0][q] = x", None),
    "in_tuple": ("t = (1, d)\nt[1][q] = x", None),
    "is": ("r = d is e", "plain"),
    "text": ("r = str(len(d))", "plain"),
}
EVERYWHERE = {"len", "set", "delete", "clear", "update", "setdefault", "copy", "pop", "popitem"}
CONSTRUCTIONS = {
    "loop": "d: Dict[{key}, {value}] = {{}}\nfor k, v in zip(ks, vs):\n  d[k] = {make}",
    "pairs": "d = dict([(k, {make}) for k, v in zip(ks, vs)])",
    "comprehension": "d = {{k: {make} for k, v in zip(ks, vs)}}",
    "branch": ("if len(ks) > 1:\n  d = dict([(k, {make}) for k, v in zip(ks, vs)])\n"
               "else:\n  d = torch.jit.annotate(Dict[{key}, {value}], {{}})\n  for k, v in zip(ks, vs):\n    d[k] = {make}"),
}


def _program(how, name, body, kind, key_type, key_lists, probes, value):
    shown = {"value": f"[{value.show} for v in [r]]", "values": f"[{value.show} for v in r]", "plain": "r"}.get(kind, "0")
    method_source = "\n".join([
        f"x = [{value.make} for v in [77]][0]", CONSTRUCTIONS[how].format(key=key_type, value=value.type, make=value.make),
        "e = d", body, f"return {shown}, [k for k in d.keys()], [{value.show} for v in e.values()]"])
    calls = [(keys, list(range(1, len(keys) + 1)), probe)
             for keys in key_lists for probe in [*probes, *(keys[1:2] if key_type == "Tensor" else [])]]
    return program(f"{how}_{name}", f"ks: List[{key_type}], vs: List[int], q: {key_type}", method_source, *calls)


def _extras(key_type) -> list:
    """Equality, and literals that passes may fold."""
    literals = {"int": "{2: 'b', 1: 'a'}", "float": "{2.5: 'b', 1.0: 'a'}", "bool": "{True: 'b', False: 'a'}",
                "str": "{'z': 'b', '1': 'a'}"}
    out = [program("argument", f"d: Dict[{key_type}, int], q: {key_type}", "e = d\nd[q] = 5\nreturn d, e, len(d)",
                   *[({k: 1 for k in keys}, q) for keys in KEYS[key_type][1] for q in KEYS[key_type][2]])]
    literal = literals[key_type]
    for name, body in {"literal_set": f"d = {literal}\nd[q] = 'c'\nreturn d", "literal_get": f"d = {literal}\nreturn d[q]",
                       "literal_pop": f"d = {literal}\nr = d.pop(q, 'none')\nreturn r, d",
                       "literal_in_loop": f"r = 0\nfor i in range(3):\n  d = {literal}\n  d[q] = 'c'\n  r += len(d)\nreturn r",
                       "literal_clear": f"d = {literal}\ne = {literal}\nd.clear()\nreturn d, e"}.items():
        out.append(program(name, f"q: {key_type}", body, *[(q,) for q in KEYS[key_type][2]]))
    return out


def groups() -> dict:
    out = {}
    for key, (key_type, key_lists, probes) in KEYS.items():
        programs = _extras(key_type) if key != "tensor" else []
        for number, (value_name, value) in enumerate(VALUES.items()):
            for how in CONSTRUCTIONS if number == 0 else ["loop", "pairs"]:
                for name, (body, kind) in METHODS.items():
                    if number and how == "pairs" and name not in EVERYWHERE:
                        continue
                    made = _program(how, name, body, kind, key_type, key_lists, probes, value)
                    made.name = f"{value_name}_{made.name}"
                    programs.append(made)
        out[f"dict_{key}"] = programs
    return out
