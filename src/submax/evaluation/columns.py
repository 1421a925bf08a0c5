"""The columns of a log: their roles, their values by SQL, and the rows that cannot be used."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.checks import did_you_mean, one_of
from submax.core.errors import InputError
from submax.core.summary import counted, listed
from submax.evaluation.sources import Source, quoted
from submax.schema.actions import ARMS
from submax.schema.names import LONGEST_NAME, is_name, rank, short_repr

# Roles --------------------------------------------------------------------------------------------

USUAL: dict[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
    **dict.fromkeys(("status", "cluster", "count", "successes", "weight", "session"), ()),
}
"""The roles of single columns, and the usual names by which such a column is found."""
ROLES = ("action", "context", *USUAL, "covariate", "probability")
"""The roles that a column can have."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Prefixes of columns that hold slots, context fields and propensities of slots."""
EXPORTED = {"status", "activated", "holdout", "late_rewards"}
"""A table with all these columns is the export of a bandit, even if its metadata was lost."""
Columns = dict[str, str]
"""Columns by the name of the slot, field or reward that they hold; a single column, by its role."""


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, Columns]:
    """Return the columns of each role: those that the caller named, and those with usual names.

    ``given`` maps roles to columns. For actions, contexts and rewards it can be a list of columns
    or of patterns such as ``affinity_*``, or a table from names to columns. None says that there is
    no such column. The status is read only from the export of a bandit, unless the caller names its
    column. Several rewards are ``outcomes``; the first one is the ``reward``.
    """
    for role in given:
        one_of("column role", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(
            f"the log has {times} columns called {twice!r}: give each column a different name",
            parameter=twice,
        )
    wanted: dict[str, Any] = {
        "action": "action" if "action" in columns else _after(ACTION, columns),
        "context": _after(CONTEXT, columns),
        "status": "status" if set(columns) >= EXPORTED else None,
    }
    for role, names in USUAL.items():
        wanted.setdefault(role, next((name for name in names if name in columns), None))
    wanted |= given
    found = {role: columns_of_role(role, columns, wanted.get(role)) for role in ROLES}
    found["outcomes"] = {} if isinstance(wanted["reward"], str | None) else found["reward"]
    found["reward"] = dict([*found["reward"].items()][:1])
    if found["successes"]:
        if not found["count"] or given.get("reward") is not None:
            raise InputError(
                "a column of successes needs a column of counts, and replaces the rewards: give "
                "--column count=NAME --column successes=NAME, and no reward",
                parameter="successes",
            )
        found["reward"] = {}
    if found["session"] and found["count"]:
        raise InputError(
            "a log with sessions cannot have counts, because the decisions of a "
            "session have an order: give a row for each decision",
            parameter="session",
        )
    for role in ("action",) if found["successes"] else ("reward", "action"):
        if not found[role]:
            hint = did_you_mean(role, columns)
            raise InputError(
                f"no column is called {role!r}: {hint}{'The' if hint else 'the'} columns are "
                f"{listed(columns, 20)}. Say which column is the {role}: --column {role}=NAME "
                f"(columns={{{role!r}: NAME}})",
                parameter=role,
            )
    propensities = _after(PROPENSITY, columns)
    # They are used only if there is one for every slot.
    complete = found["action"].keys() <= propensities.keys()
    found["slot_propensity"] = propensities if complete else {}
    return found


def _after(prefix: str, columns: Sequence[str]) -> Columns:
    return {name[len(prefix) :]: name for name in columns if name.startswith(prefix)}


def columns_of_role(role: str, columns: Sequence[str], wanted: Any) -> Columns:
    """Return columns by name, given a column, a list of columns and patterns, a table, or None."""
    if wanted in (None, ""):
        return {}
    single = role in USUAL and role != "reward"
    if isinstance(wanted, str) and (role in USUAL or role == "action"):
        wanted = {ARMS if role == "action" else role: wanted}
    elif isinstance(wanted, (str, list, tuple)) and not single:
        names = [wanted] if isinstance(wanted, str) else wanted
        wanted = {name: name for one in names for name in _matching(role, columns, str(one))}
    elif single or not isinstance(wanted, Mapping):
        others = "" if single else ", a list of columns, or a table from names to columns"
        raise InputError(
            f"the column of the {role} is {wanted!r}: give the name of one column{others}",
            parameter=role,
        )
    for name in wanted.values():
        one_of(f"column for the {role}", str(name), columns)
    return dict(wanted)


def _matching(role: str, columns: Sequence[str], wanted: str) -> list[str]:
    """Return the columns that match a pattern such as ``affinity_*``; a name is itself."""
    if wanted in columns or not has_magic(wanted):
        return [wanted]
    found = [name for name in columns if fnmatchcase(name, wanted)]
    if not found:
        raise InputError(
            f"no column matches {wanted!r}, the pattern for the {role}; the columns are "
            f"{listed(columns)}: change the pattern, or name the columns",
            parameter=role,
        )
    return found


# Values -------------------------------------------------------------------------------------------

NO_DEFAULT = "no default is declared"
"""End of the reason of a missing value; the error then explains how to declare a default."""
REPEATED = "repeats the id of "
"""The reason of a repeated id; a message adds where the id occurred before."""
ADVICE = {
    NO_DEFAULT: "You can declare a default for missing values: --declare FILE.toml with "
    '[context] and country = {{values = ["fr", "de"], default = "fr"}}, age = {{default = 40}}.',
    "is not a time": "Write times as 2025-01-31 14:00 (ISO 8601), or in seconds since 1970.",
    REPEATED: "If {0!r} is the id of a user and not of a row, say that the log has no id: "
    "--column id= (columns={{'id': None}}).",
}
"""What to do about a reason; ``{0}`` is the column."""
HINTS = {
    r"[-+]?\d+,\d+": "Are there decimal commas in {0!r}? Give --decimal ',' (decimal=',').",
    r"[-+]?[\d.,]+\s*%": "Is {0!r} in percent? Divide it by 100, and remove the percent sign.",
    r"[$€£¥]\s*[-\d.,]+|[-\d.,]+\s*[$€£¥]": "Remove the currency sign from {0!r}.",
    r"(\d{4}[-./]\d\d?|\d\d?[-./]\d\d?)[-./]\d{1,4}\b.*": "Is {0!r} a date? A date is not a "
    "number to learn from: name it as the time, --column time={0}, or leave it out.",
}
"""What a value that is not a number looks like, and what to do then."""
EMPTY = "is missing, as is every other: the row is empty, or its line is not a JSON object"
MOST_PROBLEMS = 12
"""Problems that a message lists, so it fits on a screen."""
TRUTH = {"true": 1, "false": 0, "yes": 1, "no": 0}
"""Words that are read as numbers, in upper or lower case."""
NO_NUMBER = "is neither a finite number nor yes, no, true or false"
NO_NAME = f"is not a name of 1 to {LONGEST_NAME} printable characters"
"""Why a value is not the name of an action or a category."""
UNKNOWN = -1
"""The code of a value that is missing or unknown."""
NUMBERS = (
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BOOLEAN"),
)
"""Beginnings of the names of numeric types in DuckDB."""
SAMPLED_ROWS = 10_000
"""Rows of a text column that are checked to see whether it holds numbers."""
MOST_NOT_NUMERIC = 0.1
"""A text column holds numbers, with some mistakes, if at most this share is not numeric."""


class Problem(NamedTuple):
    """Why a number of ``rows`` are bad: the value that the ``first`` of them has in a column.

    Some reasons end with the place of another row, ``before``; it is 0 for all others.
    """

    column: str
    reason: str
    rows: int
    first: int
    value: Any
    before: int = 0


class CheckedColumns:
    """SQL that computes the values of a log from its columns, and the reasons why a row is bad.

    Its methods take a column of the source and return the name of a value in SQL: a number, a time,
    a text that is a name, the code of a name, or an id. ``counted`` is an SQL condition: rows that
    do not fulfil it are left out of the log, and are never bad. Once all values are known,
    ``examine`` finds the bad rows, the names that occur, and the ``facts``: the results of the
    ``aggregates``. Then ``batches`` reads the values that are ``wanted`` for each field, of the
    good rows that fulfil the condition ``kept``. Rows count from 1.
    """

    def __init__(self, source: Source, counted: str = "true") -> None:
        self.source, self._counted, self.kept = source, counted, "true"
        self.rows = self.good = self._bad = 0
        self._values: dict[str, str] = {}
        self._checks: dict[tuple[str, str], list[str]] = {}
        self._named: dict[str, str] = {}
        self._problems: list[Problem] = []
        self.names: dict[str, list[str]] = {}
        self.wanted: dict[str, str | list[str]] = {}
        self.aggregates: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self._enums = self._unlisted = 0

    def value(self, sql: str) -> str:
        """Return the name of a value for use in other values and conditions."""
        return self._values.setdefault(sql, f"x{len(self._values)}")

    def check(self, column: str, reason: str, condition: str) -> None:
        """Count rows that fulfil an SQL condition as bad."""
        self._checks.setdefault((column, reason), []).append(f"({condition})")

    def _kind(self, column: str) -> tuple[str, str]:
        """Return a column in SQL and its type; all nested types are "nested"."""
        kind = self.source.types[column]
        if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
            kind = "nested"
        return self.source.cell(column), "VARCHAR" if kind == '"NULL"' else kind

    def _number_of(self, column: str) -> str:
        cell, kind = self._kind(column)
        if kind == "VARCHAR":
            words = " ".join(f"when '{word}' then {one}" for word, one in TRUTH.items())
            plain = f"trim({cell}, e' \\t\\r\\n')"
            # DuckDB would read 1_000 as a number, but in data it is a name.
            cell = f"case when contains({cell}, '_') then null else coalesce(try_cast({plain} "
            cell += f"as double), case lower({plain}) {words} end) end"
        else:
            cell = f"cast({cell if kind.startswith(NUMBERS) else 'null'} as double)"
        return f"case when isfinite({cell}) then {cell} end"

    def number(
        self, column: str, required: bool = True, low: float = -math.inf, high: float = math.inf
    ) -> str:
        """Return the finite numbers of a column, also if they are text; null if missing."""
        cell, found = self.source.cell(column), self.value(self._number_of(column))
        self.check(column, NO_NUMBER, f"{found} is null and {cell} is not null")
        if self._kind(column)[1] == "VARCHAR":
            is_word = f"good and {found} in (0, 1) and lower(trim({cell})) in {(*TRUTH,)}"
            note = f"column {column!r}: yes and true were read as 1, and no and false as 0"
            self.aggregates[note] = f"bool_or({is_word})"
        if required:
            self.check(column, "is missing", f"{cell} is null")
        if math.isfinite(low):
            outside = f"{found} < {low!r} or {found} > {high!r}"
            self.check(column, f"is not from {low:g} to {high:g}", outside)
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
        """Return the values of a column as text; null if missing, or a list without ``nested``."""
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
        """Return a column with names of actions or categories, as text.

        After ``examine``, the ``names`` of the column are those that occur.
        """
        found = self.text(column)
        nested = self._kind(column)[1] == "nested"
        self.check(column, NO_NAME if nested else missing, f"{found} is null")
        self._named[column] = found
        return found

    def identifier(self, column: str) -> str:
        """Return a number for each id, equal for equal ids."""
        text = self.text(column)
        self.check(column, "is missing: every row needs an id", f"{text} is null")
        return self.value(f"coalesce(hash({text}), 0)")

    def code(self, text: str, names: Sequence[str]) -> str:
        """Return the index of each text among some names; ``UNKNOWN`` if it is none of them."""
        kind, self._enums = f"enum{self._enums}", self._enums + 1
        create = f"create type {kind} as enum (select unnest($1::varchar[]))"
        self.source.connection.execute(create, [list(names)])
        return self.value(f"coalesce(cast(enum_code(try_cast({text} as {kind})) as bigint), -1)")

    def known(self, column: str, missing: str, names: Sequence[str], unknown: str) -> str:
        """Return the codes of the names in a column; all others are refused as ``unknown``."""
        text = self.text(column)
        self.check(column, missing, f"{text} is null")
        code = self.code(text, names)
        self.check(column, unknown, f"{text} is not null and {code} = {UNKNOWN}")
        return code

    def distinct(self, text: str) -> list[str]:
        """Return the different texts that occur in all rows, good or bad."""
        query = f"select distinct {text} as one from ({self._query()}) where one is not null"
        return [one for (one,) in self.source.rows(query)]

    def numeric(self, columns: Sequence[str]) -> set[str]:
        """Return the columns that hold numbers, except for a few mistakes in columns of text."""
        found = {one for one in columns if self._kind(one)[1].startswith(NUMBERS)}
        found |= {one for one in columns if self.source.types[one] == '"NULL"'}
        texts, conditions = [one for one in columns if one in self.source.untyped], ["count(*)"]
        for column in texts:
            cell = self.source.cell(column)
            # Text such as nan is not a number, but it does not make a column one of names either.
            wrong = f"{self._number_of(column)} is null and {cell} is not null"
            wrong += f" and lower({cell}) not in ('nan', 'inf', '-inf')"
            most = f"{MOST_NOT_NUMERIC} * count({cell})"
            conditions.append(f"count({cell}) > 0 and count(*) filter ({wrong}) <= {most}")
        sample = f"(select * from {self.source.table} limit {SAMPLED_ROWS})"
        ((_, *are_numbers),) = self.source.rows(f"select {', '.join(conditions)} from {sample}")
        return found | {one for one, is_number in zip(texts, are_numbers, strict=True) if is_number}

    def _query(self) -> str:
        """Return the query of all values x0, x1, …, all checks b0, b1, …, ``bad`` and ``good``."""
        values = [f"{sql} as {name}" for sql, name in self._values.items()]
        checks = [
            f"coalesce(({self._counted}) and ({' or '.join(conditions)}), false) as b{place}"
            for place, conditions in enumerate(self._checks.values())
        ]
        bad = " or ".join(f"b{place}" for place in range(len(checks))) or "false"
        every = f"select {', '.join(['*', *values, *checks])} from {self.source.table}"
        good = f"({self._counted}) and not ({bad}) and coalesce({self.kept}, true)"
        return f"select *, {bad} as bad, {good} as good from ({every})"

    def examine(self) -> None:
        """Find the bad rows, the names that occur, and the facts.

        In an aggregate, ``good`` rows are the rows without a problem that are ``kept``.
        """
        marks = {f"b{place}": key for place, key in enumerate(self._checks)}
        aggregates = {
            **{name: f"count(*) filter ({name})" for name in ("true", "good", "bad", *marks)},
            **{f"names of {column}": distinct(text) for column, text in self._named.items()},
            **self.aggregates,
        }
        query = f"select {', '.join(aggregates.values())} from ({self._query()})"
        found = dict(zip(aggregates, *self.source.rows(query), strict=True))
        self.rows, self.good, self._bad = found["true"], found["good"], found["bad"]
        self.names = {
            column: sorted(found[f"names of {column}"] or (), key=rank) for column in self._named
        }
        for column, text in self._named.items():
            wrong = [one for one in self.names[column] if not is_name(one)]
            if wrong:
                self.check(column, NO_NAME, f"{text} in ({', '.join(map(quoted, wrong))})")
        if len(self._checks) > len(marks):
            self.examine()
            return
        problems = [mark for mark in marks if found[mark]]
        self._unlisted = len(problems[MOST_PROBLEMS:])
        rows = f"(select *, row_number() over () as row from ({self._query()}))"
        for mark in problems[:MOST_PROBLEMS]:
            column, reason = marks[mark]
            cell = self.source.cell(column)
            nothing = " and ".join(f"c{place} is null" for place in range(len(self.source.types)))
            ((first, value, is_empty),) = self.source.rows(
                f"select row, {cell}, {nothing} from {rows} where {mark} limit 1"
            )
            reason = EMPTY if is_empty else reason
            self._problems.append(Problem(column, reason, found[mark], first, value))
        self.facts = found

    def batches(self) -> Iterator[tuple[Integers, dict[str, NDArray[Any]]]]:
        """Yield the numbers of good rows, and what is wanted of these rows.

        A value is an array ``[n]``, and a list of values is an array ``[n, values]``.
        """
        lists = ([one] if isinstance(one, str) else one for one in self.wanted.values())
        first, names = 1, [*dict.fromkeys(chain(*lists))]
        query = f"select {', '.join([*names, 'good'])} from ({self._query()})"
        for batch in self.source.batches(query):
            good = batch.column(len(names))
            rows = first + np.flatnonzero(good.to_numpy(zero_copy_only=False))
            first += batch.num_rows
            if len(rows):
                columns = (batch if len(rows) == len(good) else batch.filter(good)).columns[:-1]
                arrays = (column.to_numpy(zero_copy_only=False) for column in columns)
                found = dict(zip(names, arrays, strict=True))
                yield (
                    rows,
                    {
                        name: found[wanted]
                        if isinstance(wanted, str)
                        else np.reshape([found[one] for one in wanted], (len(wanted), len(rows))).T
                        for name, wanted in self.wanted.items()
                    },
                )

    # Problems

    def add_problem(self, column: str, reason: str, rows: int, first: int, before: int) -> None:
        """Add a problem of rows that were good according to SQL."""
        cell, table = self.source.cell(column), self.source.table
        ((value,),) = self.source.rows(f"select {cell} from {table} limit 1 offset {first - 1}")
        self._problems.append(Problem(column, reason, rows, first, value, before))
        self._bad += rows

    @property
    def bad(self) -> int:
        """The number of rows with a problem, or with too few or too many values."""
        return self._bad + sum(map(len, self.source.rejected.values()))

    def sentences(self) -> list[str]:
        """Return a sentence for each problem, at most ``MOST_PROBLEMS``."""
        numbers = {number for one in self._problems for number in (one.first, one.before)}
        places = {0: "", **self.source.places(numbers - {0})}
        found = [
            f"column {one.column!r}, {places[one.first]}: "
            f"{'the value' if one.value is None else short_repr(one.value)} {one.reason}"
            f"{places[one.before]} ({counted(one.rows, 'row')})"
            for one in self._problems
        ]
        found += [
            f"{self.source.first_rejected(file)} has a different number of values than the header "
            f"({counted(len(records), 'row')})"
            for file, records in self.source.rejected.items()
        ]
        more = len(found) + self._unlisted - MOST_PROBLEMS
        return [*found[:MOST_PROBLEMS], *[f"... and {more} other problems"] * (more > 0)]

    def skipped(self) -> list[str]:
        """Return a note about the rows with problems, if there are any."""
        if not self.bad:
            return []
        skipped = f"{counted(self.bad, 'bad row')} {'was' if self.bad == 1 else 'were'} skipped"
        return [f"{skipped}: {'; '.join(self.sentences())}"]

    def refuse(self, parameter: str | None = None) -> None:
        """Raise an error that lists all problems, if there are any.

        If the table is the value of a ``parameter`` and not a log, its rows cannot be left out, and
        no defaults can be declared.
        """
        if not self.bad:
            return
        total = self.rows + self.bad - self._bad
        skip = ", or leave them out with --skip-bad-rows (skip_bad_rows=True)"
        advice = [f"Correct these rows{skip if self.bad < total and parameter is None else ''}."]
        for problem in self._problems:
            column, values = problem.column, [str(problem.value)]
            advice += hints(column, values) if problem.reason == NO_NUMBER else []
            known = ADVICE.items() if parameter is None else ()
            advice += [one.format(column) for reason, one in known if reason in problem.reason]
        heading = f"{self.bad} of {total} rows of {self.source.name} cannot be used:"
        lines = ["\n  ".join([heading, *self.sentences()]), *dict.fromkeys(advice)]
        raise InputError("\n".join(lines), parameter=parameter)


def hints(column: str, values: Sequence[str]) -> list[str]:
    """Return what to do about a column in which most values are no numbers, but look like them."""
    looks = {one: [re.fullmatch(one, value.strip()) for value in values] for one in HINTS}
    return [HINTS[one].format(column) for one in HINTS if 2 * looks[one].count(None) < len(values)]


def distinct(value: str) -> str:
    """Return the SQL aggregate that lists the different values in good rows."""
    return f"list(distinct {value}) filter (good and {value} is not null)"
