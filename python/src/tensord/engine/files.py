"""Loading and saving models and values."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from tensord.engine import _engine
from tensord.engine._engine import Tensor


def load(path, *, trainable: bool = False, optimize: bool = True) -> Any:
    """Loads a model (TorchScript archive, exported program, ONNX …) as a callable, values written by torch.save or
    `save`, or the tensors of a .safetensors file by name. `path` may be an open binary file.

    `trainable`: the model's parameters can be trained. Otherwise they may be mapped from the file, and calls are not
    recorded for autograd.
    """
    if hasattr(path, "read"):
        import shutil
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            copied = os.path.join(folder, "file")
            with open(copied, "wb") as file:
                shutil.copyfileobj(path, file)
            return load(copied, trainable=trainable, optimize=optimize)
    path = os.fspath(path)
    with open(path, "rb"):  # raises Python's own errors for missing or unreadable files
        pass
    if path.endswith(".safetensors"):
        return _engine._load_safetensors(path)
    if _is_torch_file(path):
        return _engine._load_torch_file(path)
    from tensord.engine._script_module import load_module

    return load_module(path, trainable, optimize)


def save(value, path) -> None:
    """Writes numbers, strings, tensors, and lists, tuples and dicts of them as torch.save does; models as archives; to a path that ends in
    .safetensors a dict of tensors in that format. `path`: a file's, or an open binary file."""
    if hasattr(path, "write"):
        import shutil
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            made = os.path.join(folder, "file")
            save(value, made)
            with open(made, "rb") as file:
                shutil.copyfileobj(file, path)
        return
    path = os.fspath(path)
    if path.endswith(".safetensors"):
        _save_safetensors(value, path)
        return
    if hasattr(value, "_loaded_module"):
        value.save(path)
        return
    _engine._save_torch_file(path, _plain(value))


def _save_safetensors(value, path: str) -> None:
    if not isinstance(value, dict) or not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in value.items()):
        raise TypeError("save: a .safetensors file takes a dict of tensors by name")
    _engine._save_safetensors(path, {name: tensor.detach().cpu() for name, tensor in value.items()})


def _is_torch_file(path: str) -> bool:
    """Files of torch.save contain values, but neither constants nor code."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    has = {name.split("/", 1)[-1] for name in names}
    return "data.pkl" in has and "constants.pkl" not in has


def _plain(value):
    """Converts OrderedDicts and subclasses of lists to their base types."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value
