"""Whether the stepper of a policy decides as the policy does."""

from typing import Any

import numpy as np

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.simulation.running.single_steps import stepper_of
from submax.testing.rules.examples import some_rewards
from submax.testing.rules.require import require

STEPS = 40
"""Single decisions that are compared."""
MOST_DIFFERENT = 0.01
"""Share of decisions that may differ if a stepper is not exact. Its probabilities are right to four
digits, so that about one decision in ten thousand differs."""


def check_steps(policy: Policy[Any], problem: Problem, replicas: int, seed: int) -> None:
    """Compare the decisions of the stepper, if there is one, with those of ``act``."""
    policy_rng, stepper_rng = (np.random.default_rng(seed) for _ in range(2))
    stepper = stepper_of(policy, problem, replicas, stepper_rng)
    if stepper is None:
        return
    state, rewards = policy.init(problem, replicas, policy_rng), np.random.default_rng((seed, 3))
    context, weight = np.zeros((replicas, 1, 0)), np.ones((replicas, 1))
    differ = 0
    for step in range(STEPS):
        action, log_prob = policy.act(state, context, policy_rng)
        index = stepper.act(stepper_rng)
        expected = problem.space.index(action)[:, 0]
        differ += int(np.count_nonzero(index != expected))
        rule = (
            "its stepper must take the decisions of act; decision "
            f"{step} is {index.tolist()}, and that of act is {expected.tolist()}"
        )
        most = 0.0 if stepper.exact else MOST_DIFFERENT * STEPS * replicas
        require(differ <= most, policy, rule)
        reward = some_rewards(problem.scale, (replicas, 1), rewards)
        state = policy.record(state, action)
        feedback = Feedback(context, action, reward, log_prob, weight)
        state = policy.update(state, feedback, policy_rng)
        # Both learn from the same decisions, so that one difference does not lead to others.
        stepper.learn(expected, reward[:, 0], stepper_rng)
