"""Cells of a log as numbers, times and names, and the rows that cannot be used."""

import hashlib
import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.summary import counted
from submax.schema.names import LONGEST_NAME, short_repr

NO_DEFAULT = "no default is declared"
"""End of the reason of a missing value, after which the error explains how to declare a default."""
HINTS = {
    r"[-+]?\d+,\d+": "Are there decimal commas in {0!r}? Give --decimal ',' (decimal=',').",
    r"[-+]?[\d.,]+\s*%": "Is {0!r} in percent? Divide it by 100, and write numbers alone.",
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*": "Is {0!r} a date? Leave it out of the context, or "
    "name it as the time: --column time={0}.",
}
"""What a value that is not a number looks like, and what to do then."""
MOST_LINES = 1_000_000
"""Rows whose line is found; nobody opens a longer file in an editor, and it would take seconds."""
MOST_PROBLEMS = 12
"""Problems that a message lists, so that it fits on a screen."""


def hint_about(column: str, values: Iterable[str]) -> str | None:
    """Return what to do if all values of a column are numbers or dates of another form.

    >>> hint_about("price", ["3,5", "10,25"])
    "Are there decimal commas in 'price'? Give --decimal ',' (decimal=',')."
    """
    cells = [value.strip("'\" ") for value in values]
    for pattern, hint in HINTS.items():
        if cells and all(re.fullmatch(pattern, cell) for cell in cells):
            return hint.format(column)
    return None


class FileRows(NamedTuple):
    """The rows of one file of a log: the number of its ``first`` one, and the ``name`` of the file.

    The name is empty if there is one file alone. ``lines`` yields the line at which each row
    begins, as an editor counts; None if rows are not lines of text.
    """

    first: int
    name: str
    lines: Callable[[], Iterator[int]] | None


class RowProblem(NamedTuple):
    """A column and a reason for which ``rows`` cannot be used.

    ``row``, counted from 1, and ``value`` are those of the first of these rows. ``other`` is the
    row in which a repeated id occurred before; the sentence ends with it.
    """

    column: str
    reason: str
    rows: int
    row: int
    value: str
    other: int | None = None


class BadRows:
    """Collects the problems found while a log is read.

    ``rows`` counts rows with a problem; ``lines`` are the numbers, among all rows, of lines that
    are none, such as those with too few values. ``files`` are the files that were read.
    """

    def __init__(self) -> None:
        # An array takes little memory: there may be millions of such lines.
        self.lines = array("q")
        self.rows = 0
        self.files: list[FileRows] = []
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
            text = "the value" if value(place) is None else short_repr(value(place))
            before = RowProblem(column, reason, 0, first_row + place, text)
        self._problems[column, reason] = before._replace(rows=before.rows + count)

    def note_repeats(self, column: str, count: int, row: int, before: int) -> None:
        """Count rows whose id occurred before; ``row`` is the first of them, ``before`` the other.

        An id that repeats is most often that of a user.
        """
        reason = "occurred before, in"
        self._problems[column, reason] = RowProblem(column, reason, count, row, "the id", before)
        self.rows += count

    def sentences(self) -> list[str]:
        """Return a sentence for each problem, at most ``MOST_PROBLEMS``."""
        sentences = []
        for one in self._problems.values():
            other = "" if one.other is None else f" {self.row(one.other)}"
            sentences.append(
                f"column {one.column!r}, {self.row(one.row)}: {one.value} {one.reason}{other} "
                f"({counted(one.rows, 'row')})"
            )
        if self.lines:
            where = self._in_file(self.lines[0])
            lines = counted(len(self.lines), "line")
            sentences.append(f"{where} has another number of values than the header ({lines})")
        left_out = len(sentences) - MOST_PROBLEMS
        more = [f"... and {left_out} other problems"] if left_out > 0 else []
        return [*sentences[:MOST_PROBLEMS], *more]

    def refuse(self, name: str, rows: int, parameter: str | None = None) -> None:
        """Raise an error that lists all problems, if there are any.

        Rows can be left out of a log, not of the table that is the value of another ``parameter``.
        """
        if not self.count:
            return
        every = rows + len(self.lines)
        skip = ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        advice = [f"Correct these rows{skip if self.count < every and parameter is None else ''}."]
        problems = self._problems.values()
        hints = [hint_about(one.column, [one.value]) for one in problems]
        advice += dict.fromkeys(hint for hint in hints if hint is not None)
        if any(one.reason.endswith(NO_DEFAULT) for one in problems):
            advice.append(
                "You can declare a default for missing values: --declare FILE.toml with [context] "
                'and country = {values = ["fr", "de"], default = "fr"}, age = {default = 40}.'
            )
        advice += [
            f"If {one.column!r} is the id of a user and not of a row, say that the log has no id: "
            "--column id= (columns={'id': None})."
            for one in problems
            if one.other is not None
        ]
        found = [f"{self.count} of {every} rows of {name} cannot be used:", *self.sentences()]
        raise InputError("\n".join(["\n  ".join(found), *advice]), parameter=parameter)

    def row(self, number: int) -> str:
        """Return where a row is: its number and line in its file, and which of several files.

        The ``number`` does not count lines that are not rows.
        """
        for line in self.lines:
            if line > number:
                break
            number += 1
        return self._in_file(number)

    def _in_file(self, number: int) -> str:
        file = next((one for one in reversed(self.files) if one.first <= number), None)
        if file is None:
            return f"row {number}"
        number -= file.first - 1
        line = None
        if file.lines is not None and number <= MOST_LINES:
            line = next(islice(file.lines(), number - 1, None), None)
        where = f"row {number}" if line is None else f"row {number} (line {line})"
        return f"{where} of {file.name}" if file.name else where


TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
"""Words that are read as numbers; upper and lower case make no difference."""
SEPARATOR = "|"
"""Separates the names of eligible choices in a cell of text."""


class Numbers(NamedTuple):
    """Finite ``values [n]``, NaN where a cell is ``missing`` or is ``wrong`` (not a number)."""

    values: Floats
    missing: Booleans
    wrong: Booleans


def numbers(column: Any) -> Numbers:
    """Return the numbers of a pyarrow array, which may hold them as text."""
    return _numbers(column, _as_number)


def times(column: Any) -> Numbers:
    """Return times in seconds since 1970; text is read as ISO 8601, in UTC if it has no zone."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = _parsed(column)
    if pa.types.is_timestamp(column.type):
        # Microseconds since 1970 fit into a double until long after the year 2200.
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
        found = _numbers(column, _as_number)
        return found._replace(values=found.values / 1e6)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s")).cast(pa.int64())
    return _numbers(column, _as_time)


def eligible_names(value: Any) -> list[list[Any]] | None:
    """Return the names of eligible choices in a cell, for each slot; None if it has none.

    A cell is a list of lists, a list (one slot), either of them as JSON, or text such as ``A|B``.
    """
    if isinstance(value, str):
        if not value.startswith("["):
            return [value.split(SEPARATOR)]
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(one, list) for one in value):
        return value
    return [value]


def _parsed(column: Any) -> Any:
    """Return text as timestamps if pyarrow can convert the whole column, otherwise unchanged."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            # A failing conversion of the whole column is slow, so try the first value before.
            pc.cast(column.drop_null()[:1], kind)
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            continue
    return column


def _numbers(column: Any, convert_cell: Callable[[Any], float]) -> Numbers:
    missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    try:
        cast = pc.cast(column, pa.float64(), safe=False)
        values = cast.to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        values = np.array([convert_cell(value) for value in column.to_pylist()], dtype=np.float64)
    finite = np.isfinite(values)
    return Numbers(np.where(finite, values, np.nan), missing, ~finite & ~missing)


def _as_number(value: Any) -> float:
    try:
        text = str(value).strip().lower()
        # Python would read 1_000 as a number; in data it is a name.
        return TRUTH[text] if text in TRUTH else float(text.replace("_", "?"))
    except ValueError:
        return float("nan")


def _as_time(value: Any) -> float:
    # Try numbers first, as for a column of numbers: 20240101 is a number, not a date.
    number = _as_number(value)
    if not math.isnan(number):
        return number
    try:
        time = datetime.fromisoformat(str(value).strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return number


UNKNOWN, MISSING = -1, -2
"""In place of an index: a value that is not in the vocabulary, and an empty cell."""
NO_NAME = f"is not a name of 1 to {LONGEST_NAME} printable characters"
"""The reason for which a value is unknown if no names were declared."""


class Vocabulary:
    """The indices of names: of those that were declared, or of all names as they occur.

    ``open`` says that none were declared, so that every name gets the next index.
    """

    def __init__(self, declared: Iterable[str] | None = None) -> None:
        self.open = declared is None
        self.indices = {name: index for index, name in enumerate(declared or ())}

    def code(self, column: Any) -> Integers:
        """Return the index of each value of a pyarrow array; UNKNOWN and MISSING are negative."""
        if not pa.types.is_dictionary(column.type):
            try:
                column = column.dictionary_encode()
            except pa.ArrowNotImplementedError:
                # pyarrow cannot encode lists and other nested values.
                return np.array([self.index(one) for one in column.to_pylist()], dtype=np.int64)
        names = column.dictionary.to_pylist()
        table = np.array([*(self.index(name) for name in names), MISSING], dtype=np.int64)
        place = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        return table[np.asarray(place, dtype=np.int64)]

    def index(self, value: Any) -> int:
        """Return the index of one value, which becomes a new name in an open vocabulary."""
        if isinstance(value, (list, dict)):
            return UNKNOWN
        name = as_name(value)
        if name is None:
            return MISSING
        if name not in self.indices:
            if not self.open or len(name) > LONGEST_NAME or not name.isprintable():
                return UNKNOWN
            self.indices[name] = len(self.indices)
        return self.indices[name]

    def sorted(self, used: Integers) -> tuple[list[str], Integers]:
        """Return the ``used`` names in sorted order, and the new index of each old index."""
        names = list(self.indices)
        order = sorted(used.tolist(), key=lambda place: rank(names[place]))
        new_index = np.full(len(names), UNKNOWN, dtype=np.int64)
        new_index[order] = np.arange(len(order))
        return [names[one] for one in order], new_index


def as_name(value: Any) -> str | None:
    """Return a value as the name of a choice or category; None if the value is missing."""
    if value is None or value in ("", b"") or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Some Parquet files hold text as bytes.
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def not_whole(names: Iterable[str]) -> bool:
    """Return whether all names are finite numbers, and some of them are not whole."""
    ranks = [rank(name) for name in names]
    return all(kind == 0 and math.isfinite(number) for kind, number, _ in ranks) and any(
        not number.is_integer() for _, number, _ in ranks
    )


def rank(name: str) -> tuple[int, float, str]:
    """Return a key that sorts numbers first, by value, and other names after them."""
    try:
        number = float(name)
    except ValueError:
        return (1, 0.0, name)
    return (1, 0.0, name) if math.isnan(number) else (0, number, name)


NO_ID = "is missing: every row needs an id"


class CheckedBatch:
    """A batch whose columns are read and checked; ``bad [n]`` marks rows with a problem.

    Only rows that are ``counted`` can be bad: the others are left out of the log anyway.
    """

    def __init__(self, batch: Any, bad: BadRows, first_row: int, counted: Booleans) -> None:
        self._batch, self._all, self._first, self._counted = batch, bad, first_row, counted
        self.rows = batch.num_rows
        self.bad = np.zeros(self.rows, dtype=bool)

    def column(self, name: str) -> Any:
        """Return a column as a pyarrow array."""
        return self._batch.column(name)

    def note(self, column: str, reason: str, bad: Booleans) -> None:
        """Mark rows as bad because of a column, and count them under a reason."""
        bad = bad & self._counted
        if bad.any():
            values = self._batch.column(column)
            self._all.note(column, reason, bad, self._first, lambda row: values[row].as_py())
            self.bad |= bad

    def missing(self, name: str) -> Booleans:
        """Return in which rows a column has no value."""
        return np.asarray(self.column(name).is_null().to_numpy(zero_copy_only=False))

    def numbers_or(self, column: str, default: float | None) -> Floats:
        """Return the numbers of a column, with the default in place of missing ones.

        Without a default a row with a missing number is bad.
        """
        if default is None:
            return self.required_numbers(column)
        found = numbers(self.column(column))
        self.note(column, "is not a finite number", found.wrong)
        return np.where(found.missing, default, found.values)

    def required_numbers(
        self, column: str, read: Any = numbers, reason: str = "is not a finite number"
    ) -> Floats:
        """Return the numbers of a column; a row in which the number is missing is bad."""
        found = read(self.column(column))
        self.note(column, reason, found.wrong)
        self.note(column, "is missing", found.missing)
        values: Floats = found.values
        return values

    def identifiers(self, column: str) -> Integers:
        """Return a number for each id, equal for equal ids, also in other processes."""
        values = self.column(column)
        if pa.types.is_integer(values.type):
            self.note(column, NO_ID, self.missing(column))
            # Unsigned ids beyond the range of int64 become negative, and stay distinct.
            return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
        encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        names = [as_name(value) or "" for value in encoded.dictionary.to_pylist()]
        place = encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        missing = np.array([*(not name for name in names), True])[place]
        self.note(column, NO_ID, missing)
        hashes = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in [*names, ""]]
        found: Integers = np.frombuffer(b"".join(hashes), dtype=np.int64)[place]
        return found

    def whole_numbers(self, column: str) -> Integers | None:
        """Return the integers of a column, 0 for missing ones; None if some are not integers."""
        try:
            values = pc.cast(self.column(column), pa.int64()).fill_null(0)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return np.asarray(values.to_numpy(zero_copy_only=False))


MOST_DECISIONS = 2.0**53
"""Whole numbers up to this one are exact as floating-point numbers."""


def read_counts(batch: CheckedBatch, column: str) -> Floats:
    """Return the number of decisions of each row; rows without a whole number are bad."""
    count = batch.required_numbers(column)
    batch.note(column, "is below 0, as no number of decisions can be", count < 0)
    whole = (count == np.round(count)) | np.isnan(count)
    batch.note(column, "is not a whole number of decisions", ~whole | (count > MOST_DECISIONS))
    return count


def with_rewards(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns with a row for each reward, 0 and 1, of rows that count successes.

    The column ``successes`` is replaced by ``reward``, and ``count`` is the number of decisions
    with this reward. Rows that stand for no decision are left out.
    """
    successes = columns.pop("successes", None)
    if successes is not None:
        failures = columns["count"] - successes
        columns = {name: np.repeat(values, 2, axis=0) for name, values in columns.items()}
        columns["reward"] = np.tile([1.0, 0.0], len(successes))
        columns["count"] = np.stack([successes, failures], axis=1).ravel()
    if "count" not in columns:
        return columns
    some = columns["count"] > 0
    return {name: values[some] for name, values in columns.items()}


class WordCount:
    """Counts, batch by batch, the cells of a column that are words and those that are numbers."""

    def __init__(self) -> None:
        self._counts: Counter[str | None] = Counter()

    def add(self, column: Any) -> None:
        """Count the cells of the next batch, a pyarrow array."""
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            self._counts[None] += len(column)
            return
        cells = column.drop_null()
        plain = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
        words = cells.filter(pc.is_in(plain, pa.array(list(TRUTH))))
        self._counts.update(words.to_pylist())
        self._counts[None] += len(cells) - len(words)

    def notes(self, name: str) -> Iterator[str]:
        """Yield a sentence if the column has words, alone or among numbers."""
        numbers, words = self._counts[None], [one for one in self._counts if one is not None]
        if words and not numbers:
            yield f"column {name!r}: yes and true were read as 1, no and false as 0"
        elif words:
            yield (
                f"column {name!r} has {counted(self._counts.total() - numbers, 'word')} such as "
                f"{words[0]!r} among numbers; yes and true were read as 1, no and false as 0: "
                "check where they are from"
            )
