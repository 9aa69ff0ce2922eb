"""Runs attacks against a built binary: README.md."""

import argparse
import importlib
import os
import pkgutil
import sys
import time
import traceback

import tests.attacks
from tests.attacks.registry import ATTACKS

TOOLS = {"run", "registry", "context", "models", "live_probe", "h2", "flooder"}


def load_attacks():
    for module in pkgutil.iter_modules(tests.attacks.__path__):
        if module.name not in TOOLS:
            importlib.import_module(f"tests.attacks.{module.name}")


def play(attack, repository):
    """Returns whether the daemon withstood the attack, and a line about it."""
    from tests.attacks.context import Context, temporary_folder

    begin = time.monotonic()
    try:
        with temporary_folder() as folder:
            figures = attack.run(Context(repository, folder))
        figures = figures if isinstance(figures, (list, tuple)) else [figures]
        held, detail = all(figure.holds() for figure in figures), ", ".join(map(str, figures))
    except Exception:
        held, detail = False, traceback.format_exc()
    return held, f"{attack.name:30} {'held  ' if held else 'FAILED'} {detail} [{time.monotonic() - begin:.1f} s]"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensord", default=os.environ.get("TENSORD_BINARY"), help="the binary")
    parser.add_argument("--short", action="store_true", help="only the attacks that ctest plays")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these attacks (default: all)")
    arguments = parser.parse_args()
    if not arguments.tensord and not arguments.list:
        parser.error("--tensord is needed")
    os.environ["TENSORD_BINARY"] = os.path.abspath(arguments.tensord or "")

    load_attacks()
    unknown = set(arguments.names) - set(ATTACKS)
    if unknown:
        parser.error(f"no attack is called {', '.join(sorted(unknown))}")
    chosen = [attack for name, attack in sorted(ATTACKS.items())
              if (not arguments.names or name in arguments.names) and (not arguments.short or attack.is_short)]
    if arguments.list:
        print("\n".join(attack.name + (" (short)" if attack.is_short else "") for attack in chosen))
        return 0

    from tests.attacks.context import temporary_folder
    from tests.attacks.models import write_models

    failed = 0
    with temporary_folder() as repository:
        write_models(repository)
        for attack in chosen:
            held, line = play(attack, repository)
            failed += not held
            print(line, flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} attacks held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
