"""Rules of the programs, by kind. Importing this registers all of them in RULES."""

from tests.programs.grammar import tensors, layers, patterns, values, objects, flow, calls  # noqa: F401
from tests.programs.grammar.calls import finish  # noqa: F401
from tests.programs.grammar.rules import RULES, WEIGHTS  # noqa: F401
