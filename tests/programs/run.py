"""Random TorchScript programs in every way that tensord may run them, against PyTorch and against one another.

Usage: /usr/bin/python3 -m tests.programs.run --driver build/dev/tests/program_driver [--seed N] [--count N] [--seconds N] [--jobs N]

What differs is cut down to the smallest program that still does, and printed with the way of running and the passes that it takes.
Exit status 1 when anything differed, or when so few programs could be compared that the run says nothing.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch

from tests.e2e.models.bisect_passes import culprits
from tests.programs.apart import Died, apart
from tests.programs.driver import BASE_MODES, PRECISION_MODES, Crash, Driver, pass_modes
from tests.programs.generate import build
from tests.programs.known import has_steps, is_refusal, known_difference
from tests.programs.reduce import reduced
from tests.programs.reference import Unusable, write

# A worker runs this many programs, then ends, and reports its findings.
PROGRAMS_OF_WORKER = 400
MODES_OF_PASSES = 14
# Of generated programs: the minimum that can be compared, and the maximum that is refused or differs in known ways; the
# maximum of leaves that are not compared.
LEAST_COMPARED, MOST_REFUSED, MOST_KNOWN, MOST_OPEN = 0.6, 0.1, 0.15, 0.1
# The maximum that may crash PyTorch.
MOST_DIED = 0.02


class Examiner:
    """Runs programs through a driver."""

    def __init__(self, binary: str, folder: str):
        self.driver = Driver(binary)
        self.folder = folder

    def problems(self, written: dict, modes: list) -> tuple:
        """([problem], effective passes, runs)."""
        request = {"archive": written["archive"], "calls": written["calls"], "modes": modes}
        try:
            answer = self.driver.ask(request)
        except Crash as crash:
            return self._crash(request, modes, str(crash)), [], len(modes)
        return answer["problems"], answer["passes"], answer["runs"]

    def _crash(self, request: dict, modes: list, message: str) -> list:
        for mode in modes:
            alone = {key: value for key, value in mode.items() if key != "same_as"}
            try:
                self.driver.ask({**request, "modes": [alone]})
            except Crash as crash:
                return [{"mode": mode["name"], "kind": "crash", "text": str(crash)}]
        return [{"mode": modes[0]["name"], "kind": "crash", "text": message + " (not again with one mode alone)"}]

    def write(self, program, name: str = "program", is_careful: bool = False) -> dict:
        """`write` in a process of its own. Raises Unusable and Died."""
        return apart(write, program, self.folder, name, is_careful, expected=(Unusable,))

    def proven(self, program, found: list, modes: list, name: str) -> list:
        """The problems in `found` that remain when other rounding is considered."""
        if not any(problem["kind"] == "wrong" for problem in found):
            return found
        affected = {problem["mode"] for problem in found}
        affected |= {mode.get("same_as") for mode in modes if mode["name"] in affected}
        return self.problems(self.write(program, name, True), [mode for mode in modes if mode["name"] in affected])[0]

    def examine(self, program, seed: int) -> tuple:
        """(result of `write`, [(problem, mode)], runs). Raises Unusable and Died."""
        written = self.write(program)
        modes = BASE_MODES + ([] if has_steps(program) else PRECISION_MODES)
        found, at_work, runs = self.problems(written, modes)
        if not any(problem["kind"] in ("crash", "refused") for problem in found):
            more = pass_modes(random.Random(seed), at_work, self.driver.pass_names, MODES_OF_PASSES)
            further, _, more_runs = self.problems(written, more)
            found, runs, modes = found + further, runs + more_runs, modes + more
        by_name = {mode["name"]: mode for mode in modes}
        return written, [(problem, by_name[problem["mode"]]) for problem in self.proven(program, found, modes, "careful")], runs

    def fails_alike(self, program, problem: dict, mode: dict) -> bool:
        # With the planned mode beside it, which distinguishes errors of dead code.
        modes = [mode] if mode["name"] == "planned" else [known for known in BASE_MODES if known["name"] == "planned"] + [mode]
        try:
            found, _, _ = self.problems(self.write(program, "smaller"), modes)
            if mode.get("precision") and has_steps(program):
                return False
            alike = [other for other in found if other["kind"] == problem["kind"] and other["mode"] == mode["name"]]
            return any(not known_difference(other, mode, found) and other in self.proven(program, found, modes, "careful") for other in alike)
        except (Unusable, Died):
            return False

    def culprits(self, program, problem: dict, mode: dict) -> list:
        """(pass, its first wrong change) for passes without which everything is correct."""
        written = self.write(program, "smaller", True)

        def is_good(flags) -> bool:
            altered = dict(mode)
            altered["disabled"] = mode.get("disabled", []) + [value for flag, value in zip(flags[::2], flags[1::2]) if flag == "--jit-disable"]
            altered["limits"] = [value for flag, value in zip(flags[::2], flags[1::2]) if flag == "--jit-limit"]
            altered.pop("same_as", None)
            return not self.problems(written, [altered])[0]

        if is_good([]) or not mode.get("optimize", True):
            return []
        return culprits([name for name in self.driver.pass_names if name not in mode.get("disabled", [])], is_good)


def shown(program, problem: dict, found: list) -> str:
    lines = [f"==== seed {program.seed}, {problem['mode']}: {problem['kind']}: {problem['text']}"]
    lines += [f"pass {name}, change {change}" for name, change in found]
    lines.append(program.source().split("from tests.programs.program import filled, seeded\n", 1)[1].strip())
    lines += ["traced" if program.is_traced else "frozen" if program.is_frozen else "scripted"]
    for name, arguments in program.calls:
        lines.append(f"{name}(" + ", ".join(map(str, arguments)) + ")")
    return "\n".join(lines)


def work(options) -> int:
    """One worker's share; prints a JSON line with its counts at the end."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    counts, rules, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        examiner = Examiner(options.driver, folder)
        for seed in range(options.seed, options.seed + options.count):
            if time.monotonic() > end:
                break
            counts["made"] += 1
            try:
                program = apart(build, seed)
                written, problems, runs = examiner.examine(program, seed)
            except (Unusable, Died) as error:
                counts["unusable" if isinstance(error, Unusable) else "reference died"] += 1
                continue
            counts.update(leaves=written["leaves"], open=written["open"], runs=runs, errors=written["error"])
            everything = [problem for problem, _ in problems]
            fresh = [(problem, mode) for problem, mode in problems if not known_difference(problem, mode, everything)]
            refusals = [problem["text"] for problem in everything if is_refusal(problem)]
            if refusals:
                counts["refused"] += 1
                reasons[re.sub(r" \(code/.*|^.*?:\d+: |call \d+: ", "", refusals[0]).split("\n")[0]] += 1
            elif problems and not fresh:
                counts["known"] += 1
            else:
                counts["compared"] += 1
            rules.update(program.rules)
            if fresh:
                counts["different"] += 1
                print(report(examiner, program, *fresh[0]) if options.reduce else shown(program, fresh[0][0], []), flush=True)
        examiner.driver.close()
    print(json.dumps({"counts": counts, "rules": rules, "refusals": reasons}), flush=True)
    return 0


def report(examiner: Examiner, program, problem: dict, mode: dict) -> str:
    smallest = reduced(program, lambda smaller: examiner.fails_alike(smaller, problem, mode))
    if examiner.fails_alike(smallest, problem, mode):
        found = [other for other in examiner.problems(examiner.write(smallest, "smaller", True), [{k: v for k, v in mode.items() if k != "same_as"}])[0]]
        problem = found[0] if found else problem
    try:
        return shown(smallest, problem, examiner.culprits(smallest, problem, mode))
    except (Unusable, Died):  # PyTorch may time out or crash on the reduced program
        return shown(smallest, problem, [])


def judge(counts: collections.Counter) -> list:
    """Reasons why the whole run proves nothing, though nothing differed."""
    made, usable = max(counts["made"], 1), max(counts["made"] - counts["unusable"] - counts["reference died"], 1)
    shares = [("compared", counts["compared"] + counts["different"] >= LEAST_COMPARED * made, f"at least {LEAST_COMPARED} of all"),
              ("refused", counts["refused"] <= MOST_REFUSED * usable, f"at most {MOST_REFUSED}"),
              ("known", counts["known"] <= MOST_KNOWN * usable, f"at most {MOST_KNOWN}"),
              ("reference died", counts["reference died"] <= max(1, MOST_DIED * made), f"at most {MOST_DIED} of all"),
              ("open", counts["open"] <= MOST_OPEN * max(counts["leaves"], 1), f"at most {MOST_OPEN} of the leaves")]
    return [f"{name}: {counts[name]}, {bound} expected" for name, is_well, bound in shares if not is_well]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default=os.environ.get("TENSORD_PROGRAM_DRIVER"), required="TENSORD_PROGRAM_DRIVER" not in os.environ)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    return supervise(options)


def supervise(options) -> int:
    counts, rules, reasons, running = collections.Counter(), collections.Counter(), collections.Counter(), []
    next_seed, last_seed = options.seed, options.seed + options.count
    share = max(1, min(PROGRAMS_OF_WORKER, -(-options.count // options.jobs)))
    end = time.monotonic() + options.seconds

    def start():
        nonlocal next_seed
        count = min(share, last_seed - next_seed)
        command = [sys.executable, "-m", "tests.programs.run", "--worker", "--driver", options.driver, "--seed", str(next_seed), "--count", str(count),
                   "--seconds", str(max(end - time.monotonic(), 0))] + ([] if options.reduce else ["--no-reduce"])
        next_seed += count
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    failed = False
    while running or (next_seed < last_seed and time.monotonic() < end):
        while len(running) < options.jobs and next_seed < last_seed and time.monotonic() < end:
            start()
        worker = running.pop(0)
        output, _ = worker.communicate()
        lines = output.rstrip("\n").split("\n")
        try:
            result = json.loads(lines[-1])
            counts.update(result["counts"])
            rules.update(result["rules"])
            reasons.update(result["refusals"])
            output_so_far = "\n".join(lines[:-1])
        except ValueError:
            failed, output_so_far = True, output + f"\na worker ended with {worker.returncode}"
        if output_so_far:
            print(output_so_far, flush=True)
    print(f"{dict(counts)}\nrules: {dict(rules.most_common())}\nrefused: {dict(reasons.most_common(20))}", flush=True)
    flaws = judge(counts)
    print("\n".join(flaws))
    return 1 if failed or counts["different"] or flaws else 0


if __name__ == "__main__":
    sys.exit(main())
