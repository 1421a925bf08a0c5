"""Reads a log batch by batch; rows that cannot be used are counted and named."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.problem import PROBABILITY_TOLERANCE
from submax.core.rewards import Scale
from submax.core.summary import listed
from submax.evaluation.reading.action_feature_table import described_menu, read_action_features
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.columns.action_columns import ActionColumns
from submax.evaluation.reading.columns.cells import times
from submax.evaluation.reading.columns.column_names import ColumnNames, find_columns
from submax.evaluation.reading.columns.context_columns import ContextColumns
from submax.evaluation.reading.columns.word_count import WordCount
from submax.evaluation.reading.counted_rows import read_counts, read_successes, with_rewards
from submax.evaluation.reading.no_rows import NoRowsError
from submax.evaluation.reading.row_order import IdOrder, in_order, numbered, without_repeats
from submax.evaluation.reading.sources.opening import open_source
from submax.evaluation.reading.sources.source import Source
from submax.schema.choices import ARMS
from submax.schema.context_schema import ContextSchema
from submax.schema.menu import Menu
from submax.schema.rewards import rewards_of, scale_of
from submax.schema.schema import Schema

LEARNED, PENDING = "learned", "pending"
"""In the export of a bandit, the status of decisions whose reward is final, and of decisions that
still wait for their reward. Only the former are read."""


class LogDeclaration(NamedTuple):
    """What a caller declares about a log: a whole ``schema``, or actions, context and rewards."""

    schema: Schema | None
    actions: object
    context: object
    rewards: object
    action_features: object


def read_log(
    source: Any, columns: Mapping[str, Any], declared: LogDeclaration, skip_bad_rows: bool
) -> dict[str, Any]:
    """Return the values of the fields of a ``Log``."""
    opened = open_source(source)
    names = find_columns(opened.columns, columns)
    schema = declared.schema or opened.schema
    menu = None if schema is None else schema.menu
    # If the caller names the columns of the context, they need not be those of the export.
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
    names = _as_declared(names, menu)
    features = None
    if declared.action_features is not None:
        features = read_action_features(declared.action_features)
        if menu is not None:
            # Refuse features that do not suit the menu before the log is read.
            described_menu(menu, features)
    return _LogReader(opened, names, menu, fields, rewards, features).read(skip_bad_rows)


def _as_declared(names: ColumnNames, menu: Menu | None) -> ColumnNames:
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
        menu: Menu | None,
        context: ContextSchema | None,
        rewards: dict[str, Any] | None,
        features: Mapping[str, Any] | None,
    ) -> None:
        self._source, self._names, self._rewards = source, names, rewards
        self._features = features
        self._scale: Scale | None = None if rewards is None else scale_of(rewards)
        self._bad = BadRows()
        self._left_out: Counter[str] = Counter()
        self._actions = ActionColumns(names, menu)
        self._context = ContextColumns(names, context, source.numeric)
        slot_columns = [names.slot_propensities.get(slot) for slot in self._actions.slots]
        self._slot_columns = [] if None in slot_columns else slot_columns
        self._id_order: IdOrder | None = IdOrder()
        self._columns: dict[str, list[NDArray[Any]]] = {}
        self._rows_read = 0
        self._reward_words = WordCount()

    def read(self, skip_bad_rows: bool) -> dict[str, Any]:
        """Read all batches and return the values of the fields of a ``Log``."""
        for batch in self._source.batches(self._names.used, self._bad):
            if batch.num_rows:
                self._add(batch)
        columns = {name: np.concatenate(self._columns.pop(name)) for name in list(self._columns)}
        without_repeats(columns, self._names, self._bad)
        if not skip_bad_rows:
            self._bad.refuse(self._source.name, self._rows_read)
        columns = with_rewards(columns)
        if not columns or len(columns["reward"]) == 0:
            raise NoRowsError(self._no_rows())
        return self._finished(columns)

    def _add(self, batch: Any) -> None:
        first = self._rows_read + 1
        self._rows_read += batch.num_rows
        counted = self._counted(batch)
        checked = CheckedBatch(batch, self._bad, first, counted)
        kept = {**self._values(checked), **self._order(checked, first)}
        good = counted & ~checked.bad
        self._context.count_defaults(good)
        self._check_id_order(checked, first, good)
        self._bad.rows += int(np.count_nonzero(checked.bad))
        for name, values in kept.items():
            self._columns.setdefault(name, []).append(values[good])

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
            found["successes"] = read_successes(batch, self._names.successes, found["count"])
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
            batch.note(self._names.weight, "is not above 0, as a weight must be", wrong)
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
        if found:
            found["row"] = np.arange(first, first + batch.rows, dtype=np.int32)
        return found

    def _check_id_order(self, batch: CheckedBatch, first: int, good: Booleans) -> None:
        """Check whether ids increase, if they are integers and there is no column of times."""
        names = self._names
        if self._id_order is None or names.id is None or names.time is not None:
            return
        number = batch.whole_numbers(names.id)
        if number is None:
            self._id_order = None
        else:
            self._id_order.add(number[good], first + np.flatnonzero(good))

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
        batch.note(column, "is not above 0, as a propensity must be", values <= 0)
        if self._actions.ranges:
            return values
        batch.note(
            column, "is above 1, as no propensity can be", values > 1 + PROBABILITY_TOLERANCE
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
        notes = [*self._notes(columns), *in_order(columns, self._names, self._bad)]
        if self._id_order is not None:
            notes += self._id_order.notes(self._names.id, self._bad)
        menu, eligible_sets, columns["eligible_set"] = self._actions.finished(
            columns["action"], columns["eligible_set"]
        )
        notes += self._actions.notes(menu, columns["action"])
        if self._features is not None:
            menu, unused = described_menu(menu, self._features)
            notes += unused
        context = self._context.finished(columns["context"])
        for name in ("cluster", "session"):
            if name in columns:
                columns[name] = numbered(columns[name])
        if "session" in columns:
            columns.setdefault("cluster", columns["session"])
        binary = np.isin(columns["reward"], (0, 1)).all()
        rewards = self._rewards or rewards_of("binary" if binary else "continuous")
        return {
            **columns,
            "schema": Schema(menu=menu, context=context, rewards=rewards),
            "eligible_sets": eligible_sets,
            "estimated": np.zeros(len(columns["reward"]), dtype=bool),
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
        missing = int(np.count_nonzero(np.isnan(columns["propensity"])))
        if missing:
            yield f"{missing} of {len(columns['propensity'])} rows have no propensity"
        yield from self._reward_words.notes(self._names.reward)
        yield from self._context.notes()
        unused = self._unused_columns()
        if unused:
            yield f"columns that were not used: {listed(unused)}"

    def _unused_columns(self) -> list[str]:
        names = self._names
        unread = set() if self._slot_columns else set(names.slot_propensities.values())
        # The export of a bandit has more columns, for people: these need no note.
        if self._source.schema is not None:
            return sorted(unread)
        used = set(names.used) - unread
        return [name or repr(name) for name in self._source.columns if name not in used]
