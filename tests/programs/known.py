"""Intended differences from PyTorch (tests/programs/README.md)."""

import re

# In these modes dead code runs, and may fail.
UNOPTIMIZED = ("interpreted", "plans without passes")
# Unchecked writes or reads in PyTorch that tensord refuses.
STRICTER = ("more than one element of the written-to tensor", "the sizes of self and source differ", "Calculated output size would be 0")
# PyTorch does not resize memory of a file; tensord copies the tensor first.
MORE_THAN_PYTORCH = ("Trying to resize storage that is not resizable",)
# Lower precision moves a value across a step, where the result jumps.
STEPS = re.compile(r"heaviside|floor|ceil|round|trunc|frac|sign|sgn|//|%|[<>]|==|!=|\b(eq|ne|lt|le|gt|ge)\b|arg|sort|topk|median|kthvalue|bool|int\(|"
                   r"logical|nonzero|unique|histc|bucketize|searchsorted|remainder|fmod|isnan|isinf|isfinite|signbit|nextafter|shrink|mod|cummax|"
                   r"max\(|min\(|equal|all\(|any\(|torch\.long|torch\.u?int|bitwise|ormat|item|masked|float\(|if |while ")


def is_refusal(problem: dict) -> bool:
    """An unsupported operator, or variant of one, that is reported as such."""
    return problem["kind"] == "refused" or (problem["kind"] == "error" and "is not supported" in problem["text"])


def has_steps(program) -> bool:
    text = program.source()
    return bool(STEPS.search(re.sub(r"def .*|class .*", "", text.split("super().__init__()", 1)[1])))


def known_difference(problem: dict, mode: dict, problems: list) -> bool:
    """`problems` are all of the same program."""
    if is_refusal(problem):
        return True
    if problem["kind"] == "error" and any(text in problem["text"] for text in STRICTER):
        return True
    if problem["kind"] == "no error" and any(text in problem["text"] for text in MORE_THAN_PYTORCH):
        return True
    keeps_dead_code = problem["mode"] in UNOPTIMIZED or "dce" in mode.get("disabled", [])
    # Dead code is not executed, even if it would fail: tensord's passes remove it, and PyTorch always does.
    if problem["kind"] == "no error":
        return not keeps_dead_code or problem["mode"] not in UNOPTIMIZED
    return problem["kind"] == "error" and keeps_dead_code and not any(other["mode"] == "planned" for other in problems)
