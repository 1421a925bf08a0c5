"""Decisions of a log as Arrow tables."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.live.log.exporting.open_decisions import OpenDecisions
from submax.live.log.exporting.times import arrow_times
from submax.live.log.pages.encoded_contexts import decoded_numbers
from submax.live.log.pages.lean_decision import LeanDecision
from submax.schema.choices import ARMS
from submax.schema.context_schema import ContextSchema, Number, Value
from submax.schema.menu import ChoiceIndices, Menu
from submax.schema.schema import METADATA, Schema

PENDING = "pending"
"""The status of a decision that has not matured."""
NEVER_ACTIVATED = "never activated"
STATUSES = (PENDING, "learned", "held out", NEVER_ACTIVATED, "without reward", "paused")
CONTEXTS = msgspec.msgpack.Decoder(list[Value])
PROBABILITIES = msgspec.msgpack.Decoder(list[float] | None)
ELIGIBLE = msgspec.msgpack.Decoder(ChoiceIndices)


class DecisionTable:
    """Builds tables of decisions by columns.

    ``open_decisions`` is what the ledger knows about decisions that have not matured, ``parts`` are
    the names of the parts of a reward, and ``more_fields`` are columns that somebody else builds.
    """

    def __init__(
        self,
        declared: Schema,
        menu: Menu,
        context: ContextSchema,
        open_decisions: OpenDecisions,
        parts: Sequence[str] = (),
        more_fields: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self._menu, self._context = menu, context
        self._open, self._parts = open_decisions, parts
        self.schema = _schema(declared, menu, context, parts, more_fields)

    def build(
        self,
        identifiers: Sequence[str],
        times: Sequence[float],
        decisions: Sequence[LeanDecision],
        outcomes: NDArray[np.void],
        more_columns: Sequence[Any] = (),
    ) -> Any:
        """Return the table of some decisions, of which ``outcomes`` has the records.

        ``more_columns`` are those of ``more_fields``.
        """
        import pyarrow as pa

        columns = [
            pa.array(identifiers, pa.string()),
            arrow_times(times),
            *self._actions(decisions),
            pa.array([one.propensity for one in decisions], pa.float64()),
            pa.array([one.version for one in decisions], pa.int64()),
            *self._contexts(decisions),
            self._eligible(decisions),
            _probabilities([one.probabilities for one in decisions]),
            *self._outcomes(identifiers, decisions, outcomes),
            *more_columns,
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _actions(self, decisions: Sequence[LeanDecision]) -> list[Any]:
        import pyarrow as pa

        slots = self._menu.slots
        named = [
            pa.array([choice.name for choice in slot.choices], pa.string()).take(
                pa.array([int(one.action[place]) for one in decisions], pa.int64())
            )
            for place, slot in enumerate(slots)
        ]
        numbers = [
            pa.array([float(one.action[place]) for one in decisions], pa.float64())
            for place in range(len(slots), len(slots) + len(self._menu.ranges))
        ]
        return named + numbers

    def _contexts(self, decisions: Sequence[LeanDecision]) -> list[Any]:
        import pyarrow as pa

        contexts, fields = [one.context for one in decisions], self._context.fields
        if all(isinstance(field, Number) for field in fields):
            numbers = decoded_numbers(contexts, len(fields))
            if numbers is not None:
                return [pa.array(column) for column in np.ascontiguousarray(numbers.T)]
        rows = [CONTEXTS.decode(context) for context in contexts]
        return [
            pa.array([row[place] for row in rows], _context_type(field))
            for place, field in enumerate(fields)
        ]

    def _eligible(self, decisions: Sequence[LeanDecision]) -> Any:
        """The names of the eligible choices; few different lists of them occur."""
        import pyarrow as pa

        known: dict[bytes, int] = {}
        numbers = [known.setdefault(bytes(one.eligible), len(known)) for one in decisions]
        names = [
            [
                [slot.choices[index].name for index in indices]
                for slot, indices in zip(self._menu.slots, ELIGIBLE.decode(encoded), strict=True)
            ]
            for encoded in known
        ]
        return pa.array(names, pa.list_(pa.list_(pa.string()))).take(pa.array(numbers, pa.int64()))

    def _outcomes(
        self,
        identifiers: Sequence[str],
        decisions: Sequence[LeanDecision],
        outcomes: NDArray[np.void],
    ) -> list[Any]:
        import pyarrow as pa

        status, reward = outcomes["status"], outcomes["reward"].copy()
        activated = (status != 0) & (status != STATUSES.index(NEVER_ACTIVATED))
        parts = outcomes["parts"].copy()
        for place in np.flatnonzero(status == 0).tolist():
            reward[place] = self._open.rewards.get(identifiers[place], np.nan)
            activated[place] = identifiers[place] in self._open.activated
            came = self._open.parts.get(identifiers[place], {})
            parts[place] = [came.get(name, np.nan) for name in self._parts]
        activated |= np.array([one.activated for one in decisions], bool)
        return [
            pa.array(activated),
            pa.array([one.holdout for one in decisions], pa.bool_()),
            pa.array([one.group and one.group.group for one in decisions], pa.string()),
            pa.array([one.unit for one in decisions], pa.string()),
            pa.array(STATUSES, pa.string()).take(pa.array(status)),
            pa.array(reward, pa.float64(), mask=np.isnan(reward)),
            pa.array(outcomes["late"].astype(np.int64)),
            *(pa.array(column, pa.float64(), mask=np.isnan(column)) for column in parts.T),
        ]


def _probabilities(encoded: Sequence[msgspec.Raw]) -> Any:
    import pyarrow as pa

    first = PROBABILITIES.decode(encoded[0]) if encoded else None
    numbers = None if first is None else decoded_numbers(encoded, len(first))
    if numbers is None:
        return pa.array([PROBABILITIES.decode(one) for one in encoded], pa.list_(pa.float64()))
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * numbers.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(numbers.ravel()))


def _context_type(field: object) -> Any:
    import pyarrow as pa

    return pa.float64() if isinstance(field, Number) else pa.string()


def _schema(
    declared: Schema,
    menu: Menu,
    context: ContextSchema,
    parts: Sequence[str],
    more_fields: Sequence[tuple[str, Any]],
) -> Any:
    import pyarrow as pa

    names = [
        ("action" if slot.name == ARMS else f"action_{slot.name}", pa.string())
        for slot in menu.slots
    ]
    names += [(f"action_{interval.name}", pa.float64()) for interval in menu.ranges]
    fields = [
        (f"context_{name}", _context_type(field))
        for name, field in zip(context.names, context.fields, strict=True)
    ]
    return pa.schema(
        [
            ("id", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            *names,
            ("propensity", pa.float64()),
            ("version", pa.int64()),
            *fields,
            ("eligible", pa.list_(pa.list_(pa.string()))),
            ("probabilities", pa.list_(pa.float64())),
            ("activated", pa.bool_()),
            ("holdout", pa.bool_()),
            ("group", pa.string()),
            ("unit", pa.string()),
            ("status", pa.string()),
            ("reward", pa.float64()),
            ("late_rewards", pa.int64()),
            *((f"reward_{name}", pa.float64()) for name in parts),
            *more_fields,
        ],
        metadata={METADATA: msgspec.json.encode(declared)},
    )
