"""Programs of the script tests: TorchScript source, the arguments to call it with, and PyTorch's results."""

from __future__ import annotations

import copy
import dataclasses
import io
import linecache
import textwrap
from typing import Any

import torch

from tests.script import types


@dataclasses.dataclass
class Program:
    name: str  # one word, unique in its group
    parameters: str  # "l: List[int], i: int"
    body: str
    calls: list  # of argument tuples

    def source(self) -> str:
        comma = ", " if self.parameters else ""
        return f"def {self.name}(self{comma}{self.parameters}):\n{textwrap.indent(textwrap.dedent(self.body).strip(), '  ')}\n"


def program(name: str, parameters: str, body: str, *calls: tuple) -> Program:
    return Program(name, parameters, body, list(calls))


def _function(one: Program):
    """The program as a Python function whose source PyTorch can find."""
    file = f"<script {one.name}>"
    source_of_one = one.source()
    linecache.cache[file] = (len(source_of_one), None, source_of_one.splitlines(keepends=True), file)
    scope = dict(vars(types))
    exec(compile(source_of_one, file, "exec"), scope)  # noqa: S102: our own text
    return torch.jit.export(scope[one.name])


def _module(name: str, programs: list[Program]):
    return torch.jit.script(type(name, (types.Base,), {one.name: _function(one) for one in programs})())


def _saved(module) -> torch.jit.ScriptModule:
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def _message(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "Error: " in line or "Exception: " in line]
    return lines[-1] if lines else str(error)[:200] or type(error).__name__


def _plain(value: Any) -> Any:
    """Without NamedTuples and lazy tensors, which torch.save files cannot contain."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized:
        return value.resolve_conj().resolve_neg()  # PyTorch 1.13 saves neither mark
    return value


def record_of(method, arguments: tuple) -> list:
    """[the call and its result], or [] where Python cannot hold the result: a text of half a character.

    `says` is what the error must end with, `printed` what must be printed.
    """
    record = {"args": copy.deepcopy(list(arguments)), "error": "", "result": None, "says": "", "printed": ""}
    try:
        record["result"] = _plain(method(*copy.deepcopy(arguments)))
    except UnicodeDecodeError:
        return []
    except Exception as error:  # noqa: BLE001: whatever PyTorch refuses must be refused
        record["error"] = _message(error)
    return [record]


def compiled_alone(one: Program) -> str:
    """"" if PyTorch compiles and saves the program, otherwise its error."""
    try:
        _saved(_module("Alone", [one]))
    except Exception as error:  # noqa: BLE001
        return str(error).strip()
    return ""


def write_group(name: str, programs: list[Program], folder) -> tuple[int, list]:
    """Writes NAME.pt, the archive, and NAME.calls: for each program its calls and PyTorch's results of the saved
    archive."""
    refused, taken = [], []
    for one in programs:
        complaint = compiled_alone(one)
        if complaint:
            refused.append((one, complaint))
            continue
        taken.append(one)
    path = folder / f"{name}.pt"
    _module(f"Group_{name}", taken).save(str(path))
    loaded = torch.jit.load(str(path))
    rounds = 1 if name.endswith("state") else 2  # changes made by calls would be repeated
    records = [{"name": one.name, "rounds": rounds, "grad": False, "rtol": 0.0, "calls": [record for call in one.calls for record in record_of(getattr(loaded, one.name), call)]}
               for one in taken]
    torch.save(records, folder / f"{name}.calls")
    return sum(len(record["calls"]) for record in records), refused
