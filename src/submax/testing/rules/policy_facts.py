"""Whether a policy behaves as its facts say."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.testing.rules.examples import problems_of
from submax.testing.rules.policy_decisions import all_log_probs
from submax.testing.rules.require import require

REPLICAS, ROWS = 4, 120
APART = 1e-9
"""Probabilities in two contexts that differ by more than this are different."""


def check_facts(policy: Policy[Any], seed: int) -> None:
    """Check the facts on a problem in which the context decides which of three arms pays."""
    # Networks were compiled for this problem before.
    contextual = problems_of(policy)[-1]
    feedback = _telling_feedback(contextual, seed)
    _check_context(policy, contextual, feedback, seed)
    if not policy.facts.needs_propensities:
        _check_without_propensities(policy, contextual, feedback, seed)


def _check_context(policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int) -> None:
    state = _taught(policy, problem, feedback, seed)
    # Contexts that were seen: a policy may know nothing about others.
    first = feedback.context[..., 0]
    seen = np.stack([first.argmin(axis=1), first.argmax(axis=1)], axis=1)
    context = np.take_along_axis(feedback.context, seen[..., None], axis=1)
    # Each context has a call of its own, because the rows of one call may depend on each other.
    one, other = (_probabilities(policy, state, context[:, row : row + 1]) for row in range(2))
    differs = bool(np.abs(one - other).max() > APART)
    if policy.facts.uses_context:
        sentence = (
            "it says that it uses the context, and decides the same in all of them: "
            "return Facts(uses_context=False) as its facts"
        )
    else:
        sentence = "it says that it ignores the context, and decides differently in two of them"
    require(differs == policy.facts.uses_context, policy, sentence)


def _probabilities(policy: Policy[Any], state: Any, context: Floats) -> Floats:
    found: Floats = np.exp(all_log_probs(policy, state, context))
    return found


def _check_without_propensities(
    policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int
) -> None:
    try:
        _taught(policy, problem, feedback._replace(log_prob=None), seed)
    except InputError:
        require(False, policy, "it says that it needs no propensities, and refuses to do without")


def _telling_feedback(problem: Problem, seed: int) -> Feedback:
    """Uniform decisions: the first arm pays if the first number of the context is positive.

    Of a pair, this is the first arm; the second one is the next of three.
    """
    rng = np.random.default_rng(seed)
    shape = (REPLICAS, ROWS)
    context, arm = rng.normal(size=(*shape, 2)), rng.integers(3, size=shape)
    reward = (arm == (context[..., 0] < 0)).astype(np.float64)
    action = np.stack([arm, (arm + 1) % 3], axis=-1)[..., : problem.space.slots]
    return Feedback(context, action, reward, np.full(shape, -np.log(3)), np.ones(shape))


def _taught(policy: Policy[Any], problem: Problem, feedback: Feedback, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, REPLICAS, rng), feedback, rng)
