"""Reads a log batch by batch; rows that cannot be used are counted and named."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

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
    TRUTH,
    UNKNOWN,
    BadRows,
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
from submax.evaluation.sources import PLAIN, Source, TextFormat, open_source, quoted
from submax.schema.actions import (
    ARMS,
    MOST_CHOICES,
    ActionSpec,
    ChoiceIndices,
    Slot,
    described,
    of_slot,
)
from submax.schema.context import LARGEST, Category, ContextSchema, Field, Number
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

DECLARED_KEYS = ("actions", "action_features", "context", "rewards")
"""Keys that the file may have: the arguments of ``Log.read`` with these names."""


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
    if np.ndim(feedback["action"]) != 1:
        raise InputError(
            f"the actions of the bandit feedback have {np.ndim(feedback['action'])} "
            "dimensions: give one array [n_rounds]; for several slots use "
            "Log.from_arrays",
            parameter="action",
        )
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
        raise _bad_features(
            f"the action features in {source.name} have the columns "
            f"{', '.join(source.columns)[:200]}: give a column 'action', or the columns "
            "'slot' and 'choice', and a column for each feature"
        )
    numeric = columns.numeric(features)
    wanted = {name: columns.text(name) for name in [*keys, *features]}
    wanted |= {name: columns.number(name, required=False) for name in features if name in numeric}
    found: dict[str, dict[str, Any]] = {}
    for rows in columns.batches(wanted):
        columns.bad.rows += int(np.count_nonzero(rows.bad))
        for place in range(rows.total):
            cells = {name: values[place] for name, values in rows.columns.items()}
            slot, choice = (ARMS, *(cells.pop(key) for key in keys))[-2:]
            choices = found.setdefault(str(slot), {})
            if slot is None or choice is None or choice in choices:
                raise _bad_features(
                    f"row {rows.first + place} of the action features has the name {choice!r}, "
                    "which is empty or repeated: correct or remove the row"
                )
            # Missing numbers are NaN, and missing texts None.
            known = {name: one for name, one in cells.items() if one is not None and one == one}
            choices[choice] = {
                name: float(one) if name in numeric else one for name, one in known.items()
            }
    columns.refuse("action_features")
    if not found:
        raise _bad_features(
            f"the table of action features in {source.name} has no rows: add a row for each action"
        )
    return found[ARMS] if len(keys) == 1 else found


def _bad_features(sentence: str) -> InputError:
    return InputError(sentence, parameter="action_features")


def described_menu(menu: ActionSpec, features: Mapping[str, Any]) -> tuple[ActionSpec, list[str]]:
    """Return the menu with features, and notes about features of choices the log does not have."""
    tables = {ARMS: features} if menu.plain else dict(features)
    not_in_log = []
    for slot in menu.slots:
        table = tables.get(slot.name)
        if isinstance(table, Mapping):
            known = {choice.name for choice in slot.choices}
            not_in_log += [
                f"{name!s:.80}{of_slot(slot.name)}" for name in table if name not in known
            ]
            tables[slot.name] = {name: one for name, one in table.items() if name in known}
    slots: tuple[Slot, ...] = described(menu.slots, tables[ARMS] if menu.plain else tables)
    note = (
        "action features of choices that the log does not have were ignored: "
        f"{', '.join(not_in_log)[:200]}"
    )
    return msgspec.structs.replace(menu, slots=slots), [note] if not_in_log else []


Table = dict[str, NDArray[Any]]
"""The columns of a log."""


def without_repeats(
    columns: Table, names: ColumnNames, bad: BadRows, folder: TemporaryFolder | None
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
    before = int(np.argmax(identifier == identifier[first]))
    bad.note_repeats(names.id, len(identifier) - len(kept), int(row[first]), int(row[before]))
    _take(columns, np.sort(kept), folder)


def in_order(
    columns: Table, names: ColumnNames, bad: BadRows, folder: TemporaryFolder | None
) -> Iterator[str]:
    """Sort the rows by time, in place, and yield a sentence if they were not sorted.

    Without times the rows stay as they are, and ids that are integers should increase.
    """
    row, time, number = (columns.pop(name, None) for name in ("row", "time", "number"))
    order = number if time is None else time
    if row is None or order is None:
        return
    earlier = np.flatnonzero(order[1:] < order[:-1])
    if earlier.size:
        first, rows = (
            bad.source.row(int(row[earlier[0] + 1])),
            f"number of such rows: {earlier.size}",
        )
        if time is None:
            yield (
                f"the ids in {names.id!r} are not in increasing order ({first} is below the row "
                f"before; {rows}); the rows were not sorted, since there is no column of times"
            )
        else:
            yield (
                f"the rows were not in the order of {names.time!r} ({first} is earlier than the "
                f"row before; {rows}), and were sorted"
            )
            _take(columns, np.argsort(time, kind="stable"), folder)
    release([row, order])


def numbered(ids: Integers) -> Integers:
    """Return the number of each row's id, in place, from 0 in the order of their first rows."""
    known = np.zeros(0, dtype=np.int64)
    first = np.zeros(0, dtype=np.int64)
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


def _take(columns: Table, which: Integers, folder: TemporaryFolder | None) -> None:
    # Replace one column at a time, so that only one of them is in memory twice.
    for name in list(columns):
        columns[name] = taken(columns[name], which, folder)


LEARNED, PENDING = "learned", "pending"
"""In the export of a bandit, the status of decisions whose reward is final, and of decisions that
still wait for their reward. Only the former are read."""


class LogDeclaration(NamedTuple):
    """What a caller declares about a log: a whole ``schema``, or actions, context and rewards."""

    schema: Schema | None = None
    actions: object = None
    context: object = None
    rewards: object = None
    action_features: object = None


def read_log(
    source: Any,
    columns: Mapping[str, Any],
    declared: LogDeclaration,
    skip_bad_rows: bool,
    text: TextFormat = PLAIN,
    folder: TemporaryFolder | None = None,
) -> dict[str, Any]:
    """Return the values of the fields of a ``Log``, with columns in files of a folder, if any."""
    opened = open_source(source, text)
    names = find_columns(opened.columns, columns)
    schema = declared.schema or opened.schema
    menu = None if schema is None else schema.menu
    # If the caller names the columns of the context, they need not be those of the export.
    fields = None if schema is None or "context" in columns else schema.context
    rewards = None if schema is None else schema.rewards
    if declared.schema is not None:
        fields = declared.schema.context
    if declared.actions is not None:
        menu = ActionSpec.of(declared.actions)
    if declared.context is not None:
        fields = ContextSchema.of(declared.context)
    if declared.rewards is not None:
        rewards = rewards_of(declared.rewards)
    names = _as_declared(names, menu)
    features = None
    if declared.action_features is not None:
        features = read_action_features(declared.action_features)
        if menu is not None:
            # Refuse features that do not suit the menu before the log is read.
            described_menu(menu, features)
    return _LogReader(opened, names, menu, fields, rewards, features, folder).read(skip_bad_rows)


def _as_declared(names: ColumnNames, menu: ActionSpec | None) -> ColumnNames:
    """Assign a single column of actions to the only slot or interval that is declared."""
    if menu is None or menu.plain or list(names.actions) != [ARMS]:
        return names
    parts = [*(slot.name for slot in menu.slots), *(one.name for one in menu.ranges)]
    if len(parts) > 1:
        return names
    return msgspec.structs.replace(names, actions={parts[0]: names.actions[ARMS]})


SEPARATOR = "|"
"""Separates the names of eligible choices in a cell of text."""
MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""
MOST_DECISIONS = 2.0**53
"""Whole numbers up to this one are exact as floating-point numbers."""
EVERYTHING, UNREADABLE, INELIGIBLE = 0, -1, -2
"""In place of the number of a set: all choices; a cell that cannot be read; and a set that does not
contain the action that was taken."""
UNIT_SEPARATOR = "chr(31)"
"""In SQL, a character that no name contains."""


def eligible_names(text: str) -> list[list[str]] | None:
    """Return the names of eligible choices in a cell, for each slot; None if it has none.

    A cell is a list of lists or a list (one slot), as JSON, or text such as ``A|B``.

    >>> eligible_names("A|B"), eligible_names('[["A"], ["wide", "narrow"]]')
    ([['A', 'B']], [['A'], ['wide', 'narrow']])
    """
    if not text.startswith("["):
        return [text.split(SEPARATOR)]
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
        self._texts = {
            slot: sql.name(self._names[slot], "is missing: an action is needed")
            for slot in self.slots
        }
        self._cell = None if names.eligible is None else sql.text(names.eligible, nested=True)
        self.wanted: dict[str, str] = {}
        if menu is not None:
            self._add_codes()
        self._set_of_row = np.zeros(1, dtype=np.int32)
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
        """Return the aggregates that ``finish`` needs: the names, and the sets, that occur."""
        if self._cell is not None:
            fields = {f"action {slot}": text for slot, text in self._texts.items()}
            fields |= {"cell": self._cell, "good": where, "key": self._key}
            row = ", ".join(f"{quoted(name)}: {one}" for name, one in fields.items())
            return {"rows": f"list(distinct {{{row}}})"}
        texts = {} if self._declared else self._texts
        return {f"action {slot}": self._sql.names_fact(one, where) for slot, one in texts.items()}

    @property
    def _key(self) -> str:
        """The actions and the cell of a row in one text."""
        texts = (f"coalesce({one}, '')" for one in (*self._texts.values(), self._cell))
        return f"concat_ws({UNIT_SEPARATOR}, {', '.join(texts)})"

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Take the names and sets that occur; after this the codes of actions are ``wanted``."""
        found = {slot: [*(facts.get(f"action {slot}") or ())] for slot in self.slots}
        parsed: dict[str | None, Any] = {None: EVERYTHING}
        sets: dict[str, Any] = {}
        for row in facts.get("rows") or ():
            taken, cell = [row[f"action {slot}"] for slot in self.slots], row["cell"]
            if cell not in parsed:
                parsed[cell] = self._parsed(cell)
            names = parsed[cell]
            if isinstance(names, list) and self._is_ineligible(taken, names):
                names = INELIGIBLE
            good = row["good"] and names not in (UNREADABLE, INELIGIBLE)
            eligible = names if good and isinstance(names, list) else [[one] for one in taken]
            for slot, several in zip(self.slots, eligible, strict=True):
                found[slot] += [{"name": one, "good": good} for one in several]
            if isinstance(names, list) and not good:
                # Other rows with the same actions and cell may be good.
                sets.setdefault(row["key"], EVERYTHING)
            else:
                sets[row["key"]] = names
        if not self._declared:
            for slot, names_of_slot in found.items():
                column = self._names[slot]
                known = self._sql.names(column, self._texts[slot], names_of_slot)
                if len(known) > MOST_CHOICES:
                    raise InputError(
                        f"column {column!r} has more than {MOST_CHOICES} different actions, the "
                        "most that a slot may have: if they are real numbers, declare an interval, "
                        f"{self._as_interval(column)}",
                        parameter=column,
                    )
                self.slots[slot] = known
            self._add_codes()
            if all(self.slots.values()):
                self.menu = ActionSpec.of(self.slots.get(ARMS, self.slots))
        if self.menu is not None:
            everything = self.menu.revived.active if self._declared else self.menu.active
            self._number_sets(sets, everything)

    def _is_ineligible(self, taken: Sequence[str | None], names: Sequence[list[str]]) -> bool:
        """Return whether a known action was taken that is not among the eligible ones."""
        return any(
            one is not None and one not in several and (not self._declared or one in known)
            for one, several, known in zip(taken, names, self.slots.values(), strict=True)
        )

    def _parsed(self, cell: str) -> list[list[str]] | int:
        """Return the names of a cell for each slot, if they are those of actions."""
        if not self.slots:
            return [] if cell == "[]" else UNREADABLE
        names = eligible_names(cell)
        if names is None or len(names) != len(self.slots):
            return UNREADABLE
        for several, known in zip(names, self.slots.values(), strict=True):
            allowed = (one in known if self._declared else is_name(one) for one in several)
            if not several or not all(allowed):
                return UNREADABLE
        return names

    def _number_sets(self, sets: Mapping[str, Any], everything: ChoiceIndices) -> None:
        """Number the sets that occur, sorted, from 1; ``sets`` has that of each key of rows."""
        places = [{name: i for i, name in enumerate(names)} for names in self.slots.values()]

        def indices(names: Sequence[list[str]]) -> ChoiceIndices:
            pairs = zip(places, names, strict=True)
            return tuple(tuple(sorted({place[one] for one in several})) for place, several in pairs)

        found = {key: indices(one) for key, one in sets.items() if isinstance(one, list)}
        self.eligible_sets = tuple(dict.fromkeys([everything, *sorted(set(found.values()))]))
        number = {one: place for place, one in enumerate(self.eligible_sets)}
        numbers = [number[found[key]] if key in found else one for key, one in sets.items()]
        self._set_of_row = np.array([*numbers, EVERYTHING], dtype=np.int32)
        if self._cell is not None:
            self.wanted["eligible"] = self._sql.code(self._key, list(sets))

    def read(self, rows: Rows) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the actions ``[n, S]`` and the number of each row's set of eligible choices."""
        columns = [rows.columns[name] for name in self.wanted if name != "eligible"]
        action = np.stack(columns, axis=1).astype(np.float64 if self.ranges else np.int32)
        if self._eligible is None or "eligible" not in rows.columns:
            return action, np.zeros(rows.total, dtype=np.int32)
        found = self._set_of_row[rows.columns["eligible"]]
        for number, reason in (
            (UNREADABLE, "is not a list of known actions"),
            (INELIGIBLE, "does not contain the action that was taken"),
        ):
            self._sql.note(rows, self._eligible, reason, found == number)
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
            names = ", ".join(inactive)[:200]
            yield f"the log contains choices that are no longer active: {names}"


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
        self._defaults: dict[str, int] = {}
        self.wanted: dict[str, str] = {}
        for name, field in self.fields.items():
            if isinstance(field, Category):
                self._category(name, field)
            elif field is not None or columns[name] in numeric:
                self._number(name, field if isinstance(field, Number) else Number())
            else:
                missing = f"is missing, and {NO_DEFAULT}"
                self._open[name] = sql.name(columns[name], missing)
                self.wanted[name] = UNREAD

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
            reason = "is not one of the declared categories"
            code = sql.code(text, field.values)
            sql.check(column, reason, f"{text} is not null and {code} = {UNKNOWN}")
        else:
            code = sql.code(sql.text(column), field.values)
        default = None if field.default is None else field.values.index(str(field.default))
        self._add(name, code, f"{code} = {UNKNOWN}", default)

    def _add(self, name: str, value: str, missing: str, default: Any) -> None:
        self.wanted[name] = value
        if default is not None:
            filled = self._sql.value(missing)
            self.wanted[name] = self._sql.value(
                f"case when {filled} then {default!r} else {value} end"
            )
            self.wanted[f"{FILLED}{name}"], self._defaults[name] = filled, 0

    def facts(self, where: str) -> dict[str, str]:
        """Return the aggregates that ``finish`` needs: the values of undeclared categories."""
        return {
            f"context {name}": self._sql.names_fact(text, where)
            for name, text in self._open.items()
        }

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
        for name in self._defaults:
            filled = rows.columns[f"{FILLED}{name}"].astype(bool)
            self._defaults[name] += int(np.count_nonzero(filled & good))
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
        for name, count in self._defaults.items():
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


FILLED = "filled "
"""Beginning of the value that says whether a default replaced that of a field."""
UNREAD = "null"
"""The value of a category before its values are known."""


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


class _Column(NamedTuple):
    """The values of one or, as a table, of several columns of a log."""

    values: Sequence[str]
    table: bool = False
    dtype: Any = np.float64


class _LogReader:
    """Collects the columns of all batches, without rows that are bad or left out by status."""

    def __init__(
        self,
        source: Source,
        names: ColumnNames,
        menu: ActionSpec | None,
        context: ContextSchema | None,
        rewards: dict[str, Any] | None,
        features: Mapping[str, Any] | None,
        folder: TemporaryFolder | None,
    ) -> None:
        self._source, self._names, self._rewards = source, names, rewards
        self._folder, self._features = folder, features
        of_status = None if names.status is None else source.cell(names.status)
        is_learned = f"coalesce({of_status} = {quoted(LEARNED)}, false)"
        self._sql = CheckedColumns(source, "true" if of_status is None else is_learned)
        self._status, self._left_out = of_status, dict[str, int]()
        self._actions = ActionColumns(self._sql, names, menu)
        self._context = ContextColumns(self._sql, names.context, context)
        self._columns = self._declared_columns()

    def _declared_columns(self) -> dict[str, _Column]:
        """Return how each column of the log, but actions and context, is computed."""
        sql, names, found = self._sql, self._names, dict[str, _Column]()
        if names.count is not None:
            found["count"] = _Column([self._count(names.count)])
        if names.successes is not None:
            found["successes"] = _Column([self._count(names.successes)])
            count, successes = (found[one].values[0] for one in ("count", "successes"))
            reason = "is above the number of decisions of its row"
            sql.check(names.successes, reason, f"{successes} > {count}")
            found["reward"] = _Column([sql.value("0.0")])
        else:
            found["reward"] = _Column([self._reward(names.reward)])
        several = {
            "outcomes": [self._reward(one) for one in names.outcomes.values()],
            "covariates": [sql.number(one) for one in names.covariates.values()],
            "probability": [sql.number(one) for one in names.probabilities.values()],
        }
        found |= {name: _Column(values, True) for name, values in several.items() if values}
        found["propensity"] = _Column([self._propensity(names.propensity)])
        slots = [names.slot_propensities.get(slot) for slot in self._actions.slots]
        self._slot_columns = [] if None in slots else slots
        if self._slot_columns:
            of_slots = [self._propensity(one) for one in self._slot_columns]
            found["slot_propensity"] = _Column(of_slots, True)
        if names.weight is not None:
            weight = sql.number(names.weight)
            sql.check(names.weight, "must be greater than 0", f"{weight} <= 0")
            found["sampling_weight"] = _Column([weight])
        for name in ("cluster", "session", "id"):
            column = getattr(names, name)
            if column is not None:
                found[name] = _Column([sql.identifier(column)], dtype=np.uint64)
        if names.time is not None:
            found["time"] = _Column([sql.time(names.time)])
        elif names.id is not None:
            text = sql.text(names.id)
            whole = f"case when regexp_full_match({text}, '-?\\d+') then {text}::double end"
            found["number"] = _Column([sql.value(whole)])
        return found

    def _count(self, column: str) -> str:
        found = self._sql.number(column)
        self._sql.check(column, "is below 0, as no number of decisions can be", f"{found} < 0")
        whole = f"{found} <> round({found}) or {found} > {MOST_DECISIONS!r}"
        self._sql.check(column, "is not a whole number of decisions", whole)
        return found

    def _reward(self, column: str) -> str:
        found = self._sql.number(column)
        if self._rewards is not None:
            self._sql.check(column, *off_scale(self._rewards, found))
        return found

    def _propensity(self, column: str | None) -> str:
        if column is None:
            return self._sql.value("cast(null as double)")
        found = self._sql.number(column, required=False)
        self._sql.check(column, "must be greater than 0", f"{found} <= 0")
        if self._actions.ranges:
            return found
        reason = "must be at most 1; if it is in percent, divide it by 100"
        self._sql.check(column, reason, f"{found} > {1 + PROBABILITY_TOLERANCE!r}")
        return self._sql.value(f"case when {found} > 1 then 1 else {found} end")

    def read(self, skip_bad_rows: bool) -> dict[str, Any]:
        """Read all batches and return the values of the fields of a ``Log``."""
        names, sql, bad = self._names, self._sql, self._sql.bad
        some = "" if names.count is None else f" and {self._columns['count'].values[0]} > 0"
        wanted = self._actions.facts(f"good{some}") | self._context.facts(f"good{some}")
        if self._status is not None:
            status = f"coalesce({self._status}, 'without a status')"
            wanted["status"] = f"histogram({status}) filter (not ({sql.counted}))"
        facts = sql.facts(wanted | self._word_facts())
        self._left_out = facts.get("status") or {}
        self._actions.finish(facts)
        self._context.finish(facts)
        columns = self._collected()
        if np.isnan(columns.get("number", np.zeros(0))).any():
            del columns["number"]
        without_repeats(columns, names, bad, self._folder)
        if not skip_bad_rows:
            sql.refuse()
        columns = with_rewards(columns)
        if not columns or len(columns["reward"]) == 0 or self._actions.menu is None:
            raise InputError(self._no_rows())
        return self._finished(columns, self._actions.menu, facts)

    def _collected(self) -> Table:
        """Return the columns of all rows that are good."""
        sql, writer = self._sql, ColumnWriter(self._folder)
        flat = [one for column in self._columns.values() for one in column.values]
        wanted = {
            **self._actions.wanted,
            **self._context.wanted,
            **dict(zip(flat, flat, strict=True)),
        }
        for rows in sql.batches(wanted):
            action, eligible_set = self._actions.read(rows)
            good = rows.counted & ~rows.bad
            sql.bad.rows += int(np.count_nonzero(rows.bad))
            found: Table = {"action": action, "eligible_set": eligible_set}
            found["context"] = self._context.read(rows, good)
            for name, column in self._columns.items():
                arrays = [rows.columns[one] for one in column.values]
                values = np.stack(arrays, axis=1) if column.table else arrays[0]
                found[name] = values.astype(column.dtype).view(
                    "i8" if column.dtype == np.uint64 else column.dtype
                )
            if "id" in found or "time" in found:
                found["row"] = np.arange(rows.first, rows.first + rows.total, dtype=np.int32)
            writer.add({name: values[good] for name, values in found.items()})
        return writer.finished()

    def _word_facts(self) -> dict[str, str]:
        """Return aggregates that count the words among rewards, and the numbers."""
        names, words = self._names, f"in ({', '.join(map(quoted, TRUTH))})"
        texts = [one for one in {names.reward, *names.outcomes.values()} if self._sql.is_text(one)]
        cells = [self._source.cell(one) for one in texts]
        are_words = [f"lower(trim({cell})) {words}" for cell in cells]
        if not cells:
            return {}
        pairs = list(zip(cells, are_words, strict=True))
        return {
            "words": " + ".join(f"count(*) filter ({one})" for one in are_words),
            "present": " + ".join(f"count({cell})" for cell in cells),
            "word": "coalesce(" + ", ".join(f"first({a}) filter ({b})" for a, b in pairs) + ")",
        }

    def _no_rows(self) -> str:
        left_out = ", ".join(f"{count} {status}" for status, count in self._left_out.items())
        why = f"; left out because of their status: {left_out}" if left_out else ""
        if self._left_out.get(PENDING):
            why += " (rewards of pending decisions may still come until reward_wait is over)"
        bad = self._sql.bad
        if bad.count:
            why += f"; bad rows: {bad.count}, " + "; ".join(bad.sentences())
        why = why or ": give a log with at least one row"
        return f"{self._source.name} has no rows that can be used{why}"

    def _finished(
        self, columns: Table, menu: ActionSpec, facts: Mapping[str, Any]
    ) -> dict[str, Any]:
        notes = [*self._notes(columns, facts)]
        notes += in_order(columns, self._names, self._sql.bad, self._folder)
        notes += self._actions.notes(menu, columns["action"])
        if self._features is not None:
            menu, unused = described_menu(menu, self._features)
            notes += unused
        if "session" in columns:
            columns["session"] = numbered(columns["session"])
        if "cluster" in columns:
            columns["cluster"] = numbered(columns["cluster"])
        elif "session" in columns:
            columns["cluster"] = columns["session"]
        reward, rows = columns["reward"], len(columns["reward"])
        binary = all(np.isin(part, (0, 1)).all() for part in in_pieces(reward))
        rewards = self._rewards or rewards_of("binary" if binary else "continuous")
        release(columns.values())
        return {
            **columns,
            "schema": Schema(menu=menu, context=self._context.schema, rewards=rewards),
            "eligible_sets": self._actions.eligible_sets,
            "estimated": np.broadcast_to(False, rows),
            "outcome_names": tuple(self._names.outcomes),
            "probability_names": tuple(self._names.probabilities.values()),
            "notes": tuple(notes),
        }

    def _notes(self, columns: Table, facts: Mapping[str, Any]) -> Iterator[str]:
        """Yield sentences about what was left out, and about missing values."""
        bad = self._sql.bad
        if bad.count:
            yield f"{bad.count} bad rows were skipped: " + "; ".join(bad.sentences())
        for status, count in self._left_out.items():
            yield f"{count} decisions were left out because of their status: {status}"
        column = columns["propensity"]
        missing = sum(np.count_nonzero(np.isnan(part)) for part in in_pieces(column))
        if missing:
            yield f"{missing} of {len(column)} rows have no propensity"
        words, reward = facts.get("words"), self._names.reward
        if words and words == facts["present"]:
            yield f"column {reward!r}: yes and true were read as 1, no and false as 0"
        elif words:
            yield (
                f"column {reward!r} has {counted(words, 'word')} such as {facts['word']!r} among "
                "numbers; yes and true were read as 1, no and false as 0: check where they are from"
            )
        yield from self._context.notes()
        unused = self._unused_columns()
        if unused:
            yield f"columns that were not used: {listed(unused)}"
        for name in unused:
            if (role := role_of_similar(name)) is not None:
                yield f"is {name!r} the {role}? Then give --column {role}={name}"

    def _unused_columns(self) -> list[str]:
        names = self._names
        unread = set() if self._slot_columns else set(names.slot_propensities.values())
        # The export of a bandit has more columns, for people: these need no note.
        if self._source.schema is not None:
            return sorted(unread)
        used = set(names.used) - unread
        return [name or repr(name) for name in self._source.columns if name not in used]


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
