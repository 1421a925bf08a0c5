import numpy as np
import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.operating.audit_log import AuditLog
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies.epsilon_greedy import Random

NEVER = 10**9


class Unteachable(Random):
    """Decides uniformly, and fails whenever it should learn."""

    def update(self, state, feedback, rng):
        raise RuntimeError("cannot learn")


def opened(clock, store=None, **declared):
    usual = {"actions": ["A", "B"], "reward_wait": 60, "policy": "random", "refit_rows": NEVER}
    bandit = open_bandit(
        store or MemoryStore(clock), name="page", clock=clock, background=False, **usual | declared
    )
    bandit.store.try_lead("page")
    return bandit


def decided(bandit, clock, count, chance, rng, context=None):
    """Make decisions, many at a time, of which a share has the reward 1 and the others none."""
    for first in range(0, count, 500):
        shown = bandit.decide_many([{"context": context}] * min(500, count - first))
        rewards = [{"id": one.id, "value": 1.0} for one in shown if rng.random() < chance]
        if rewards:
            bandit.reward_many(rewards)
    clock.now += 61
    bandit.ledger()
    bandit.ledger()


def test_a_fall_of_rewards_is_shown_once_until_it_is_acknowledged(clock, seed):
    rng = np.random.default_rng([seed, 1])
    bandit = opened(clock)
    decided(bandit, clock, 3000, 0.6, rng)
    assert bandit.alarms() == []
    decided(bandit, clock, 2000, 0.1, rng)
    assert bandit.active_alarms() == {"reward-rate": 1, "missing-rewards": 1}
    assert bandit.acknowledge_alarms() == 2
    assert bandit.active_alarms() == {}
    audited = [entry.operation for _, entry in AuditLog(bandit.store).newest(5)]
    assert audited == ["acknowledge-alarms"]
    # Whoever reads the log again finds the same alarms, which are not written again.
    again = opened(clock, bandit.store)
    again.ledger()
    assert sorted(one.kind for one in again.alarms()) == ["missing-rewards", "reward-rate"]


def test_the_watch_goes_on_after_a_restart(clock, tmp_path, seed):
    rng, path = np.random.default_rng([seed, 2]), tmp_path / "page.db"
    with opened(clock, SQLiteStore(path, clock=clock)) as bandit:
        decided(bandit, clock, 1500, 0.7, rng)
    with opened(clock, SQLiteStore(path, clock=clock)) as bandit:
        # Rewards have fallen only for who remembers those before.
        decided(bandit, clock, 1000, 0.1, rng)
        assert "reward-rate" in {one.kind for one in bandit.alarms()}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_of_the_context_far_outside_are_an_alarm(clock):
    rng = np.random.default_rng(0)
    bandit = opened(clock, context={"age": float, "country": ["fr", "de"]})
    for age in range(30):
        decided(bandit, clock, 50, 0.5, rng, {"age": float(age), "country": "fr"})
    assert bandit.alarms() == []
    decided(bandit, clock, 100, 0.5, rng, {"age": 1e6, "country": "fr"})
    (alarm,) = bandit.alarms()
    assert (alarm.kind, alarm.subject, alarm.values["value"]) == ("context", "age", 1e6)


def test_a_small_propensity_is_an_alarm_if_a_limit_was_declared(clock):
    bandit = opened(clock, alarms={"smallest_propensity": 0.6})
    for _ in range(2):
        bandit.decide()
        bandit.ledger()
        (alarm,) = bandit.alarms()
        assert (alarm.kind, alarm.values["propensity"]) == ("propensity", 0.5)
    assert bandit.smallest_propensity() == 0.5


def test_refits_that_fail_are_an_alarm_until_one_succeeds(clock, monkeypatch):
    bandit = opened(clock, policy=Unteachable())
    bandit.reward(bandit.decide().id, 1.0)
    clock.now += 61
    for _ in range(4):
        with pytest.raises(RuntimeError, match="cannot learn"):
            bandit.refit()
        assert bandit.decide().action in "AB"
    (alarm,) = bandit.alarms()
    assert (alarm.kind, alarm.active) == ("refits", True)
    monkeypatch.setattr(Unteachable, "update", Random.update)
    assert bandit.refit().learned
    assert bandit.active_alarms() == {}


@pytest.mark.parametrize(
    ("alarms", "parameter"),
    [
        ({"false_alarms": 0.0}, "false_alarms"),
        ({"smallest_propensity": -1.0}, "smallest_propensity"),
        ({"false_alarm": 0.1}, None),
        ({"false_alarms": "7"}, None),
    ],
)
def test_wrong_settings_are_refused(clock, alarms, parameter):
    with raises_code("invalid-input", parameter):
        opened(clock, alarms=alarms)
