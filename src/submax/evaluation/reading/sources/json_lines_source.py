"""Reads a file of JSON lines in batches."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.sources.arrow_table import arrow_table
from submax.evaluation.reading.sources.binary_file import open_binary
from submax.evaluation.reading.sources.column_types import mostly_numbers, numeric_columns

BATCH_ROWS = 1 << 16
"""Lines of a batch: their objects take some tens of megabytes."""


class JsonLinesSource:
    """A file with one JSON object in each line; empty lines are ignored.

    The fields of an object inside of a row are columns, too: ``{"context": {"age": 40}}`` has the
    column ``context_age``. ``columns`` are the names that occur in the first ``BATCH_ROWS`` lines,
    and ``numeric`` those of the columns that hold numbers there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        first = next(self._batches(None, BadRows()), None)
        if first is None or not first.num_columns:
            raise InputError(
                f"{str(path)!r} begins with a brace and has no line that is a JSON object: give a "
                "file with one object in each line, or a CSV or Parquet file"
            )
        self.columns: list[str] = first.schema.names
        self.numeric = numeric_columns(first.schema) | mostly_numbers(first)

    def batches(self, columns: list[str], bad: BadRows) -> Iterator[Any]:
        """Yield all rows; lines that are not JSON objects are added to ``bad.lines``."""
        yield from self._batches(columns, bad)

    def _batches(self, columns: list[str] | None, bad: BadRows) -> Iterator[Any]:
        with open_binary(self._path) as file:
            lines = (line for line in file if line.strip())
            number = 0
            while chunk := list(islice(lines, BATCH_ROWS)):
                rows = []
                for line in chunk:
                    number += 1
                    row = _decoded(line)
                    if row is None:
                        bad.lines.append(number)
                    else:
                        rows.append(row)
                if rows:
                    yield _batch(rows, columns)


def _decoded(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line with nested fields as columns; None if it is not an object."""
    try:
        found = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    row: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            row.update({f"{name}_{inner}": one for inner, one in value.items()})
        else:
            row[name] = value
    return row


def _batch(rows: list[dict[str, Any]], columns: list[str] | None) -> Any:
    names = columns or list(dict.fromkeys(name for row in rows for name in row))
    table, _ = arrow_table({name: [row.get(name) for row in rows] for name in names})
    combined = table.combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([])
