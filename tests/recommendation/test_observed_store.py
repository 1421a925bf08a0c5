"""What a store shows of a problem: rewards and batches."""

import pytest

import submax
from submax.live.log.ledger import ledger_of
from submax.live.store.memory_store import MemoryStore
from submax.recommendation.waiting_decisions import waiting_decisions


class Clock:
    """A clock that the test moves."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock)


def waiting(store, bandit):
    ledger = ledger_of(store, bandit.name, bandit.settings)
    ledger.follow()
    return waiting_decisions(ledger)


def test_rewards_of_a_bandit_that_chooses_numbers_are_seen(tmp_path):
    place = tmp_path / "a.db"
    declared = {"policy": "fourier-thompson", "rewards": "counts", "reward_wait": 0}
    with submax.open(place, actions={"price": (1.0, 9.0)}, background=False, **declared) as bandit:
        for number in range(10):
            bandit.reward(bandit.decide().id, float(number % 2) * 4)
    answers = submax.recommend(place).answers
    assert (answers.sizes, answers.rewards) == ((), "counts")


def test_decisions_that_wait_are_a_batch(tmp_path):
    place = tmp_path / "a.db"
    with submax.open(place, actions=["A", "B"], refit_rows=3, background=False) as bandit:
        bandit.decide_many([{"context": None}] * 40)
    assert submax.recommend(place, rewards="often").answers.batch == 40


def test_decisions_wait_until_they_mature(store, clock):
    """Of 300 decisions, 12 seconds apart, an hour is over for all but 150 and those after."""
    declared = {"actions": ["A", "B"], "reward_wait": 3600, "clock": clock}
    with submax.open(store, background=False, **declared) as bandit:
        for _ in range(300):
            clock.now += 12.0
            bandit.reward(bandit.decide().id, 1.0)
        clock.now += 1800.0
        for _ in range(20):
            bandit.decide()
        assert waiting(store, bandit) == 150 + 20


@pytest.mark.parametrize("delay", [8, 100])
def test_rewards_that_are_learned_at_once_wait_as_long_as_they_take(store, clock, delay):
    """A decision in each second: about as many are waiting as the delay has seconds."""
    ids = []
    declared = {"actions": ["A", "B"], "reward_wait": 0, "clock": clock}
    with submax.open(store, background=False, **declared) as bandit:
        for number in range(600):
            clock.now += 1.0
            ids.append(bandit.decide().id)
            # A third of the decisions never gets a reward, and is not waited for.
            if number >= delay and number % 3:
                bandit.reward(ids[number - delay], 1.0)
        # Delays are counted in bins that double in length.
        assert delay / 2 <= waiting(store, bandit) <= 2 * delay
