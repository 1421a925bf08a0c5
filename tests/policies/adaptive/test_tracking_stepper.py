"""The fast form of the default policy: it follows what the policy searches for anew."""

import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.environments.arms.bernoulli import Bernoulli
from submax.policies import make_policy
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


def test_a_replica_does_not_depend_on_the_others(seed):
    """Searches that end later in other replicas leave the result of this one as it is."""
    rng, problem = np.random.default_rng(seed), Bernoulli(5).problem
    policy, index = make_policy("rcp-adaptive"), rng.integers(5, size=(80, 4))
    reward = (rng.random((80, 4)) < 0.2).astype(np.float64)
    alone, together = (stepper_of(policy, problem, number, rng) for number in (1, 4))
    for step in range(80):
        assert np.array_equal(alone.mass()[0], together.mass()[0])
        alone.learn(index[step, :1], reward[step, :1], rng)
        together.learn(index[step], reward[step], rng)
