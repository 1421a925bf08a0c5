"""What the suite asks of a policy if only some actions are eligible."""

from typing import Any

import numpy as np

from submax.core.contracts.eligibility import act_among, probabilities_among
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.spaces.space import Choices
from submax.testing.rules.compare import require_close
from submax.testing.rules.examples import some_contexts
from submax.testing.rules.require import require

ROWS = 3


def check_eligibility(
    policy: Policy[Any], problem: Problem, replicas: int, seed: int, taught: Any
) -> None:
    """Check decisions among some of the actions, before feedback and in the state ``taught``.

    One eligible action is certain; if all are eligible, the policy decides as always; otherwise
    the probabilities are those of the actions that can be drawn, and the problem of the restricted
    state has these alone.
    """
    fresh = policy.init(problem, replicas, np.random.default_rng(seed))
    context = some_contexts(problem, replicas, ROWS, seed)
    every = tuple(tuple(range(size)) for size in problem.space.choices)
    last: Choices = tuple((size - 1,) for size in problem.space.choices)
    some: Choices = tuple(tuple(range(size))[-2:] for size in problem.space.choices)
    for state in (fresh, taught):
        alone = probabilities_among(policy, state, context, last)
        rule = "the only eligible action must be certain"
        require_close(alone, np.ones_like(alone), policy, rule)
        whole = probabilities_among(policy, state, context, every)
        rule = "if all actions are eligible, nothing must change"
        require_close(whole, policy.probabilities(state, context), policy, rule)
        listed = probabilities_among(policy, state, context, some)
        sizes = {(replicas, rows, problem.space.restricted(some).size) for rows in (1, ROWS)}
        rule = "the probabilities of eligible actions must have shape [R, n, m] or [R, 1, m]"
        require(listed.shape in sizes, policy, rule)
        require(bool(listed.min() >= 0), policy, "probabilities must be 0 or more")
        rule = "the probabilities of the eligible actions must sum to 1"
        require_close(listed.sum(axis=-1), np.ones(listed.shape[:2]), policy, rule)
        action, log_prob = act_among(policy, state, context, some, np.random.default_rng(seed))
        inside = all(np.isin(action[..., slot], kept).all() for slot, kept in enumerate(some))
        require(inside, policy, "only eligible actions must be taken")
        assert log_prob is not None, "act_among always returns it"
        require(bool(np.isfinite(log_prob).all()), policy, "what was taken must have a probability")
        smaller = policy.restricted(state, some)
        if smaller is not None:
            rule = "a restricted state must name the problem with the eligible choices alone"
            require(smaller.problem == state.problem.restricted(some), policy, rule)
