"""Arithmetic, comparisons, conversions and functions of int, float and bool, with corner cases."""

import itertools
import math

from tests.script.program import program

MAX, MIN = 2**63 - 1, -(2**63)
VALUES = {
    "int": [0, 1, -1, 2, 3, -7, 10, 63, 1000003, MAX, MIN, MAX - 1],
    "float": [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.5, -2.5, 7.25, 1e10, 1e300, -1e-300, math.inf, -math.inf, math.nan, 9.3e18],
    "bool": [True, False],
}
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "pow": "**"}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
BITS = {"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}


def _calls(name: str, left: str, right: str) -> list:
    """Without calls that crash PyTorch or are undefined in it."""
    out = []
    for a, b in itertools.product(VALUES[left], VALUES[right]):
        if name in ("floordiv", "mod", "divmod") and left == right == "int" and (b == 0 or (a == MIN and b == -1)):
            continue
        if name in ("lshift", "rshift") and not 0 <= b < 64:
            continue
        if name == "lshift" and a < 0:
            continue
        out.append((a, b))
    return out


def _binary() -> list:
    out = []
    for left, right in itertools.product(VALUES, VALUES):
        for table in (ARITHMETIC, COMPARISONS, BITS):
            for name, op in table.items():
                out.append(program(f"{name}_{left}_{right}", f"a: {left}, b: {right}", f"return a {op} b", *_calls(name, left, right)))
        for name in ("min", "max", "divmod", "pow"):
            out.append(program(f"{name}_of_{left}_{right}", f"a: {left}, b: {right}", f"return {name}(a, b)", *_calls(name, left, right)))
        for name in ("fmod", "atan2", "copysign", "remainder", "pow", "log", "gcd", "ldexp"):
            out.append(program(f"math_{name}_{left}_{right}", f"a: {left}, b: {right}", f"return math.{name}(a, b)",
                               *[c for c in _calls(name, left, right) if name != "gcd" or MIN not in c]))
        for name, op in {"iadd": "+=", "isub": "-=", "imul": "*=", "idiv": "/=", "ifloordiv": "//=", "imod": "%="}.items():
            calls = _calls(name[1:], left, right)
            out.append(program(f"{name}_{left}_{right}", f"a: {left}, b: {right}", f"c = a\nc {op} b\nreturn a, c", *calls))
        out.append(program(f"is_{left}_{right}", f"a: {left}, b: {right}", "return a == b or a != b", *_calls("is", left, right)))
    return out


UNARY = ["-a", "+a", "~a", "not a", "abs(a)", "round(a)", "int(a)", "float(a)", "bool(a)", "str(a)", "a if a else a", "bool(not a)",
         "int(float(a))", "int(bool(a))", "isinstance(a, int)", "isinstance(a, float)", "isinstance(a, (int, bool))", "hex(a)",
         "torch.tensor(a)", "float(str(a))"]
MATH = ["floor", "ceil", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "fabs", "degrees", "radians", "isnan", "isinf",
        "isfinite", "frexp", "modf", "factorial", "trunc"]


def _unary() -> list:
    out = []
    for kind, values in VALUES.items():
        calls = [(v,) for v in values]
        for number, expression in enumerate(UNARY):
            out.append(program(f"unary{number}_{kind}", f"a: {kind}", f"return {expression}", *calls))
        for name in MATH:
            used = [(v,) for v in (range(-2, 25) if name == "factorial" else values)]
            out.append(program(f"math_{name}_{kind}", f"a: {kind}", f"return math.{name}(a)", *used))
    return out


def _ranges() -> list:
    bounds = [0, 1, 5, -3, 10]
    out = [program("range_one", "n: int", "return [i for i in range(n)]", *[(n,) for n in bounds]),
           program("range_two", "a: int, b: int", "return [i for i in range(a, b)]", *itertools.product(bounds, bounds))]
    steps = [(a, b, s) for a in bounds for b in bounds for s in [1, 2, -1, -3, 7, 0]]
    out.append(program("range_three", "a: int, b: int, s: int",
                       "r: List[int] = []\nfor i in range(a, b, s):\n  r.append(i)\nreturn r, len(r)", *steps))
    out.append(program("range_far", "s: int", "r = 0\nfor i in range(9223372036854775800, 9223372036854775807, s):\n  r += 1\nreturn r",
                       (1,), (3,), (100,)))
    return out


def groups() -> dict:
    return {"scalar_binary": _binary(), "scalar_unary": _unary(), "scalar_ranges": _ranges()}
