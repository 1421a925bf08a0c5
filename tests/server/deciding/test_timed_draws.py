import asyncio
import threading
import time
from dataclasses import dataclass
from threading import Event

import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.facts import Facts
from submax.core.errors import InputError
from submax.live.bandits.open import open_bandit
from submax.live.serving.serving import LATE
from submax.live.store.memory_store import MemoryStore
from submax.policies.classic.random import Random
from submax.web.server.deciding import draw_thread, timed_draws
from submax.web.server.deciding.durable_writes import DurableWrites
from submax.web.server.deciding.gathered_decisions import GatheredDecisions
from submax.web.server.deciding.timed_draws import TimedDraws
from submax.web.server.interface.messages import Decide

SECONDS = 0.3


class Gate(Event):
    """Lets threads pass while it is set, and knows which threads came."""

    def __init__(self):
        super().__init__()
        self.threads = []


@dataclass(frozen=True, eq=False)
class Stopping(Random):
    """A policy that prefers the first action, and computes nothing while ``go`` is not set."""

    go: Gate

    @property
    def facts(self):
        return Facts(uses_context=True)

    def probabilities(self, state, context):
        self.go.threads.append(threading.current_thread())
        self.go.wait(30)
        return np.tile([0.9, 0.1, 0.0], (1, context.shape[1], 1))


@pytest.fixture
def policy(monkeypatch):
    monkeypatch.setattr(timed_draws, "ONE_SECONDS", SECONDS)
    monkeypatch.setattr(timed_draws, "MANY_SECONDS", SECONDS)
    policy = Stopping(Gate())
    policy.go.set()
    yield policy
    policy.go.set()


@pytest.fixture
def opened(policy):
    """Open a bandit with the policy, and the draws of its decisions."""

    def opened(**options):
        bandit = open_bandit(
            MemoryStore(),
            actions=["A", "B", "C"],
            policy=policy,
            background=False,
            **{"context": {"age": float}, **options},
        )
        return bandit, TimedDraws(bandit)

    return opened


def one(bandit, draws, **request):
    async def decided():
        decisions = GatheredDecisions(draws, DurableWrites(bandit.store))
        return await decisions.decide(Decide(context={"age": 1.0}, **request))

    return asyncio.run(decided())


def many(bandit, draws, count):
    requests = [Decide(context={"age": 1.0}) for _ in range(count)]
    return [bandit.write(each) for each in asyncio.run(draws.many(requests))]


def test_a_policy_that_is_not_quick_decides_in_a_thread(policy, opened, monkeypatch):
    monkeypatch.setattr(timed_draws, "QUICK_SECONDS", 0.0)
    bandit, draws = opened()
    assert {one(bandit, draws).propensity for _ in range(20)} <= {0.9, 0.1}
    assert threading.main_thread() not in policy.go.threads
    assert LATE not in bandit.failures


def test_after_a_quick_decision_the_next_ones_need_no_thread(policy, opened, monkeypatch):
    monkeypatch.setattr(timed_draws, "QUICK_SECONDS", 10.0)
    bandit, draws = opened()
    first = [one(bandit, draws) for _ in range(3)]
    assert {each.propensity for each in first} <= {0.9, 0.1}
    assert policy.go.threads[0] is not threading.main_thread()
    assert policy.go.threads[1:] == [threading.main_thread()] * 2
    # Another choice is another state of the bandit, which has to be quick anew.
    bandit.pause("C")
    one(bandit, draws)
    assert policy.go.threads[-1] is not threading.main_thread()


def test_a_stuck_policy_is_replaced_by_uniform_decisions_that_are_counted(policy, opened):
    bandit, draws = opened()
    policy.go.clear()
    begin = time.monotonic()
    decision = one(bandit, draws)
    assert time.monotonic() - begin >= SECONDS
    assert decision.propensity == pytest.approx(1 / 3)
    begin = time.monotonic()
    assert [each.propensity for each in many(bandit, draws, 50)] == pytest.approx([1 / 3] * 50)
    assert time.monotonic() - begin < SECONDS
    assert bandit.failures[LATE] == 51
    assert f"51 {LATE}" in repr(bandit)
    # Only one thread was started, and it goes on with the policy once it is no longer stuck.
    assert len(policy.go.threads) == 1
    policy.go.set()
    end = time.monotonic() + 10
    while one(bandit, draws).propensity not in (0.9, 0.1):
        assert time.monotonic() < end


def test_decisions_that_were_drawn_in_time_are_kept(policy, opened, monkeypatch):
    bandit, draws = opened()
    # One decision is drawn at first, then two, then four, then the last five of twelve.
    calls, stop_at = [], 7

    def probabilities(self, state, context):
        calls.append(context.shape[1])
        if sum(calls) > stop_at:
            self.go.wait(30)
        return np.tile([0.9, 0.1, 0.0], (1, context.shape[1], 1))

    monkeypatch.setattr(Stopping, "probabilities", probabilities)
    policy.go.clear()
    found = [each.propensity for each in many(bandit, draws, 12)]
    assert set(found[:stop_at]) <= {0.9, 0.1}
    assert found[stop_at:] == pytest.approx([1 / 3] * 5)
    assert bandit.failures[LATE] == 5
    assert calls == [1, 2, 4, 5]


def test_uniform_decisions_keep_to_the_guard_rails(policy, opened):
    rails = {"control": "A", "control_share": 0.5, "minimum": 0.01}
    bandit, draws = opened(guard_rails=rails)
    policy.go.clear()
    found = {each.action: each.propensity for each in many(bandit, draws, 100)}
    assert found == pytest.approx({"A": 0.5, "B": 0.25, "C": 0.25})


def test_eligible_choices_and_ids_are_kept_without_the_policy(policy, opened):
    bandit, draws = opened()
    policy.go.clear()
    decision = one(bandit, draws, id="d1", eligible=["B"])
    assert (decision.id, decision.action, decision.propensity) == ("d1", "B", 1.0)
    assert one(bandit, draws, id="d1").repeated


def test_an_error_of_the_caller_is_raised(opened):
    _, draws = opened()
    with raises_code("invalid-input"):
        asyncio.run(draws.one(Decide(context={"age": "old"})))
    with pytest.raises(InputError):
        asyncio.run(draws.many([Decide(context={"age": 1.0}, eligible=["Z"])]))


def test_one_stuck_policy_does_not_stop_other_bandits(policy, opened):
    """Up to Python 3.11 a cached property would hold a lock that all bandits share."""
    stuck, draws = opened(context={})
    policy.go.clear()
    stuck.write(asyncio.run(draws.one(Decide())))
    other = open_bandit(MemoryStore(), actions=["A", "B"], policy="thompson-1-1", background=False)
    decided = []
    thread = threading.Thread(target=lambda: decided.append(other.decide()), daemon=True)
    thread.start()
    thread.join(10)
    assert len(decided) == 1


def test_the_thread_ends_when_it_is_idle_and_starts_again(policy, opened, monkeypatch):
    monkeypatch.setattr(draw_thread, "IDLE_SECONDS", 0.05)
    bandit, draws = opened()
    for _ in range(3):
        assert len(many(bandit, draws, 4)) == 4
        end = time.monotonic() + 10
        while any(one.name == "submax-draw-default" for one in threading.enumerate()):
            assert time.monotonic() < end
            time.sleep(0.01)
