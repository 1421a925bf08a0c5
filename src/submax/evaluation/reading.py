"""Reads a log batch by batch; rows that cannot be used are counted and named."""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.core.rewards import Scale
from submax.core.summary import listed
from submax.evaluation.cells import (
    BadRows,
    CheckedBatch,
    WordCount,
    as_name,
    read_counts,
    times,
    with_rewards,
)
from submax.evaluation.columns import (
    ACTION,
    CONTEXT,
    ActionColumns,
    ColumnNames,
    ContextColumns,
    find_columns,
    role_of_similar,
)
from submax.evaluation.disk import ColumnWriter, TemporaryFolder, in_pieces, pieces, release, taken
from submax.evaluation.sources import PLAIN, Source, TextFormat, open_source
from submax.schema.actions import ARMS, MOST_CHOICES, ActionSpec, Slot, described, of_slot
from submax.schema.context import ContextSchema
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
    action: ArrayLike,
    reward: ArrayLike,
    propensity: ArrayLike | None,
    context: ArrayLike | None,
) -> dict[str, NDArray[Any]]:
    """Return the columns ``action``, ``reward``, ``propensity``, ``context_x0`` and so on."""
    rewards, actions = _array("reward", reward, (1,)), _array("action", action, (1, 2))
    table = {"action": actions}
    if actions.ndim == 2:
        table = {f"{ACTION}slot{slot}": column for slot, column in enumerate(actions.T)}
    table["reward"] = rewards
    if propensity is not None:
        table["propensity"] = _array("propensity", propensity, (1,))
    if context is not None:
        for field, column in enumerate(_array("context", context, (2,)).T):
            table[f"{CONTEXT}x{field}"] = column
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
            f"the actions of the bandit feedback have {np.ndim(feedback['action'])} dimensions, "
            "and must be one array [n_rounds]: for several slots use Log.from_arrays",
            parameter="action",
        )
    table = arrays_table(
        feedback["action"], feedback["reward"], feedback.get("pscore"), feedback.get("context")
    )
    position = feedback.get("position")
    if position is not None and len(np.unique(position)) > 1:
        table[f"{CONTEXT}position"] = np.asarray(position).astype(str)
    return table, _action_names(table["action"], feedback.get("n_actions"))


def _action_names(action: NDArray[Any], count: Any) -> list[str] | None:
    """Return the numbers of all actions as names; None if the actions are not numbers."""
    if count is not None:
        whole_number("n_actions", count, at_least=1, at_most=MOST_CHOICES)
    elif action.dtype.kind in "iu" and action.size:
        count = min(int(action.max()) + 1, MOST_CHOICES)
    return [str(number) for number in range(count)] if count else None


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
    source, bad = open_source(given), BadRows()
    keys = ["action"] if "action" in source.columns else ["slot", "choice"]
    features = [name for name in source.columns if name not in keys]
    if not features or not set(keys) <= set(source.columns):
        raise _bad_features(
            f"the action features in {source.name} have the columns "
            f"{', '.join(source.columns)[:200]}, and must have a column 'action', or the columns "
            "'slot' and 'choice', and a column for each feature: add or rename columns"
        )
    found: dict[str, dict[str, Any]] = {}
    row = 0
    for batch in source.batches(source.columns, bad):
        checked = CheckedBatch(batch, bad, row + 1, np.ones(batch.num_rows, dtype=bool))
        columns = {name: _feature(checked, name, name in source.numeric) for name in features}
        names = [list(map(as_name, batch.column(key).to_pylist())) for key in keys]
        bad.rows += int(np.count_nonzero(checked.bad))
        for place, key in enumerate(zip(*names, strict=True)):
            row += 1
            choices = found.setdefault(str(key[0]) if len(key) > 1 else ARMS, {})
            if None in key or key[-1] in choices:
                raise _bad_features(
                    f"row {row} of the action features has the name {'/'.join(map(str, key))!r}, "
                    "which is empty or that of an earlier row; a row for each choice is allowed: "
                    "correct or remove the row"
                )
            cells = {name: column[place] for name, column in columns.items()}
            choices[key[-1]] = {name: cell for name, cell in cells.items() if cell is not None}
    bad.refuse(source.name, row, "action_features")
    if not row:
        raise _bad_features(
            f"the table of action features in {source.name} has no rows: add a row for each action"
        )
    return found[ARMS] if len(keys) == 1 else found


def _bad_features(sentence: str) -> InputError:
    return InputError(sentence, parameter="action_features")


def _feature(batch: CheckedBatch, name: str, numeric: bool) -> list[float | str | None]:
    """Return the numbers or texts of a column; None for empty cells."""
    if not numeric:
        return [as_name(value) for value in batch.column(name).to_pylist()]
    values = batch.numbers_or(name, np.nan)
    return [None if np.isnan(value) else float(value) for value in values]


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
    identifier = columns.pop("id")
    ordered = np.sort(identifier)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(identifier, kind="stable")
    same = identifier[order[1:]] == identifier[order[:-1]]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[order[1:]] = same
    first, row = int(np.argmax(repeated)), columns["row"]
    before = int(np.argmax(identifier == identifier[first]))
    bad.note_repeats(names.id, int(np.count_nonzero(repeated)), int(row[first]), int(row[before]))
    _take(columns, np.flatnonzero(~repeated), folder)


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
        first, rows = bad.row(int(row[earlier[0] + 1])), f"number of such rows: {earlier.size}"
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
        self._folder, self._columns = folder, ColumnWriter(folder)
        self._features = features
        self._scale: Scale | None = None if rewards is None else scale_of(rewards)
        self._bad = BadRows()
        self._left_out: Counter[str] = Counter()
        self._actions = ActionColumns(names, menu)
        self._context = ContextColumns(names, context, source.numeric)
        slot_columns = [names.slot_propensities.get(slot) for slot in self._actions.slots]
        self._slot_columns = [] if None in slot_columns else slot_columns
        self._numbered = names.id is not None and names.time is None
        self._rows_read = 0
        self._reward_words = WordCount()

    def read(self, skip_bad_rows: bool) -> dict[str, Any]:
        """Read all batches and return the values of the fields of a ``Log``."""
        for batch in self._source.batches(self._names.used, self._bad):
            if batch.num_rows:
                self._add(batch)
        columns = self._columns.finished()
        if not self._numbered:
            columns.pop("number", None)
        without_repeats(columns, self._names, self._bad, self._folder)
        if not skip_bad_rows:
            self._bad.refuse(self._source.name, self._rows_read)
        columns = with_rewards(columns)
        if not columns or len(columns["reward"]) == 0:
            raise InputError(self._no_rows())
        return self._finished(columns)

    def _add(self, batch: Any) -> None:
        first = self._rows_read + 1
        self._rows_read += batch.num_rows
        counted = self._counted(batch)
        checked = CheckedBatch(batch, self._bad, first, counted)
        kept = {**self._values(checked), **self._order(checked, first)}
        good = counted & ~checked.bad
        self._context.count_defaults(good)
        self._bad.rows += int(np.count_nonzero(checked.bad))
        self._columns.add({name: values[good] for name, values in kept.items()})

    def _counted(self, batch: Any) -> Booleans:
        """Return which rows are not left out because of their status."""
        counted = np.ones(batch.num_rows, dtype=bool)
        if self._names.status is not None:
            for place, status in enumerate(batch.column(self._names.status).to_pylist()):
                if status != LEARNED:
                    counted[place] = False
                    self._left_out["without a status" if status is None else str(status)] += 1
        return counted

    def _values(self, batch: CheckedBatch) -> dict[str, NDArray[Any]]:
        action, eligible_set = self._actions.read(batch)
        found: dict[str, NDArray[Any]] = {"action": action, "eligible_set": eligible_set}
        found["context"] = self._context.read(batch)
        if self._names.count is not None:
            found["count"] = read_counts(batch, self._names.count)
        if self._names.successes is not None:
            found["successes"] = read_counts(batch, self._names.successes)
            more = found["successes"] > found["count"]
            batch.note(self._names.successes, "is above the number of decisions of its row", more)
            found["reward"] = np.zeros(batch.rows)
        else:
            found["reward"] = self._reward(batch, self._names.reward)
        if self._names.outcomes:
            rewards = [self._reward(batch, column) for column in self._names.outcomes.values()]
            found["outcomes"] = np.stack(rewards, axis=1)
        found["propensity"] = self._propensity(batch, self._names.propensity)
        if self._names.cluster is not None:
            found["cluster"] = batch.identifiers(self._names.cluster)
        if self._names.weight is not None:
            found["sampling_weight"] = batch.required_numbers(self._names.weight)
            wrong = ~(found["sampling_weight"] > 0)
            batch.note(self._names.weight, "must be greater than 0", wrong)
        if self._names.session is not None:
            found["session"] = batch.identifiers(self._names.session)
        if self._names.covariates:
            covariates = map(batch.required_numbers, self._names.covariates.values())
            found["covariates"] = np.stack(list(covariates), axis=1)
        if self._names.probabilities:
            table = [batch.required_numbers(one) for one in self._names.probabilities.values()]
            found["probability"] = np.stack(table, axis=1)
        if self._slot_columns:
            slots = [self._propensity(batch, column) for column in self._slot_columns]
            found["slot_propensity"] = np.stack(slots, axis=1)
        return found

    def _order(self, batch: CheckedBatch, first: int) -> dict[str, NDArray[Any]]:
        """Return times, ids and row numbers, by which rows are sorted and repeated ones found."""
        names, found = self._names, dict[str, NDArray[Any]]()
        if names.time is not None:
            found["time"] = batch.required_numbers(names.time, times, "is not a time")
        if names.id is not None:
            found["id"] = batch.identifiers(names.id)
            if names.time is None:
                number = batch.whole_numbers(names.id)
                self._numbered = self._numbered and number is not None
                found["number"] = found["id"] if number is None else number
        if found:
            found["row"] = np.arange(first, first + batch.rows, dtype=np.int32)
        return found

    def _reward(self, batch: CheckedBatch, column: str) -> Floats:
        values = batch.required_numbers(column)
        self._reward_words.add(batch.column(column))
        if self._scale is not None:
            kind = self._rewards["kind"] if self._rewards else ""
            reason = (
                "is neither 0 nor 1" if kind == "binary" else f"is not a reward of {self._scale}"
            )
            batch.note(column, reason, ~self._scale.contains(values) & np.isfinite(values))
        return values

    def _propensity(self, batch: CheckedBatch, column: str | None) -> Floats:
        if column is None:
            return np.full(batch.rows, np.nan)
        values = batch.numbers_or(column, np.nan)
        batch.note(column, "must be greater than 0", values <= 0)
        if self._actions.ranges:
            return values
        batch.note(
            column,
            "must be at most 1; if it is in percent, divide it by 100",
            values > 1 + PROBABILITY_TOLERANCE,
        )
        return np.minimum(values, 1.0)

    def _no_rows(self) -> str:
        left_out = ", ".join(f"{count} {status}" for status, count in self._left_out.items())
        why = f"; left out because of their status: {left_out}" if left_out else ""
        if self._left_out[PENDING]:
            why += " (rewards of pending decisions may still come until reward_wait is over)"
        if self._bad.count:
            why += f"; bad rows: {self._bad.count}, " + "; ".join(self._bad.sentences())
        why = why or ": give a log with at least one row"
        return f"{self._source.name} has no rows that can be used{why}"

    def _finished(self, columns: dict[str, NDArray[Any]]) -> dict[str, Any]:
        notes = [*self._notes(columns), *in_order(columns, self._names, self._bad, self._folder)]
        menu, eligible_sets = self._actions.finished(columns["action"], columns["eligible_set"])
        notes += self._actions.notes(menu, columns["action"])
        if self._features is not None:
            menu, unused = described_menu(menu, self._features)
            notes += unused
        context = self._context.finished(columns["context"])
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
            "schema": Schema(menu=menu, context=context, rewards=rewards),
            "eligible_sets": eligible_sets,
            "estimated": np.broadcast_to(False, rows),
            "outcome_names": tuple(self._names.outcomes),
            "probability_names": tuple(self._names.probabilities.values()),
            "notes": tuple(notes),
        }

    def _notes(self, columns: dict[str, NDArray[Any]]) -> Iterator[str]:
        """Yield sentences about what was left out, and about missing values."""
        if self._bad.count:
            yield f"{self._bad.count} bad rows were skipped: " + "; ".join(self._bad.sentences())
        for status, count in self._left_out.items():
            yield f"{count} decisions were left out because of their status: {status}"
        column = columns["propensity"]
        missing = sum(np.count_nonzero(np.isnan(part)) for part in in_pieces(column))
        if missing:
            yield f"{missing} of {len(column)} rows have no propensity"
        yield from self._reward_words.notes(self._names.reward)
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
