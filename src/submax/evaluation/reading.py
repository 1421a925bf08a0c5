"""Reads a log batch by batch; rows that cannot be used are counted and named."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from sys import intern
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.checks import did_you_mean
from submax.core.disk import TemporaryFolder, in_pieces, new_column, release, taken
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
    hints,
)
from submax.evaluation.sources import TextFormat, open_source, quoted
from submax.schema.actions import ARMS, MOST_CHOICES, ActionSpec, ChoiceIndices, described
from submax.schema.context import LARGEST, Category, ContextSchema, Number
from submax.schema.names import is_name, rank
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
"""If at most this share of the rewards is neither 0 nor 1, they are probably mistakes."""
MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""
WHOLE = {
    "is negative; a number of decisions is 0 or more": "{0} < 0",
    # Whole numbers up to this one are exact as floating-point numbers.
    "is not a whole number of decisions": f"{{0}} <> round({{0}}) or {{0}} > {2.0**53!r}",
}
POSITIVE = {"must be greater than 0": "{0} <= 0"}
LIMITS = {
    **dict.fromkeys(("count", "successes"), WHOLE),
    **dict.fromkeys(("weight", "propensity", "slot_propensity"), POSITIVE),
}
"""Why a number of a role is not allowed, and the SQL condition."""
ID_ROLES = ("cluster", "session", "id")
"""Roles whose values are hashed: equal values have equal numbers."""
TABLE_ROLES = ("outcomes", "covariate", "probability", "slot_propensity")
"""Roles that have several numbers in each row of a log."""
NUMBER_ROLES = ("count", "successes", "reward", "propensity", "weight")
"""Roles that have one number in each row of a log."""
FIELDS = {"covariate": "covariates", "weight": "sampling_weight"}
"""The field of a log that holds the columns of a role, if it has another name."""


# Declarations -------------------------------------------------------------------------------------


def _check_same(what: str, declared: Sequence[str], columns: Iterable[str]) -> None:
    """Refuse declared slots or fields without a column, and columns that are not declared."""
    if set(declared) != set(columns):
        names, of_columns = (
            listed([name or "plain" for name in several], 20) or "none"
            for several in (declared, [*columns])
        )
        raise InputError(
            f"the {what}s {names} are needed, and there are columns for {of_columns}: add or name "
            "the other columns, or declare others"
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

    Without a ``menu`` the choices of a slot are the names that occur in good rows, sorted. Sets of
    eligible choices are numbered; 0 is the set of all choices, for rows whose cell is empty.
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
            _check_same("slot", [part.name for part in menu.parts], columns)
        missing, unknown = "is missing: an action is needed", "is not one of the declared actions"
        self._codes: list[str] = []
        for slot, names in self.slots.items():
            if self._declared:
                self._codes.append(sql.known(columns[slot], missing, names, unknown))
                sql.aggregates[f"taken {slot}"] = distinct(self._codes[-1])
            else:
                sql.name(columns[slot], missing)
        self._numbers = [
            sql.number(columns[part.name], low=part.low, high=part.high) for part in self.ranges
        ]
        self._sets: list[list[list[str]] | None] = []
        sql.wanted["eligible_set"] = sql.value(str(UNKNOWN))
        if eligible is not None:
            self._add_eligible(eligible)

    def _add_eligible(self, column: str) -> None:
        sql = self._sql
        cell = sql.text(column, nested=True)
        cells = sql.distinct(cell)
        self._sets = [self._parsed(text) for text in cells]
        code = sql.wanted["eligible_set"] = sql.code(cell, cells)
        sql.aggregates["sets"] = distinct(code)
        table: dict[str, Any] = {"code": np.arange(len(cells))}
        for place, slot in enumerate(self.slots):
            of_slot = [one and one[place] for one in self._sets]
            table[f"e{place}"] = pa.array(of_slot, pa.list_(pa.string()))
            names = f"(select list(e{place} order by code) from eligible)[{code} + 1]"
            why = "is not a list of known actions"
            sql.check(column, why, f"{code} <> {UNKNOWN} and {names} is null")
            why = "does not contain the action that was taken"
            sql.check(column, why, f"not list_contains({names}, {sql.text(self._columns[slot])})")
        sql.source.connection.register("eligible", pa.table(table))

    def _parsed(self, cell: str) -> list[list[str]] | None:
        """Return the names in a cell for each slot; None if they cannot be names of actions."""
        names = eligible_names(cell)
        if names is None or len(names) != len(self.slots):
            return None
        for several, known in zip(names, self.slots.values(), strict=True):
            allowed = (name in known if self._declared else is_name(name) for name in several)
            if not several or not all(allowed):
                return None
        return names

    def finish(self) -> None:
        """Take the names and sets that occur; after this the actions are ``wanted``."""
        sql = self._sql
        occurring = sql.facts.get("sets") or ()
        sets = {code: self._sets[code] or [] for code in occurring if code != UNKNOWN}
        for place, slot in enumerate(() if self._declared else self.slots):
            column = self._columns[slot]
            names = {*sql.names[column], *chain(*(names[place] for names in sets.values()))}
            if len(names) > MOST_CHOICES:
                raise InputError(
                    f"column {column!r} has more than {MOST_CHOICES} different actions, the "
                    "most that a slot can have: if they are real numbers, declare an interval, "
                    f"actions={{{slot or column!r}: (low, high)}}",
                    parameter=column,
                )
            self.slots[slot] = sorted(names, key=rank)
            self._codes.append(sql.code(sql.text(column), self.slots[slot]))
        sql.wanted["action"] = [*self._codes, *self._numbers]
        if not self._declared:
            self.menu = ActionSpec.of(self.slots.get(ARMS, self.slots))
        indices = [{name: i for i, name in enumerate(names)} for names in self.slots.values()]
        chosen: dict[int, ChoiceIndices] = {
            code: tuple(
                tuple(sorted({index[name] for name in names}))
                for index, names in zip(indices, slots, strict=True)
            )
            for code, slots in sets.items()
        }
        everything = tuple(tuple(range(len(names))) for names in self.slots.values())
        self.eligible_sets = tuple(dict.fromkeys([everything, *sorted(set(chosen.values()))]))
        number = {choices: place for place, choices in enumerate(self.eligible_sets)}
        # The code of an empty cell, -1, is the last index.
        self.set_numbers = np.zeros(len(self._sets) + 1, dtype=np.int32)
        self.set_numbers[list(chosen)] = [number[choices] for choices in chosen.values()]

    def notes(self) -> Iterator[str]:
        """Yield sentences about what may be surprising in the actions."""
        for slot in self.menu.slots:
            taken = self._sql.facts.get(f"taken {slot.name}") or ()
            inactive = {*range(len(slot.choices))}.difference(slot.active).intersection(taken)
            if inactive:
                retired = listed([slot.names[index] for index in sorted(inactive)])
                yield f"the log contains choices that are no longer active: {retired}"
        for name, names in () if self._declared else self.slots.items():
            column, ranks = self._columns[name], [rank(choice) for choice in names]
            if all(kind == 0 for kind, *_ in ranks) and any(one % 1 for _, one, _ in ranks):
                yield (
                    f"column {column!r} holds numbers with fractions, which were read as "
                    f"{len(names)} names: if they are real-valued actions, declare an "
                    f"interval, actions={{{name or column!r}: (low, high)}}"
                )
            yield from _similar(column, names, "actions")


def _similar(column: str, names: Sequence[str], what: str) -> Iterator[str]:
    """Yield a sentence if names differ only in capital letters, or in spaces around them."""
    first = dict[str, str]()
    pairs = [(first.setdefault(name.strip().casefold(), name), name) for name in names]
    different = [f"{one!r} and {other!r}" for one, other in pairs if one != other]
    if different:
        yield f"column {column!r} has {listed(different)}, which are different {what}"


# The context --------------------------------------------------------------------------------------


class ContextColumns:
    """One number for each field of the context; for a category it is the index of the value.

    A field that is not declared is a number or a category, depending on its values.
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
        # SQL values by field: the texts of undeclared categories become codes once all are known.
        self._texts, self._values = dict[str, str](), dict.fromkeys(self.fields, "")
        for name, field in self.fields.items():
            column, missing = columns[name], f"is missing, and {NO_DEFAULT}"
            if field is None and column not in numeric:
                self._texts[name] = sql.name(column, missing)
            elif isinstance(field, Category) and field.default is None:
                unknown = f"is not one of the categories {listed(field.values)}"
                self._values[name] = sql.known(column, missing, field.values, unknown)
            elif isinstance(field, Category):
                code = sql.code(sql.text(column), field.values)
                default = field.values.index(str(field.default))
                self._values[name] = self._filled(name, code, f"{code} = {UNKNOWN}", default)
            else:
                field = self.fields[name] = field or Number()
                value = sql.number(column, field.default is None, -LARGEST, LARGEST)
                is_missing = f"{sql.source.cell(column)} is null"
                self._values[name] = self._filled(name, value, is_missing, field.default)

    def _filled(self, name: str, value: str, is_missing: str, default: float | None) -> str:
        """Return a value with the default in rows where it is missing, which are counted."""
        if default is None:
            return value
        self._sql.aggregates[f"filled {name}"] = f"count(*) filter (good and {is_missing})"
        return self._sql.value(f"case when {is_missing} then {default!r} else {value} end")

    def finish(self) -> None:
        """Take the values that occur as categories; after this the context is ``wanted``."""
        for name, text in self._texts.items():
            column = self._columns[name]
            values = self._sql.names[column]
            if len(values) > MOST_UNDECLARED:
                raise InputError(
                    f"column {column!r} has more than {MOST_UNDECLARED} different values, too many "
                    "for a category that is not declared: leave it out of the context, or declare "
                    f"its categories{''.join(f'. {hint}' for hint in hints(column, values))}",
                    parameter=column,
                )
            self.fields[name] = Category(tuple(values))
            self._values[name] = self._sql.code(text, values)
        self._sql.wanted["context"] = [*self._values.values()]

    def notes(self) -> Iterator[str]:
        """Yield sentences about defaults that replaced values, and about similar categories."""
        for name, field in self.fields.items():
            if name in self._texts:
                column = self._columns[name]
                yield from _similar(column, field.values, "categories")
                if advice := hints(column, field.values):
                    yield f"column {column!r} was read as categories. {' '.join(advice)}"
            if count := self._sql.facts.get(f"filled {name}"):
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
    declared = {name: value for name, value in declared.items() if value is not None}
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
        # A single column of actions belongs to the only slot or interval.
        roles["action"] = {menu.parts[0].name: roles["action"][ARMS]}
    if "action_features" in declared:
        menu = described_menu(menu, declared["action_features"], [*roles["action"]])
    is_learned, status = "true", roles["status"].get("status")
    if status is not None:
        is_learned = f"coalesce({opened.cell(status)} = {quoted(LEARNED)}, false)"
    sql = CheckedColumns(opened, is_learned)
    actions = ActionColumns(sql, roles["action"], roles["eligible"].get("eligible"), menu)
    context = ContextColumns(sql, roles["context"], fields)
    of_slots = roles["slot_propensity"]
    roles["slot_propensity"] = {slot: of_slots[slot] for slot in actions.slots if slot in of_slots}
    _add_columns(sql, roles, rewards, has_densities=bool(actions.ranges))
    if status is not None:
        no_status = f"coalesce({opened.cell(status)}, 'without a status')"
        sql.aggregates["left out"] = f"histogram({no_status}) filter (not ({is_learned}))"
    sql.examine()
    left_out = [
        f"{count} decisions were left out because of their status: {name}"
        + (" (until reward_wait has passed, rewards can still arrive)" if name == PENDING else "")
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
    table = _collected(sql, actions, folder)
    order_notes = [*_tidied(table, roles, sql, folder)]
    if not skip_bad_rows:
        sql.refuse()
    table = _with_rewards(table, folder)
    notes = [*sql.skipped(), *left_out]
    # The propensity of a row can be the product of those of its slots.
    slots = table.get("slot_propensity", table["propensity"][:, None])
    parts = zip(in_pieces(table["propensity"]), in_pieces(slots), strict=True)
    missing = sum(np.count_nonzero(np.isnan(p) & np.isnan(of).any(axis=1)) for p, of in parts)
    if missing:
        hint = "" if roles["propensity"] else did_you_mean("propensity", opened.columns)
        hint = hint and f"; {hint}Then give --column propensity=NAME"
        notes.append(f"rows without a propensity: {missing} of {len(table['reward'])}{hint}")
    notes += [what for what, is_so in sql.facts.items() if what.startswith("column ") and is_so]
    notes += context.notes()
    used = {column for columns in roles.values() for column in columns.values()}
    unused = [name or repr(name) for name in opened.columns if name not in used]
    if unused and opened.schema is None:
        # The export of a bandit has more columns, for people: these need no note.
        notes.append(f"columns that were not used: {listed(unused)}")
    notes += [*order_notes, *actions.notes()]
    for name in {"session", "cluster"} & table.keys():
        # From 0, in the order of their first rows.
        table[name][:] = pa.array(table[name]).dictionary_encode().indices
    if "session" in table:
        table.setdefault("cluster", table["session"])
    if rewards is None:
        rewards, reward_notes = _observed_rewards(table["reward"])
        notes += reward_notes
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


def _add_columns(
    sql: CheckedColumns,
    roles: Mapping[str, Columns],
    rewards: dict[str, Any] | None,
    has_densities: bool,
) -> None:
    """Want and check all columns of a log other than actions and the context.

    Propensities are probabilities, or densities if actions are real-valued.
    """
    sql.wanted["propensity"] = sql.value("cast(null as double)")
    for role in (*NUMBER_ROLES, *TABLE_ROLES, *ID_ROLES, "time"):
        values, is_propensity = list[str](), "propensity" in role
        for column in roles[role].values():
            if role in ID_ROLES:
                value = sql.identifier(column)
            elif role == "time":
                value = sql.time(column)
            else:
                value = sql.number(column, required=not is_propensity)
            for reason, condition in LIMITS.get(role, {}).items():
                sql.check(column, reason, condition.format(value))
            if rewards is not None and role in ("reward", "outcomes"):
                sql.check(column, *_off_scale(rewards, value))
            if is_propensity and not has_densities:
                reason = "must be at most 1; if it is in percent, divide it by 100"
                sql.check(column, reason, f"{value} > {1 + PROBABILITY_TOLERANCE!r}")
                value = sql.value(f"case when {value} > 1 then 1 else {value} end")
            values.append(value)
        if values:
            sql.wanted[FIELDS.get(role, role)] = values if role in TABLE_ROLES else values[0]
    if roles["count"]:
        sql.kept = f"{sql.wanted['count']} > 0"
    if roles["successes"]:
        above = f"{sql.wanted['successes']} > {sql.wanted['count']}"
        reason = "is above the number of decisions of its row"
        sql.check(roles["successes"]["successes"], reason, above)


def _off_scale(rewards: Mapping[str, Any], value: str) -> tuple[str, str]:
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


def _collected(
    sql: CheckedColumns, actions: ActionColumns, folder: TemporaryFolder | None
) -> Table:
    """Return the columns of the good rows, and their numbers in the file as ``row``."""
    types = {
        **dict.fromkeys(ID_ROLES, np.int64),
        "context": np.float32,
        "action": np.float64 if actions.ranges else np.int32,
        "eligible_set": np.int32,
        "row": np.int32,
    }
    table, filled = dict[str, NDArray[Any]](), 0
    for rows, values in sql.batches():
        values["eligible_set"] = actions.set_numbers[values["eligible_set"]]
        end = filled + len(rows)
        for name, part in {**values, "row": rows}.items():
            if name not in table:
                shape = (sql.good, *part.shape[1:])
                table[name] = new_column(folder, types.get(name, np.float64), shape)
            table[name][filled:end] = part
        filled = end
        release(table.values())
    return table


def all_binary(reward: NDArray[Any]) -> bool:
    """Return whether all rewards are 0 or 1."""
    return all(np.isin(part, (0, 1)).all() for part in in_pieces(reward))


def _observed_rewards(reward: NDArray[Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the kind of rewards that occur, and a note if only a few are neither 0 nor 1."""
    count, example = 0, 0.0
    for part in in_pieces(reward):
        others = part[~np.isin(part, (0, 1))]
        if len(others):
            count, example = count + len(others), float(others[0])
    if not count:
        return rewards_of("binary"), []
    note = (
        f"rewards are 0 or 1 except in {counted(count, 'row')} (such as {example:g}), so they were "
        'read as continuous: to find these rows, give --declare FILE.toml with rewards = "binary" '
        '(rewards="binary")'
    )
    return rewards_of("continuous"), [note] if count <= RARE_SHARE * len(reward) else []


def _tidied(
    table: Table, roles: Mapping[str, Columns], sql: CheckedColumns, folder: TemporaryFolder | None
) -> Iterator[str]:
    """Sort the rows by time, in place, and yield a sentence if they were not sorted.

    Rows whose id occurred in an earlier row are removed, and counted as bad.
    """
    row, identifier, time = table.pop("row"), table.pop("id", None), table.pop("time", None)
    which: Integers | None = None
    if identifier is not None:
        repeated = np.ones(len(identifier), dtype=bool)
        repeated[np.unique(identifier, return_index=True)[1]] = False
        if repeated.any():
            which, second = np.flatnonzero(~repeated), int(np.argmax(repeated))
            first = int(np.argmax(identifier == identifier[second]))
            count = int(repeated.sum())
            sql.add_problem(roles["id"]["id"], REPEATED, count, int(row[second]), int(row[first]))
            row, time = row[which], None if time is None else time[which]
    if time is not None and (time[1:] < time[:-1]).any():
        earlier = np.flatnonzero(time[1:] < time[:-1])
        late = int(row[earlier[0] + 1])
        yield (
            f"the rows were not in the order of {roles['time']['time']!r}, and were sorted "
            f"({sql.source.places([late])[late]} is earlier than the row before; number of such "
            f"rows: {len(earlier)})"
        )
        order = np.argsort(time, kind="stable")
        which = order if which is None else which[order]
    if which is not None:
        # Replace one column at a time, so only one of them is in memory twice.
        for name in list(table):
            table[name] = taken(table[name], which, folder)


def _with_rewards(columns: Table, folder: TemporaryFolder | None) -> Table:
    """Return the columns with a row for each reward, 1 and 0, of rows that count successes.

    The column ``successes`` is replaced by ``reward``, and ``count`` is the number of decisions
    with this reward. Rows that stand for no decision are left out.
    """
    successes = columns.pop("successes", None)
    if successes is None:
        return columns
    counts = np.stack([successes, columns["count"] - successes], axis=1)
    row, failed = np.nonzero(counts)
    columns = {name: taken(values, row, folder) for name, values in columns.items()}
    return {**columns, "reward": 1.0 - failed, "count": counts[row, failed]}
