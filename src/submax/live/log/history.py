"""Start a bandit from a policy that was learned from a log, and from the rows of that log."""

import logging
from typing import Any, Literal

import msgspec
import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import ConflictError, InputError
from submax.core.policy import Policy
from submax.core.serialization import state_bytes
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import model_name, settings_stream
from submax.live.log.records import CHOICE, HISTORY, PUBLISHED, VERSION, Fitted, History, Published
from submax.live.log.rows.stored_columns import stored_columns
from submax.live.store.event import Entry
from submax.live.store.store import Store
from submax.schema.actions import ActionSpec, Change
from submax.schema.model import hash_of
from submax.schema.rows import Columns
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy, most_rows

LOG = logging.getLogger("submax")
SEGMENT = 65_536
"""Rows in one blob of the store."""
ENOUGH_ROWS = 10_000
"""A learned policy must have kept this many rows, or all it had: later versions are fitted to these
rows, and with fewer they would forget what the policy had learned."""
VERBS: dict[str, Literal["pause", "retire"]] = {"paused": "pause", "retired": "retire"}
"""The verb of the change that gives a choice this status."""


def declaration_of(learned: TrainedPolicy) -> dict[str, Any]:
    """The declaration of a bandit that starts from a learned policy, if the caller gives none."""
    schema = learned.schema
    return {
        "actions": schema.menu.declaration,
        "action_features": schema.menu.features,
        "context": dict(zip(schema.context.names, schema.context.fields, strict=True)),
        "rewards": schema.rewards,
        "policy": _specification(learned),
    }


def check_start(
    settings: Settings, menu: ActionSpec, learned: TrainedPolicy, policy: Policy[Any]
) -> None:
    """Refuse a learned policy that does not suit a bandit, before anything is written.

    ``menu`` has the current choices of the bandit, ``policy`` is the one of its settings.
    """
    _specification(learned)
    _check_schema(settings, menu, learned.schema)
    check_propensities(settings, policy, _without_propensity(learned))
    _check_rows(learned)


def check_choices(menu: ActionSpec, learned: TrainedPolicy) -> None:
    """Refuse a learned policy whose paused and retired choices would leave no active choice.

    Guard rails need no check: if they can be kept with all choices, they can with fewer.
    """
    for change in _changes(menu, learned.schema.menu):
        menu = menu.changed(change)


def check_propensities(settings: Settings, policy: Policy[Any], without: int) -> None:
    """Refuse a policy that needs propensities if rows that it will learn from have none."""
    if policy.traits.needs_propensities and without:
        raise InputError(
            f"the policy {settings.policy!r} needs propensities, and {without} of the rows that "
            "were learned from have none: learn from the log by this policy, which estimates them"
        )


def check_again(
    projection: SettingsProjection, name: str, learned: TrainedPolicy, history: History
) -> None:
    """Refuse another learned policy than the one that a bandit was started from."""
    before = projection.history
    if before is None:
        return
    same = all(
        getattr(before, one) == getattr(history, one)
        for one in ("rows", "segments", "log", "model")
    )
    if not same or not _agrees(projection, learned, history.model):
        raise ConflictError(
            f"the bandit {name!r} was started from another learned policy, which cannot be "
            "replaced: leave learned out, or open a bandit with another name"
        )


def history_of(learned: TrainedPolicy) -> History:
    """The record of a learned policy in the stream of settings."""
    return History(
        rows=len(learned.rows.reward),
        segments=[part.hash for part in _parts(learned)],
        log=learned.origin.log,
        model=hash_of(learned.model.to_bytes()),
        without_propensity=_without_propensity(learned),
        estimated_propensities=learned.origin.estimated_propensities,
    )


def start_from(
    store: Store, name: str, learned: TrainedPolicy, own: Policy[Any] | None = None
) -> None:
    """Make a learned policy the first version, and fit all later versions to its rows too.

    Choices that were paused or retired in the log are so from the start. A second call with the
    same learned policy changes nothing; another learned policy is refused. ``own`` is the bandit's
    policy if it was given as an object.
    """
    projection = SettingsProjection.of(store, name)
    settings, menu = projection.settings, projection.menu
    check_start(settings, menu, learned, settings.build_policy(own))
    history = history_of(learned)
    if projection.history is None:
        check_choices(menu, learned)
        # Blobs are written first: the entries refer to them.
        for number, part in enumerate(_parts(learned)):
            store.put_blob(_segment_name(name, number, history), state_bytes(part, {}))
        store.put_blob(model_name(name, history.model), learned.model.to_bytes())
        store.append(settings_stream(name), _entries(projection, learned, history)).result()
        projection.follow()
        _warn_if_rows_are_missing(name, learned)
    check_again(projection, name, learned, history)


def read_history(store: Store, name: str, history: History | None) -> list[Columns]:
    """The rows that a bandit was started with, in segments."""
    if history is None:
        return []
    return [read_segment(store, name, number, history) for number in range(len(history.segments))]


def read_segment(store: Store, name: str, number: int, history: History) -> Columns:
    """One segment of these rows; an error if it is missing or damaged."""
    data = store.get_blob(_segment_name(name, number, history))
    columns = stored_columns(data, history.segments[number])
    if columns is None:
        raise InputError(
            f"segment {number} of the rows that {name} was started with is missing or damaged: "
            "restore the store from a backup"
        )
    return columns


def _entries(
    projection: SettingsProjection, learned: TrainedPolicy, history: History
) -> list[Entry]:
    """The entries that start a bandit from a learned policy.

    Each has a key: if two processes start at the same time, the second one changes nothing.
    """
    number = max(projection.versions, default=0) + 1
    fitted = Fitted(
        version=number,
        model=history.model,
        policy=_specification(learned),
        rows=history.rows,
        learned=0,
        read=0,
        rows_hash=learned.rows.hash,
        seed=learned.origin.seed,
        active=learned.model.active,
    )
    published = Published(number, model=history.model)
    return [
        Entry(HISTORY, msgspec.msgpack.encode(history), HISTORY),
        *choice_entries(projection.menu, learned),
        Entry(VERSION, msgspec.msgpack.encode(fitted), f"version {number}"),
        Entry(PUBLISHED, msgspec.msgpack.encode(published), "published history"),
    ]


def choice_entries(menu: ActionSpec, learned: TrainedPolicy) -> list[Entry]:
    """Entries that pause and retire the choices of ``menu`` that were so in the log."""
    return [
        Entry(CHOICE, msgspec.msgpack.encode(one), f"history {one.slot}\n{one.choice}")
        for one in _changes(menu, learned.schema.menu)
    ]


def _changes(menu: ActionSpec, wanted: ActionSpec) -> list[Change]:
    """The changes that pause and retire choices as they were paused and retired in the log."""
    return [
        Change(VERBS[then.status], then.name, slot.name)
        for slot, here in zip(wanted.slots, menu.slots, strict=True)
        # Choices that were added to the bandit come after those of the log.
        for then, now in zip(slot.choices, here.choices, strict=False)
        if then.status != "active" and now.status not in (then.status, "retired")
    ]


def _agrees(projection: SettingsProjection, learned: TrainedPolicy, model: str) -> bool:
    """Whether the version with this model has this policy: two policies may have equal models."""
    # As it is read back from the store, where a tuple has become a list.
    policy = msgspec.msgpack.decode(msgspec.msgpack.encode(learned.specification))
    found = [one.policy for one in projection.versions.values() if one.model == model]
    return policy in found or not found


def _specification(learned: TrainedPolicy) -> str | dict[str, Any]:
    if learned.specification is None:
        raise InputError(
            "the learned policy was given as an object, and a bandit starts from one with a name "
            "or a table: learn again by such a policy, {'kind': 'my_policy.py:MyPolicy'}"
        )
    return learned.specification


def _check_schema(settings: Settings, menu: ActionSpec, schema: Schema) -> None:
    """Refuse other names or types than those of the bandit; the status of choices may differ."""
    same = {
        "actions or action features": schema.menu.revived in (settings.menu.revived, menu.revived),
        "contexts": schema.context == settings.context,
        "rewards": schema.scale == settings.scale,
    }
    for what, agrees in same.items():
        if not agrees:
            raise InputError(
                f"the policy was learned for other {what} than those of the bandit: declare the "
                "bandit as the log was read"
            )


def _check_rows(learned: TrainedPolicy) -> None:
    rows, kept = learned.origin.rows, len(learned.rows.reward)
    needed = min(rows, ENOUGH_ROWS, most_rows(learned.schema.context.width))
    if kept < needed:
        raise InputError(
            f"the policy was learned from {rows} rows and kept {kept}, so that the next version "
            f"would forget the others: learn again with more --keep-rows, at least {needed}"
        )


def _warn_if_rows_are_missing(name: str, learned: TrainedPolicy) -> None:
    rows, kept = learned.origin.rows, len(learned.rows.reward)
    if kept < rows:
        LOG.warning("%s: later versions learn from the last %d of %d rows", name, kept, rows)


def _without_propensity(learned: TrainedPolicy) -> int:
    return int(np.isnan(learned.rows.log_prob).sum())


def _parts(learned: TrainedPolicy) -> list[Columns]:
    return [
        learned.rows.rows(slice(first, first + SEGMENT))
        for first in range(0, len(learned.rows.reward), SEGMENT)
    ]


def _segment_name(name: str, number: int, history: History) -> str:
    return f"{name}/history/{history.model[:16]}/{number}"
