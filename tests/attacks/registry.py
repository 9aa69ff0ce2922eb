"""The attacks by name, and the figures that they return."""

import dataclasses

ATTACKS = {}


@dataclasses.dataclass
class Attack:
    name: str
    run: object  # takes a Context (context.py), returns a Figure or a list of them; raises if something broke
    is_short: bool


@dataclasses.dataclass
class Figure:
    """A measurement and its upper limit (or, with at_least, its lower limit)."""
    name: str
    value: float
    bound: float
    unit: str = ""
    at_least: bool = False

    def holds(self):
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    def __str__(self):
        sign = ">=" if self.at_least else "<="
        return f"{self.name} {self.value:.4g} {self.unit}".rstrip() + f" (bound {sign} {self.bound:g})"


def attack(name, short=False):
    """Registers a function as the attack of this name; ctest also runs short ones, of a few seconds."""

    def register(function):
        if name in ATTACKS:
            raise ValueError(f"two attacks are called {name}")
        ATTACKS[name] = Attack(name, function, short)
        return function

    return register
