"""The checks of the simulated year find what they are there to find."""

import pytest
from journal import ACKNOWLEDGED, Journal
from store_checks import check_nothing_lost
from test_simulated_year import check_memory

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


def lost_decision(journal):
    journal.decided[journal.new_decisions(1)] = ACKNOWLEDGED


def lost_reward(journal):
    journal.rewarded[2, 0] = ACKNOWLEDGED


def unasked(journal):
    journal.decided[0] = 0


def changed(name):
    def change(journal):
        getattr(journal, name)[1] += 1

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lost_decision, "acknowledged is lost"),
        (lost_reward, "acknowledged is lost"),
        (unasked, "never sent"),
        *((changed(name), None) for name in ("action", "propensity", "value")),
    ],
)
def test_what_is_lost_unasked_or_changed_is_found(told, tmp_path, change, said):
    place, journal = told
    change(journal)
    with pytest.raises(AssertionError, match=said):
        check_nothing_lost(place, NAME, journal, tmp_path)


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
