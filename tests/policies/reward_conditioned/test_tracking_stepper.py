"""The fast form of the default policy for single decisions, compared with the policy itself."""

import numpy as np

from submax import Bernoulli, Feedback, make_policy

DECISIONS, COMPARED_EVERY, REPLICAS = 240, 12, 4
CLOSE = 2e-3
"""The fast form follows the logarithm of a constant by steps of at most 5e-3, so that probabilities
have about four digits right; the largest errors are those of few decisions."""


def test_its_probabilities_stay_those_of_the_policy(seed):
    environment, policy = Bernoulli(6, 1, 4), make_policy("rcp-adaptive")
    rng, context = np.random.default_rng(seed), np.zeros((REPLICAS, 1, 0))
    stepper = policy.stepper(environment.problem, REPLICAS, rng)
    state = policy.init(environment.problem, REPLICAS, rng)
    world, differences = environment.reset(REPLICAS, rng), []
    for decision in range(DECISIONS):
        if decision % COMPARED_EVERY == 0:
            mass = stepper.mass()
            expected = policy.probabilities(state, context)[:, 0]
            differences.append(np.abs(mass / mass.sum(axis=1, keepdims=True) - expected).max())
        index = stepper.act(rng)
        action = index[:, None, None]
        reward = environment.reward(world, context, action, rng)
        stepper.learn(index, reward[:, 0], rng)
        state = policy.record(state, action)
        log_prob, weight = np.zeros((REPLICAS, 1)), np.ones((REPLICAS, 1))
        state = policy.update(state, Feedback(context, action, reward, log_prob, weight), rng)
    assert max(differences) < CLOSE
    assert np.median(differences) < CLOSE / 10
