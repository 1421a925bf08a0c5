"""A new choice gets its share little by little, also after a restart."""

import pytest

import submax
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.records import DecisionMade, body_of, decision_key
from submax.live.store.memory_store import MemoryStore


def logged(bandit, decision):
    event = bandit.store.find(log_stream(bandit.name), decision_key(decision.id))
    return body_of(event, DecisionMade).probabilities


def test_a_ramp_goes_on_after_a_restart(tmp_path):
    with submax.open(tmp_path / "a.db", actions=["A", "B", "C"], policy="random") as bandit:
        bandit.decide_many([{}] * 5)
        bandit.add("D", ramp=100)
        bandit.decide_many([{}] * 7)
    with submax.open(tmp_path / "a.db") as again:
        assert logged(again, again.decide())[3] == pytest.approx(0.08)


def test_a_ramp_is_forgotten_when_a_version_has_learned_from_its_decisions(clock):
    options = {"policy": "random", "reward_wait": 10.0, "background": False, "clock": clock}
    bandit = open_bandit(MemoryStore(clock), actions=["A", "B"], **options)
    for number in range(9):
        bandit.reward(bandit.decide().id, 1.0)
        if number == 4:
            bandit.add("C", ramp=4)
    assert bandit._live_state.projection.ramps
    clock.now += 11
    assert bandit.refit()
    assert not bandit._live_state.projection.ramps
