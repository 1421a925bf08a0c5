"""Draws and densities of clipped mixtures over actions that are not listed."""

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.estimated_density import EstimatedDensity, estimated_density
from submax.core.conditioning.rejection import LIMIT, rejection
from submax.core.running.fallback import FallbackWarning, fall_back
from submax.core.spaces.space import Space


class ExhaustedWarning(FallbackWarning):
    """Rejection sampling found no action for some decisions, which were drawn uniformly instead."""


def drawn(
    space: Space,
    weights: Floats,
    forget: Booleans,
    belief: ConditionalDistribution,
    rng: np.random.Generator,
) -> Actions:
    """Draw by rejection with ``weights [R, n, L]``, and uniformly if ``forget [R, n]`` is set.

    A draw is also uniform if no level has a positive weight, and if none of ``LIMIT`` proposals is
    accepted; the latter is counted as a fallback.
    """
    forget = forget | ~(weights > 0).any(axis=-1)
    if forget.any():
        # These draws are not used: with weight on one level, the first proposal is accepted.
        any_level = np.arange(weights.shape[-1]) == weights.shape[-1] - 1
        weights = np.where(forget[..., None], any_level, weights)
    action, exhausted = rejection(weights, belief, rng)
    if exhausted.any():
        count = int(exhausted.sum())
        message = (
            f"{count} of {exhausted.size} decisions were drawn uniformly, because rejection "
            f"sampling accepted none of {LIMIT} proposals: the levels hardly differ"
        )
        fall_back(ExhaustedWarning, message, count)
        forget |= exhausted
    if forget.any():
        action = np.where(forget[..., None], space.uniform(action.shape[:2], rng), action)
    return action


def density(
    space: Space,
    weights: Floats,
    forget: Booleans,
    belief: ConditionalDistribution,
    action: Actions,
) -> EstimatedDensity:
    """Return the log-density of ``action [R, n, M, S]``; uniform if ``forget`` is set.

    It is also uniform if no draw has a positive mass, because ``drawn`` is uniform then.
    """
    log_prob, error, known = estimated_density(weights, belief, action)
    known = known & ~forget
    return EstimatedDensity(
        np.where(known[..., None], log_prob, -space.log_measure),
        np.where(known, error, 0.0),
        known,
    )
