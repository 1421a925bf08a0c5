"""The tables in a result folder: Parquet files, or CSV files if pyarrow is not installed."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError
from submax.core.running.extras import is_installed, require_extra
from submax.core.running.whole_file import whole_file

PARQUET, CSV = ".parquet", ".csv"
"""The endings of the files of a table."""
TEXT = ("policy",)
"""Columns that are texts even if all of their values look like numbers."""
BOOLEANS = {"True": True, "False": False}
"""How booleans are written in a CSV file."""

Part = Mapping[str, Any]
"""Rows of a table: an array for each column, or one value that all rows have."""


class ResultTable:
    """The columns of a table by name, each an array with one value for each row.

    >>> table = ResultTable({"policy": np.array(["a", "a", "b"]), "regret": np.array([3, 1, 2])})
    >>> table.where({"policy": "a"})["regret"]
    array([3, 1])
    >>> table.distinct("policy")
    [('a',), ('b',)]
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """Read the table ``name`` of a result folder, in the format that it was written in."""
        parquet, text = folder / f"{name}{PARQUET}", folder / f"{name}{CSV}"
        if parquet.exists():
            return cls(_parquet_columns(parquet))
        if text.exists():
            return cls(_csv_columns(text))
        raise InputError(
            f"{folder} has neither {parquet.name} nor {text.name}: give the command of the run "
            "again, which writes them from the finished cells"
        )

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns)

    @property
    def labels(self) -> list[str]:
        """The names of the columns before the policy, which describe a configuration."""
        return self.names[: self.names.index("policy")]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def where(self, values: Mapping[str, Any]) -> "ResultTable":
        """Return the rows that have these values in these columns."""
        chosen: Any = slice(None)
        for name, value in values.items():
            same = self._columns[name] == value
            chosen = same if isinstance(chosen, slice) else chosen & same
        return self._taken(chosen)

    def distinct(self, *names: str) -> list[tuple[Any, ...]]:
        """Return the different combinations of values in some columns, in order."""
        columns = (self._columns[name].tolist() for name in names)
        return list(dict.fromkeys(zip(*columns, strict=True)))

    def groups(self, *names: str) -> dict[tuple[Any, ...], "ResultTable"]:
        """Return the rows of each combination of values in some columns, in order."""
        rows: dict[tuple[Any, ...], list[int]] = {}
        columns = (self._columns[name].tolist() for name in names)
        for row, values in enumerate(zip(*columns, strict=True)):
            rows.setdefault(values, []).append(row)
        return {values: self._taken(np.array(chosen)) for values, chosen in rows.items()}

    def by_policy(self) -> dict[str, "ResultTable"]:
        """Return the rows of each policy, in order."""
        return {name: rows for (name,), rows in self.groups("policy").items()}

    def _taken(self, rows: Any) -> "ResultTable":
        return ResultTable({name: column[rows] for name, column in self._columns.items()})


def write_table(folder: Path, name: str, parts: Sequence[Part]) -> None:
    """Write all parts as one table, which replaces an earlier one of either format."""
    if is_installed("pyarrow"):
        _write_parquet(folder / f"{name}{PARQUET}", parts)
        (folder / f"{name}{CSV}").unlink(missing_ok=True)
    else:
        _write_csv(folder / f"{name}{CSV}", parts)
        (folder / f"{name}{PARQUET}").unlink(missing_ok=True)


def _rows(part: Part) -> int:
    return next(len(values) for values in part.values() if isinstance(values, np.ndarray))


def _write_parquet(path: Path, parts: Sequence[Part]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = []
    for part in parts:
        size = _rows(part)
        columns = [_arrow_column(values, size) for values in part.values()]
        tables.append(pa.Table.from_arrays(columns, names=list(part)))
    with whole_file(path) as file:
        joined = pa.concat_tables(tables, promote_options="permissive")
        pq.write_table(joined, file, compression="zstd")


def _arrow_column(values: Any, size: int) -> Any:
    """Return a column of an array, or of one value that all rows have.

    The usual types are written as buffers, because ``pa.array`` and ``pa.repeat`` import pandas if
    it is installed, which takes half a second.
    """
    import pyarrow as pa

    if isinstance(values, np.ndarray):
        return _arrow_array(values)
    if values is None:
        return pa.nulls(size)
    if isinstance(values, str):
        text = values.encode()
        ends = len(text) * np.arange(size + 1, dtype=np.int32)
        texts = [None, pa.py_buffer(ends), pa.py_buffer(text * size)]
        return pa.Array.from_buffers(pa.string(), size, texts)
    if isinstance(values, (bool, int, float, np.generic)):
        return _arrow_array(np.full(size, values))
    return pa.repeat(values, size)


def _arrow_array(array: NDArray[Any]) -> Any:
    import pyarrow as pa

    if array.ndim != 1 or array.dtype not in (np.bool_, np.int64, np.float64):
        return pa.array(array)
    if array.dtype == np.bool_:
        kind, content = pa.bool_(), np.packbits(array, bitorder="little")
    else:
        kind = pa.int64() if array.dtype == np.int64 else pa.float64()
        content = np.ascontiguousarray(array)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(content)])


def _write_csv(path: Path, parts: Sequence[Part]) -> None:
    names = list(dict.fromkeys(name for part in parts for name in part))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for part in parts:
        size = _rows(part)
        columns = [part.get(name) for name in names]
        writer.writerows(
            zip(
                *(one.tolist() if isinstance(one, np.ndarray) else [one] * size for one in columns),
                strict=True,
            )
        )
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def _parquet_columns(path: Path) -> dict[str, NDArray[Any]]:
    require_extra("logs", f"reading {path}", "pyarrow")
    import pyarrow.parquet as pq

    # Not `read_table`, which imports pandas if there is one, and takes half a second for it.
    table = pq.ParquetFile(path).read()
    columns = zip(table.column_names, table.columns, strict=True)
    return {name: _array(column) for name, column in columns}


def _array(column: Any) -> NDArray[Any]:
    """Return the values of a column; only unusual types by ``to_numpy``, which imports pandas."""
    kind = str(column.type)
    if column.null_count or kind == "string":
        return np.array(column.to_pylist(), dtype=object)
    if kind in ("int64", "double") and len(column):
        return np.concatenate([np.from_dlpack(part) for part in column.chunks])
    return np.asarray(column.to_numpy())


def _csv_columns(path: Path) -> dict[str, NDArray[Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return {
        name: np.array(values, dtype=object) if name in TEXT else _typed(values)
        for name, values in zip(names, columns, strict=True)
    }


def _typed(texts: Sequence[str]) -> NDArray[Any]:
    """Return the values of a column: integers, floats or booleans if all of them are; or texts."""
    for kind in (np.int64, np.float64):
        try:
            return np.array(texts, dtype=kind)
        except (ValueError, OverflowError):
            continue
    if set(texts) <= BOOLEANS.keys():
        return np.array([BOOLEANS[text] for text in texts])
    return np.array([text or None for text in texts], dtype=object)
