"""Every str method that TorchScript knows, formatting and slices, over many strings. A character is a byte there."""

from tests.script.program import program

MAX, MIN = 2**63 - 1, -(2**63)
TEXTS = ["", "a", "abc", "Hello World", "  padded\t\n", "a,b,,c", "x\ny\r\nz", "AbC dEf", "123", "-42", "+7", "aaa", "\t",
         "a.b.c", "é", "日本", "ab ab", "Title Case Here", "_id1", "9x", "%d", "{}"]
# Of these the results are texts of whole characters.
ASCII = [string for string in TEXTS if string.isascii()]
PARTS = ["", "a", "b", "ab", ",", " ", "é", "zz", "\n"]
BOUNDS = [0, 1, -1, 2, -3, 5, 100, -100]

# No argument: method and result.
PLAIN = ["upper", "lower", "swapcase", "capitalize", "title", "isdigit", "isdecimal", "isnumeric", "isalpha", "isalnum",
         "isspace", "isprintable", "isidentifier", "istitle", "isupper", "islower", "strip", "lstrip", "rstrip", "split",
         "splitlines", "expandtabs"]
# PyTorch does not end, or reads out of bounds, with an empty string there.
NOT_EMPTY = {"count", "rsplit", "split", "replace"}
WITH_PART = ["strip", "lstrip", "rstrip", "split", "rsplit", "partition", "rpartition", "find", "rfind", "index", "rindex",
             "count", "startswith", "endswith"]
WITH_BOUNDS = ["find", "rfind", "index", "rindex", "count", "startswith", "endswith"]


def _methods() -> list:
    out = [program(name, "s: str", f"return s.{name}()", *[(s,) for s in ASCII]) for name in PLAIN]
    for name in WITH_PART:
        parts = [p for p in PARTS if p or name not in NOT_EMPTY]
        out.append(program(f"{name}_part", "s: str, p: str", f"return s.{name}(p)",
                           *[(s, p) for s in ASCII for p in parts if p.isascii()]))
    for name in WITH_BOUNDS:
        parts = ["a", "ab", ","]
        out.append(program(f"{name}_from", "s: str, p: str, i: int", f"return s.{name}(p, i)",
                           *[(s, p, i) for s in ASCII[:10] for p in parts for i in BOUNDS]))
        out.append(program(f"{name}_between", "s: str, p: str, i: int, j: int", f"return s.{name}(p, i, j)",
                           *[(s, p, i, j) for s in ["abc", "aaa", "ab ab", ""] for p in parts for i in BOUNDS for j in BOUNDS]))
    for name in ["split", "rsplit"]:
        out.append(program(f"{name}_limit", "s: str, p: str, n: int", f"return s.{name}(p, n)",
                           *[(s, p, n) for s in ASCII for p in [",", " ", "a", "ab"] for n in [0, 1, 2, -1, 9]]))
    out.append(program("split_none", "s: str, n: int", "return s.split(None, n)", *[(s, n) for s in ASCII for n in [0, 1, -1]]))
    for name in ["center", "ljust", "rjust"]:
        out.append(program(name, "s: str, n: int", f"return s.{name}(n)", *[(s, n) for s in ASCII for n in [0, 5, 8]]))
        out.append(program(f"{name}_fill", "s: str, n: int, f: str", f"return s.{name}(n, f)",
                           *[(s, n, f) for s in ASCII[:6] for n in [0, 5, 8] for f in ["*", "", "ab"]]))
    return out + [
        program("zfill", "s: str, n: int", "return s.zfill(n)", *[(s, n) for s in ASCII for n in [0, 3, 6, -1]]),
        program("expandtabs_by", "s: str, n: int", "return s.expandtabs(n)",
                *[(s, n) for s in ["a\tb", "\t\t", "abcdefghi\tx", "a\n\tb", ""] for n in [1, 4, 8, 3]]),
        program("splitlines_keep", "s: str", "return s.splitlines(True)", *[(s,) for s in ASCII]),
        program("replace", "s: str, a: str, b: str", "return s.replace(a, b)",
                *[(s, a, b) for s in ASCII for a in PARTS if a and a.isascii() for b in ["", "X", "aa"]]),
        program("replace_some", "s: str, a: str, n: int", "return s.replace(a, 'xy', n)",
                *[(s, a, n) for s in ["aaa", "ab ab", ""] for a in ["a", "ab"] for n in [0, 1, 2, -1]]),
        program("join", "s: str, l: List[str]", "return s.join(l)",
                *[(s, l) for s in ["", ", ", "é"] for l in [[], ["a"], ["a", "", "b"], ["é", "x"]]]),
        program("join_comprehension", "n: int", "return '-'.join([str(i * 2) for i in range(n)])", (0,), (1,), (5,)),
    ]


def _operators() -> list:
    pairs = [(a, b) for a in ASCII[:12] for b in ASCII[:12]]
    out = [program(f"compare_{name}", "a: str, b: str", f"return a {op} b", *pairs, ("é", "z"), ("é", "é"))
           for name, op in [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")]]
    index = [(s, i) for s in ASCII for i in BOUNDS]
    return out + [
        program("add", "a: str, b: str", "c = a\nc += b\nreturn a + b, c, a", *pairs),
        program("contains", "a: str, b: str", "return a in b, a not in b", *pairs),
        program("repeat", "a: str, n: int", "return a * n", *[(a, n) for a in ASCII[:6] for n in [0, 1, 3, -1]]),
        program("length", "a: str", "return len(a)", *[(a,) for a in TEXTS]),
        program("truth", "a: str", "return 'some' if len(a) > 0 else 'none'", *[(a,) for a in TEXTS]),
        program("item", "s: str, i: int", "return s[i]", *index),
        program("slice_from", "s: str, i: int", "return s[i:]", *index),
        program("slice_to", "s: str, i: int", "return s[:i]", *index),
        program("slice_between", "s: str, i: int, j: int", "return s[i:j]",
                *[(s, i, j) for s in ["abc", "", "Hello World"] for i in BOUNDS for j in BOUNDS]),
        program("slice_step", "s: str, i: int", "return s[1:5:i], s[::i]", *[(s, i) for s in ASCII[:5] for i in [1, 2, 3]]),
        program("characters", "s: str", "return [c for c in s], [ord(c) for c in s]", *[(s,) for s in ASCII]),
        program("bytes", "s: str", "r = [0]\nfor i in range(len(s)):\n  r.append(ord(s[i]))\nreturn r", *[(s,) for s in TEXTS]),
        program("list_of", "s: str", "return list(s)", *[(s,) for s in ASCII]),
        program("enumerate_of", "s: str", "r = ['']\nfor i, c in enumerate(s):\n  r.append(c * i)\nreturn r", *[(s,) for s in ASCII]),
        program("character", "i: int", "return chr(i)", *[(i,) for i in [65, 0, 127, 48, -1, 1114112]]),
        program("code", "s: str", "return ord(s)", *[(s,) for s in ["a", "", "ab", "\n", "Z"]]),
        program("number", "s: str", "return int(s)",
                *[(s,) for s in ["1", "-1", "+3", " 5", "5 ", "", "x", "1.5", str(MAX), str(MIN), "99999999999999999999", "0x10"]]),
        program("real", "s: str", "return float(s)",
                *[(s,) for s in ["1", "-1.5", "+3e2", " 5", "5 ", "", "x", "inf", "-inf", "nan", "1e400", "0x10", "1_0"]]),
    ]


FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e10, 1e16, 1e17, 1e20, 1e-5, 1e-300, 1.23456789012345, 3.14159, 123456789.125, 2.0**53,
          2.0**62, 2.0**63, float("inf"), float("-inf"), float("nan"), 100.0, 1e15, 5e-324]
INTS = [0, 1, -1, 255, MAX, MIN]


def _formats() -> list:
    out = []
    for name, kind, values in [("int", "int", INTS), ("float", "float", FLOATS), ("bool", "bool", [True, False]),
                               ("str", "str", ASCII[:6])]:
        calls = [(v,) for v in values]
        out += [
            program(f"text_{name}", f"v: {kind}", "return str(v)", *calls),
            program(f"format_{name}", f"v: {kind}", "return 'a{}b{}'.format(v, v)", *calls),
            program(f"fstring_{name}", f"v: {kind}", "return f'<{v}> {v}'", *calls),
            program(f"percent_s_{name}", f"v: {kind}", "return '%s|%s' % (v, v)", *calls),
            program(f"text_list_{name}", f"v: {kind}", "return str([v, v]), str((v, v)), str([[v]])", *calls),
            program(f"text_dict_{name}", f"v: {kind}", "return str({'k': v})", *calls),
            program(f"text_optional_{name}", f"v: Optional[{kind}]", "return str(v), '{}'.format(v)", *calls, (None,)),
        ]
        out += [program(f"percent_{c}_{name}", f"v: {kind}", f"return '[%{c}]' % v", *calls) for c in "dieEfFgGxXc"]
        out.append(program(f"percent_many_{name}", f"v: {kind}", "return '%d %s %% %f' % (1, v, 2.5)", *calls))
    return out + [
        program("format_few", "a: int", "return '{} {}'.format(a)", (1,)),
        program("format_many", "a: int", "return '{}'.format(a, a)", (1,)),
        program("format_braces", "a: int", "return '{{}} {} {'.format(a, a)", (1,)),
        program("format_pattern", "s: str, a: int", "return s.format(a)", *[(s, 3) for s in ["{}", "", "x", "{}{}", "{", "}{}", "{0}"]]),
        program("percent_few", "a: int", "return '%d %d' % (a,)", (1,)),
        program("percent_many", "a: int", "return '%d' % (a, a)", (1,)),
        program("percent_end", "a: int", "return 'x%' % a", (1,)),
        program("percent_width", "a: int", "return '%5d' % a", (1,)),
        program("percent_pattern", "s: str, a: int", "return s % a", *[(s, 3) for s in ["%d", "%s", "%%", "%q", "", "x", "%d%%"]]),
        program("string_tensor", "a: Tensor", "return len(str(a)) > 0", *[(_t([1.5, 2.0]),)]),
        program("text_pair", "a: int", "return str(Pair(a, 'x'))", (1,)),
        program("text_none", "a: int", "return str(None)", (1,)),
        program("text_tuple", "a: int", "return str((a,)), str(((a, 'q'), [1.0, 2.5]))", (1,)),
        program("numbers_hex", "a: int", "return hex(a), oct(a), bin(a)", *[(a,) for a in INTS]),
        program("nested_fstring", "a: int, b: float", "return f'{a + 1}-{b * 2}-{a == 1}'", (1, 0.5), (2, -1.0)),
    ]


def _t(values):
    import torch
    return torch.tensor(values)


def groups() -> dict:
    return {"str_methods": _methods(), "str_operators": _operators(), "str_formats": _formats()}
