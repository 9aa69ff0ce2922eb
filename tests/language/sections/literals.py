"""Literals, names and displays."""

import math
from typing import Dict, Final, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case

ANSWER: Final[int] = 42
RATIO: Final[float] = 0.1
TITLE: Final[str] = "größe"


@case(())
def ints() -> List[int]:
    return [0, 1, -1, 9223372036854775807, -9223372036854775807, 0x1F, 0o17, 0b101, 1_000_000]


@case(())
def floats() -> List[float]:
    return [0.0, -0.0, 1.0, 1e-300, 5e-324, 1.7976931348623157e308, 0.1, 1 / 3, 1e17, 123456789.123456789, .5, 5., 1e5, 1e-5]


@case(())
def special_floats() -> List[float]:
    return [float("inf"), -float("inf"), float("nan"), math.inf, -math.inf, math.nan, math.pi, math.e, math.tau]


@case(())
def complexes() -> Tuple[complex, complex, complex, complex]:
    return 1j, 2.5j, 1 + 2j, -3.5e2j


@case(())
def complex_values() -> List[complex]:
    return [complex(1, 2), complex(1.5), complex(-0.0, -0.0), 3 - 4j, complex(float("inf"), 0.5)]


@case(())
def strings() -> List[str]:
    return ["", "plain", 'single "quotes"', "double 'quotes'", "tab\tnew\nline\\", "\x00\x01\x7f", "\x1b[0m", "é", "日本", "\u00ff", "\U0001f600"]


@case(())
def raw_and_joined_strings() -> List[str]:
    return [r"a\n", "a" "b" "c", """three
lines
""", ("in "
      "brackets")]


@case(())
def bools_and_none() -> Tuple[bool, bool, Optional[int]]:
    return True, False, None


@case((1, "x"), (-5, ""))
def displays(a: int, b: str):
    return [a, a + 1], (a, b), {b: a, b + "2": a}, [[a], [a, a]], (a,), [(a, b)], {a: [b]}


@case(())
def empty_displays() -> Tuple[List[Tensor], Dict[str, Tensor], Tuple[int, List[int]]]:
    a = []
    b: Dict[str, Tensor] = {}
    c: List[int] = []
    return a, b, (1, c)


@case(())
def empty_list_is_of_tensors():
    a = []
    a.append(torch.ones(2))
    return a


@case(())
def empty_dict_is_of_tensors():
    a = {}
    a["k"] = torch.ones(2)
    return a


@case(())
def constructors() -> Tuple[List[int], Dict[str, int], List[str], List[int]]:
    return list(range(3)), dict([("a", 1), ("b", 2)]), list("abc"), list([1, 2])


@case(())
def dict_of_keywords():
    return dict(a=1, b=2), dict({"c": 3}), dict({"c": 3}, d=4)


@case((torch.arange(3.0),))
def torch_constants(x: Tensor):
    return x.to(torch.float64), x.to(torch.int32), torch.zeros(2, dtype=torch.bool), torch.tensor(torch.pi), torch.inf, -torch.inf, torch.nan, torch.e


@case((torch.arange(3.0),))
def dtypes_as_values(x: Tensor):
    d = torch.float64
    e = x.dtype
    return d == torch.float64, e == torch.float32, d == e, e != torch.int64, x.to(d), torch.zeros(1, dtype=e)


@case((torch.arange(6.0).reshape(2, 3),))
def layouts_and_formats(x: Tensor):
    y = torch.zeros([1, 2, 2, 2]).contiguous(memory_format=torch.channels_last)
    return torch.empty_like(x, memory_format=torch.preserve_format).shape, y.stride(), x.layout == torch.strided


@case((torch.arange(3.0),))
def devices(x: Tensor):
    d = torch.device("cpu")
    e = x.device
    return str(d), d == e, e.type, e.index is None, d.type + "!", torch.zeros(1, device=d), torch.ones(1, device="cpu"), str(torch.device("cuda:1"))


@case((3,))
def long_lines_and_comments(a: int) -> int:
    # a comment
    b = (a +  # inside
         1)
    c = b \
        + 2  # continued
    """a string as a statement"""
    pass; d = c; e = d + 1
    return e


@case((1,))
def shadowed_builtins(list: int):
    max = list + 1
    len = [max]
    return list, max, len


@case((1,))
def underscores_and_unicode_names(x: int):
    _, __y, größe, self_ = x, x + 1, x + 2, x + 3
    return _ + __y, größe, self_


@case((1,))
def words_of_the_saved_language(x: int):
    CONSTANTS, ops, annotate_, fork_, torch_, __torch__ = x, x + 1, x + 2, x + 3, x + 4, x + 5
    inf, nan, uninitialized, unchecked_cast, annotate = x + 6, x + 7, x + 8, x + 9, x + 10
    return CONSTANTS, ops, annotate_, fork_, torch_, __torch__, inf, nan, uninitialized, unchecked_cast, annotate, 1e400
