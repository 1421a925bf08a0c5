"""Columns of a log as numbers, times, names and ids by SQL, and the rows that cannot be used."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.core.errors import InputError
from submax.core.summary import counted
from submax.evaluation.sources import Source, quoted
from submax.schema.names import LONGEST_NAME, short_repr

NO_DEFAULT = "no default is declared"
"""End of the reason of a missing value, after which the error explains how to declare a default."""
HINTS = {
    r"[-+]?\d+,\d+": "Are there decimal commas in {0!r}? Give --decimal ',' (decimal=',').",
    r"[-+]?[\d.,]+\s*%": "Is {0!r} in percent? Divide it by 100, and write numbers alone.",
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*": "Is {0!r} a date? A date is no number to learn "
    "from: name it as the time, --column time={0}, or leave it out.",
}
"""What a value that is not a number looks like, and what to do then."""
MOST_PROBLEMS = 12
"""Problems that a message lists, so it fits on a screen."""


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


class BadRows:
    """Collects, by column and reason, the problems found while a log is read.

    ``rows`` counts rows with a problem; those that are no rows are rejected by the source. A
    problem is the number of its rows, and the first of them, counted from 1.
    """

    def __init__(self, source: Source) -> None:
        self.source, self.rows = source, 0
        self._problems: dict[tuple[str, str], tuple[int, int]] = {}

    @property
    def rejected(self) -> int:
        """The number of rows that are none, such as those with too few values."""
        return sum(map(len, self.source.rejected))

    @property
    def count(self) -> int:
        """The number of rows with a problem, and of those that are none."""
        return self.rows + self.rejected

    def note(self, column: str, reason: str, rows: int, first: int) -> None:
        """Count rows that have a problem."""
        if rows:
            before, known = self._problems.get((column, reason), (0, first))
            self._problems[column, reason] = before + rows, known

    def _value(self, column: str, row: int) -> str:
        source = self.source
        query = f"select {source.cell(column)} from {source.table} limit 1 offset {row - 1}"
        ((value,),) = source.rows(query)
        return "the value" if value is None else short_repr(value)

    def sentences(self) -> list[str]:
        """Return a sentence for each problem, at most ``MOST_PROBLEMS``."""
        found = [
            f"column {column!r}, {self.source.row(first)}: {self._value(column, first)} {reason} "
            f"({counted(rows, 'row')})"
            for (column, reason), (rows, first) in list(self._problems.items())[:MOST_PROBLEMS]
        ]
        if self.rejected:
            found.append(f"{self.source.first_rejected()} ({counted(self.rejected, 'line')})")
        left_out = len(self._problems) + (self.rejected > 0) - MOST_PROBLEMS
        more = [f"... and {left_out} other problems"] if left_out > 0 else []
        return [*found[:MOST_PROBLEMS], *more]

    def refuse(self, rows: int, parameter: str | None = None) -> None:
        """Raise an error that lists all problems, if there are any.

        Rows can be left out of a log, not of the table that is the value of another ``parameter``,
        for which no defaults can be declared either.
        """
        if not self.count:
            return
        every = rows + self.rejected
        skip = ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        advice = [f"Correct these rows{skip if self.count < every and parameter is None else ''}."]
        for (column, reason), (_, first) in list(self._problems.items())[:MOST_PROBLEMS]:
            hint = hint_about(column, [self._value(column, first)])
            advice += [hint] if hint is not None else []
            if reason.endswith(NO_DEFAULT) and parameter is None:
                advice.append(
                    "You can declare a default for missing values: --declare FILE.toml with "
                    '[context] and country = {values = ["fr", "de"], default = "fr"}, age = '
                    "{default = 40}."
                )
            if reason.startswith(REPEATED):
                advice.append(
                    f"If {column!r} is the id of a user and not of a row, say that the log has no "
                    "id: --column id= (columns={'id': None})."
                )
        found = [f"{self.count} of {every} rows of {self.source.name} cannot be used:"]
        lines = ["\n  ".join([*found, *self.sentences()]), *dict.fromkeys(advice)]
        raise InputError("\n".join(lines), parameter=parameter)


REPEATED = "occurred before, in "
"""Beginning of the reason of a repeated id."""
TRUTH = {"true": 1, "false": 0, "yes": 1, "no": 0}
"""Words that are read as numbers; upper and lower case make no difference."""
NO_NAME = f"is not a name of 1 to {LONGEST_NAME} printable characters"
"""The reason for which a value is not the name of an action or a category."""
NO_ID = "is missing: every row needs an id"
UNKNOWN = -1
"""The code of a value that is missing, or that is not among the names."""
NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BOOLEAN"),
)
"""Beginnings of the names of numeric types in DuckDB."""
SAMPLED_ROWS = 10_000
"""Rows of a text column that are looked at to find out whether it holds numbers."""
MOST_NOT_NUMERIC = 0.1
"""A text column holds numbers, with some mistakes, if at most this share is not numeric."""


class Rows(NamedTuple):
    """A batch of rows: the number of its ``first`` one, its ``columns`` by name, and bad rows.

    Those that are not ``counted`` are left out of the log anyway.
    """

    first: int
    columns: dict[str, NDArray[Any]]
    bad: Booleans
    counted: Booleans

    @property
    def total(self) -> int:
        """The number of rows."""
        return len(self.bad)


class CheckedColumns:
    """SQL that computes the values of a log from its columns, and the reasons why a row is bad.

    Its methods take a column of the source and return the name of a value in SQL: a number, a time,
    a text that is a name, the code of a name, or an id. ``counted`` is an SQL condition: only rows
    that fulfil it can be bad, because others are left out of the log anyway.
    """

    def __init__(self, source: Source, counted: str = "true") -> None:
        self.source, self.bad, self.counted = source, BadRows(source), counted
        self.rows_read = 0
        self._values: list[str] = []
        self._checks: dict[tuple[str, str], str] = {}
        self._enums = 0

    def value(self, sql: str) -> str:
        """Return the name of a value, which other values and conditions can use."""
        if sql not in self._values:
            self._values.append(sql)
        return f"x{self._values.index(sql)}"

    def check(self, column: str, reason: str, condition: str) -> None:
        """Count the rows as bad that fulfil an SQL condition."""
        before = self._checks.get((column, reason))
        self._checks[column, reason] = f"({before}) or ({condition})" if before else condition

    def _kind(self, column: str) -> tuple[str, str]:
        """Return a column in SQL and its type: a nested one is a type of its own."""
        kind = self.source.types[column]
        nested = kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION"))
        return self.source.cell(column), "nested" if nested else kind

    def is_text(self, column: str) -> bool:
        """Return whether a column holds text."""
        return self._kind(column)[1] in ("VARCHAR", '"NULL"')

    def _number_of(self, column: str) -> str:
        cell, kind = self._kind(column)
        if self.is_text(column):
            words = " ".join(f"when '{word}' then {one}" for word, one in TRUTH.items())
            plain = f"trim({cell}, e' \\t\\r\\n')"
            # DuckDB would read 1_000 as a number; in data it is a name.
            cell = f"case when contains({cell}, '_') then null else coalesce(try_cast({plain} "
            cell += f"as double), case lower({plain}) {words} end) end"
        elif kind.startswith(NUMBERS):
            cell = f"cast({cell} as double)"
        else:
            cell = "cast(null as double)"
        return f"case when isfinite({cell}) then {cell} end"

    def number(self, column: str, required: bool = True) -> str:
        """Return the finite numbers of a column, which it may hold as text; null if missing."""
        cell, found = self.source.cell(column), self.value(self._number_of(column))
        self.check(column, "is not a finite number", f"{found} is null and {cell} is not null")
        if required:
            self.check(column, "is missing", f"{cell} is null")
        return found

    def time(self, column: str) -> str:
        """Return times in seconds since 1970; text is read as ISO 8601, in UTC if without zone."""
        cell, kind = self._kind(column)
        moment = f"epoch_us(try_cast({cell} as timestamptz)) / 1e6"
        if self.is_text(column):
            # Try numbers first, as for a column of numbers: 20240101 is a number, not a date.
            moment = f"coalesce({self._number_of(column)}, {moment})"
        elif not kind.startswith(("TIMESTAMP", "DATE")):
            moment = self._number_of(column)
        found = self.value(moment)
        self.check(column, "is not a time", f"{found} is null and {cell} is not null")
        self.check(column, "is missing", f"{cell} is null")
        return found

    def text(self, column: str, nested: bool = False) -> str:
        """Return what a column holds as text; null if missing, and lists only if ``nested``."""
        cell, kind = self._kind(column)
        if kind == "nested":
            cell = f"cast(to_json({cell}) as varchar)" if nested else "cast(null as varchar)"
        elif kind in ("FLOAT", "DOUBLE"):
            whole = f"abs({cell}) < 1e30 and {cell} = trunc({cell})"
            whole = f"case when {whole} then cast(cast({cell} as hugeint) as varchar)"
            cell = f"case when isnan({cell}) then null else {whole} else {cell}::varchar end end"
        elif kind == "BLOB":
            # Some Parquet files hold text as bytes.
            cell = f"coalesce(try(decode({cell})), cast({cell} as varchar))"
        elif kind == "BOOLEAN":
            cell = f"case when {cell} then 'True' when not {cell} then 'False' end"
        elif not self.is_text(column):
            cell = f"cast({cell} as varchar)"
        return self.value(f"nullif({cell}, '')")

    def name(self, column: str, missing: str) -> str:
        """Return the names of actions or categories in a column, as text."""
        found = self.text(column)
        nested = self._kind(column)[1] == "nested"
        self.check(column, NO_NAME if nested else missing, f"{found} is null")
        return found

    def identifier(self, column: str) -> str:
        """Return a number for each id, equal for equal ids."""
        text = self.text(column)
        self.check(column, NO_ID, f"{text} is null")
        return self.value(f"coalesce(hash({text}), 0)")

    def code(self, text: str, names: Sequence[str]) -> str:
        """Return the index of each text among some names; ``UNKNOWN`` if it is none of them."""
        kind, self._enums = f"enum{self._enums}", self._enums + 1
        connection = self.source.connection
        connection.register("names", pa.table({"name": pa.array([*names, ""], pa.string())}))
        connection.execute(f"create type {kind} as enum (select name from names)")
        return self.value(f"coalesce(cast(enum_code(try_cast({text} as {kind})) as bigint), -1)")

    def names(self, column: str, text: str, found: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the names that occur in good rows, sorted; rows with impossible names are bad.

        ``found`` has every ``name`` in the column, and whether rows with it are ``good``.
        """
        named = [one for one in found if one["name"] is not None]
        wrong = dict.fromkeys(one["name"] for one in named if not is_name(one["name"]))
        if wrong:
            self.check(column, NO_NAME, f"{text} in ({', '.join(map(quoted, wrong))})")
        return sorted({one["name"] for one in named if one["good"]} - wrong.keys(), key=rank)

    def numeric(self, columns: Sequence[str]) -> set[str]:
        """Return the columns that hold numbers, except for a few mistakes in columns of text."""
        found = {one for one in columns if self._kind(one)[1].startswith(NUMBERS)}
        texts = [one for one in columns if one in self.source.untyped]
        found |= {one for one in columns if self._kind(one)[1] == '"NULL"'}
        if not texts:
            return found
        counts = []
        for column in texts:
            cell = self.source.cell(column)
            # Text such as nan is no number of a log, but does not make a column one of names.
            wrong = f"{self._number_of(column)} is null and {cell} is not null"
            wrong += f" and lower({cell}) not in ('nan', 'inf', '-inf')"
            counts += [f"count({cell})", f"count(*) filter ({wrong})"]
        sample = f"(select * from {self.source.table} limit {SAMPLED_ROWS})"
        ((*numbers,),) = self.source.rows(f"select {', '.join(counts)} from {sample}")
        for column, present, wrong_ones in zip(texts, numbers[::2], numbers[1::2], strict=True):
            if present and wrong_ones <= MOST_NOT_NUMERIC * present:
                found.add(column)
        return found

    def _query(self) -> str:
        values = [f"{sql} as x{place}" for place, sql in enumerate(self._values)]
        checks = [
            f"coalesce(({self.counted}) and ({sql}), false) as b{place}"
            for place, sql in enumerate(self._checks.values())
        ]
        return f"select *, {', '.join([*values, *checks])} from {self.source.table}"

    @property
    def _any(self) -> str:
        return " or ".join(f"b{place}" for place in range(len(self._checks))) or "false"

    @staticmethod
    def names_fact(text: str, good: str) -> str:
        """Return the aggregate that ``names`` needs, about the rows that fulfil a condition."""
        return f"list(distinct {{'name': {text}, 'good': {good}}})"

    def facts(self, wanted: Mapping[str, str]) -> dict[str, Any]:
        """Return aggregates over all rows by name; ``good`` are the rows without a problem."""
        if not wanted:
            return {}
        rows = f"(select *, ({self.counted}) and not ({self._any}) as good from ({self._query()}))"
        ((*found,),) = self.source.rows(f"select {', '.join(wanted.values())} from {rows}")
        return dict(zip(wanted, found, strict=True))

    def batches(self, wanted: Mapping[str, str]) -> Iterator[Rows]:
        """Yield the wanted values of all rows by name, and note the problems of bad rows."""
        names, checks = list(wanted), list(self._checks)
        columns = [*wanted.values(), self.counted, self._any]
        columns += [f"b{place}" for place in range(len(checks))]
        for batch in self.source.batches(f"select {', '.join(columns)} from ({self._query()})"):
            if not batch.num_rows:
                continue
            arrays = [one.to_numpy(zero_copy_only=False) for one in batch.columns]
            counted, bad, *by_check = arrays[len(names) :]
            first = self.rows_read + 1
            if bad.any():
                for (column, reason), rows in zip(checks, by_check, strict=True):
                    self.bad.note(
                        column, reason, int(np.count_nonzero(rows)), first + int(np.argmax(rows))
                    )
            self.rows_read += batch.num_rows
            rows = Rows(first, dict(zip(names, arrays, strict=False)), bad.copy(), counted)
            yield rows
            # The caller may have marked more rows as bad.
            self.bad.rows += int(np.count_nonzero(rows.bad))

    def note(self, rows: Rows, column: str, reason: str, bad: Booleans) -> None:
        """Mark more rows of a batch as bad because of a column."""
        bad = bad & rows.counted
        first = rows.first + int(np.argmax(bad))
        self.bad.note(column, reason, int(np.count_nonzero(bad)), first)
        rows.bad[:] |= bad

    def refuse(self, parameter: str | None = None) -> None:
        """Raise an error that lists all problems, if there are any."""
        self.bad.refuse(self.rows_read, parameter)


def is_name(text: str) -> bool:
    """Return whether a text can be the name of an action or a category."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


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
