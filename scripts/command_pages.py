#!/usr/bin/env python3
"""Writes man pages and shell completions of tensord from its --help.

Usage: scripts/command_pages.py BINARY FOLDER
Makes FOLDER/man/tensord*.1 and FOLDER/{bash/tensord,zsh/_tensord,fish/tensord.fish}.
"""

import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, field

TEXT_COLUMN = 30
SIZE = re.compile(r"UINT:SIZE \[.*?\]")
PARAMETERS = "Parameters of config.pbtxt"
SECTIONS = ("Positionals", "Options", "Subcommands", PARAMETERS)
TEXTS = ("Examples", "Exit codes", "Notes")  # sections without entries
LIMITS = {"NONNEGATIVE": "0 or more", "POSITIVE": "above 0"}


@dataclass
class Entry:
    """A line of --help: an option, a positional or a subcommand."""

    names: list
    kind: str  # "TEXT:{f32,bf16}=f32", empty for flags
    description: str = ""

    @property
    def choices(self):
        found = re.search(r"\{([^}]*)\}", self.kind)
        if found:
            return found.group(1).split(",")
        return ["true", "false"] if self.kind.startswith("BOOLEAN") else []


@dataclass
class Command:
    path: tuple  # ("models", "label")
    about: str
    usage: str
    entries: dict = field(default_factory=dict)  # section → [Entry]
    commands: list = field(default_factory=list)
    sections: dict = field(default_factory=dict)  # "Examples" → lines

    @property
    def title(self):
        return "-".join(("tensord", *self.path))

    def all(self):
        yield self
        for command in self.commands:
            yield from command.all()


def parse(path, help_output):
    about, _, rest = help_output.partition("Usage:")
    usage, _, rest = rest.partition("\n")
    command = Command(path, " ".join(about.split()), usage.strip())
    section = None
    lines = rest.splitlines() + [""]
    for line, following in zip(lines, lines[1:]):
        heading = re.fullmatch(r"(\S.*):", line)
        if heading:
            section = heading.group(1)
            if section in TEXTS:
                command.sections[section] = []
                continue
            # Groups of options count as options.
            section = section if section in SECTIONS else "Options"
            command.entries.setdefault(section, [])
        elif section in TEXTS:
            command.sections[section].append(line)
        elif re.match(r"  \S", line):
            # Descriptions start at a fixed column, in the next line if the names are too long.
            width = len(line) if following.startswith(" " * TEXT_COLUMN) else TEXT_COLUMN
            names, _, kind = line[:width].strip().partition(" ")
            command.entries[section].append(Entry(names.split(","), SIZE.sub("SIZE", kind), line[width:].strip()))
        elif line.strip():
            entry = command.entries[section][-1]
            entry.description = f"{entry.description} {line.strip()}".strip()
    return command


def read(binary, path=()):
    result = subprocess.run([binary, *path, "--help"], capture_output=True, text=True, check=True)
    command = parse(path, result.stdout)
    for entry in command.entries.get("Subcommands", []):
        command.commands.append(read(binary, (*path, entry.names[0])))
    return command


# -- Man pages --

def roff(value):
    value = value.replace("\\", r"\e").replace("-", r"\-").replace("…", "...")
    return "\\&" + value if value.startswith((".", "'")) else value


def kind_and_notes(kind, description):
    """"TEXT:{f32,bf16}=f32" → what stands behind the option, and what else is to be said."""
    kind, is_required = re.subn(r"\s*REQUIRED\b", "", kind)
    kind, is_repeated = re.subn(r"\s*\.\.\.", "", kind)
    variable = re.search(r"\s*\(Env:(\w+)\)", kind)
    kind = kind.replace(variable.group(0), "") if variable else kind
    # The rest of the line names other options.
    kind, _, excluded = kind.partition("Excludes: ")
    kind, _, needed = kind.partition("Needs: ")
    kind, _, default = kind.strip().partition("=")
    notes = []
    limits = re.search(r":(.*)$", kind)
    if limits:
        kind = kind[:limits.start()]
        inside = limits.group(1)
        notes.append("one of " + ", ".join(inside[1:-1].split(",")) if inside.startswith("{") else LIMITS.get(inside, inside))
    notes += [f"with {' '.join(needed.split())}"] * bool(needed) + [f"not with {', '.join(excluded.split())}"] * bool(excluded)
    notes += [f"default {default}"] * bool(default) + ["required"] * bool(is_required)
    notes += [f"or the variable {variable.group(1)}"] if variable else []
    notes += ["may be repeated"] * (bool(is_repeated) and "repeated" not in description and "several times" not in description)
    return kind, "; ".join(notes)


def man_page(command, version):
    name = command.title
    usage = re.sub(r"^tensord\s*", "", command.usage)
    lines = [f'.TH {name.upper().replace("-", chr(92) + "-")} 1 "" "{version}" "User Commands"', ".SH NAME",
             f"{roff(name)} \\- {roff(command.about.rstrip('.'))}", ".SH SYNOPSIS", f".B tensord\n{roff(usage)}"]
    for section, entries in command.entries.items():
        lines.append(f".SH {'COMMANDS' if section == 'Subcommands' else section.upper()}")
        for entry in entries:
            kind, notes = kind_and_notes(entry.kind, entry.description)
            names = ", ".join(f"\\fB{roff(each)}\\fR" for each in entry.names)
            lines += [".TP", f"{names} \\fI{roff(kind)}\\fR" if kind else names]
            lines.append(roff(entry.description + (f" ({notes})" if notes else "") or entry.names[0]))
    if command.path == ("serve",):
        lines += [".SH SIGNALS", ".TP", r"\fBSIGTERM\fR, \fBSIGINT\fR",
                  roff("Not ready any more; requests under way are answered within --exit-timeout-secs; exit code 0."),
                  ".TP", r"\fBSIGHUP\fR", roff("In mode poll: looks at the model repository at once.")]
    if notes := command.sections.get("Notes"):
        lines += [".SH NOTES", *(roff(line.strip()) for line in notes if line.strip())]
    if examples := command.sections.get("Examples"):
        lines += [".SH EXAMPLES", ".nf", *(roff(line.strip()).replace("'", r"\(aq") for line in examples if line.strip()), ".fi"]
    lines += [".SH EXIT STATUS", roff("0: it went well. 1: it did not, and one line on stderr says why. 2: the command line, "
                                      "or what it asks for, is wrong. 3: the server cannot be reached, or did not answer "
                                      "in time.")]
    others = [f"tensord-{each.path[-1]}" if len(each.path) == 1 else each.title for each in command.commands]
    others += ["-".join(("tensord", *command.path[:-1]))] if command.path else []
    if others:
        lines += [".SH SEE ALSO", ",\n".join(f".BR {roff(each)} (1)" for each in others)]
    return "\n".join(lines) + "\n"


# -- Completions --

def options(command):
    return [name for entry in command.entries.get("Options", []) for name in entry.names]


def bash_completion(root):
    lines = ["# bash completion of tensord; made by scripts/command_pages.py", "_tensord() {",
             "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words=",
             '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do', '    case "$path $word" in']
    for command in root.all():
        if command.path:
            parent = " ".join(command.path[:-1])
            lines.append(f'      "{parent} {command.path[-1]}") path="{" ".join(command.path)}" ;;')
    lines += ["    esac", "  done", '  case "$path:$previous" in']
    for command in root.all():
        for entry in command.entries.get("Options", []):
            if entry.choices:
                patterns = "|".join(f'"{" ".join(command.path)}:{name}"' for name in entry.names)
                choices = " ".join(entry.choices)
                lines.append(f'    {patterns}) COMPREPLY=($(compgen -W "{choices}" -- "$current")); return ;;')
    lines += ["  esac", '  case "$path" in']
    for command in root.all():
        names = [each.path[-1] for each in command.commands]
        lines.append(f'    "{" ".join(command.path)}") words="{" ".join(names + options(command))}" ;;')
    lines += ["  esac", '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
              "  # Nothing of tensord's: a file.", "  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default", "}",
              "complete -F _tensord tensord"]
    return "\n".join(lines) + "\n"


def zsh_quoted(value):
    return re.sub(r"([\[\]:'\\])", r"\\\1", value).replace(r"\'", "'\\''")


def zsh_function(command):
    name = "_" + command.title.replace("-", "_")
    lines = [f"{name}() {{"]
    if command.commands:
        lines += ["  local context state line", "  local -a commands=("]
        lines += [f"    '{each.path[-1]}:{zsh_quoted(each.about)}'" for each in command.commands] + ["  )"]
    lines.append("  _arguments -C \\")
    for entry in command.entries.get("Options", []):
        value = f":value:({' '.join(entry.choices)})" if entry.choices else ":value:_files" if entry.kind else ""
        for option in entry.names:
            repeat = "*" if "..." in entry.kind else ""
            lines.append(f"    '{repeat}{option}[{zsh_quoted(entry.description)}]{value}' \\")
    if command.commands:
        lines += ["    '1:command:->command' '*::argument:->arguments'", "  case $state in",
                  "    command) _describe command commands ;;", "    arguments)", "      case $words[1] in"]
        lines += [f"        {each.path[-1]}) _{each.title.replace('-', '_')} ;;" for each in command.commands]
        lines += ["      esac ;;", "  esac"]
    else:
        lines.append("    '*:file:_files'")
    return "\n".join(lines + ["}"])


def zsh_completion(root):
    functions = "\n".join(zsh_function(command) for command in root.all())
    return f"#compdef tensord\n# made by scripts/command_pages.py\n{functions}\n_tensord \"$@\"\n"


def fish_completion(root):
    def quoted(value):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = ["# fish completion of tensord; made by scripts/command_pages.py"]
    for command in root.all():
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.path)
        names = " ".join(each.path[-1] for each in command.commands)
        alone = f"not __fish_seen_subcommand_from {names}" if names else ""
        where = "; and ".join(part for part in (seen, alone) if part)
        condition = f" -n {quoted(where)}" if where else ""
        for each in command.commands:
            lines.append(f"complete -c tensord{condition} -f -a {each.path[-1]} -d {quoted(each.about)}")
        for entry in command.entries.get("Options", []):
            flags = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in entry.names)
            value = f" -x -a {quoted(' '.join(entry.choices))}" if entry.choices else " -r" if entry.kind else ""
            lines.append(f"complete -c tensord{condition}{flags}{value} -d {quoted(entry.description)}")
    return "\n".join(lines) + "\n"


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    root = read(binary)
    files = {f"man/{command.title}.1": man_page(command, version) for command in root.all()}
    files |= {"bash/tensord": bash_completion(root), "zsh/_tensord": zsh_completion(root),
              "fish/tensord.fish": fish_completion(root)}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    main()
