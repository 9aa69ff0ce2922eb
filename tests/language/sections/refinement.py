"""Optional, Union, Any: declarations, refinement, isinstance."""

from typing import Any, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case
T = torch.tensor


@case((None,), (3,))
def optional_is_none(a: Optional[int]) -> int:
    if a is None:
        return -1
    return a + 1


@case((None,), (3,))
def optional_is_not_none(a: Optional[int]) -> int:
    if a is not None:
        b = a + 1
    else:
        b = 0
    return b


@case((None, None), (1, None), (None, 2), (1, 2))
def refined_by_and_or(a: Optional[int], b: Optional[int]):
    r = 0
    if a is not None and b is not None and a < b:
        r = a + b
    if a is None or b is None:
        return r - 1
    if not (a is None) and not (b is None):
        r += a * b
    return r


@case((None,), (3,))
def refined_by_assert(a: Optional[int]):
    assert a is not None
    return a + 1


@case((None,), (3,))
def refined_by_assert_with_message(a: Optional[int]):
    assert a is not None, "user: none given"
    return a + 1


@case((None,), (3,))
def refined_by_raise(a: Optional[int]):
    if a is None:
        raise ValueError("user: none given")
    return a + 1


@case((None,), (T([1.0]),))
def refined_tensor(x: Optional[Tensor]):
    y = torch.zeros(1) if x is None else x * 2
    return y


@case((None,), ([1, 2],))
def refined_list(x: Optional[List[int]]):
    if x is None:
        x = [7]
    x.append(1)
    return x


@case((None, 3), (2, 0))
def refined_in_conditional(a: Optional[int], b: int):
    return a if a is not None else b, (a + 1 if a is not None else 0), a is not None and a > 1, a is None or a > 1


@case((None,), (3,))
def reassigned_optional(a: Optional[int]):
    if a is None:
        a = 5
    b = a + 1
    a = None
    return a, b


@case(([None, 1, None, 2],), ([],))
def optional_elements(l: List[Optional[int]]):
    r: List[int] = []
    for x in l:
        if x is not None:
            r.append(x)
    n = 0
    for i in range(len(l)):
        y = l[i]
        if y is None:
            n += 1
        else:
            n += y
    return r, n


@case(({"a": None, "b": 2},),)
def optional_values(d: Dict[str, Optional[int]]):
    r: Dict[str, int] = {}
    for k, v in d.items():
        r[k] = v if v is not None else -1
    d["c"] = None
    d["d"] = 4
    return r, d


@case((None,), ("x",))
def unwrapped(a: Optional[str]):
    return torch.jit._unwrap_optional(a) + "!"


@case((1,))
def none_passed_on(a: int):
    return takes_optional(None), takes_optional(a), takes_optional(), returns_optional(a), returns_optional(-a)


def takes_optional(a: Optional[int] = None) -> str:
    return "none" if a is None else str(a)


def returns_optional(a: int) -> Optional[List[int]]:
    if a > 0:
        return [a]
    return None


@case((None,), (4,))
def while_refined(a: Optional[int]):
    n = 0
    while a is not None:
        b = torch.jit._unwrap_optional(a)
        n += b
        if b > 2:
            a = b - 1
        else:
            a = None
    return n


@case((1,), ("x",), (2.5,), (None,), ([1],), ([1.0],), (True,), (T([1.0]),), ((1, 2),), ({"a": 1},))
def isinstance_of_any(x: Any):
    r: List[str] = []
    if isinstance(x, int):
        r.append("int")
    if isinstance(x, str):
        r.append("str")
    if isinstance(x, (float, bool)):
        r.append("float or bool")
    if isinstance(x, list):
        r.append("list")
    if isinstance(x, List[int]):
        r.append("ints")
    if isinstance(x, tuple):
        r.append("tuple")
    if isinstance(x, Tuple[int, int]):
        r.append("two ints")
    if isinstance(x, Dict[str, int]):
        r.append("dict")
    if isinstance(x, Tensor):
        r.append("Tensor")
    if x is None:
        r.append("None")
    return r


@case((1,), ("x",), (T([1.0]),), ([2, 3],))
def any_refined(x: Any):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    elif isinstance(x, List[int]):
        return x[0] + len(x)
    elif isinstance(x, Tensor):
        return int(x.sum())
    return -1


@case((1,))
def static_isinstance(a: int):
    l = [a]
    t = (a, "x")
    return isinstance(a, int), isinstance(a, float), isinstance(l, List[int]), isinstance(l, list), isinstance(t, tuple), isinstance(l, (int, str)), isinstance(t[1], str)


@case((1,), (0,))
def any_held(a: int):
    x: Any = a
    if a == 0:
        x = "text"
    l: List[Any] = [x, 2.5]
    l.append([1])
    d: Dict[str, Any] = {"a": x}
    return x, len(l), len(d)


@case((1,), ("ab",))
def union_argument(x: Union[int, str]):
    if isinstance(x, int):
        r = x + 1
    else:
        r = len(x)
    return r


@case((1,), ("ab",), (None,))
def union_with_none(x: Union[int, str, None]):
    if x is None:
        return "none"
    elif isinstance(x, str):
        return x + "!"
    else:
        return str(x + 1)


@case((1,), (2,), (3,))
def union_assigned(n: int):
    x: Union[int, str, List[int]] = n
    if n == 2:
        x = "two"
    elif n == 3:
        x = [n]
    if isinstance(x, (int, str)):
        return str(x)
    return "list " + str(len(x))


@case((1,), ([1, 2],))
def union_of_lists(x: Union[List[int], int]):
    if isinstance(x, list):
        return x[0] * 10
    return x


@case((T([1.0]),), ([T([1.0]), T([2.0])],))
def union_of_tensors(x: Union[Tensor, List[Tensor]]):
    if isinstance(x, Tensor):
        return x + 1
    else:
        return x[0] + x[1]


@case((1,), ("x",))
def union_asserted(x: Union[int, str]):
    assert isinstance(x, int), "user: no int"
    return x + 1


@case(([1, "a", 2],), ([],))
def union_elements(l: List[Union[int, str]]):
    n = 0
    for x in l:
        if isinstance(x, int):
            n += x
        elif isinstance(x, str):
            n += len(x) * 100
    return n


@case((1,), ("x",), (2.5,))
def union_and_not(x: Union[int, str, float]):
    if not isinstance(x, int):
        if isinstance(x, float):
            return str(x * 2)
        return x + "y"
    return str(x)


@case((1,), (2.5,), (1 + 2j,))
def number_union(x: Union[int, float, complex]):
    if isinstance(x, int):
        return 1
    if isinstance(x, float):
        return 2
    return 3


@case((1,), (2,))
def union_returned(n: int) -> Union[int, str]:
    if n == 1:
        return n
    return "text"


@case((1,), (2,))
def mixed_if_is_union(n: int):
    if n == 1:
        x: Optional[int] = n
    else:
        x = None
    return x


@case((1,), (5,))
def annotate_forms(n: int):
    a = torch.jit.annotate(Optional[int], None)
    b = torch.jit.annotate(List[int], [])
    c = torch.jit.annotate(Dict[str, Optional[float]], {"a": None})
    if n > 2:
        a = n
    b.append(n)
    return a, b, c


@case((1,), ("x",), (None,), ([1],))
def torch_isinstance(x: Any):
    return torch.jit.isinstance(x, int), torch.jit.isinstance(x, List[int]), torch.jit.isinstance(x, Optional[str])


@case((1,), ("a",), since=(2, 0))
def pipe_union(x: int | str):
    if isinstance(x, int):
        return x + 1
    return len(x)


@case((1,), (None,), since=(2, 0))
def pipe_optional(x: int | None = None):
    if x is None:
        return 0
    return x


@case(([1, 2], {"a": 1}, (1, "x")),)
def builtin_generics(a: list[int], b: dict[str, int], c: tuple[int, str]):
    d: list[str] = [c[1]]
    return a[0] + b["a"] + c[0], d


@case((1, 2), (-1, 0))
def comment_types(a, b):
    # type: (int, int) -> Tuple[int, List[int]]
    l = torch.jit.annotate(List[int], [])
    l.append(a)
    return a + b, l


@case((T([1.0]),))
def untyped_is_tensor(x, y=None):
    return x + 1


@case((1,))
def forward_references(a: "int") -> "Optional[List[int]]":
    return [a]
