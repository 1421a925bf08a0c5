"""The columns of a log: their roles, their values by SQL, and the rows that cannot be used."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.core.checks import did_you_mean, one_of
from submax.core.errors import InputError
from submax.core.summary import counted, listed
from submax.evaluation.sources import Source, quoted
from submax.schema.actions import ARMS
from submax.schema.names import LONGEST_NAME, short_repr

# Roles --------------------------------------------------------------------------------------------

USUAL: dict[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
    **dict.fromkeys(("status", "cluster", "count", "successes", "weight", "session"), ()),
}
"""The roles of single columns, with the names by which a column is found if none is given."""
ROLES = ("action", "context", *USUAL, "covariate", "probability")
"""The roles that a column can have."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Beginnings of the names of columns that hold slots, context fields and slots' propensities."""
PATTERN_SIGNS = "*?["
"""Signs that make the name of a column a pattern, unless a column has exactly this name."""
EXPORTED = {"status", "activated", "holdout", "late_rewards"}
"""A table with all these columns is the export of a bandit, even if its metadata was lost."""
Columns = dict[str, str]
"""Columns by the name of the slot, field or reward that they hold; of a single column, its role."""


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, Columns]:
    """Return the columns of each role: those that the caller named, and those with usual names.

    ``given`` maps roles to columns. For actions, contexts and rewards it can be a list of columns
    or of patterns such as ``affinity_*``, or a table from names to columns. None says that there is
    no such column. The status is read only from the export of a bandit, unless the caller names its
    column. Several rewards are ``outcomes``, of which the first one is the ``reward``.
    """
    for role in given:
        one_of("column role", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(
            f"the log has {times} columns called {twice!r}: give each column a different name",
            parameter=twice,
        )
    if "status" not in given and set(columns) >= EXPORTED:
        given = {**given, "status": "status"}
    usual: dict[str, Any] = {"action": "action" if "action" in columns else _after(ACTION, columns)}
    usual["context"] = _after(CONTEXT, columns)
    for role, names in USUAL.items():
        usual[role] = next((name for name in names if name in columns), None)
    if not given.get("action", ""):
        given = {role: one for role, one in given.items() if role != "action"}
    found = {role: _named(role, columns, given.get(role, usual.get(role))) for role in ROLES}
    several = not isinstance(given.get("reward"), str | None)
    found["outcomes"] = found["reward"] if several else {}
    if found["successes"]:
        if not found["count"] or given.get("reward") is not None:
            raise InputError(
                "a column of successes takes the place of rewards, and needs counts: name counts "
                "and successes, without rewards, --column count=NAME --column successes=NAME",
                parameter="successes",
            )
        found["reward"] = found["successes"]
    if found["session"] and found["count"]:
        raise InputError(
            "a log with sessions cannot have counts, because the decisions of a "
            "session follow each other: give a row for each decision",
            parameter="session",
        )
    for role in ("reward", "action"):
        if not found[role]:
            raise InputError(
                f"no column is called {role!r}: {did_you_mean(role, columns)}There are: "
                f"{listed(columns, 20)}. Say which column is the {role}: --column {role}=NAME "
                f"(columns={{{role!r}: NAME}})",
                parameter=role,
            )
    found["slot_propensity"] = {
        slot: f"{PROPENSITY}{slot}"
        for slot in found["action"]
        if slot != ARMS and f"{PROPENSITY}{slot}" in columns
    }
    return found


def _after(prefix: str, columns: Sequence[str]) -> Columns:
    return {name[len(prefix) :]: name for name in columns if name.startswith(prefix)}


def context_columns(columns: Sequence[str], given: Mapping[str, Any]) -> Columns:
    """Return the column of each field of the context, by the name of the field."""
    return _named("context", columns, given.get("context", _after(CONTEXT, columns)))


def _named(role: str, columns: Sequence[str], wanted: Any) -> Columns:
    """Return columns by name, from a column, a list of columns and patterns, a table, or None."""
    if wanted in (None, ""):
        return {}
    if isinstance(wanted, str) and (role in USUAL or role == "action"):
        wanted = {ARMS if role == "action" else role: wanted}
    elif role in USUAL and role != "reward":
        raise InputError(
            f"the column of the {role} is {wanted!r}, and must be the name of one column",
            parameter=role,
        )
    if isinstance(wanted, str):
        wanted = [wanted]
    if isinstance(wanted, (list, tuple)):
        wanted = {name: name for one in wanted for name in _matching(role, columns, str(one))}
    if not isinstance(wanted, Mapping):
        raise InputError(
            f"the columns of the {role} are {wanted!r}, and must be a list of columns or a table "
            "from names to columns",
            parameter=role,
        )
    for name in wanted.values():
        one_of(f"column for the {role}", str(name), columns)
    return dict(wanted)


def _matching(role: str, columns: Sequence[str], wanted: str) -> list[str]:
    """Return the columns that match a pattern such as ``affinity_*``; a name is itself."""
    if wanted in columns or not any(sign in wanted for sign in PATTERN_SIGNS):
        return [wanted]
    found = [name for name in columns if fnmatchcase(name, wanted)]
    if not found:
        raise InputError(
            f"no column matches {wanted!r}, the pattern for the {role}. There are: "
            f"{listed(columns)}. Change the pattern, or name the columns",
            parameter=role,
        )
    return found


# Values -------------------------------------------------------------------------------------------

NO_DEFAULT = "no default is declared"
"""End of the reason of a missing value, after which the error explains how to declare a default."""
REPEATED = "occurred before, in "
"""Beginning of the reason of a repeated id."""
ADVICE = {
    NO_DEFAULT: "You can declare a default for missing values: --declare FILE.toml with "
    '[context] and country = {{values = ["fr", "de"], default = "fr"}}, age = {{default = 40}}.',
    REPEATED: "If {0!r} is the id of a user and not of a row, say that the log has no id: "
    "--column id= (columns={{'id': None}}).",
}
"""What to do about a reason; ``{0}`` is the column."""
HINTS = {
    r"[-+]?\d+,\d+": "Are there decimal commas in {0!r}? Give --decimal ',' (decimal=',').",
    r"[-+]?[\d.,]+\s*%": "Is {0!r} in percent? Divide it by 100, and write numbers alone.",
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*": "Is {0!r} a date? A date is no number to learn "
    "from: name it as the time, --column time={0}, or leave it out.",
}
"""What a value that is not a number looks like, and what to do then."""
MOST_PROBLEMS = 12
"""Problems that a message lists, so it fits on a screen."""
TRUTH = {"true": 1, "false": 0, "yes": 1, "no": 0}
"""Words that are read as numbers; upper and lower case make no difference."""
NO_NAME = f"is not a name of 1 to {LONGEST_NAME} printable characters"
"""The reason for which a value is not the name of an action or a category."""
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


class CheckedColumns:
    """SQL that computes the values of a log from its columns, and the reasons why a row is bad.

    Its methods take a column of the source and return the name of a value in SQL: a number, a time,
    a text that is a name, the code of a name, or an id. ``counted`` is an SQL condition: only rows
    that fulfil it can be bad, because others are left out of the log anyway. A problem is the
    number of its rows, and the first of them, counted from 1.
    """

    def __init__(self, source: Source, counted: str = "true") -> None:
        self.source, self.counted = source, counted
        self.rows_read = self.bad_rows = 0
        self._values: list[str] = []
        self._checks: dict[tuple[str, str], str] = {}
        self._problems: dict[tuple[str, str], tuple[int, int]] = {}
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
        """Return a column in SQL and its type: all nested types are one, and so are texts."""
        kind = self.source.types[column]
        if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
            kind = "nested"
        return self.source.cell(column), "VARCHAR" if kind == '"NULL"' else kind

    def _number_of(self, column: str) -> str:
        cell, kind = self._kind(column)
        if kind == "VARCHAR":
            words = " ".join(f"when '{word}' then {one}" for word, one in TRUTH.items())
            plain = f"trim({cell}, e' \\t\\r\\n')"
            # DuckDB would read 1_000 as a number; in data it is a name.
            cell = f"case when contains({cell}, '_') then null else coalesce(try_cast({plain} "
            cell += f"as double), case lower({plain}) {words} end) end"
        else:
            cell = f"cast({cell} as double)" if kind.startswith(NUMBERS) else "cast(null as double)"
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
        if kind == "VARCHAR":
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
        elif kind != "VARCHAR":
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
        self.check(column, "is missing: every row needs an id", f"{text} is null")
        return self.value(f"coalesce(hash({text}), 0)")

    def code(self, text: str, names: Sequence[str]) -> str:
        """Return the index of each text among some names; ``UNKNOWN`` if it is none of them."""
        kind, self._enums = f"enum{self._enums}", self._enums + 1
        connection = self.source.connection
        connection.register("names", pa.table({"name": pa.array([*names, ""], pa.string())}))
        connection.execute(f"create type {kind} as enum (select name from names)")
        return self.value(f"coalesce(cast(enum_code(try_cast({text} as {kind})) as bigint), -1)")

    def names(self, column: str, text: str, found: Iterable[str] | None) -> list[str]:
        """Return the names that were found in good rows, sorted; rows with impossible ones are bad.

        They are ``found`` by ``facts``, as ``distinct(text, "good")``.
        """
        wrong = {one for one in found or () if not is_name(one)}
        if wrong:
            self.check(column, NO_NAME, f"{text} in ({', '.join(map(quoted, wrong))})")
        return sorted(set(found or ()) - wrong, key=rank)

    def numeric(self, columns: Sequence[str]) -> set[str]:
        """Return the columns that hold numbers, except for a few mistakes in columns of text."""
        texts = [one for one in columns if one in self.source.untyped]
        found = {one for one in columns if self._kind(one)[1].startswith(NUMBERS)}
        found |= {one for one in columns if self.source.types[one] == '"NULL"'}
        shares = ["count(*)"]
        for column in texts:
            cell = self.source.cell(column)
            # Text such as nan is no number of a log, but does not make a column one of names.
            wrong = f"{self._number_of(column)} is null and {cell} is not null"
            wrong += f" and lower({cell}) not in ('nan', 'inf', '-inf')"
            most = f"{MOST_NOT_NUMERIC} * count({cell})"
            shares.append(f"count({cell}) > 0 and count(*) filter ({wrong}) <= {most}")
        sample = f"(select * from {self.source.table} limit {SAMPLED_ROWS})"
        ((_, *are_numbers),) = self.source.rows(f"select {', '.join(shares)} from {sample}")
        return found | {one for one, is_one in zip(texts, are_numbers, strict=True) if is_one}

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
            are_counted, bad, *by_check = arrays[len(names) :]
            columns_by_name = dict(zip(names, arrays, strict=False))
            rows = Rows(self.rows_read + 1, columns_by_name, bad.copy(), are_counted)
            if bad.any():
                for (column, reason), of_check in zip(checks, by_check, strict=True):
                    self.note(rows, column, reason, of_check)
            self.rows_read += batch.num_rows
            yield rows
            # The caller may have marked more rows as bad.
            self.bad_rows += int(np.count_nonzero(rows.bad))

    # Problems

    def note(self, rows: Rows, column: str, reason: str, bad: Booleans) -> None:
        """Mark rows of a batch as bad because of a column."""
        bad = bad & rows.counted
        first = rows.first + int(np.argmax(bad))
        self.count(column, reason, int(np.count_nonzero(bad)), first)
        rows.bad[:] |= bad

    def count(self, column: str, reason: str, rows: int, first: int) -> None:
        """Count rows with a problem, of which the first one is given."""
        if rows:
            before, known = self._problems.get((column, reason), (0, first))
            self._problems[column, reason] = before + rows, known

    @property
    def bad(self) -> int:
        """The number of rows with a problem, and of those with too few or too many values."""
        return self.bad_rows + sum(map(len, self.source.rejected.values()))

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
        for file, numbers in self.source.rejected.items():
            lines = f"another number of values than the header ({counted(len(numbers), 'line')})"
            found.append(f"{self.source.in_file(file, numbers[0])} has {lines}")
        more = len(self._problems) + len(self.source.rejected) - MOST_PROBLEMS
        return [*found[:MOST_PROBLEMS], *[f"... and {more} other problems"] * (more > 0)]

    def refuse(self, parameter: str | None = None) -> None:
        """Raise an error that lists all problems, if there are any.

        Rows can be left out of a log, not of the table that is the value of another ``parameter``,
        for which no defaults can be declared either.
        """
        if not self.bad:
            return
        every = self.rows_read + self.bad - self.bad_rows
        skip = ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        advice = [f"Correct these rows{skip if self.bad < every and parameter is None else ''}."]
        for (column, reason), (_, first) in list(self._problems.items())[:MOST_PROBLEMS]:
            value = self._value(column, first).strip("'\" ")
            known = [hint for pattern, hint in HINTS.items() if re.fullmatch(pattern, value)]
            if parameter is None:
                known += [one for part, one in ADVICE.items() if part in reason]
            advice += [one.format(column) for one in known]
        found = [f"{self.bad} of {every} rows of {self.source.name} cannot be used:"]
        lines = ["\n  ".join([*found, *self.sentences()]), *dict.fromkeys(advice)]
        raise InputError("\n".join(lines), parameter=parameter)


def distinct(text: str, condition: str) -> str:
    """Return the aggregate of the different texts in rows that fulfil a condition."""
    return f"list(distinct {text}) filter (({condition}) and {text} is not null)"


def is_name(text: str) -> bool:
    """Return whether a text can be the name of an action or a category."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


def rank(name: str) -> tuple[int, float, str]:
    """Return a key that sorts numbers first, by value, and other names after them."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    return (1, 0.0, name) if math.isnan(number) else (0, number, name)
