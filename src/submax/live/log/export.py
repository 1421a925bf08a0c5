"""Export the log of a bandit as Parquet files."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from submax.core.running.whole_file import whole_file
from submax.live.archive.log_reader import LogReader
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.ledger import OUTCOMES, ledger_of
from submax.live.log.records import (
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    body_of,
    identifier_of,
)
from submax.live.log.row_segments import ForgottenSegments
from submax.live.store.event import Event
from submax.live.store.store import Store
from submax.schema.choices import ARMS
from submax.schema.context_schema import Number
from submax.schema.menu import EncodedAction
from submax.schema.schema import METADATA

PENDING = "pending"
"""The status of a decision that has not matured."""


class Export:
    """A table of all decisions of a bandit, with their status and rewards.

    ``status`` is `pending` until the decision matures, then `learned`, or the reason why it was not
    learned from: `held out`, `never activated`, `without reward`. ``reward`` is the reward that was
    learned, or the one known so far; ``late_rewards`` counts rewards that came after the decision
    had matured.
    """

    def __init__(self, store: Store, name: str) -> None:
        projection = SettingsProjection.of(store, name)
        self._declared = projection.settings.schema(projection.menu)
        self._menu, self._context = projection.menu, projection.settings.context
        self._outcomes: dict[int, tuple[str, float | None]] = {}
        self._late: Counter[int] = Counter()
        self._read: Callable[[int], list[Event]] = LogReader(store, name).read
        self._ledger = ledger_of(
            store, name, projection.settings, self._observe, ForgottenSegments()
        )
        self._ledger.follow()

    def write(self, path: Path | str) -> int:
        """Write the decisions as Parquet; return their number."""
        return _write(Path(path), self._schema(), self._decisions())

    def write_rewards(self, path: Path | str) -> int:
        """Write every reward as it came, as Parquet; return their number."""
        return _write(Path(path), _reward_schema(), self._rewards())

    def _observe(self, position: int, outcome: str, reward: float | None) -> None:
        if outcome in OUTCOMES:
            self._outcomes[position] = (outcome, reward)
        elif outcome == "late reward":
            self._late[position] += 1

    def _events(self) -> Iterator[Event]:
        """The events up to the position to which the ledger has read."""
        after = 0
        while after < self._ledger.read_position and (page := self._read(after)):
            for event in page:
                if event.position <= self._ledger.read_position:
                    yield event
            after = page[-1].position

    def _decisions(self) -> Iterator[dict[str, Any]]:
        for event in self._events():
            if event.kind == DECISION and event.key is not None:
                yield self._decision(event, identifier_of(event.key))

    def _decision(self, event: Event, identifier: str) -> dict[str, Any]:
        made = body_of(event, DecisionMade)
        given = self._ledger.rewards.get(identifier)
        status, reward = self._outcomes.get(event.position, (PENDING, given))
        return {
            "id": identifier,
            "at": _time(event.at),
            **self._action(made.action),
            "propensity": made.propensity,
            "version": made.version,
            **{
                f"context_{name}": value
                for name, value in zip(self._context.names, made.context, strict=True)
            },
            "eligible": [
                [slot.choices[index].name for index in indices]
                for slot, indices in zip(self._menu.slots, made.eligible, strict=True)
            ],
            "probabilities": made.probabilities,
            "activated": made.activated or self._activated(identifier, status),
            "holdout": made.holdout,
            "status": status,
            "reward": reward,
            "late_rewards": self._late[event.position],
        }

    def _activated(self, identifier: str, status: str) -> bool:
        """Whether a decision made with ``activate=False`` was activated in time."""
        if status == PENDING:
            return identifier in self._ledger.activated
        return status != "never activated"

    def _action(self, row: EncodedAction) -> dict[str, Any]:
        action = self._menu.action(row)
        if isinstance(action, str):
            return {"action": action}
        return {f"action_{name}": value for name, value in action.items()}

    def _rewards(self) -> Iterator[dict[str, Any]]:
        for event in self._events():
            if event.kind == REWARD and event.key is not None:
                _, identifier, key = event.key.split(" ")
                yield {
                    "id": identifier,
                    "key": key,
                    "at": _time(event.at),
                    "value": body_of(event, RewardGiven).value,
                    "known": event.about_position > 0,
                }

    def _schema(self) -> Any:
        import pyarrow as pa

        menu, context = self._menu, self._context
        names = [
            ("action" if slot.name == ARMS else f"action_{slot.name}", pa.string())
            for slot in menu.slots
        ]
        names += [(f"action_{interval.name}", pa.float64()) for interval in menu.ranges]
        fields = [
            (f"context_{name}", pa.float64() if isinstance(field, Number) else pa.string())
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
                ("status", pa.string()),
                ("reward", pa.float64()),
                ("late_rewards", pa.int64()),
            ],
            metadata={METADATA: msgspec.json.encode(self._declared)},
        )


def _reward_schema() -> Any:
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.string()),
            ("key", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("value", pa.float64()),
            ("known", pa.bool_()),
        ]
    )


BATCH = 10_000
"""Rows that are held in memory before they are written."""


def _write(path: Path, schema: Any, rows: Iterator[dict[str, Any]]) -> int:
    """Write rows in batches, so that not all of them are in memory; return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count, batch = 0, []
    with whole_file(path) as file, pq.ParquetWriter(file, schema) as writer:
        for row in rows:
            batch.append(row)
            count += 1
            if len(batch) == BATCH:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch = []
        if batch or count == 0:
            writer.write_table(pa.Table.from_pylist(batch, schema))
    return count


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
