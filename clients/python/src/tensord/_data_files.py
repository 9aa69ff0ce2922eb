"""Files and folders of data as files that jobs read. Parquet needs pyarrow."""

from __future__ import annotations

import os
import tempfile
import zipfile
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple, Union

import numpy as np

from tensord.errors import InvalidArgumentError

Path = Union[str, "os.PathLike[str]"]


@contextmanager
def as_job_file(path: Path, columns: Optional[Iterable[str]] = None) -> Iterator[str]:
    """The file itself, or a temporary one: .npz with the columns of a .parquet file, .zip of a folder of images."""
    name = os.fspath(path)
    if os.path.isdir(name):
        if columns is not None:
            raise InvalidArgumentError(f"{name}: a folder of images has no columns")
        with tempfile.TemporaryDirectory() as folder:
            yield _pack(name, os.path.join(folder, "images.zip"))
        return
    if not name.lower().endswith(".parquet"):
        if columns is not None:
            raise InvalidArgumentError(f"{name}: columns are chosen of .parquet files only; jobs name arrays of others")
        yield name
        return
    arrays = _read_columns(name, None if columns is None else list(columns))
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, os.path.basename(name)[:-len(".parquet")] + ".npz")
        np.savez(made, **arrays)
        yield made


def _pack(folder: str, made: str) -> str:
    """Images are compressed already, so they are only stored. The server refuses others of torchvision's kinds, and classes
    without images. Links are followed, as torchvision does."""
    endings = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
    count = 0
    above: Dict[str, Tuple[str, ...]] = {folder: (os.path.realpath(folder),)}  # resolved folders, to detect cycles of links
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED, strict_timestamps=False) as archive:
        for parent, folders, files in os.walk(folder, followlinks=True):
            folders.sort()
            for name in folders:
                path = os.path.join(parent, name)
                real = os.path.realpath(path)
                if real in above[parent]:
                    raise InvalidArgumentError(f"{path}: links lead in a circle")
                above[path] = (*above[parent], real)
                if parent == folder:
                    archive.writestr(name + "/", b"")
            for file in sorted(files):
                if file.lower().endswith(endings) and parent != folder:
                    path = os.path.join(parent, file)
                    archive.write(path, os.path.relpath(path, folder))
                    count += 1
    if count == 0:
        raise InvalidArgumentError(f"{folder}: has no folders of images; jobs take a folder with a folder for each class")
    return made


def _read_columns(path: str, columns: Any) -> Dict[str, Any]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise InvalidArgumentError(f"{path}: reading Parquet needs pyarrow (pip install pyarrow)") from None
    names = parquet.read_schema(path).names
    missing = [name for name in columns or [] if name not in names]
    if missing:
        raise InvalidArgumentError(f"{path}: has no column {', '.join(missing)}; it has {', '.join(names)}")
    table = parquet.read_table(path, columns=columns)
    arrays = {}
    for name in table.column_names:
        array = _to_numpy(arrow, table.column(name).combine_chunks())
        if array is not None:
            arrays[name] = array
        elif columns is not None:
            raise InvalidArgumentError(f"{path}: column {name} is {table.schema.field(name).type}, or has gaps; jobs take numbers")
    if not arrays:
        raise InvalidArgumentError(f"{path}: has no column of numbers without gaps")
    return arrays


def _to_numpy(arrow: Any, column: Any) -> Any:
    """None for what jobs cannot take: other types than numbers, missing values, lists of different lengths."""
    if column.null_count:
        return None
    kind = column.type
    if arrow.types.is_boolean(kind) or arrow.types.is_integer(kind) or arrow.types.is_floating(kind):
        return column.to_numpy(zero_copy_only=False)
    if not (arrow.types.is_list(kind) or arrow.types.is_large_list(kind) or arrow.types.is_fixed_size_list(kind)):
        return None
    values = _to_numpy(arrow, column.flatten())
    rows = len(column)
    if values is None or rows == 0 or len(values) % rows:
        return None
    if not arrow.types.is_fixed_size_list(kind):
        lengths = np.diff(column.offsets.to_numpy())
        if (lengths != lengths[0]).any():
            return None
    return values.reshape(rows, -1, *values.shape[1:])
