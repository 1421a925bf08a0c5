"""Clipped mixtures over actions that are not listed: draws and densities."""

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.estimated_density import EstimatedDensity, estimated_density
from submax.core.conditioning.rejection import LIMIT, rejection
from submax.core.running.fallback import FallbackWarning, fall_back
from submax.core.spaces.space import Space


class Exhausted(FallbackWarning):
    """Some decisions were uniform, since the mixture left too little to be found."""


def drawn(
    space: Space,
    weights: Floats,
    forget: Booleans,
    belief: ConditionalDistribution,
    rng: np.random.Generator,
) -> Actions:
    """Draw by rejection with ``weights [R, n, L]``; uniform where ``forget [R, n]`` is set.

    Uniform, too, where no level has a positive weight, and where nothing is found in ``LIMIT``
    proposals, which is counted.
    """
    forget = forget | ~(weights > 0).any(axis=-1)
    if forget.any():
        # The first proposal will do where the draw is not used: any level, and nothing taken away.
        any_level = np.arange(weights.shape[-1]) == weights.shape[-1] - 1
        weights = np.where(forget[..., None], any_level, weights)
    action, exhausted = rejection(weights, belief, rng)
    if exhausted.any():
        count = int(exhausted.sum())
        message = (
            f"{count} of {exhausted.size} decisions accepted none of {LIMIT} proposals, so that "
            "nothing tells the actions apart, and were uniform"
        )
        fall_back(Exhausted, message, count)
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
    """The log-density of ``action [R, n, M, S]``; uniform where nothing is known.

    A decision that found none of its proposals acceptable was uniform, and so is this where no
    mass is found.
    """
    log_prob, error, known = estimated_density(weights, belief, action)
    known = known & ~forget
    return EstimatedDensity(
        np.where(known[..., None], log_prob, -space.log_measure),
        np.where(known, error, 0.0),
        known,
    )
