"""Read a log batch by batch; what cannot be used is counted and named."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InvalidValue
from submax.core.feedback import ROUNDING
from submax.evaluation.bad_rows import BadRows
from submax.evaluation.cells import eligible_names, times
from submax.evaluation.checked_batch import CheckedBatch
from submax.evaluation.column_names import ColumnNames, find_columns
from submax.evaluation.source import Source, open_source
from submax.evaluation.vocabulary import MISSING, UNKNOWN, Vocabulary
from submax.schema.context_schema import LARGEST, Category, ContextSchema, Number
from submax.schema.menu import ARMS, MOST_CHOICES, Menu, Shown
from submax.schema.rewards import rewards_of
from submax.schema.schema import Schema

MOST_FOUND = 1000
"""Different values of a column that is taken for a category without being declared."""
LEARNED = "learned"
"""The status of decisions that count."""


class Declared(NamedTuple):
    """What a caller says about a log: all of it as a ``schema``, or parts of it."""

    schema: Schema | None
    actions: object
    context: object
    rewards: object


def read_log(
    source: Any, columns: Mapping[str, Any], declared: Declared, skip_bad_rows: bool
) -> dict[str, Any]:
    """The fields of a ``Log``."""
    opened = open_source(source)
    names = find_columns(opened.columns, columns, exported=opened.schema is not None)
    schema = declared.schema or opened.schema
    menu = None if schema is None else schema.menu.revived
    # Columns that were named here need not be those of the bandit.
    fields = None if schema is None or "context" in columns else schema.context
    rewards = None if schema is None else schema.rewards
    if declared.schema is not None:
        fields = declared.schema.context
    if declared.actions is not None:
        menu = Menu.of(declared.actions)
    if declared.context is not None:
        fields = ContextSchema.of(declared.context)
    if declared.rewards is not None:
        rewards = rewards_of(declared.rewards)
    return _Reader(opened, names, menu, fields, rewards).read(skip_bad_rows)


class _Reader:
    """Holds the columns so far; a name that is new gets the next number, sorted at the end."""

    def __init__(
        self,
        source: Source,
        names: ColumnNames,
        menu: Menu | None,
        context: ContextSchema | None,
        rewards: dict[str, Any] | None,
    ) -> None:
        self._source, self._names, self._rewards = source, names, rewards
        self._bad = BadRows()
        self._left: Counter[str] = Counter()
        self._menu, self._context = menu, context
        self._slots = _slot_vocabularies(names, menu)
        self._intervals = {} if menu is None else {one.name: one for one in menu.intervals}
        self._fields = _field_vocabularies(names, context, source.numeric)
        self._shown: dict[Shown, int] = {}
        self._columns: dict[str, list[NDArray[Any]]] = {}
        self._seen = 0

    def read(self, skip_bad_rows: bool) -> dict[str, Any]:
        """All of it."""
        for batch in self._source.batches(self._names.used, self._bad):
            if batch.num_rows:
                self._add(batch)
        columns = {name: np.concatenate(self._columns.pop(name)) for name in list(self._columns)}
        if self._names.id is not None and columns:
            columns = self._without_repeats(columns)
        if not skip_bad_rows:
            self._bad.refuse(self._source.name, self._seen)
        if not columns or len(columns["reward"]) == 0:
            raise InvalidValue(self._nothing())
        return self._finished(columns)

    def _add(self, batch: Any) -> None:
        names, first = self._names, self._seen + 1
        self._seen += batch.num_rows
        counted = self._counted(batch)
        checked = CheckedBatch(batch, self._bad, first, counted)
        kept: dict[str, NDArray[Any]] = {"action": self._actions(checked)}
        kept["context"] = self._contexts(checked)
        kept["reward"] = self._reward(checked)
        kept["propensity"] = self._propensity(checked, names.propensity)
        if names.slot_propensities and len(names.slot_propensities) == len(self._slots):
            found = [
                self._propensity(checked, names.slot_propensities[slot]) for slot in self._slots
            ]
            kept["slot_propensity"] = np.stack(found, axis=1)
        kept["shown"] = self._eligible(checked, kept["action"])
        if names.time is not None:
            kept["time"] = checked.required_numbers(names.time, times, "is no moment in time")
        if names.id is not None:
            kept["id"] = checked.identifiers(names.id)
            kept["row"] = np.arange(first, self._seen + 1)
        good = counted & ~checked.bad
        self._bad.rows += int(np.count_nonzero(checked.bad))
        for name, values in kept.items():
            self._columns.setdefault(name, []).append(values[good])

    def _counted(self, batch: Any) -> Booleans:
        """Rows that are not left out for what became of them."""
        counted = np.ones(batch.num_rows, dtype=bool)
        if self._names.status is not None:
            for place, status in enumerate(batch.column(self._names.status).to_pylist()):
                if status != LEARNED:
                    counted[place] = False
                    self._left[str(status)] += 1
        return counted

    def _actions(self, batch: CheckedBatch) -> NDArray[Any]:
        found: list[NDArray[Any]] = []
        for slot, vocabulary in self._slots.items():
            column = self._names.actions[slot]
            code = vocabulary.code(batch.column(column))
            batch.note(column, "is missing: an action is needed", code == MISSING)
            batch.note(column, "is none of the actions", code == UNKNOWN)
            found.append(code)
            if len(vocabulary.numbers) > MOST_CHOICES:
                raise InvalidValue(
                    f"column {column!r} has more than {MOST_CHOICES} different actions: real "
                    f"numbers are declared as an interval, actions={{{column!r}: (low, high)}}"
                )
        for name, interval in self._intervals.items():
            column = self._names.actions[name]
            values = batch.required_numbers(column)
            outside = (values < interval.low) | (values > interval.high)
            batch.note(column, f"is not from {interval.low:g} to {interval.high:g}", outside)
            found.append(values)
        stacked = np.stack(found, axis=1)
        return stacked if self._intervals else stacked.astype(np.int32)

    def _contexts(self, batch: CheckedBatch) -> NDArray[np.float32]:
        context = np.empty((batch.rows, len(self._fields)), dtype=np.float32)
        for place, (name, vocabulary) in enumerate(self._fields.items()):
            column = self._names.context[name]
            default = self._default(name)
            if vocabulary is None:
                values = batch.numbers_or(column, default)
                batch.note(column, "is beyond the numbers of a context", np.abs(values) > LARGEST)
                context[:, place] = values
            else:
                context[:, place] = self._category(batch, column, vocabulary, default)
        return context

    def _category(
        self, batch: CheckedBatch, column: str, vocabulary: Vocabulary, default: Any
    ) -> Integers:
        code = vocabulary.code(batch.column(column))
        if default is not None:
            return np.where(code < 0, vocabulary.numbers[str(default)], code)
        batch.note(column, "is missing, and there is no default", code == MISSING)
        batch.note(column, "is none of the categories", code == UNKNOWN)
        if self._context is None and len(vocabulary.numbers) > MOST_FOUND:
            raise InvalidValue(
                f"column {column!r} has more than {MOST_FOUND} different values: leave it out of "
                "the context, or declare its categories"
            )
        return code

    def _default(self, name: str) -> Any:
        if self._context is None:
            return None
        return self._context.fields[self._context.names.index(name)].default

    def _reward(self, batch: CheckedBatch) -> Floats:
        column = self._names.reward
        values = batch.required_numbers(column)
        if self._rewards is not None and self._rewards["kind"] == "binary":
            batch.note(column, "is neither 0 nor 1", ~np.isin(values, (0, 1)) & np.isfinite(values))
        return values

    def _propensity(self, batch: CheckedBatch, column: str | None) -> Floats:
        if column is None:
            return np.full(batch.rows, np.nan)
        values = batch.numbers_or(column, np.nan)
        batch.note(column, "is not above 0, as a propensity is", values <= 0)
        if not self._intervals:
            batch.note(column, "is above 1, as no propensity is", values > 1 + ROUNDING)
        return np.minimum(values, 1.0) if not self._intervals else values

    def _eligible(self, batch: CheckedBatch, action: NDArray[Any]) -> NDArray[np.int32]:
        """The place of what was shown in a list of all that occur; 0 stands for everything."""
        if self._names.eligible is None:
            return np.zeros(batch.rows, dtype=np.int32)
        column, cells = self._names.eligible, batch.column(self._names.eligible).to_pylist()
        known: dict[str, int] = {}
        found = np.empty(batch.rows, dtype=np.int32)
        for place, cell in enumerate(cells):
            key = repr(cell)
            if key not in known:
                known[key] = self._shown_number(cell)
            found[place] = known[key]
        batch.note(column, "holds no list of actions, or one that is not known", found < 0)
        return self._with_action_eligible(batch, column, action, found)

    def _with_action_eligible(
        self, batch: CheckedBatch, column: str, action: NDArray[Any], found: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Note the rows whose action was not eligible."""
        strange = np.zeros(batch.rows, dtype=bool)
        menus = list(self._shown)
        for number in np.unique(found[found > 0]):
            rows = found == number
            for slot, choices in enumerate(menus[number - 1]):
                strange |= rows & ~np.isin(action[:, slot], choices)
        batch.note(column, "does not hold the action that was taken", strange)
        return found

    def _shown_number(self, cell: Any) -> int:
        """0 where all is eligible, -1 where the cell makes no sense, else a number from 1."""
        if cell is None:
            return 0
        names = eligible_names(cell)
        if names is None or len(names) != len(self._slots):
            return -1
        shown = tuple(
            tuple(sorted({vocabulary.number(name) for name in given}))
            for given, vocabulary in zip(names, self._slots.values(), strict=True)
        )
        if any(not numbers or numbers[0] < 0 for numbers in shown):
            return -1
        return self._shown.setdefault(shown, len(self._shown) + 1)

    def _without_repeats(self, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The first row of every id."""
        identifier, row = columns.pop("id"), columns.pop("row")
        order = np.argsort(identifier, kind="stable")
        repeated = np.zeros(len(order), dtype=bool)
        repeated[order[1:]] = identifier[order[1:]] == identifier[order[:-1]]
        if not repeated.any():
            return columns
        first = int(row[np.argmax(repeated)])
        name = str(self._names.id)
        self._bad.note(name, "was there before", repeated[repeated], first, lambda _: "the id")
        self._bad.rows += int(np.count_nonzero(repeated))
        return {name: values[~repeated] for name, values in columns.items()}

    def _nothing(self) -> str:
        left = ", ".join(f"{count} {status}" for status, count in self._left.items())
        why = f"; left out: {left}" if left else ""
        if self._bad.count:
            why += f"; bad rows: {self._bad.count}, " + "; ".join(self._bad.sentences())
        return f"{self._source.name} has no rows to learn from{why}"

    def _finished(self, columns: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Sort what was met, and the rows by time."""
        menu = self._menu or self._found_menu(columns)
        context = self._context or self._found_context(columns)
        notes = [*self._told()]
        if "time" in columns:
            time = columns.pop("time")
            back = np.flatnonzero(time[1:] < time[:-1])
            if back.size:
                notes.append(
                    f"the rows were not in the order of {self._names.time!r} (row {back[0] + 2} is "
                    f"earlier than the one before, as are {back.size} in all), and were sorted"
                )
                order = np.argsort(time, kind="stable")
                columns = {name: values[order] for name, values in columns.items()}
        reward = columns["reward"]
        rewards = self._rewards or rewards_of(
            "binary" if np.isin(reward, (0, 1)).all() else "continuous"
        )
        schema = Schema(menu=menu, context=context, rewards=rewards)
        schema.scale.check(reward)
        propensity = columns["propensity"]
        return {
            "schema": schema,
            "context": columns["context"],
            "action": columns["action"],
            "reward": reward,
            "propensity": propensity,
            "shown": columns["shown"],
            "menus": (menu.active, *self._shown),
            "estimated": np.zeros(len(reward), dtype=bool),
            "slot_propensity": columns.get("slot_propensity"),
            "notes": tuple(notes),
        }

    def _found_menu(self, columns: dict[str, NDArray[Any]]) -> Menu:
        """The choices that occur, sorted; the rows are renumbered."""
        found, places = {}, []
        for slot, (name, vocabulary) in enumerate(self._slots.items()):
            shown_here = [number for shown in self._shown for number in shown[slot]]
            used = np.union1d(np.unique(columns["action"][:, slot]), shown_here)
            found[name], place = vocabulary.sorted(used.astype(np.int64))
            columns["action"][:, slot] = place[columns["action"][:, slot]]
            places.append(place)
        self._shown = {
            tuple(
                tuple(sorted(place[list(numbers)].tolist()))
                for place, numbers in zip(places, shown, strict=True)
            ): number
            for shown, number in self._shown.items()
        }
        return Menu.of(found.get(ARMS, found))

    def _found_context(self, columns: dict[str, NDArray[Any]]) -> ContextSchema:
        fields: dict[str, Any] = {}
        for place, (name, vocabulary) in enumerate(self._fields.items()):
            if vocabulary is None:
                fields[name] = Number()
            else:
                code = columns["context"][:, place].astype(np.int64)
                names, numbers_of = vocabulary.sorted(np.unique(code))
                fields[name] = Category(tuple(names))
                columns["context"][:, place] = numbers_of[code]
        return ContextSchema.of(fields)

    def _told(self) -> Iterator[str]:
        if self._bad.count:
            yield f"{self._bad.count} bad rows were skipped: " + "; ".join(self._bad.sentences())
        for status, count in self._left.items():
            yield f"{count} decisions were left out: {status}"
        used = self._names.used
        # An export has columns that are for people.
        exported = self._source.schema is not None
        spare = [] if exported else [name for name in self._source.columns if name not in used]
        if spare:
            yield f"columns that were not used: {', '.join(spare)[:200]}"


def _slot_vocabularies(names: ColumnNames, menu: Menu | None) -> dict[str, Vocabulary]:
    if menu is None:
        return {slot: Vocabulary() for slot in names.actions}
    wanted = [slot.name for slot in menu.slots] + [one.name for one in menu.intervals]
    _check_same("slot", wanted, names.actions)
    return {slot.name: Vocabulary(one.name for one in slot.choices) for slot in menu.slots}


def _field_vocabularies(
    names: ColumnNames, context: ContextSchema | None, numeric: set[str]
) -> dict[str, Vocabulary | None]:
    """For each field of the context its categories, None for numbers."""
    if context is None:
        return {
            name: None if column in numeric else Vocabulary()
            for name, column in names.context.items()
        }
    _check_same("context field", context.names, names.context)
    return {
        name: Vocabulary(field.values) if isinstance(field, Category) else None
        for name, field in zip(context.names, context.fields, strict=True)
    }


def _check_same(what: str, declared: Sequence[str], found: Mapping[str, str]) -> None:
    for name in declared:
        if name not in found:
            said = f"the {what} {name!r}" if name else "plain actions"
            raise InvalidValue(
                f"{said} is declared, and the log has no column for it: it has columns for "
                f"{', '.join(one or 'plain actions' for one in found) or 'none'}"
            )
    for name in found:
        if name not in declared:
            said = f"the {what} {name!r}" if name else "plain actions"
            raise InvalidValue(f"the log has a column for {said}, which is not declared")
