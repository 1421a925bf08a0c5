"""Rows that cannot be used, by column and reason."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from submax.core.arrays import Booleans
from submax.core.errors import InputError
from submax.schema.names import short_repr

NO_DEFAULT = "no default is declared"
TOLD = 12
"""Kinds of bad rows that a message names."""


@dataclass(frozen=True)
class Kind:
    """One kind of bad rows: how many, and the first of them, counted from 1.

    ``other`` is a row that the reason ends with: where the same id was before.
    """

    column: str
    reason: str
    count: int
    row: int
    value: str
    other: int | None = None

    def told(self) -> str:
        """In one line."""
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        reason = self.reason if self.other is None else f"{self.reason} {self.other}"
        return f"column {self.column!r}, row {self.row}: {self.value} {reason} ({rows})"


class BadRows:
    """Counts what is wrong while a log is read; ``lines`` are those that are no rows at all."""

    def __init__(self) -> None:
        # In the order of the file, and small: there may be millions.
        self.lines = array("q")
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
            before = Kind(column, reason, 0, first_row + place, short_repr(value(place)))
        self._kinds[column, reason] = replace(before, count=before.count + count)

    def note_repeats(self, column: str, count: int, row: int, before: int) -> None:
        """Note rows whose id was there before, the first of them and where it was."""
        reason = "was there before, in row"
        self._kinds[column, reason] = Kind(column, reason, count, row, "the id", before)
        self.rows += count

    def sentences(self) -> list[str]:
        """Every kind in one line, up to a number of them; rows as they stand in the file."""
        told = [self._placed(kind).told() for kind in self._kinds.values()]
        if self.lines:
            lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
            told.append(f"row {self.lines[0]} has another number of values than columns ({lines})")
        more = [f"... and other kinds: {len(told) - TOLD}"] if len(told) > TOLD else []
        return [*told[:TOLD], *more]

    def refuse(self, name: str, rows: int) -> None:
        """Raise an error where anything was wrong."""
        if self.count:
            raise InputError(
                f"{self.count} of {rows + len(self.lines)} rows of {name} cannot be used:\n  "
                + "\n  ".join(self.sentences())
                + "\n".join(["", *self._advice(self.count == rows + len(self.lines))])
            )

    def _advice(self, every: bool) -> Iterator[str]:
        skip = "" if every else ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        yield f"Mend them{skip}."
        if any(kind.reason.endswith(NO_DEFAULT) for kind in self._kinds.values()):
            yield (
                "A default for missing values can be declared, --declare FILE.toml with [context] "
                'and country = {values = ["fr", "de"], default = "fr"}, age = {default = 40}.'
            )
        # An id that repeats is most often that of a user.
        for kind in self._kinds.values():
            if kind.other is not None:
                yield (
                    f"If {kind.column!r} is not the id of a row but of a user, say that there "
                    "is no id, --column id= (columns={'id': None})."
                )

    def in_file(self, row: int) -> int:
        """The number of a row among all, lines that are none included."""
        for line in self.lines:
            if line > row:
                break
            row += 1
        return row

    def _placed(self, kind: Kind) -> Kind:
        other = None if kind.other is None else self.in_file(kind.other)
        return replace(kind, row=self.in_file(kind.row), other=other)
