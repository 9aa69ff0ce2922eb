"""Statements: assignment, if, loops, return, break, del, assert, raise, with, print."""

import warnings
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.language.case import Section

section = Section()
case = section.case
T = torch.tensor


@case((1, 2))
def assignments(a: int, b: int):
    x = y = a
    x, y = y + 1, x + 2
    (p, q), r = (a, b), [a]
    s, t = a, b
    u, *v = [1, 2], 3
    z: int = 5
    w: List[int] = [z]
    return x, y, p, q, r, s, t, z, w


@case((1, 2))
def chained_assignment(a: int, b: int):
    x = y = [a]
    y.append(b)
    m = n = a + b
    n += 1
    return x, y, m, n


@case(([1, 2, 3],), ([1, 2],), ([],))
def unpack_lists(l: List[int]):
    a, b, c = l
    return a, b, c


@case((torch.arange(6.0).reshape(2, 3),), (torch.arange(6.0).reshape(3, 2),))
def unpack_tensors(x: Tensor):
    c, d = x.unbind(0)
    return c, d


@case((torch.arange(6.0),))
def unpack_with_star(x: Tensor):
    a, *b = x.size(), 1, 2
    return a, b


@case((1,))
def annotated_assignments(a: int):
    x: Optional[int] = a
    y: float = 2.0
    z: List[Optional[int]] = [a, None]
    d: Dict[str, List[int]] = {"k": [1]}
    d["k"].append(a)
    t: Tuple[int, Optional[str]] = (a, None)
    return x, y, z, d, t


@case((1,), (0,), (-1,))
def if_elif_else(a: int):
    if a > 0:
        r = "positive"
    elif a == 0:
        r = "zero"
    else:
        r = "negative"
    if a > 5:
        pass
    if not a:
        r += "!"
    return r


@case((1,), (0,))
def variable_of_one_branch_after_raise(a: int):
    if a > 0:
        x = a
    else:
        raise RuntimeError("user: not positive")
    return x


@case((5,), (-5,), (0,))
def early_returns(a: int) -> str:
    if a > 0:
        if a > 3:
            return "big"
        a += 1
    elif a < 0:
        return "negative"
    for i in range(3):
        if i == a:
            return "small " + str(i)
        while i > 1:
            return "never"
    return "end"


@case((5,), (0,))
def return_nothing(a: int):
    if a > 3:
        return
    a += 1


@case((5,), (0,))
def return_of_optional(a: int) -> Optional[int]:
    if a > 3:
        return a
    return None


@case((5,), (0,), (2,))
def returns_in_loops(n: int) -> Tuple[int, int]:
    for i in range(n):
        for j in range(n):
            if i * j == 6:
                return i, j
            if i + j > 6:
                break
        else_ = i
        if else_ == 100:
            continue
    return -1, n


@case((0,), (4,), (100,))
def while_loops(n: int):
    i = 0
    r = 1
    while i < n and r < 1000:
        i += 1
        if i % 2 == 0:
            continue
        if i == 9:
            break
        r *= i
    while True:
        i -= 1
        if i < -3:
            break
    return i, r


@case((3,))
def while_tensor(n: int):
    x = torch.zeros(1)
    while x < n:
        x = x + 1
    return x


@case((4,), (0,))
def for_ranges(n: int):
    a = [i for i in range(n)]
    r: List[int] = []
    for i in range(1, n):
        r.append(i)
    for i in range(n, 0, -1):
        r.append(i)
    for i in range(0, 10, n + 1):
        r.append(i)
    for i in range(10, n, 3):
        r.append(i)
    for _ in range(-2):
        r.append(100)
    return a, r


@case(([1, 2], "ab", {"x": 1, "y": 2}, T([[1.0, 2.0], [3.0, 4.0]])), ([], "", {}, torch.zeros(0, 2)))
def for_iterables(l: List[int], s: str, d: Dict[str, int], x: Tensor):
    r: List[str] = []
    for i in l:
        r.append(str(i))
    for c in s:
        r.append(c + "!")
    for k in d:
        r.append(k + str(d[k]))
    for k, v in d.items():
        r.append(k + str(v))
    for v in d.values():
        r.append(str(v))
    for k in d.keys():
        r.append(k)
    for row in x:
        r.append(str(row.sum().item()))
    for row in x:
        for item in row:
            r.append(str(int(item)))
    return r


@case((1, "a"))
def for_over_tuple(a: int, b: str):
    r = ""
    for x in (a, b, 2.5, [a]):
        r += str(x) + ";"
    n = 0
    for y in (1, 2, 3):
        n += y
    return r, n


@case(([1, 2, 3], ["a", "b"]), ([], []), ([1], ["x", "y", "z"]))
def for_zip_enumerate(a: List[int], b: List[str]):
    r: List[str] = []
    for x, y in zip(a, b):
        r.append(str(x) + y)
    for i, x in enumerate(a):
        r.append(str(i * x))
    for i, x in enumerate(a, 5):
        r.append(str(i * x))
    for i, (x, y) in enumerate(zip(a, b), start=1):
        r.append(str(i) + str(x) + y)
    for x, y, z in zip(a, range(10, 20), b):
        r.append(str(x) + str(y) + z)
    for (i, x), y in zip(enumerate(a), b):
        r.append(str(i) + str(x) + y)
    for i, c in enumerate("xyz"):
        r.append(str(i) + c)
    return r


@case(({"a": [1, 2], "b": []},))
def for_nested_containers(d: Dict[str, List[int]]):
    r = 0
    for k, l in d.items():
        for x in l:
            r += x * len(k)
    return r, [(k, len(l)) for k, l in d.items()]


@case(([(1, "a"), (2, "b")],), ([],))
def for_unpacks(l: List[Tuple[int, str]]):
    r = ""
    for i, s in l:
        r += s * i if False else s + str(i)
    return r, [i for i, _ in l], {s: i for i, s in l}


@case(([1, 2, 3, 4],))
def loop_variables_after(l: List[int]):
    i = 10
    for i in range(2):
        x = i
    y = 0
    for y in l:
        if y > 2:
            break
    return i, y


@case(([1, 2, 3, 4], 2), ([], 2))
def break_and_continue(l: List[int], n: int):
    r: List[int] = []
    for i, x in enumerate(l):
        if x == n:
            continue
        for y in l:
            if y > x:
                break
            if y == 1:
                continue
            r.append(x * 10 + y)
        if i > 2:
            break
        r.append(x)
    return r


@case(([1, 2, 3],), ([5],), ([],))
def deletes(l: List[int]):
    d = {"a": 1, "b": 2}
    del d["a"]
    m = l.copy()
    del m[0]
    return m, d


@case(({"a": 1},), ({},))
def delete_missing(d: Dict[str, int]):
    del d["a"]
    return len(d)


@case((1,))
def delete_variables(a: int):
    b = a + 1
    del b
    return a


@case((1,), (0,), (-1,))
def asserts(a: int):
    assert a >= 0
    assert a != 0, "user: zero"
    assert a < 5, f"user: too large {a}"
    return a


@case((1,), (2,), (3,), (4,), (5,), (6,))
def raises(a: int):
    if a == 1:
        raise ValueError("user: value")
    if a == 2:
        raise RuntimeError(f"user: runtime {a}")
    if a == 3:
        raise Exception("user: plain " + str(a))
    if a == 4:
        raise IndexError("user: index")
    if a == 5:
        raise NotImplementedError("user: not there")
    return a


@case((1,), (2,), (3,))
def raises_without_message(a: int):
    if a == 1:
        raise ValueError
    if a == 2:
        raise RuntimeError()
    return a


@case((1,), (-1,))
def raise_in_call(a: int):
    return checked(a) + checked(a + 1)


def checked(a: int) -> int:
    if a < 0:
        raise ValueError("user: negative")
    return a


@case((T([1.0, 2.0]),), grad=True)
def with_grad_modes(x: Tensor):
    with torch.no_grad():
        y = x * 2
        a = torch.is_grad_enabled()
        with torch.no_grad():
            b = torch.is_grad_enabled()
        c = torch.is_grad_enabled()
    return y, a, b, c, torch.is_grad_enabled()


@case((3,), (-3,))
def with_return_inside(a: int) -> int:
    with torch.no_grad():
        return a * 2


@case((3,))
def grad_mode_after_return(a: int):
    b = with_return_inside(a)
    return torch.is_grad_enabled(), b


@case((T([1.0]),), before=(2, 0))
def with_profiler(x: Tensor):
    with torch.autograd.profiler.record_function("name"):
        y = x + 1
    return y


@case((1, "a", T([1.5])),)
def prints(a: int, b: str, x: Tensor) -> None:
    print(a, b, 2.5, True, None, [1, 2], (a, "q"), {"k": 1}, 1e10, [1.0], ["s"])
    print()
    print(x)
    print(x.to(torch.int64), [x, x])
    print("")
    print("", a, "é")
    print((), [x], {}, (a,))


@case((1,))
def warns(a: int):
    warnings.warn("careful")
    return a


@case((1,), (-1,))
def dead_code(a: int) -> int:
    if a > 0:
        return 1
    else:
        return 2
    return 3


@case((1,), (7,))
def pass_everywhere(a: int):
    for _ in range(a):
        pass
    while a < 0:
        pass
    if a:
        pass
    else:
        pass
    return a


@case((T([3.0, 4.0]),))
def statements_for_effect(x: Tensor):
    y = x.clone()
    y.add_(1)
    y.mul_(2).sub_(1)
    torch.relu_(y)
    y[0].zero_()
    y.view(2, 1)[1].fill_(5)
    l = [3, 1]
    l.sort()
    l.pop()
    helper(l)
    return y, l


def helper(l: List[int]) -> int:
    l.append(100)
    return len(l)


@case((3,))
def loop_carried_types(n: int):
    x: Optional[int] = None
    for i in range(n):
        if x is None:
            x = i
        else:
            x = x + i
    s = 0.0
    for i in range(n):
        s = s + i
    return x, s


@case((0,), (1,), (5,))
def undefined_until_loop(n: int):
    found = False
    best = -1
    for i in range(n):
        candidate = i * 7 % 4
        if candidate > best:
            best = candidate
            found = True
    return found, best


@case((30,))
def deep_nesting(n: int):
    r = 0
    for a in range(n):
        if a % 2 == 0:
            for b in range(3):
                if b != 1:
                    while r % 7 != 0:
                        r += 1
                        if r > 500:
                            break
                    r += a * b
                else:
                    continue
            r += 1
    return r
