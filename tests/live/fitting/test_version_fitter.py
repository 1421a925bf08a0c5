"""A version is an update of the last one, and the same log always gives the same models."""

from dataclasses import dataclass, replace
from unittest import mock

import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.fitting import version_fitter
from submax.live.log.bandits import model_name
from submax.live.store.memory_store import MemoryStore
from submax.policies.thompson import Thompson

WAIT = 10.0
ARMS = ["A", "B", "C"]
POLICIES = [
    {"policy": "thompson-1-1"},
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


def test_numbers_of_contexts_are_standardized_again_when_the_rows_have_doubled(store, clock):
    bandit = opened(store, clock, policy="linear-thompson", context={"age": float})
    versions = versions_of(bandit, clock, 8)
    assert [one.base for one in versions] == [0, 0, 2, 0, 4, 5, 6, 0]
    with mock.patch.object(version_fitter, "STANDARDIZED_ROWS", 300):
        later = versions_of(bandit, clock, 10, first=8)
    assert all(one.base for one in later)


def test_a_version_updates_the_last_one_unless_choices_or_the_policy_are_new(store, clock):
    bandit = opened(store, clock, policy="thompson-1-1")
    versions = versions_of(bandit, clock, 2)
    assert [(one.base, one.rows) for one in versions] == [(0, 20), (1, 40)]
    bandit.add("D")
    assert fed(bandit, clock, 100).refit().fitted.base == 0
    assert fed(bandit, clock, 200).refit().fitted.base == 3
    bandit = opened(store, clock, policy="ucb1")
    assert fed(bandit, clock, 300).refit().fitted.base == 0


@pytest.mark.parametrize("declared", POLICIES, ids=lambda declared: declared["policy"])
def test_a_restart_changes_no_model(clock, declared):
    """The learning state is read from the store, or computed again from the log."""
    begin = clock.now
    through = opened(MemoryStore(clock), clock, seed=3, **declared)
    expected = [one.model for one in versions_of(through, clock, 6)]
    for kept in ("state", "nothing", "damaged", "older"):
        clock.now = begin
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
        assert found == expected, kept


ROWS = []
"""How many rows each update had."""


@dataclass(frozen=True)
class TrainsModels(Thompson):
    @property
    def traits(self):
        return replace(super().traits, trains_models=True)

    def update(self, state, feedback, rng):
        ROWS.append(int(feedback.weight.sum()))
        return super().update(state, feedback, rng)


def test_a_network_learns_from_the_last_rows(store, clock):
    bandit, seen = opened(store, clock, policy=TrainsModels()), []
    with mock.patch.object(version_fitter, "TRAINED_ROWS", 30):
        for number in range(3):
            ROWS.clear()
            (version,) = versions_of(bandit, clock, 1, first=number)
            seen.append((sum(ROWS), version.base))
    assert seen == [(20, 0), (30, 0), (30, 0)]
    assert version.rows == 60


def test_nobody_publishes_a_version_whose_model_is_gone(store, clock):
    bandit = opened(store, clock, policy="thompson-1-9")
    (fitted,) = versions_of(bandit, clock, 1)
    store.delete_blob(model_name(bandit.name, fitted.model))
    with raises_code("not-found"):
        bandit.publish(1)
