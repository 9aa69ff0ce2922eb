"""Writes an archive for each row of the language suite, with PyTorch's results.

Usage: python3 -m tests.language.make_cases OUTPUT_FOLDER [SECTION ...]
"""

import contextlib
import importlib
import inspect
import os
import pathlib
import sys
import tempfile
import warnings
import zipfile

import torch

from tests.language.case import Case, version
from tests.language.explain import refused_parts
from tests.script.program import record_of

SECTIONS = ["literals", "expressions", "statements", "refinement", "classes", "tuples_and_enums", "modules", "interfaces", "builtins", "calls", "versions",
            "decoding", "tensor_programs", "module_programs", "script_programs", "traced_programs", "index_programs", "nn_modules", "caches"]


@contextlib.contextmanager
def printed(into: list):
    """Captures standard output, including that of PyTorch's C++ side."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            into.append(file.read().decode())


def set_version(path: pathlib.Path, version: int) -> None:
    """Makes the archive look as if an older PyTorch had written it."""
    with zipfile.ZipFile(path) as old:
        entries = [(entry.filename, old.read(entry)) for entry in old.infolist()]
    with zipfile.ZipFile(path, "w") as new:
        for name, data in entries:
            new.writestr(name, f"{version}\n" if name.endswith("version") and ".format" not in name else data)


def write(section: str, case: Case, folder: pathlib.Path) -> str:
    """"" if it was written, otherwise why PyTorch does not script it."""
    path = folder / f"{section}_{case.name}.pt"
    try:
        subject = case.make()
        scripted = subject if isinstance(subject, (torch.jit.ScriptModule, torch.jit.ScriptFunction)) else torch.jit.script(subject)
        if case.lite:
            scripted._save_for_lite_interpreter(str(path))
        else:
            scripted.save(str(path))
        if case.version:
            set_version(path, case.version)
        loaded = torch.jit.load(str(path))
    except Exception as error:  # noqa: BLE001: whatever it says, it is not a row
        path.unlink(missing_ok=True)
        return str(error).strip() or type(error).__name__
    runs = []
    for call in case.calls * 2:  # a second time, with what the first has changed
        named = len(call) == 2 and isinstance(call[0], str) and isinstance(call[1], tuple) and hasattr(loaded, call[0])
        name, arguments = call if named else ("forward", call)
        statements = []
        with printed(statements), torch.set_grad_enabled(case.grad):
            records = record_of(getattr(loaded, name), arguments)
        for record in records:
            record["says"] = record["error"][record["error"].find("user: "):] if "user: " in record["error"] else ""
            record["printed"] = statements[0]
        runs.append({"name": name, "calls": records, "rounds": 1, "grad": case.grad, "rtol": case.rtol})
    torch.save(runs, path.with_suffix(".calls"))
    return ""


def made_or_none(case: Case):
    try:
        return case.make()
    except Exception:  # noqa: BLE001: its text is the complaint
        return None


def main() -> int:
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder, wanted = pathlib.Path(arguments[0]), arguments[1:]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = 0
    for name in wanted or SECTIONS:
        cases = [c for c in importlib.import_module(f"tests.language.sections.{name}").section.cases if c.since <= version() < c.before]
        complaints = [(case, write(name, case, folder)) for case in cases]
        refused = [(case, complaint) for case, complaint in complaints if complaint]
        failed += len(refused)
        print(f"{name}: {len(cases) - len(refused)} rows written, {len(refused)} refused by PyTorch {torch.__version__}")
        for case, complaint in refused:
            subject = made_or_none(case)
            parts = refused_parts(subject) if inspect.isfunction(subject) else []
            print(f"--- {name}.{case.name}: {'' if parts else complaint[:600]}")
            for part, why in parts:
                print(f"      {part}: {why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
