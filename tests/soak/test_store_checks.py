"""The checks of the simulated year find what they are there to find."""

import gc

import numpy as np
import pytest
from journal import ACKNOWLEDGED, SENT, Journal
from process_memory import process_memory
from store_checks import check_nothing_lost
from test_simulated_year import affordable, check_memory

from submax.bandit.durable import open_bandit

NAME = "page"


@pytest.fixture
def told(tmp_path):
    """A store with some decisions and a reward, and the journal of what was acknowledged."""
    journal, place = Journal(), tmp_path / "page.db"
    first = journal.new_decisions(3)
    with open_bandit(
        place, name=NAME, actions=["A", "B"], reward_wait=60, background=False
    ) as bandit:
        command = {"do": "decide", "first": first, "count": 3}
        journal.send(command)
        made = bandit.decide_many([{"id": f"{number:012d}"} for number in range(3)])
        answer = {
            "actions": [one.action for one in made],
            "propensities": [one.propensity for one in made],
        }
        journal.acknowledge(command, answer)
        command = {"do": "reward", "rewards": [(1, "reward", 1.0)]}
        journal.send(command)
        receipt = bandit.reward(f"{1:012d}", 1.0)
        journal.acknowledge(command, {"statuses": [receipt.status]})
    return place, journal


def test_a_store_with_everything_passes(told, tmp_path):
    place, journal = told
    check_nothing_lost(place, NAME, journal, tmp_path)
    assert journal.events == 4


def test_a_lost_decision_is_found(told, tmp_path):
    place, journal = told
    journal.decided[journal.new_decisions(1)] = ACKNOWLEDGED
    with pytest.raises(AssertionError, match="acknowledged is lost"):
        check_nothing_lost(place, NAME, journal, tmp_path)


def test_a_decision_that_may_be_stored_may_be_missing(told, tmp_path):
    place, journal = told
    journal.decided[journal.new_decisions(1)] = SENT
    check_nothing_lost(place, NAME, journal, tmp_path)


def test_a_lost_reward_is_found(told, tmp_path):
    place, journal = told
    journal.rewarded[2, 0] = ACKNOWLEDGED
    with pytest.raises(AssertionError, match="acknowledged is lost"):
        check_nothing_lost(place, NAME, journal, tmp_path)


def test_a_decision_that_nobody_asked_for_is_found(told, tmp_path):
    place, journal = told
    journal.decided[0] = 0
    with pytest.raises(AssertionError, match="never sent"):
        check_nothing_lost(place, NAME, journal, tmp_path)


@pytest.mark.parametrize("name", ["action", "propensity", "value"])
def test_a_changed_value_is_found(told, tmp_path, name):
    place, journal = told
    getattr(journal, name)[1] += 1
    with pytest.raises(AssertionError):
        check_nothing_lost(place, NAME, journal, tmp_path)


def test_a_refused_reward_that_is_acknowledged_is_found(told):
    _, journal = told
    command = {"do": "reward", "rewards": [(1, "reward", 0.0)]}
    journal.send(command)
    journal.acknowledge(command, {"statuses": ["conflict"]})
    with pytest.raises(AssertionError):
        journal.acknowledge(command, {"statuses": ["accepted"]})


def sample(resident, allocated=20, objects=10):
    return {"resident": resident, "allocated": allocated, "objects": objects}


FLAT = [[sample(50), sample(55)], *([[sample(100), sample(105)]] * 2)]
"""The second phase takes more memory, once."""


@pytest.mark.parametrize(
    "phase",
    [
        [sample(100), sample(121)],
        [sample(115), sample(127)],
        [sample(100), sample(105, allocated=30)],
        [sample(100), sample(105, objects=13)],
    ],
    ids=["leak", "growth", "arrays", "objects"],
)
def test_memory_that_grows_is_found(phase):
    check_memory([*FLAT, [sample(115), sample(126, allocated=24, objects=12)]])
    with pytest.raises(AssertionError):
        check_memory([*FLAT, phase])


def test_arrays_and_objects_are_counted_as_memory_in_use():
    gc.collect()  # otherwise old garbage may be freed in between
    before = process_memory()
    array, objects = np.ones(10**6), [object() for _ in range(100_000)]
    after = process_memory()
    assert after["resident"] >= array.nbytes
    assert after["objects"] - before["objects"] > 0.9 * len(objects)
    # A C library that cannot tell how much is in use says 0.
    assert not after["allocated"] or after["allocated"] - before["allocated"] > 0.9 * array.nbytes


def test_phases_are_as_long_as_time_allows():
    seconds, phases, written, write, check = 1800.0, 3, 20_000, 2e-4, 6.0
    decisions = affordable(seconds, phases, written, write, check)
    spent = sum(
        decisions * write + check / written * (written + number * decisions)
        for number in range(1, phases + 1)
    )
    assert spent == pytest.approx(seconds, rel=1e-3)
