"""Differences that are meant, and are written down in tests/programs/README.md."""


def is_refusal(problem: dict) -> bool:
    """An operator, or a form of one, that is not there: said, not guessed."""
    return problem["kind"] == "refused" or (problem["kind"] == "error" and "is not supported" in problem["text"])


def known_difference(problem: dict, program) -> bool:
    if is_refusal(problem):
        return True
    # What nobody reads is not computed, also where it would fail.
    return problem["kind"] == "no error" and problem["mode"] not in ("interpreted", "plans without passes")
