"""Calls that must fail (`error_inputs`), scripted: calls that PyTorch compiles and refuses at run time must be refused
here too."""

from __future__ import annotations

import linecache
import pathlib
import subprocess

import torch

from tests.op_db.check import TIME_LIMIT_S


class NotWritten(Exception):
    """The value has no TorchScript source form."""


def source_of(value, tensors: list) -> str:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return f"t{len(tensors) - 1}"
    if isinstance(value, float):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if type(value) in (list, tuple, torch.Size):
        return "[" + ", ".join(source_of(item, tensors) for item in value) + "]"
    raise NotWritten


def programs_of(info, sample):
    """Functions that make the call: of torch, or a method of the first tensor."""
    tensors: list = []
    first = source_of(sample.input, tensors)
    others = [source_of(item, tensors) for item in sample.args] + [f"{key}={source_of(item, tensors)}" for key, item in sample.kwargs.items()]
    parameters = ", ".join(f"t{i}: torch.Tensor" for i in range(len(tensors)))
    for call in (f"torch.{info.name}({', '.join([first, *others])})", f"{first}.{info.name}({', '.join(others)})"):
        yield f"def call({parameters}):\n    return {call}\n", tuple(tensors)


def scripted(source: str):
    file = "<error input>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict = {"torch": torch, "__name__": "samples"}
    exec(compile(source, file, "exec"), scope)  # noqa: S102: our own text
    return torch.jit.script(scope["call"])


def check_error(info, error, binary: str, folder: pathlib.Path) -> str:
    """"" if it is refused here too, "-" if PyTorch does not compile the call or accepts it, otherwise what happened."""
    try:
        written = list(programs_of(info, error.sample_input))
    except NotWritten:
        return "-"
    for source, arguments in written:
        try:
            function = scripted(source)
            function.save(str(folder / "model.pt"))
        except Exception:  # noqa: BLE001
            continue
        try:
            torch.save(arguments, str(folder / "arguments.pt"))
            function(*arguments)
            return "-"
        except Exception as refusal:  # noqa: BLE001
            said = str(refusal).strip().splitlines()[-1] if str(refusal).strip() else type(refusal).__name__
        call = f"forward,{folder}/arguments.pt,{folder}/result.pt"
        done = subprocess.run([binary, "run", folder / "model.pt", "--call", call], capture_output=True, text=True, timeout=TIME_LIMIT_S)
        if done.returncode == 0:
            return f"is taken, where PyTorch says: {said}"
        return "" if 0 < done.returncode < 128 else f"exit {done.returncode}, where PyTorch says: {said}"
    return "-"


def check_errors(info, binary: str, folder: pathlib.Path) -> list:
    if not info.error_inputs_func:
        return []
    results = [check_error(info, error, binary, folder) for error in info.error_inputs("cpu")]
    return [result for result in results if result != "-"]
