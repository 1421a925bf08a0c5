"""Counts the rows of a log that cannot be used, by column and reason."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from submax.core.arrays import Booleans
from submax.core.errors import InputError
from submax.schema.names import short_repr

NO_DEFAULT = "no default is declared"
"""End of the reason of a missing value, after which the error explains how to declare a default."""
MOST_PROBLEMS = 12
"""Problems that a message lists, so that it fits on a screen."""


@dataclass(frozen=True)
class RowProblem:
    """A column and a reason for which ``count`` rows cannot be used.

    ``row``, counted from 1, and ``value`` are those of the first of these rows. ``other`` is the
    row in which a repeated id occurred before; the sentence ends with it.
    """

    column: str
    reason: str
    count: int
    row: int
    value: str
    other: int | None = None

    def sentence(self) -> str:
        """Return the problem in one line."""
        rows = "1 row" if self.count == 1 else f"{self.count} rows"
        reason = self.reason if self.other is None else f"{self.reason} {self.other}"
        return f"column {self.column!r}, row {self.row}: {self.value} {reason} ({rows})"


class BadRows:
    """Collects the problems found while a log is read.

    ``rows`` counts rows with a problem; ``lines`` are the numbers of lines in a CSV file that have
    another number of values than the header, and are not counted as rows.
    """

    def __init__(self) -> None:
        # An array takes little memory: there may be millions of such lines.
        self.lines = array("q")
        self.rows = 0
        self._problems: dict[tuple[str, str], RowProblem] = {}

    @property
    def count(self) -> int:
        """The number of rows with a problem, and of lines that are not rows."""
        return self.rows + len(self.lines)

    def note(
        self, column: str, reason: str, bad: Booleans, first_row: int, value: Callable[[int], Any]
    ) -> None:
        """Count the rows that are ``bad [n]``; ``value`` returns the column's value in a row."""
        count = int(np.count_nonzero(bad))
        if count == 0:
            return
        before = self._problems.get((column, reason))
        if before is None:
            place = int(np.argmax(bad))
            before = RowProblem(column, reason, 0, first_row + place, short_repr(value(place)))
        self._problems[column, reason] = replace(before, count=before.count + count)

    def note_repeats(self, column: str, count: int, row: int, before: int) -> None:
        """Count rows whose id occurred before.

        ``row`` is the first of them, and ``before`` the row in which its id first occurred.
        """
        reason = "occurred before, in row"
        self._problems[column, reason] = RowProblem(column, reason, count, row, "the id", before)
        self.rows += count

    def sentences(self) -> list[str]:
        """Return a sentence for each problem, at most ``MOST_PROBLEMS``.

        Rows have the numbers that they have in the file.
        """
        sentences = [self._as_in_file(one).sentence() for one in self._problems.values()]
        if self.lines:
            lines = "1 line" if len(self.lines) == 1 else f"{len(self.lines)} lines"
            sentences.append(
                f"row {self.lines[0]} has another number of values than the header ({lines})"
            )
        left_out = len(sentences) - MOST_PROBLEMS
        more = [f"... and {left_out} other problems"] if left_out > 0 else []
        return [*sentences[:MOST_PROBLEMS], *more]

    def refuse(self, name: str, rows: int) -> None:
        """Raise an error that lists all problems, if there are any."""
        if self.count:
            raise InputError(
                f"{self.count} of {rows + len(self.lines)} rows of {name} cannot be used:\n  "
                + "\n  ".join(self.sentences())
                + "\n".join(["", *self._advice(self.count == rows + len(self.lines))])
            )

    def _advice(self, every: bool) -> Iterator[str]:
        skip = "" if every else ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        yield f"Correct these rows{skip}."
        if any(problem.reason.endswith(NO_DEFAULT) for problem in self._problems.values()):
            yield (
                "You can declare a default for missing values: --declare FILE.toml with [context] "
                'and country = {values = ["fr", "de"], default = "fr"}, age = {default = 40}.'
            )
        # An id that repeats is most often that of a user.
        for problem in self._problems.values():
            if problem.other is not None:
                yield (
                    f"If {problem.column!r} is the id of a user and not of a row, say that the log "
                    "has no id: --column id= (columns={'id': None})."
                )

    def in_file(self, row: int) -> int:
        """Return the number of a row in the file, where lines that are not rows count too."""
        for line in self.lines:
            if line > row:
                break
            row += 1
        return row

    def _as_in_file(self, problem: RowProblem) -> RowProblem:
        other = None if problem.other is None else self.in_file(problem.other)
        return replace(problem, row=self.in_file(problem.row), other=other)
