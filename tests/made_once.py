"""Runs a module that makes test data with PyTorch, or takes what it made before.

    python3 -m tests.made_once OUTPUT MODULE [ARGUMENT…]

runs MODULE as `python3 -m` would and keeps what it wrote to OUTPUT, a file or folder, below ~/.cache/tensord_tests (or
$TENSORD_TESTS_CACHE). The next run takes that, if nothing has changed that the module depends on: the files of this
repository that it opened, the other Python files in their folders below tests/, the versions of Python and its
packages, and the processor.
"""

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import runpy
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def processor() -> str:
    """Its name and instruction sets: PyTorch's kernels differ by them."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = ("model name", "flags", "Features", "CPU part")
    return "\n".join(sorted({line for line in lines if line.startswith(names)}))


def surroundings() -> str:
    packages = sorted({f"{one.metadata['Name']} {one.version}" for one in importlib.metadata.distributions()})
    return hashlib.sha256("\n".join([sys.version, platform.machine(), processor(), *packages]).encode()).hexdigest()


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def needed(opened: set) -> list[pathlib.Path]:
    """The repository's files among those opened, without what is built, and the Python files next to them."""
    own = {path for path in opened if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")}
    own = {path for path in own if "__pycache__" not in path.parts and path.is_file()}
    folders = {path.parent for path in own} - {ROOT / "tests"}  # where nothing looks for modules
    return sorted(own | {beside for folder in folders for beside in folder.glob("*.py")})


def copy(source: pathlib.Path, target: pathlib.Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def is_current(entry: pathlib.Path) -> bool:
    """Whether what is kept there is what the module would make now."""
    try:
        made_of = json.loads((entry / "made_of.json").read_text())
    except (OSError, ValueError):
        return False
    opened = {ROOT / name for name in made_of["files"]}
    now = {str(path.relative_to(ROOT)): digest(path) for path in needed(opened)}
    return made_of == {"surroundings": surroundings(), "files": now}


def make(module: str, arguments: list[str]) -> tuple[int, set]:
    """The module's exit status, and the files that it opened or imported."""
    opened = set()

    def note(event, details):
        if event == "open" and isinstance(details[0], (str, os.PathLike)):
            opened.add(pathlib.Path(os.path.abspath(details[0])))

    sys.addaudithook(note)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code or 0
    # Of modules that were compiled before, Python opens another file.
    files = [getattr(one, "__file__", None) for one in list(sys.modules.values())]
    files += [importlib.util.find_spec(module).origin, __file__]
    return status, opened | {pathlib.Path(os.path.abspath(file)) for file in files if file}


def keep(output: pathlib.Path, opened: set, entry: pathlib.Path) -> None:
    files = {str(path.relative_to(ROOT)): digest(path) for path in needed(opened)}
    entry.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=entry.parent) as folder:
        fresh = pathlib.Path(folder) / "entry"
        fresh.mkdir()
        copy(output, fresh / "made")
        (fresh / "made_of.json").write_text(json.dumps({"surroundings": surroundings(), "files": files}))
        shutil.rmtree(entry, ignore_errors=True)
        fresh.rename(entry)


def main() -> int:
    output, module, arguments = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    others = [argument for argument in arguments if argument != sys.argv[1]]
    name = hashlib.sha256("\n".join([module, sys.executable, *others]).encode()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("TENSORD_TESTS_CACHE") or pathlib.Path.home() / ".cache/tensord_tests")
    entry = cache / f"{output.name}_{name}"
    if is_current(entry):
        copy(entry / "made", output)
        print(f"{output}: as made before ({entry})")
        return 0
    if output.is_dir():
        shutil.rmtree(output)  # what an older version made
    status, opened = make(module, arguments)
    if status == 0:
        keep(output, opened, entry)
    return status


if __name__ == "__main__":
    sys.exit(main())
