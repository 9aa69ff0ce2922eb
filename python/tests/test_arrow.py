"""Parquet and Arrow files as tensors, compared with pyarrow's data."""

import pathlib
import sys

import numpy
import pytest
from tensord import engine
from tensord.engine import data

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "pyarrow"  # scripts/setup test


@pytest.fixture
def pa():
    if FOLDER.exists() and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return pytest.importorskip("pyarrow")


@pytest.fixture
def written(pa, tmp_path):
    import pyarrow.parquet

    count = 10
    numbers = numpy.arange(count * 3, dtype=numpy.float32).reshape(count, 3)
    table = pa.table({
        "x": pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), 3),
        "list": pa.array([[i, i + 1] for i in range(count)], pa.list_(pa.int64())),
        "y": pa.array(range(count), pa.int32()),
        "flag": pa.array([i % 2 == 0 for i in range(count)]),
    })
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=4)
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return tmp_path, numbers


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_tables(written, name):
    folder, numbers = written
    table = data.read_table(folder / name)
    assert list(table) == ["x", "list", "y", "flag"]
    assert table["x"].dtype == engine.float32 and (table["x"].numpy() == numbers).all()
    assert table["list"].tolist() == [[i, i + 1] for i in range(10)]
    assert table["y"].dtype == engine.int32 and table["y"].tolist() == list(range(10))
    assert table["flag"].dtype == engine.bool and table["flag"].tolist()[:3] == [True, False, True]
    assert list(data.read_table(folder / name, ["y"])) == ["y"]


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_come_once(written, workers):
    folder, numbers = written
    rows = data.TableRows([folder / "t.parquet", folder / "t.arrow"], ["x", "y"])
    seen = []
    for batch in data.DataLoader(rows, batch_size=3, num_workers=workers):
        assert (batch["x"].numpy() == numbers[batch["y"].numpy()]).all()
        seen += batch["y"].tolist()
    assert sorted(seen) == sorted([*range(10)] * 2)
    if workers == 0:
        assert seen == [*range(10)] * 2


def test_errors(pa, written, tmp_path):
    import pyarrow.parquet

    def write(name, **columns):
        pa.parquet.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    with pytest.raises(KeyError, match="no column z; there are x"):
        data.read_table(written[0] / "t.parquet", ["z"])
    with pytest.raises(ValueError, match="column 'a': 1 values are missing"):
        data.read_table(write("null.parquet", a=pa.array([1, None])))
    with pytest.raises(ValueError, match="column 'a': its lists have 1 to 2 items"):
        data.read_table(write("ragged.parquet", a=pa.array([[1], [1, 2]])))
    with pytest.raises(TypeError, match="column 'a': string"):
        data.read_table(write("text.parquet", a=pa.array(["b"]), b=pa.array([1])))
    assert data.read_table(tmp_path / "text.parquet", ["b"])["b"].tolist() == [1]
    with pytest.raises(TypeError, match="column 'a': uint32"):
        data.read_table(write("unsigned.parquet", a=pa.array([1], pa.uint32())))
    assert data.read_table(write("empty.parquet", a=pa.array([], pa.int64())))["a"].shape == (0,)
    with pytest.raises(ValueError, match="expected a file that ends with"):
        data.read_table(__file__)
    with pytest.raises(FileNotFoundError):
        data.read_table(tmp_path / "none.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "text.parquet").read_bytes()[:40])
    with pytest.raises(Exception, match="arquet"):
        data.read_table(tmp_path / "cut.parquet")


def test_without_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="needs pyarrow: pip install pyarrow"):
        data.read_table(tmp_path / "t.parquet")
    with pytest.raises(ImportError, match="needs pyarrow"):
        data.TableRows("t.parquet")
