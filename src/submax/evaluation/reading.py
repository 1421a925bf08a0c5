"""Reads a log batch by batch; rows that cannot be used are counted and named."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from sys import intern
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.errors import InputError
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.core.summary import counted, listed
from submax.evaluation.columns import (
    NO_DEFAULT,
    REPEATED,
    UNKNOWN,
    CheckedColumns,
    Columns,
    distinct,
    find_columns,
    is_name,
    rank,
)
from submax.evaluation.disk import TemporaryFolder, in_pieces, new_column, release, taken
from submax.evaluation.sources import TextFormat, open_source, quoted
from submax.schema.actions import ARMS, MOST_CHOICES, ActionSpec, ChoiceIndices, described
from submax.schema.context import LARGEST, Category, ContextSchema, Number
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

Table = dict[str, NDArray[Any]]
"""The columns of a log."""
LEARNED, PENDING = "learned", "pending"
"""In the export of a bandit, the status of decisions whose reward is final, and of decisions that
still wait for their reward. Only the former are read."""
MOST_IN_MEMORY = 1 << 21
"""The columns of a log with more rows are in files. A row takes about 30 bytes, and 4 for each
field of the context."""
RARE_SHARE = 0.01
"""Up to this share of rewards that are not 0 or 1, among others that are, is probably a mistake."""
MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""
WHOLE = {
    "is below 0, as no number of decisions can be": "{0} < 0",
    # Whole numbers up to this one are exact as floating-point numbers.
    "is not a whole number of decisions": f"{{0}} <> round({{0}}) or {{0}} > {2.0**53!r}",
}
POSITIVE = {"must be greater than 0": "{0} <= 0"}
LIMITS = {
    **dict.fromkeys(("count", "successes"), WHOLE),
    **dict.fromkeys(("weight", "propensity", "slot_propensity"), POSITIVE),
}
"""Why numbers of a role are not possible, and the SQL condition."""
IDS = ("cluster", "session", "id")
"""Columns whose values are hashed: equal values have equal numbers."""
FIELDS = {
    **{role: role for role in ("count", "successes", "reward", "outcomes", "probability")},
    **{role: role for role in ("propensity", "slot_propensity", "time", *IDS)},
    **{"covariate": "covariates", "weight": "sampling_weight"},
}
"""The fields of a log that hold the columns of a role."""
TABLES = ("outcomes", "covariates", "probability", "slot_propensity")
"""Columns of a log that have several numbers in each row."""


# Arrays and declarations --------------------------------------------------------------------------


def _check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    """Refuse declared slots or fields without a column, and columns that are not declared."""
    if set(declared) != set(found):
        words, columns = (
            listed([name or "plain" for name in one], 20) for one in (declared, found)
        )
        raise InputError(
            f"the {what}s {words or 'none'} are declared, and the log has columns for: "
            f"{columns or 'none'}. Name the columns, or change the declaration"
        )


def described_menu(menu: ActionSpec | None, features: Any, slots: Sequence[str]) -> ActionSpec:
    """Return the declared actions with their features; by default all actions with features."""
    if menu is None:
        tables = {ARMS: features} if slots == [ARMS] else features
        if not isinstance(tables, Mapping) or not all(
            isinstance(tables.get(slot), Mapping) for slot in slots
        ):
            raise InputError(
                "action_features must be a table of the features of each action, and with slots "
                "one such table for each slot: correct it, or declare the actions",
                parameter="action_features",
            )
        names = {slot: [*tables[slot]] for slot in slots}
        menu = ActionSpec.of(names.get(ARMS, names))
    return msgspec.structs.replace(menu, slots=described(menu.slots, features))


# Actions and their eligible sets ------------------------------------------------------------------


def eligible_names(text: str) -> list[list[str]] | None:
    """Return the names of eligible choices in a cell, for each slot; None if it has none.

    A cell is a list of lists or a list (one slot), as JSON, or text such as ``A|B``.

    >>> eligible_names("A|B"), eligible_names('[["A"], ["wide", "narrow"]]')
    ([['A', 'B']], [['A'], ['wide', 'narrow']])
    """
    if not text.startswith("["):
        return [[intern(name) for name in text.split("|")]]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    nested = value if all(isinstance(one, list) for one in value) else [value]
    if not value or any(isinstance(one, (list, dict)) or one is None for one in chain(*nested)):
        return None
    return [
        # With very many sets, copies of equal names would fill the memory.
        [intern(str(int(x) if isinstance(x, float) and x.is_integer() else x)) for x in slot]
        for slot in nested
    ]


class ActionColumns:
    """The choice of every slot, then the real-valued parts, and the eligible choices of each row.

    Without a ``menu`` the choices of a slot are the names that occur in good rows, sorted. A set of
    eligible choices has a number; 0 is the set of all choices, for rows whose cell is empty.
    """

    def __init__(
        self, sql: CheckedColumns, columns: Columns, eligible: str | None, menu: ActionSpec | None
    ) -> None:
        self._sql, self._columns = sql, columns
        self.menu: Any = menu
        self._declared = menu is not None
        self.ranges = () if menu is None else menu.ranges
        self.slots: dict[str, list[str]] = {slot: [] for slot in columns}
        if menu is not None:
            self.slots = {slot.name: slot.names for slot in menu.slots}
            _check_same("slot", [one.name for one in menu.parts], columns)
        missing, unknown = "is missing: an action is needed", "is not one of the declared actions"
        for slot, names in self.slots.items():
            if self._declared:
                sql.wanted[f"action {slot}"] = sql.known(columns[slot], missing, names, unknown)
            else:
                sql.name(columns[slot], missing)
        for interval in self.ranges:
            value = sql.number(columns[interval.name], low=interval.low, high=interval.high)
            sql.wanted[f"action {interval.name}"] = value
        self._sets: list[list[list[str]] | None] = []
        if eligible is not None:
            self._add_eligible(eligible)

    def _text(self, slot: str) -> str:
        return self._sql.text(self._columns[slot])

    def _add_eligible(self, column: str) -> None:
        sql = self._sql
        cell = sql.text(column, nested=True)
        cells = sql.distinct(cell)
        self._sets = [self._parsed(one) for one in cells]
        code = sql.wanted["eligible set"] = sql.code(cell, cells)
        sql.aggregates["sets"] = distinct(code)
        sets = {f"e{i}": [one and one[i] for one in self._sets] for i in range(len(self.slots))}
        table = {"place": np.arange(len(cells)), **sets}
        types = {name: pa.list_(pa.string()) for name in sets}
        columns = {name: pa.array(one, types.get(name)) for name, one in table.items()}
        sql.source.connection.register("eligible", pa.table(columns))
        for name, slot in zip(sets, self.slots, strict=True):
            names = f"(select list({name} order by place) from eligible)[{code} + 1]"
            reason = "is not a list of known actions"
            sql.check(column, reason, f"{code} <> {UNKNOWN} and {names} is null")
            reason = "does not contain the action that was taken"
            sql.check(column, reason, f"not list_contains({names}, {self._text(slot)})")

    def _parsed(self, cell: str) -> list[list[str]] | None:
        """Return the names of a cell for each slot, if they can be those of actions."""
        names = eligible_names(cell)
        if names is None or len(names) != len(self.slots):
            return None
        for several, known in zip(names, self.slots.values(), strict=True):
            allowed = (one in known if self._declared else is_name(one) for one in several)
            if not several or not all(allowed):
                return None
        return names

    def finish(self) -> None:
        """Take the names and sets that occur; after this the codes of actions are ``wanted``."""
        occurring = self._sql.facts.get("sets") or ()
        sets = {code: self._sets[code] or [] for code in occurring if code >= 0}
        for place, slot in enumerate(() if self._declared else self.slots):
            several = chain(*(one[place] for one in sets.values()))
            names = {*self._sql.names[self._columns[slot]], *several}
            self.slots[slot] = sorted(names, key=rank)
            if len(names) > MOST_CHOICES:
                column = self._columns[slot]
                raise InputError(
                    f"column {column!r} has more than {MOST_CHOICES} different actions, the "
                    "most that a slot may have: if they are real numbers, declare an interval, "
                    f"actions={{{slot or column!r}: (low, high)}}",
                    parameter=column,
                )
            self._sql.wanted[f"action {slot}"] = self._sql.code(self._text(slot), self.slots[slot])
        if not self._declared:
            self.menu = ActionSpec.of(self.slots.get(ARMS, self.slots))
        places = [{name: i for i, name in enumerate(names)} for names in self.slots.values()]
        found: dict[int, ChoiceIndices] = {
            code: tuple(
                tuple(sorted({place[name] for name in names}))
                for place, names in zip(places, slots, strict=True)
            )
            for code, slots in sets.items()
        }
        everything = tuple(tuple(range(len(names))) for names in self.slots.values())
        self.eligible_sets = tuple(dict.fromkeys([everything, *sorted(set(found.values()))]))
        number = {one: place for place, one in enumerate(self.eligible_sets)}
        # An empty cell has the code -1, and stands for all choices.
        self._numbers = np.zeros(len(self._sets) + 1, dtype=np.int32)
        self._numbers[list(found)] = [number[one] for one in found.values()]

    def read(self, columns: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the actions ``[n, S]`` and the number of each row's set of eligible choices."""
        parts = [columns[f"action {one.name}"] for one in self.menu.parts]
        action = np.stack(parts, axis=1).astype(np.float64 if self.ranges else np.int32)
        code = columns.get("eligible set", np.full(len(action), UNKNOWN))
        return action, self._numbers[code]

    def notes(self, action: NDArray[Any]) -> Iterator[str]:
        """Yield sentences about what may surprise in the actions."""
        for place, declared in enumerate(self.menu.slots):
            found = {index for part in in_pieces(action) for index in np.unique(part[:, place])}
            inactive = [
                one.name
                for index, one in enumerate(declared.choices)
                if one.status != "active" and index in found
            ]
            if inactive:
                yield f"the log contains choices that are no longer active: {listed(inactive)}"
        for slot, names in () if self._declared else self.slots.items():
            column, ranks = self._columns[slot], [rank(name) for name in names]
            if all(kind == 0 for kind, *_ in ranks) and any(one % 1 for _, one, _ in ranks):
                yield (
                    f"column {column!r} holds numbers that are not whole, and they were read as "
                    f"{len(names)} names: if they are real-valued actions, declare an "
                    f"interval, actions={{{slot or column!r}: (low, high)}}"
                )
            yield from _spaced(column, names, "actions")


def _spaced(column: str, names: Sequence[str], what: str) -> Iterator[str]:
    """Yield a sentence if names have spaces at their ends."""
    found = [name for name in names if name != name.strip()]
    if found:
        yield (
            f"column {column!r} has {what} with spaces at their ends, such as {found[0]!r}: with "
            f"and without them they are different {what}"
        )


# The context --------------------------------------------------------------------------------------


class ContextColumns:
    """One number for each field of the context; for a category it is the index of the value.

    A field that is not declared is a number or a category, as its values are.
    """

    def __init__(
        self, sql: CheckedColumns, columns: Columns, declared: ContextSchema | None
    ) -> None:
        self._sql, self._columns = sql, columns
        self.fields: dict[str, Any] = dict.fromkeys(columns)
        if declared is not None:
            _check_same("context field", declared.names, columns)
            self.fields = dict(zip(declared.names, declared.fields, strict=True))
        numeric = sql.numeric([columns[name] for name, one in self.fields.items() if one is None])
        self._texts: dict[str, str] = {}
        for name, field in self.fields.items():
            column, missing = columns[name], f"is missing, and {NO_DEFAULT}"
            if field is None and column not in numeric:
                self._texts[name] = sql.name(column, missing)
            elif isinstance(field, Category) and field.default is None:
                unknown = f"is not one of the categories {listed(field.values)}"
                self._add(name, sql.known(column, missing, field.values, unknown))
            elif isinstance(field, Category):
                code = sql.code(sql.text(column), field.values)
                default = field.values.index(str(field.default))
                self._add(name, code, f"{code} = {UNKNOWN}", default)
            else:
                field = self.fields[name] = field or Number()
                value = sql.number(column, field.default is None, -LARGEST, LARGEST)
                self._add(name, value, f"{sql.source.cell(column)} is null", field.default)

    def _add(self, name: str, value: str, missing: str = "false", default: Any = None) -> None:
        if default is not None:
            self._sql.aggregates[f"filled {name}"] = f"count(*) filter (good and {missing})"
            value = self._sql.value(f"case when {missing} then {default!r} else {value} end")
        self._sql.wanted[f"context {name}"] = value

    def finish(self) -> None:
        """Take the values that occur as categories, sorted."""
        for name, text in self._texts.items():
            column = self._columns[name]
            values = self._sql.names[column]
            if len(values) > MOST_UNDECLARED:
                raise InputError(
                    f"column {column!r} has more than {MOST_UNDECLARED} different values, too many "
                    "for a category that is not declared: leave it out of the context, or declare "
                    "its categories",
                    parameter=column,
                )
            self.fields[name] = Category(tuple(values))
            self._sql.wanted[f"context {name}"] = self._sql.code(text, values)

    def read(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        """Return the contexts of the rows, ``[n, F]``."""
        fields = [columns[f"context {name}"].astype(np.float32) for name in self.fields]
        rows = len(next(iter(columns.values())))
        return np.stack(fields, axis=1) if fields else np.empty((rows, 0), dtype=np.float32)

    def notes(self) -> Iterator[str]:
        """Yield sentences about defaults that replaced values, and about similar categories."""
        for name, field in self.fields.items():
            if name in self._texts:
                yield from _spaced(self._columns[name], field.values, "categories")
            count = self._sql.facts.get(f"filled {name}")
            if count:
                what = "missing" if isinstance(field, Number) else "missing or not declared"
                yield (
                    f"column {self._columns[name]!r}: {count} values are {what}, and were replaced "
                    f"by the default {field.default!r}"
                )


# The log ------------------------------------------------------------------------------------------


def read_log(
    source: Any,
    columns: Mapping[str, Any],
    declared: Mapping[str, Any],
    skip_bad_rows: bool,
    text: TextFormat,
) -> dict[str, Any]:
    """Return the values of the fields of a ``Log``.

    ``declared`` may have a whole schema, actions, context, rewards and action_features.
    """
    opened = open_source(source, text)
    declared = {name: one for name, one in declared.items() if one is not None}
    roles = find_columns(opened.columns, columns)
    schema = declared.get("schema", opened.schema)
    menu = fields = rewards = None
    if schema is not None:
        menu, rewards = schema.menu, schema.rewards
        # If the caller names the columns of the context, they need not be those of the export.
        fields = schema.context if "schema" in declared or "context" not in columns else None
    if "actions" in declared:
        menu = ActionSpec.of(declared["actions"])
    if "context" in declared:
        fields = ContextSchema.of(declared["context"])
    if "rewards" in declared:
        rewards = rewards_of(declared["rewards"])
    if menu is not None and len(menu.parts) == 1 and list(roles["action"]) == [ARMS]:
        # A single column of actions is that of the only slot or interval.
        roles["action"] = {menu.parts[0].name: roles["action"][ARMS]}
    if "action_features" in declared:
        menu = described_menu(menu, declared["action_features"], [*roles["action"]])
    is_learned, status = "true", roles["status"].get("status")
    if status is not None:
        is_learned = f"coalesce({opened.cell(status)} = {quoted(LEARNED)}, false)"
    sql = CheckedColumns(opened, is_learned)
    actions = ActionColumns(sql, roles["action"], roles["eligible"].get("eligible"), menu)
    context = ContextColumns(sql, roles["context"], fields)
    found = declared_columns(sql, roles, rewards, actions)
    if status is not None:
        no_status = f"coalesce({opened.cell(status)}, 'without a status')"
        sql.aggregates["left out"] = f"histogram({no_status}) filter (not ({is_learned}))"
    sql.examine()
    left_out = [
        f"{count} decisions were left out because of their status: {name}"
        + (" (rewards may still come until reward_wait is over)" if name == PENDING else "")
        for name, count in (sql.facts.get("left out") or {}).items()
    ]
    if not sql.good:
        if not skip_bad_rows:
            sql.refuse()
        raise InputError(
            f"{opened.name} has no rows that can be used: "
            + ("; ".join([*left_out, *sql.skipped()]) or "give a log with at least one row")
        )
    actions.finish()
    context.finish()
    folder = TemporaryFolder() if sql.good > MOST_IN_MEMORY else None
    table = collected(sql, actions, context, found, folder)
    of_time = [*_tidied(table, roles, sql, folder)]
    if not skip_bad_rows:
        sql.refuse()
    table = with_rewards(table)
    notes = [*sql.skipped(), *left_out]
    missing = sum(np.count_nonzero(np.isnan(part)) for part in in_pieces(table["propensity"]))
    if missing:
        have = "has" if missing == 1 else "have"
        notes.append(f"{missing} of {len(table['reward'])} rows {have} no propensity")
    notes += context.notes()
    used = {column for columns in roles.values() for column in columns.values()}
    unused = [name or repr(name) for name in opened.columns if name not in used]
    if unused and opened.schema is None:
        # The export of a bandit has more columns, for people: these need no note.
        notes.append(f"columns that were not used: {listed(unused)}")
    notes += of_time
    notes += actions.notes(table["action"])
    for name in {"session", "cluster"} & table.keys():
        # From 0, in the order of their first rows.
        _, first, place = np.unique(table[name], return_index=True, return_inverse=True)
        table[name][:] = np.argsort(np.argsort(first))[place.ravel()]
    if "session" in table:
        table.setdefault("cluster", table["session"])
    if rewards is None:
        rewards, of_rewards = _observed_rewards(table["reward"])
        notes += of_rewards
    release(table.values())
    return {
        **table,
        "schema": Schema(
            menu=actions.menu, context=ContextSchema.of(context.fields), rewards=rewards
        ),
        "eligible_sets": actions.eligible_sets,
        "estimated": np.broadcast_to(False, len(table["reward"])),
        "outcome_names": tuple(roles["outcomes"]),
        "probability_names": tuple(roles["probability"].values()),
        "notes": tuple(notes),
        "folder": folder,
    }


def declared_columns(
    sql: CheckedColumns,
    roles: Mapping[str, Columns],
    rewards: dict[str, Any] | None,
    actions: ActionColumns,
) -> dict[str, list[str]]:
    """Return the values in SQL of each column of the log, but actions and context."""
    columns = {role: list(roles[role].values()) for role in FIELDS}
    of_slots = roles["slot_propensity"]
    columns["slot_propensity"] = [of_slots[slot] for slot in actions.slots if slot in of_slots]
    columns["reward"] = [] if roles["successes"] else columns["reward"][:1]
    found: dict[str, list[str]] = {"propensity": [sql.value("cast(null as double)")]}
    for role, field in FIELDS.items():
        values, is_propensity = list[str](), "propensity" in role
        for column in columns[role]:
            if role in IDS:
                value = sql.identifier(column)
            else:
                value = (
                    sql.time(column) if role == "time" else sql.number(column, not is_propensity)
                )
            for reason, condition in LIMITS.get(role, {}).items():
                sql.check(column, reason, condition.format(value))
            if rewards is not None and role in ("reward", "outcomes"):
                sql.check(column, *off_scale(rewards, value))
            if is_propensity and not actions.ranges:
                reason = "must be at most 1; if it is in percent, divide it by 100"
                sql.check(column, reason, f"{value} > {1 + PROBABILITY_TOLERANCE!r}")
                value = sql.value(f"case when {value} > 1 then 1 else {value} end")
            values.append(value)
        if values:
            found[field] = values
    if roles["count"]:
        sql.kept = f"{found['count'][0]} > 0"
    if roles["successes"]:
        found["reward"] = [sql.value("0.0")]
        above = f"{found['successes'][0]} > {found['count'][0]}"
        reason = "is above the number of decisions of its row"
        sql.check(roles["successes"]["successes"], reason, above)
    return found


def off_scale(rewards: Mapping[str, Any], value: str) -> tuple[str, str]:
    """Return why a reward is not possible, and the SQL condition."""
    kind, reason = rewards["kind"], f"is not a reward of {scale_of(rewards)}"
    if kind == "binary":
        return "is neither 0 nor 1", f"{value} not in (0, 1)"
    if kind == "counts":
        return reason, f"{value} < 0 or {value} <> floor({value})"
    if kind == "discrete":
        return reason, f"{value} not in ({', '.join(map(repr, rewards['values']))})"
    low, high = rewards.get("low"), rewards.get("high")
    ends = [f"{value} {sign} {end!r}" for sign, end in (("<", low), (">", high)) if end is not None]
    return reason, " or ".join(ends) or "false"


def collected(
    sql: CheckedColumns,
    actions: ActionColumns,
    context: ContextColumns,
    columns: Mapping[str, list[str]],
    folder: TemporaryFolder | None,
) -> Table:
    """Return the columns of the good rows, without those left out by status."""
    table, filled = dict[str, NDArray[Any]](), 0
    sql.wanted |= {one: one for values in columns.values() for one in values}
    for rows, values in sql.batches():
        found: Table = {"context": context.read(values)}
        found["action"], found["eligible_set"] = actions.read(values)
        for name, names in columns.items():
            arrays = [values[one] for one in names]
            if name in IDS:
                found[name] = arrays[0].view(np.int64)
            else:
                one = np.stack(arrays, axis=1) if name in TABLES else arrays[0]
                found[name] = one.astype(np.float64)
        if "id" in found or "time" in found:
            found["row"] = rows.astype(np.int32)
        end = filled + len(rows)
        for name, one in found.items():
            if name not in table:
                table[name] = new_column(folder, one.dtype, (sql.good, *one.shape[1:]))
            table[name][filled:end] = one
        filled = end
        release(table.values())
    return table


def all_binary(reward: NDArray[Any]) -> bool:
    """Return whether all rewards are 0 or 1."""
    return all(np.isin(part, (0, 1)).all() for part in in_pieces(reward))


def _observed_rewards(reward: NDArray[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the kind of some rewards, and a note if only a few are neither 0 nor 1."""
    count, example = 0, 0.0
    for part in in_pieces(reward):
        others = part[~np.isin(part, (0, 1))]
        if len(others):
            count, example = count + len(others), float(others[0])
    note = (
        f"rewards are 0 or 1 except in {counted(count, 'row')} (such as {example:g}), so they were "
        'read as continuous: to find these rows, give --declare FILE.toml with rewards = "binary" '
        '(rewards="binary")'
    )
    return rewards_of("continuous" if count else "binary"), [note] * (
        0 < count <= RARE_SHARE * len(reward)
    )


def _tidied(
    table: Table, roles: Mapping[str, Columns], sql: CheckedColumns, folder: TemporaryFolder | None
) -> Iterator[str]:
    """Sort the rows by time, in place, and yield a sentence if they were not sorted.

    Rows whose id occurred in an earlier row are removed, and counted as bad.
    """
    row, identifier, time = (table.pop(name, None) for name in ("row", "id", "time"))
    which: Integers | None = None
    if row is not None and identifier is not None:
        _, first = np.unique(identifier, return_index=True)
        repeated = np.ones(len(identifier), dtype=bool)
        repeated[first] = False
        if repeated.any():
            which, place = np.flatnonzero(~repeated), int(np.argmax(repeated))
            before = int(row[np.argmax(identifier == identifier[place])])
            count = int(repeated.sum())
            sql.add_problem(roles["id"]["id"], REPEATED, count, int(row[place]), before)
            row, time = row[which], None if time is None else time[which]
    if row is not None and time is not None and (time[1:] < time[:-1]).any():
        earlier = np.flatnonzero(time[1:] < time[:-1])
        late = int(row[earlier[0] + 1])
        yield (
            f"the rows were not in the order of {roles['time']['time']!r} "
            f"({sql.source.places([late])[late]} is earlier than the row before; number of such "
            f"rows: {len(earlier)}), and were sorted"
        )
        order = np.argsort(time, kind="stable")
        which = order if which is None else which[order]
    if which is not None:
        # Replace one column at a time, so only one of them is in memory twice.
        for name in list(table):
            table[name] = taken(table[name], which, folder)


def with_rewards(columns: Table) -> Table:
    """Return the columns with a row for each reward, 0 and 1, of rows that count successes.

    The column ``successes`` is replaced by ``reward``, and ``count`` is the number of decisions
    with this reward. Rows that stand for no decision are left out.
    """
    successes = columns.pop("successes", None)
    if successes is None:
        return columns
    failures = columns["count"] - successes
    columns = {name: np.repeat(values, 2, axis=0) for name, values in columns.items()}
    columns["reward"] = np.tile([1.0, 0.0], len(successes))
    columns["count"] = np.stack([successes, failures], axis=1).ravel()
    return {name: values[columns["count"] > 0] for name, values in columns.items()}
