"""The compile command of each source of a build folder, where several sources may be compiled as one unit (cmake/unity.cmake):

    python3 tests/compile_commands.py build/dev

writes build/dev/each_source/compile_commands.json, for tools that look at one source, and prints its folder.
"""

import json
import pathlib
import re
import sys

OF_UNITS = " -Wno-subobject-linkage"  # Clang does not know it, and single sources do not need it
# GCC's files of precompiled headers are no help to other tools, and a source alone shows that it includes what it uses.
PRECOMPILED = re.compile(r" -Winvalid-pch| -fpch-preprocess| -include \S*/cmake_pch\.hxx")
INCLUDE = re.compile(r'^#include "(/[^"]+)"', re.MULTILINE)


def members(unit: str) -> list[str]:
    """The sources that a unity file of CMake compiles together; none for any other file."""
    path = pathlib.Path(unit)
    return INCLUDE.findall(path.read_text()) if path.parent.name == "Unity" else []


def units(build: pathlib.Path) -> list[tuple[dict, list[str]]]:
    """Entries as they are compiled, without precompiled headers, with the sources in each."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return [({**entry, "command": PRECOMPILED.sub("", entry["command"])}, members(entry["file"]) or [entry["file"]])
            for entry in entries if not entry["file"].endswith("/cmake_pch.hxx.cxx")]


def sources(build: pathlib.Path) -> list[dict]:
    """An entry for each source, as if it were compiled alone."""
    return [{**entry, "command": entry["command"].replace(entry["file"], source).replace(OF_UNITS, ""), "file": source}
            for entry, found in units(build) for source in found]


def main() -> None:
    build = pathlib.Path(sys.argv[1])
    folder = build / "each_source"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(sources(build), indent=1))
    print(folder)


if __name__ == "__main__":
    main()
