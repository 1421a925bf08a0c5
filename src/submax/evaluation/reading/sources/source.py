"""A log that is read in batches: one file, or a table."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import parquet

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.sources.arrow_table import arrow_table
from submax.evaluation.reading.sources.binary_file import open_binary
from submax.evaluation.reading.sources.column_types import mostly_numbers, numeric_columns
from submax.evaluation.reading.sources.csv_source import CsvSource
from submax.evaluation.reading.sources.json_lines_source import JsonLinesSource
from submax.evaluation.reading.sources.lazy_frame import LazyFrame
from submax.schema.known_type import known_type
from submax.schema.schema import METADATA, Schema

BATCH_ROWS = 1 << 17
"""Rows of a batch: enough for fast columns, few enough for little memory."""
READ_ERRORS = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeDecodeError)
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


def open_one_file(path: Path) -> Source:
    """Open a Parquet file, or a file of CSV or JSON lines, which gzip may have compressed."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    try:
        return _from_file(path)
    except READ_ERRORS as error:
        raise _unreadable(path, error) from error


def _from_file(path: Path) -> Source:
    with open_binary(path) as file:
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
    if is_parquet:
        return _from_parquet(path)
    text = JsonLinesSource(path) if start.lstrip().startswith(b"{") else CsvSource(path)
    return _from_text(path, text)


def source_of_table(source: Any) -> Source:
    """Open a data frame, a lazy one, or anything that pyarrow turns into a table."""
    if LazyFrame.is_query(source):
        return _from_lazy_frame(LazyFrame(source))
    table, as_text = arrow_table(source)
    schema = table.schema
    first = table.select(as_text).to_batches(BATCH_ROWS)[:1]
    numeric = numeric_columns(schema) | mostly_numbers(first[0] if first else None)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(BATCH_ROWS)

    return Source("the table", table.column_names, numeric, _schema_in_metadata(schema), batches)


def _from_lazy_frame(frame: LazyFrame) -> Source:
    first = frame.first_rows(BATCH_ROWS)

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from frame.batches(columns, BATCH_ROWS)

    return Source("the query", first.column_names, numeric_columns(first.schema), None, batches)


def _from_parquet(path: Path) -> Source:
    file = parquet.ParquetFile(path, pre_buffer=False)
    schema = file.schema_arrow

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _naming_file(path, file.iter_batches(BATCH_ROWS, columns=columns))

    return Source(
        str(path), schema.names, numeric_columns(schema), _schema_in_metadata(schema), batches
    )


def _from_text(path: Path, source: CsvSource | JsonLinesSource) -> Source:
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
        return msgspec.json.decode(text, type=known_type(Schema))
    except msgspec.DecodeError as error:
        raise InputError(
            f"the schema in the metadata of the log cannot be read: {error}; export the log again, "
            "or give it as a CSV file"
        ) from error
