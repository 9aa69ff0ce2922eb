"""The C++ program that runs archives, one request after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess


class Crash(Exception):
    """The driver ended."""


class Driver:
    def __init__(self, binary: str):
        self.binary = binary
        self.process = None
        self.pass_names = self.ask({"pass_names": True})["passes"]

    def ask(self, request: dict) -> dict:
        if self.process is None:
            self.process = subprocess.Popen([self.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"})
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            self.process = None
            raise Crash("the process hung" if -code in (signal.SIGPROF, signal.SIGALRM) else f"the process ended with {code}")
        answer = json.loads(line)
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        return answer

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


BASE_MODES = [
    {"name": "interpreted", "optimize": False, "plan": False},
    {"name": "planned", "again": True},
    {"name": "poisoned", "poison": True, "same_as": "planned", "again": True},
    {"name": "passes without plans", "plan": False},
    {"name": "plans without passes", "optimize": False},
    {"name": "2 threads", "threads": 2, "again": True, "poison": True},
    {"name": "lent", "lent": True, "same_as": "planned"},
    {"name": "plans in the background", "background": True, "again": False},
]
# Only for programs without steps.
PRECISION_MODES = [{"name": "bf16", "precision": "bf16"}, {"name": "int8", "precision": "int8"}]


def without(names) -> dict:
    return {"name": "without " + " and ".join(sorted(names)), "disabled": sorted(names), "poison": True}


def only(names, all_names) -> dict:
    return {"name": "only " + " and ".join(sorted(names)), "disabled": sorted(set(all_names) - set(names)), "poison": True}


def pass_modes(rng, at_work, all_names, count: int) -> list:
    """Modes with each pass that changes the program disabled or alone, pairs of them, and random sets; `count` of them,
    drawn."""
    at_work = sorted(set(at_work) | {"memory_plan", "in_place"})
    modes = [without([name]) for name in at_work]
    # A plan needs shapes, and passes that work on shapes do nothing without them.
    modes += [only({name, "shape_prop", "plan"}, all_names) for name in at_work] + [only({name}, all_names) for name in at_work]
    for _ in range(6):
        modes.append(without(rng.sample(at_work, min(2, len(at_work)))))
        modes.append(only(set(rng.sample(at_work, min(2, len(at_work)))) | {"inline", "shape_prop", "plan"}, all_names))
        modes.append(without([name for name in all_names if rng.random() < 0.5]))
    unique = {mode["name"]: mode for mode in modes}
    modes = list(unique.values())
    return rng.sample(modes, min(count, len(modes)))
