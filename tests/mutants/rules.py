"""The rules: a pattern of tokens, and its replacement in the mutant.

A pattern is a list of elements separated by spaces:
  `^`     the beginning of a statement           `/re/`  a word that the expression matches completely
  `(*)`   a whole group in brackets              `~`     the path to a member: words, `::`, `.`, `->`, groups
  `?x`    element x, optional                    others  that token; of `<`, `+` and similar only the binary ones
In the replacement, {0}, {1}, … are the matches of the elements except `^`, and {all} is the whole match.
A finder is a function of the tokens for rules that no pattern can express.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.tokens import CONDITION_ENDS, Code


@dataclass(frozen=True)
class Place:
    """A range of characters in the source, and its replacement by a rule."""
    start: int
    end: int
    replacement: str


def gated(rule: str, original: str, replacement: str) -> str:
    """Code that contains both variants; `@ON@` selects one at run time (mutant.h)."""
    if rule in COMPARISONS:
        return f"< ::tensord_mutant::Compare<::tensord_mutant::{COMPARISONS[rule]}>{{@ON@}} >"
    if rule == "off by one":
        return f"{original[0]} (@ON@ ? 0 : 1)"
    if rule == "first left out":
        return replacement.replace("= 1;", "= @ON@ ? 1 : 0;")
    if rule == "lock dropped":
        kind, name, mutex = re.fullmatch(r"(?:const )?(?:std\s*::\s*)?(\w+)\s+(\w+)\s*(\(.*\));", original, re.DOTALL).groups()
        kind = "shared_lock" if kind in ("shared_lock", "ReaderLock") else "unique_lock"
        return f"std::{kind} {name}({mutex[1:-1]}, std::defer_lock); if (!@ON@) {name}.lock();"
    for plain, gate in (("if (false) ", "if (!@ON@) "), ("false && ", "!@ON@ && "), ("true || ", "@ON@ || ")):
        if plain in replacement:
            return replacement.replace(plain, gate, 1)
    return f"(@ON@ ? {replacement} : {original})"


def dropped_operands(code: Code) -> Iterator[Place]:
    """`a && b` and `a || b` with one operand removed."""
    for i, token in enumerate(code.tokens):
        if token.kind == "sign" and token.text in ("&&", "||") and token.is_spaced:
            for step in (-1, 1):
                first, last = code.operand(i, step)
                if first <= last:
                    neutral = "true || " if token.text == "&&" else "false && "
                    condition = code.text(first, last)
                    yield Place(code.tokens[first].start, code.tokens[last].end, f"({neutral}({condition}))")


def dropped_choices(code: Code) -> Iterator[Place]:
    """`a ? b : c` that always evaluates to c."""
    for i, token in enumerate(code.tokens):
        if token.kind == "sign" and token.text == "?" and token.is_spaced:
            first, last = code.operand(i, -1, CONDITION_ENDS)
            if first <= last:
                condition = code.text(first, last)
                yield Place(code.tokens[first].start, code.tokens[last].end, f"(false && ({condition}))")


def dropped_clamps(code: Code) -> Iterator[Place]:
    """`std::min(a, b)` and `std::max(a, b)` that always return one of the operands."""
    for i in range(len(code.tokens)):
        if not (code.is_word(i, "min", "max") and code.is_sign(i - 1, "::") and code.is_word(i - 2, "std")):
            continue
        opening = next((k for k in range(i + 1, min(i + 8, len(code.tokens))) if code.is_sign(k, "(")), None)
        kind = code.text(i + 2, opening - 2) if opening and opening > i + 1 else ""
        if opening is None or (kind and not re.fullmatch(r"[\w:]+", kind)):
            continue
        arguments = code.arguments(opening)
        if len(arguments) == 2:
            for first, last in arguments:
                replacement = f"{kind}({code.text(first, last)})" if kind else f"({code.text(first, last)})"
                yield Place(code.tokens[i - 2].start, code.tokens[code.partner[opening]].end, replacement)


RULES = [
    ("check dropped", r"^ ~ /(check(?!_internal)|require|validate|verify|expect|ensure|refuse)(_\w+)?/ (*) ;",
     "{{ if (false) {all} }}"),
    ("error ignored", r"^ if (*) ?[*] ?{ /fail\w*|throw/", "if (false && {1}) {2} {3} {4}"),
    ("guard dropped", r"^ if (*) ?[*] ?{ /return|continue|break/", "if (false && {1}) {2} {3} {4}"),
    ("condition dropped", dropped_operands, ""),
    ("choice dropped", dropped_choices, ""),
    ("bound dropped", dropped_clamps, ""),
    ("<= for <", "<", "<="),
    ("< for <=", "<=", "<"),
    (">= for >", ">", ">="),
    ("> for >=", ">=", ">"),
    ("off by one", "+ 1", "+ 0"),
    ("off by one", "- 1", "- 0"),
    ("first left out", r"( /u?int\w*|size_t|auto/ /\w+/ = 0 ;", "({1} {2} = 1;"),
    ("wake-up dropped", r"^ ~ /notify_one|notify_all/ (*) ;", "{{ if (false) {all} }}"),
    ("lock dropped", r"^ ?const ?std ?:: /lock_guard|scoped_lock|shared_lock|MutexLock|ReaderLock|WriterLock/ /\w+/ (*) ;", "static_cast<void>{5};"),
    ("version bump dropped", r"^ ~ bump_version (*) ;", "{{ if (false) {all} }}"),
    ("fsync dropped", r"^ ~ /sync_\w+|fsync|fdatasync/ (*) ;", "{{ if (false) {all} }}"),
    ("fsync dropped", r"/fsync|fdatasync/ (*)", "0"),
    ("error ignored", "^ throw ;", "{{ if (false) throw; }}"),
]
# Rules whose mutants only another preset of CMakePresets.json can detect.
PRESETS = {"lock dropped": "tsan"}
NAMES = list(dict.fromkeys(name for name, _, _ in RULES))
COMPARISONS = {"<= for <": "kLess", "< for <=": "kLessEqual", ">= for >": "kGreater", "> for >=": "kGreaterEqual"}
BINARY = ("<", ">", "<=", ">=", "+", "-", "*")
GROUPS = {"(*)": "(", "[*]": "[", "{*}": "{"}


def match_element(code: Code, element: str, i: int) -> int | None:
    """The token after the match of `element` at token `i`, or None."""
    if i >= len(code.tokens):
        return None
    token = code.tokens[i]
    if element in GROUPS:
        return code.partner[i] + 1 if code.is_sign(i, GROUPS[element]) and i in code.partner else None
    if len(element) > 2 and element[0] == element[-1] == "/":
        return i + 1 if token.kind == "word" and re.fullmatch(element[1:-1], token.text) else None
    if token.text != element or token.kind in ("text", "raw") or (element in BINARY and not token.is_spaced):
        return None
    return i + 1


def skip_leading(code: Code, i: int) -> int | None:
    """The token after one step of the path to a member."""
    if code.is_sign(i, "::", ".", "->"):
        return i + 1
    if code.tokens[i].kind == "word" and code.tokens[i].text not in ("if", "for", "while", "switch", "return"):
        return i + 1 if code.is_sign(i + 1, "::", ".", "->", "(", "[") else None
    return code.partner[i] + 1 if code.is_sign(i, "(", "[") and i in code.partner else None


def match(code: Code, elements: list[str], i: int) -> list[tuple[int, int]] | None:
    """The matches of all elements from token `i` on, as token ranges, or None."""
    if not elements:
        return []
    element, rest = elements[0], elements[1:]
    if element == "^":
        return match(code, rest, i) if code.begins_statement(i) else None
    if element == "~":
        end = i
        while end is not None and end < len(code.tokens):
            found = match(code, rest, end)
            if found is not None:
                return [(i, end), *found]
            end = skip_leading(code, end)
        return None
    is_optional = element[0] == "?" and len(element) > 1
    end = match_element(code, element[is_optional:], i)
    if end is None:
        found = match(code, rest, i) if is_optional else None
        return None if found is None else [(i, i), *found]
    found = match(code, rest, end)
    return None if found is None else [(i, end), *found]


def places(code: Code, pattern, replacement: str) -> Iterator[Place]:
    """Where one rule applies."""
    if callable(pattern):
        yield from pattern(code)
        return
    elements = pattern.split()
    for i in range(len(code.tokens)):
        found = match(code, elements, i)
        if found:
            end = found[-1][1] - 1
            pieces = [code.text(first, last - 1) for first, last in found]
            yield Place(code.tokens[i].start, code.tokens[end].end, replacement.format(*pieces, all=code.text(i, end)))


def all_places(code: Code) -> Iterator[tuple[str, Place]]:
    """Every rule's name with each of its places, except in constant expressions."""
    skipped = [(code.tokens[i].start, code.tokens[code.partner[i + 1]].end) for i in range(len(code.tokens) - 1)
               if code.is_word(i, "static_assert") and i + 1 in code.partner]
    for name, pattern, replacement in RULES:
        for place in dict.fromkeys(places(code, pattern, replacement)):
            if not any(start <= place.start < end for start, end in skipped):
                yield name, place
