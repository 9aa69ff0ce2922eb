#!/usr/bin/env python3
"""Writes the output of `tensord … --help` into the pages of docs/: flags of serve and parameters of config.pbtxt into
configuration.md, all other commands into commands.md; and optimizers with their options into training.md.

Usage: scripts/flag_reference.py BINARY [--check]      --check: only says whether the pages are up to date
"""

import json
import pathlib
import re
import subprocess
import sys
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import command_pages  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
# The first group whose pattern matches the beginning of a flag's name.
GROUPS = {
    "Training": "training-",
    "Logs, traces, captured requests": "log-|trace-|capture-",
    "HTTP and metrics": "allow-http|http-|status-page|allow-metrics|metrics-",
    "TLS and access": "grpc-use-ssl|grpc-server-|grpc-root-cert|grpc-ssl-|grpc-restricted|access-tokens|allow-client-shm",
    "Limits": "client-memory|grpc-max-|grpc-memory|max-queue|stream-max|model-memory|model-override|grpc-compressed",
    "gRPC": "grpc-",
    "Models": "model-|repository-|load-|allow-version|copy-archives|strict-readiness",
    "Running models": "workers|threads|share-cores|precision|plan-cache|jit-|cache-|response-cache|rate-limit|host-policy",
    "The process": "",
}
ORDER = ("Models", "Running models", "gRPC", "TLS and access", "Limits", "HTTP and metrics", "Training",
         "Logs, traces, captured requests", "The process")
# Runs the examples of --help.
EXAMPLES_TEST = "tests/e2e/help_examples_test.py"
# Options of this many commands are described once.
SHARED_BY = 3


def cell(value):
    value = value.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"\s+", " ", value)


def row(entry):
    kind, notes = command_pages.kind_and_notes(entry.kind, entry.description)
    names = ", ".join(f"`{name}`" for name in entry.names)
    return f"| {names}{f' {kind}' if kind else ''} | {cell(notes)} | {cell(entry.description)} |"


def table(rows, heading=" "):
    return [f"|{heading}| | |", "|---|---|---|", *rows, ""]


def options(command):
    return [entry for entry in command.entries.get("Options", []) if "--help" not in entry.names]


# -- configuration.md --

def flags(root):
    """The flags of serve, by group."""
    serve = next(command for command in root.commands if command.path == ("serve",))
    groups = {title: [] for title in GROUPS}
    for entry in options(serve):
        name = next(each for each in entry.names if each.startswith("--"))[2:]
        title = next(title for title, pattern in GROUPS.items() if re.match(pattern, name))
        groups[title].append(row(entry))
    return [line for title in ORDER for line in (f"### {title}", "", *table(groups[title], " flag "))]


def parameters(root):
    serve = next(command for command in root.commands if command.path == ("serve",))
    rows = [f"| `{entry.names[0]}` | {cell(entry.description)} |" for entry in serve.entries[command_pages.PARAMETERS]]
    return ["| key | |", "|---|---|", *rows, ""]


# -- commands.md --

def described(command, shared):
    """A command with its arguments; its subcommands are described after it."""
    lines = [f"### tensord {' '.join(command.path)}", "", command.about, "", f"`{command.usage}`", ""]
    entries = command.entries.get("Positionals", []) + options(command)
    own = [row(entry) for entry in entries if row(entry) not in shared]
    if own:
        lines += table(own)
    others = ", ".join(f"`{entry.names[-1]}`" for entry in entries if row(entry) in shared)
    if others:
        lines += [f"And [as others](#options-that-many-commands-have): {others}.", ""]
    if said := [line.strip() for line in command.sections.get("Notes", []) if line.strip()]:
        lines += [*said, ""]
    if examples := [line.strip() for line in command.sections.get("Examples", []) if line.strip()]:
        lines += [f"<!-- run by {EXAMPLES_TEST} -->", "```text", *examples, "```", ""]
    return lines


def commands(root):
    every = [command for command in root.all() if command.path and command.path != ("serve",)]
    counts = Counter(row(entry) for command in every for entry in options(command))
    shared = [each for each, count in counts.items() if count >= SHARED_BY]
    lines = [line for command in every for line in described(command, shared)]
    return lines + (["### Options that many commands have", "", *table(shared)] if shared else [])


# -- training.md --

def optimizers(root):
    """A row for each option, with its optimizers and its meaning for them."""
    printed = subprocess.run([root.binary, "train", "--list-optimizers", "--json"], check=True, capture_output=True)
    options = {}
    for optimizer in json.loads(printed.stdout):
        for option in optimizer["options"]:
            options.setdefault(option["name"], []).append((optimizer["name"], option))
    rows = []
    for name, owners in options.items():
        defaults = {}
        for optimizer, option in owners:
            defaults.setdefault(option["default"], []).append(optimizer)
        shown = [value if len(defaults) == 1 else f"{value} ({', '.join(of)})" for value, of in defaults.items()]
        option = owners[0][1]
        rows.append(f"| `{name}` | {', '.join(optimizer for optimizer, _ in owners)} | {', '.join(shown)} "
                    f"| {option['range']} | {cell(option['text'])} |")
    return ["| option | of | default | range | |", "|---|---|---|---|---|", *rows, ""]


# Page, name of the generated part, its generator.
PARTS = (("configuration.md", "parameters", parameters), ("configuration.md", "flags", flags),
         ("commands.md", "commands", commands), ("training.md", "optimizers", optimizers))


def replaced(page, name, lines):
    begin, end = f"<!-- {name}: made by scripts/flag_reference.py -->", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        sys.exit(f"scripts/flag_reference.py: a page has lost its lines '{begin}' and '{end}'")
    return "\n".join([before + begin, "", *lines, end]) + after


def main():
    binary, is_check = sys.argv[1], sys.argv[2:] == ["--check"]
    root = command_pages.read(binary)
    root.binary = binary
    for name in dict.fromkeys(page for page, _, _ in PARTS):
        path = DOCS / name
        page_source = before = path.read_text()
        for page, part, make in PARTS:
            if page == name:
                page_source = replaced(page_source, part, make(root))
        if is_check and page_source != before:
            sys.exit(f"docs/{name} does not have what {binary} --help says: run scripts/flag_reference.py {binary}")
        if not is_check:
            path.write_text(page_source)


if __name__ == "__main__":
    main()
