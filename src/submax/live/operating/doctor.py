"""Examine a store: damage, and settings that are probably not meant."""

import sqlite3
from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from submax.core.errors import InputError, NotFoundError, StoreError, one_line
from submax.core.registry import references_user_code
from submax.live.archive.archive import Archive
from submax.live.archive.examine import archive_damage
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import bandit_names, model_name
from submax.live.log.history import read_segment
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.rows.row_segments import DamagedRowsError
from submax.live.log.snapshot import read_snapshot
from submax.live.store.integrity.sqlite_versions import caution
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.policies import make_policy
from submax.schema.model import hash_of

MANY_DECISIONS = 100
"""If this many decisions have matured without one reward, rewards probably come too late."""


SHOWN_DAMAGE = 20
"""Damaged events and blobs that are named one by one; the others are counted."""
Kind = Literal["ok", "damage", "advice"]


class Finding(NamedTuple):
    """The result of one check, in one sentence.

    ``damage`` is lost or changed data; ``advice`` is about a store that is whole.
    """

    kind: Kind
    sentence: str


def examined(store: Store, names: list[str] | None = None) -> Iterator[Finding]:
    """Findings about a store and some of its bandits, by default all; nothing is written."""
    if isinstance(store, SQLiteStore):
        yield _version(sqlite3.sqlite_version)
    yield from _stored(store)
    if names is None:
        try:
            names = bandit_names(store)
        except InputError as error:
            # The event that declares a bandit is damaged.
            yield Finding("damage", f"the bandits of the store cannot be listed: {error}")
            return
    if not names:
        yield Finding("ok", "there is no bandit yet: submax.open or POST /bandits declares one")
    for name in names:
        try:
            yield from _bandit(store, name)
        except StoreError:
            raise
        except NotFoundError:
            yield Finding(
                "advice",
                f"{name}: it was deleted, and the deletion did not come to its end: run submax "
                "delete again",
            )
        except Exception as error:
            # A damaged event may hold anything, so that reading it may fail in any way.
            yield Finding("damage", f"{name}: its log cannot be read: {_reason(error)}")


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, InputError) else one_line(error)


def _version(version: str) -> Finding:
    """The version of SQLite, with a caution if it has a bug that damages databases."""
    risk = caution(version)
    return Finding("ok", f"SQLite {version}") if risk is None else Finding("advice", risk)


def _stored(store: Store) -> Iterator[Finding]:
    """Check every event and blob against its checksum, and the ends of all streams."""
    damage = store.damage()
    found = list(islice(damage, SHOWN_DAMAGE))
    yield from (Finding("damage", sentence) for sentence in found)
    more = sum(1 for _ in damage)
    if more:
        yield Finding("damage", f"{more} more events or blobs are damaged or missing")
    if not found:
        yield Finding(
            "ok",
            "the store is whole: all events and blobs have their checksums",
        )


def _bandit(store: Store, name: str) -> Iterator[Finding]:
    projection = SettingsProjection.of(store, name)
    yield from _archive(store, name)
    ledger = ledger_of(store, name, projection.settings)
    ledger.follow()
    counts, waiting = ledger.counts, len(ledger.collected.early.values)
    yield Finding(
        "ok",
        f"{name}: {counts['decisions']} decisions, {counts['rewards']} rewards, "
        f"{counts['late rewards']} late, {counts['matured']} matured, {len(ledger.rows)} learned, "
        f"{waiting} in quarantine, {counts['dropped from quarantine']} dropped from "
        f"it, {counts['orphans']} orphans",
    )
    yield from _history(store, name, projection)
    yield from _models(store, name, projection)
    yield _snapshot(store, name, projection, ledger)
    yield from _advice(name, projection, ledger)


def _archive(store: Store, name: str) -> Iterator[Finding]:
    """Check every segment of the archive, and that no event is missing between them."""
    archive = Archive(store, name)
    archive.follow()
    if not archive.segments:
        return
    damage = list(archive_damage(store, name, archive))
    yield from (Finding("damage", f"{name}: {sentence}") for sentence in damage)
    if not damage:
        events = sum(segment.events for segment in archive.segments)
        yield Finding(
            "ok", f"{name}: {events} archived events in {len(archive.segments)} whole segments"
        )


def _history(store: Store, name: str, projection: SettingsProjection) -> Iterator[Finding]:
    """Check every segment of the rows that the bandit was started with."""
    history = projection.history
    if history is None:
        return
    estimated = history.estimated_propensities
    rest = f"; {estimated} rows learned from have estimated propensities" if estimated else ""
    yield Finding("ok", f"{name}: started with {history.rows} rows of a log{rest}")
    for number in range(len(history.segments)):
        try:
            read_segment(store, name, number, history)
        except InputError as error:
            yield Finding("damage", f"{name}: {error}")


def _models(store: Store, name: str, projection: SettingsProjection) -> Iterator[Finding]:
    """Check that every model in the store has the hash that was recorded."""
    whole = set()
    for number, fitted in sorted(projection.versions.items()):
        data = store.get_blob(model_name(name, fitted.model))
        if data is not None and hash_of(data) == fitted.model:
            whole.add(number)
        elif data is not None:
            yield Finding("damage", f"{name}: the model of version {number} is damaged")
    history = [one.version for one in projection.published]
    deciding = next((one for one in reversed(history) if one in whole or one == 0), 0)
    yield Finding("ok", f"{name}: {len(whole)} models are whole, and version {deciding} decides")
    if history and deciding != history[-1]:
        yield Finding("damage", f"{name}: version {history[-1]} should decide, and cannot")


def _snapshot(store: Store, name: str, projection: SettingsProjection, ledger: Ledger) -> Finding:
    """Check that the snapshot and the events after it give the same rows as the whole log."""
    if store.get_blob(f"{name}/snapshot") is None:
        return Finding("ok", f"{name}: there is no snapshot yet")
    restored = ledger_of(store, name, projection.settings)
    if not read_snapshot(store, name, restored, leads=lambda: False):
        return Finding(
            "damage",
            f"{name}: the snapshot is damaged; it is made anew from the log when the bandit is "
            "opened",
        )
    try:
        for part in restored.rows.parts():
            part.read()
    except DamagedRowsError as error:
        return Finding("damage", f"{name}: {error}")
    restored.follow(until=ledger.read_position)
    same = restored.rows.hash == ledger.rows.hash
    says = "says what the log says" if same else "does not say what the log says"
    return Finding("ok" if same else "damage", f"{name}: the snapshot {says}")


def _advice(name: str, projection: SettingsProjection, ledger: Ledger) -> Iterator[Finding]:
    """Point out what is no damage, but probably not meant."""
    specification, counts = projection.settings.policy, ledger.counts
    preset = isinstance(specification, str) and not references_user_code(specification)
    has_context = projection.settings.context.width > 0
    if preset and has_context and not make_policy(specification).traits.uses_context:
        yield Finding(
            "advice", f"{name}: the policy {specification!r} does not look at the context"
        )
    if counts["matured"] >= MANY_DECISIONS and counts["by default"] == counts["learned"]:
        yield Finding(
            "advice", f"{name}: no decision that matured had a reward: do they arrive in time?"
        )
