"""Operators, comparisons, conditions, subscripts and calls."""

import math
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case
T = torch.tensor
INTS = [(7, 2), (-7, 2), (7, -2), (0, 5)]


@case(*INTS)
def int_arithmetic(a: int, b: int):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a, abs(a), divmod(a, b)


@case(*[(float(a), float(b)) for a, b in INTS], (1.5, 0.25))
def float_arithmetic(a: float, b: float):
    return a + b, a - b, a * b, a / b, a // b, a % b, a ** b, -a, abs(a), divmod(a, b)


@case(*[(a, float(b)) for a, b in INTS])
def mixed_arithmetic(a: int, b: float):
    return a + b, b - a, a * b, a / b, b // a if a != 0 else 0.0, a % b, a ** b, b ** 2, 2 ** b, -a ** 2


@case((1 + 2j, 0.5 - 1j), (0j, 1j))
def complex_arithmetic(a: complex, b: complex):
    return a + b, a - b, a * b, -a, a == b, a != b, abs(a), a + 1, 2.5 * b, 1 - a


@case((1 + 2j, 0.5 - 1j), (-1j, 2 + 0j))
def complex_division_and_power(a: complex, b: complex):
    """As tensors, whose last bits may differ."""
    return torch.tensor(a / b), torch.tensor(a ** b)


@case((6, 3), (-1, 1), (12345678901, 31))
def bit_operators(a: int, b: int):
    return a & b, a | b, a ^ b, a << 2, (a if a > 0 else -a) >> 1, a << b


@case((True, False), (True, True), (False, False))
def bool_operators(a: bool, b: bool):
    return a & b, a | b, a ^ b, a and b, a or b, not a, a == b, a != b, a is b, a is not b


@case((1,), (5,), (-3,))
def precedence(a: int):
    return a + 2 * 3 ** 2 // 4 - -a, (a + 2) * 3, a * 2 + a % 3 << 1 & 7 | 8 ^ 2, not a == 1 and a < 3 or a > 4, -a ** 2, 2 ** -1, a if a else 3 + 1


@case((1, 2, 3), (3, 2, 1), (2, 2, 2))
def chained_comparisons(a: int, b: int, c: int):
    return a < b < c, a <= b <= c, a == b == c, a < b > c, a != b != c, 0 < a < 3 < 4


@case(("a", "b"), ("b", "a"), ("", ""), ("abc", "abd"))
def string_comparisons(a: str, b: str):
    return a == b, a != b, a < b, a <= b, a > b, a >= b, a in b, a not in b


@case(([1, 2], [1, 2]), ([1], [1, 2]), ([2], [1, 5]), ([], []))
def list_comparisons(a: List[int], b: List[int]):
    return a == b, a != b


@case(([1.0, math.nan], [1.0, math.nan]), ([0.5], [0.5]))
def float_list_comparisons(a: List[float], b: List[float]):
    return a == b, a != b


@case((["a"], ["a"]), (["a"], ["b"]))
def string_list_comparisons(a: List[str], b: List[str]):
    return a == b, a != b


@case(([T([1.0])], [T([1.0])]), ([T([1.0])], [T([2.0])]), ([], []))
def tensor_list_comparisons(a: List[Tensor], b: List[Tensor]):
    return a == b, a != b


@case((1, 2), (2, 2))
def tuples_of_one_type_compared(a: int, b: int):
    return (a, b) == (2, 2), (a, b) != (1, 2), (a,) == (2,), (a, b) == [a, b]


@case((1,), (7,))
def membership(a: int):
    return a in [1, 2], a not in [1, 2], a in {1: "x"}, a not in {1: "x"}, str(a) in ["1"], float(a) in [1.0], a in (1, 2)


@case(("a",), ("z",))
def string_membership(a: str):
    return a in "abc", a in ["a", "b"], a in {"a": 1}, a not in "abc", "" in a


@case((None,), (3,))
def identity(a: Optional[int]):
    return a is None, a is not None, not (a is None), None is None


@case((0,), (1,), (-4,))
def truth_of_numbers(a: int):
    return bool(a), not a, 1 if a else 2, bool(float(a)), not float(a), True if float(a) else False


@case((T(0.0),), (T(2),), (T([1.0]),), (T([False]),))
def truth_of_tensors(x: Tensor):
    r = 0
    if x:
        r = 1
    while x:
        r += 10
        x = x - x if x.dtype != torch.bool else x ^ x
    return r, not x, bool(x)


@case((T([1.0, 2.0]),))
def truth_of_many(x: Tensor):
    if x:
        return 1
    return 2


@case(([], ""), ([1], "x"))
def truth_of_lengths(l: List[int], s: str):
    return len(l) > 0, bool(len(s)), not len(l)


@case((3, 4), (-1, 2))
def and_or_of_values(a: int, b: int):
    return a > 0 and b > 3, a > 0 or b > 3, (a > 0 and b > 0) or not (a == b), not a and b > 1


@case(([1, 2], 1), ([1, 2], 5), ([], 0))
def short_circuits(l: List[int], i: int):
    return i < len(l) and l[i] == 2, i >= len(l) or l[i] == 1


@case((1,), (-1,))
def conditional_expressions(a: int):
    x = "pos" if a > 0 else "neg"
    y = (1 if a > 0 else 2) if a != 5 else 3
    z = [i if i % 2 == 0 else -i for i in range(4)]
    return x, y, z, a if a > 0 else None


@case((1,), (-1,))
def conditional_of_mixed_types(a: int):
    y: Optional[float] = 1.5 if a > 0 else None
    return y


@case(([1, 2, 3, 4, 5],), ([],), ([7],))
def list_slices(l: List[int]):
    return l[:], l[1:], l[:-1], l[::2], l[1:4:2], l[-3:-1], l[10:], l[:100], l[3:1], l[::-1], l[4:0:-2], l[-1::-1], l[2::-3]


@case(([1, 2, 3], 0), ([1, 2, 3], -3), ([1, 2, 3], 3), ([1, 2, 3], -4), ([], 0))
def list_index(l: List[int], i: int):
    return l[i]


@case(("hello",), ("",), ("x",))
def string_slices(s: str):
    return s[:], s[1:], s[:-1], s[::2], s[1:4:2], s[-3:-1], s[10:], s[:100], s[3:1], s[::-1], s[4:0:-2]


@case(("hello", 0), ("hello", -1), ("hello", 5), ("", 0))
def string_index(s: str, i: int):
    return s[i]


@case((1, "a", 2.5))
def tuple_slices(a: int, b: str, c: float):
    t = (a, b, c, a)
    return t[0], t[-1], t[1:], t[:-1], t[::2], t[::-1], t[1:3], t[3:0:-1], t[5:], t[-2:]


@case((0,), (1,), (-1,), (2,))
def tuple_index_at_run_time(i: int):
    t = (10, 20)
    return t[i]


@case(({"a": 1}, "a"), ({"a": 1}, "b"))
def dict_index(d: Dict[str, int], k: str):
    return d[k]


@case(({1: "x"}, 1), ({1: "x"}, 2))
def dict_int_index(d: Dict[int, str], k: int):
    return d[k]


@case(({1.5: "x"}, 1.5), ({0.0: "x"}, -0.0), ({math.inf: "y"}, math.inf))
def dict_float_index(d: Dict[float, str], k: float):
    return d[k], k in d


@case(({True: 1}, True), ({True: 1}, False))
def dict_bool_index(d: Dict[bool, int], k: bool):
    return d[k]


@case((2, 3))
def dict_complex_keys(a: int, b: int):
    d = {complex(a, b): "one", complex(0, 0): "two"}
    return d[complex(2, 3)], complex(1, 1) in d, len(d)


@case((T([1.0, 2.0]),))
def dict_tensor_keys(x: Tensor):
    y = x + 1
    d = {x: 1, y: 2}
    return d[x], d[y], len(d), x in d, (x * 2) in d


@case((torch.arange(24.0).reshape(2, 3, 4),))
def tensor_subscripts(x: Tensor):
    return (x[0], x[-1, 1], x[:, 1:], x[..., 0], x[0, ..., 1:3], x[None].shape, x[:, None, 0].shape, x[1, 2, 3], x[::2, ::-1 if False else 1],
            x[:, -2:], x[..., None, :].shape, x[0][1][2], x[:0], x[5:].shape)


@case((torch.arange(12.0).reshape(3, 4), T([2, 0]), T([True, False, True])))
def tensor_advanced_subscripts(x: Tensor, i: Tensor, m: Tensor):
    return x[i], x[m], x[:, i], x[i, i], x[i, 1:], x[m, 0], x[[0, 2]], x[i[:, None], i], x[None, i].shape, x[x > 5]


@case((torch.arange(12.0).reshape(3, 4), 5), (torch.arange(12.0).reshape(3, 4), 2), (torch.arange(12.0).reshape(3, 4), -4))
def tensor_index_out_of_range(x: Tensor, i: int):
    return x[i], x[0, i]


@case((torch.arange(12.0).reshape(3, 4), 1, 3))
def tensor_subscripts_of_variables(x: Tensor, a: int, b: int):
    s = x.size(0)
    return x[a:b], x[a:b, ::b], x[:s - 1], x[-a], x[a][b], x[a, b].item()


@case((torch.arange(12.0).reshape(3, 4), None), (torch.arange(12.0).reshape(3, 4), 2))
def tensor_slice_of_optional(x: Tensor, a: Optional[int]):
    return x[a:], x[:a], x[:, a:]


@case((torch.arange(12.0).reshape(3, 4),))
def tensor_slice_writes(x: Tensor):
    y = x.clone()
    y[0] = 1.0
    y[1, 2] = -1
    y[:, 0] = torch.tensor([7.0, 8.0, 9.0])
    y[2:, 1:3] = y[0:1, 1:3] * 5
    y[..., -1] += 100
    y[0, 1:] *= 2
    y[y > 50] = 0
    y[torch.tensor([0, 2]), 1] = torch.tensor([3.0, 4.0])
    y[None, 1] -= 1
    y[1:2, ::2] /= 2
    y[[0, 1]] = 5
    return y, x


@case((torch.arange(4.0),))
def tensor_operators(x: Tensor):
    i = x.to(torch.int64) + 1
    return (x + 1, 1 + x, x - 2, 2 - x, x * x, x / 2, 2 / (x + 1), x // 2, 7 // (x + 1), x % 2, x ** 2, 2 ** x, -x, abs(x), x @ x, x < 2, 2 < x,
            x == x, x != 1, i & 1, i | 4, i ^ 3, ~i, i << 1, i >> 1, (x > 1) & (x < 3), ~(x > 1), x >= 1, 3 <= x)


@case((torch.arange(4.0),))
def tensor_augmented(x: Tensor):
    y = x.clone()
    z = y
    y += 1
    y -= x
    y *= 3
    y /= 2
    i = torch.tensor([5, 6])
    j = i
    i &= 3
    i |= 8
    i ^= 1
    i <<= 1
    i >>= 1
    i += 2
    w = x + 1
    v = w
    w **= 2
    w %= 3
    return y, z, i, j, w, v


@case((5, 1.5))
def number_augmented(a: int, b: float):
    a += 2
    a -= 1
    a *= 3
    a %= 5
    a **= 2
    b += a
    b /= 4
    b -= 1
    b *= b
    c = 6
    c &= 7
    c |= 8
    c ^= 3
    c <<= 2
    c >>= 1
    return a, b, c


@case((4,))
def int_divided_in_place(a: int):
    b = a / 2
    b /= 3
    return a, b


@case((1, 2))
def calls_by_keyword(a: int, b: int):
    return helper(a, b), helper(b=a, a=b), helper(a), helper(a, c=[9]), helper(a, b, [1], d="q"), torch.full(size=[2], fill_value=float(a))


def helper(a: int, b: int = 5, c: Optional[List[int]] = None, d: str = "dflt") -> Tuple[int, int, str]:
    return a * 10 + b, 0 if c is None else c[0] + len(c), d


@case((T([1.0, 2.0]),))
def calls_of_overloads(x: Tensor):
    return torch.max(x), torch.max(x, 0)[1], torch.max(x, x + 1), torch.sum(x), torch.sum(x, 0), torch.sum(x, [0], keepdim=True), torch.add(x, 1, alpha=2), x.add(x, alpha=3)


@case((torch.ones(2, 3),))
def methods_and_properties(x: Tensor):
    return (x.shape, x.size(), x.size(0), x.dim(), x.ndim, x.numel(), x.dtype == torch.float32, x.is_cuda, x.requires_grad, x.is_sparse, x.T.shape, x.mT.shape,
            x.is_quantized, x.data, x.grad is None, x.element_size(), x.stride(), x.is_contiguous())


@case((torch.ones(2, 3),), since=(2, 0))
def newer_properties(x: Tensor):
    return x.itemsize, x.nbytes


@case((torch.ones(2, 3),))
def more_properties(x: Tensor):
    c = torch.complex(x, x * 2)
    return c.real, c.imag, x.is_leaf, x.H.shape, x.mH.shape, x.layout == torch.strided, x.is_complex(), x.is_floating_point(), x.is_mkldnn, x.is_meta, x.name is None


@case((T([1.0, 2.0]),))
def numbers_from_tensors(x: Tensor):
    return x[0].item(), float(x[1]), int(x[1]), bool(x[0]), x.sum().item() + 1, float(x.sum()) * 2


@case((T(3),), (T(2.7),), (T([1, 2]),))
def int_of_tensor(x: Tensor):
    return int(x), float(x), complex(x)


@case((T(3),), (T(2.7),))
def implicit_conversions(x: Tensor):
    return torch.zeros(int(x)), torch.full([2], x.item()), torch.arange(x.item()), x + 1.5


@case((1,))
def any_arguments(a: int):
    return takes_any(a), takes_any("x"), takes_any([1, 2]), takes_any((a, 2.0)), takes_any(None), takes_any({"a": 1})


def takes_any(x: Any) -> str:
    if isinstance(x, int):
        return "int"
    elif isinstance(x, str):
        return "str"
    elif x is None:
        return "none"
    elif isinstance(x, List[int]):
        return "list"
    return "other"


@case((2, 3))
def starred_calls(a: int, b: int):
    t = (a, b)
    return helper(*t), torch.zeros(*t).shape, [*[a, b]] if False else [a]


@case((torch.ones(2, 3),))
def starred_tuples(x: Tensor):
    n, m = x.shape
    return x.new_zeros(*(n, m)).shape, x.view(*(m, n)).shape, x.expand(*(2, n, m)).shape
