"""A look at a store: damage, and how its bandits do."""

from collections.abc import Iterator
from typing import NamedTuple

from submax.core.errors import InvalidValue
from submax.live.bandit import Bandit
from submax.live.bandits import log_stream, model_name
from submax.live.ledger import Ledger
from submax.live.model import Model
from submax.live.settings import policy_of
from submax.live.snapshot import read_snapshot
from submax.live.sqlite_store import SQLiteStore
from submax.live.store import Store


class Finding(NamedTuple):
    """Something that was looked at, and whether it is well."""

    good: bool
    sentence: str


def examined(store: Store, names: list[str]) -> Iterator[Finding]:
    """Findings about the store and each of its bandits, which are only read."""
    if isinstance(store, SQLiteStore):
        problems = store.problems()
        yield Finding(not problems, problems or "the database file is whole")
    if not names:
        yield Finding(True, "there is no bandit yet: submax.open or POST /bandits declares one")
    for name in names:
        try:
            yield from _bandit(store, name)
        except InvalidValue as error:
            yield Finding(False, f"{name}: {error}")


def _bandit(store: Store, name: str) -> Iterator[Finding]:
    bandit = Bandit(store, name, background=False)
    ledger = _ledger(bandit)
    ledger.follow()
    counts = ledger.counts
    yield Finding(
        True,
        f"{name}: {counts['decisions']} decisions, {counts['rewards']} rewards in time, "
        f"{counts['late rewards']} late, {counts['matured']} matured, {len(ledger.rows)} learned, "
        f"{len(ledger.waiting)} in quarantine, {counts['orphans']} orphans",
    )
    yield from _models(bandit)
    yield _snapshot(bandit, ledger)
    if bandit.settings.context.width and bandit.policy.ignores_context:
        policy = bandit.settings.policy
        yield Finding(False, f"{name}: the policy {policy!r} does not look at the context")
    if counts["matured"] >= 100 and counts["by default"] == counts["learned"]:
        yield Finding(
            False, f"{name}: no decision that matured had a reward: do they arrive in time?"
        )


def _ledger(bandit: Bandit) -> Ledger:
    stream = log_stream(bandit.name)
    return Ledger(bandit.settings, lambda after: bandit.store.read(stream, after))


def _models(bandit: Bandit) -> Iterator[Finding]:
    """Every model that is kept has the hash that was recorded."""
    whole = 0
    for fitted in bandit.versions():
        data = bandit.store.kept(model_name(bandit.name, fitted.model))
        if data is None:
            continue
        try:
            Model.from_bytes(data, fitted.model, policy_of(fitted.policy, None))
            whole += 1
        except InvalidValue as error:
            yield Finding(False, f"{bandit.name}: version {fitted.version}: {error}")
    serving = f"version {bandit.version} decides"
    yield Finding(True, f"{bandit.name}: {whole} models are whole, and {serving}")
    if bandit.version != bandit.published:
        sentence = f"{bandit.name}: {serving}, since the model of {bandit.published} cannot be used"
        yield Finding(False, sentence)


def _snapshot(bandit: Bandit, ledger: Ledger) -> Finding:
    """What the snapshot says, followed to the same place, is what the whole log says."""
    kept = _ledger(bandit)
    if bandit.store.kept(f"{bandit.name}/snapshot") is None:
        return Finding(True, f"{bandit.name}: there is no snapshot yet")
    if not read_snapshot(bandit.store, bandit.name, kept):
        return Finding(
            False,
            f"{bandit.name}: the snapshot is damaged; it is made anew from the log when the "
            "bandit is opened",
        )
    kept.follow(until=ledger.heard)
    same = kept.rows.columns().hash == ledger.rows.columns().hash
    said = "says what the log says" if same else "does not say what the log says"
    return Finding(same, f"{bandit.name}: the snapshot {said}")
