"""Reads a log batch by batch; rows that cannot be used are counted and named."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.core.summary import counted, listed
from submax.evaluation.cells import (
    NO_DEFAULT,
    REPEATED,
    TRUTH,
    UNKNOWN,
    CheckedColumns,
    Rows,
    hint_about,
    is_name,
    not_whole,
)
from submax.evaluation.columns import (
    ACTION,
    CONTEXT,
    ColumnNames,
    check_same,
    find_columns,
    role_of_similar,
)
from submax.evaluation.disk import ColumnWriter, TemporaryFolder, in_pieces, pieces, release, taken
from submax.evaluation.sources import PLAIN, TextFormat, open_source, quoted
from submax.schema.actions import ARMS, MOST_CHOICES, ActionSpec, ChoiceIndices, described, of_slot
from submax.schema.context import LARGEST, Category, ContextSchema, Field, Number
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

Table = dict[str, NDArray[Any]]
"""The columns of a log."""
DECLARED_KEYS = ("actions", "action_features", "context", "rewards")
"""Keys that a declaration may have: the arguments of ``Log.read`` with these names."""
LEARNED, PENDING = "learned", "pending"
"""In the export of a bandit, the status of decisions whose reward is final, and of decisions that
still wait for their reward. Only the former are read."""
MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""
MOST_DECISIONS = 2.0**53
"""Whole numbers up to this one are exact as floating-point numbers."""
EVERYTHING, UNREADABLE = 0, -1
"""In place of the number of a set: all choices, and a cell that cannot be read."""


# Arrays and declarations --------------------------------------------------------------------------


def read_declaration(path: Path) -> dict[str, Any]:
    """Return the arguments of ``Log.read`` that a TOML file has."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    for key in table:
        one_of(f"key in {path.name}:", key, DECLARED_KEYS)
    return table


def arrays_table(
    action: ArrayLike, reward: ArrayLike, propensity: ArrayLike | None, context: ArrayLike | None
) -> dict[str, NDArray[Any]]:
    """Return the columns ``action``, ``reward``, ``propensity``, ``context_x0`` and so on."""
    rewards, actions = _array("reward", reward, (1,)), _array("action", action, (1, 2))
    table = {f"{ACTION}slot{slot}": column for slot, column in enumerate(actions.T)}
    table = {"action": actions} if actions.ndim == 1 else table
    table["reward"] = rewards
    if propensity is not None:
        table["propensity"] = _array("propensity", propensity, (1,))
    if context is not None:
        columns = _array("context", context, (2,)).T
        table |= {f"{CONTEXT}x{field}": column for field, column in enumerate(columns)}
    for name, column in table.items():
        if len(column) != len(rewards):
            raise InputError(
                f"{name} has {len(column)} rows and reward has {len(rewards)}: give arrays of the "
                "same length",
                parameter=name,
            )
    return {name: np.ascontiguousarray(column) for name, column in table.items()}


def obp_table(feedback: Mapping[str, Any]) -> tuple[dict[str, NDArray[Any]], list[str] | None]:
    """Return the columns of a bandit feedback of Open Bandit Pipeline, and its action names."""
    for name in ("action", "reward"):
        if not isinstance(feedback, Mapping) or feedback.get(name) is None:
            raise InputError(
                f"the bandit feedback has no key {name!r}: give the dictionary of Open Bandit "
                "Pipeline, with 'action' and 'reward'",
                parameter=name,
            )
    _array("action", feedback["action"], (1,))
    given = (feedback.get(name) for name in ("action", "reward", "pscore", "context"))
    table = arrays_table(*given)  # type: ignore[arg-type]  # the first two are not None
    position, count = feedback.get("position"), feedback.get("n_actions")
    if position is not None and len(np.unique(position)) > 1:
        table[f"{CONTEXT}position"] = np.asarray(position).astype(str)
    if count is not None:
        whole_number("n_actions", count, at_least=1, at_most=MOST_CHOICES)
    elif table["action"].dtype.kind in "iu" and table["action"].size:
        count = min(int(table["action"].max()) + 1, MOST_CHOICES)
    return table, [str(number) for number in range(count)] if count else None


def _array(name: str, values: ArrayLike, dimensions: tuple[int, ...]) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} must be an array: {error}", parameter=name) from error
    if array.ndim not in dimensions:
        wanted = " or ".join("[N]" if count == 1 else f"[N, {name}s]" for count in dimensions)
        raise InputError(f"{name} must have the shape {wanted}, not {array.shape}", parameter=name)
    return array


# Features of actions ------------------------------------------------------------------------------


def read_action_features(given: Any) -> Mapping[str, Any]:
    """Return the features of choices by name, in the form that ``submax.open`` accepts.

    ``given`` is already of this form, or it is a file or data frame with one row for each choice:
    a column ``action``, or the columns ``slot`` and ``choice``, and a column for each feature.
    """
    if isinstance(given, Mapping):
        return given
    source = open_source(given)
    columns = CheckedColumns(source)
    keys = ["action"] if "action" in source.columns else ["slot", "choice"]
    features = [name for name in source.columns if name not in keys]
    if not features or not set(keys) <= set(source.columns):
        raise InputError(
            f"the action features in {source.name} have the columns "
            f"{', '.join(source.columns)[:200]}: give a column 'action', or the columns "
            "'slot' and 'choice', and a column for each feature",
            parameter="action_features",
        )
    numeric = columns.numeric(features)
    wanted = {name: columns.text(name) for name in [*keys, *features]}
    wanted |= {name: columns.number(name, required=False) for name in features if name in numeric}
    found: dict[str, dict[str, Any]] = {}
    for rows in columns.batches(wanted):
        for place in range(rows.total):
            cells = {name: values[place] for name, values in rows.columns.items()}
            slot, choice = (ARMS, *(cells.pop(key) for key in keys))[-2:]
            choices = found.setdefault(str(slot), {})
            if slot is None or choice is None or choice in choices:
                raise InputError(
                    f"row {rows.first + place} of the action features has the name {choice!r}, "
                    "which is empty or repeated: correct or remove the row",
                    parameter="action_features",
                )
            # Missing numbers are NaN, and missing texts None.
            known = {name: one for name, one in cells.items() if one is not None and one == one}
            choices[choice] = {
                name: float(one) if name in numeric else one for name, one in known.items()
            }
    columns.refuse("action_features")
    if not found:
        raise InputError(
            f"the table of action features in {source.name} has no rows: add a row for each action",
            parameter="action_features",
        )
    return found[ARMS] if len(keys) == 1 else found


def described_menu(menu: ActionSpec, features: Mapping[str, Any]) -> tuple[ActionSpec, list[str]]:
    """Return the menu with features, and notes about features of choices the log does not have."""
    tables = {ARMS: features} if menu.plain else dict(features)
    unknown = []
    for slot in menu.slots:
        table = tables.get(slot.name)
        if isinstance(table, Mapping):
            known = {choice.name for choice in slot.choices}
            unknown += [f"{name!s:.80}{of_slot(slot.name)}" for name in table if name not in known]
            tables[slot.name] = {name: one for name, one in table.items() if name in known}
    slots = described(menu.slots, tables[ARMS] if menu.plain else tables)
    note = (
        f"action features of choices that the log does not have were ignored: {', '.join(unknown)}"
    )
    return msgspec.structs.replace(menu, slots=slots), [note[:260]] if unknown else []


# Actions and their eligible sets ------------------------------------------------------------------


def eligible_names(text: str) -> list[list[str]] | None:
    """Return the names of eligible choices in a cell, for each slot; None if it has none.

    A cell is a list of lists or a list (one slot), as JSON, or text such as ``A|B``.

    >>> eligible_names("A|B"), eligible_names('[["A"], ["wide", "narrow"]]')
    ([['A', 'B']], [['A'], ['wide', 'narrow']])
    """
    if not text.startswith("["):
        return [text.split("|")]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or not value:
        return None
    nested = value if all(isinstance(one, list) for one in value) else [value]
    if any(isinstance(one, (list, dict)) or one is None for one in chain(*nested)):
        return None
    return [
        [str(int(one) if isinstance(one, float) and one.is_integer() else one) for one in slot]
        for slot in nested
    ]


class ActionColumns:
    """The choice of every slot, then the real-valued parts, and the eligible choices of each row.

    Without a ``menu`` the choices of a slot are the names that occur in good rows, sorted. A set of
    eligible choices has a number; 0 is the set of all choices, for rows whose cell is empty.
    """

    def __init__(self, sql: CheckedColumns, names: ColumnNames, menu: ActionSpec | None) -> None:
        self._sql, self._names, self.menu = sql, names.actions, menu
        self._eligible, self._declared = names.eligible, menu is not None
        self.ranges = () if menu is None else menu.ranges
        self.slots: dict[str, list[str]] = {slot: [] for slot in names.actions}
        if menu is not None:
            wanted = [slot.name for slot in menu.slots] + [one.name for one in menu.ranges]
            check_same("slot", wanted, names.actions)
            self.slots = {one.name: [choice.name for choice in one.choices] for one in menu.slots}
        missing = "is missing: an action is needed"
        self._texts = {slot: sql.name(self._names[slot], missing) for slot in self.slots}
        self._cell = None if names.eligible is None else sql.text(names.eligible, nested=True)
        self.wanted: dict[str, str] = {}
        if menu is not None:
            self._add_codes()
        self._sets = np.zeros(1, dtype=np.int32)
        self.eligible_sets: tuple[ChoiceIndices, ...] = ()

    def _add_codes(self) -> None:
        sql = self._sql
        for slot, text in self._texts.items():
            code = self.wanted[f"action {slot}"] = sql.code(text, self.slots[slot])
            if self._declared:
                unknown = f"{text} is not null and {code} = {UNKNOWN}"
                sql.check(self._names[slot], "is not one of the declared actions", unknown)
        for interval in self.ranges:
            column = self._names[interval.name]
            value = self.wanted[f"action {interval.name}"] = sql.number(column)
            outside = f"{value} < {interval.low!r} or {value} > {interval.high!r}"
            sql.check(column, f"is not from {interval.low:g} to {interval.high:g}", outside)

    def facts(self, where: str) -> dict[str, str]:
        """Return the aggregates that ``finish`` needs: the names, and the cells, that occur."""
        found, named = {}, where
        if self._cell is not None:
            # The cells of rows whose action is not in them name no action of the log.
            for text in self._texts.values():
                named += f" and (contains({self._cell}, {text}) or contains({self._cell}, '\\'))"
            found["cells"] = self._sql.names_fact(self._cell, f"coalesce({named}, false)")
            where = f"{where} and ({self._cell} is null or {named})"
        if not self._declared:
            found |= {
                f"action {slot}": self._sql.names_fact(one, f"coalesce({where}, false)")
                for slot, one in self._texts.items()
            }
        return found

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Take the names and sets that occur; after this the codes of actions are ``wanted``."""
        cells: dict[str, Any] = {}
        # One text for equal names: with very many sets, copies would fill the memory.
        extra: list[dict[str, str]] = [{} for _ in self.slots]
        for one in sorted(facts.get("cells") or (), key=lambda one: not one["good"]):
            if one["name"] is not None and one["name"] not in cells:
                parsed = self._parsed(one["name"])
                if one["good"] and parsed is not None:
                    parsed = [
                        [known.setdefault(name, name) for name in several]
                        for known, several in zip(extra, parsed, strict=True)
                    ]
                cells[one["name"]] = parsed
        if not self._declared:
            for slot, more in zip(self.slots, extra, strict=True):
                column = self._names[slot]
                known = [*(facts.get(f"action {slot}") or ())]
                known += [{"name": name, "good": True} for name in more]
                self.slots[slot] = self._sql.names(column, self._texts[slot], known)
                if len(self.slots[slot]) > MOST_CHOICES:
                    raise InputError(
                        f"column {column!r} has more than {MOST_CHOICES} different actions, the "
                        "most that a slot may have: if they are real numbers, declare an interval, "
                        f"{self._as_interval(column)}",
                        parameter=column,
                    )
            self._add_codes()
            if all(self.slots.values()):
                self.menu = ActionSpec.of(self.slots.get(ARMS, self.slots))
        if self.menu is not None:
            everything = self.menu.revived.active if self._declared else self.menu.active
            self._number_sets(cells, everything)

    def _parsed(self, cell: str) -> list[list[str]] | None:
        """Return the names of a cell for each slot, if they can be those of actions."""
        if not self.slots:
            return [] if cell == "[]" else None
        names = eligible_names(cell)
        if names is None or len(names) != len(self.slots):
            return None
        for several, known in zip(names, self.slots.values(), strict=True):
            allowed = (one in known if self._declared else is_name(one) for one in several)
            if not several or not all(allowed):
                return None
        return names

    def _number_sets(self, cells: Mapping[str, Any], everything: ChoiceIndices) -> None:
        """Number the sets that occur, sorted, from 1."""
        places = [{name: i for i, name in enumerate(names)} for names in self.slots.values()]
        found: dict[str, ChoiceIndices] = {}
        for cell, names in cells.items():
            # Names that only bad rows have are no actions.
            pairs = list(zip(places, names or (), strict=False))
            if names is not None and all(set(several) <= place.keys() for place, several in pairs):
                found[cell] = tuple(
                    tuple(sorted({place[one] for one in several})) for place, several in pairs
                )
        self.eligible_sets = tuple(dict.fromkeys([everything, *sorted(set(found.values()))]))
        number = {one: place for place, one in enumerate(self.eligible_sets)}
        numbers = [number[found[cell]] if cell in found else UNREADABLE for cell in cells]
        self._sets = np.array([*numbers, EVERYTHING], dtype=np.int32)
        self._masks = [
            eligible_mask(self.eligible_sets, slot, len(names))
            for slot, names in enumerate(self.slots.values())
        ]
        if self._cell is not None:
            self.wanted["eligible"] = self._sql.code(self._cell, list(cells))

    def read(self, rows: Rows) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the actions ``[n, S]`` and the number of each row's set of eligible choices."""
        columns = [rows.columns[name] for name in self.wanted if name != "eligible"]
        action = np.stack(columns, axis=1).astype(np.float64 if self.ranges else np.int32)
        if self._eligible is None or "eligible" not in rows.columns:
            return action, np.zeros(rows.total, dtype=np.int32)
        found = self._sets[rows.columns["eligible"]]
        self._sql.note(rows, self._eligible, "is not a list of known actions", found == UNREADABLE)
        outside = np.zeros(rows.total, dtype=bool)
        for mask, chosen in zip(self._masks, action.T, strict=False):
            chosen = chosen.astype(np.int64)
            outside |= (chosen != UNKNOWN) & ~mask[found, chosen]
        reason = "does not contain the action that was taken"
        self._sql.note(rows, self._eligible, reason, outside & (found != UNREADABLE))
        return action, found

    def _as_interval(self, column: str) -> str:
        """Return the argument that declares a column as real numbers."""
        slot = next(name for name, one in self._names.items() if one == column)
        if slot != ARMS:
            return f"actions={{{slot!r}: (low, high)}}"
        # Plain arms have no slot name, and an interval needs one: take that of the column.
        return f"columns={{'action': [{column!r}]}}, actions={{{column!r}: (low, high)}}"

    def notes(self, menu: ActionSpec, action: NDArray[Any]) -> Iterator[str]:
        """Yield sentences about what may surprise in the actions."""
        for slot in () if self._declared else menu.slots:
            if not_whole(choice.name for choice in slot.choices):
                column = self._names[slot.name]
                yield (
                    f"column {column!r} holds numbers that are not whole, and they were read as "
                    f"{len(slot.choices)} names: if they are real-valued actions, declare an "
                    f"interval, {self._as_interval(column)}"
                )
            spaced = [one.name for one in slot.choices if one.name != one.name.strip()]
            if spaced:
                yield (
                    f"actions have spaces at their ends, such as {spaced[0]!r}: with and without "
                    "them they are different actions"
                )
        inactive = [
            choice.name if slot.name == ARMS else f"{slot.name}={choice.name}"
            for place, slot in enumerate(menu.slots)
            for index, choice in enumerate(slot.choices)
            if choice.status != "active"
            and any((one[:, place] == index).any() for one in in_pieces(action))
        ]
        if inactive:
            yield f"the log contains choices that are no longer active: {', '.join(inactive)[:200]}"


def eligible_mask(sets: Sequence[ChoiceIndices], slot: int, choices: int) -> Booleans:
    """Return which choices of a slot are in each of the eligible sets, ``[sets, choices]``."""
    mask = np.zeros((len(sets), choices), dtype=bool)
    sizes = [len(one[slot]) for one in sets]
    mask[np.repeat(np.arange(len(sets)), sizes), list(chain(*(one[slot] for one in sets)))] = True
    return mask


# The context --------------------------------------------------------------------------------------


class ContextColumns:
    """One number for each field of the context; for a category it is the index of the value."""

    def __init__(
        self, sql: CheckedColumns, columns: Mapping[str, str], declared: ContextSchema | None
    ) -> None:
        self._sql, self._columns = sql, columns
        self.fields: dict[str, Field | None] = dict.fromkeys(columns)
        if declared is not None:
            check_same("context field", declared.names, columns)
            self.fields = dict(zip(declared.names, declared.fields, strict=True))
        numeric = sql.numeric([columns[name] for name, one in self.fields.items() if one is None])
        self._open: dict[str, str] = {}
        self._defaults: dict[str, tuple[str, int]] = {}
        self.wanted: dict[str, str] = {}
        for name, field in self.fields.items():
            if isinstance(field, Category):
                self._category(name, field)
            elif field is not None or columns[name] in numeric:
                self._number(name, field if isinstance(field, Number) else Number())
            else:
                self._open[name] = sql.name(columns[name], f"is missing, and {NO_DEFAULT}")
                # Its values are not known yet.
                self.wanted[name] = "null"

    def _number(self, name: str, field: Number) -> None:
        sql, column = self._sql, self._columns[name]
        value = sql.number(column, required=field.default is None)
        beyond = f"abs({value}) > {LARGEST!r}"
        reason = f"is not from {-LARGEST:g} to {LARGEST:g}, as a number of the context must be"
        sql.check(column, reason, beyond)
        value = sql.value(f"case when {beyond} then 0 else {value} end")
        self._add(name, value, f"{sql.source.cell(column)} is null", field.default)
        self.fields[name] = field

    def _category(self, name: str, field: Category) -> None:
        sql, column = self._sql, self._columns[name]
        if field.default is None:
            text = sql.name(column, f"is missing, and {NO_DEFAULT}")
            code = self.wanted[name] = sql.code(text, field.values)
            reason = f"is not one of the categories {listed(field.values)}"
            sql.check(column, reason, f"{text} is not null and {code} = {UNKNOWN}")
        else:
            code = sql.code(sql.text(column), field.values)
            self._add(name, code, f"{code} = {UNKNOWN}", field.values.index(str(field.default)))

    def _add(self, name: str, value: str, missing: str, default: Any) -> None:
        self.wanted[name] = value
        if default is not None:
            filled = self._sql.value(missing)
            self.wanted[name] = self._sql.value(
                f"case when {filled} then {default!r} else {value} end"
            )
            self.wanted[f"filled {name}"], self._defaults[name] = filled, (filled, 0)

    def facts(self, where: str) -> dict[str, str]:
        """Return the aggregates that ``finish`` needs: the values of undeclared categories."""
        fact = self._sql.names_fact
        return {f"context {name}": fact(text, where) for name, text in self._open.items()}

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Take the values that occur as categories, sorted."""
        for name, text in self._open.items():
            column = self._columns[name]
            values = self._sql.names(column, text, facts[f"context {name}"] or ())
            if len(values) > MOST_UNDECLARED:
                raise InputError(
                    f"column {column!r} has more than {MOST_UNDECLARED} different values, too many "
                    "for a category that is not declared: leave it out of the context, or declare "
                    "its categories",
                    parameter=column,
                )
            self.fields[name] = Category(tuple(values)) if values else None
            self.wanted[name] = self._sql.code(text, values)

    def read(self, rows: Rows, good: Booleans) -> NDArray[np.float32]:
        """Return the contexts of the rows, ``[n, F]``, and count the defaults of good rows."""
        for name, (sql, count) in self._defaults.items():
            filled = rows.columns[f"filled {name}"].astype(bool) & good
            self._defaults[name] = sql, count + int(np.count_nonzero(filled))
        context = np.empty((rows.total, len(self.fields)), dtype=np.float32)
        for place, name in enumerate(self.fields):
            context[:, place] = rows.columns[name]
        return context

    @property
    def schema(self) -> ContextSchema:
        """The declared schema, or that of the values that occur."""
        return ContextSchema.of({name: one for name, one in self.fields.items() if one is not None})

    def notes(self) -> Iterator[str]:
        """Yield sentences about defaults that replaced values, and about odd categories."""
        for name, (_, count) in self._defaults.items():
            field = self.fields[name]
            if count and field is not None:
                what = "missing" if isinstance(field, Number) else "missing or not declared"
                yield (
                    f"column {self._columns[name]!r}: {count} values are {what}, and were replaced "
                    f"by the default {field.default!r}"
                )
        for name in self._open:
            field = self.fields[name]
            if isinstance(field, Category):
                hint = hint_about(self._columns[name], field.values)
                if hint is not None:
                    yield f"{hint} It was read as {len(field.values)} categories"


# The log ------------------------------------------------------------------------------------------


def read_log(
    source: Any,
    columns: Mapping[str, Any],
    declared: Mapping[str, Any],
    skip_bad_rows: bool,
    text: TextFormat = PLAIN,
    folder: TemporaryFolder | None = None,
) -> dict[str, Any]:
    """Return the values of the fields of a ``Log``, with columns in files of a folder, if any.

    ``declared`` may have a whole schema, actions, context, rewards and action_features.
    """
    opened = open_source(source, text)
    declared = {name: one for name, one in declared.items() if one is not None}
    names = find_columns(opened.columns, columns)
    schema = declared.get("schema", opened.schema)
    menu = None if schema is None else schema.menu
    # If the caller names the columns of the context, they need not be those of the export.
    use_fields = schema is not None and ("schema" in declared or "context" not in columns)
    fields = schema.context if schema is not None and use_fields else None
    rewards = None if schema is None else schema.rewards
    if "actions" in declared:
        menu = ActionSpec.of(declared["actions"])
    if "context" in declared:
        fields = ContextSchema.of(declared["context"])
    if "rewards" in declared:
        rewards = rewards_of(declared["rewards"])
    if menu is not None and not menu.plain and list(names.actions) == [ARMS]:
        # A single column of actions is that of the only slot or interval.
        parts = [*(slot.name for slot in menu.slots), *(one.name for one in menu.ranges)]
        if len(parts) == 1:
            names = msgspec.structs.replace(names, actions={parts[0]: names.actions[ARMS]})
    features = None
    if "action_features" in declared:
        features = read_action_features(declared["action_features"])
        if menu is not None:
            # Refuse features that do not suit the menu before the log is read.
            described_menu(menu, features)
    status = None if names.status is None else opened.cell(names.status)
    is_learned = "true" if status is None else f"coalesce({status} = {quoted(LEARNED)}, false)"
    sql = CheckedColumns(opened, is_learned)
    actions, context = ActionColumns(sql, names, menu), ContextColumns(sql, names.context, fields)
    found, slots = declared_columns(sql, names, rewards, actions)
    some = "" if names.count is None else f" and {found['count'][0]} > 0"
    wanted = actions.facts(f"good{some}") | context.facts(f"good{some}") | _word_facts(sql, names)
    if status is not None:
        no_status = f"coalesce({status}, 'without a status')"
        wanted["status"] = f"histogram({no_status}) filter (not ({sql.counted}))"
    facts = sql.facts(wanted)
    actions.finish(facts)
    context.finish(facts)
    table = collected(sql, actions, context, found, folder)
    without_repeats(table, names, sql, folder)
    if not skip_bad_rows:
        sql.refuse()
    table, left_out = with_rewards(table), facts.get("status") or {}
    if not table or len(table["reward"]) == 0 or actions.menu is None:
        raise InputError(_no_rows(sql, left_out))
    notes = [*_notes(sql, names, table, facts, left_out), *context.notes()]
    notes += _unused(sql, names, slots)
    notes += in_order(table, names, sql, folder)
    notes += actions.notes(actions.menu, table["action"])
    menu = actions.menu
    if features is not None:
        menu, unused = described_menu(menu, features)
        notes += unused
    for name in ("session", "cluster"):
        if name in table:
            table[name] = numbered(table[name])
    if "session" in table:
        table.setdefault("cluster", table["session"])
    binary = all(np.isin(part, (0, 1)).all() for part in in_pieces(table["reward"]))
    rewards = rewards or rewards_of("binary" if binary else "continuous")
    release(table.values())
    return {
        **table,
        "schema": Schema(menu=menu, context=context.schema, rewards=rewards),
        "eligible_sets": actions.eligible_sets,
        "estimated": np.broadcast_to(False, len(table["reward"])),
        "outcome_names": tuple(names.outcomes),
        "probability_names": tuple(names.probabilities.values()),
        "notes": tuple(notes),
    }


IDS = ("cluster", "session", "id")
"""Columns whose values are hashed: equal values have equal numbers."""
TABLES = ("outcomes", "covariates", "probability", "slot_propensity")
"""Columns of a log that have several numbers in each row."""


def declared_columns(
    sql: CheckedColumns,
    names: ColumnNames,
    rewards: dict[str, Any] | None,
    actions: ActionColumns,
) -> tuple[dict[str, list[str]], bool]:
    """Return the values in SQL of each column of the log, but actions and context.

    It is also said whether all slots have propensities of their own, which are then used.
    """

    def count(column: str) -> str:
        found = sql.number(column)
        sql.check(column, "is below 0, as no number of decisions can be", f"{found} < 0")
        whole = f"{found} <> round({found}) or {found} > {MOST_DECISIONS!r}"
        sql.check(column, "is not a whole number of decisions", whole)
        return found

    def reward(column: str) -> str:
        found = sql.number(column)
        if rewards is not None:
            sql.check(column, *off_scale(rewards, found))
        return found

    def propensity(column: str | None) -> str:
        if column is None:
            return sql.value("cast(null as double)")
        found = sql.number(column, required=False)
        sql.check(column, "must be greater than 0", f"{found} <= 0")
        if actions.ranges:
            return found
        reason = "must be at most 1; if it is in percent, divide it by 100"
        sql.check(column, reason, f"{found} > {1 + PROBABILITY_TOLERANCE!r}")
        return sql.value(f"case when {found} > 1 then 1 else {found} end")

    found: dict[str, list[str]] = {}
    if names.count is not None:
        found["count"] = [count(names.count)]
    if names.successes is not None:
        found["successes"] = [count(names.successes)]
        above = f"{found['successes'][0]} > {found['count'][0]}"
        sql.check(names.successes, "is above the number of decisions of its row", above)
        found["reward"] = [sql.value("0.0")]
    else:
        found["reward"] = [reward(names.reward)]
    found["outcomes"] = [reward(one) for one in names.outcomes.values()]
    found["covariates"] = [sql.number(one) for one in names.covariates.values()]
    found["probability"] = [sql.number(one) for one in names.probabilities.values()]
    found["propensity"] = [propensity(names.propensity)]
    slots = [names.slot_propensities.get(slot) for slot in actions.slots]
    has_slots = bool(slots) and None not in slots
    found["slot_propensity"] = [propensity(one) for one in slots if has_slots]
    if names.weight is not None:
        weight = sql.number(names.weight)
        sql.check(names.weight, "must be greater than 0", f"{weight} <= 0")
        found["sampling_weight"] = [weight]
    for name in IDS:
        column = getattr(names, name)
        found[name] = [] if column is None else [sql.identifier(column)]
    if names.time is not None:
        found["time"] = [sql.time(names.time)]
    return {name: values for name, values in found.items() if values}, has_slots


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
    """Return the columns of all rows that are good, without those left out by their status."""
    writer = ColumnWriter(folder)
    flat = {one: one for values in columns.values() for one in values}
    for rows in sql.batches({**actions.wanted, **context.wanted, **flat}):
        action, eligible_set = actions.read(rows)
        good = rows.counted & ~rows.bad
        found: Table = {"action": action, "eligible_set": eligible_set}
        found["context"] = context.read(rows, good)
        for name, values in columns.items():
            arrays = [rows.columns[one] for one in values]
            if name in IDS:
                found[name] = arrays[0].astype(np.uint64).view(np.int64)
            else:
                one = np.stack(arrays, axis=1) if name in TABLES else arrays[0]
                found[name] = one.astype(np.float64)
        if "id" in found or "time" in found:
            found["row"] = np.arange(rows.first, rows.first + rows.total, dtype=np.int32)
        writer.add({name: values[good] for name, values in found.items()})
    return writer.finished()


def without_repeats(
    columns: Table, names: ColumnNames, sql: CheckedColumns, folder: TemporaryFolder | None
) -> None:
    """Remove, in place, rows whose id occurred in an earlier row, and count them as bad."""
    if names.id is None or "id" not in columns:
        return
    identifier, row = columns.pop("id"), columns["row"]
    _, kept = np.unique(identifier, return_index=True)
    if len(kept) == len(identifier):
        return
    repeated = np.ones(len(identifier), dtype=bool)
    repeated[kept] = False
    first = int(np.argmax(repeated))
    before = int(row[np.argmax(identifier == identifier[first])])
    count = len(identifier) - len(kept)
    sql.bad.note(names.id, f"{REPEATED}{sql.source.row(before)}", count, int(row[first]))
    sql.bad.rows += count
    _take(columns, np.sort(kept), folder)


def in_order(
    columns: Table, names: ColumnNames, sql: CheckedColumns, folder: TemporaryFolder | None
) -> Iterator[str]:
    """Sort the rows by time, in place, and yield a sentence if they were not sorted."""
    row, time = columns.pop("row", None), columns.pop("time", None)
    if row is None or time is None:
        return
    earlier = np.flatnonzero(time[1:] < time[:-1])
    if earlier.size:
        yield (
            f"the rows were not in the order of {names.time!r} "
            f"({sql.source.row(int(row[earlier[0] + 1]))} is earlier than the row before; number "
            f"of such rows: {earlier.size}), and were sorted"
        )
        _take(columns, np.argsort(time, kind="stable"), folder)
    release([row, time])


def _take(columns: Table, which: Integers, folder: TemporaryFolder | None) -> None:
    # Replace one column at a time, so only one of them is in memory twice.
    for name in list(columns):
        columns[name] = taken(columns[name], which, folder)


def numbered(ids: Integers) -> Integers:
    """Return the number of each row's id, in place, from 0 in the order of their first rows."""
    known = first = np.zeros(0, dtype=np.int64)
    for rows in pieces(len(ids)):
        some, place = np.unique(ids[rows], return_index=True)
        known, kept = np.unique(np.concatenate([known, some]), return_index=True)
        first = np.concatenate([first, rows.start + place])[kept]
        release([ids])
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    for rows in pieces(len(ids)):
        ids[rows] = rank[np.searchsorted(known, ids[rows])]
        release([ids])
    return ids


def with_rewards(columns: Table) -> Table:
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


# Notes --------------------------------------------------------------------------------------------


def _word_facts(sql: CheckedColumns, names: ColumnNames) -> dict[str, str]:
    """Return aggregates that count the words among rewards, and the numbers."""
    texts = [one for one in {names.reward, *names.outcomes.values()} if sql.is_text(one)]
    cells = [sql.source.cell(one) for one in texts]
    words = f"in ({', '.join(map(quoted, TRUTH))})"
    pairs = [(cell, f"lower(trim({cell})) {words}") for cell in cells]
    return (
        {
            "words": " + ".join(f"count(*) filter ({word})" for _, word in pairs),
            "present": " + ".join(f"count({cell})" for cell in cells),
            "word": f"coalesce({', '.join(f'first({c}) filter ({w})' for c, w in pairs)})",
        }
        if pairs
        else {}
    )


def _no_rows(sql: CheckedColumns, left_out: Mapping[str, int]) -> str:
    listing = ", ".join(f"{count} {status}" for status, count in left_out.items())
    why = f"; left out because of their status: {listing}" if listing else ""
    if left_out.get(PENDING):
        why += " (rewards of pending decisions may still come until reward_wait is over)"
    if sql.bad.count:
        why += f"; bad rows: {sql.bad.count}, " + "; ".join(sql.bad.sentences())
    why = why or ": give a log with at least one row"
    return f"{sql.source.name} has no rows that can be used{why}"


def _notes(
    sql: CheckedColumns,
    names: ColumnNames,
    columns: Table,
    facts: Mapping[str, Any],
    left_out: Mapping[str, int],
) -> Iterator[str]:
    """Yield sentences about what was left out, and about missing values."""
    if sql.bad.count:
        yield f"{sql.bad.count} bad rows were skipped: " + "; ".join(sql.bad.sentences())
    for status, count in left_out.items():
        yield f"{count} decisions were left out because of their status: {status}"
    column = columns["propensity"]
    missing = sum(np.count_nonzero(np.isnan(part)) for part in in_pieces(column))
    if missing:
        yield f"{missing} of {len(column)} rows have no propensity"
    words = facts.get("words")
    if words and words == facts["present"]:
        yield f"column {names.reward!r}: yes and true were read as 1, no and false as 0"
    elif words:
        yield (
            f"column {names.reward!r} has {counted(words, 'word')} such as {facts['word']!r} among "
            "numbers; yes and true were read as 1, no and false as 0: check where they are from"
        )


def _unused(sql: CheckedColumns, names: ColumnNames, slots: bool) -> Iterator[str]:
    """Yield sentences about columns that were not used."""
    unread = set() if slots else set(names.slot_propensities.values())
    unused = sorted(unread)
    # The export of a bandit has more columns, for people: these need no note.
    if sql.source.schema is None:
        used = set(names.used) - unread
        unused = [name or repr(name) for name in sql.source.columns if name not in used]
    if unused:
        yield f"columns that were not used: {listed(unused)}"
    for name in unused:
        if (role := role_of_similar(name)) is not None:
            yield f"is {name!r} the {role}? Then give --column {role}={name}"
