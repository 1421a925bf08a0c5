"""Reads a CSV file in batches."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.sources.binary_file import is_compressed, open_binary
from submax.evaluation.reading.sources.column_types import mostly_numbers, numeric_columns
from submax.evaluation.reading.sources.csv_text import check_text

BLOCK_BYTES = 1 << 24
"""Bytes that are read at a time: 16 MB, which bounds the memory for files of any size."""
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that are recognized in order to say that they are not supported."""


class CsvSource:
    """A CSV file with a header.

    ``columns`` are the names in the header, and ``numeric`` those of the columns that hold numbers,
    judged by the first rows. Rows are counted from 1 after the header; empty lines are not rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._quoted = check_text(path)
        # The types are inferred from the first block, without malformed lines.
        with self._reader(lambda row: "skip") as reader:
            self.columns: list[str] = reader.schema.names
            self.numeric = numeric_columns(reader.schema) | mostly_numbers(next(iter(reader), None))
        self._check_separator()

    def batches(self, columns: list[str], bad: BadRows) -> Iterator[Any]:
        """Yield all rows; lines with too few or too many values are added to ``bad.lines``."""

        def skip_malformed(row: Any) -> str:
            # pyarrow counts the header as the first row.
            bad.lines.append(row.number - 1)
            return "skip"

        # Read all columns as text, so that our own checks find and name what is not a number.
        converting = csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in self.columns},
            strings_can_be_null=True,
            null_values=[""],
        )
        with self._reader(skip_malformed, converting) as reader:
            yield from reader

    def _reader(self, on_malformed: Any, converting: Any = None) -> Any:
        # pyarrow numbers malformed rows only if it reads without threads.
        reading = csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
        parsing = csv.ParseOptions(
            invalid_row_handler=on_malformed, newlines_in_values=self._quoted
        )
        file: Any = open_binary(self._path) if is_compressed(self._path) else self._path
        return csv.open_csv(file, reading, parsing, converting)

    def _check_separator(self) -> None:
        header = self.columns[0]
        found = next((sign for sign in OTHER_SEPARATORS if sign in header), None)
        if len(self.columns) == 1 and found is not None:
            raise InputError(
                f"the values of {str(self._path)!r} are separated by {OTHER_SEPARATORS[found]}, "
                "and must be separated by commas: convert the file, or read it as a data frame, "
                f"pandas.read_csv({str(self._path)!r}, sep={found!r})"
            )
