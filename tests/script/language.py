"""Unusual scripts: state, classes, NamedTuples, enums, Optionals, raise, with, early returns, slices, comprehensions."""

import torch

from tests.script.program import program

T = torch.tensor


def _state() -> list:
    return [
        program("count", "n: int", "self.count += n\nself.count *= 2\nreturn self.count", (1,), (2,), (3,)),
        program("attribute_list", "n: int", "l = self.numbers\nl.append(n)\nself.numbers[0] += 5\nreturn self.numbers, len(l)", (1,), (2,)),
        program("attribute_list_new", "n: int", "old = self.numbers\nself.numbers = [n, n]\nold.append(n)\nreturn self.numbers, old", (1,), (2,)),
        program("attribute_dict", "k: str", "self.table[k] = len(self.table)\nself.table['a'] += 1\nreturn self.table", ("b",), ("c",), ("a",)),
        program("attribute_names", "k: str", "self.names += [k]\nself.names.sort(reverse=True)\nreturn self.names", ("c",), ("0",)),
        program("attribute_tuple", "n: int", "self.pair = (self.pair[0] + n, self.pair[1] + 'y')\nreturn self.pair", (1,), (2,)),
        program("attribute_optional", "n: int",
                "m = self.maybe\nif m is None:\n  self.maybe = n\n  return -1\nelse:\n  self.maybe = m + n\n  return m", (1,), (2,), (3,)),
        program("buffer", "n: float", "self.state += n\nself.state[1:3] *= 2\nv = self.state[0]\nself.state[0] = v + 1\nreturn self.state.clone()",
                (1.0,), (0.5,)),
        program("scale", "n: float", "self.scale /= n\nself.scale -= 1\nreturn self.scale", (2.0,), (0.5,)),
    ]


def _classes() -> list:
    return [
        program("alias_item", "n: int", "a = Item(n, 1)\nb = a\nb.key += 5\na.label *= 3\nreturn a.key, b.label, a is b", (1,), (2,)),
        program("items_changed_in_loop", "n: int",
                "l = [Item(i, 0) for i in range(n)]\nfor it in l:\n  it.key = it.key * 2 + 1\n  it.label += len(l)\nreturn [(i.key, i.label) for i in l]",
                (0,), (3,)),
        program("same_item_twice", "n: int", "a = Item(n, 0)\nl = [a, a]\nl[0].key = 9\nreturn [i.key for i in l]", (1,)),
        program("equal_items", "n: int", "return Item(n, 1) == Item(n, 2), Item(n, 1) == Item(3, 1), Item(n, 1) < Item(3, 0)", (1,), (3,)),
        program("sort_pairs", "n: int", "l = [(i * 7 % 5, str(i)) for i in range(n)]\nl.sort()\nm = sorted(l)\nl.sort(reverse=True)\nreturn l, m",
                (0,), (1,), (9,), (25,)),
        program("sort_items_long", "n: int", "l = [Item(i * 7 % 5, i) for i in range(n)]\nl.sort()\nm = [i.label for i in l]\nl.sort(reverse=True)\n"
                "return m, [i.label for i in l], [i.label for i in sorted(l)]", (1,), (16,), (17,), (100,)),
        program("sort_items_in_pairs", "n: int", "l = [(Item(i * 3 % 4, i), i) for i in range(n)]\nl.sort()\nreturn [i for _, i in l]", (1,), (3,), (9,)),
        program("sort_unsortable", "n: int", "l = [Plain(i) for i in range(n)]\nl.sort()\nreturn len(l)", (0,), (3,)),
        program("sorted_in_branch", "n: int", "if n > 1:\n  l = sorted([Item(3, 0), Item(1, 1)])\nelse:\n  l = [Item(n, n)]\nreturn [i.key for i in l]",
                (1,), (2,)),
        program("named_tuple", "n: int", "p = Pair(n, 'a')\nq = Pair(second='z', first=n + 1)\nf, s = q\nreturn p.first + q[0] + f, p.second + s, p == p",
                (1,)),
        program("named_tuples_in_list", "n: int", "l = [Pair(i, str(i)) for i in range(n)]\nr = 0\nfor p in l:\n  r += p.first\nreturn r, [p.second for p in l]",
                (0,), (4,)),
        program("enum_compare", "n: int", "c = Color.RED if n == 1 else Color.BLUE\nreturn c == Color.RED, c != Color.BLUE, c.value, c.name",
                (1,), (2,)),
        program("enum_words", "n: int", "w = [Word.A, Word.B][n]\nreturn w.value + w.name", (0,), (1,), (-1,)),
        program("enum_keys", "n: int", "r = 0\nfor c in [Color.RED, Color.GREEN, Color.GREEN]:\n  if c == Color.GREEN:\n    r += c.value * n\nreturn r", (1,), (2,)),
    ]


def _control() -> list:
    return [
        program("early_return_in_loop", "l: List[int], x: int", "for i, y in enumerate(l):\n  if y == x:\n    return i\nreturn -1",
                ([3, 1, 2], 2), ([], 1), ([1, 1], 1), ([4], 9)),
        program("return_in_nested_loops", "n: int",
                "for i in range(n):\n  for j in range(i):\n    if i * j == 6:\n      return (i, j)\n    elif j > 5:\n      break\n  if i > 7:\n    return (-1, i)\nreturn (0, 0)",
                (0,), (3,), (4,), (9,)),
        program("break_and_continue", "n: int", "r = [0]\nfor i in range(n):\n  if i % 3 == 0:\n    continue\n  if i > 7:\n    break\n  r.append(i)\nreturn r",
                (0,), (5,), (20,)),
        program("while_with_break", "n: int", "i = 0\nwhile True:\n  i += n\n  if i > 10:\n    break\n  if i == 4:\n    i += 1\n    continue\n  i += 1\nreturn i", (1,), (3,), (100,)),
        program("nested_break", "n: int", "r = 0\nfor i in range(n):\n  for j in range(n):\n    if j > i:\n      break\n    r += 1\n  else_ = r\n  if r > 20:\n    break\nreturn r", (0,), (3,), (10,)),
        program("raise_value", "n: int", "if n > 2:\n  raise ValueError('too many: ' + str(n))\nreturn n", (1,), (3,)),
        program("raise_in_loop", "l: List[int]", "r = 0\nfor x in l:\n  if x < 0:\n    raise RuntimeError(f'negative {x}')\n  r += x\nreturn r", ([1, 2],), ([1, -2],), ([],)),
        program("assert_fails", "n: int", "assert n > 0, 'must be positive'\nassert n != 5\nreturn n", (1,), (0,), (5,)),
        program("with_no_grad", "x: Tensor", "with torch.no_grad():\n  y = x * 2\n  if y.sum() > 3:\n    y = y + 1\nreturn y", (T([1.0]),), (T([3.0, 1.0]),)),
        program("short_circuit", "l: List[int], i: int", "return (i < len(l) and l[i] > 0) or (len(l) == 0 or l[0] == 7)", ([1, -1], 0), ([1, -1], 1), ([], 3), ([7], 5)),
        program("ternaries", "a: int, b: int", "return (a if a > b else b) if a != b else -1", (1, 2), (2, 1), (3, 3)),
        program("chained", "a: int, b: int, c: int", "return a < b < c, a <= b == c", (1, 2, 3), (3, 2, 1), (1, 1, 1)),
        program("loop_variable_after", "n: int", "i = -1\nfor i in range(n):\n  pass\nreturn i", (0,), (5,)),
        program("loop_list_grows", "n: int", "l = [n]\nfor x in l:\n  if len(l) < 5:\n    l.append(x + 1)\nreturn l", (1,)),
        program("loop_list_shrinks", "l: List[int]", "r = 0\nfor x in l:\n  r += x\n  if len(l) > 2:\n    l.pop()\nreturn r, l", ([1, 2],), ([1, 2, 3, 4],)),
        program("shadowed", "n: int", "x = n\nfor x in range(3):\n  y = x\n  if y == 1:\n    n = y + n\nreturn n, x", (0,), (4,)),
        program("swaps", "a: int, b: int", "a, b = b, a\na, b = a + b, a - b\nreturn a, b", (1, 2)),
        program("nested_unpack", "n: int", "(a, b), c = (n, n + 1), [n]\nreturn a + b, c", (1,)),
        program("tuple_compare", "a: int", "return (a, 'x') == (1, 'x'), (a, 2) != (1, 2)", (1,), (2,)),
        program("tuple_slices", "a: int", "t = (a, 'b', 2.5, [a])\nreturn t[1:3], t[-1], t[:2], t[::2]", (1,)),
    ]


def _optionals() -> list:
    return [
        program("refine", "a: Optional[int]", "if a is not None and a > 2:\n  return a + 1\nif a is None:\n  return 0\nreturn -a", (None,), (1,), (3,)),
        program("refine_or", "a: Optional[int], b: Optional[int]", "if a is None or b is None:\n  return 0\nreturn a + b", (None, 1), (1, None), (1, 2)),
        program("refine_early", "a: Optional[str]", "if a is None:\n  return 'none'\nr = a + '!'\nreturn r", (None,), ("x",)),
        program("refine_loop", "l: List[Optional[int]]", "r = 0\nfor x in l:\n  if x is None:\n    continue\n  r += x\nreturn r", ([1, None, 2],), ([],)),
        program("refine_while", "n: int", "a: Optional[int] = n\nr = 0\nwhile a is not None:\n  r += a\n  if a > 3:\n    a = None\n  else:\n    a = a + 1\nreturn r", (1,), (9,)),
        program("unwrap_none", "a: Optional[int]", "b = torch.jit._unwrap_optional(a)\nreturn b + 1", (1,), (None,)),
        program("optional_default", "a: Optional[int]", "b = a if a is not None else 7\nreturn b", (1,), (None,)),
        program("optional_list", "a: Optional[List[int]]", "l = torch.jit.annotate(List[int], []) if a is None else a\nl.append(1)\nreturn l", (None,), ([5],)),
        program("assert_refines", "a: Optional[int]", "assert a is not None\nreturn a * 2", (2,), (None,)),
        program("union", "n: int", "a: Union[int, str] = n\nif n > 1:\n  a = 'text'\nif isinstance(a, str):\n  return a + '!'\nelse:\n  return str(a + 1)", (1,), (2,)),
        program("any_value", "a: Any", "if isinstance(a, int):\n  return a + 1\nelif isinstance(a, List[int]):\n  return len(a)\nelse:\n  return -1", (1,), ([1, 2],), ("x",), (2.5,)),
    ]


def _containers() -> list:
    return [
        program("dict_of_lists", "l: List[str]", "d: Dict[str, List[int]] = {}\nfor i, k in enumerate(l):\n  if k not in d:\n    d[k] = []\n  d[k].append(i)\nreturn d",
                (["a", "b", "a"],), ([],)),
        program("dict_of_dicts", "n: int", "d: Dict[int, Dict[str, int]] = {}\nfor i in range(n):\n  d.setdefault(i % 2, {})\n  d[i % 2][str(i)] = i\nreturn d", (0,), (5,)),
        program("counts", "s: str", "d: Dict[str, int] = {}\nfor c in s:\n  d[c] = d.get(c, 0) + 1\nreturn d, sorted(d.keys())", ("hello",), ("",)),
        program("int_counts", "l: List[int]", "d: Dict[int, int] = {}\nfor c in l:\n  if c in d:\n    d[c] += 1\n  else:\n    d[c] = 1\ndel d[l[0]]\nreturn d, len(d)", ([3, 1, 3, 2],)),
        program("lists_share", "n: int", "row = [0] * n\nm = [row, row]\nm[0][0] = 5\nc = [r.copy() for r in m]\nc[1][0] = 7\nreturn m, c", (2,)),
        program("nested_augmented", "n: int", "m = [[1, 2], [3]]\nm[0][1] += n\nm[1] += [n]\nd = {'k': [n]}\nd['k'][0] -= 1\nreturn m, d", (4,)),
        program("tensors_in_list", "x: Tensor", "l = [x, x + 1]\nfor t in l:\n  t.add_(1)\nl[0] += 10\nreturn l, x", (T([1.0, 2.0]),)),
        program("tensor_list_loop", "x: Tensor, n: int", "l: List[Tensor] = []\nfor i in range(n):\n  l.append(x * i)\n  l[-1][0] = i\nreturn torch.stack(l) if len(l) > 0 else x", (T([1.0, 2.0]), 3), (T([1.0]), 0)),
        program("tensor_slices", "x: Tensor", "y = x.clone()\ny[1:3] = 7.0\ny[0] = y[3]\ny[::2] += 1\ny[-1] *= 3\nreturn y, x", (T([1.0, 2.0, 3.0, 4.0]),)),
        program("tensor_mask", "x: Tensor", "y = x.clone()\ny[y > 2] = 0.0\nz = x[x < 3]\nreturn y, z", (T([1.0, 2.0, 3.0, 4.0]),)),
        program("tensor_in_dict", "x: Tensor", "d = {'a': x}\nd['a'] += 1\nd['b'] = d['a'] * 2\nd['a'][0] = 9.0\nreturn d, x", (T([1.0, 2.0]),)),
        program("zip_three", "a: List[int], b: List[str]", "return [str(x) + y + str(z) for x, y, z in zip(a, b, range(5))]", ([1, 2, 3], ["a", "b"]), ([], [])),
        program("enumerate_start", "a: List[int]", "r = [0]\nfor i, x in enumerate(a, 3):\n  r.append(i * x)\nreturn r", ([1, 2],), ([],)),
        program("enumerate_zip", "a: List[int]", "r = [0]\nfor i, (x, y) in enumerate(zip(a, a[1:])):\n  r.append(i * x + y)\nreturn r", ([1, 2, 3],), ([],)),
        program("comprehension_if", "l: List[int]", "r = [0]\nr.clear()\nfor x in l:\n  if x % 2 == 1:\n    r.append(x * x)\nreturn r", ([1, 2, 3],)),
        program("nested_comprehension", "n: int", "return [[i * j for j in range(n)] for i in range(n)]", (0,), (3,)),
        program("dict_comprehension", "l: List[int]", "d = {x: str(x) for x in l}\nreturn d, {k: v + '!' for k, v in d.items()}", ([2, 1, 2],), ([],)),
        program("reversed_lists", "l: List[int]", "m = l[::-1]\nl.reverse()\nreturn m == l, m[::-2], l", ([1, 2, 3],), ([],)),
        program("slice_del", "l: List[int]", "del l[0]\nm = l[:-1]\nm.append(l.pop(0))\nreturn l, m", ([1, 2, 3],), ([1],), ([],)),
        program("max_of_list", "l: List[float]", "return max(l), min(l), sum(l)", ([1.5, -2.0],), ([],), ([float("nan"), 1.0],), ([1.0, float("nan")],)),
        program("tolist", "x: Tensor", "l: List[float] = x.tolist()\nl.sort()\nreturn l", (T([3.0, 1.0]),), (T([]),)),
        program("item_compare", "x: Tensor", "a = x.item()\nreturn float(x) > 1.5, int(x), bool(x), str(int(x))", (T(2.7),), (T(0.0),)),
        program("shapes", "x: Tensor", "s = x.shape\nl = list(s)\nl.append(1)\nreturn s[0], len(s), l, x.size(), x.numel()", (torch.ones(2, 3),)),
        program("list_of_tuples", "n: int", "l: List[Tuple[int, str]] = []\nfor i in range(n):\n  l.append((n - i, str(i)))\nl.sort()\na, b = l[0]\nreturn l, a, b", (3,), (0,)),
        program("float_lists", "n: int", "cand: List[float] = []\nfor i in range(n):\n  cand.append(float(i * 7 % 5) - 2.5)\ncand.sort(reverse=True)\nbest = cand[0] if len(cand) > 0 else -1.0\nreturn cand, best", (0,), (1,), (8,), (20,)),
        program("bool_lists", "n: int", "f: List[bool] = []\nfor i in range(n):\n  f.append(i % 3 == 0)\nf.sort()\nreturn f, any(f), all(f), f.count(True)", (0,), (5,)),
        program("str_lists", "l: List[str]", "m: List[str] = []\nfor s in l:\n  m.insert(0, s.upper())\nm.sort()\nm.remove('A')\nreturn m, m.index('B'), 'C' in m", (["b", "a", "c"],), (["a"],)),
    ]


def groups() -> dict:
    return {"language_state": _state(), "language_classes": _classes(), "language_control": _control(), "language_optionals": _optionals(),
            "language_containers": _containers()}
