#!/usr/bin/env python3
"""Writes the flags of `tensord serve`, as its --help says them, into docs/configuration.md.

Usage: scripts/flag_reference.py BINARY [--check]      --check: only says whether the page is up to date
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import command_pages  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/configuration.md"
BEGIN, END = "<!-- flags: made by scripts/flag_reference.py -->", "<!-- end of flags -->"
# The first group whose pattern is found at the beginning of a flag's name has it.
GROUPS = {
    "Training": "training-",
    "Logs, traces, captured requests": "log-|trace-|capture-",
    "HTTP and metrics": "allow-http|http-|status-page|allow-metrics|metrics-",
    "TLS and access": "grpc-use-ssl|grpc-server-|grpc-root-cert|grpc-ssl-|grpc-restricted|access-tokens|allow-client-shm",
    "Limits": "grpc-max-|grpc-memory|max-queue|stream-max|model-memory|model-override|grpc-compressed",
    "gRPC": "grpc-",
    "Models": "model-|repository-|load-|allow-version|copy-archives|strict-readiness",
    "Running models": "workers|threads|share-cores|precision|plan-cache|jit-|cache-|response-cache|rate-limit",
    "The process": "",
}


def cell(text):
    text = text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
    return re.sub(r"\s+", " ", text)


def row(entry):
    kind, notes = command_pages.kind_text(entry.kind, entry.text)
    names = ", ".join(f"`{name}`" for name in entry.names)
    return f"| {names}{f' {kind}' if kind else ''} | {cell(notes)} | {cell(entry.text)} |"


def tables(binary):
    entries = command_pages.read(binary, ("serve",)).entries["Options"]
    groups = {title: [] for title in GROUPS}
    for entry in entries:
        name = next(each for each in entry.names if each.startswith("--"))[2:]
        if name != "help":
            title = next(title for title, pattern in GROUPS.items() if re.match(pattern, name))
            groups[title].append(row(entry))
    lines = []
    for title in ("Models", "Running models", "gRPC", "TLS and access", "Limits", "HTTP and metrics", "Training",
                  "Logs, traces, captured requests", "The process"):
        lines += [f"### {title}", "", "| flag | | |", "|---|---|---|", *groups[title], ""]
    return "\n".join(lines)


def main():
    binary, is_check = sys.argv[1], sys.argv[2:] == ["--check"]
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = f"{before}{BEGIN}\n\n{tables(binary)}\n{END}{after}"
    if is_check and page != made:
        sys.exit(f"{PAGE} does not have the flags of {binary}: run scripts/flag_reference.py {binary}")
    if not is_check:
        PAGE.write_text(made)


if __name__ == "__main__":
    main()
