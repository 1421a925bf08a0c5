"""The default policy computes many single decisions together: they are those of single steps."""

import numpy as np
import pytest

from submax.core.contracts import look_ahead_stepper
from submax.core.contracts.success_draws import SuccessDraws
from submax.environments.arms.bernoulli import Bernoulli
from submax.policies import make_policy
from submax.policies.steppers.tracking_stepper import TrackingStepper
from submax.simulation.running.single_steps import stepper_of

REPLICAS, DECISIONS = 4, 1200
MOST_DIFFERENT = 0.005
"""Share of decisions that may differ: probabilities are right to about four digits, and in the
first hundred decisions to three."""


@pytest.mark.parametrize("prior", [(1.0, 9.0), (9.0, 1.0)])
def test_decisions_are_those_of_single_steps(prior, seed, monkeypatch):
    """With the lower and with the upper level as the frequent one."""
    # Early decisions are worth no looking ahead, but they are where a guess is wrong most often.
    monkeypatch.setattr(TrackingStepper, "replay_cost", 1)
    monkeypatch.setattr(TrackingStepper, "shortest", 8)
    # With rare rewards guesses often fail, and are tried again soon here, whatever the seed.
    monkeypatch.setattr(look_ahead_stepper, "LONGEST_REST", look_ahead_stepper.SHORTEST_REST)
    together, learn_all = [], TrackingStepper.learn_all
    monkeypatch.setattr(
        TrackingStepper,
        "learn_all",
        lambda self, index, reward: (together.append(len(index)), learn_all(self, index, reward)),
    )
    environment, rng = Bernoulli(5, *prior), np.random.default_rng(seed)
    policy, problem = make_policy("rcp-adaptive"), environment.problem
    fast, single = (stepper_of(policy, problem, REPLICAS, rng) for _ in range(2))
    uniform = np.random.default_rng(seed).random((DECISIONS, REPLICAS))
    draws = SuccessDraws(environment.reset(REPLICAS, rng), rng.random((DECISIONS, REPLICAS)))
    index, reward = fast.take(draws, np.random.default_rng(seed))
    assert sum(together) > 200, "many decisions are not computed one by one"
    different = 0
    for step in range(DECISIONS):
        decided = single.decide(uniform[step : step + 1])[0]
        different += int(np.count_nonzero(decided != index[step]))
        # Both learn the same decisions, so that one difference does not lead to others.
        single.learn(index[step], reward[step], rng)
    assert different <= MOST_DIFFERENT * index.size
    found, expected = fast.mass(), single.mass()
    assert np.allclose(
        found / found.sum(axis=1, keepdims=True),
        expected / expected.sum(axis=1, keepdims=True),
        atol=2e-3,
    )
