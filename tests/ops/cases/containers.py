"""Lists, dicts, string functions with several arguments, and output of scripts. Python is the reference."""

import math

import torch

from tests.ops.case import case, t

MAX = 9223372036854775807
LISTS = {"int": [3, 1, 2, 1], "float": [3.5, -1.0, 2.0, -1.0], "bool": [True, False, True], "str": ["b", "a", "c", "a"]}
DICTS = {"str": {"a": 1, "b": 2}, "int": {1: 10, 2: 20}, "bool": {True: 1, False: 2}, "float": {0.5: 1, 2.0: 2},
         "complex": {1 + 2j: 1, -1j: 2}}


def _then(action, result=None):
    """A reference that changes its first argument and returns it, or `result` of it."""

    def run(first, *rest):
        action(first, *rest)
        return result(first) if result else None

    return run


def _raises(statement):
    def run(*_):
        raise RuntimeError(statement)

    return {"reference": run, "error": statement}


def _pop_item(items):
    key = list(items)[0]
    return (key, items.pop(key))


def _list_rows():
    same = lambda items: items
    rows = [
        case("aten::len.t", [1, 2, 3], reference=len),
        case("aten::__getitem__.t", [1, 2, 3], -1, reference=lambda l, i: l[i]),
        case("aten::__getitem__.t", [1, 2, 3], 3, reference=lambda l, i: l[i], error="list index out of range"),
        case("aten::select.t", [1, 2, 3], 1, reference=lambda l, i: l[i]),
        case("aten::_set_item.t", [1, 2, 3], -2, 7, reference=_then(lambda l, i, v: l.__setitem__(i, v), same)),
        case("aten::append.t", [1, 2], 3, reference=_then(list.append, same)),
        case("aten::extend.t", [1, 2], [3, 4], reference=_then(list.extend)),
        case("aten::insert.t", [1, 2], -1, 5, reference=_then(list.insert)),
        case("aten::insert.t", [1, 2], 9, 5, reference=_then(list.insert)),
        case("aten::pop.t", [1, 2, 3], reference=lambda l: l.pop()),
        case("aten::pop.t", [1, 2, 3], 0, reference=lambda l, i: l.pop(i)),
        case("aten::pop.t", [], reference=lambda l: l.pop(), error="pop from empty list"),
        case("aten::Delete.t", [1, 2, 3], 1, reference=_then(list.__delitem__)),
        case("aten::clear.t", [1, 2], reference=_then(list.clear)),
        case("aten::reverse.t", [1, 2, 3], reference=_then(list.reverse)),
        case("aten::copy.t", [1, 2], reference=list),
        case("aten::list.t", [1, 2], reference=list),
        case("aten::add.t", [1, 2], [3], reference=lambda a, b: a + b),
        case("aten::add_.t", [1, 2], [3], reference=_then(list.extend, same)),
        case("aten::mul.left_t", [1, 2], 2, reference=lambda l, n: l * n),
        case("aten::mul.left_t", [1, 2], -2, **_raises("cannot be repeated")),
        case("aten::mul.right_", 2, [1, 2], reference=lambda n, l: l * n),
        case("aten::mul_.t", [1, 2], 2, reference=_then(lambda l, n: l.__imul__(n), same)),
        case("prim::rangelist", 3, reference=lambda n: list(range(n))),
        case("aten::sort.any", [3, 1, 2], reference=_then(lambda l: l.sort())),
        case("aten::sorted.any", [3, 1, 2], reference=sorted),
        case("aten::sort.Tensor", [t(values=2.0)], reference=lambda l: None),
        case("aten::sorted.Tensor", [t(values=2.0), t(values=1.0)], reference=lambda l: l[::-1]),
        case("aten::eq.Tensor_list", [t(values=2.0)], [t(values=2.0)]),
        case("aten::eq.Tensor_list", [t(values=2.0)], [t(values=3.0)]),
        case("aten::ne.Tensor_list", [t(values=2.0)], [t(values=2.0)]),
        case("aten::remove.Tensor", [t(values=2.0)], t(values=2.0), reference=_then(lambda l, x: l.clear())),
        case("aten::index.list_Tensor", [t(values=2.0), t(values=1.0)], t(values=1.0)),
        case("aten::count.Tensor", [t(values=2.0), t(values=1.0)], t(values=1.0)),
        case("aten::__contains__.Tensor_list", [t(values=2.0)], t(values=1.0), reference=lambda l, x: False),
        case("aten::any.str", ["", "a"], reference=any),
        case("aten::any.str", [""], reference=any),
        case("aten::_infer_size", [2, 1], [3], reference=lambda a, b: [2, 3]),
    ]
    for bounds in [(None, None, 1), (1, 3, 1), (-2, MAX, 1), (None, None, -1), (5, -9, -2), (0, MAX, 2), (2, 1, 1)]:
        rows.append(case("aten::slice.t", [1, 2, 3, 4], *bounds, reference=lambda l, a, b, s: l[a:b:s]))
        rows.append(case("aten::slice.str", "abcd", *bounds, reference=lambda l, a, b, s: l[a:b:s]))
    for name, items in LISTS.items():
        first = items[-1]
        other = items[:-1]
        rows += [
            case(f"aten::remove.{name}", list(items), first, reference=_then(list.remove)),
            case(f"aten::index.list_{name}", items, first, reference=lambda l, x: l.index(x)),
            case(f"aten::count.{name}", items, first, reference=lambda l, x: l.count(x)),
            case(f"aten::sort.{name}", list(items), reference=_then(lambda l: l.sort())),
            case(f"aten::sort.{name}", list(items), True, reference=_then(lambda l, r: l.sort(reverse=r))),
            case(f"aten::sorted.{name}", items, reference=sorted),
            case(f"aten::__contains__.{name}_list", items, first, reference=lambda l, x: x in l),
            case(f"aten::eq.{name}_list", items, list(items), reference=lambda a, b: a == b),
            case(f"aten::ne.{name}_list", items, other, reference=lambda a, b: a != b),
        ]
        if name == "str":
            continue
        rows += [
            case(f"aten::any.{name}", items, reference=any),
            case(f"aten::all.{name}", items, reference=all),
            case(f"aten::sum.{name}", items, reference=sum),
            case(f"prim::max.self_{name}", items, reference=max),
            case(f"prim::min.self_{name}", items, reference=min),
        ]
        rows.append(case(f"prim::max.{name}_list", items, other, reference=max))
        rows.append(case(f"prim::min.{name}_list", items, other, reference=min))
    return rows


def _tensor_key_rows():
    """Tensors are keys by identity, which a copied key does not have: no key is found. tests/script has keys that are
    found."""
    key, other = torch.tensor(1.0), torch.tensor(1.0)
    items = {key: 1}
    return [
        case("aten::len.Dict_Tensor", items, reference=len),
        case("aten::__getitem__.Dict_Tensor", items, other, reference=_no_key, error="KeyError"),
        case("aten::_set_item.Tensor", dict(items), other, 7, reference=_then(dict.__setitem__)),
        case("aten::__contains__.Tensor", items, other, reference=lambda d, k: False),
        case("aten::get.Tensor", items, other, reference=lambda d, k: None),
        case("aten::get.default_Tensor", items, other, 5, reference=lambda d, k, v: v),
        case("aten::pop.Dict_Tensor", items, other, reference=_no_key, error="KeyError"),
        case("aten::pop.Dict_default_Tensor", items, other, 5, reference=lambda d, k, v: v),
        case("aten::Delete.Dict_Tensor", items, other, reference=_no_key, error="KeyError"),
        case("aten::setdefault.Tensor", dict(items), other, 5, reference=lambda d, k, v: d.setdefault(k, v)),
        case("aten::popitem.Tensor", dict(items), reference=_pop_item),
        case("aten::clear.Tensor", dict(items), reference=_then(dict.clear)),
        case("aten::keys.Tensor", items, reference=lambda d: list(d.keys())),
        case("aten::values.Tensor", items, reference=lambda d: list(d.values())),
        case("aten::items.Tensor", items, reference=lambda d: list(d.items())),
        case("aten::update.Tensor", dict(items), {other: 8}, reference=_then(dict.update)),
        case("aten::copy.Dict_Tensor", items, reference=dict),
        case("aten::dict.Dict_Tensor", items, reference=dict),
        case("aten::dict.Tensor", [(key, 1), (other, 2)], reference=dict),
    ]


def _no_key(*_):
    raise RuntimeError("KeyError")


def _dict_rows():
    rows = [case("aten::dict", reference=dict)]
    for name, items in DICTS.items():
        key = list(items)[0]
        missing = {"str": "q", "int": 9, "float": 9.5}.get(name)
        rows += [
            case(f"aten::len.Dict_{name}", items, reference=len),
            case(f"aten::__getitem__.Dict_{name}", items, key, reference=lambda d, k: d[k]),
            case(f"aten::_set_item.{name}", dict(items), key, 7, reference=_then(dict.__setitem__)),
            case(f"aten::__contains__.{name}", items, key, reference=lambda d, k: k in d),
            case(f"aten::get.{name}", items, key, reference=lambda d, k: d.get(k)),
            case(f"aten::get.default_{name}", items, key, 5, reference=lambda d, k, v: d.get(k, v)),
            case(f"aten::pop.Dict_{name}", dict(items), key, reference=lambda d, k: d.pop(k)),
            case(f"aten::pop.Dict_default_{name}", dict(items), key, 5, reference=lambda d, k, v: d.pop(k, v)),
            case(f"aten::Delete.Dict_{name}", dict(items), key, reference=_then(dict.__delitem__)),
            case(f"aten::setdefault.{name}", dict(items), key, 5, reference=lambda d, k, v: d.setdefault(k, v)),
            case(f"aten::popitem.{name}", dict(items), reference=_pop_item),
            case(f"aten::clear.{name}", dict(items), reference=_then(dict.clear)),
            case(f"aten::keys.{name}", items, reference=lambda d: list(d.keys())),
            case(f"aten::values.{name}", items, reference=lambda d: list(d.values())),
            case(f"aten::items.{name}", items, reference=lambda d: list(d.items())),
            case(f"aten::update.{name}", dict(items), {key: 8}, reference=_then(dict.update)),
            case(f"aten::copy.Dict_{name}", items, reference=dict),
            case(f"aten::dict.Dict_{name}", items, reference=dict),
            case(f"aten::dict.{name}", list(items.items()), reference=dict),
        ]
        if missing is not None:
            rows += [
                case(f"aten::__getitem__.Dict_{name}", items, missing, reference=lambda d, k: d[k], error=str(missing)),
                case(f"aten::get.{name}", items, missing, reference=lambda d, k: d.get(k)),
                case(f"aten::get.default_{name}", items, missing, 5, reference=lambda d, k, v: d.get(k, v)),
                case(f"aten::pop.Dict_default_{name}", dict(items), missing, 5, reference=lambda d, k, v: d.pop(k, v)),
                case(f"aten::setdefault.{name}", dict(items), missing, 5, reference=lambda d, k, v: d.setdefault(k, v)),
            ]
    return rows


STRINGS = [
    case("aten::format", "{} and {}!", 1.0, True, reference=lambda *a: "1. and True!"),
    case("aten::format", "{}", [1.5, 2.0], reference=lambda *a: "[1.5, 2.]"),
    case("aten::format", "{} {}", "x", **_raises("Too few arguments for format string: {} {}")),
    case("aten::percentFormat", "%s-%d%%", "a", 3, reference=lambda f, *a: f % a),
    case("aten::percentFormat", "%.1f", 3.0, **_raises("The specifier %. is not supported")),
    case("aten::str", [1.0, 1e22, 0.1], reference=lambda x: "[1., 1e+22, 0.10000000000000001]"),
    case("aten::str", {"a": 1}, reference=lambda x: "{a: 1}"),
    case("aten::str", (1, None, True), reference=lambda x: "(1, None, True)"),
    case("aten::mul.str_int", "ab", 3, reference=lambda s, n: s * n),
    case("prim::StringIndex", "abc", -1, reference=lambda s, i: s[i]),
    case("aten::chr", 65, reference=chr),
    case("aten::list", "abc", reference=list),
    case("aten::center", "abc", 8, "*", reference=lambda s, w, f: "**abc***"),
    case("aten::ljust", "abc", 6, "*", reference=str.ljust),
    case("aten::rjust", "abc", 6, "*", reference=str.rjust),
    case("aten::zfill", "-7", 5, reference=lambda s, n: "000-7"),
    case("aten::replace", "aXbXc", "X", "--", -1, reference=str.replace),
    case("aten::replace", "aXbXc", "X", "", 1, reference=str.replace),
    case("aten::replace", "abc", "", "-", -1, reference=str.replace),
    case("aten::expandtabs", "a\tbc\td", 4, reference=str.expandtabs),
    case("aten::join", ", ", ["a", "b", "c"], reference=str.join),
    case("aten::split.str", " a  b c ", reference=str.split),
    case("aten::split.str", "a,b,,c", ",", 2, reference=str.split),
    case("aten::split.str", " a  b c ", None, 1, reference=lambda s, p, n: ["a", "b", "c"]),
    case("aten::rsplit", "a,b,,c", ",", 2, reference=str.rsplit),
    case("aten::splitlines", "a\nb\n\nc", reference=str.splitlines),
    case("aten::splitlines", "a\nb\n", True, reference=lambda s, keep: ["a", "\n", "b", "\n"]),
    case("aten::partition", "a=b=c", "=", reference=str.partition),
    case("aten::partition", "abc", "=", reference=str.partition),
    case("aten::rpartition", "a=b=c", "=", reference=str.rpartition),
    case("aten::index.str", "abcb", "b", reference=str.index),
    case("aten::index.str", "abcb", "q", reference=str.index, error="substring not found"),
    case("aten::rindex", "abcb", "b", reference=str.rindex),
    case("aten::count", "abcb", "b", reference=str.count),
    case("aten::count", "abc", "", reference=str.count),
    case("aten::startswith", "abc", "bc", 1, reference=str.startswith),
    case("aten::endswith", "abc", "bc", reference=str.endswith),
    case("aten::__contains__.str_str", "abc", "bc", reference=lambda s, p: p in s),
    case("aten::find", "abcb", "b", reference=str.find),
    case("aten::find", "abcb", "b", 2, reference=str.find),
    case("aten::find", "abcb", "q", reference=str.find),
    case("aten::rfind", "abcb", "b", reference=str.rfind),
    case("aten::Int.str", "12", reference=int),
    case("aten::Int.str", "12x", reference=int, error="invalid literal for int() with base 10: '12x'"),
    case("aten::Float.str", "1.5e3", reference=float),
]

WORLD = [
    case("prim::RaiseException", "boom", None, reference=lambda m, c: (_ for _ in ()).throw(RuntimeError(m)), error="boom"),
    case("prim::MissingOperator", "operator a::b is not supported", error="operator a::b is not supported",
         reference=lambda m: (_ for _ in ()).throw(RuntimeError(m))),
    case("prim::InvalidInput", "input 'x' has to be 3, but is ", 4, error="input 'x' has to be 3, but is 4",
         reference=lambda m, n: (_ for _ in ()).throw(RuntimeError(m + str(n)))),
    case("aten::warn", "careful", reference=lambda m: None),
    case("prim::Print", 1, "a", reference=lambda *a: None),
    case("aten::is_grad_enabled", reference=lambda: True),
    case("aten::set_grad_enabled", False, reference=lambda b: None),
    case("aten::is_autocast_enabled", reference=lambda: False),
    case("aten::is_scripting", reference=lambda: True),
    case("aten::_unwrap_optional", 3, reference=lambda x: x),
    case("aten::_unwrap_optional", None, **_raises("Unwrapping null optional")),
    case("prim::unchecked_unwrap_optional", 3, reference=lambda x: x),
    case("aten::requires_grad_", t(2), reference=lambda x: x),
    case("prim::TimePoint", check="shape", reference=lambda: 0),
    case("prim::Enter", "context", reference=lambda context: None),
    case("prim::Exit", "context", reference=lambda context: None),
    case("aten::manual_seed", 7, reference=lambda s: None),
    case("aten::seed", check="shape", reference=lambda: 0),
    case("aten::__is__", None, None, reference=lambda a, b: a is b),
    case("aten::__is__", 1, None, reference=lambda a, b: a is b),
    case("aten::__isnot__", 1, None, reference=lambda a, b: a is not b),
    case("aten::log2.int", 8, reference=math.log2),
    case("aten::log2.float", 8.5, reference=math.log2),
    case("aten::log2.Scalar", 8.5, reference=math.log2),
    case("aten::frexp", 10.5, reference=math.frexp),
    case("aten::modf", -2.75, reference=math.modf),
    case("aten::ldexp", 1.5, 4, reference=math.ldexp),
    case("aten::factorial.int", 6, reference=math.factorial),
    case("aten::gcd.int", 12, -18, reference=math.gcd),
    case("aten::remainder.int", -7, 3, reference=lambda a, b: a % b),
    case("aten::floordiv.int", 7, 0, **_raises("division by 0")),
]

CASES = _list_rows() + _dict_rows() + _tensor_key_rows() + STRINGS + WORLD
