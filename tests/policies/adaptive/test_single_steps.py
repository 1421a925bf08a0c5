"""The fast forms of the default policy for single decisions: they decide as the policy does."""

import numpy as np
import pytest

from submax import Bernoulli, Feedback
from submax.core.contracts import look_ahead_stepper
from submax.core.contracts.success_draws import SuccessDraws
from submax.policies import make_policy
from submax.policies.steppers.tracking_stepper import TrackingStepper
from submax.simulation.running.single_steps import stepper_of

REPLICAS, STEPS = 3, 120


@pytest.mark.parametrize("prior", [(1.0, 9.0), (4.0, 1.0), (0.3, 0.3)])
def test_probabilities_are_those_of_the_policy(prior, seed):
    """With many failures, with many successes, and with a rarest level that changes."""
    environment, policy = Bernoulli(6, *prior), make_policy("rcp-adaptive")
    rng, context = np.random.default_rng(seed), np.zeros((REPLICAS, 1, 0))
    world, problem = environment.reset(REPLICAS, rng), environment.problem
    stepper = stepper_of(policy, problem, REPLICAS, rng)
    state = policy.init(problem, REPLICAS, rng)
    for _ in range(STEPS):
        mass = stepper.mass()
        found = mass / mass.sum(axis=1, keepdims=True)
        # The policy's own search ends when the sum is right to 1e-4.
        assert np.abs(found - policy.probabilities(state, context)[:, 0]).max() < 2e-4
        action, log_prob = policy.act(state, context, rng)
        reward = environment.reward(world, context, action, rng)
        state = policy.record(state, action)
        feedback = Feedback(context, action, reward, log_prob, np.ones((REPLICAS, 1)))
        state = policy.update(state, feedback, rng)
        stepper.learn(action[:, 0, 0], reward[:, 0], rng)


TOGETHER, DECISIONS = 4, 1200
MOST_DIFFERENT = 0.005
"""Share of decisions that may differ: probabilities are right to about four digits, and in the
first hundred decisions to three."""


@pytest.mark.parametrize("prior", [(1.0, 9.0), (9.0, 1.0)])
def test_decisions_taken_together_are_those_of_single_steps(prior, seed, monkeypatch):
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
    fast, single = (stepper_of(policy, problem, TOGETHER, rng) for _ in range(2))
    uniform = np.random.default_rng(seed).random((DECISIONS, TOGETHER))
    draws = SuccessDraws(environment.reset(TOGETHER, rng), rng.random((DECISIONS, TOGETHER)))
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
