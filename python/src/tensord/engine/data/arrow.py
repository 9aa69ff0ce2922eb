"""Reads Parquet and Arrow tables as tensors with pyarrow, which is imported on use."""

from __future__ import annotations

import os

from tensord.engine.data.dataset import IterableDataset
from tensord.engine.data.worker import get_worker_info

_PARQUET = (".parquet", ".pq")
_IPC = (".arrow", ".feather", ".ipc")


def _pyarrow():
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("reading Parquet and Arrow files needs pyarrow: pip install pyarrow") from error
    return pyarrow


def _tensor(pyarrow, name: str, column):
    """A column of numbers, or of lists of numbers of one length, as a tensor."""
    from tensord import engine

    array = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if isinstance(array, pyarrow.ChunkedArray):  # some versions return a chunked array without chunks
        array = pyarrow.concat_arrays(array.chunks) if array.num_chunks else pyarrow.array([], array.type)
    sizes, kinds = [len(array)], pyarrow.types
    while True:
        if array.null_count:
            raise ValueError(f"column '{name}': {array.null_count} values are missing, which tensors cannot say")
        if kinds.is_fixed_size_list(array.type):
            length = array.type.list_size
        elif kinds.is_list(array.type) or kinds.is_large_list(array.type):
            lengths = set(array.value_lengths().to_pylist())
            if len(lengths) > 1:
                raise ValueError(f"column '{name}': its lists have {min(lengths)} to {max(lengths)} items, and must have one length")
            length = lengths.pop() if lengths else 0
        else:
            break
        sizes.append(length)
        array = array.flatten()
    if not (kinds.is_integer(array.type) or kinds.is_floating(array.type) or kinds.is_boolean(array.type)):
        raise TypeError(f"column '{name}': {array.type} is not a type of tensors; name the columns to read")
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype.name in ("uint16", "uint32", "uint64"):
        raise TypeError(f"column '{name}': {values.dtype.name} is not a type of tensors; name the columns to read")
    return engine.tensor(values).reshape(sizes)


def _tensors(pyarrow, table) -> dict:
    return {name: _tensor(pyarrow, name, table.column(i)) for i, name in enumerate(table.schema.names)}


def _check_columns(path: str, known, columns) -> None:
    unknown = [name for name in columns or [] if name not in known]
    if unknown:
        raise KeyError(f"{path}: there is no column {', '.join(unknown)}; there are {', '.join(known)}")
    twice = {name for name in known if list(known).count(name) > 1}
    if twice:
        raise ValueError(f"{path}: several columns are named {', '.join(sorted(twice))}")


def read_table(path, columns=None) -> dict:
    """Reads columns of a Parquet (.parquet) or Arrow file (.arrow, .feather) by name, all of them by default: numbers,
    bools and lists of equal length. Missing values, strings and other types raise an error that names the column.
    Requires pyarrow."""
    pyarrow, path = _pyarrow(), os.fspath(path)
    parts = [part for part in _Parts(path, columns).tables(pyarrow)]
    return _tensors(pyarrow, pyarrow.concat_tables(parts))


class _Parts:
    """A file as its parts: row groups of Parquet, record batches of Arrow."""

    def __init__(self, path: str, columns):
        self.path, self.columns = path, columns
        with open(path, "rb"):  # raises Python's own errors for missing or unreadable files
            pass

    def tables(self, pyarrow, first: int = 0, step: int = 1):
        if self.path.endswith(_PARQUET):
            import pyarrow.parquet

            file = pyarrow.parquet.ParquetFile(self.path)
            _check_columns(self.path, file.schema_arrow.names, self.columns)
            empty = file.schema_arrow.empty_table()
            yield empty.select(self.columns) if self.columns else empty
            for index in range(first, file.num_row_groups, step):
                yield file.read_row_group(index, columns=self.columns)
        elif self.path.endswith(_IPC):
            reader = pyarrow.ipc.open_file(pyarrow.memory_map(self.path))
            _check_columns(self.path, reader.schema.names, self.columns)
            empty = reader.schema.empty_table()
            yield empty.select(self.columns) if self.columns else empty
            for index in range(first, reader.num_record_batches, step):
                table = pyarrow.Table.from_batches([reader.get_batch(index)])
                yield table.select(self.columns) if self.columns else table
        else:
            raise ValueError(f"{self.path}: expected a file that ends with {', '.join((*_PARQUET, *_IPC))}")


class TableRows(IterableDataset):
    """The rows of Parquet or Arrow files in order, as dicts of tensors by column; one row group is in memory at a time.
    Worker processes take turns on row groups, so that each row comes once. Requires pyarrow."""

    def __init__(self, paths, columns=None):
        _pyarrow()
        self.paths = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
        self.columns = columns

    def __iter__(self):
        pyarrow, worker = _pyarrow(), get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for path in self.paths:
            for table in _Parts(path, self.columns).tables(pyarrow, first, step):
                tensors = _tensors(pyarrow, table)
                for row in range(table.num_rows):
                    yield {name: tensor[row] for name, tensor in tensors.items()}
