"""Versions are fitted in another process, published once, and the same after a restart."""

import os
import signal

import numpy as np
import pytest
from refusals import raises_code

from submax.bandit import refit
from submax.bandit.declaring import change_choice, declare, find_bandit
from submax.bandit.jobs import JobRunner
from submax.bandit.refit import Refitter, fit_version
from submax.bandit.store import open_store, result_of
from submax.bandit.tables import DecisionRow, RewardRow
from submax.schema.actions import Change

DECLARED = {"actions": ["A", "B"], "context": {"x": float, "y": ["u", "v"]}, "reward_wait": 0}
ANEW, NEW = "fitted anew to all rows", "new rewards"


def lived(store, first, end, away=0.0):
    """Decisions with these numbers, and their rewards; the mean of a context is ``away``."""
    rng, names = np.random.default_rng(first), [f"d{number}" for number in range(first, end)]
    rows = [
        DecisionRow(name, 0, "AB"[x > 1], 0.5, context=f'[{x + away},"{"uv"[x > 0]}"]')
        for name, x in zip(names, rng.normal(size=len(names)).tolist(), strict=True)
    ]
    bandit = find_bandit(store, "b").n
    result_of(store.write_decisions(bandit, rows))
    given = (rng.random(len(names)) < 0.4).astype(float).tolist()
    rewards = [RewardRow(name, "k", one) for name, one in zip(names, given, strict=True)]
    result_of(store.write_rewards(bandit, rewards, float("inf")))


def declared(store, **options):
    return declare(store, "b", {**DECLARED, **options})


def refitted(store, jobs, refitter=None):
    here = find_bandit(store, "b")
    return (refitter or Refitter(store, here, jobs)).refit(here)


def versions(store):
    return store.select("select number, hash, reason, rows from version order by number")


def fitted_here(store, here):
    return fit_version(store, here, store.tick(here.n), here.settings.build_policy(None))


@pytest.mark.parametrize("policy", ["rcp-adaptive", "linucb", "neural-thompson"])
def test_a_restart_at_any_time_gives_the_same_versions(tmp_path, clock, jobs, policy):
    """In one process that keeps what it learned, and from the stored state."""
    found = []
    for way in ("kept", "state"):
        with open_store(tmp_path / f"{way}.db", clock=clock) as store:
            here = declared(store, policy=policy)
            refitter = Refitter(store, here, jobs)
            ends = (12, 20, 50, 55, 60) if policy != "neural-thompson" else (20, 30)
            for first, end in zip((0, *ends), ends, strict=False):
                # Numbers move, and are standardized again when rows have doubled.
                lived(store, first, end, 5.0 * (first >= 20))
                if way == "kept":
                    assert refitted(store, jobs, refitter)
                    continue
                refit.MODELS.clear()
                assert refitter._publish(fitted_here(store, here))
            found.append(versions(store))
    assert found[0] == found[1]
    expected = [ANEW, NEW, NEW, ANEW, NEW] if policy != "neural-thompson" else [ANEW, ANEW]
    assert [reason for *_, reason, _ in found[0]] == ["first version", *expected[1:]]
    assert [rows for *_, rows in found[0]] == list(ends)


def test_changed_choices_and_policies_are_fitted_to_all_rows(store, jobs):
    declared(store)
    lived(store, 0, 30)
    refitter = Refitter(store, find_bandit(store, "b"), jobs)
    refitted(store, jobs, refitter)
    change_choice(store, "b", Change("add", "C"))
    assert refitted(store, jobs, refitter)
    declare(store, "b", {"policy": "linucb"})
    assert refitted(store, jobs, refitter)
    reasons = ["first version", "other choices", "another policy"]
    assert [row[2:] for row in versions(store)] == [(reason, 30) for reason in reasons]


def test_a_bandit_that_is_deleted_during_a_fit_stays_deleted(store, jobs):
    here = declared(store)
    lived(store, 0, 30)
    refitter = Refitter(store, here, jobs)
    store.execute([("update bandit set deleted = 1", {})])
    assert not refitter.refit(here)
    assert versions(store) == store.select("select * from learner") == []


def test_a_second_process_cannot_write_the_same_version(store, jobs):
    here = declared(store)
    lived(store, 0, 30)
    version = fitted_here(store, here)
    assert Refitter(store, here, jobs)._publish(version)
    with raises_code("conflict"):
        Refitter(store, here, jobs)._publish(version)
    assert len(versions(store)) == 1
    damaged = version._replace(model=version.model[:-1] + b"?")
    with raises_code("invalid-input"):
        Refitter(store, here, jobs)._publish(damaged)


def test_a_store_that_was_put_back_is_read_anew(tmp_path, jobs):
    place, backup = tmp_path / "store.db", tmp_path / "backup.db"
    with open_store(place) as store:
        declared(store)
        lived(store, 0, 100)
        store.backup(backup)
        assert refitted(store, jobs).version == 1
    for file in tmp_path.glob("store.db*"):
        file.unlink()
    backup.rename(place)
    with open_store(place) as store:
        assert refitted(store, jobs).version == 1
        assert [rows for *_, rows in versions(store)] == [100]


def test_a_dead_or_frozen_process_fails_one_fit(store, jobs, monkeypatch):
    declared(store)
    lived(store, 0, 30)
    monkeypatch.setattr(refit, "FIT_SECONDS", 0.5)
    process = jobs.run(os.getpid)
    os.kill(process, signal.SIGSTOP)
    with raises_code("training-failed"):
        refitted(store, jobs)
    monkeypatch.setattr(refit, "FIT_SECONDS", 600.0)
    assert refitted(store, jobs).version == 1


def test_without_a_second_process_versions_are_fitted_here(store, monkeypatch):
    declared(store)
    lived(store, 0, 30)
    monkeypatch.setattr("sys.executable", "/no/such/python")
    assert refitted(store, JobRunner()).version == 1


def test_after_a_damaged_state_the_next_version_is_fitted_to_all_rows(store, jobs):
    declared(store)
    lived(store, 0, 12)
    refitted(store, jobs)
    store.execute([("update learner set state = :state", {"state": b"no state"})])
    lived(store, 12, 14)
    fresh = JobRunner()
    assert refitted(store, fresh).version == 2
    assert versions(store)[1][2:] == (ANEW, 14)
    fresh.close()
