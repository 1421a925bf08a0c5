from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms
from submax.policies import make_policy

PROBLEM = Problem(Arms(3), context_width=2)


@dataclass(frozen=True)
class Wrapped(WrapperPolicy):
    policy: Policy[Any]


def taught(policy, seed):
    """Everything that a policy answers in two rounds of decisions."""
    rng, answers = np.random.default_rng(seed), []
    state = policy.init(PROBLEM, 2, rng)
    for _ in range(2):
        context = rng.normal(size=(2, 30, 2))
        chosen = policy.act(state, context, rng)
        log_prob = policy.log_prob(state, context, chosen.action)
        state = policy.record(state, chosen.action, upcoming=30)
        reward = (rng.random((2, 30)) < 0.4).astype(np.float64)
        feedback = Feedback(context, chosen.action, reward, log_prob, np.ones((2, 30)))
        state = policy.update(state, feedback, rng)
        answers += [chosen.action, log_prob, policy.probabilities(state, context)]
    return answers


@pytest.mark.parametrize("name", ["thompson-1-1", "linucb", "posterior-submax", "ucb1-pending"])
def test_a_wrapper_answers_like_the_policy_inside(name, seed):
    policy = make_policy(name)
    for mine, theirs in zip(taught(Wrapped(policy), seed), taught(policy, seed), strict=True):
        assert np.array_equal(mine, theirs)
    assert Wrapped(policy).traits == policy.traits
