import numpy as np
import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.monitoring.alarms.alarm_desk import AlarmDesk
from submax.live.operating.audit_log import AuditLog
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies.classic.random import Random
from submax.testing import ManualClock

NEVER = 10**9


class Sent(list):
    """A webhook that remembers what it was to send."""

    def send(self, address, message):
        self.append((address, message))


class Unteachable(Random):
    """Decides uniformly, and fails whenever it should learn."""

    def update(self, state, feedback, rng):
        raise RuntimeError("cannot learn")


def opened(clock, store=None, **declared):
    usual = {"actions": ["A", "B"], "reward_wait": 60, "policy": "random", "refit_rows": NEVER}
    bandit = open_bandit(
        store or MemoryStore(clock), name="page", clock=clock, background=False, **usual | declared
    )
    sent = Sent()
    bandit._learner.alarms._webhook = sent
    return bandit, sent


def decided(bandit, clock, count, chance, rng, context=None):
    """Make decisions, many at a time, of which a share has the reward 1 and the others none."""
    for first in range(0, count, 500):
        requests = [{"context": context}] * min(500, count - first)
        shown = bandit.decide_many(requests)
        came = rng.random(len(shown)) < chance
        pairs = zip(shown, came, strict=True)
        rewards = [{"id": one.id, "value": 1.0} for one, has_come in pairs if has_come]
        if rewards:
            bandit.reward_many(rewards)
    clock.now += 61
    bandit.ledger()
    bandit.store.try_lead("page")
    bandit.ledger()


def test_a_fall_of_rewards_is_shown_and_sent_once(seed):
    clock, rng = ManualClock(), np.random.default_rng([seed, 1])
    bandit, sent = opened(clock, alarms={"webhook": "https://example.com/hook"})
    bandit.store.try_lead("page")
    decided(bandit, clock, 3000, 0.6, rng)
    assert bandit.alarms() == []
    decided(bandit, clock, 2000, 0.1, rng)
    kinds = {one.kind for one in bandit.alarms()}
    assert kinds == {"reward-rate", "missing-rewards"}
    assert bandit.active_alarms() == {"reward-rate": 1, "missing-rewards": 1}
    assert {address for address, _ in sent} == {"https://example.com/hook"}
    assert {message["alarm"] for _, message in sent} == kinds
    assert all(message["sentence"].startswith("page: ") for _, message in sent)
    assert bandit.acknowledge_alarms() == 2
    assert bandit.active_alarms() == {}
    audited = [entry.operation for _, entry in AuditLog(bandit.store).newest(5)]
    assert audited == ["acknowledge-alarms"]
    # Reading the log again finds the same alarms, which are neither written nor sent again.
    other = AlarmDesk(bandit.store, "page", bandit._live_state, sent)
    bandit._learner._follower._alarms = other
    bandit._learner._follower.read_again()
    assert len(sent) == len(bandit.alarms()) == 2


def test_the_watch_goes_on_after_a_restart(tmp_path, seed):
    clock, rng = ManualClock(), np.random.default_rng([seed, 2])
    path = tmp_path / "page.db"
    bandit, _ = opened(clock, SQLiteStore(path, clock=clock))
    with bandit:
        bandit.store.try_lead("page")
        decided(bandit, clock, 2000, 0.7, rng)
        state = bandit._learner.alarms.watch.state
    bandit, _ = opened(clock, SQLiteStore(path, clock=clock))
    with bandit:
        bandit.store.try_lead("page")
        bandit.ledger()
        assert bandit._learner.alarms.watch.state == state
        decided(bandit, clock, 1500, 0.1, rng)
        assert "reward-rate" in {one.kind for one in bandit.alarms()}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_of_the_context_far_outside_are_an_alarm():
    clock, rng = ManualClock(), np.random.default_rng(0)
    bandit, _ = opened(clock, context={"age": float, "country": ["fr", "de"]}, policy="random")
    bandit.store.try_lead("page")
    for age in range(30):
        decided(bandit, clock, 50, 0.5, rng, {"age": float(age), "country": "fr"})
    assert bandit.alarms() == []
    decided(bandit, clock, 100, 0.5, rng, {"age": 1e6, "country": "fr"})
    (alarm,) = bandit.alarms()
    assert (alarm.kind, alarm.subject, alarm.values["value"]) == ("context", "age", 1e6)


def test_a_small_propensity_is_an_alarm_if_a_limit_was_declared():
    clock = ManualClock()
    bandit, _ = opened(clock, alarms={"smallest_propensity": 0.6})
    bandit.store.try_lead("page")
    bandit.decide()
    bandit.ledger()
    (alarm,) = bandit.alarms()
    assert (alarm.kind, alarm.values["propensity"]) == ("propensity", 0.5)
    assert bandit.smallest_propensity() == 0.5
    bandit.decide()
    bandit.ledger()
    assert len(bandit.alarms()) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refits_that_fail_are_an_alarm_until_one_succeeds(monkeypatch):
    clock = ManualClock()
    bandit, sent = opened(clock, policy=Unteachable(), alarms={"webhook": "https://example.com"})
    bandit.reward(bandit.decide().id, 1.0)
    clock.now += 61
    for _ in range(4):
        with pytest.raises(RuntimeError, match="cannot learn"):
            bandit.refit()
        assert bandit.decide().action in "AB"
    (alarm,) = bandit.alarms()
    assert (alarm.kind, alarm.active) == ("refits", True)
    assert "cannot learn" in alarm.sentence
    assert len(sent) == 1
    monkeypatch.setattr(Unteachable, "update", Random.update)
    assert bandit.refit().learned
    assert bandit.active_alarms() == {}


@pytest.mark.parametrize(
    ("alarms", "match"),
    [
        ({"webhook": "ftp://example.com"}, "webhook"),
        ({"false_alarms": 0.0}, "false_alarms"),
        ({"false_alarms": 2.0}, "false_alarms"),
        ({"smallest_propensity": -1.0}, "smallest_propensity"),
        ({"webhok": "https://example.com"}, "webhook"),
        ({"webhook": 7}, "webhook"),
    ],
)
def test_wrong_settings_are_refused(alarms, match):
    with raises_code("invalid-input"):
        opened(ManualClock(), alarms=alarms)
