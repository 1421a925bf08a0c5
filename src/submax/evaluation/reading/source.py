"""Opens a log, a file or a table, to be read in batches."""

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

BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
READ_ERRORS = (OSError, pa.ArrowException, UnicodeDecodeError)
"""Errors of a file that cannot be read or is damaged."""


class Source(NamedTuple):
    """A log that can be read once, in batches.

    ``numeric`` are the columns that hold numbers, judged by the first rows. ``schema`` is the one
    that the export of a bandit carries in its metadata; None for other logs.
    """

    name: str
    columns: list[str]
    numeric: set[str]
    schema: Schema | None
    batches: Callable[[list[str], BadRows], Iterator[Any]]


def open_source(source: Any) -> Source:
    """Open a Parquet or CSV file, a data frame, or anything that pyarrow turns into a table."""
    if not isinstance(source, (str, Path)):
        return _from_table(source)
    path = Path(source)
    if path.is_dir():
        raise InputError(
            f"{str(source)!r} is a folder, and a log must be one file: name a CSV or Parquet file"
        )
    if not path.is_file():
        raise InputError(f"there is no file {str(source)!r}: check the path")
    try:
        return _from_file(path)
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _from_file(path: Path) -> Source:
    with path.open("rb") as file:
        start = file.read(1 << 12)
    is_parquet = start[:4] == b"PAR1"
    if not start.strip():
        raise InputError(
            f"{str(path)!r} is empty, and a log must have a header and rows: check the file"
        )
    if path.suffix.lower() == ".parquet" and not is_parquet:
        raise InputError(
            f"{str(path)!r} is called .parquet and is not a Parquet file: if it is a CSV file, "
            "give it the ending .csv"
        )
    return _from_parquet(path) if is_parquet else _from_csv(path)


def _from_table(source: Any) -> Source:
    table, as_text = arrow_table(source)
    schema = table.schema
    first = table.select(as_text).to_batches(BATCH_ROWS)[:1]
    numeric = numeric_columns(schema) | mostly_numbers(first[0] if first else None)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(BATCH_ROWS)

    return Source("the table", table.column_names, numeric, _schema_in_metadata(schema), batches)


def _from_parquet(path: Path) -> Source:
    file = parquet.ParquetFile(path, pre_buffer=False)
    schema = file.schema_arrow

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _naming_file(path, file.iter_batches(BATCH_ROWS, columns=columns))

    return Source(
        str(path), schema.names, numeric_columns(schema), _schema_in_metadata(schema), batches
    )


def _from_csv(path: Path) -> Source:
    source = CsvSource(path)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _naming_file(path, source.batches(columns, bad))

    return Source(str(path), source.columns, source.numeric, None, batches)


def _naming_file(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches; an error while reading them becomes one that names the file."""
    try:
        yield from batches
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(f"cannot read {str(path)!r}: {error}")


def _schema_in_metadata(schema: Any) -> Schema | None:
    text = (schema.metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Schema)
    except msgspec.DecodeError as error:
        raise InputError(
            f"the schema in the metadata of the log cannot be read: {error}; export the log again, "
            "or give it as a CSV file"
        ) from error
