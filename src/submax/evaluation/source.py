"""Batches of a log, from a file or a table."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyarrow import csv, parquet

from submax.core.errors import InvalidValue
from submax.evaluation.bad_rows import BadRows
from submax.evaluation.cells import numbers
from submax.schema.schema import METADATA, Schema

ROWS = 1 << 17
"""Rows of a batch."""
BLOCK = 1 << 24
"""Bytes of a CSV file that are read at a time."""
ODD = 0.1
"""Up to this share of values may be no numbers in a column of numbers."""


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
    if not path.is_file():
        raise InvalidValue(f"there is no file {str(source)!r}")
    if path.stat().st_size == 0:
        raise InvalidValue(f"{str(source)!r} is empty")
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if path.suffix.lower() == ".parquet" and not is_parquet:
        raise InvalidValue(f"{str(source)!r} is called a Parquet file and is none")
    try:
        return _from_parquet(path) if is_parquet else _from_csv(path)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read {str(source)!r}: {error}") from error


def _from_table(source: Any) -> Source:
    try:
        # Polars and others have a word of their own for this.
        table = source.to_arrow() if hasattr(source, "to_arrow") else pa.table(source)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidValue(
            "a log is a file, a data frame or a table of columns, and "
            f"{type(source).__name__} is none: {error}"
        ) from error

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from table.select(columns).to_batches(ROWS)

    return Source(
        "the table", table.column_names, _numeric(table.schema), _declared(table.schema), batches
    )


def _from_parquet(path: Path) -> Source:
    file = parquet.ParquetFile(path)
    schema = file.schema_arrow

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        yield from _told(path, file.iter_batches(ROWS, columns=columns))

    return Source(str(path), schema.names, _numeric(schema), _declared(schema), batches)


def _from_csv(path: Path) -> Source:
    options = csv.ReadOptions(block_size=BLOCK, use_threads=False)
    # What a column holds is guessed from the first block, with odd lines left out.
    parsing = csv.ParseOptions(invalid_row_handler=lambda row: "skip")
    with csv.open_csv(path, options, parsing) as reader:
        schema = reader.schema
        numeric = _numeric(schema) | _mostly_numbers(next(iter(reader), None))

    def batches(columns: list[str], bad: BadRows) -> Iterator[Any]:
        def odd(row: Any) -> str:
            # The header is line 1.
            bad.lines.append(row.number - 1)
            return "skip"

        # As text, so that what is no number is found here and named, not guessed away.
        converting = csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in schema.names},
            strings_can_be_null=True,
            null_values=[""],
        )
        with csv.open_csv(
            path, options, csv.ParseOptions(invalid_row_handler=odd), converting
        ) as reader:
            yield from _told(path, reader)

    return Source(str(path), schema.names, numeric, None, batches)


def _told(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    """The same batches; damage that shows only now is told by file."""
    try:
        yield from batches
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InvalidValue(f"cannot read {str(path)!r}: {error}") from error


def _numeric(schema: Any) -> set[str]:
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return {field.name for field in schema if any(test(field.type) for test in tests)}


def _mostly_numbers(batch: Any) -> set[str]:
    """Columns of text that are numbers but for a few values, which must be mistakes."""
    found = set()
    for name, column in zip(batch.schema.names, batch.columns, strict=True) if batch else ():
        if pa.types.is_string(column.type):
            read = numbers(column)
            if read.wrong.any() and read.wrong.sum() <= ODD * (~read.missing).sum():
                found.add(name)
    return found


def _declared(schema: Any) -> Schema | None:
    text = (schema.metadata or {}).get(METADATA.encode())
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Schema)
    except msgspec.DecodeError as error:
        raise InvalidValue(f"what the log says about itself cannot be read: {error}") from error
