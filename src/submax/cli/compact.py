"""Carries out the command that archives old events."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from submax.bandit.settings import Settings
from submax.cli.operating import opened_for_reading
from submax.core.checks import one_of
from submax.core.errors import ConflictError, Error, InputError
from submax.core.optional import require_extra
from submax.core.registry import references_user_code
from submax.live.archive.compacting.compaction import Compaction
from submax.live.archive.compacting.compactor import removed_rows
from submax.live.archive.derived_rows import DerivedRows
from submax.live.archive.segments.segment_folder import SegmentFolder, archive_folder
from submax.live.bandits.open import open_store
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import bandit_names
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.rows.row_segments import StoredSegments
from submax.live.log.snapshot import read_snapshot, write_snapshot
from submax.live.store.sqlite_store import SQLiteStore
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification

DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)", re.ASCII)
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def run_compact(
    place: str, name: str | None, older_than: str | None, *, dry_run: bool, vacuum: bool
) -> None:
    """Archive old events of one bandit or of all, and print what was moved."""
    require_extra("logs", "archiving events", "pyarrow")
    age = None if older_than is None else seconds(older_than)
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place) as store:
        names = bandit_names(store)
        if name is not None:
            one_of("bandit", name, names)
        chosen = names if name is None else [name]
        if dry_run:
            for one in chosen:
                _estimate(store, one, age)
            return
    with _opened(place) as store:
        before = _sizes(store)
        moved = sum(_compact(store, one, age) for one in chosen)
        if vacuum and moved:
            store.shrink()
        if before is not None:
            _print_sizes(before, _sizes(store) or (0, 0))


def seconds(text: str, option: str = "--older-than") -> float:
    """The seconds of a duration such as ``7d``, ``12h``, ``30m`` or ``90``.

    >>> seconds("7d")
    604800.0
    """
    found = DURATION.fullmatch(text)
    if found is None:
        raise InputError(
            f"{option} was {text!r:.40}, and a duration is a number and s, m, h or d, for "
            "seconds to days: give one such as 7d"
        )
    return float(found[1]) * UNITS[found[2]]


def _age(settings: Settings, older_than: float | None, name: str) -> float | None:
    """The age at which events are archived; None if the bandit keeps all of them."""
    wanted = settings.archive_after if older_than is None else older_than
    if wanted is None:
        click.echo(f"{name}: archive_after is None, so that nothing is moved; give --older-than")
        return None
    age = settings.archive_age(wanted)
    if older_than is not None and age > older_than:
        click.echo(
            f"{name}: events stay for {age:g} seconds, because rewards may come and be learned "
            "from until then"
        )
    return age


def _estimate(store: Store, name: str, older_than: float | None) -> None:
    settings = SettingsProjection.of(store, name).settings
    age = _age(settings, older_than, name)
    if age is None:
        return
    compaction = _compaction(store, name, settings, _ledger(store, name, settings), age)
    first = compaction.estimate()
    events = sum(map(len, compaction.movable()))
    size = 0 if first is None else first.size * events // first.events
    click.echo(f"{name}: {events:,} events would be moved to about {size:,} bytes of archive")


def _compact(store: Store, name: str, older_than: float | None) -> int:
    """Move the old events of a bandit; return how many."""
    settings = SettingsProjection.of(store, name).settings
    age = _age(settings, older_than, name)
    if age is None:
        return 0
    if not store.try_lead(name):
        raise ConflictError(
            f"another process fits the versions of {name!r}, and one process at a time may archive "
            "its events: that process does so by itself, archive_after seconds after they came"
        )
    ledger = _ledger(store, name, settings)
    write_snapshot(store, name, ledger)
    compaction = _compaction(store, name, settings, ledger, age)
    compaction.run()
    for _ in removed_rows(ledger, compaction, _trains_models(settings)):
        pass
    events = sum(segment.events for segment in compaction.written)
    size = sum(segment.size for segment in compaction.written)
    click.echo(f"{name}: {events:,} events were moved to {size:,} bytes of archive")
    return events


def _trains_models(settings: Settings) -> bool:
    """Whether the policy trains a model, as far as it is known without running files of code."""
    specification = PolicySpecification.of(settings.policy)
    if references_user_code(specification.data):
        return True
    try:
        return specification.build().traits.trains_models
    except Error:
        # A package that the policy needs is not installed here.
        return True


def _compaction(
    store: Store, name: str, settings: Settings, ledger: Ledger, age: float
) -> Compaction:
    return Compaction(store, name, settings, ledger, time.time() - age)


def _ledger(store: Store, name: str, settings: Settings) -> Ledger:
    """The ledger after the whole log was read."""
    derived = DerivedRows(store, name, settings)
    segments = StoredSegments(store, name, derived=derived)
    ledger = ledger_of(store, name, settings, segments=segments)
    if not read_snapshot(store, name, ledger):
        ledger = ledger_of(store, name, settings, segments=segments)
    ledger.follow()
    return ledger


@contextmanager
def _opened(place: str) -> Iterator[Store]:
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()


def _sizes(store: Store) -> tuple[int, int] | None:
    """The bytes of a file and of its archive; None for other stores."""
    if not isinstance(store, SQLiteStore):
        return None
    files = (Path(f"{store.path}{end}") for end in ("", "-wal"))
    file = sum(path.stat().st_size for path in files if path.exists())
    return file, SegmentFolder(archive_folder(store.path)).size


def _print_sizes(before: tuple[int, int], after: tuple[int, int]) -> None:
    for what, first, last in zip(("store", "archive"), before, after, strict=True):
        click.echo(f"The {what} has {last:,} bytes; before it had {first:,}.")
