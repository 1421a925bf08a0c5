"""Examine a store: damage, and settings that are probably not meant."""

from collections.abc import Iterator
from itertools import islice
from typing import Literal, NamedTuple

from submax.bandit.declaring import DeclaredBandit, bandit_names, find_bandit
from submax.bandit.reading import BanditReader
from submax.bandit.refit import history_of
from submax.bandit.store import Store
from submax.core.errors import InputError, StoreError, one_line
from submax.core.summary import counted
from submax.schema.model import hash_of

MANY_DECISIONS = 100
"""If this many decisions have matured without one reward, rewards probably come too late."""
SHOWN_DAMAGE = 20
"""Damaged rows that are named one by one; the others are counted."""
Kind = Literal["ok", "damage", "advice"]


class Finding(NamedTuple):
    """The result of one check, in one sentence.

    ``damage`` is lost or changed data; ``advice`` is about a store that is whole.
    """

    kind: Kind
    sentence: str


def examined(store: Store) -> Iterator[Finding]:
    """Findings about a store and its bandits; nothing is written, and no code of a user is run."""
    # The database's own checks, checksums of rows, and counts that must agree.
    damage = store.damage()
    found = list(islice(damage, SHOWN_DAMAGE))
    yield from (Finding("damage", sentence) for sentence in found)
    if more := sum(1 for _ in damage):
        yield Finding("damage", f"{more} more rows are damaged or missing")
    if not found:
        yield Finding("ok", "the store is intact: all checksums match, and no row is missing")
    try:
        names = bandit_names(store)
    except InputError as error:
        yield Finding("damage", f"the bandits of the store cannot be listed: {error}")
        return
    if not names:
        yield Finding("ok", "there are no bandits yet: create one with submax create")
    for name in names:
        try:
            yield from (Finding(kind, f"{name}: {said}") for kind, said in _bandit(store, name))
        except StoreError:
            raise
        except Exception as error:
            # A damaged row may hold anything, so reading it may fail in any way.
            reason = str(error) if isinstance(error, InputError) else one_line(error)
            yield Finding("damage", f"{name}: it cannot be read: {reason}")


def _bandit(store: Store, name: str) -> Iterator[Finding]:
    declared = find_bandit(store, name)
    if declared is None:
        yield Finding("damage", "there is no bandit of this name")
    elif declared.deleted:
        yield Finding(
            "advice", "it was deleted, but the deletion did not finish: run submax delete again"
        )
    else:
        yield from _models(store, declared)
        started = declared.started_from
        if started is not None:
            if sum(len(part.reward) for part in history_of(store, declared.n)) != started.rows:
                yield Finding(
                    "damage", "some rows that it started with are missing: restore a backup"
                )
            estimated = started.estimated_propensities
            rest = f"; {estimated} rows have estimated propensities" if estimated else ""
            yield Finding("ok", f"started with {started.rows} rows of a log{rest}")
        yield from _counts(BanditReader(store, declared))


def _models(store: Store, declared: DeclaredBandit) -> Iterator[Finding]:
    """Check that every model in the store has the hash that was recorded."""
    whole, published = set(), declared.published
    sql = (
        "select number, hash, model from version where bandit = :bandit and model is not null "
        "order by number"
    )
    for rows in store.stream(sql, bandit=declared.n):
        for number, recorded, model in rows:
            if hash_of(bytes(model)) == recorded:
                whole.add(number)
            else:
                yield Finding("damage", f"the model of version {number} is damaged")
    if published == 0 or published in whole:
        yield Finding("ok", f"all models are intact ({len(whole)}); version {published} is live")
    else:
        yield Finding("damage", f"version {published} should be live, but is damaged: roll back")


def _counts(reader: BanditReader) -> Iterator[Finding]:
    """The counts of a bandit, and whether its rewards arrive in time."""
    counts, known = reader.counts(), "learned" if reader.declared.published else "to learn from"
    yield Finding(
        "ok",
        f"{counted(counts['decisions'], 'decision')}, {counted(counts['rewards'], 'reward')}, "
        f"{counts['late rewards']} late, {counts['matured']} matured, "
        f"{counts.get('learned', 0)} {known}, {len(reader.early_rewards(2**31))} in quarantine, "
        f"{counts['dropped from quarantine']} dropped from quarantine, {counts['orphans']} orphans",
    )
    by_default = counts.get("by default", 0)
    if counts["matured"] >= MANY_DECISIONS and by_default == counts.get("learned", 0):
        yield Finding("advice", "no matured decision had a reward: do rewards arrive in time?")
