import warnings

import numpy as np

from submax.live.bandits.open import open_bandit
from submax.testing import ManualClock

WAIT = 60.0
BEST = {"fr": "A", "de": "B", "us": "C"}


def play(bandit, clock, visitors, rng):
    """The share of visitors who got the action that is right in their country."""
    right = 0
    for _ in range(visitors):
        country = str(rng.choice(list(BEST)))
        decision = bandit.decide({"country": country, "age": float(rng.normal(40, 10))})
        found = decision.action == BEST[country]
        bandit.reward(decision.id, float(found))
        right += found
    clock.now += WAIT + 1
    bandit.refit()
    return right / visitors


def test_the_default_learns_from_the_context(seed):
    clock, rng = ManualClock(), np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bandit = open_bandit(
            ":memory:",
            actions=["A", "B", "C"],
            context={"country": list(BEST), "age": float},
            reward_wait=WAIT,
            background=False,
            clock=clock,
            rng=np.random.default_rng(seed),
        )
    with bandit:
        first = play(bandit, clock, 150, rng)
        # Uniform choice is right for a third, ± 5 standard errors of 0.04.
        assert abs(first - 1 / 3) < 0.2
        assert play(bandit, clock, 60, rng) > 0.9


def test_a_text_of_numpy_is_a_category():
    context = {"country": np.array(["fr", "de"])[1]}
    actions = ["A", "B"]
    with open_bandit(":memory:", actions=actions, context={"country": ["fr", "de"]}) as bandit:
        assert bandit.decide(context).action in actions
