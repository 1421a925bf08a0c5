from dataclasses import dataclass

from refusals import raises_code

import submax
from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock

ARMS = ["A", "B", "C", "D"]
UNITS = [f"visitor-{number}" for number in range(40)]


def opened(clock=None, store=None, **settings):
    clock = clock or ManualClock()
    given = {"actions": ARMS, "policy": "thompson-1-1", "reward_wait": 10, **settings}
    return submax.open(
        store or MemoryStore(clock), name="homepage", background=False, clock=clock, **given
    )


def actions(bandit, units=UNITS, **arguments):
    return [bandit.decide(unit=unit, **arguments).action for unit in units]


def learn(bandit, clock, best, context=None):
    """Make a version that prefers one action, from decisions without a unit."""
    for _ in range(120):
        decision = bandit.decide(context)
        bandit.reward(decision.id, float(decision.action == best))
    clock.now += 11
    assert bandit.refit().learned


@dataclass
class FailsAtFirst(MemoryStore):
    """The first decision of each of 20 units is drawn and not written."""

    left: int = 20

    def append(self, stream, entries):
        if stream.endswith("/log") and self.left:
            self.left -= 1
            raise submax.StoreError("the disk is full")
        return super().append(stream, entries)


def test_a_unit_keeps_its_action_also_if_its_first_decision_was_not_written(clock, seed):
    store = FailsAtFirst(clock)
    bandit = opened(clock, store, sticky=3600, seed=seed)
    for unit in UNITS[:20]:
        with raises_code("store-unavailable"):
            bandit.decide(unit=unit)
    shown = actions(bandit, UNITS[:20])
    learn(bandit, clock, "C")
    # Another process knows only what was written; the new version would prefer another action.
    again = opened(clock, store, sticky=3600, seed=seed)
    assert actions(again, UNITS[:20]) == actions(bandit, UNITS[:20]) == shown
    assert actions(again, UNITS[20:40]).count("C") > 10
