"""Which column of a log has which role; actions, contexts and eligible sets read from columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.evaluation.cells import (
    MISSING,
    NO_NAME,
    UNKNOWN,
    CheckedBatch,
    Vocabulary,
    eligible_names,
    hint_about,
    not_whole,
)
from submax.evaluation.disk import pieces, release
from submax.schema.actions import ARMS, MOST_CHOICES, ActionSpec, ChoiceIndices
from submax.schema.context import LARGEST, Category, ContextSchema, Field, Number

USUAL: dict[str, tuple[str, ...]] = {
    "reward": ("reward",),
    "propensity": ("propensity", "pscore"),
    "eligible": ("eligible",),
    "id": ("id",),
    "time": ("at", "time", "timestamp"),
    "status": (),
    "cluster": (),
    "count": (),
    "successes": (),
    "weight": (),
    "session": (),
}
"""The roles of single columns, with the names by which a column is found if none is given."""
SEVERAL = {"covariate": "covariates", "probability": "probabilities"}
"""Roles that several columns can have, and the fields of ``ColumnNames`` that hold them."""
ROLES = ("action", "context", *USUAL, *SEVERAL)
"""The roles that a column can have."""
ACTION, CONTEXT, PROPENSITY = "action_", "context_", "propensity_"
"""Beginnings of the names of columns that hold slots, context fields and slots' propensities."""
PATTERN_SIGNS = "*?["
"""Signs that make the name of a column a pattern, unless a column has exactly this name."""
EXPORTED = {"status", "activated", "holdout", "late_rewards"}
"""A table with all these columns is the export of a bandit, even if its metadata was lost."""


class ColumnNames(msgspec.Struct, frozen=True, kw_only=True):
    """The name of the column of each role; None if there is no such column.

    ``actions`` and ``slot_propensities`` have a column for each slot, ``context`` for each field,
    and ``probabilities`` for each action of every policy whose probabilities are in the log.
    ``outcomes`` are several rewards by name, of which ``reward`` is the first.
    """

    actions: dict[str, str]
    context: dict[str, str] = {}
    slot_propensities: dict[str, str] = {}
    outcomes: dict[str, str] = {}
    covariates: dict[str, str] = {}
    probabilities: dict[str, str] = {}
    reward: str
    propensity: str | None = None
    eligible: str | None = None
    id: str | None = None
    time: str | None = None
    status: str | None = None
    cluster: str | None = None
    count: str | None = None
    successes: str | None = None
    weight: str | None = None
    session: str | None = None

    @property
    def used(self) -> list[str]:
        """The names of all columns that are read."""
        found: list[str | None] = []
        for value in msgspec.structs.astuple(self):
            found += value.values() if isinstance(value, dict) else [value]
        return [name for name in dict.fromkeys(found) if name is not None]


def find_columns(columns: Sequence[str], given: Mapping[str, Any]) -> ColumnNames:
    """Return the columns that the caller named, and those with the usual names for other roles.

    ``given`` maps roles to columns. For actions, contexts and rewards it can be a list of columns
    or of patterns such as ``affinity_*``, or a table from names to columns. None says that there is
    no such column. The status is read only from the export of a bandit, unless the caller names its
    column.
    """
    for role in given:
        one_of("column role", str(role), ROLES)
    twice, times = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if times > 1:
        raise InputError(
            f"the log has {times} columns called {twice!r}: give each column a different name",
            parameter=twice,
        )
    outcomes: dict[str, str] = {}
    if not isinstance(given.get("reward"), str | None):
        outcomes = _table("reward", columns, given["reward"])
        given = {**given, "reward": next(iter(outcomes.values()), None)}
    if "status" not in given and set(columns) >= EXPORTED:
        given = {**given, "status": "status"}
    single = {role: _single(role, columns, given) for role in USUAL}
    if single["successes"] is not None:
        _check_successes(given, single["count"])
        single["reward"] = single["successes"]
    if single["reward"] is None:
        raise InputError(_missing("reward", columns), parameter="reward")
    if single["session"] is not None and single["count"] is not None:
        raise InputError(
            "a column of sessions and one of counts are given, and only one of them is allowed, "
            "because the decisions of a session follow each other: give a row for each decision",
            parameter="session",
        )
    actions = _actions(columns, given)
    slots = {slot: f"{PROPENSITY}{slot}" for slot in actions if slot != ARMS}
    several = {field: _several(role, columns, given) for role, field in SEVERAL.items()}
    names: dict[str, Any] = {**single, **several}
    return ColumnNames(
        actions=actions,
        slot_propensities={slot: name for slot, name in slots.items() if name in columns},
        context=context_columns(columns, given),
        outcomes=outcomes,
        **names,
    )


def _check_successes(given: Mapping[str, Any], count: str | None) -> None:
    if count is None or given.get("reward") is not None:
        other = "a column of rewards is" if given.get("reward") else "no column of counts is"
        raise InputError(
            f"a column of successes is given and {other}; successes and counts are allowed "
            "together, without rewards: give --column count=NAME --column successes=NAME",
            parameter="successes",
        )


def check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    """Refuse declared slots or fields without a column, and columns that are not declared."""
    for name in declared:
        if name not in found:
            part = f"the {what} {name!r} is" if name else "plain actions are"
            there = listed([one or "plain actions" for one in found], 20) or "none"
            raise InputError(
                f"{part} declared, and the log has no column for it. There are columns for: "
                f"{there}. Name the column, or change the declaration"
            )
    for name in found:
        if name not in declared:
            part = f"the {what} {name!r}, which is" if name else "plain actions, which are"
            raise InputError(
                f"the log has a column for {part} not declared: declare it, or name the columns "
                "to read"
            )


def _single(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> str | None:
    if role not in given:
        return next((name for name in USUAL[role] if name in columns), None)
    wanted = given[role]
    if wanted in (None, ""):
        return None
    if not isinstance(wanted, str):
        raise InputError(
            f"the column of the {role} is {wanted!r}, and must be the name of one column",
            parameter=role,
        )
    one_of(f"column for the {role}", wanted, columns)
    return wanted


def _several(role: str, columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get(role)
    if wanted in (None, ""):
        return {}
    return _table(role, columns, [wanted] if isinstance(wanted, str) else wanted)


def _actions(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    wanted = given.get("action")
    if wanted is None and "action" in columns:
        wanted = "action"
    if wanted is None:
        wanted = {name[len(ACTION) :]: name for name in columns if name.startswith(ACTION)}
    found = _table("action", columns, {ARMS: wanted} if isinstance(wanted, str) else wanted)
    if not found:
        raise InputError(_missing("action", columns), parameter="action")
    return found


def context_columns(columns: Sequence[str], given: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field of the context, by the name of the field."""
    if "context" not in given:
        return {name[len(CONTEXT) :]: name for name in columns if name.startswith(CONTEXT)}
    return _several("context", columns, given)


def _table(role: str, columns: Sequence[str], wanted: Any) -> dict[str, str]:
    """Return columns by name, from a list of columns and patterns, or a table of columns."""
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
            f"no column matches {wanted!r}, which is given for the {role}. There are: "
            f"{listed(columns)}. Change the pattern, or name the columns",
            parameter=role,
        )
    return found


def _missing(role: str, columns: Sequence[str]) -> str:
    similar = next((name for name in columns if role_of_similar(name) == role), "NAME")
    return (
        f"no column is called {role!r}. There are: {listed(columns, 20)}. Say which column is the "
        f"{role}: --column {role}={similar} (columns={{{role!r}: {similar!r}}})"
    )


def role_of_similar(name: str) -> str | None:
    """Return the role whose usual name differs from this one only by capitals or spaces.

    >>> role_of_similar("Reward ")
    'reward'
    """
    usual = {**USUAL, "action": ("action",)}
    plain = name.strip().lower()
    return next((role for role, names in usual.items() if plain in names and plain != name), None)


def different(column: NDArray[Any]) -> NDArray[Any]:
    """Return the different values of a column, sorted."""
    found = column[:0]
    for rows in pieces(len(column)):
        found = np.union1d(found, column[rows])
        release([column])
    return found


EVERYTHING, UNREADABLE = 0, -1
"""The number of the set of all choices, and that of a cell that cannot be read."""


class EligibleSets:
    """Numbers the distinct sets in the order in which they occur, from 1.

    0 is the set of all choices, for rows whose cell is empty.
    """

    def __init__(self, column: str | None, slots: Mapping[str, Vocabulary]) -> None:
        self._column, self._slots = column, list(slots.values())
        self._numbers: dict[ChoiceIndices, int] = {}

    def read(self, batch: CheckedBatch, action: NDArray[Any]) -> NDArray[np.int32]:
        """Return the number of each row's set; a row whose action is not in its set is bad."""
        if self._column is None:
            return np.zeros(batch.rows, dtype=np.int32)
        found = self._code(batch.column(self._column))
        wrong = "is not a list of known actions"
        batch.note(self._column, wrong, found == UNREADABLE)
        ineligible = self._took_ineligible(found, action)
        batch.note(self._column, "does not contain the action that was taken", ineligible)
        return found

    def choices(self, set_numbers: NDArray[np.int32], slot: int) -> list[int]:
        """Return the choices of a slot in all sets that occur in ``set_numbers``."""
        return [index for one in self._used(set_numbers) for index in one[slot]]

    def finished(
        self,
        set_numbers: NDArray[np.int32],
        new_indices: Sequence[Integers] | None,
        everything: ChoiceIndices,
    ) -> tuple[ChoiceIndices, ...]:
        """Return ``everything`` and the sets that occur; numbers become indices, in place.

        ``everything`` is the set of all choices of all slots, also of inactive ones;
        ``new_indices`` are, for each slot, the new indices of the choices if they changed.
        """
        sets = {everything: EVERYTHING}
        index = np.zeros(len(self._numbers) + 1, dtype=np.int32)
        for one in self._used(set_numbers):
            new = one if new_indices is None else _reindexed(one, new_indices)
            index[self._numbers[one]] = sets.setdefault(new, len(sets))
        for rows in pieces(len(set_numbers)):
            set_numbers[rows] = index[set_numbers[rows]]
            release([set_numbers])
        return tuple(sets)

    def _used(self, set_numbers: NDArray[np.int32]) -> Iterable[ChoiceIndices]:
        known = list(self._numbers)
        return [known[number - 1] for number in different(set_numbers) if number != EVERYTHING]

    def _code(self, column: Any) -> NDArray[np.int32]:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            encoded = column.dictionary_encode()
            cells = [*encoded.dictionary.to_pylist(), None]
            place = encoded.indices.fill_null(len(cells) - 1).to_numpy(zero_copy_only=False)
            numbers = np.array([self._number(cell) for cell in cells], dtype=np.int32)
            return numbers[np.asarray(place, dtype=np.int64)]
        known: dict[str, int] = {}
        found = np.empty(len(column), dtype=np.int32)
        for place, cell in enumerate(column.to_pylist()):
            key = repr(cell)
            if key not in known:
                known[key] = self._number(cell)
            found[place] = known[key]
        return found

    def _number(self, cell: Any) -> int:
        # If all parts of the action are real-valued, there are no choices to list.
        if cell is None or (not self._slots and cell in ([], "[]")):
            return EVERYTHING
        names = eligible_names(cell)
        if names is None or len(names) != len(self._slots):
            return UNREADABLE
        eligible = tuple(
            tuple(sorted({vocabulary.index(name) for name in given}))
            for given, vocabulary in zip(names, self._slots, strict=True)
        )
        if any(not indices or indices[0] < 0 for indices in eligible):
            return UNREADABLE
        return self._numbers.setdefault(eligible, len(self._numbers) + 1)

    def _took_ineligible(self, found: NDArray[np.int32], action: NDArray[Any]) -> Booleans:
        """Return which rows took a known action that was not eligible."""
        ineligible = np.zeros(len(found), dtype=bool)
        known, order = list(self._numbers), np.argsort(found, kind="stable")
        first = np.flatnonzero(np.diff(found[order], prepend=UNREADABLE - 1))
        for rows in np.split(order, first[1:]):
            number = found[rows[0]] if rows.size else EVERYTHING
            if number > EVERYTHING:
                for slot, choices in enumerate(known[number - 1]):
                    taken = action[rows, slot]
                    ineligible[rows] |= ~np.isin(taken, choices) & (taken >= 0)
        return ineligible


def _reindexed(eligible: ChoiceIndices, new_indices: Sequence[Integers]) -> ChoiceIndices:
    return tuple(
        tuple(sorted(new_index[list(indices)].tolist()))
        for new_index, indices in zip(new_indices, eligible, strict=True)
    )


class ActionColumns:
    """Reads the choice of every slot, then the real-valued parts, and the eligible choices.

    Without a ``menu`` the choices of a slot are the names that occur in its column.
    """

    def __init__(self, names: ColumnNames, menu: ActionSpec | None) -> None:
        self._names, self._menu = names.actions, menu
        self.ranges = () if menu is None else menu.ranges
        self.slots = {slot: Vocabulary() for slot in names.actions}
        if menu is not None:
            wanted = [slot.name for slot in menu.slots] + [one.name for one in menu.ranges]
            check_same("slot", wanted, names.actions)
            self.slots = {
                slot.name: Vocabulary(one.name for one in slot.choices) for slot in menu.slots
            }
        self._eligible = EligibleSets(names.eligible, self.slots)

    def read(self, batch: CheckedBatch) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the actions ``[n, S]`` and the number of each row's set of eligible choices."""
        found: list[NDArray[Any]] = [
            self._choice(batch, self._names[slot], vocabulary)
            for slot, vocabulary in self.slots.items()
        ]
        for interval in self.ranges:
            column = self._names[interval.name]
            values = batch.required_numbers(column)
            outside = (values < interval.low) | (values > interval.high)
            batch.note(column, f"is not from {interval.low:g} to {interval.high:g}", outside)
            found.append(values)
        action = np.stack(found, axis=1)
        action = action if self.ranges else action.astype(np.int32)
        return action, self._eligible.read(batch, action)

    def _choice(self, batch: CheckedBatch, column: str, vocabulary: Vocabulary) -> Integers:
        code = vocabulary.code(batch.column(column))
        unknown = NO_NAME if vocabulary.open else "is not one of the declared actions"
        batch.note(column, "is missing: an action is needed", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if len(vocabulary.indices) > MOST_CHOICES:
            raise InputError(
                f"column {column!r} has more than {MOST_CHOICES} different actions, which is the "
                "most that a slot may have: if they are real numbers, declare an interval, "
                f"{self._as_interval(column)}",
                parameter=column,
            )
        return code

    def _as_interval(self, column: str) -> str:
        """Return the argument that declares a column as real numbers."""
        slot = next(name for name, one in self._names.items() if one == column)
        if slot != ARMS:
            return f"actions={{{slot!r}: (low, high)}}"
        # Plain arms have no slot name, and an interval needs one: take that of the column.
        return f"columns={{'action': [{column!r}]}}, actions={{{column!r}: (low, high)}}"

    def finished(
        self, action: NDArray[Any], eligible_set: NDArray[np.int32]
    ) -> tuple[ActionSpec, tuple[ChoiceIndices, ...]]:
        """Return the menu and the sets of eligible choices; indices are replaced, in place.

        If no menu was declared, the names that occur become its choices, sorted.
        """
        if self._menu is not None:
            everything = self._menu.revived.active
            return self._menu, self._eligible.finished(eligible_set, None, everything)
        names, new_indices = {}, []
        for slot, (name, vocabulary) in enumerate(self.slots.items()):
            eligible = self._eligible.choices(eligible_set, slot)
            used = np.union1d(different(action[:, slot]), eligible).astype(np.int64)
            names[name], new_index = vocabulary.sorted(used)
            for rows in pieces(len(action)):
                action[rows, slot] = new_index[action[rows, slot]]
                release([action])
            new_indices.append(new_index)
        menu = ActionSpec.of(names.get(ARMS, names))
        return menu, self._eligible.finished(eligible_set, new_indices, menu.active)

    def notes(self, menu: ActionSpec, action: NDArray[Any]) -> Iterator[str]:
        """Yield sentences about what may surprise in the results of ``finished``."""
        for slot in menu.slots if self._menu is None else ():
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
        inactive = list(_no_longer_active(menu, action))
        if inactive:
            listed = ", ".join(inactive)[:200]
            yield f"the log contains choices that are no longer active: {listed}"


def _no_longer_active(menu: ActionSpec, action: NDArray[Any]) -> Iterator[str]:
    """Yield the choices that some row took and that a policy may no longer choose."""
    for place, slot in enumerate(menu.slots):
        for index in different(action[:, place]).astype(np.int64):
            choice = slot.choices[index]
            if choice.status != "active":
                yield choice.name if slot.name == ARMS else f"{slot.name}={choice.name}"


MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""


class ContextColumns:
    """Reads one number for each field; for a category it is the index of the value."""

    def __init__(
        self, names: ColumnNames, declared: ContextSchema | None, numeric: set[str]
    ) -> None:
        self._columns, self._declared = names.context, declared
        if declared is None:
            self._fields: dict[str, Field | None] = dict.fromkeys(names.context)
        else:
            check_same("context field", declared.names, names.context)
            self._fields = dict(zip(declared.names, declared.fields, strict=True))
        self._vocabularies = {
            name: _vocabulary(field, self._columns[name] in numeric)
            for name, field in self._fields.items()
        }
        self._filled: dict[str, Booleans] = {}
        self._defaults: Counter[str] = Counter()

    def read(self, batch: CheckedBatch) -> NDArray[np.float32]:
        """Return the contexts of the rows, ``[n, F]``."""
        context = np.empty((batch.rows, len(self._fields)), dtype=np.float32)
        for place, (name, field) in enumerate(self._fields.items()):
            vocabulary = self._vocabularies[name]
            default = None if field is None else field.default
            if vocabulary is None:
                context[:, place] = self._number(batch, name, default)
            else:
                context[:, place] = self._category(batch, name, vocabulary, default)
        return context

    def _number(self, batch: CheckedBatch, name: str, default: Any) -> Floats:
        column = self._columns[name]
        values = batch.numbers_or(column, default)
        if default is not None:
            self._filled[name] = batch.missing(column)
        beyond = np.abs(values) > LARGEST
        reason = f"is not from {-LARGEST:g} to {LARGEST:g}, as a number of the context must be"
        batch.note(column, reason, beyond)
        return np.where(beyond, 0.0, values)

    def _category(
        self, batch: CheckedBatch, name: str, vocabulary: Vocabulary, default: Any
    ) -> Integers:
        column = self._columns[name]
        code = vocabulary.code(batch.column(column))
        if default is not None:
            self._filled[name] = code < 0
            return np.where(code < 0, vocabulary.indices[str(default)], code)
        unknown = NO_NAME if vocabulary.open else "is not one of the declared categories"
        batch.note(column, "is missing, and no default is declared", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if vocabulary.open and len(vocabulary.indices) > MOST_UNDECLARED:
            raise InputError(
                f"column {column!r} has more than {MOST_UNDECLARED} different values, too many for "
                "a category that is not declared: leave it out of the context, or declare its "
                "categories",
                parameter=column,
            )
        return code

    def count_defaults(self, good: Booleans) -> None:
        """Count the defaults that were used in the good rows of the last batch."""
        for name, filled in self._filled.items():
            self._defaults[name] += int(np.count_nonzero(filled & good))

    def notes(self) -> Iterator[str]:
        """Yield sentences about defaults that replaced values, and about odd categories."""
        for name, count in self._defaults.items():
            field = self._fields[name]
            if count and field is not None:
                what = "missing" if isinstance(field, Number) else "missing or not declared"
                yield (
                    f"column {self._columns[name]!r}: {count} values are {what}, and were replaced "
                    f"by the default {field.default!r}"
                )
        for name, vocabulary in self._vocabularies.items():
            if vocabulary is not None and vocabulary.open:
                hint = hint_about(self._columns[name], vocabulary.indices)
                if hint is not None:
                    yield f"{hint} It was read as {len(vocabulary.indices)} categories"

    def finished(self, context: NDArray[np.float32]) -> ContextSchema:
        """Return the declared schema, or the schema of the values that occur.

        The categories that occur are sorted; their indices in ``context`` are replaced.
        """
        if self._declared is not None:
            return self._declared
        fields: dict[str, Field] = {}
        for place, (name, vocabulary) in enumerate(self._vocabularies.items()):
            if vocabulary is None:
                fields[name] = Number()
            else:
                used = different(context[:, place]).astype(np.int64)
                values, number = vocabulary.sorted(used)
                fields[name] = Category(tuple(values))
                for rows in pieces(len(context)):
                    context[rows, place] = number[context[rows, place].astype(np.int64)]
                    release([context])
        return ContextSchema.of(fields)


def _vocabulary(field: Field | None, numeric: bool) -> Vocabulary | None:
    """Return the vocabulary of a category; None for a number."""
    if field is None:
        return None if numeric else Vocabulary()
    return Vocabulary(field.values) if isinstance(field, Category) else None
