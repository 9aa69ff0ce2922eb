"""Rules of the programs, by kind: importing this fills the builder's RULES."""

from tests.programs.grammar import tensors, layers, patterns, values, objects, flow, calls  # noqa: F401
from tests.programs.grammar.calls import finish  # noqa: F401
