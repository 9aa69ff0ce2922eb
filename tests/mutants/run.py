"""Makes small mutants of the given sources, one at a time, and reports those that no test notices.

Usage: python3 -m tests.mutants.run core/jit server/scheduler/scheduler.cpp [--count 20] [--seed N]
"""

import argparse
import contextlib
import fcntl
import itertools
import json
import pathlib
import random
import signal
import sys
from collections.abc import Iterator

from tests.mutants.rules import NAMES
from tests.mutants.mutants import Mutant, draw, find_mutants, known_mutants, sources_of
from tests.mutants.tree import Tree
from tests.mutants.trial import Trials, Verdict

ROOT = pathlib.Path(__file__).resolve().parents[2]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="sources or folders, from the root")
    parser.add_argument("--count", type=int, default=20, help="how many mutants are tried (20)")
    parser.add_argument("--seed", type=int, default=None, help="of the draw; without it another one each time")
    parser.add_argument("--rule", action="append", choices=NAMES, help="only mutants of this rule; may be repeated")
    parser.add_argument("--mutant", action="append", help="only the mutant of this id; may be repeated")
    parser.add_argument("--list", action="store_true", help="say where the rules apply, and try nothing")
    parser.add_argument("--report", action="store_true", help="sum up all runs so far, and try nothing")
    parser.add_argument("--batch", type=int, default=20, help="mutants that are built together (20)")
    parser.add_argument("--jobs", type=int, default=1, help="compilations at once (1)")
    parser.add_argument("--runs", type=int, default=1, help="tests at once (1)")
    parser.add_argument("--limit", type=float, default=900, metavar="S", help="seconds of tests for one mutant (900)")
    parser.add_argument("--without", action="append", default=[], metavar="TEST", help="do not run this test; may be repeated")
    parser.add_argument("--preset", default="dev", help="of CMakePresets.json (dev)")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def find_all(options: argparse.Namespace) -> dict[str, list[Mutant]]:
    """The mutants of each given file or folder, filtered by the options."""
    found = {}
    for path, files in sources_of(options.root, options.paths).items():
        mutants = [mutant for file in files for mutant in find_mutants((options.root / file).read_text(), file)]
        found[path] = [s for s in mutants if (not options.rule or s.rule in options.rule)
                       and (not options.mutant or s.id in options.mutant)]
    return found


class Journal:
    """Records every verdict in a file for later reports."""

    def __init__(self, file: pathlib.Path):
        self.file = file

    def add(self, folder: str, mutant: Mutant, verdict: Verdict, diff: str) -> dict:
        entry = {"folder": folder, "id": mutant.id, "path": mutant.path, "line": mutant.line, "rule": mutant.rule,
                 "kind": verdict.kind, "by": verdict.by, "seconds": round(verdict.seconds, 1), "diff": diff}
        with self.file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return entry

    def entries(self) -> list[dict]:
        return [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []


def summary(entries: list[dict]) -> str:
    """For each folder: the number of drawn mutants, and their verdicts at the first try and since."""
    first, last = {}, {}
    for entry in entries:
        if entry["kind"] != "uncompiled":
            first.setdefault(entry["id"], entry)
            last[entry["id"]] = entry
    rows = {}
    for entry in first.values():
        for name in (entry["folder"], "all"):
            row = rows.setdefault(name, dict.fromkeys(("tried", "noticed", "sometimes", "green", "since", "marked"), 0))
            row[entry["kind"]] += 1
            row["tried"] += entry["kind"] != "marked"
            row["since"] += entry["kind"] == "green" and last[entry["id"]]["kind"] in ("noticed", "sometimes")
    lines = [f"{'folder':<24} tried noticed sometimes green  noticed since  marked by hand"]
    for name in sorted(rows, key=lambda name: (name == "all", name)):
        row = rows[name]
        share = f"{100 * (row['noticed'] + row['sometimes']) / row['tried']:.0f} %" if row["tried"] else ""
        lines.append(f"{name:<24} {row['tried']:5} {row['noticed']:7} {row['sometimes']:9} {row['green']:5}  "
                     f"{row['since']:13}  {row['marked']:14}  {share}")
    for kind, title in (("green", "No test noticed these:"), ("marked", "Marked by hand:")):
        chosen = [entry for entry in last.values() if entry["kind"] == kind]
        lines += ["", title] if chosen else []
        for entry in chosen:
            lines.append(f"\n{entry['id']} {entry['path']}:{entry['line']}, {entry['rule']}: {entry['by']}\n{entry['diff']}")
    return "\n".join(lines)


def batches(mutants: Iterator[tuple[str, Mutant]], size: int) -> Iterator[list[tuple[str, Mutant]]]:
    """Splits a draw into batches without overlapping mutants; what does not fit is in a later batch."""
    waiting = []
    while True:
        batch, others = [], []
        for item in itertools.chain(waiting, itertools.islice(mutants, size)):
            fits = len(batch) < size and not any(item[1].overlaps(other) for _, other in batch)
            (batch if fits else others).append(item)
        waiting = others
        if not batch:
            return
        yield batch


def try_all(options: argparse.Namespace, trials: Trials, journal: Journal, entries: list[dict]) -> None:
    """Draws until enough mutants were tried; `entries` has the results if it is interrupted."""
    known, tried = known_mutants(), 0
    diff_of = lambda mutant: mutant.diff(trials.tree.source(mutant.path))  # noqa: E731

    def unknown() -> Iterator[tuple[str, Mutant]]:
        for folder, mutant in draw(find_all(options), options.seed):
            if mutant.id in known and not options.mutant:
                entries.append(journal.add(folder, mutant, Verdict("marked", known[mutant.id]), diff_of(mutant)))
            else:
                yield folder, mutant

    for batch in batches(unknown(), min(options.batch, options.count)):
        if tried >= options.count:
            break
        folders = {mutant: folder for folder, mutant in batch}
        for mutant, verdict in trials.try_together(list(folders)[:options.count - tried]):
            entries.append(journal.add(folders[mutant], mutant, verdict, diff_of(mutant)))
            tried += verdict.kind != "uncompiled"
            by = "another is drawn" if verdict.kind == "uncompiled" else f"{verdict.by}, {verdict.seconds:.0f} s"
            kind = verdict.kind.upper() if verdict.kind == "green" else verdict.kind
            print(f"[{tried}/{options.count}] {kind:<10} {mutant.id} {mutant.path}:{mutant.line}  {mutant.rule}  ({by})", flush=True)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    options.root = options.root.resolve()
    folder = options.root / "build" / "mutants"
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()  # may be a link to another checkout: build folders contain their absolute path
    journal, entries = Journal(folder / "journal.jsonl"), []
    if options.report:
        print(summary(journal.entries()))
        return 0
    if not options.paths:
        raise SystemExit("which sources? See --help")
    if options.list:
        for mutants in find_all(options).values():
            for mutant in mutants:
                print(f"{mutant.id} {mutant.path}:{mutant.line}  {mutant.rule}")
        return 0
    options.seed = random.randrange(10**6) if options.seed is None else options.seed
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"{folder}: another run works there") from None
        tree = Tree(options.root, folder)
        tree.sync()
        trials = Trials(tree, options.preset, options.jobs, options.limit, set(options.without), at_once=options.runs)
        with contextlib.closing(trials), contextlib.suppress(KeyboardInterrupt):
            try_all(options, trials, journal, entries)
    print(summary(entries))
    return 1 if any(entry["kind"] == "green" for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
