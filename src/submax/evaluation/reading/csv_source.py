"""Batches of a CSV file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.column_types import mostly_numbers, numeric_columns
from submax.evaluation.reading.csv_text import check_text

BLOCK = 1 << 24
"""Bytes that are read at a time."""
OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


class CsvSource:
    """A file with a header; its columns, and which of them hold numbers as the first rows say.

    Rows are counted from 1 after the header; lines with nothing in them are no rows.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._quoted = check_text(path)
        # The types are guessed from the first block, with odd lines left out.
        with self._reader(lambda row: "skip") as reader:
            self.columns: list[str] = reader.schema.names
            self.numeric = numeric_columns(reader.schema) | mostly_numbers(next(iter(reader), None))
        self._check_separator()

    def batches(self, columns: list[str], bad: BadRows) -> Iterator[Any]:
        """All rows; lines with too few or too many values are noted."""

        def odd(row: Any) -> str:
            # The header is the first.
            bad.lines.append(row.number - 1)
            return "skip"

        # As text, so that what is no number is found here and named, not guessed away.
        converting = csv.ConvertOptions(
            include_columns=columns,
            column_types={name: pa.string() for name in self.columns},
            strings_can_be_null=True,
            null_values=[""],
        )
        with self._reader(odd, converting) as reader:
            yield from reader

    def _reader(self, odd: Any, converting: Any = None) -> Any:
        # Without threads rows have their number.
        reading = csv.ReadOptions(block_size=BLOCK, use_threads=False)
        parsing = csv.ParseOptions(invalid_row_handler=odd, newlines_in_values=self._quoted)
        return csv.open_csv(self._path, reading, parsing, converting)

    def _check_separator(self) -> None:
        header = self.columns[0]
        found = next((sign for sign in OTHER_SEPARATORS if sign in header), None)
        if len(self.columns) == 1 and found is not None:
            raise InputError(
                f"the values of {str(self._path)!r} are separated by {OTHER_SEPARATORS[found]}, "
                "and those of a CSV file by commas: write it again, or give it as a data frame, "
                f"pandas.read_csv({str(self._path)!r}, sep={found!r})"
            )
