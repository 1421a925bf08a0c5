"""Decisions of a policy if only some of the actions are eligible."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.policy import Policy
from submax.core.numerics.categorical import draw, log_prob_of
from submax.core.spaces.space import Choices


def probabilities_among(
    policy: Policy[Any], state: Any, context: Floats, choices: Choices
) -> Floats:
    """Return the probability of every joint action of the eligible ``choices``, ``[R, n, m]``.

    The rule of the policy is applied to the eligible actions alone (`Policy.restricted`): the
    best of them is found even if the plain policy would never take any. A policy without such a
    rule has its probabilities cut to the eligible actions and normalized; they are uniform where
    nothing is left. If the probabilities do not depend on the row, the result may be ``[R, 1, m]``.
    """
    space = state.problem.space
    if all(len(slot) == size for slot, size in zip(choices, space.choices, strict=True)):
        return policy.probabilities(state, context)
    return probabilities_by(policy, policy.restricted(state, choices), state, context, choices)


def probabilities_by(
    policy: Policy[Any], smaller: Any, state: Any, context: Floats, choices: Choices
) -> Floats:
    """Return the same, given what ``policy.restricted(state, choices)`` returns."""
    kept = state.problem.space.indices_of(choices)
    if smaller is not None:
        listed = policy.probabilities(smaller, context)
        # A subclass may list other actions than those of the problem that its state names.
        if listed.shape[-1] == len(kept):
            return listed
    table = policy.probabilities(state, context)[..., kept]
    total = table.sum(axis=-1, keepdims=True)
    normalized: Floats = np.full(table.shape, 1 / len(kept))
    np.divide(table, total, out=normalized, where=total > 0)
    return normalized


def act_among(
    policy: Policy[Any], state: Any, context: Floats, choices: Choices, rng: np.random.Generator
) -> ChosenActions:
    """Decide among the eligible ``choices`` once for every row of ``context [R, n, D]``."""
    listed = probabilities_among(policy, state, context, choices)
    index = draw(listed, context.shape[1], rng)
    action = state.problem.space.restricted(choices).action(index)
    parts = [np.asarray(slot)[action[..., place]] for place, slot in enumerate(choices)]
    return ChosenActions(np.stack(parts, axis=-1), log_prob_of(listed, index))
