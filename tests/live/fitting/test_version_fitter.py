"""A version is an update of the last one, and the same log always gives the same models."""

from unittest import mock

import pytest

from submax.live.bandits.open import open_bandit
from submax.live.fitting import version_fitter
from submax.live.log.rows import training_rows
from submax.live.log.rows.row_segments import StoredSegments
from submax.live.store.memory_store import MemoryStore
from submax.policies import make_policy

WAIT = 10.0
ARMS = ["A", "B", "C"]
POLICIES = [
    {"policy": "thompson-1-1"},
    {"policy": "rcp-adaptive"},
    {"policy": "rcp-adaptive", "context": {"age": float}},
    {"policy": "linear-thompson", "context": {"age": float, "from": ["de", "fr"]}},
]


def opened(store, clock, **others):
    declaration = {"actions": ARMS, "reward_wait": WAIT, "background": False, "clock": clock}
    return open_bandit(store, **declaration, **others)


def fed(bandit, clock, first, rows=20):
    """After decisions with rewards that have matured; the same ones each time."""
    for number in range(first, first + rows):
        context = {
            name: float(number % 7) if name == "age" else "de"
            for name in bandit.settings.context.names
        }
        bandit.decide(context or None, id=f"d{number}", eligible=[ARMS[number % 3]])
        bandit.reward(f"d{number}", float(number % 3 == 1 or number % 5 == 0))
    clock.now += WAIT
    return bandit


def versions_of(bandit, clock, rounds, first=0):
    """The records of versions that are fitted after more and more rows."""
    return [
        fed(bandit, clock, 20 * number).refit().fitted for number in range(first, first + rounds)
    ]


def test_a_version_is_an_update_of_the_last_one(store, clock):
    versions = versions_of(opened(store, clock, policy="thompson-1-1"), clock, 4)
    assert [one.base for one in versions] == [0, 1, 2, 3]
    assert [one.rows for one in versions] == [20, 40, 60, 80]


def test_numbers_of_contexts_are_standardized_again_when_the_rows_have_doubled(store, clock):
    bandit = opened(store, clock, policy="linear-thompson", context={"age": float})
    versions = versions_of(bandit, clock, 8)
    assert [one.base for one in versions] == [0, 0, 2, 0, 4, 5, 6, 0]
    with mock.patch.object(version_fitter, "STANDARDIZED_ROWS", 300):
        later = versions_of(bandit, clock, 10, first=8)
    assert all(one.base for one in later)


def test_new_choices_and_another_policy_make_a_fit_from_scratch_necessary(store, clock):
    bandit = opened(store, clock, policy="thompson-1-1")
    versions_of(bandit, clock, 2)
    bandit.add("D")
    assert fed(bandit, clock, 100).refit().fitted.base == 0
    assert fed(bandit, clock, 200).refit().fitted.base == 3
    bandit = opened(store, clock, policy="ucb1")
    assert fed(bandit, clock, 300).refit().fitted.base == 0


@pytest.mark.parametrize("declared", POLICIES, ids=str)
@pytest.mark.parametrize("kept", ["state", "nothing", "damaged", "older"])
def test_a_restart_changes_no_model(clock, declared, kept):
    """The learning state is read from the store, or computed again from the log."""
    through = opened(MemoryStore(clock), clock, seed=3, **declared)
    expected = [one.model for one in versions_of(through, clock, 6)]
    clock.now -= 6 * WAIT
    store = MemoryStore(clock)
    bandit = opened(store, clock, seed=3, **declared)
    found = [one.model for one in versions_of(bandit, clock, 2)]
    if kept == "older":
        bandit.snapshot()
    found += [one.model for one in versions_of(bandit, clock, 1, first=2)]
    if kept in ("state", "damaged"):
        bandit.snapshot()
    if kept == "damaged":
        store.put_blob("default/learning", b"no state")
    bandit = opened(store, clock, seed=3, **declared)
    found += [one.model for one in versions_of(bandit, clock, 3, first=3)]
    assert found == expected


def test_a_network_learns_from_the_last_rows(store, clock):
    policy = {"kind": "reward-conditioned", "strategy": "submax", "estimator": {"kind": "softmax"}}
    bandit = opened(store, clock, policy=policy)
    assert make_policy(policy).facts.trains_models
    seen = []

    def fitted(schema, policy, parts, seed, decisions):
        seen.append(sum(len(part.reward) for part in parts))
        return fit(schema, policy, [], seed, decisions)

    fit = version_fitter.Model.fitted
    with (
        mock.patch.object(version_fitter, "TRAINED_ROWS", 30),
        mock.patch.object(version_fitter.Model, "fitted", fitted),
    ):
        versions = versions_of(bandit, clock, 3)
    assert seen == [20, 30, 30]
    assert [one.base for one in versions] == [0, 0, 0]
    assert versions[-1].rows == 60


def test_full_segments_are_in_the_store_and_not_in_memory(store, clock):
    with mock.patch.object(training_rows, "SEGMENT", 8):
        bandit = opened(store, clock, policy="rcp-adaptive")
        versions_of(bandit, clock, 3)
        rows = bandit.ledger().rows
        assert isinstance(rows.segments, StoredSegments)
        assert (len(rows.segments), len(rows.last.reward)) == (7, 4)
        assert store.get_blob("default/rows/6") is not None
        assert len(rows.columns().reward) == 60
