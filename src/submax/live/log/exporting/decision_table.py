"""Decisions of a log as Arrow tables."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.bandit.assignment import group_texts
from submax.core.arrays import Floats
from submax.live.log.decisions.decision_columns import DecisionColumns
from submax.live.log.exporting.open_decisions import OpenDecisions
from submax.live.log.exporting.times import arrow_times
from submax.live.log.outcomes import NEVER_ACTIVATED, PENDING, STATUSES
from submax.live.log.pages.log_page import LogPage
from submax.schema.actions import ARMS, ActionSpec
from submax.schema.context import ContextSchema, Number
from submax.schema.schema import METADATA, Schema


class DecisionTable:
    """Builds tables of decisions by columns.

    ``open_decisions`` is what the ledger knows about decisions that have not matured, ``parts`` are
    the names of the parts of a reward, and ``more_fields`` are columns that somebody else builds.
    """

    def __init__(
        self,
        declared: Schema,
        menu: ActionSpec,
        context: ContextSchema,
        open_decisions: OpenDecisions,
        parts: Sequence[str] = (),
        more_fields: Sequence[tuple[str, Any]] = (),
    ) -> None:
        self._menu, self._context = menu, context
        self._open, self._parts = open_decisions, parts
        self._slots = len(menu.slots) + len(menu.ranges)
        self.schema = _schema(declared, menu, context, parts, more_fields)

    def build(
        self, page: LogPage, outcomes: NDArray[np.void], more_columns: Sequence[Any] = ()
    ) -> Any:
        """Return the table of the decisions of a page, of which ``outcomes`` has the records.

        ``more_columns`` are those of ``more_fields``.
        """
        import pyarrow as pa

        made = page.made
        columns = [
            page.names.decision_array(page.decisions),
            arrow_times(page.at[page.decisions]),
            *self._actions(made.action if len(made) else np.zeros((0, self._slots))),
            pa.array(made.propensity),
            pa.array(made.version),
            *made.context_arrays(self._context),
            self._eligible(made),
            made.probabilities(),
            *self._outcomes(page.position[page.decisions], made, outcomes),
            *more_columns,
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def _actions(self, action: Floats) -> list[Any]:
        import pyarrow as pa

        slots = self._menu.slots
        named = [
            pa.array([choice.name for choice in slot.choices], pa.string()).take(
                pa.array(action[:, place].astype(np.int64))
            )
            for place, slot in enumerate(slots)
        ]
        numbers = [
            pa.array(np.ascontiguousarray(action[:, place]))
            for place in range(len(slots), len(slots) + len(self._menu.ranges))
        ]
        return named + numbers

    def _eligible(self, made: DecisionColumns) -> Any:
        """The names of the eligible choices; few different lists of them occur."""
        import pyarrow as pa

        numbers, known = made.eligible()
        names = [
            [
                [slot.choices[index].name for index in indices]
                for slot, indices in zip(self._menu.slots, eligible, strict=True)
            ]
            for eligible in known
        ]
        return pa.array(names, pa.list_(pa.list_(pa.string()))).take(pa.array(numbers))

    def _outcomes(
        self, position: NDArray[np.int64], made: DecisionColumns, outcomes: NDArray[np.void]
    ) -> list[Any]:
        import pyarrow as pa

        status, reward = outcomes["status"], outcomes["reward"].copy()
        activated = (status != PENDING) & (status != NEVER_ACTIVATED)
        parts = outcomes["parts"].copy()
        for place in np.flatnonzero(status == PENDING).tolist():
            at = int(position[place])
            reward[place] = self._open.rewards.get(at, np.nan)
            activated[place] = at in self._open.activated
            came = self._open.parts.get(at, {})
            parts[place] = [came.get(name, np.nan) for name in self._parts]
        return [
            pa.array(activated | made.activated),
            pa.array(made.holdout),
            pa.array(group_texts(made.group), pa.string()),
            pa.array(made.unit, pa.string()),
            pa.array(STATUSES, pa.string()).take(pa.array(status)),
            pa.array(reward, pa.float64(), mask=np.isnan(reward)),
            pa.array(outcomes["late"].astype(np.int64)),
            *(pa.array(column, pa.float64(), mask=np.isnan(column)) for column in parts.T),
        ]


def _context_type(field: object) -> Any:
    import pyarrow as pa

    return pa.float64() if isinstance(field, Number) else pa.string()


def _schema(
    declared: Schema,
    menu: ActionSpec,
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
