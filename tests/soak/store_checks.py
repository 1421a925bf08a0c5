"""Compares a store with the journal of what it acknowledged, and with itself read anew."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from click.testing import CliRunner
from msgspec import structs
from simulated_year import ACKNOWLEDGED, KEYS, NEVER

from submax.bandit.durable import DAMAGED, open_bandit
from submax.bandit.row_texts import read_key
from submax.bandit.store import open_store
from submax.bandit.tables import Statement
from submax.cli import main
from submax.testing import ManualClock


def submax_command(*words):
    """Run a command of submax, which must succeed; return what it prints."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, f"submax {' '.join(map(str, words))}\n{result.output}"
    return result.output


def check_nothing_lost(place, name, journal, folder):
    """An export has everything that was acknowledged, once, and nothing that was never sent."""
    file = folder / "decisions.parquet"
    submax_command("export", name, "--store", place, "--out", file)
    _check_decisions(file, journal)
    file.unlink()
    with open_store(place, read_only=True) as store:
        _check_rewards(store, journal)


def _check_decisions(file, journal):
    seen = np.zeros(journal.count, np.uint8)
    lookup = pa.array(sorted(journal.actions, key=journal.actions.get))
    for batch in pq.ParquetFile(file).iter_batches(
        columns=["id", "action", "propensity", "status", "reward"]
    ):
        numbers = _numbers(batch)
        np.add.at(seen, numbers, 1)
        known = journal.decided[numbers] == ACKNOWLEDGED
        actions = pc.index_in(batch["action"], lookup).to_numpy(zero_copy_only=False)
        assert (actions[known] == journal.action[numbers][known]).all()
        propensity = batch["propensity"].to_numpy()
        assert (propensity[known] == journal.propensity[numbers][known]).all()
        _check_learned(batch, numbers, journal)
    _check_counts(seen, journal.decided[: journal.count])


def _check_learned(batch, numbers, journal):
    """A decision was learned from with a value that was sent for it, or with the default, 0."""
    learned = pc.equal(batch["status"], "learned").to_numpy(zero_copy_only=False)
    reward = batch["reward"].to_numpy(zero_copy_only=False)[learned]
    sent = journal.rewarded[numbers][learned] != NEVER
    matches = (journal.value[numbers][learned] == reward[:, None]) & sent
    assert (matches.any(axis=1) | (reward == 0.0)).all()


def _check_rewards(store, journal):
    seen = np.zeros((journal.count, len(KEYS)), np.uint8)
    of_decisions = "select id, key, value from reward join decision on decision = decision.n"
    for rows in store.stream(of_decisions, "select id, key, value from early_reward"):
        for identifier, key, value in rows:
            place = int(identifier), KEYS.index(read_key(key))
            seen[place] += 1
            assert value == journal.value[place]
    _check_counts(seen, journal.rewarded[: journal.count])


def _check_counts(seen, states):
    assert (seen <= 1).all(), "something is stored twice"
    assert (seen[states == ACKNOWLEDGED] == 1).all(), "something acknowledged is lost"
    assert (seen[states == NEVER] == 0).all(), "something is stored that was never sent"


def _numbers(batch):
    return pc.cast(batch["id"], pa.int64()).to_numpy()


def check_the_same_version(place, name, now, folder):
    """A copy gives the next version byte by byte, and without its state one from all rows."""
    (folder / "copies").mkdir()
    same, without_state = folder / "copies" / "same.db", folder / "copies" / "without.db"
    for copy in (same, without_state):
        submax_command("backup", place, copy)
    store = open_store(without_state, clock=ManualClock(now))
    store.execute([Statement("delete from learner", {})])
    store.close()
    fitted = []
    for one in (place, same, without_state):
        with open_bandit(one, name=name, background=False, clock=ManualClock(now)) as bandit:
            assert DAMAGED not in bandit.failures
            result = bandit.refit()
            assert result.learned, result.reason
            fitted.append(bandit.versions()[-1])
    first, repeated, from_all_rows = fitted
    assert repeated == first
    reason = "fitted anew to all rows"
    assert structs.replace(from_all_rows, model=first.model) == structs.replace(
        first, reason=reason
    )
    shutil.rmtree(folder / "copies")
