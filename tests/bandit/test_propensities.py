import itertools
import os
from collections import defaultdict

import numpy as np
import pytest
from stored import named

import submax
from submax.testing import ManualClock
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

SOAK = "SUBMAX_SOAK" in os.environ
DECISIONS = 1_000_000 if SOAK else 3_000
AT_ONCE = 1000
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
CONTEXTS = [{"country": "fr", "age": 20.0}, {"country": "de", "age": 65.0}]
ELIGIBLE = [None, {"title": ["A", "C"]}, {"title": ["B"], "layout": ["wide", "narrow"]}]
POLICIES = {
    "random": {},
    "epsilon-greedy-0.1": {},
    "thompson-1-9": {},
    "ucb1": {},
    "gradient": {},
    "rcp-submax": {},
    "rcp-optimized": {},
    "linear-thompson": {},
    "linucb": {},
    "thompson-1-1": {
        "minimum": 0.02,
        "control": {"title": "B", "layout": "wide"},
        "control_share": 0.1,
    },
}


def opened(policy, clock, rng):
    """A bandit whose first version has learned that the actions differ."""
    bandit = submax.Bandit(
        actions=PAGE,
        context={"country": ["fr", "de"], "age": float},
        policy=policy,
        guard_rails=POLICIES[policy],
        reward_wait=10.0,
        clock=clock,
        rng=rng,
    )
    for _ in range(60):
        decision = bandit.decide(CONTEXTS[rng.integers(2)])
        chance = 0.6 if decision.action["title"] == "B" else 0.3
        bandit.reward(decision.id, float(rng.random() < chance))
    clock.now += 10
    bandit.refit()
    return bandit


@pytest.mark.filterwarnings("ignore::submax.core.errors.ContextIgnoredWarning")
@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_are_as_frequent_as_their_propensities(policy, seed, memory_draws):
    rng = np.random.default_rng(seed)
    bandit = opened(policy, ManualClock(), rng)
    kinds = list(itertools.product(range(2), range(3)))
    requests = [{"context": CONTEXTS[one], "eligible": ELIGIBLE[other]} for one, other in kinds]
    drawn, tables = defaultdict(list), {}
    for _ in range(DECISIONS // AT_ONCE):
        chosen = rng.integers(len(kinds), size=AT_ONCE)
        for kind, decision in zip(
            chosen, bandit.decide_many([requests[kind] for kind in chosen]), strict=True
        ):
            if kind not in tables:
                eligible, probabilities = memory_draws[decision.id]
                names = (named(bandit.menu.action(row)) for row in itertools.product(*eligible))
                tables[kind] = dict(zip(names, probabilities, strict=True))
            assert decision.propensity == tables[kind][named(decision.action)]
            drawn[kind].append(named(decision.action))
    assert bandit.version == 1
    for kind, table in tables.items():
        places = {name: place for place, name in enumerate(table)}
        index = np.array([places[name] for name in drawn[kind]])
        assert goodness_of_fit(index, np.array(list(table.values()))) > SMALLEST_P_VALUE
