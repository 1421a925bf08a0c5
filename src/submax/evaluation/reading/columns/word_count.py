"""Counts the words, such as yes and no, in a column of numbers."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from submax.evaluation.reading.columns.cells import TRUTH


class WordCount:
    """Counts, batch by batch, the cells of a column that are words and those that are numbers."""

    def __init__(self) -> None:
        self._words = self._numbers = 0
        self._example = ""

    def add(self, column: Any) -> None:
        """Count the cells of the next batch, a pyarrow array."""
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            self._numbers += len(column)
            return
        cells = column.drop_null()
        words = cells.filter(
            pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(cells)), pa.array(list(TRUTH)))
        )
        self._words += len(words)
        self._numbers += len(cells) - len(words)
        if len(words) and not self._example:
            self._example = words[0].as_py()

    def notes(self, name: str) -> Iterator[str]:
        """Yield a sentence if the column has both words and numbers."""
        if self._words and self._numbers:
            which = (
                f"one value is the word {self._example!r}"
                if self._words == 1
                else f"{self._words} values are words such as {self._example!r}"
            )
            yield (
                f"column {name!r}: {which} among numbers; yes and true were read as 1, no and "
                "false as 0: check where they are from"
            )
