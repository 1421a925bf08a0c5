"""Examine a store: damage, and settings that are probably not meant."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from submax.bandit.declaring import DeclaredBandit, bandit_names, find_bandit
from submax.bandit.reading import BanditReader
from submax.bandit.store import Store
from submax.core.errors import InputError, StoreError, one_line
from submax.core.serialization import read_state
from submax.core.summary import counted
from submax.policies import make_policy
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


def examined(store: Store, names: Sequence[str] | None = None) -> Iterator[Finding]:
    """Findings about a store and some of its bandits, by default all; nothing is written.

    No code of a user is run.
    """
    yield from _database(store)
    try:
        names = bandit_names(store) if names is None else names
    except InputError as error:
        yield Finding("damage", f"the bandits of the store cannot be listed: {error}")
        return
    if not names:
        yield Finding("ok", "there is no bandit yet: submax.open or POST /bandits declares one")
    for name in names:
        try:
            yield from _bandit(store, name)
        except StoreError:
            raise
        except Exception as error:
            # A damaged row may hold anything, so reading it may fail in any way.
            reason = str(error) if isinstance(error, InputError) else one_line(error)
            yield Finding("damage", f"{name}: it cannot be read: {reason}")
    yield from _strays(store)


def _database(store: Store) -> Iterator[Finding]:
    """The database's own checks, checksums of rows, and counts that must agree."""
    damage = store.damage()
    found = list(islice(damage, SHOWN_DAMAGE))
    yield from (Finding("damage", sentence) for sentence in found)
    more = sum(1 for _ in damage)
    if more:
        yield Finding("damage", f"{more} more rows are damaged or missing")
    if not found:
        yield Finding("ok", "the store is whole: all rows have their checksums, none is missing")


def _bandit(store: Store, name: str) -> Iterator[Finding]:
    declared = find_bandit(store, name)
    if declared is None:
        yield Finding("damage", f"{name}: there is no bandit of this name")
        return
    if declared.deleted:
        yield Finding(
            "advice",
            f"{name}: it was deleted, and the deletion did not come to its end: run submax delete "
            "again",
        )
        return
    yield from _started(store, declared)
    yield from _models(store, declared)
    yield from _advice(store, declared)


def _started(store: Store, declared: DeclaredBandit) -> Iterator[Finding]:
    """Check the rows of the trained policy that the bandit was started from."""
    started = declared.started_from
    if started is None:
        return
    estimated = started.estimated_propensities
    rest = f"; {estimated} rows learned from have estimated propensities" if estimated else ""
    yield Finding("ok", f"{declared.name}: started with {started.rows} rows of a log{rest}")
    parts = store.select(
        "select part, rows, hash from history where bandit = :bandit order by part",
        bandit=declared.n,
    )
    whole = {part for part, data, recorded in parts if _hash_of_rows(bytes(data)) == recorded}
    for part, recorded in enumerate(started.parts):
        if part not in whole or parts[part][2] != recorded:
            yield Finding(
                "damage",
                f"{declared.name}: part {part} of the rows that it was started with is missing or "
                "damaged: restore a backup",
            )


def _hash_of_rows(data: bytes) -> str:
    try:
        return str(read_state(data)[0].hash)
    except (InputError, AttributeError):
        return ""


def _models(store: Store, declared: DeclaredBandit) -> Iterator[Finding]:
    """Check that every model in the store has the hash that was recorded."""
    whole = set()
    sql = (
        "select number, hash, model from version where bandit = :bandit and model is not null "
        "order by number"
    )
    for rows in store.stream(sql, bandit=declared.n):
        for number, recorded, model in rows:
            if hash_of(bytes(model)) == recorded:
                whole.add(number)
            else:
                yield Finding(
                    "damage", f"{declared.name}: the model of version {number} is damaged"
                )
    published = declared.published
    if published == 0 or published in whole:
        yield Finding(
            "ok", f"{declared.name}: {len(whole)} models are whole, and version {published} decides"
        )
    else:
        yield Finding(
            "damage", f"{declared.name}: version {published} should decide, and cannot: roll back"
        )


def _advice(store: Store, declared: DeclaredBandit) -> Iterator[Finding]:
    """The counts of a bandit, and what is no damage but probably not meant."""
    name, settings = declared.name, declared.settings
    reader = BanditReader(store, declared)
    counts = reader.counts()
    yield Finding(
        "ok",
        f"{name}: {counted(counts['decisions'], 'decision')}, "
        f"{counted(counts['rewards'], 'reward')}, "
        f"{counts['late rewards']} late, {counts['matured']} matured, "
        f"{counts.get('learned', 0)} learned, {len(reader.early_rewards(2**31))} in quarantine, "
        f"{counts['dropped from quarantine']} dropped from it, {counts['orphans']} orphans",
    )
    policy = settings.policy
    preset = isinstance(policy, str) and not declared.references_user_code
    if preset and settings.context.width and not make_policy(policy).traits.uses_context:
        yield Finding("advice", f"{name}: the policy {policy!r} ignores the context")
    by_default = counts.get("by default", 0)
    if counts["matured"] >= MANY_DECISIONS and by_default == counts.get("learned", 0):
        yield Finding(
            "advice", f"{name}: no decision that matured had a reward: do they arrive in time?"
        )


def _strays(store: Store) -> Iterator[Finding]:
    """Rows whose bandit is gone, as after a deletion that another process did not see in time."""
    for table in ("decision", "reward", "version", "unit"):
        ((count,),) = store.select(
            f"select count(*) from {table} where bandit not in (select n from bandit)"
        )
        if count:
            yield Finding("advice", f"{count} rows of {table} belong to bandits that were deleted")
