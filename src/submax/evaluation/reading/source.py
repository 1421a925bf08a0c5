"""Batches of a log, from a file or a table."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import parquet

from submax.core.errors import InputError
from submax.evaluation.reading.arrow_table import arrow_table
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.column_types import mostly_numbers, numeric_columns
from submax.evaluation.reading.csv_source import CsvSource
from submax.schema.schema import METADATA, Schema

ROWS = 1 << 17
"""Rows of a batch."""
BROKEN = (OSError, pa.ArrowException, UnicodeDecodeError)


class Source(NamedTuple):
    """A log that can be read once; ``schema`` is what it says about itself.

    ``numeric`` are the columns that hold numbers, as far as the first rows say.
    """

    name: str
    columns: list[str]
    numeric: set[str]
    schema: Schema | None
    batches: Callable[[list[str], BadRows], Iterator[Any]]


def open_source(source: Any) -> Source:
    """A Parquet or CSV file, or a data frame: anything that pyarrow makes a table of."""
    if not isinstance(source, (str, Path)):
        return _from_table(source)
    path = Path(source)
    if path.is_dir():
        raise InputError(f"{str(source)!r} is a folder, and a log is one file")
    if not path.is_file():
        raise InputError(f"there is no file {str(source)!r}")
    try:
        return _from_file(path)
    except BROKEN as error:
        raise _unreadable(path, error) from error


def _from_file(path: Path) -> Source:
    with path.open("rb") as file:
        start = file.read(1 << 12)
    is_parquet = start[:4] == b"PAR1"
    if not start.strip():
        raise InputError(f"{str(path)!r} is empty")
    if path.suffix.lower() == ".parquet" and not is_parquet:
        raise InputError(f"{str(path)!r} is called a Parquet file and is none")
    return _from_parquet(path) if is_parquet else _from_csv(path)


def _from_table(source: Any) -> Source:
    table, as_text = arrow_table(source)
    schema = table.schema
    first = table.select(as_text).to_batches(ROWS)[:1]
    numeric = numeric_columns(schema) | mostly_numbers(first[0] if first else None)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(ROWS)

    return Source("the table", table.column_names, numeric, _declared(schema), batches)


def _from_parquet(path: Path) -> Source:
    file = parquet.ParquetFile(path, pre_buffer=False)
    schema = file.schema_arrow

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _told(path, file.iter_batches(ROWS, columns=columns))

    return Source(str(path), schema.names, numeric_columns(schema), _declared(schema), batches)


def _from_csv(path: Path) -> Source:
    source = CsvSource(path)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _told(path, source.batches(columns, bad))

    return Source(str(path), source.columns, source.numeric, None, batches)


def _told(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; damage that shows only now is told by file."""
    try:
        yield from batches
    except BROKEN as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"cannot read {str(path)!r}: {error}")


def _declared(schema: Any) -> Schema | None:
    text = (schema.metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Schema)
    except msgspec.DecodeError as error:
        raise InputError(f"what the log says about itself cannot be read: {error}") from error
