"""Rows that cannot be used, by column and reason."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from submax.core.arrays import Booleans
from submax.core.errors import InvalidValue
from submax.schema.names import shown

TOLD = 8
"""Kinds of bad rows that a message names."""


@dataclass(frozen=True)
class Kind:
    """One kind of bad rows: how many, and the first of them, counted from 1."""

    column: str
    reason: str
    count: int
    row: int
    value: str

    def told(self) -> str:
        """In one line."""
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        return f"column {self.column!r}, row {self.row}: {self.value} {self.reason} ({rows})"


class BadRows:
    """Counts what is wrong while a log is read; ``lines`` are those that are no rows at all."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.rows = 0
        self._kinds: dict[tuple[str, str], Kind] = {}

    @property
    def count(self) -> int:
        """Rows with anything wrong, and lines that are no rows."""
        return self.rows + len(self.lines)

    def note(
        self, column: str, reason: str, bad: Booleans, first_row: int, value: Callable[[int], Any]
    ) -> None:
        """Note the rows that are ``bad [n]``; ``value`` gives what the column holds in one."""
        count = int(np.count_nonzero(bad))
        if count == 0:
            return
        before = self._kinds.get((column, reason))
        if before is None:
            place = int(np.argmax(bad))
            before = Kind(column, reason, 0, first_row + place, shown(value(place)))
        self._kinds[column, reason] = replace(before, count=before.count + count)

    def sentences(self) -> list[str]:
        """Every kind in one line; rows are counted as they stand in the file."""
        told = [replace(one, row=self._in_file(one.row)).told() for one in self._kinds.values()]
        if self.lines:
            lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
            told.append(f"row {self.lines[0]} has another number of values than columns ({lines})")
        return told

    def refuse(self, name: str, rows: int) -> None:
        """Raise an error where anything was wrong."""
        if not self.count:
            return
        told = self.sentences()
        more = [f"... and {len(told) - TOLD} other kinds"] if len(told) > TOLD else []
        raise InvalidValue(
            f"{self.count} of {rows + len(self.lines)} rows of {name} cannot be used:\n  "
            + "\n  ".join([*told[:TOLD], *more])
            + "\nMend them, or leave them out with --skip-bad-rows (skip_bad_rows=True)."
        )

    def _in_file(self, row: int) -> int:
        for line in sorted(self.lines):
            row += line <= row
        return row
