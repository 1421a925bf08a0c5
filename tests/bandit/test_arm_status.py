import math

import numpy as np
import pytest

import submax
from submax.bandit.arms import Tally
from submax.core.rewards import Binary, Continuous
from submax.testing import ManualClock

RUNS = 1000


def covered(seed, truth, scale, drawn):
    """The share of runs whose interval holds the truth; weak arms are chosen where they pay."""
    rng = np.random.default_rng([seed, 3])
    hits = 0
    for _ in range(RUNS):
        good = rng.random(150) < 0.5
        propensity = np.where(good, 0.9, 0.3)
        chosen = rng.random(150) < propensity
        tally = Tally()
        for reward, share in zip(drawn(rng, good)[chosen], propensity[chosen], strict=True):
            tally.learned(float(reward), 1 / share)
        _, low, high = tally.weighted_rate(scale)
        hits += low <= truth <= high
    return hits / RUNS


@pytest.mark.parametrize(
    ("scale", "drawn"),
    [
        (Binary(), lambda rng, good: rng.random(150) < np.where(good, 0.6, 0.2)),
        (Continuous(), lambda rng, good: rng.normal(np.where(good, 0.6, 0.2))),
    ],
)
def test_the_interval_of_an_arm_holds_its_mean_over_all_contexts(seed, scale, drawn):
    error = math.sqrt(0.95 * 0.05 / RUNS)
    # The large-sample interval of 70 rows is somewhat too short: 1 % is allowed for this.
    assert covered(seed, 0.4, scale, drawn) >= 0.95 - 0.01 - 4 * error


def test_an_arm_is_called_silent_only_where_this_is_hardly_chance():
    """With one rewarded decision of A, n of B without any have the chance 2 / ((n + 1) (n + 2))."""
    clock = ManualClock()
    with submax.open(
        ":memory:", actions=["A", "B"], reward_wait=60, clock=clock, background=False
    ) as bandit:
        bandit.reward(bandit.decide(eligible=["A"]).id, 1.0)
        for more, found in ((1, []), (59, []), (10, [70.0])):
            for _ in range(more):
                bandit.decide(eligible=["B"])
            clock.now += 61
            bandit.refit()
            silent = [one for one in bandit.conditions() if one.kind == "silent-arm"]
            assert [one.values["decisions"] for one in silent] == found


def test_every_choice_is_shown_with_its_numbers(seed):
    arms = submax.Bandit(["A", "B"], policy="thompson-1-1").arms()
    assert [(one.decisions, one.share, one.probability) for one in arms] == [(0, None, 0.5)] * 2
    actions = {"title": ["A", "B"], "layout": ["wide", "narrow", "tall"]}
    bandit = submax.Bandit(actions, context={"age": float}, seed=seed)
    for number in range(80):
        decision = bandit.decide({"age": number})
        bandit.reward(decision.id, float(decision.action["title"] == "A"))
    bandit.refit()
    bandit.pause("tall", slot="layout")
    arms = {(one.slot, one.choice): one for one in bandit.arms()}
    assert arms["layout", "tall"].status == "paused"
    assert arms["layout", "tall"].probability == 0.0
    for slot, names in (("title", ["A", "B"]), ("layout", ["wide", "narrow", "tall"])):
        own = [arms[slot, name] for name in names]
        assert sum(one.decisions for one in own) == 80
        assert sum(one.share for one in own) == pytest.approx(1.0)
        assert sum(one.probability for one in own) == pytest.approx(1.0)
    assert arms["title", "A"].reward_rate == 1.0
    assert arms["title", "A"].probability > 0.5
