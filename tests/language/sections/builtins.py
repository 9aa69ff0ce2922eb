"""Python's functions, math, methods of strings, lists and dicts, comprehensions, f-strings and formats."""

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case
T = torch.tensor


@case((-3, 2.5), (0, -0.0), (9, math.inf), (2, math.nan))
def number_functions(a: int, b: float):
    return abs(a), abs(b), min(a, 3), max(a, 3), min(b, 1.0), max(b, 1.0), pow(a, 2), pow(b, 2), pow(2, b), pow(2.0, a), round(1.5 + a), bool(a), float(a), str(a), str(b), divmod(a, 4), divmod(a, 2.5)


@case((2.5,), (-2.5,), (3.7,), (-0.4,), (1e15,))
def rounding(b: float):
    return int(b), math.floor(b), math.ceil(b), round(b), b // 1, b % 1


@case((5,), (-5,), (255,))
def bases(a: int):
    return hex(a), oct(a), bin(a)


@case((97,), (0x20AC,))
def characters(a: int):
    return chr(a)


@case(("a",), ("é",))
def ordinal(a: str):
    return ord(a)


@case(("12", "1.5"), ("-7", "inf"), (" 3 ", "nan"), ("x", "1"), ("1", ""), ("1e2", "1e2"))
def numbers_from_text(a: str, b: str):
    return int(a), float(b)


@case(("0x1f",), ("11",), ("1_0",))
def int_from_text(a: str):
    return int(a)


@case(([3, 1, 2],), ([],), ([5],))
def list_functions(l: List[int]):
    return len(l), sum(l), sorted(l), any(l), all(l), min(l), max(l)


@case(([0.5, -1.5],), ([math.nan, 1.0],))
def float_list_functions(l: List[float]):
    return len(l), sum(l), sorted(l), min(l), max(l)


@case(([True, False],), ([],), ([True],))
def bool_list_functions(l: List[bool]):
    return any(l), all(l), sum(l), sorted(l)


@case(([1, 2], [3, 4]), ([2], [1, 5]))
def list_min_max(a: List[int], b: List[int]):
    return min(a, b), max(a, b)


@case((1, 2, 3))
def min_max_of_many(a: int, b: int, c: int):
    return min(a, b, c), max(a, b, c), min([a, b, c]), max((a, b))


@case(([3, 1, 2, 3],), ([],))
def list_methods(l: List[int]):
    m = l.copy()
    m.append(4)
    m.extend([5, 6])
    m.insert(1, 9)
    m.insert(-1, 8)
    m.insert(100, 7)
    n = m.count(3)
    m.sort()
    m.reverse()
    a = m.pop()
    b = m.pop(0)
    c = m.index(5)
    m.remove(5)
    m += [1]
    k = m + [2] * 2
    m.clear()
    return l, m, n, a, b, c, k, [1, 2] * 0, 3 * [0]


@case((["b", "a", "C"],), ([],))
def string_list_methods(l: List[str]):
    l.sort()
    m = sorted(l)
    l.sort(reverse=True)
    return l, m, l.count("a"), "a" in l, l + ["z"], len(l)


@case(([3, 1],), ([],))
def list_errors(l: List[int]):
    return l.pop(5)


@case(([3, 1],),)
def list_index_missing(l: List[int]):
    return l.index(9)


@case(([3, 1],),)
def list_remove_missing(l: List[int]):
    l.remove(9)


@case(([[3, 1], [2]],))
def nested_lists(l: List[List[int]]):
    l[0].append(7)
    l.append([1])
    m = l.copy()
    m[0][0] = 100
    return l, m, l[0] is m[0], len(l[1]), [y[0] for y in l], sorted(l[0])


@case(([T([2.0]), T([1.0])],))
def tensor_lists(l: List[Tensor]):
    l.append(l[0] + 1)
    l[0] += 5
    l.reverse()
    return l, torch.stack(l), torch.cat(l), len(l)


@case(({"b": 1, "a": 2},), ({},))
def dict_methods(d: Dict[str, int]):
    e = d.copy()
    e["z"] = 9
    e.update({"b": 5, "y": 6})
    a = e.get("b")
    b = e.get("none")
    c = e.get("none", -1)
    f = e.setdefault("s", 4)
    g = e.pop("z")
    h = e.pop("zz", 0)
    keys, values, items = list(e.keys()), list(e.values()), list(e.items())
    i = "a" in e
    n = len(e)
    e.clear()
    return d, e, a, b, c, f, g, h, keys, values, items, i, n


@case(({"b": 1, "a": 2},), ({"only": 1},))
def dict_popitem(d: Dict[str, int]):
    k, v = d.popitem()
    return k, v, d


@case(({"b": 1},),)
def dict_pop_missing(d: Dict[str, int]):
    return d.pop("x")


@case(({3: "x", 1: "y"},))
def dict_order(d: Dict[int, str]):
    d[2] = "z"
    d[3] = "w"
    del d[1]
    d[1] = "again"
    return [k for k in d], [v for v in d.values()], [(k, v) for k, v in d.items()], sorted(d.keys())


@case((["a", "b", "a"],), ([],))
def dict_of_containers(l: List[str]):
    d: Dict[str, List[int]] = {}
    for i, k in enumerate(l):
        if k not in d:
            d[k] = [0]
        d[k].append(i)
    e = {k: len(v) for k, v in d.items()}
    t = {k: (len(k), k) for k in l}
    n = {"outer": {"inner": 1}}
    n["outer"]["inner"] = 5
    return d, e, t, n


@case(([1, 2, 3, 4],), ([],))
def comprehensions(l: List[int]):
    a = [x * 2 for x in l]
    c = [(x, str(x)) for x in l]
    d = {x: x * x for x in l}
    e = [[y for y in range(x)] for x in l]
    f = [x if x > 2 else -x for x in l]
    return a, c, d, e, f


@case(([1, 2, 3], "abc", {"k": 1}, T([1.0, 2.0])))
def comprehensions_over_kinds(l: List[int], s: str, d: Dict[str, int], x: Tensor):
    return [c + "!" for c in s], [k for k in d], [v + 1 for v in d.values()], [r + 1 for r in x], [a + b for a, b in zip(l, [1, 1, 1])], [i * a for i, a in enumerate(l)], [i for i in range(0, 6, 2)]


@case(([1, 2],))
def comprehension_scopes(l: List[int]):
    x = 100
    y = [x for x in l]
    z = [x + i for i in l]
    return x, y, z


@case(([[1, 2], [3]],))
def nested_comprehensions(l: List[List[int]]):
    return [[y + 1 for y in x] for x in l], [sum([y for y in x]) for x in l], [len(x) for x in l]


@case(([1, 2, 3],))
def generator_in_sum(l: List[int]):
    return sum([x * x for x in l]), any([x > 2 for x in l]), all([x > 0 for x in l]), max([x for x in l])


@case((3, 2.5, "s", True), (-1, 1e20, "", False))
def f_strings(a: int, b: float, s: str, f: bool):
    return f"{a}", f"{b} and {s}", f"{a + 1}{f}", f"{{braces}} {a}", f"{[a, a]} {(a, s)} {None}", f"a" f"{s}b", f"{s}" + f"{len(s)}"


@case((3, 2.5, "s"), (-1, 1e-20, ""))
def format_method(a: int, b: float, s: str):
    return "{} {} {}".format(a, b, s), "{}".format([a]), "{}{}".format(s, s), "none".format(), "{} {}".format({"k": a}, (a, b))


@case((3, 2.5, "s"), (-12, -0.125, "long text"))
def percent_format(a: int, b: float, s: str):
    return "%d" % a, "%s and %s" % (s, a), "%f" % b, "%d%%" % a, "%s" % s, "%d %f %s" % (a, b, s), "%x" % a if False else ""


@case((3, 2.5),)
def str_of_values(a: int, b: float):
    return (str(a), str(b), str(True), str(None), str([a, 2]), str([b]), str(["x", "y"]), str((a, b, "z")), str({"k": a}), str({a: [b]}), str([True]),
            str((a,)), str([(a, "q")]), str(1e16), str(1e-5), str(123456789.0), str(0.1 + 0.2), str(float("inf")), str(float("nan")), str(-0.0), str([None]) if False else "", str(1 + 2j))


@case((T([1.0, 2.5]),), (T([[1, 2], [3, 4]]),), (T(True),))
def str_of_tensors(x: Tensor):
    return len(str(x)) > 0


@case((torch.float32,),)
def str_of_types(d: torch.dtype):
    return str(torch.device("cpu"))


@case(("Hello World",), ("",), ("  padded\t\n",), ("aAbB 123",), ("ÀÉ ß",))
def string_case_methods(s: str):
    return s.upper(), s.lower(), s.capitalize(), s.title(), s.swapcase(), s.strip(), s.lstrip(), s.rstrip(), s.isupper(), s.islower(), s.istitle(), s.isspace(), s.isdigit(), s.isalpha(), s.isalnum(), s.isnumeric(), s.isdecimal(), s.isidentifier(), s.isprintable()


@case(("a,b,,c", ","), ("abc", ","), ("", "x"), ("a--b--c", "--"))
def string_split_methods(s: str, sep: str):
    return s.split(sep), s.split(sep, 1), s.rsplit(sep, 1), s.partition(sep), s.rpartition(sep), sep.join(["x", "y", "z"]), sep.join([]), s.replace(sep, ";"), s.replace(sep, "", 1)


@case(("a b  c\td\n",), ("",), (" x ",))
def string_split_on_space(s: str):
    return s.split(), s.splitlines(), s.splitlines(True), s.rsplit()


@case(("hello", "l"), ("hello", "lo"), ("hello", "z"), ("", "a"))
def string_search_methods(s: str, t: str):
    return s.find(t), s.rfind(t), s.find(t, 3), s.find(t, 0, 3), s.count(t), s.startswith(t), s.endswith(t), s.startswith(t, 2), t in s, s.startswith("he"), s.endswith("lo")


@case(("hello", "z"), ("hello", "l"))
def string_index_method(s: str, t: str):
    return s.index(t), s.rindex(t)


@case(("ab", 5), ("abcdef", 3), ("", 2))
def string_padding_methods(s: str, n: int):
    return s.center(n), s.ljust(n), s.rjust(n), s.zfill(n), s.center(n, "*"), s.ljust(n, "-"), s.rjust(n, "+"), s.expandtabs(), s * 2 if False else s + s


@case(("ab", "cd"))
def string_sums(s: str, t: str):
    r = ""
    for c in s + t:
        r = c + r
    r += "!"
    return r, s + t, len(s + t), [c for c in s], list(t), sorted([c for c in t + s])


@case((0.5, 2), (2.0, 3), (-1.5, 4))
def math_functions(x: float, n: int):
    y = abs(x)
    return (math.sqrt(y), math.exp(x), math.log(y), math.log10(y), math.log1p(y), math.expm1(x), math.sin(x), math.cos(x), math.tan(x), math.atan(x),
            math.atan2(x, y), math.sinh(x), math.cosh(x), math.tanh(x), math.asinh(x), math.floor(x), math.ceil(x), math.fabs(x), math.copysign(y, x),
            math.fmod(x, n), math.pow(y, n), math.ldexp(x, n), math.isnan(x), math.isinf(x), math.isfinite(x), math.degrees(x), math.radians(x), math.erf(x),
            math.erfc(x), math.gamma(y), math.lgamma(y), math.factorial(n), math.gcd(n, 6), math.frexp(x), math.modf(x), math.hypot(x, y) if False else 0.0, math.remainder(x, 2.0) if False else 0.0)


@case((0.5,), (-0.5,), (1.0,))
def more_math(x: float):
    return math.asin(x), math.acos(x), math.log(2.0, 10.0), math.mathremainder(x, 2.0) if False else 0.0


@case((2.0,), (-1.0,), (0.0,))
def math_domain(x: float):
    return math.sqrt(x)


@case((0.0,), (-1.0,))
def math_log_domain(x: float):
    return math.log(x)


@case((0,))
def division_by_zero(a: int):
    return 1 / a


@case((0.0,))
def float_division_by_zero(a: float):
    return 1.0 / a


@case((0.0,))
def floor_division_by_zero(a: float):
    return 1.0 // a


@case((0.0,))
def modulo_by_zero(a: float):
    return 1.0 % a


@case((9223372036854775807,))
def int_overflow(a: int):
    return a + 1, a * 2, -a - 2, abs(-a - 1)


@case((2, 3 + 4j), (-1, 0.5j))
def complex_functions(n: int, z: complex):
    return complex(n, 2.5), complex(n), abs(z), z * n, z + 1.5, z == z, -z, z ** 2.0, z ** z, 2.0 ** z


@case((T([3.0, 1.0, 2.0]),))
def tensor_functions(x: Tensor):
    return len(x), sum(x) if False else x.sum(), max(x[0], x[1]) if False else x.max(), abs(x), torch.max(x).item(), x.tolist() if False else 0


@case((T([3.0, 1.0]), T([[1, 2], [3, 4]]), T([True, False])))
def to_lists(x: Tensor, y: Tensor, z: Tensor):
    a: List[float] = x.tolist()
    b: List[List[int]] = y.tolist()
    c: List[bool] = z.tolist()
    d: int = y[0, 0].tolist() if False else 0
    return a, b, c


@case((T([3.0, 1.0]),))
def to_list_of_wrong_type(x: Tensor):
    a: List[int] = x.tolist()
    return a


@case((3,))
def tensors_from_values(n: int):
    return (torch.tensor(n), torch.tensor([n, 2]), torch.tensor([1.5, n * 1.0]), torch.tensor([[1, 2], [3, n]]), torch.tensor(True), torch.tensor([True]), torch.tensor(1.5, dtype=torch.float64),
            torch.as_tensor([n]), torch.tensor([n], dtype=torch.float32), torch.zeros(n), torch.full((2,), n), torch.arange(n), torch.eye(2), torch.linspace(0, 1, n), torch.tensor(1 + 2j))


@case((2, 3))
def sizes_as_lists(a: int, b: int):
    x = torch.zeros(a, b)
    s = x.shape
    t = list(x.size())
    t.append(5)
    return s, t, s[0], s[-1], s[1:], len(s), s + [1], s == [2, 3], [d * 2 for d in s], x.numel(), x.view(s[1], s[0]).shape, torch.zeros(s).shape, torch.zeros(t).shape


@case((5,), (0,))
def ranges(n: int):
    r = range(n)
    return len(r) if False else n, [i for i in range(n)], list(range(n)), list(range(1, n, 2)), [i for i in range(n, -1, -1)], sum(list(range(n)))


@case((2, 5, 0))
def range_of_step_zero(a: int, b: int, c: int):
    r = [0]
    for i in range(a, b, c):
        r.append(i)
    return r


@case(([1, 2, 3], ["a", "b", "c"]))
def zips(a: List[int], b: List[str]):
    return [(x, y) for x, y in zip(a, b)], list(zip(a, b)) if False else 0, {y: x for x, y in zip(a, b)}, list(enumerate(b)) if False else 0


@case(([1, 2],))
def is_and_id(l: List[int]):
    m = l
    n = [1, 2]
    return l is m, l is n, l is not n, id(l) == id(m) if False else True


@case((1,))
def type_functions(a: int):
    l = [a]
    return isinstance(l, list), isinstance(a, int), str(a).isdigit()


@case((1,))
def tuple_functions(a: int):
    t = (a, a + 1)
    return len(t), t + (3,), t == (1, 2), list(t), [x for x in t], sorted([3, a]), tuple([1, 2]) if False else 0, (1, 2) * 2 if False else 0, t[0] in t


@case((1,))
def tuple_sum(a: int):
    return (a, "x") + (2.5,), () == (), len(())


@case(([3, 1, 2],))
def sort_with_reverse(l: List[int]):
    l.sort(reverse=True)
    m = sorted(l)
    return l, m, sorted([2.5, 1.5]), sorted(["b", "a"]), sorted([True, False])


@case((2,))
def slice_assignments(n: int):
    l = [1, 2, 3, 4]
    l[0] = 9
    l[-1] = n
    return l


@case((2,))
def list_set_out_of_range(n: int):
    l = [1]
    l[n] = 5
    return l


@case((1,))
def list_aliases(n: int):
    l = [n]
    t = (l, l)
    d = {"l": l}
    m = [l, l]
    l.append(2)
    m[0].append(3)
    d["l"].append(4)
    t[1].append(5)
    l += [6]
    k = l
    k = k + [7]
    return l, t, d, m, k


@case(("a",))
def try_(s: str):
    return s.encode() if False else s
